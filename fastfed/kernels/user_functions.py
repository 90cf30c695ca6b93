"""Compilation of plain Python functions that a user has written: a decision, and all that it calls.

Unlike kernels they may allocate memory, so Numba counts references. They raise Python's errors for
divisions by zero.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from threading import Lock
from types import FunctionType, ModuleType
from typing import Any

from numba import njit
from numba.core.errors import NumbaError
from numba.extending import register_jitable

_NOT_SEARCHED = ("numpy", "math", "numba")  # modules whose functions Numba knows
_compiling = Lock()  # two threads must not compile the same function


class NotCompiled(Exception):
    """Refusal of a function that Numba cannot compile, with the reason in few words."""


def compiled_loop(loop: Callable[..., None], function: Callable[..., Any]) -> Callable[..., None]:
    """Compile ``function``, and ``loop``, whose first argument it is; return the loop."""
    with _compiling:
        pair = _compiled(loop, function)

    def run(*arguments: Any) -> None:
        try:
            pair(*arguments)
        except NumbaError as error:
            raise NotCompiled(_reason(error)) from None

    return run


@cache
def compiled(function: Callable[..., Any]) -> Any:
    """Compile a plain function, and all that it calls, for a call from Python."""
    for one in _helpers(function):
        _make_callable(one)
    return njit(function)


@cache
def _compiled(loop: Callable[..., None], function: Callable[..., Any]) -> Callable[..., None]:
    inner, outer = compiled(function), njit(nogil=True)(loop)
    return lambda *arguments: outer(inner, *arguments)


@cache
def _make_callable(function: Any) -> None:
    """Let compiled code call a plain function."""
    register_jitable(function)


def _helpers(function: Any) -> Iterator[Any]:
    """List the plain functions that a function calls, by name or through a module."""
    seen: set[Any] = set()
    todo = [function]
    while todo:
        one = todo.pop()
        known = {**one.__globals__, **inspect.getclosurevars(one).nonlocals}
        for name in (*one.__code__.co_names, *one.__code__.co_freevars):
            found = known.get(name)
            candidates = [found]
            if isinstance(found, ModuleType) and found.__name__ not in _NOT_SEARCHED:
                candidates = [getattr(found, each, None) for each in one.__code__.co_names]
            for each in candidates:
                if isinstance(each, FunctionType) and each not in seen:
                    seen.add(each)
                    todo.append(each)
                    yield each


_SPECIFIC = re.compile(r"Unknown attribute '\w+'|Cannot modify readonly array|NameError: [^\n]+")


def _reason(error: Exception) -> str:
    """Return the reason of a failed compilation, with its line, in few words."""
    text = re.sub(r"\x1b\[\d*m", "", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith("Failed in nopython mode")]
    specific = _SPECIFIC.search(text)
    reason = specific.group() if specific else (told or lines or [type(error).__name__])[0]
    places = re.findall(
        r'File "[^"]*?([^"/]+)", line (\d+):', text.partition("resolving callee")[0]
    )
    where = f"{places[0][0]}, line {places[0][1]}: " if places else ""
    return f"{where}{reason}"[:200]
