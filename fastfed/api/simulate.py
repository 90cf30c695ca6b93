"""`simulate` and the `Result` that it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fastfed.engine.job import Job, run_blocks
from fastfed.engine.rows import Block
from fastfed.errors import InputError
from fastfed.problem.instance import Instance
from fastfed.problem.schedule import Schedule
from fastfed.radius import Radius
from fastfed.validation import checked_threads, checked_trials

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Result:
    """What `simulate` returns."""

    job: Job
    block: Block
    frame: pl.DataFrame

    @property
    def engine(self) -> str:
        """Which engine ran: "skip" or "dense"."""
        return self.job.engine

    @property
    def pulls(self) -> npt.NDArray[np.int64]:
        """(schedule, trial, K, M): how often each arm was pulled at each client."""
        if not self.job.keep_pulls:
            raise InputError("pulls were not kept: call simulate(..., keep_pulls=True)")
        return self.block.pulls

    def summary(self, costs: Sequence[float] = (0.0, 10.0, 100.0)) -> pl.DataFrame:
        """One row per schedule and cost per uplink: see `fastfed.statistics.summary`."""
        from fastfed.statistics.summary import summarise

        return summarise(self.frame, costs)

    def __repr__(self) -> str:
        return (f"<Result {self.job.instance.name}: {self.block.trials} trials x "
                f"{len(self.job.schedules)} schedules, delta {self.job.delta:g}, "
                f"engine {self.engine}>")


def simulate(
    instance: Instance,
    schedules: Sequence[str | Schedule] | str | Schedule = ("fedelim",),
    *,
    delta: float,
    trials: int,
    seed: int = 0,
    threads: int | None = None,
    engine: str = "auto",
    sigma: float | str | None = None,
    max_steps: int | None = None,
    radius: str | Radius = "paper",
    progress: bool | Callable[[int, int], object] = False,
    keep_pulls: bool = False,
) -> Result:
    """Run ``trials`` independent trials of every schedule on the same rewards.

    ``delta`` is the allowed error probability, ``sigma`` the scale of the confidence radii (None:
    what fits the instance; "proxy": half the range of bounded rewards), ``threads`` how many
    threads (None: all cores; the rows do not depend on it). ``engine`` is "skip" (exact up to
    `skip_error`, logarithmic in the pulls), "dense" (every step of the same walk) or "auto".
    ``radius`` is the confidence radius: a name ("paper", "mixture-pairs", "mixture:5000" ...) or a
    `fastfed.Radius` of your own; all keep the promise of delta.
    ``progress`` shows a bar, or is called with (trials done, trials in all). ``keep_pulls`` keeps
    the (schedule, trial, K, M) tensor.
    """
    job = Job(instance, schedules, delta=delta, seed=seed, engine=engine, sigma=sigma,
              max_steps=max_steps, radius=radius, keep_pulls=keep_pulls)
    count = checked_trials(trials)
    workers = checked_threads(threads)
    with _reporting(progress, count) as report:
        blocks = sorted(run_blocks(job, 0, count, workers, report), key=lambda one: one.first)
    block = Block.join(blocks)
    return Result(job, block, job.frame(block))


@contextmanager
def _reporting(
    progress: bool | Callable[[int, int], object], total: int
) -> Iterator[Callable[[int], object]]:
    if callable(progress):
        yield lambda done: progress(done, total)
    elif progress:
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task("trials", total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        yield lambda done: None
