"""A task of a sweep and its result.

A task is pure: (cell, schedules, range of trials) to rows, as an Arrow table. An executor takes
tasks from a plan while it has room and yields their results as they come, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from fastfed.problem.instance import Instance
from fastfed.sweeps.grid import Cell

if TYPE_CHECKING:
    import polars as pl

    from fastfed.engine.job import Job
    from fastfed.kernels.trials import Control


@dataclass(frozen=True)
class Task:
    """Trials first .. first + count - 1 of a cell, under each of the schedules."""

    cell: Cell
    instance: Instance
    schedules: tuple[str, ...]
    first: int
    count: int


@dataclass(frozen=True)
class Done:
    """A finished task: its rows (a pyarrow table), or what went wrong."""

    task: Task
    table: Any
    pulls: int
    seconds: float
    error: BaseException | None = None


class Plan(Protocol):
    """Where executors get their tasks."""

    def next_task(self, workers: int) -> Task | None:
        """The next task to start; None if there is none until results come in, or at all."""

    def record(self, done: Done) -> None:
        """Hear of a result before the next task is asked for."""


class Executor(Protocol):
    """Runs the tasks of a plan."""

    workers: int

    def refuse_early(self) -> None:
        """Raise InputError for what is wrong before there is anything to run, such as an address
        at which nobody answers: asked before a new folder is made."""

    def run(self, plan: Plan) -> Iterator[Done | None]:
        """Results as they come; None now and then while there are none, so that the caller can
        show progress and notice Ctrl-C."""


def compute(task: Task, control: Control | None = None) -> tuple[Any, int]:
    """The rows of a task as a pyarrow table, and how many pulls they stand for."""
    job = _job(task.cell, task.instance, task.schedules)
    block = job.run(task.first, task.count, control)
    return plain_table(job.frame(block)), int(block.column("pulls").sum())


def plain_table(frame: pl.DataFrame) -> Any:
    """Rows as a pyarrow table with the types that every reader knows."""
    import pyarrow as pa

    table = frame.to_arrow()
    return table.cast(pa.schema([(field.name, _plain(field.type)) for field in table.schema]))


def _plain(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_large_list(kind):
        return pa.list_(kind.value_type)
    return pa.string() if str(kind) in ("large_string", "string_view") else kind


@lru_cache(maxsize=8)
def _job(cell: Cell, instance: Instance, schedules: tuple[str, ...]) -> Job:
    """The job of a cell, laid out once for all its parts; threads may share it."""
    from fastfed.engine.job import Job

    return Job(
        instance,
        schedules,
        delta=cell.delta,
        seed=cell.seed,
        engine=cell.engine,
        sigma=cell.sigma,
        max_steps=cell.max_steps,
        radius=cell.radius,
        goal=cell.goal,
        uplink=cell.uplink,
    )


def to_bytes(table: Any) -> bytes:
    """Rows as an Arrow stream, for the way between processes."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def from_bytes(content: bytes) -> Any:
    """The rows of an Arrow stream."""
    import pyarrow as pa

    return pa.ipc.open_stream(content).read_all()
