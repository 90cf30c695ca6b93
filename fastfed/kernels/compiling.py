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
import inspect
import multiprocessing
import re
import sys
import threading
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import numba
from numba import njit

from fastfed.errors import InputError
from fastfed.kernels import kept_code, numba_internals, sources
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
_quiet = threading.Event()
_FAMILIES = {"Rewards": "rewards", "Uplink": "uplinks"}


def under_way() -> bool:
    """Tell whether an entry point is being compiled just now, in any thread."""
    return _compiling.is_set()


def say_nothing() -> None:
    """Compile without a word from now on, as ``--quiet`` asks."""
    _quiet.set()


def announce(sig: Any) -> None:
    """Say once for each kernel what is compiled, and for about how long, if a person can see it.

    Only the trials' kernel takes long: it has rewards and uplinks.
    """
    names = {cls.__name__ for kind in sig for cls in _classes(kind)}
    words = [
        f"{name.removesuffix(end).lower()} {family}"
        for end, family in _FAMILIES.items()
        for name in sorted(names)
        if name.endswith(end)
    ]
    seen = sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)
    if len(words) == len(_FAMILIES) and seen and not _quiet.is_set():
        if "ChosenTimes" in names:
            words.append("adaptive schedules")
        _say(
            f"compiling for {', '.join(words)}: about 10 s, only once; `fastfed compile` does it "
            "ahead"
        )


def entry_point(function: Callable[..., Any]) -> Any:
    """Make a kernel that Python calls, without the GIL, and that is kept on disk if possible."""
    compiled = njit(**_WHOLE, **_FROM_PYTHON, nogil=True)(function)
    keep(compiled, function)
    return compiled


def keep(compiled: Any, *functions: Callable[..., Any], allocates: bool = False) -> None:
    """Keep on disk, if possible, what Numba compiles.

    It is made of the files of ``functions``, and has the name of the last. ``allocates`` says that
    it makes arrays.
    """
    if not numba_internals.CAN_CACHE:
        _say_not_kept("this version of Numba has another cache", "install another version of Numba")
        return
    try:
        numba_internals.attach(
            compiled, EntryCache(compiled.py_func, *functions, allocates=allocates)
        )
    except kept_code.NotKept as refusal:
        _say_not_kept(_reason(refusal))


class EntryCache:
    """The cache of an entry point, which does without files that it cannot read or write.

    It has the methods that Numba calls of a cache.
    """

    def __init__(self, *functions: Callable[..., Any], allocates: bool = False) -> None:
        self.place = kept_code.folder()
        self.cache_path = str(self.place)
        self._files = {Path(inspect.getfile(one)) for one in functions}
        last = functions[-1]
        self.name = re.sub(r"\W+", "_", f"{Path(inspect.getfile(last)).stem}_{last.__qualname__}")
        self._allocates, self._unreadable = allocates, False

    def _key(self, sig: Any, codegen: Any) -> tuple[Path, bytes]:
        """Return the file of compiled code, and the key of its content."""
        classes = sorted({cls for kind in sig for cls in _classes(kind)}, key=repr)
        files = self._files | {Path(inspect.getfile(cls)) for cls in classes}
        trees = kept_code.trees(self.place)
        known = len(trees)
        made_of = sources.digest(files, trees)
        if len(trees) > known:
            kept_code.keep_trees(self.place, trees)
        what = repr((self.name, classes, sys.version_info[:2])).encode()
        key = repr((what, sig, numba_internals.machine(codegen), made_of)).encode()
        group, version = (hashlib.sha256(one).hexdigest()[:16] for one in (what, key))
        return self.place / f"{self.name}-{group}.{version}.nbc", key

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return compiled code from disk, or None.

        Numba's own cache would first load all that compiling needs (`target_context.refresh`),
        which takes twice as long as the code itself. Where Numba has to compile, it loads that
        then. Code that makes arrays needs it.
        """
        found = None
        if self._allocates:
            target_context.refresh()
        if _can_be_kept(sig):
            try:
                content = kept_code.read(*self._key(sig, target_context.codegen()))
                if content is not None:
                    found = numba_internals.unpacked(content, target_context)
            except Exception as error:  # damaged bytes can raise anything when they are unpickled
                self._unreadable = isinstance(error, OSError)
                _say(
                    f"compiled code in {self.place} cannot be read ({_reason(error)}); "
                    "compiling it again"
                )
        if found is None:  # Numba compiles next, and saves the result
            _compiling.set()
            announce(sig)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save compiled code on disk, if other processes can use it."""
        _compiling.clear()
        sig = getattr(sig, "args", sig)
        if self._unreadable or not _can_be_kept(sig):
            return
        try:
            content = numba_internals.packed(data)
            if content is not None:
                kept_code.write(*self._key(sig, data.codegen), content)
        except Exception as error:
            _say_not_kept(_reason(error))


def _can_be_kept(sig: Any) -> bool:
    """Tell whether every process finds the classes of a signature's arguments, by their names."""
    return all(
        cls.__module__.startswith("fastfed.") and _by_name(cls) is cls
        for kind in sig
        for cls in _classes(kind)
    )


def _by_name(cls: type) -> Any:
    return reduce(
        lambda found, name: getattr(found, name, None),
        cls.__qualname__.split("."),
        sys.modules.get(cls.__module__),
    )


def _classes(kind: Any) -> Iterator[type]:
    """List the classes that a type is made of."""
    cls = getattr(kind, "instance_class", None)
    if cls is not None:
        yield cls
    for one in getattr(kind, "types", ()):
        yield from _classes(one)


def _reason(error: Exception) -> str:
    """Return an exception in few words, on one line."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:240]


def _say_not_kept(reason: str, fix: str = "set NUMBA_CACHE_DIR to a folder of your own") -> None:
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
