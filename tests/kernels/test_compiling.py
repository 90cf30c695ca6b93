"""The disk cache of compiled kernels: whatever is wrong with it costs a compilation, no more."""

from __future__ import annotations

import errno
import importlib.util
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from numba.core import caching, config

from fastfed.kernels import compiling, numba_internals

SMALL = """
from fastfed.kernels.compiling import entry_point

@entry_point
def double(x):
    return 2.0 * x
"""
Called = Callable[[], tuple[str, str]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a small entry point and a cache beside it."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "small.py").write_text(SMALL)
    return tmp_path


@pytest.fixture
def called(place: Path, capsys: pytest.CaptureFixture[str]) -> Called:
    """Hits and misses of the cache, as a new process has them, and what it says on stderr."""

    def call() -> tuple[str, str]:
        compiling._said.clear()
        capsys.readouterr()
        spec = importlib.util.spec_from_file_location("small", place / "small.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.double(21.0) == 42.0
        stats = module.double.stats
        said = capsys.readouterr().err
        assert said.count("\n") <= 1
        return (
            f"{sum(stats.cache_hits.values())} hits, {sum(stats.cache_misses.values())} misses"
        ), said

    return call


def files(place: Path, ending: str) -> list[Path]:
    found = sorted((place / "cache").rglob(f"*.{ending}"))
    assert found
    return found


COMPILED, FOUND = "0 hits, 1 misses", "1 hits, 0 misses"


def test_the_second_process_compiles_nothing(called: Called) -> None:
    assert called() == (COMPILED, "")
    assert called() == (FOUND, "")


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "garbage", "folder"])
def test_a_damaged_file_is_made_again(
    place: Path, called: Called, ending: str, damage: str
) -> None:
    """One flipped bit of machine code would give wrong rows, or end the process."""
    called()
    (path,) = files(place, ending)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[:-10]
    elif damage == "flipped":
        content[-5] ^= 1
    else:
        content = bytearray(b"" if damage == "empty" else b"garbage" * 50)
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(content)
    counts, said = called()
    assert counts == COMPILED
    if damage in ("cut", "flipped"):
        assert said.startswith("fastfed: compiled code in ")
        assert said.endswith("is damaged); compiling it again\n")
    if damage != "folder":
        assert called() == (FOUND, "")


def test_an_index_that_names_a_module_that_is_gone(place: Path, called: Called) -> None:
    """As Numba itself wrote it before modules moved: unpickling it would raise."""
    called()
    (path,) = files(place, "nbi")
    path.write_bytes(pickle.dumps("0.0") + b"cfastfed.kernels.nowhere\nThing\n.")
    assert called() == (COMPILED, "")
    assert called() == (FOUND, "")


def test_content_that_cannot_be_unpickled(called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    called()
    real, tries = pickle.loads, []

    def loads(content: bytes) -> object:
        tries.append(content)
        if len(tries) == 1:
            raise ModuleNotFoundError("No module named 'fastfed.kernels.nowhere'")
        return real(content)

    monkeypatch.setattr(numba_internals.pickle, "loads", loads)
    counts, said = called()
    assert counts == COMPILED
    assert "No module named 'fastfed.kernels.nowhere'); compiling it again" in said
    assert called() == (FOUND, "")


def test_other_sources_are_compiled_again_without_a_word(
    called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    called()
    monkeypatch.setattr(compiling, "sources", lambda: b"other")
    assert called() == (COMPILED, "")


def test_nowhere_to_write(called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only package and no home: one line for all functions, and it runs."""

    def nowhere(self: object, function: Callable[..., object]) -> None:
        raise RuntimeError(
            f"cannot cache function {function.__name__!r}: no locator available "
            "for file '/somewhere/small.py'"
        )

    monkeypatch.setattr(caching.CacheImpl, "__init__", nowhere)
    counts, said = called()
    assert counts == COMPILED
    assert said == (
        "fastfed: compiled code cannot be kept (no folder for it can be written): "
        "every process compiles it again; set NUMBA_CACHE_DIR to a folder that can be "
        "written\n"
    )


def test_whatever_the_reasons_one_line_tells_that_nothing_is_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "_said", set())
    for reason in ("no space", "no folder", "no space"):
        compiling._say_not_kept(reason)
    assert capsys.readouterr().err.count("\n") == 1


def test_full_disk(called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: object, path: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(caching.IndexDataCacheFile, "_open_for_write", full)
    counts, said = called()
    assert counts == COMPILED
    assert said == (
        "fastfed: compiled code cannot be kept (No space left on device): every "
        "process compiles it again; set NUMBA_CACHE_DIR to a folder that can be "
        "written\n"
    )


def test_processes_that_save_at_once_do_not_mix_their_code(tmp_path: Path) -> None:
    """The second process read the index before the first wrote it, and saves before it is done."""
    first, second = (numba_internals._Files(str(tmp_path), "run", "stamp", b"") for _ in range(2))
    save = first._save_data

    def late(name: str, data: object) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(second, "_load_index", dict)
            second.save("key of the second", "its code")
        save(name, data)

    first._save_data = late
    first.save("key of the first", "other code")
    assert second.load("key of the second") == "its code"
    assert second.load("key of the first") == "other code"


def test_functions_of_kernels_are_compiled_for_kernels_only() -> None:
    """Python cannot call an `inner` function; `from_python` makes one that it can."""

    @compiling.inner
    def double(x):
        return 2.0 * x

    @compiling.kernel
    def quadruple(x):
        return double(double(x))

    assert quadruple(3.0) == 12.0
    with pytest.raises(TypeError):
        double(3.0)
    assert compiling.from_python(double)(3.0) == 6.0
