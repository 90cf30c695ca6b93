"""Fingerprints of classes that a user defines: a hash of the code and constants that make rows.

Rows carry names. If the class behind a name changes, rows of both versions must not be mixed. A
fingerprint covers the functions and constants of the class, and of all classes of other packages
than fastfed that it inherits from. It covers the functions that these call, and the constants that
they use. Bytecode is hashed, because a file may be newer than what has been imported from it. So
another version of Python gives another fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from fastfed.kernels.referenced import referenced

_NOT_FOLLOWED = {"fastfed", "numpy", "math", "numba"}  # rows and versions tell these apart


@cache
def fingerprint(cls: type) -> str:
    """Return a hash of all that a class does and holds, as far as users have written it."""
    texts: list[str] = []
    seen: set[Any] = set()
    for one in cls.__mro__:
        if one is not object and not _known(one):
            for name, value in sorted(one.__dict__.items()):
                if not name.startswith("_"):
                    texts.extend([name, *_texts(value, seen)])
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _known(found: Any) -> bool:
    return str(getattr(found, "__module__", "")).partition(".")[0] in _NOT_FOLLOWED


def _texts(value: Any, seen: set[Any]) -> Iterator[str]:
    """Write a value as text that is the same in every process."""
    import numpy as np  # the help of a command imports this file, and needs no NumPy

    if isinstance(value, property):
        value = value.fget
    value = getattr(value, "__func__", value)  # a static method, or one of the class
    value = getattr(value, "py_func", value)  # a function that its author has compiled
    if isinstance(value, FunctionType):
        yield value.__qualname__
        if _known(value):  # as the function by which `Algorithm.define` returns a number
            yield from _texts([cell.cell_contents for cell in value.__closure__ or ()], seen)
        elif value not in seen:
            seen.add(value)
            yield from _code(value.__code__, value.__doc__)
            yield from _texts((value.__defaults__, value.__kwdefaults__), seen)
            for name, each in sorted(referenced(value), key=lambda pair: pair[0]):
                yield from (name, *_texts(each, seen))
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each, seen)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from (repr(key), *_texts(each, seen))
    elif isinstance(value, bool | int | float | complex | str | np.generic | None):
        yield repr(value)
    elif not isinstance(value, ModuleType):
        yield type(value).__qualname__


def _code(code: CodeType, doc: str | None) -> Iterator[str]:
    """Write bytecode with its constants and names, without its docstring and its place."""
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant, None)
        elif constant is None or constant != doc:
            yield repr(constant)
