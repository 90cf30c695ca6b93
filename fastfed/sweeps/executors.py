"""Where tasks run.

A task is pure: (cell, schedules, range of trials) to rows, as an Arrow stream. An executor takes
tasks from a plan while it has room and yields their results as they come, in any order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fastfed.problem.instance import Instance
from fastfed.sweeps.store import Cell

if TYPE_CHECKING:
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
    """A finished task: its rows, or what went wrong."""

    task: Task
    table: bytes | None
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

    def run(self, plan: Plan) -> Iterator[Done | None]:
        """Results as they come; None now and then while there are none, so that the caller can
        show progress and notice Ctrl-C."""


def compute(task: Task, control: Control | None = None) -> tuple[bytes, int]:
    """The rows of a task as an Arrow stream, and how many pulls they stand for."""
    import pyarrow as pa

    from fastfed.engine.job import Job
    from fastfed.kernels.trials import PULLS

    job = Job(task.instance, task.schedules, delta=task.cell.delta, seed=task.cell.seed,
              engine=task.cell.engine, sigma=task.cell.sigma, max_steps=task.cell.max_steps)
    block = job.run(task.first, task.count, control)
    table = job.frame(block).to_arrow()
    plain = pa.schema([(field.name, _PLAIN.get(str(field.type), field.type))
                       for field in table.schema])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, plain) as writer:
        writer.write_table(table.cast(plain))
    return sink.getvalue().to_pybytes(), int(block.ints[:, :, PULLS].sum())


_PLAIN = dict.fromkeys(("large_string", "string_view"), "string")


class Threads:
    """The cores of this machine. Kernels run without the GIL, so threads are enough."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(self, plan: Plan) -> Iterator[Done | None]:
        from fastfed.engine.job import new_control

        control = new_control()
        started: dict[Future[tuple[bytes, int]], tuple[Task, float]] = {}
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="fastfed")
        finished_well = False
        try:
            while True:
                while len(started) < self.workers:
                    task = plan.next_task(self.workers)
                    if task is None:
                        break
                    future = pool.submit(compute, task, control)
                    started[future] = task, time.perf_counter()
                if not started:
                    break
                finished, _ = wait(started, timeout=0.1, return_when=FIRST_COMPLETED)
                for future in finished:
                    task, since = started.pop(future)
                    done = _outcome(future, task, time.perf_counter() - since)
                    plan.record(done)
                    yield done
                if not finished:
                    yield None
            finished_well = True
        finally:
            control.stop[0] = 1  # kernels leave after their current trial
            pool.shutdown(wait=finished_well, cancel_futures=True)


def _outcome(future: Future[tuple[bytes, int]], task: Task, seconds: float) -> Done:
    error = future.exception()
    if error is not None:
        return Done(task, None, 0, seconds, error)
    table, pulls = future.result()
    return Done(task, table, pulls, seconds)
