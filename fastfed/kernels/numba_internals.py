"""The private interfaces of Numba that are used: its compiler, its libraries, its cache.

Three things are gained: options of the compiler that are not documented (`known_options`),
functions that are compiled only as far as their callers need it (`compilers`), and compiled
code as bytes (`packed`). Where a version of Numba lacks one of the
interfaces, plain Numba compiles instead: slower, with the same rows. (`dispatch`, `extremes`,
`kernel_arrays` and `tuple_references` add types and functions, by Numba's interface for
extensions.)

Fragments. Numba makes every function a library of its own: it optimises it, makes machine code of
it, and links its optimised form into every caller, where it is optimised again, with each caller of
a caller. A fragment is neither optimised nor made machine code, and is linked once, where machine
code is made of all that is called (`Whole`). There LLVM's module passes run once; Numba runs them
twice, to remove counts of references in between, of which kernels have none. All kernels do without
the passes of Numba for language features that they do not use (closures, `with` blocks, array
expressions, parallel loops). Linking goes from callers to callees, because LLVM drops a function
that nothing refers to yet. Measured together: first use of Gaussian rewards 12 s instead of 20, and
a trial takes the same time.

While kernels are compiled Python collects no garbage: of 14 s it took 2, and found nothing.
"""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numba

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
_ENTRANCE = "_ZN7cpython"  # how names of wrappers begin


def known_options(**wanted: Any) -> dict[str, Any]:
    """Return those of the compiler's options that this version of Numba knows."""
    try:
        from numba.core.options import DefaultOptions
    except ImportError:
        return {}
    return {name: value for name, value in wanted.items() if hasattr(DefaultOptions, name)}


class Compilers(NamedTuple):
    """Compilers of functions that only kernels call, and of functions that call those."""

    fragment: Any
    whole: Any


def _callers_first(libraries: Iterable[Any]) -> list[Any]:
    """List the fragments that libraries call, and those that these call, callers ahead."""
    ended: dict[Any, None] = {}  # a fragment ends after all that it calls

    def follow(library: Any) -> None:
        for one in getattr(library, "apart", ()):
            if one not in ended:
                follow(one)
                ended[one] = None

    for library in libraries:
        follow(library)
    return list(reversed(ended))


def _libraries(base: Any) -> tuple[Any, Any]:
    """Make the classes of libraries, from that of Numba."""

    class Fragment(base):  # type: ignore[misc]
        """A library that is linked where it is needed: not optimised, and not made machine code."""

        def __init__(self, codegen: Any, name: str) -> None:
            super().__init__(codegen, name)
            self.apart: list[Any] = []  # the fragments that its code calls

        def add_linking_library(self, library: Any) -> None:
            library._ensure_finalized()
            if isinstance(library, Fragment):
                self.apart.append(library)
            else:
                super().add_linking_library(library)

        def _optimize_functions(self, ll_module: Any) -> None:
            ll_module.data_layout = self._codegen._data_layout

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

    class Whole(base):  # type: ignore[misc]
        """A library that is made machine code, with all fragments that it needs."""

        def __init__(self, codegen: Any, name: str) -> None:
            super().__init__(codegen, name)
            self.called: list[Any] = []

        def add_linking_library(self, library: Any) -> None:
            super().add_linking_library(library)
            self.called.append(library)

        def add_ir_module(self, ir_module: Any) -> None:
            for function in ir_module.functions:  # the entrance from Python runs once a call
                if function.blocks and function.name.startswith(_ENTRANCE):
                    function.attributes.add("noinline")
                    function.attributes.add("optnone")
            super().add_ir_module(ir_module)

        def _optimize_functions(self, ll_module: Any) -> None:
            ll_module.data_layout = self._codegen._data_layout

        def _optimize_final_module(self) -> None:
            try:
                made = self._codegen._module_pass_manager()
                passes, *builder = made if isinstance(made, tuple) else (made,)  # none before 0.62
                passes.run(self._final_module, *builder)
            except (AttributeError, TypeError):  # another interface: twice, as Numba does it
                super()._optimize_final_module()

        def finalize(self) -> None:
            for one in _callers_first(self.called):
                super().add_linking_library(one)
            super().finalize()

    return Fragment, Whole


