"""Checks in the code that Numba compiles of users' functions: indices, and casts to integers.

An index out of range raises an IndexError, as in Python. Numba would read or write beyond the
array. A number that is not finite, or too large, raises a ValueError where it becomes an integer.
LLVM leaves the result of such a cast undefined.

Measured, in CPU time of whole trials: 1.0 to 1.2 times as long for the built-in algorithms, 2.2
times for an LUCB that does little else than look into arrays. Compiling takes half a second more.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.compiler import Compiler
from numba.core.cpu import CPUContext

_NO_INTEGER = "a number that is not finite, or is too large, cannot become an integer"


class _CheckedContext(CPUContext):
    """The context of a compilation, with checked casts."""

    def cast(self, builder: Any, val: Any, fromty: Any, toty: Any) -> Any:
        if isinstance(fromty, types.Float) and isinstance(toty, types.Integer):
            _refuse_unfit(self, builder, val, toty)
        return super().cast(builder, val, fromty, toty)

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        found = super().get_function(fn, sig, _firstcall)
        called = getattr(fn, "typing_key", fn)
        if called is round and len(sig.args) == 1 and isinstance(sig.args[0], types.Float):
            return _checked_round(self, found, sig.return_type)
        return found


class _CheckedCompiler(Compiler):
    """A compiler whose code checks casts."""

    def compile_extra(self, func: Any) -> Any:
        self.state.targetctx.__class__ = _CheckedContext  # of this compilation: a copy
        return super().compile_extra(func)


CHECKS: dict[str, Any] = {"boundscheck": True, "pipeline_class": _CheckedCompiler}
"""Options of `numba.njit` that turn the checks on."""


@cache
def check(dispatcher: Any) -> None:
    """Add the checks to a function that its author has compiled with `numba.njit`."""
    dispatcher.targetoptions["boundscheck"] = True
    dispatcher._compiler.targetoptions["boundscheck"] = True
    dispatcher._compiler.pipeline_class = _CheckedCompiler
    dispatcher.recompile()


def _refuse_unfit(context: Any, builder: Any, value: Any, kind: Any) -> None:
    """Raise a ValueError unless the whole part of a number fits the type of an integer."""
    ends = (-(2.0 ** (kind.bitwidth - 1)), 2.0 ** (kind.bitwidth - 1))
    low, high = ends if kind.signed else (0.0, 2.0**kind.bitwidth)
    inside = builder.and_(
        builder.fcmp_ordered(">=", value, ir.Constant(value.type, low)),
        builder.fcmp_ordered("<", value, ir.Constant(value.type, high)),
    )
    with cgutils.if_unlikely(builder, builder.not_(inside)):
        context.call_conv.return_user_exc(builder, ValueError, (_NO_INTEGER,))


def _checked_round(context: Any, rounds: Any, kind: Any) -> Any:
    def checked(builder: Any, args: Any, *more: Any) -> Any:
        _refuse_unfit(context, builder, args[0], kind)
        return rounds(builder, args, *more)

    return checked
