"""Functions of kernels that are chosen by the type of their first argument, at compile time.

    @generic
    def leaf(rewards):
        "Return ..."

    @leaf.of(GaussianRewards)
    def _leaf(rewards):
        return 4

`leaf(rewards)` inside a kernel is then `_leaf` wherever ``rewards`` is a GaussianRewards (a
NamedTuple class). Nothing is decided at run time. Numba's disk cache finds such kernels in a second
process, which it does not if a compiled function is an argument or stands in a closure.

A hook with a default is made by `generic_with_default`: its own body serves every class that
registers nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba.extending import overload

from fastfed.kernels.compiling import INLINED


def generic(stub: Callable[..., Any]) -> Any:
    """Make a generic function of ``stub``; ``stub.of(Class)`` registers an implementation."""
    return _generic(stub, None)


def generic_with_default(stub: Callable[..., Any]) -> Any:
    """Make a generic function whose body serves the classes that register no implementation."""
    return _generic(stub, stub)


def _generic(stub: Callable[..., Any], default: Callable[..., Any] | None) -> Any:
    implementations: dict[type | None, Callable[..., Any]] = {}

    def choose(first: Any, *rest: Any) -> Callable[..., Any] | None:
        return implementations.get(getattr(first, "instance_class", None), default)

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
