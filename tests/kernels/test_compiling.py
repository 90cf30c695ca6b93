"""The disk cache of compiled kernels: whatever is wrong with it costs a compilation, no more."""

from __future__ import annotations

import errno
import importlib.util
import inspect
import math
import os
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from numba.core import config

import fastfed
from fastfed.kernels import compiling, dispatch, kept_code, numba_internals, sources, trials
from fastfed.kernels.rewards import finite, gaussian_noises

SMALL = """
from fastfed.kernels.compiling import entry_point

@entry_point
def double(x):
    return 2.0 * x
"""
Called = Callable[[], tuple[str, str]]


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every file for one that was there before this process."""
    monkeypatch.setattr(sources, "_BEGAN", math.inf)


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


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "garbage", "folder"])
def test_a_damaged_file_is_made_again(place: Path, called: Called, damage: str) -> None:
    """One flipped bit of machine code would give wrong rows, or end the process."""
    called()
    (path,) = files(place, "nbc")
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
    assert said.startswith("fastfed: compiled code in ")
    reason = "Is a directory" if damage == "folder" else f"{path.name} is damaged"
    assert said.endswith(f" ({reason}); compiling it again\n")
    if damage != "folder":
        assert called() == (FOUND, "")


def test_trees_that_are_damaged_are_read_again(place: Path, called: Called) -> None:
    called()
    (path,) = files(place, "json")
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + b"garbage}}")
    kept_code.trees.cache_clear()
    assert called() == (FOUND, "")
    assert path.read_bytes() == whole


def test_content_that_cannot_be_unpickled(called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    called()
    real, tries = pickle.loads, []

    def loads(content: bytes) -> object:
        tries.append(content)
        if len(tries) <= 2:  # tests ask twice, because another may have compiled
            raise ModuleNotFoundError("No module named 'fastfed.kernels.nowhere'")
        return real(content)

    monkeypatch.setattr(numba_internals.pickle, "loads", loads)
    counts, said = called()
    assert counts == COMPILED
    assert "No module named 'fastfed.kernels.nowhere'); compiling it again" in said
    assert called() == (FOUND, "")


EDITED = SMALL.replace("2.0 * x", "x + x")
DESCRIBED = f'"""A module."""\n{SMALL}'.replace(
    "\n    return", '\n    """Twice."""  # so\n\n    return'
)


def test_only_edits_of_the_syntax_tree_compile(place: Path, called: Called) -> None:
    """Comments, docstrings and an undone edit find what was compiled before."""
    file = place / "small.py"
    assert called() == (COMPILED, "")
    file.write_text(DESCRIBED)
    assert called() == (FOUND, "")
    file.write_text(EDITED)
    assert called() == (COMPILED, "")
    file.write_text(SMALL)
    assert called() == (FOUND, "")


def test_code_of_a_file_that_was_edited_after_its_import_is_not_kept(
    place: Path, called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old code got the name of the edited file, and other processes ran it."""
    began = (place / "small.py").stat().st_mtime - 1.0
    monkeypatch.setattr(sources, "_BEGAN", began)
    counts, said = called()
    assert counts == COMPILED
    assert "small.py was edited after this process began); compiling it again" in said
    assert not list(place.rglob("*.nbc"))


