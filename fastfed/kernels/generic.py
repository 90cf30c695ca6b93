"""Functions that are chosen by the type of their first argument, when Numba compiles.

    @generic
    def leaf(law):
        "What it is for."

    @leaf.of(GaussianLaw)
    def _leaf(law):
        return 4

`leaf(law)` inside a kernel is then `_leaf` wherever ``law`` is a GaussianLaw (a NamedTuple class).
Nothing is decided at run time, and Numba's disk cache finds such kernels in a second process,
which it does not if a compiled function is handed over as an argument or in a closure.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba.extending import overload

from fastfed.kernels.compiling import INLINED


def generic(stub: Callable[..., Any]) -> Any:
    """Make ``stub``, whose body is only a docstring, a generic function of kernels; ``stub.of``
    registers an implementation for a class."""
    implementations: dict[type, Callable[..., Any]] = {}

    def choose(law: Any, *rest: Any) -> Callable[..., Any] | None:
        return implementations.get(getattr(law, "instance_class", None))  # type: ignore[arg-type]

    def of(cls: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            if cls in implementations:
                raise TypeError(f"{cls.__name__} is registered twice")
            implementations[cls] = function
            return function

        return register

    choose.__signature__ = inspect.signature(stub)  # type: ignore[attr-defined]
    overload(stub, strict=False, jit_options=INLINED)(choose)
    stub.of = of  # type: ignore[attr-defined]
    return stub
