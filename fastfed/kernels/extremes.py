"""The smaller and the larger of two numbers, for kernels and for Python.

They are `min` and `max` for two arguments. Numba compiles a function of its own, with all passes,
for each pair of types that its `min` and `max` meet: nine for FedElim, 4 % of a first compilation.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

_REAL = (types.Integer, types.Float)


def smaller(first: Any, second: Any) -> Any:
    """Return the smaller of two numbers; the first, if they are equal."""
    return second if second < first else first


def larger(first: Any, second: Any) -> Any:
    """Return the larger of two numbers; the first, if they are equal."""
    return second if second > first else first


@infer_global(smaller)
@infer_global(larger)
class _Extreme(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        kind = self.context.unify_types(*(types.unliteral(one) for one in args))
        return signature(kind, kind, kind) if isinstance(kind, _REAL) else None


@lower_builtin(smaller, types.Number, types.Number)
def _smaller(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _choose(builder, sig.return_type, args, "<")


@lower_builtin(larger, types.Number, types.Number)
def _larger(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _choose(builder, sig.return_type, args, ">")


def _choose(builder: Any, kind: Any, args: Any, comparison: str) -> Any:
    """Choose the second number if the comparison with the first holds, the first if not."""
    first, second = args
    if isinstance(kind, types.Float):
        holds = builder.fcmp_ordered(comparison, second, first)
    else:
        compare = builder.icmp_signed if kind.signed else builder.icmp_unsigned
        holds = compare(comparison, second, first)
    return builder.select(holds, second, first)
