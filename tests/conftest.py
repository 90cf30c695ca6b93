"""Fixtures for several files of tests."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

import fastfed as ff
from fastfed.api import progress
from fastfed.api import sweep as api
from fastfed.kernels.compiling import EntryCache
from fastfed.model.rewards import Rewards
from fastfed.sweeps import planner
from fastfed.sweeps import task as tasks

try:
    import fcntl
except ImportError:  # Windows: test processes may compile the same kernel
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from helpers import Call

pytest.register_assert_rewrite("as_printed", "helpers", "bad_input", "command_line")

from helpers import SMALL, run  # noqa: E402

# The same examples in every run, and none too slow: a busy machine takes seconds for a moment.
settings.register_profile(
    "fixed",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")


LONG = (
    "paper/test_reproduce.py",
    "simulation",
    "test_docs.py",
    "kernels",
    "paper",
    "sweeps",
    "theory",
    "test_users.py",
    "cli/test_smoke.py",
    "display/test_report_browser.py",
)
"""Files and folders of tests that take long, in the order in which they begin.

They compile many kernels, run many trials or start many processes.
"""


@cache
def turn(path: Path) -> int:
    """Return the place of a file of tests in `LONG`, or the place after all of them."""
    tests = Path(__file__).parent
    return next((i for i, name in enumerate(LONG) if path.is_relative_to(tests / name)), len(LONG))


def pytest_configure(config: pytest.Config) -> None:
    """Let pytest-xdist take files in the order below, not those with the most tests first."""
    config.option.loadscopereorder = False


TIMEOUT_SECONDS = 1200
"""Time limit of a test, far beyond what a busy machine needs: a test that hangs must end."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each test its time limit, and begin with the files that may take long.

    So no process waits for another at the end.
    """
    items.sort(key=lambda item: turn(item.path))
    if config.pluginmanager.hasplugin("timeout"):
        for item in items:
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))


@pytest.fixture(autouse=True)
def _no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch progress lines off: a machine that is busy compiling would print some."""
    monkeypatch.setattr(progress, "LINE_SECONDS", float("inf"))


@pytest.fixture(autouse=True)
def _no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sizes of parts not depend on the speed of the machine."""
    monkeypatch.setattr(planner, "_PART_SECONDS", float("inf"))
    monkeypatch.setattr(planner, "_LAST_SECONDS", 0.0)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make tables as for a terminal of 100 columns."""
    monkeypatch.setattr("fastfed.display.table._room", lambda: 100)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Record every task that is computed from here on."""
    seen: list[Call] = []
    real = tasks.compute

    def spy(task: tasks.Task, *shared: Any) -> Any:
        seen.append(
            (
                task.setting.instance.name,
                task.setting.delta,
                tuple(map(str, task.schedules)),
                task.first,
                task.first + task.count,
            )
        )
        return real(task, *shared)

    monkeypatch.setattr(tasks, "compute", spy)
    return seen


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of five trials, whatever the speed, also of sweeps that the command line starts."""
    monkeypatch.setitem(api.SWEEP, "part_size", 5)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter an empty folder with a text file, a folder and a dangling link."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").write_text("mine\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "at all")
    return tmp_path


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a sweep with nothing wrong; a test that changes it takes a copy."""
    folder = tmp_path_factory.mktemp("good") / "good"
    ff.sweep(
        instances=[SMALL],
        deltas=[0.1],
        costs=[0, 10],
        schedules=["fedelim", "fedelim0"],
        trials=200,
        out=folder,
        threads=1,
    )
    return folder


@pytest.fixture(scope="session")
def two_parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a sweep of two schedules and 20 trials, in two parts.

    A test that changes the sweep takes a copy (`folder`).
    """
    folder = tmp_path_factory.mktemp("two-parts") / "results"
    run(folder, part_size=10)
    return folder


@pytest.fixture
def folder(two_parts: Path, tmp_path: Path) -> Path:
    """Copy `two_parts`; test files may define another folder of this name."""
    return Path(shutil.copytree(two_parts, tmp_path / "results"))


@pytest.fixture(scope="session", autouse=True)
def _each_kernel_compiled_once() -> Iterator[None]:
    """Let a test process wait for a kernel that another one is compiling, and load it then."""
    if fcntl is None:
        yield
        return
    load, save = EntryCache.load_overload, EntryCache.save_overload
    locks: dict[str, IO[str]] = {}

    def name(cache: Any, sig: Any) -> str:
        text = f"{cache.name} {getattr(sig, 'args', sig)}"
        return f"{cache.place}/{hashlib.sha256(text.encode()).hexdigest()[:16]}.lock"

    def release(name: str) -> None:
        if name in locks:
            locks.pop(name).close()

    def wait_for(lock: IO[str]) -> None:
        for _ in range(3000):  # five minutes: the other may have failed to compile
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.1)
            else:
                return

    def load_in_turn(cache: Any, sig: Any, context: Any) -> Any:
        found = load(cache, sig, context)
        if found is None:
            path = name(cache, sig)
            release(path)  # of a compilation that failed
            with contextlib.suppress(OSError):  # no such folder, or it cannot be written
                locks[path] = open(path, "w")  # noqa: SIM115, PTH123
                wait_for(locks[path])
                found = load(cache, sig, context)
            if found is not None:
                release(path)
        return found

    def save_in_turn(cache: Any, sig: Any, data: Any) -> None:
        save(cache, sig, data)
        release(name(cache, sig))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EntryCache, "load_overload", load_in_turn)
        patch.setattr(EntryCache, "save_overload", save_in_turn)
        yield
    for path in list(locks):  # of compilations that failed
        release(path)


@pytest.fixture(scope="session", autouse=True)
def _begin_with_another_kernel(_each_kernel_compiled_once: None) -> None:
    """Let two test processes begin with different kernels, so that neither waits for the other."""
    law = {"gw0": "gaussian", "gw1": "bernoulli"}.get(os.environ.get("PYTEST_XDIST_WORKER", ""))
    if law is not None:
        means = [[0.9, 0.1], [0.1, 0.4]]
        ff.simulate(
            ff.Instance(means, Rewards.parse(law)), "fedelim", delta=0.1, trials=1, threads=1
        )