def compilers() -> Compilers | None:
    """Make the compilers; None where an interface is gone."""
    try:
        from numba import _dynfunc  # type: ignore[attr-defined]
        from numba.core.codegen import CPUCodegen, JITCodeLibrary
        from numba.core.compiler import Compiler
    except ImportError:
        return None
    overridden = ("_optimize_functions", "_optimize_final_module", "_finalize_final_module")
    used = ("_ensure_finalized", "_finalize_dynamic_globals", "add_linking_library")
    if not (
        all(hasattr(JITCodeLibrary, name) for name in overridden + used)
        and all(hasattr(Compiler, name) for name in ("compile_extra", "define_pipelines"))
        and hasattr(CPUCodegen, "_module_pass_manager")
        and hasattr(_dynfunc, "make_function")
    ):
        return None
    Fragment, Whole = _libraries(JITCodeLibrary)
    # this pass ends the lives of variables, which is to count references
    left_out = _LEFT_OUT | ({"IRLegalization"} if known_options(_nrt=False) else set())
    raises = ctypes.cast(ctypes.pythonapi.PyErr_BadArgument, ctypes.c_void_p).value

    def no_executable(library: Any, described: Any, environment: Any) -> Any:
        """Return a Python function that raises a TypeError, in place of a compiled entry point."""
        library._ensure_finalized()
        name = described.qualname.split(".")[-1]
        module = described.lookup_module()
        return _dynfunc.make_function(
            module, name, "called by kernels only", raises, environment, (library,)
        )

    class KernelCompiler(Compiler):
        """A compiler without passes for what kernels do not use."""

        def define_pipelines(self) -> Any:
            managers = super().define_pipelines()
            for manager in managers:
                manager.passes = [one for one in manager.passes if one[0].__name__ not in left_out]
                manager.finalize()
            return managers

    class FragmentCompiler(KernelCompiler):
        """A compiler of functions that are linked into others and never called from Python."""

        def compile_extra(self, func: Callable[..., Any]) -> Any:
            context = self.state.targetctx
            self.state.library = Fragment(context.codegen(), func.__qualname__)
            context.get_executable = no_executable  # of this compilation: the context is its own
            return super().compile_extra(func)

    class WholeCompiler(KernelCompiler):
        """A compiler of functions that are called from Python, or by their address."""

        def compile_extra(self, func: Callable[..., Any]) -> Any:
            self.state.library = Whole(self.state.targetctx.codegen(), func.__qualname__)
            self.state.library.enable_object_caching()
            collects = gc.isenabled()
            gc.disable()
            try:
                return super().compile_extra(func)
            finally:
                if collects:
                    gc.enable()

    return Compilers(FragmentCompiler, WholeCompiler)


try:
    from numba.core.compiler import CompileResult
    from numba.core.dispatcher import Dispatcher
    from numba.core.serialize import dumps

    CAN_CACHE = all(hasattr(CompileResult, name) for name in ("_reduce", "_rebuild", "codegen"))
    CAN_CACHE = CAN_CACHE and hasattr(Dispatcher, "enable_caching")
except ImportError:
    CAN_CACHE = False


def attach(compiled: Any, cache: Any) -> None:
    """Make a compiled function use a cache."""
    compiled._cache = cache


def machine(codegen: Any) -> str:
    """Describe all that compiled code depends on, but for its sources."""
    config = numba.config
    checks = (config.BOUNDSCHECK, config.OPT, config.DEBUGINFO_DEFAULT)  # type: ignore[attr-defined]
    return repr((sys.version, numba.__version__, codegen.magic_tuple(), checks))


def packed(compiled: Any) -> bytes | None:
    """Return the result of a compilation as bytes; None if other processes cannot use it."""
    if compiled.library.has_dynamic_globals or compiled.lifted:
        return None
    content: bytes = dumps(compiled._reduce())
    return content


def unpacked(content: bytes, context: Any) -> Any:
    """Return the result of a compilation from its bytes."""
    return CompileResult._rebuild(context, *pickle.loads(content))
