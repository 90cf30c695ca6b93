"""Instance and schedules in, one row per (trial, schedule) out.

`Job` is the border: everything is checked and laid out as arrays there, once, and then any range
of trials can be run, on any number of threads, in any order, with the same rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastfed import radius
from fastfed.errors import InputError
from fastfed.kernels import trials as kernel
from fastfed.kernels.memory import WINNER, Problem, Space, make_space
from fastfed.kernels.random.discrete import shares
from fastfed.problem.instance import Instance
from fastfed.problem.rewards import Gaussian
from fastfed.problem.schedule import Periodic, Schedule, parse_all
from fastfed.radius import MAX_STEPS
from fastfed.validation import (
    checked_delta,
    checked_engine,
    checked_threads,
    checked_whole,
    most_steps,
    refuse_endless,
    resolve_sigma,
)

if TYPE_CHECKING:
    import polars as pl

_CHUNK_SECONDS = 0.2  # what one call of the kernel aims at: short enough for bar and Ctrl-C


@dataclass(frozen=True)
class Block:
    """The rows of consecutive trials ``first, first + 1, ...`` as arrays, schedule by schedule."""

    first: int
    ints: npt.NDArray[np.int64]  # (S, trials, COLUMNS)
    skip_error: npt.NDArray[np.float64]  # (S, trials)
    pulls: npt.NDArray[np.int64]  # (S, trials, K, M), or (0, 0, 0, 0)
    work: npt.NDArray[np.int64]  # (trials, 2): intervals looked at, variates drawn

    @property
    def trials(self) -> int:
        return int(self.ints.shape[1])


@dataclass(frozen=True)
class Departures:
    """One trial of one schedule, arm by arm: the step at which each left, NEVER if it did not."""

    local: npt.NDArray[np.int64]  # (K, M)
    local_arms: npt.NDArray[np.int64]  # (M,) what the clients declare; -1: nothing
    server: npt.NDArray[np.int64]  # (K,)
    global_arm: int
    horizon: int  # nothing is followed past this step
    truncated: bool
    block: Block


class Job:
    """One cell of an experiment: an instance, schedules, delta, seed, and how to run them."""

    def __init__(
        self,
        instance: Instance,
        schedules: Sequence[str | Schedule] | str | Schedule,
        *,
        delta: float,
        seed: int = 0,
        engine: str = "auto",
        sigma: float | str | None = None,
        max_steps: int | None = None,
        keep_pulls: bool = False,
    ) -> None:
        if not isinstance(instance, Instance):
            raise InputError(f"instance {instance!r}: must be a fastfed.Instance; "
                             "Instance.load(...) makes one from a name or a file")
        self.instance = instance
        self.schedules = parse_all(schedules)
        self.delta = checked_delta(delta)
        self.seed = checked_whole("seed", seed, 0, 2**64 - 1)
        self.sigma = resolve_sigma(instance, sigma)
        arms, clients = instance.shape
        limit = most_steps(instance)
        self.max_steps = (
            limit if max_steps is None else checked_whole("max_steps", max_steps, 1, limit)
        )
        self.keep_pulls = keep_pulls
        self._local_log = radius.local_log(arms, clients, self.delta)
        self._global_log = radius.global_log(arms, self.delta)
        if max_steps is None:
            refuse_endless(instance, self.delta, self.sigma)
        self.engine = checked_engine(engine)
        if self.engine == "auto":
            self.engine = cheaper_engine(instance, self.sigma, self._local_log, self._global_log)
        # one pass serves schedules that are two names for the same times
        self._times, self._horizon, self._pass_of = _lay_out(self.schedules, self.max_steps)
        self._every = _lay_out([Periodic(1)], self.max_steps)[0]
        self._problem = Problem(
            np.uint64(self.seed), instance.means, noise_of(instance), law_of(instance)[1],
            float(self.sigma), self._local_log, self._global_log, self.engine == "skip",
        )
        self._values = law_of(instance)[0] if instance.law is not None else None
        self._goal = kernel.Goal(
            instance.local_best, np.int64(instance.global_best), np.int64(self.max_steps),
            self._horizon,
        )

    def run(
        self, first: int, count: int, control: kernel.Control | None = None,
        space: Space | None = None,
    ) -> Block:
        """Trials first .. first + count - 1, on the calling thread, without the GIL."""
        arms, clients = self.instance.shape
        passes = len(self._horizon)
        kept = (passes, count, arms, clients) if self.keep_pulls else (0, 0, 0, 0)
        rows = kernel.Rows(
            np.zeros((passes, count, kernel.COLUMNS), np.int64), np.zeros((passes, count)),
            np.zeros(kept, np.int64), np.zeros((count, 2), np.int64),
        )
        kernel.run_trials(
            self._problem, self._values, self._every, self._times, self._goal, np.int64(first),
            space or self._space(), rows, control or new_control(),
        )
        if len(self.schedules) == passes:
            return Block(first, rows.ints, rows.skip_error, rows.pulls, rows.work)
        pulls = rows.pulls[self._pass_of] if self.keep_pulls else rows.pulls
        return Block(first, rows.ints[self._pass_of], rows.skip_error[self._pass_of], pulls,
                     rows.work)

    def departures(self, trial: int) -> Departures:
        """When each arm left, at each client and at the server, in one trial of one schedule."""
        space = self._space()
        block = self.run(trial, 1, space=space)
        truncated = bool(block.ints[0, 0, kernel.TRUNCATED])
        horizon = int(self._horizon[0]) if space.state[0, WINNER] < 0 else self.max_steps
        return Departures(space.local_out.copy(), space.winners.copy(), space.out_at[0].copy(),
                          int(space.state[0, WINNER]), horizon, truncated, block)

    def frame(self, block: Block) -> pl.DataFrame:
        """The block as rows, in order of schedule, then trial."""
        import polars as pl

        schedules, trials = block.skip_error.shape
        rows = schedules * trials

        def column(index: int, dtype: Any = pl.Int64) -> pl.Series:
            values = np.ascontiguousarray(block.ints[:, :, index]).reshape(rows)
            return pl.Series(values).cast(dtype)

        names = pl.Series([str(s) for s in self.schedules], dtype=pl.String)
        order = np.repeat(np.arange(schedules, dtype=np.uint32), trials)
        return pl.DataFrame({
            "instance": pl.repeat(self.instance.name, rows, dtype=pl.String, eager=True),
            "schedule": names.gather(order),
            "delta": pl.repeat(self.delta, rows, dtype=pl.Float64, eager=True),
            "seed": pl.repeat(self.seed, rows, dtype=pl.UInt64, eager=True),
            "trial": np.tile(np.arange(block.first, block.first + trials), schedules),
            "pulls": column(kernel.PULLS),
            "uplinks": column(kernel.UPLINKS),
            "rounds": column(kernel.ROUNDS),
            "steps": column(kernel.STEPS),
            "local_steps": column(kernel.LOCAL_STEPS),
            "global_steps": column(kernel.GLOBAL_STEPS),
            "global_arm": column(kernel.GLOBAL_ARM, pl.Int32),
            "local_errors": column(kernel.LOCAL_ERRORS, pl.Int32),
            "correct": column(kernel.CORRECT, pl.Boolean),
            "truncated": column(kernel.TRUNCATED, pl.Boolean),
            "skip_error": block.skip_error.reshape(rows),
            "sigma": pl.repeat(float(self.sigma), rows, dtype=pl.Float64, eager=True),
        })

    def _space(self) -> Space:
        arms, clients = self.instance.shape
        return make_space(arms, clients, len(self._horizon), self._problem.shares.shape[2])


def noise_of(instance: Instance) -> float:
    return instance.rewards.sigma if isinstance(instance.rewards, Gaussian) else 1.0


def law_of(instance: Instance) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Values and conditional shares of rewards with finite support; empty for Gaussian ones."""
    if instance.law is None:
        return np.zeros(0), np.zeros((*instance.shape, 0))
    return np.array(instance.law.values), shares(instance.law.weights)


