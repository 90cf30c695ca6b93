"""Fixtures for several files of tests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import fastfed as ff
from fastfed.api import progress
from fastfed.api import sweep as api
from fastfed.problem.instance_files import parse_law
from fastfed.sweeps import run as engine
from fastfed.sweeps import task as tasks

if TYPE_CHECKING:
    from helpers import Call

pytest.register_assert_rewrite("helpers", "bad_input", "command_line")

from helpers import SMALL, run  # noqa: E402


@pytest.fixture(autouse=True)
def _no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy compiling would say so where a test expects silence."""
    monkeypatch.setattr(progress, "LINE_SECONDS", float("inf"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """What is computed from here on."""
    seen: list[Call] = []
    real = tasks.compute

    def spy(task: tasks.Task, control: Any = None) -> tuple[Any, int]:
        seen.append(
            (
                task.cell.instance,
                task.cell.delta,
                task.schedules,
                task.first,
                task.first + task.count,
            )
        )
        return real(task, control)

    monkeypatch.setattr(tasks, "compute", spy)
    return seen


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of five trials, whatever the speed, also of sweeps that the command line starts."""
    for function in (engine.iterate, api.sweep_parts, api.sweep):
        monkeypatch.setitem(function.__kwdefaults__, "part_size", 5)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, but for a text file, a folder and a link to nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").write_text("mine\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "at all")
    return tmp_path


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep with nothing wrong; whoever changes it takes a copy."""
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
    """A sweep of two schedules and 20 trials, in two parts; whoever changes it takes a copy, as
    in `folder`."""
    folder = tmp_path_factory.mktemp("two-parts") / "results"
    run(folder, part_size=10)
    return folder


@pytest.fixture
def folder(two_parts: Path, tmp_path: Path) -> Path:
    """A copy of `two_parts`, unless a file of tests has another folder of this name."""
    return Path(shutil.copytree(two_parts, tmp_path / "results"))


LONG = (
    "dask",
    "reproduce",
    "radii",
    "resume",
    "halves",
    "adding_a_law",
    "report_browser",
    "claims_browser",
    "fuzz",
    "error_probability",
    "laws",
    "guarantees",
    "validity",
    "uplink_laws",
)
"""Files of clusters, kills, browsers, fuzzing, long compiles and statistics: `pytest -m long`."""


@pytest.fixture(scope="session", autouse=True)
def _compiled_by_turns() -> None:
    """On a fresh checkout every family of kernels is compiled once and then kept on disk. Two
    processes that begin with the same family would both compile it; so each begins with another,
    and finds the other's when it needs it."""
    law = {"gw0": "gaussian", "gw1": "bernoulli"}.get(os.environ.get("PYTEST_XDIST_WORKER", ""))
    if law is not None:
        means = [[0.9, 0.1], [0.1, 0.4]]
        ff.simulate(ff.Instance(means, parse_law(law)), "fedelim", delta=0.1, trials=1, threads=1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem.removeprefix("test_") in LONG:
            item.add_marker(pytest.mark.long)
