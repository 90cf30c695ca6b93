"""How functions are compiled that only other kernels call.

Numba makes every function a library of its own: it optimises it, makes machine code of it, and
then links its optimised, not its compiled, form into whoever calls it. The machine code of a
function that Python never calls is thrown away. Here it is not made in the first place, and nor is
what else such a function has no use for: passes of Numba for language features that kernels do not
use (closures, `with` blocks, array expressions, parallel loops), and LLVM's function passes ahead
of its module passes. That is 3 of 13 seconds of the first compile of Gaussian rewards, 8 of 33 of
finite ones, and a trial takes the same time.

LLVM's module passes are not spared. If functions are optimised only together with their callers,
the first compile takes two seconds less, and a trial takes five times as long.

All that is overridden here are methods of Numba's own. A version of Numba that calls them by other
names compiles as it always does, and is slower.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import PassManager

_RAISES = ctypes.cast(ctypes.pythonapi.PyErr_BadArgument, ctypes.c_void_p).value
_LEFT_OUT = {
    "WithLifting",
    "InlineClosureLikes",
    "RewriteSemanticConstants",
    "DeadBranchPrune",
    "RewriteDynamicRaises",
    "MakeFunctionToJitFunction",
    "InlineInlinables",
    "FindLiterallyCalls",
    "LiteralUnroll",
    "LiteralPropagationSubPipelinePass",
    "InlineOverloads",
    "NopythonRewrites",
    "DumpParforDiagnostics",
}


class FragmentCompiler(Compiler):
    """A compiler of functions that are linked into others and never called from Python."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        context = self.state.targetctx
        self.state.library = _Fragment(context.codegen(), func.__qualname__)
        context.get_executable = _no_executable  # of this compilation: the context is its own
        return super().compile_extra(func)

    def define_pipelines(self) -> list[PassManager]:
        (manager,) = super().define_pipelines()
        manager.passes = [one for one in manager.passes if one[0].__name__ not in _LEFT_OUT]
        manager.finalize()
        return [manager]


class _Fragment(JITCodeLibrary):
    """A library that is optimised and linked into others, but not turned into machine code."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


def _no_executable(library: Any, described: Any, environment: Any) -> Any:
    """What Numba keeps as the function's entrance; behind it is a function of Python's own that
    does nothing but raise a TypeError."""
    library._ensure_finalized()
    name = described.qualname.split(".")[-1]
    return _dynfunc.make_function(
        described.lookup_module(), name, "called by kernels only", _RAISES, environment, (library,)
    )
