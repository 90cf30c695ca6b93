"""One cell of an experiment: instance and schedules in, blocks of rows out.

`Job` is the border: everything is checked and laid out as arrays there, once, and then any range
of trials can be run, on any number of threads, in any order, with the same rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fastfed.choices import USUAL
from fastfed.engine import rows
from fastfed.engine.rows import Block, Departures
from fastfed.errors import InputError
from fastfed.goals import Goal
from fastfed.goals import parse as parse_goal
from fastfed.kernels import trials as kernel
from fastfed.kernels.boundary import make_curve
from fastfed.kernels.memory import Space, make_space
from fastfed.problem.instance import Instance
from fastfed.problem.limits import (
    Rules,
    most_steps,
    refuse_endless,
    refuse_unfit,
    resolve_radii,
    resolve_sigma,
)
from fastfed.problem.rewards.rounding import Spent
from fastfed.problem.schedule import Periodic, Schedule, parse_all
from fastfed.radius import MAX_STEPS, Radius, parse
from fastfed.uplinks import Uplink
from fastfed.uplinks import parse as parse_uplink
from fastfed.validation import checked_delta, checked_engine, checked_max_steps, checked_seed

if TYPE_CHECKING:
    import polars as pl

Floats = npt.NDArray[np.float64]

_CHUNK_SECONDS = 0.2  # what one call of the kernel aims at: short enough for bar and Ctrl-C
_PATIENCE = 0.3  # seconds for threads to stop when nobody wants their rows any more


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
        radius: str | Radius = "paper",
        goal: str | Goal = "best",
        uplink: str | Uplink = "exact",
        keep_pulls: bool = False,
    ) -> None:
        if not isinstance(instance, Instance):
            raise InputError(
                f"instance {instance!r}: must be a fastfed.Instance; "
                "Instance.load(...) makes one from a name or a file"
            )
        self.instance = instance
        self.schedules = parse_all(schedules)
        self.delta = checked_delta(delta)
        self.seed = checked_seed(seed)
        self.sigma = resolve_sigma(instance, sigma)
        limit = most_steps(instance)
        self.max_steps = limit if max_steps is None else checked_max_steps(max_steps, limit)
        self.keep_pulls = keep_pulls
        self.radius, self.goal, self.uplink = parse(radius), parse_goal(goal), parse_uplink(uplink)
        rules = Rules(self.radius, self.goal, self.uplink)
        refuse_unfit(instance, rules)
        radii = resolve_radii(instance, self.delta, self.sigma, rules)
        self.local_radius, self.mean_radius, self.global_radius = radii
        if max_steps is None:
            refuse_endless(instance, self.delta, self.sigma, rules)
        self.engine = checked_engine(engine)
        if self.engine == "auto":  # skipping is the faster engine for every law
            self.engine = "skip"
        # one pass serves schedules that are two names for the same times
        self._times, self._horizon, self._pass_of = _lay_out(self.schedules, self.max_steps)
        self._local_g, self._global_g = (
            np.array([one.boundary(2.0**t) for t in range(MAX_STEPS.bit_length())])
            for one in (self.local_radius, self.global_radius)
        )
        self._every = _lay_out([Periodic(1)], self.max_steps)[0]
        law = instance.rewards.kernel_law(instance.means)
        self._problem = kernel.Problem(
            np.uint64(self.seed),
            law,
            make_curve(self.local_radius),
            make_curve(self.global_radius),
            self.uplink.kernel(radii.means),
            self.engine == "skip",
            self.goal.kernel(instance, law),
        )
        self._limits = kernel.Limits(np.int64(self.max_steps), self._horizon)

    def run(
        self,
        first: int,
        count: int,
        control: kernel.Control | None = None,
        space: Space | None = None,
        keep_departures: bool = False,
    ) -> Block:
        """Trials first .. first + count - 1, on the calling thread, without the GIL. ``space`` is
        scratch memory from `space`, to be used by one thread at a time."""
        arms, clients = self.instance.shape
        passes = len(self._horizon)

        def ints(kept: bool, *shape: int) -> npt.NDArray[np.int64]:
            return np.zeros(shape if kept else (0,) * len(shape), np.int64)

        found = kernel.Rows(
            ints(True, passes, count, kernel.COLUMNS),
            np.zeros((passes, count)),
            ints(True, passes, count),
            ints(self.keep_pulls, passes, count, arms, clients),
            np.full((0 if self.goal.one_arm else passes, count, arms), -1, np.int8),
            ints(True, count, 2),
            ints(keep_departures, count, arms, clients),
            ints(keep_departures, count, clients),
            np.zeros((count if keep_departures else 0, arms, clients), np.bool_),
            ints(keep_departures, count, passes, arms),
            np.zeros((count if keep_departures else 0, passes, arms), np.bool_),
            ints(keep_departures, count, clients),
            ints(keep_departures, count, passes),
        )
        kernel.run_trials(
            self._problem,
            self._every,
            self._times,
            self._limits,
            space or self.space(),
            found,
            control or new_control(),
            np.int64(first),
        )
        departures = (
            Departures(
                found.local_out,
                found.local_arms,
                found.local_called,
                found.global_out[:, self._pass_of],
                found.global_called[:, self._pass_of],
                found.local_gave_up,
                found.global_gave_up[:, self._pass_of],
            )
            if keep_departures
            else None
        )
        # a walk is drawn up to the power of two that follows the last step; what is drawn for other
        # schedules does not count: a row is the same in whatever company it was computed
        drawn_to = 2.0 * np.maximum(found.ints[:, :, kernel.STEPS], 1)
        summed = self.instance.rewards.sum_error(
            self.instance.means,
            self._spent(drawn_to, found.ints[:, :, kernel.PULLS]),
            str(self.uplink) == USUAL["uplink"],
        )
        draw_error = np.minimum(1.0, found.draws * self._problem.law.draw_error(drawn_to) + summed)
        if len(self.schedules) == passes:
            return Block(
                first,
                found.ints,
                found.skip_error,
                found.pulls,
                found.called,
                found.work,
                draw_error,
                departures,
            )
        pulls = found.pulls[self._pass_of] if self.keep_pulls else found.pulls
        called = found.called if self.goal.one_arm else found.called[self._pass_of]
        return Block(
            first,
            found.ints[self._pass_of],
            found.skip_error[self._pass_of],
            pulls,
            called,
            found.work,
            draw_error[self._pass_of],
            departures,
        )

    def _spent(self, steps: Floats, pulls: npt.NDArray[np.int64]) -> Spent:
        """What trials took. g is concave and positive, so it never falls: the next power of two
        has a larger one."""
        mean = np.maximum(pulls / self.instance.means.size, 1.0)
        power = np.minimum(np.frexp(mean)[1], MAX_STEPS.bit_length() - 1)
        return Spent(steps, mean, self._local_g[power], self._global_g[power])

    def space(self) -> Space:
        """Scratch memory for `run`."""
        arms, clients = self.instance.shape
        return make_space(self._problem, arms, clients, len(self._horizon))

    def horizon(self, schedule: int) -> int:
        """The step at which an undecided trial of the schedule is cut off: its last time, or
        max_steps."""
        return int(self._horizon[self._pass_of[schedule]])

    def frame(self, block: Block) -> pl.DataFrame:
        """The block as rows, in order of schedule, then trial."""
        return rows.frame(
            block,
            [str(one) for one in self.schedules],
            {
                "instance": self.instance.name,
                "delta": self.delta,
                "seed": self.seed,
                "sigma": float(self.sigma),
                **self.choices,
            },
        )

    @property
    def choices(self) -> dict[str, str]:
        """The names of radius, goal and uplink."""
        return {name: str(getattr(self, name)) for name in USUAL}


def new_control() -> kernel.Control:
    """What kernels and their caller tell each other while they run: whether to stop, and how far
    they are."""
    return kernel.Control(np.zeros(1, np.int64), np.zeros(1, np.int64))


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
            if not finished:
                report(done)
    finally:
        control.stop[0] = 1
        pool.shutdown(wait=False, cancel_futures=True)
        # whoever interrupts need not wait for a long trial, or for a compilation
        if not wait(started, timeout=_PATIENCE).not_done:
            pool.shutdown(wait=True)


def _lay_out(
    schedules: Sequence[Schedule], max_steps: int
) -> tuple[kernel.Times, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The distinct sets of times as the kernel reads them, the horizon of each, and which of them
    each schedule uses. A schedule whose last time passes undecided is cut off there: it would
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
    return (
        kernel.Times(np.array(plan, np.int64), flat),
        np.array(horizon, np.int64),
        np.array(pass_of, np.int64),
    )
