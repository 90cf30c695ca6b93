"""Functions of kernels that are chosen by the type of their first argument, at compile time.

    @generic
    def leaf(rewards):
        "Return ..."

    @leaf.of(GaussianRewards)
    def _leaf(rewards):
        return 4

`leaf(rewards)` inside a kernel is then `_leaf` wherever ``rewards`` is a GaussianRewards (a
NamedTuple class). Nothing is decided at run time. A second process finds such kernels on disk,
which it could not if a compiled function were an argument or stood in a closure.

A hook with a default is made by `generic_with_default`: its own body serves every class that
registers nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import typeof, types
from numba.extending import models, register_model, typeof_impl

from fastfed.kernels.compiling import inlined


class Generic:
    """A function of kernels with an implementation for each class of its first argument."""

    def __init__(self, stub: Callable[..., Any], default: Callable[..., Any] | None) -> None:
        self.__name__, self.__doc__ = stub.__name__, stub.__doc__
        self.__wrapped__ = stub
        self._default = default
        self._implementations: dict[type, Callable[..., Any]] = {}

    def of(self, cls: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that registers the implementation for a class."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            if cls in self._implementations:
                raise TypeError(f"{cls.__name__} is registered twice")
            self._implementations[cls] = function
            return function

        return register

    def chosen(self, first: Any) -> Any:
        """Return the type of the compiled function that serves a first argument; None: none."""
        cls = getattr(first, "instance_class", None)
        function = self._implementations.get(cls, self._default)  # type: ignore[arg-type]
        return None if function is None else typeof(_compiled(function))


@cache
def _compiled(function: Callable[..., Any]) -> Any:
    """Make one compiled function of an implementation, for all classes that it serves."""
    return inlined(function)


class _GenericType(types.Callable, types.Dummy):
    """Numba's type of a generic function: calls go to the function that the type chooses."""

    def __init__(self, generic: Generic) -> None:
        self.generic = generic
        super().__init__(f"Generic({generic.__name__}, {id(generic)})")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        found = self.generic.chosen(args[0])
        return None if found is None else found.get_call_type(context, args, kws)

    def get_call_signatures(self) -> Any:
        return (), True

    def get_impl_key(self, sig: Any) -> Any:
        return self.generic.chosen(sig.args[0]).get_impl_key(sig)


register_model(_GenericType)(models.OpaqueModel)


@typeof_impl.register(Generic)
def _typeof(value: Generic, context: Any) -> _GenericType:
    return _GenericType(value)


def generic(stub: Callable[..., Any]) -> Any:
    """Make a generic function of ``stub``; ``stub.of(Class)`` registers an implementation."""
    return Generic(stub, None)


def generic_with_default(stub: Callable[..., Any]) -> Any:
    """Make a generic function whose body serves the classes that register no implementation."""
    return Generic(stub, stub)
