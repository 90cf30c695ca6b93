"""How kernels are compiled.

`_nrt=False` turns Numba's reference counting off: kernels allocate nothing and keep nothing, so
there is nothing to count, and counting costs. Counting every array at every call, atomically, made
a trial of the paper's instance take 90 us and the first compile 13 s, with an early version of the
kernels; without it they were 28 us and 6 s.

Numba gives every function a second entrance from Python and a third from C. Functions that only
kernels call have none of them (`inner`, `inlined`), and are compiled only as far as their callers
need it (`fragment`): a call from Python raises a TypeError. Who wants to call one of them by
itself, as tests do, makes a `kernel` of it (`from_python`).

`forceinline=False` is said on purpose. A function that says nothing inherits the setting of the
one that it is first compiled for, so that all that an inlined function calls would be inlined as
well: three times the code, and a first compile of 20 s in place of 12.

Entry points are kept on disk by Numba, so that only the first process compiles. `_Cache` guards
that: a cache is a convenience, so whatever is wrong with it costs a compilation and never a run.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import pickle
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

from fastfed import radius
from fastfed.kernels.fragment import FragmentCompiler

_OPTIONS: Any = {"error_model": "numpy", "_nrt": False}
_FROM_PYTHON: Any = {"no_cfunc_wrapper": True}
_NO_ENTRANCE: Any = {**_FROM_PYTHON, "no_cpython_wrapper": True}
_DIGEST = 32  # bytes of a SHA-256

_FRAGMENT: Any = {**_OPTIONS, **_NO_ENTRANCE, "pipeline_class": FragmentCompiler}
INLINED: Any = {**_FRAGMENT, "forceinline": True}

_APART: Any = {"forceinline": False}

kernel = njit(**_OPTIONS, **_APART)
inner = njit(**_FRAGMENT, **_APART)
inlined = njit(**INLINED)


def from_python(function: Any) -> Any:
    """An `inner` function once more, as one that Python can call."""
    return kernel(function.py_func)


_compiling = threading.Event()


def under_way() -> bool:
    """Whether an entry point is being compiled just now, in any thread."""
    return _compiling.is_set()


def entry_point(function: Callable[..., Any]) -> Any:
    """A kernel that Python calls, without the GIL, and that is kept on disk if there is room."""
    compiled = njit(**_OPTIONS, **_FROM_PYTHON, **_APART, nogil=True)(function)
    try:
        compiled._cache = _Cache(function)
    except Exception as error:  # Numba finds no folder that it may write to
        nowhere = "no locator available" in str(error)  # followed by the path of one function
        _say_not_kept("no folder for it can be written" if nowhere else _reason(error))
    return compiled


@cache
def sources() -> bytes:
    """A hash of every source that the compiled kernels are made of."""
    digest = hashlib.sha256()
    package = Path(__file__).parent.parent
    rooms = [
        path
        for room in ("kernels", "goals", "uplinks")
        for path in sorted((package / room).rglob("*.py"))
    ]
    for path in [Path(radius.__file__), *rooms]:
        digest.update(path.read_bytes())
    return digest.digest()


class _Cache(FunctionCache):
    """Numba's cache of one function, which does without what it cannot read or write."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(sig, target_context)
        except Exception as error:  # damaged bytes can raise anything when they are unpickled
            _say(
                f"compiled code in {self._cache_path} cannot be read ({_reason(error)}); "
                "compiling it again"
            )
            try:
                self.flush()
            except Exception:  # nor can it be written: all has been said
                self.disable()
            found = None
        if found is None:  # Numba compiles next, and saves what it has made
            _compiling.set()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        _compiling.clear()
        if not all(_is_ours(one) for one in getattr(sig, "args", sig)):
            return  # another process may not have the class, and could not read the index
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _say_not_kept(_reason(error))


def _is_ours(kind: Any) -> bool:
    """Whether a type is made of this package's classes, and of Numba's own."""
    cls = getattr(kind, "instance_class", None)
    if cls is not None and not cls.__module__.startswith("fastfed."):
        return False
    return all(_is_ours(one) for one in getattr(kind, "types", ()))


class _Files(IndexDataCacheFile):
    """The files of a cache, each with two hashes ahead of its content.

    The first is of everything that the content depends on, because Numba looks only at the file
    that the function itself stands in, and because the content of an older version can name
    modules that no longer exist: such a file is not even unpickled. The second is of the content:
    one flipped bit in machine code would give wrong rows.
    """

    def __init__(self, path: str, name: str, stamp: Any) -> None:
        super().__init__(path, name, stamp)
        about = repr((numba.__version__, stamp)).encode()
        self._made_of = hashlib.sha256(about + sources()).digest()

    def _load_index(self) -> dict[Any, str]:
        content = None
        with suppress(FileNotFoundError):
            content = self._read(self._index_path)
        return content or {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        with self._open_for_write(self._index_path) as file:
            file.write(self._dump(overloads))

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _dump(self, obj: Any) -> bytes:
        content: bytes = super()._dump(obj)
        return self._made_of + hashlib.sha256(content).digest() + content

    def _read(self, path: str) -> Any:
        """What was written to a file; None if that was made of other sources."""
        whole = Path(path).read_bytes()
        content = whole[2 * _DIGEST :]
        if whole[:_DIGEST] != self._made_of:
            return None
        if whole[_DIGEST : 2 * _DIGEST] != hashlib.sha256(content).digest():
            raise ValueError(f"{Path(path).name} is damaged")
        return pickle.loads(content)


def _reason(error: Exception) -> str:
    """An exception in few words, on one line."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:120]


def _say_not_kept(reason: str) -> None:
    """Said of the first function that is not kept: one line tells it of all."""
    _say(
        f"compiled code cannot be kept ({reason}): every process compiles it again; set "
        "NUMBA_CACHE_DIR to a folder that can be written",
        "not kept",
    )


_said: set[str] = set()


def _say(line: str, subject: str = "") -> None:
    """One line on stderr, once for each subject (of itself: the line); the processes of a cluster
    leave it to the one that made them."""
    if (subject or line) in _said:
        return
    _said.add(subject or line)
    if multiprocessing.parent_process() is None and sys.stderr is not None:
        print(f"fastfed: {line}", file=sys.stderr)
