"""The cores of this machine as an executor."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from fastfed.sweeps import task as tasks
from fastfed.sweeps.task import Done, Plan, Task


class Threads:
    """The cores of this machine. Kernels run without the GIL, so threads are enough."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def refuse_early(self) -> None:
        pass

    def run(self, plan: Plan) -> Iterator[Done | None]:
        from fastfed.simulation.job import new_control

        control = new_control()
        started: dict[Future[tuple[Any, int]], tuple[Task, float]] = {}
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="fastfed")
        finished_well = False
        try:
            while True:
                while len(started) < self.workers:
                    task = plan.next_task(self.workers)
                    if task is None:
                        break
                    future = pool.submit(tasks.compute, task, control)
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


def _outcome(future: Future[tuple[Any, int]], task: Task, seconds: float) -> Done:
    error = future.exception()
    if error is not None:
        return Done(task, None, 0, seconds, error)
    table, pulls = future.result()
    return Done(task, table, pulls, seconds)
