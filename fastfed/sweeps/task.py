"""Tasks of a sweep, bundles of them, and their results.

A task is pure: (setting, schedules, range of trials) to rows. A bundle is the tasks whose rows make
a part. A worker computes the rows and encodes them as the part's bytes, so that whoever started it
only writes a file. An executor takes bundles from a plan while it has room, and yields their
results as they come, in any order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from fastfed.model.cell import Cell
from fastfed.model.schedules import Schedule
from fastfed.model.setting import Setting
from fastfed.storage import checked_parquet
from fastfed.storage.manifest import Piece

if TYPE_CHECKING:
    from fastfed.kernels.trials import Control
    from fastfed.simulation.job import Job
    from fastfed.simulation.rows import Rows
    from fastfed.sweeps.grid import Grid


@dataclass(frozen=True)
class Task:
    """Trials first .. first + count - 1 of a setting, under each of the schedules.

    ``others`` are settings that differ in delta alone and run on the same walks. The rows of each
    follow those of the one before.
    """

    setting: Setting
    schedules: tuple[Schedule, ...]
    first: int
    count: int
    others: tuple[Setting, ...] = ()

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All settings of the task."""
        return (self.setting, *self.others)

    @property
    def trials(self) -> int:
        """The number of trials, of all settings together."""
        return len(self.settings) * self.count

    @property
    def pieces(self) -> list[Piece]:
        """The pieces that its rows are."""
        names = tuple(map(str, self.schedules))
        return [Piece(one.key, names, self.first, self.count) for one in self.settings]


@dataclass(frozen=True)
class Bundle:
    """Tasks whose rows make a part. After ``seconds`` no further task is begun."""

    tasks: tuple[Task, ...]
    seconds: float


@dataclass(frozen=True)
class Done:
    """A finished bundle: its rows, the tasks that raised, and those that were not begun."""

    bundle: Bundle
    begun: int  # number of tasks
    rows: checked_parquet.Encoded | None = None
    failures: dict[int, BaseException] = field(default_factory=dict)
    """What was raised, by the place of its task."""
    pulls: int = 0
    seconds: float = 0.0
    """Without the time of compilation."""

    @property
    def done(self) -> list[Task]:
        """The tasks whose rows are there, in the order of the rows."""
        begun = enumerate(self.bundle.tasks[: self.begun])
        return [one for place, one in begun if place not in self.failures]


class Plan(Protocol):
    """The source of the bundles of an executor."""

    def next_bundle(self, workers: int) -> Bundle | None:
        """Return the next bundle; None if none can start before results come in, or at all."""

    def record(self, done: Done) -> None:
        """Record a result, before the next bundle is asked for."""


class Executor(Protocol):
    """Runs the bundles of a plan."""

    workers: int

    def refuse_early(self, grid: Grid) -> None:
        """Raise InputError if the executor cannot run the grid.

        Nobody may answer at its address, or an instance may be too large. Called before a new
        folder is made.
        """

    def run(self, plan: Plan) -> Iterator[Done | None]:
        """Yield results as they come.

        None comes now and then while there are none, so that the caller can show progress and
        notice Ctrl-C.
        """


def perform(bundle: Bundle, control: Control | None = None) -> Done:
    """Compute the tasks of a bundle, and encode their rows."""
    from fastfed.simulation import rows

    found: list[rows.Rows] = []
    failures: dict[int, BaseException] = {}
    begun = 0
    seconds = 0.0
    for place, task in enumerate(bundle.tasks):
        if begun and seconds > bundle.seconds:
            break
        begun += 1
        try:
            _compile_first(task)
            begin = time.perf_counter()
            found += compute(task, control)
        except Exception as error:
            failures[place] = error
            continue
        seconds += time.perf_counter() - begin
    if not found:
        return Done(bundle, begun, failures=failures)
    begin = time.perf_counter()
    pulls = sum(int(one.block.column("pulls").sum()) for one in found)
    encoded = checked_parquet.encode(rows.table(found))
    seconds += time.perf_counter() - begin
    return Done(bundle, begun, encoded, failures, pulls, seconds)


_compiled: set[object] = set()


def _compile_first(task: Task) -> None:
    """Compile or load the kernels of a task, whose time says nothing about its speed."""
    setting = task.setting
    if setting.engine == "python":
        return
    kernels = (
        *(type(part) for part in setting.parts),
        *(one for one in task.schedules if not one.eliminates),
    )
    if kernels not in _compiled:
        _jobs(task)[0].run(task.first, 0)
        _compiled.add(kernels)


def compute(task: Task, control: Control | None = None) -> list[Rows]:
    """Compute a task; return the rows of each of its settings."""
    from fastfed.simulation.job import run_together

    jobs = _jobs(task)
    blocks = run_together(jobs, task.first, task.count, control)
    return [job.rows(block) for job, block in zip(jobs, blocks, strict=True)]


def need_of(task: Task) -> int:
    """Return the bytes that a task takes at most, or refuse one that is too large."""
    try:
        jobs = _jobs(task)
    except Exception:  # `compute` meets it again, and then it is the failure of this task alone
        return 0
    return max(job.need() for job in jobs)


def _jobs(task: Task) -> list[Job]:
    return [_job(one.key, one, task.schedules) for one in task.settings]


@lru_cache(maxsize=16)
def _job(key: Cell, setting: Setting, schedules: tuple[Schedule, ...]) -> Job:
    """Lay out the job of a setting, once for all its parts; threads may share it.

    Settings are equal if their instances differ in nothing but the name. Rows carry the name, so
    the key, which has it, is part of what the job is remembered by.
    """
    from fastfed.simulation.job import Job

    return Job(setting, schedules)