def cheaper_engine(
    instance: Instance, sigma: float, local_log: float, global_log: float
) -> str:
    """Which engine should take less time. Skipping always wins with Gaussian rewards; with finite
    support a split costs so much more than a step that short trials are better stepped.

    An arm leaves about where the radius is half its gap, at the step that `resolved_by` gives for
    twice the gap. Measured on one core: a step costs 8 ns an arm and client, one elimination by
    skipping some 60 splits for each doubling of its step, 120 ns a value each.
    """
    if instance.law is None or instance.shape[0] == 1:
        return "skip"
    clients = instance.shape[1]
    support = len(instance.law.values)

    def costs(gaps: npt.NDArray[np.float64], walks: int, log_c: float) -> tuple[float, float]:
        steps = np.array([radius.resolved_by(2 * gap, walks, log_c, sigma)
                          for gap in gaps.ravel()])
        dense = 8e-9 * walks * steps.sum()
        skip = 120e-9 * (support - 1) * walks * 60 * np.log2(steps + 1).sum()
        return float(dense), float(skip)

    local_dense, local_skip = costs(instance.local_gaps, 1, local_log)
    global_dense, global_skip = costs(instance.global_gaps, clients, global_log)
    return "dense" if local_dense + global_dense < local_skip + global_skip else "skip"


