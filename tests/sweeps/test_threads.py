"""Sweeps of large trials on threads: the same rows, and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from helpers import SMALL, refused, rows

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.simulation import job as jobs
from fastfed.simulation import machine as machines
from fastfed.storage.folder import Store
from fastfed.sweeps import planner as planning
from fastfed.sweeps import task as tasks
from fastfed.sweeps.grid import Grid

SCATTER = np.random.default_rng(1).uniform(-0.15, 0.15, (2, 10_000))
LARGE = ff.Instance(np.array([[0.9], [0.1]]) + SCATTER, name="large")
GRID: dict[str, Any] = {"instances": [LARGE], "deltas": [0.1], "schedules": ["fedelim"]}


@pytest.fixture(scope="module")
def expected() -> pl.DataFrame:
    return ff.simulate(LARGE, ["fedelim"], delta=0.1, trials=3, threads=1).frame


def need() -> int:
    return jobs.Job.of(LARGE, ["fedelim"], delta=0.1).need()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rows_do_not_depend_on_the_threads(out: Path, expected: pl.DataFrame, threads: int) -> None:
    ff.sweep(**GRID, trials=3, out=out, threads=threads, part_size=1)
    assert rows(out).equals(expected)


def test_a_sweep_that_goes_on_has_the_same_rows(out: Path, expected: pl.DataFrame) -> None:
    for trials, threads in ((1, 2), (3, 3)):
        ff.sweep(**GRID, trials=trials, out=out, threads=threads)
    assert rows(out).equals(expected)


def test_trials_that_do_not_fit_into_memory_wait(
    out: Path, expected: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory for a trial and a half: one runs at a time."""
    memory = 1.5 * need()
    monkeypatch.setattr(machines, "physical_memory", lambda: memory)
    running: list[tasks.Task] = []
    most: list[int] = []
    real = tasks.compute

    def spy(task: tasks.Task, control: Any) -> Any:
        running.append(task)
        most.append(len(running))
        done = real(task, control)
        running.pop()
        return done

    monkeypatch.setattr(tasks, "compute", spy)
    ff.sweep(**GRID, trials=3, out=out, threads=2, part_size=1)
    assert most == [1, 1, 1]
    assert rows(out).equals(expected)


def test_small_trials_beside_a_large_one(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts come, although the large one and a small one do not fit at a time."""
    memory = need() + 1.0
    monkeypatch.setattr(machines, "physical_memory", lambda: memory)
    grid = {**GRID, "instances": [SMALL, LARGE, ff.Instance(SMALL.means, name="other")]}
    found = ff.sweep(**grid, trials=4, out=out, threads=3, part_size=2)
    assert found.frame.height == 12
    assert len(Store(out).parts()) == 6


def test_an_instance_that_never_fits_is_refused_before_a_folder_is_made(
    tmp_path: Path,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    LARGE.save(tmp_path / "large.toml")
    needed = need()
    monkeypatch.setattr(machines, "physical_memory", lambda: needed - 1.0)
    asked = ["sweep", "--instance", str(tmp_path / "large.toml"), "--delta", "0.1"]
    assert cli.run([*asked, "--schedule", "fedelim", "--trials", "5", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert f"2 arms x 10,000 clients: a trial takes up to {needed:,} bytes" in said
    assert said.count("\n") == 1
    assert not out.exists()


def test_an_instance_that_never_fits_is_refused_in_a_folder_that_is_there(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ff.sweep(**{**GRID, "instances": [SMALL]}, trials=5, out=out)
    monkeypatch.setattr(machines, "physical_memory", lambda: 1e6)
    refused(lambda: ff.sweep(**GRID, trials=5, out=out), "2 arms x 10,000 clients", "bytes")


def test_the_first_part_of_large_trials_is_small(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first(instance: ff.Instance) -> int:
        grid = Grid.of({"instance": [instance], "delta": [0.1], "trials": 1_000})
        bundle = planning.Planner(grid, Store(out)).next_bundle(workers=2)
        assert bundle is not None
        return bundle.tasks[0].count

    assert (first(SMALL), first(LARGE)) == (250, 50)
    monkeypatch.setattr(planning, "_LONGER", 10_000)  # from which on a part may take longer
    assert first(LARGE) == 100
