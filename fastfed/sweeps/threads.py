"""The cores of this machine as an executor."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from fastfed.simulation.machine import Machine, Share
from fastfed.sweeps import task as tasks
from fastfed.sweeps.task import Done, Plan, Task

if TYPE_CHECKING:
    from fastfed.sweeps.grid import Grid

# cells of an instance, from which on its memory is looked at before anything else is done. One cell
# takes 1 kB, and 60 kB with 64 values of a reward: fewer cells fit into any machine
_MANY_CELLS = 4_096


class Threads:
    """The cores of this machine. Kernels run without the GIL, so threads are enough.

    If there are fewer tasks than threads, or than fit into memory, threads share the clients of
    large trials, as in `simulate`.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def refuse_early(self, grid: Grid) -> None:
        large = [one for one in grid.settings if one.instance.means.size > _MANY_CELLS]
        # the first setting of each instance, whose job is kept for its tasks
        for setting in {one.instance.name: one for one in reversed(large)}.values():
            tasks.need_of(Task(setting, tuple(grid.schedules), 0, 0))

    def run(self, plan: Plan) -> Iterator[Done | None]:
        from fastfed.simulation.job import new_control

        control = new_control()
        machine: Machine[Task] = Machine(self.workers)
        started: dict[Future[tuple[Any, int]], tuple[Task, Share, float]] = {}

        def offer() -> tuple[Task, Share] | None:
            task = plan.next_task(self.workers)
            return None if task is None else (task, tasks.need_of(task))

        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="fastfed")
        finished_well = False
        try:
            while True:
                for task, share in machine.start(offer):
                    future = pool.submit(tasks.compute, task, control, share.threads)
                    started[future] = task, share, time.perf_counter()
                if not started:
                    break
                finished, _ = wait(started, timeout=0.1, return_when=FIRST_COMPLETED)
                for future in finished:
                    task, share, since = started.pop(future)
                    machine.end(share)
                    done = _outcome(future, task, time.perf_counter() - since)
                    plan.record(done)
                    yield done
                if not finished:
                    yield None
            finished_well = True
        finally:
            control.stop[0] = 1  # kernels leave after their current trial
            pool.shutdown(wait=finished_well, cancel_futures=True)


def _outcome(future: Future[tuple[Any, int]], task: Task, seconds: float) -> Done:
    error = future.exception()
    if error is not None:
        return Done(task, None, 0, seconds, error)
    table, pulls = future.result()
    return Done(task, table, pulls, seconds)