def new_control() -> kernel.Control:
    return kernel.Control(np.zeros(1, np.int64), np.zeros(1, np.int64))


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
        """One row per schedule and cost per uplink: see `fastfed.summary`."""
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
    progress: bool | Callable[[int, int], object] = False,
    keep_pulls: bool = False,
) -> Result:
    """Run ``trials`` independent trials of every schedule on the same rewards.

    ``delta`` is the allowed error probability, ``sigma`` the scale of the confidence radii (None:
    what fits the instance; "proxy": half the range of bounded rewards), ``threads`` how many
    threads (None: all cores; the rows do not depend on it). ``engine`` is "skip" (exact up to
    `skip_error`, logarithmic in the pulls), "dense" (every step of the same walk) or "auto".
    ``progress`` shows a bar, or is called with (trials done, trials in all). ``keep_pulls`` keeps
    the (schedule, trial, K, M) tensor.
    """
    job = Job(instance, schedules, delta=delta, seed=seed, engine=engine, sigma=sigma,
              max_steps=max_steps, keep_pulls=keep_pulls)
    count = checked_whole("trials", trials, 1, 2**32)
    workers = checked_threads(threads)
    with _reporting(progress, count) as report:
        block = _gather(job, count, workers, report)
    return Result(job, block, job.frame(block))


def _gather(
    job: Job, count: int, workers: int, report: Callable[[int], object]
) -> Block:
    blocks = sorted(run_blocks(job, 0, count, workers, report), key=lambda block: block.first)
    if len(blocks) == 1:
        return blocks[0]
    return Block(
        0,
        np.concatenate([block.ints for block in blocks], axis=1),
        np.concatenate([block.skip_error for block in blocks], axis=1),
        np.concatenate([block.pulls for block in blocks], axis=1)
        if job.keep_pulls else blocks[0].pulls,
        np.concatenate([block.work for block in blocks]),
    )


def run_blocks(
    job: Job, first: int, count: int, workers: int, report: Callable[[int], object] = lambda _: None
) -> Iterator[Block]:
    """The trials first .. first + count - 1 in blocks, as threads finish them.

    Block sizes follow the measured speed (they do not change a row). Leaving the iterator early,
    by an exception or Ctrl-C in the caller, stops the kernels after their current trial.
    """
    control = new_control()
    size = 1 if count < 64 else 16
    started: dict[Future[Block], float] = {}
    next_first, end, done = first, first + count, 0
    pool = ThreadPoolExecutor(workers, thread_name_prefix="fastfed")
    try:
        while next_first < end or started:
            while next_first < end and len(started) < workers:
                # the last blocks share what is left, so that no thread waits for another
                fair = math.ceil((end - next_first) / workers)
                length = max(1, min(size, fair))
                future = pool.submit(job.run, next_first, length, control)
                started[future] = time.perf_counter()
                next_first += length
            finished, _ = wait(started, timeout=0.1, return_when=FIRST_COMPLETED)
            for future in finished:
                seconds = time.perf_counter() - started.pop(future)
                block = future.result()
                done += block.trials
                wanted = int(block.trials * _CHUNK_SECONDS / max(seconds, 1e-6)) + 1
                size = max(1, min(wanted, 8 * size))
                report(done)
                yield block
    finally:
        control.stop[0] = 1
        pool.shutdown(wait=True, cancel_futures=True)


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


def _lay_out(
    schedules: Sequence[Schedule], max_steps: int
) -> tuple[kernel.Times, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The distinct sets of times as the kernel reads them, the horizon of each, and which of them
    each schedule uses. A schedule whose last time passes undecided is given up there: it would
    pull for ever; one that could still talk, at max_steps."""
    plan: list[tuple[int, int, int, int]] = []
    horizon: list[int] = []
    listed: list[npt.NDArray[np.int64]] = []
    length = 0
    seen: dict[object, int] = {}
    pass_of = []
    for one in schedules:
        if one.period is not None:
            key: object = one.period
        else:
            times = one.times(MAX_STEPS)
            key = times.tobytes()
        if key not in seen:
            seen[key] = len(plan)
            if one.period is not None:
                plan.append((one.period, max_steps // one.period * one.period, 0, 0))
                horizon.append(max_steps)
            else:
                reached = times[times <= max_steps]
                last = int(reached[-1]) if len(reached) else 0
                plan.append((0, last, length, length + len(reached)))
                horizon.append(min(int(times[-1]), max_steps))
                listed.append(reached)
                length += len(reached)
        pass_of.append(seen[key])
    flat = np.concatenate(listed) if listed else np.zeros(0, np.int64)
    return (kernel.Times(np.array(plan, np.int64), flat), np.array(horizon, np.int64),
            np.array(pass_of, np.int64))
