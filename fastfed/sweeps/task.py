"""A task of a sweep and its result.

A task is pure: (setting, schedules, range of trials) to rows, as an Arrow table. An executor takes
tasks from a plan while it has room and yields their results as they come, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from fastfed.model.cell import Cell
from fastfed.model.schedules import Schedule
from fastfed.model.setting import Setting
from fastfed.simulation.machine import Share
from fastfed.simulation.rows import plain_table

if TYPE_CHECKING:
    from fastfed.kernels.trials import Control
    from fastfed.simulation.job import Job
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


@dataclass(frozen=True)
class Done:
    """A finished task: its rows (a pyarrow table), or what went wrong."""

    task: Task
    table: Any
    pulls: int
    seconds: float
    error: BaseException | None = None


class Plan(Protocol):
    """The source of the tasks of an executor."""

    def next_task(self, workers: int) -> Task | None:
        """Return the next task; None if nothing can start before results come in, or at all."""

    def record(self, done: Done) -> None:
        """Record a result, before the next task is asked for."""


class Executor(Protocol):
    """Runs the tasks of a plan."""

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


def compute(task: Task, control: Control | None = None, threads: int = 1) -> tuple[Any, int]:
    """Compute a task; return its rows as a pyarrow table, and the number of their pulls.

    ``threads`` may share the clients of a trial, which changes no row.
    """
    import pyarrow as pa

    from fastfed.simulation.job import run_together

    jobs = _jobs(task)
    blocks = run_together(jobs, task.first, task.count, control, threads)
    tables = [plain_table(job.frame(block)) for job, block in zip(jobs, blocks, strict=True)]
    pulls = sum(int(block.column("pulls").sum()) for block in blocks)
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables), pulls


def need_of(task: Task) -> Share:
    """Return the memory and the threads that a task can use, or refuse one that is too large."""
    try:
        jobs = _jobs(task)
    except Exception:  # `compute` meets it again, and then it is the failure of this task alone
        return Share(0, 1)
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


def to_bytes(table: Any) -> bytes:
    """Write rows as a compressed Arrow stream, to send them between processes."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def from_bytes(content: bytes) -> Any:
    """Read rows from an Arrow stream."""
    import pyarrow as pa

    return pa.ipc.open_stream(content).read_all()
