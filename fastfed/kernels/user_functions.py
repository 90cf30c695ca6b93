"""Compilation of plain Python functions that a user has written: a decision, and all that it calls.

Unlike kernels they may allocate memory, so Numba counts references. They raise Python's errors for
divisions by zero, and for what `checked_code` checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from threading import Lock
from types import FunctionType
from typing import Any

from numba import njit
from numba.core.errors import NumbaError
from numba.core.registry import CPUDispatcher
from numba.extending import register_jitable

from fastfed.kernels.checked_code import CHECKS, check
from fastfed.kernels.compiling import keep
from fastfed.kernels.referenced import referenced

_compiling = Lock()  # two threads must not compile the same function


class NotCompiled(Exception):
    """Refusal of a function that Numba cannot compile, with the reason in few words."""


def compiled_loop(
    loop_of: Callable[..., Callable[..., None]], function: Callable[..., Any]
) -> Callable[..., None]:
    """Compile ``function``, and the loop that ``loop_of`` makes of it; return the loop."""
    with _compiling:
        loop = _compiled(loop_of, function)

    def run(*arguments: Any) -> None:
        try:
            loop(*arguments)
        except NumbaError as error:
            raise NotCompiled(_reason(error)) from None

    return run


@cache
def compiled(function: Callable[..., Any]) -> Any:
    """Compile a plain function, and all that it calls, for a call from Python."""
    for one in _helpers(function):
        _make_callable(one)
    return njit(**CHECKS)(function)


@cache
def _compiled(loop_of: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., None]:
    loop: Callable[..., None] = njit(nogil=True)(loop_of(compiled(function)))
    if function.__module__.startswith("fastfed."):  # a user's module is compiled in every process
        keep(loop, compiled_loop, function, allocates=True)
    return loop


@cache
def _make_callable(function: Any) -> None:
    """Let compiled code call a function, with checks."""
    if isinstance(function, CPUDispatcher):
        check(function)
    else:
        register_jitable(**CHECKS)(function)


def _helpers(function: Any) -> Iterator[Any]:
    """List the functions that a function calls, by name or through a module."""
    seen: set[Any] = set()
    todo = [function]
    while todo:
        one = todo.pop()
        for _, found in referenced(getattr(one, "py_func", one)):
            if isinstance(found, FunctionType | CPUDispatcher) and found not in seen:
                seen.add(found)
                todo.append(found)
                yield found


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