def test_the_versions_used_last_are_kept(place: Path, called: Called) -> None:
    """The first version is used again after each edit, so others are removed."""
    called()
    (first,) = files(place, "nbc")
    for number in range(kept_code.KEPT + 1):
        (place / "small.py").write_text(f"{SMALL}\nNUMBER = {number}\n")
        assert called() == (COMPILED, "")
        (place / "small.py").write_text(SMALL)
        os.utime(first, ns=(0, 0))
        assert called() == (FOUND, "")
    assert len(files(place, "nbc")) == kept_code.KEPT
    assert first.exists()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the package, whose files a test may then edit."""
    copy = shutil.copytree(Path(fastfed.__file__).parent, tmp_path / "fastfed")
    monkeypatch.setattr(sources, "_PACKAGE", Path(copy))
    return Path(copy)


@pytest.mark.parametrize(
    ("edited", "changes"),
    [
        ("kernels/trials.py", {"gaussian", "finite"}),
        ("kernels/random/philox.py", {"gaussian", "finite"}),
        ("kernels/compiling.py", {"gaussian", "finite"}),
        ("confidence.py", {"gaussian", "finite"}),
        ("kernels/rewards/gaussian.py", {"gaussian"}),
        ("kernels/random/binomial.py", {"finite"}),
        ("kernels/rewards/poisson.py", set()),
        ("model/setting.py", set()),
        ("errors.py", set()),
    ],
)
def test_a_kernel_is_made_of_what_its_files_import(
    package: Path, edited: str, changes: set[str]
) -> None:
    trees: sources.Trees = {}  # a file is parsed once

    def digests() -> dict[str, bytes]:
        kernels = package / "kernels"
        return {
            name: sources.digest([kernels / "trials.py", kernels / f"rewards/{name}.py"], trees)
            for name in ("gaussian", "finite")
        }

    before = digests()
    path = package / edited
    path.write_text(f"{path.read_text()}\n# a comment\n")
    assert digests() == before
    path.write_text(f"{path.read_text()}\nNEW = 1\n")
    assert {name for name, one in digests().items() if one != before[name]} == changes


def test_implementations_are_among_the_files_of_their_kernel() -> None:
    """An implementation elsewhere could change and leave its kernels as they were."""
    modules = [module for name, module in sys.modules.items() if name.startswith("fastfed.")]
    generics = {
        one for each in modules for one in vars(each).values() if isinstance(one, dispatch.Generic)
    }
    pairs = {pair for one in generics for pair in one._implementations.items()}
    assert {finite.FiniteRewards, gaussian_noises.GaussianCellsRewards} <= {one for one, _ in pairs}
    trees: sources.Trees = {}
    for cls, function in pairs:
        kernel = [Path(inspect.getfile(cls)), Path(trials.__file__)]
        file = Path(inspect.getfile(function))
        assert sources.digest([*kernel, file], trees) == sources.digest(kernel, trees), (cls, file)


def test_code_of_another_user_is_not_run(
    place: Path, called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    called()
    (path,) = files(place, "nbc")
    path.chmod(0o666)
    counts, said = called()
    assert counts == COMPILED
    assert "can be written by other users); compiling it again" in said
    assert called() == (FOUND, "")
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    counts, said = called()
    assert counts == COMPILED
    assert f"({path.name} belongs to another user); compiling it again" in said


def not_kept(reason: str) -> str:
    return (
        f"fastfed: compiled code cannot be kept ({reason}): every process compiles it again; "
        "set NUMBA_CACHE_DIR to a folder of your own\n"
    )


@pytest.mark.parametrize("refused", ["relative", "shared", "foreign", "read-only"])
def test_a_folder_that_is_not_ours_is_not_used(
    place: Path, called: Called, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    """One line for all functions, and it runs."""
    folder = place / "cache" / "fastfed"
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    reason = f"folder {folder} "
    if refused == "relative":
        monkeypatch.chdir(place)
        monkeypatch.setattr(config, "CACHE_DIR", "cache")
        reason = "folder cache/fastfed has no absolute path"
    elif refused == "shared":
        folder.chmod(0o770)
        reason += "can be written by other users"
    elif refused == "foreign":
        monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
        reason += "belongs to another user"
    else:
        monkeypatch.setattr(os, "access", lambda path, mode: False)
        reason = "no folder for it can be written"
    assert called() == (COMPILED, not_kept(reason))
    assert not list(folder.iterdir())


def test_without_a_home_nothing_is_kept_in_the_current_folder(
    place: Path, called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`~` stays as it is where nobody knows the user's home."""
    monkeypatch.chdir(place)
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setattr(kept_code, "__file__", "/proc/nowhere/kept_code.py")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert called() == (COMPILED, not_kept("folder ~/.cache/fastfed has no absolute path"))
    assert not (place / "~").exists()


def test_whatever_the_reasons_one_line_tells_that_nothing_is_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "_said", set())
    for reason in ("no space", "no folder", "no space"):
        compiling._say_not_kept(reason)
    assert capsys.readouterr().err.count("\n") == 1


def test_full_disk(called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, key: bytes, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(kept_code, "write", full)
    assert called() == (COMPILED, not_kept("No space left on device"))


def test_a_file_under_the_name_of_another_is_not_used(tmp_path: Path) -> None:
    kept_code.write(tmp_path / "run.1.nbc", b"one", b"its code")
    (tmp_path / "run.1.nbc").rename(tmp_path / "run.2.nbc")
    with pytest.raises(kept_code.NotKept, match=r"run.2.nbc is damaged"):
        kept_code.read(tmp_path / "run.2.nbc", b"two")


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
