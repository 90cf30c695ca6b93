"""The objects that a plain Python function refers to, by name or through a module."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

_NOT_SEARCHED = ("numpy", "math", "numba")  # modules whose functions Numba knows


def referenced(function: Any) -> Iterator[tuple[str, Any]]:
    """List the names that a function uses, with the objects that they stand for."""
    known = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    names = function.__code__.co_names
    for name in (*names, *function.__code__.co_freevars):
        found = known.get(name)
        if isinstance(found, ModuleType) and found.__name__ not in _NOT_SEARCHED:
            yield from ((each, getattr(found, each)) for each in names if hasattr(found, each))
        elif name in known:
            yield name, found
