"""Compilation of kernels.

`_nrt=False` turns Numba's reference counting off: kernels allocate nothing and keep nothing, so
there is nothing to count, and counting costs. Counting every array at every call, atomically, made
a trial of the paper's instance take 90 us and the first compile 13 s, with an early version of the
kernels; without it they were 28 us and 6 s.

Numba gives every function a second entrance from Python and a third from C. Functions that only
kernels call have none of them (`inner`, `inlined`), and are compiled only as far as their callers
need it (`numba_internals`): a call from Python raises a TypeError. `from_python` makes a `kernel`
of such a function, for tests. Only a `kernel` or an `entry_point` may call such a function from
outside: code that Numba compiles by itself lacks the functions that are called in turn. Kernels
have no closures, comprehensions or array expressions: the passes for those are left out.

`forceinline=False` is said on purpose. A function that says nothing inherits the setting of the
function that it is first compiled for, so that all that an inlined function calls would be inlined
as well: three times the code, and a first compile of 20 s in place of 12.

Entry points are kept on disk, so that only the first process compiles. A cache is a convenience: if
anything is wrong with it, that costs a compilation and never a run.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import njit

from fastfed import confidence, timegrid
from fastfed.errors import InputError
from fastfed.kernels import numba_internals
from fastfed.kernels.numba_internals import compilers, known_options

if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    raise InputError(
        "NUMBA_DISABLE_JIT is set: trials are run by compiled code alone; unset it (the slow "
        "reference is fastfed.simulation.reference)"
    )

_OPTIONS: Any = {"error_model": "numpy", **known_options(_nrt=False)}
_FROM_PYTHON: Any = known_options(no_cfunc_wrapper=True)
_APART: Any = known_options(forceinline=False)
_WHOLE, _FRAGMENT = {**_OPTIONS, **_APART}, _OPTIONS
if (_compilers := compilers()) is not None:
    _NO_ENTRANCE = known_options(no_cpython_wrapper=True)
    _WHOLE["pipeline_class"] = _compilers.whole
    _FRAGMENT = {**_OPTIONS, **_FROM_PYTHON, **_NO_ENTRANCE, "pipeline_class": _compilers.fragment}
INLINED: Any = {**_FRAGMENT, **known_options(forceinline=True)}

kernel = njit(**_WHOLE)
inner = njit(**_FRAGMENT, **_APART)
inlined = njit(**INLINED)


def from_python(function: Any) -> Any:
    """Make a kernel that Python can call from an `inner` function."""
    return kernel(function.py_func)


_compiling = threading.Event()


def under_way() -> bool:
    """Tell whether an entry point is being compiled just now, in any thread."""
    return _compiling.is_set()


def entry_point(function: Callable[..., Any]) -> Any:
    """Make a kernel that Python calls, without the GIL, and that is kept on disk if possible."""
    compiled = njit(**_WHOLE, **_FROM_PYTHON, nogil=True)(function)
    if not numba_internals.CAN_CACHE:
        _say_not_kept("this version of Numba has another cache", "install another version of Numba")
        return compiled
    try:
        numba_internals.attach(compiled, EntryCache(function, sources()))
    except Exception as error:  # Numba finds no folder that it may write to
        nowhere = "no locator available" in str(error)  # followed by the path of one function
        _say_not_kept("no folder for it can be written" if nowhere else _reason(error))
    return compiled


@cache
def sources() -> bytes:
    """Hash every source that the compiled kernels are made of."""
    digest = hashlib.sha256()
    for path in [
        Path(confidence.__file__),
        Path(timegrid.__file__),
        *sorted(Path(__file__).parent.rglob("*.py")),
    ]:
        digest.update(path.read_bytes())
    return digest.digest()


class EntryCache(numba_internals.Cache):
    """The cache of an entry point, which does without files that it cannot read or write."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(sig, target_context)
        except Exception as error:  # damaged bytes can raise anything when they are unpickled
            _say(
                f"compiled code in {self.place} cannot be read ({_reason(error)}); "
                "compiling it again"
            )
            try:
                self.flush()
            except Exception:  # nor can it be written: all has been said
                self.disable()
            found = None
        if found is None:  # Numba compiles next, and saves the result
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
    """Tell whether a type is made of this package's classes, and of Numba's own."""
    cls = getattr(kind, "instance_class", None)
    if cls is not None and not cls.__module__.startswith("fastfed."):
        return False
    return all(_is_ours(one) for one in getattr(kind, "types", ()))


def _reason(error: Exception) -> str:
    """Return an exception in few words, on one line."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:120]


def _say_not_kept(
    reason: str, fix: str = "set NUMBA_CACHE_DIR to a folder that can be written"
) -> None:
    """Say once on stderr that compiled functions are not cached."""
    _say(
        f"compiled code cannot be kept ({reason}): every process compiles it again; {fix}",
        "not kept",
    )


_said: set[str] = set()


def _say(line: str, subject: str = "") -> None:
    """Print a line on stderr, once for each subject (the line itself by default).

    The processes of a cluster leave it to the process that made them.
    """
    if (subject or line) in _said:
        return
    _said.add(subject or line)
    if multiprocessing.parent_process() is None and sys.stderr is not None:
        print(f"fastfed: {line}", file=sys.stderr)
