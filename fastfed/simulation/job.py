"""One cell of an experiment: a setting and schedules in, blocks of rows out.

`Job` lays everything out as arrays, once, and then any range of trials can be run, on any number
of threads, in any order, with the same rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cached_property
from itertools import pairwise
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from fastfed.confidence import MAX_STEPS
from fastfed.errors import InputError
from fastfed.kernels import trials as kernel
from fastfed.kernels.adaptive import MOST_TIMES, PLACES, ChosenTimes, FixedTimes
from fastfed.kernels.clients import BLOCK
from fastfed.kernels.memory import Space, beside, make_space
from fastfed.kernels.server_questions import Questions
from fastfed.model.goals import Goal
from fastfed.model.instance import Instance
from fastfed.model.rewards.rounding import Spent
from fastfed.model.schedules import Algorithm, Periodic, Schedule
from fastfed.model.schedules.base import Timetable
from fastfed.model.setting import Options, Setting
from fastfed.model.uplinks import Exact
from fastfed.simulation import machine as machines
from fastfed.simulation import rows
from fastfed.simulation.algorithms import RoundsRunner
from fastfed.simulation.machine import Machine, Share
from fastfed.simulation.rows import Block, Departures

if TYPE_CHECKING:
    import polars as pl

Floats = npt.NDArray[np.float64]

_CHUNK_SECONDS = 0.2  # what one call of the kernel aims at: short enough for bar and Ctrl-C
_PATIENCE = 0.3  # seconds for threads to stop when nobody wants their rows any more


class Job:
    """A setting under one or several schedules, ready to run."""

    def __init__(
        self,
        setting: Setting,
        schedules: Sequence[str | Schedule] | str | Schedule,
        *,
        keep_pulls: bool = False,
    ) -> None:
        self.setting, self.keep_pulls = setting, keep_pulls
        self.schedules = Schedule.parse_all(schedules)
        self.max_steps = setting.last_step
        # skipping is the faster engine for every law
        self.engine = "skip" if setting.engine == "auto" else setting.engine
        self.runners = {
            place: RoundsRunner(setting, one)
            for place, one in enumerate(self.schedules)
            if isinstance(one, Algorithm)
        }
        instance, radii = setting.instance, setting.radii
        questions = instance.questions
        self._times, self._horizon, self._pass_of = _lay_out(
            [one.kernel(setting) for one in self.schedules if one.eliminates]
        )
        self._local_g, self._global_g = (
            np.array([one.boundary(2.0**t) for t in range(MAX_STEPS.bit_length())])
            for one in (radii.client, radii.sums)
        )
        self._every = _lay_out([Periodic(1).kernel(setting)])[0]
        choices = setting.kernels
        client_radius, server_radius = choices.pop("radius")
        self._problem = kernel.Problem(
            seed=np.uint64(setting.seed),
            rewards=setting.reward_kernel,
            local_radius=client_radius,
            global_radius=server_radius,
            skip=self.engine != "dense",
            questions=Questions(
                np.array(questions.factors),
                questions.asked.sum(axis=1),
                np.ones(instance.shape[1]),
                questions.local,
                bool(questions.asked.all()),
            ),
            **choices,
        )
        self._limits = kernel.Limits(np.int64(self.max_steps), self._horizon)

    @classmethod
    def of(
        cls,
        instance: Instance,
        schedules: Sequence[str | Schedule] | str | Schedule,
        *,
        delta: float,
        keep_pulls: bool = False,
        **options: Unpack[Options],
    ) -> Job:
        """Make the job of a setting that is given by its options."""
        setting = Setting.of(instance, delta=delta, **options)
        return cls(setting, schedules, keep_pulls=keep_pulls)

    @property
    def instance(self) -> Instance:
        """The instance of the setting."""
        return self.setting.instance

    @property
    def spine_is_dear(self) -> bool:
        """Tell whether `run_together` should draw the spines of a trial once for all jobs."""
        return self.instance.rewards.spine_is_dear and not self.runners

    @property
    def goal(self) -> Goal:
        """The goal of the setting."""
        return self.setting.goal

    def run(
        self,
        first: int,
        count: int,
        control: kernel.Control | None = None,
        space: Space | None = None,
        keep_departures: bool = False,
        threads: int = 1,
    ) -> Block:
        """Run the trials first, ..., first + count - 1, on the calling thread, without the GIL.

        ``space`` is scratch memory from `space`, to be used by one thread at a time, and only for
        jobs that differ in delta alone. Departures are those of schedules that eliminate. Trials
        of very many clients may use more ``threads``: all of them for one trial after the other.
        """
        steer = control or new_control()
        threads = min(threads, self._most_threads)
        if threads > 1 and count > 1:
            held = space or self.space()
            blocks = []
            for trial in range(first, first + count):
                blocks.append(self.run(trial, 1, steer, held, keep_departures, threads))
                if steer.stop[0] != 0:  # interrupted: nobody asks for the others
                    break
            return Block.join(blocks)
        if not self.runners:
            return self._run_passes(first, count, steer, space, keep_departures, threads)
        blocks = [self._run_rounds(one, first, count, steer) for one in self.runners.values()]
        if len(self.runners) < len(self.schedules):
            blocks.append(self._run_passes(first, count, steer, space, keep_departures, threads))
        eliminating = [
            place for place, one in enumerate(self.schedules) if place not in self.runners
        ]
        return Block.side_by_side(blocks, [*self.runners, *eliminating])

    def _run_rounds(
        self, runner: RoundsRunner, first: int, count: int, control: kernel.Control
    ) -> Block:
        """Run the trials of an algorithm that decides in rounds."""
        found = runner.run(first, count, control)
        steps = 2.0 * np.maximum(found.ints[:, kernel.STEPS], 1)
        return Block(
            first,
            found.ints[None],
            np.zeros((1, count)),
            found.pulls[None] if self.keep_pulls else np.zeros((0, 0, 0, 0), np.int64),
            np.zeros((0, count, 1, self.instance.shape[0]), np.int8),
            np.zeros((0, count, 1), np.int64),
            np.zeros((count, 2), np.int64),
            np.minimum(1.0, found.draws * self._problem.rewards.draw_error(steps))[None],
        )

    def _run_passes(
        self,
        first: int,
        count: int,
        control: kernel.Control,
        space: Space | None,
        keep_departures: bool,
        threads: int,
    ) -> Block:
        """Run the trials of all schedules that eliminate."""
        arms, clients = self.instance.shape
        passes, questions = len(self._horizon), len(self.instance.questions)

        def ints(kept: bool, *shape: int) -> npt.NDArray[np.int64]:
            return np.zeros(shape if kept else (0,) * len(shape), np.int64)

        found = kernel.Rows(
            ints(True, passes, count, kernel.COLUMNS),
            np.zeros((passes, count)),
            ints(True, passes, count),
            ints(self.keep_pulls, passes, count, arms, clients),
            np.full((0 if self.goal.one_arm else passes, count, questions, arms), -1, np.int8),
            ints(questions > 1, passes, count, questions),
            ints(True, count, 2),
            ints(keep_departures, count, arms, clients),
            ints(keep_departures, count, clients),
            np.zeros((count if keep_departures else 0, arms, clients), np.bool_),
            ints(keep_departures, count, passes, questions, arms),
            np.zeros((count if keep_departures else 0, passes, questions, arms), np.bool_),
            ints(keep_departures, count, clients),
            ints(keep_departures, count, passes, questions),
        )
        self._run_parts(found, control, first, space or self.space(), threads)
        departures = (
            Departures(
                found.local_eliminated_at,
                found.local_arms,
                found.local_accepted,
                found.global_eliminated_at[:, self._pass_of],
                found.global_accepted[:, self._pass_of],
                found.local_abandoned_at,
                found.global_abandoned_at[:, self._pass_of],
            )
            if keep_departures
            else None
        )
        # a walk is drawn up to the power of two that follows the last step
        drawn_to = 2.0 * np.maximum(found.ints[:, :, kernel.STEPS], 1)
        summed = self.instance.rewards.sum_error(
            self.instance.means,
            self._spent(drawn_to, found.ints[:, :, kernel.PULLS]),
            isinstance(self.setting.uplink, Exact),
        )
        draw_error = np.minimum(
            1.0, found.draws * self._problem.rewards.draw_error(drawn_to) + summed
        )

        def of_schedules(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            """Repeat the rows of a pass for every schedule that it serves."""
            one_each = len(self._pass_of) == passes
            return array if one_each or not len(array) else array[self._pass_of]

        return Block(
            first,
            of_schedules(found.ints),
            of_schedules(found.skip_error),
            of_schedules(found.pulls),
            of_schedules(found.accepted),
            of_schedules(found.server_arms),
            found.work,
            of_schedules(draw_error),
            departures,
        )

    def _run_parts(
        self, found: kernel.Rows, control: kernel.Control, first: int, space: Space, threads: int
    ) -> None:
        """Run trials into ``found``, or one trial of very many clients on several threads.

        Its clients are run in blocks, which do not depend on the number of threads. They need the
        server's pass, and the end of the trial needs all of them.
        """

        def run(held: Space, begins: bool, ends: bool, lo: int, hi: int) -> None:
            kernel.run_trials(
                self._problem,
                self._every,
                self._times,
                self._limits,
                held,
                found,
                control,
                kernel.Stage(np.int64(first), begins, ends, np.int64(lo), np.int64(hi)),
            )

        clients = self.instance.shape[1]
        if threads < 2:
            run(space, True, True, 0, clients)
            return
        run(space, True, False, 0, 0)
        spaces = [beside(self._problem, space) for _ in range(threads)]
        free: SimpleQueue[Space] = SimpleQueue()
        for one in spaces:
            free.put(one)

        def run_block(lo: int) -> None:
            held = free.get()
            try:
                run(held, False, False, lo, min(lo + BLOCK, clients))
            finally:
                free.put(held)

        with ThreadPoolExecutor(threads, thread_name_prefix="fastfed") as pool:
            list(pool.map(run_block, range(0, clients, BLOCK)))
        for one in spaces:
            space.walks.work[:] += one.walks.work
            space.totals[:] += one.totals
        run(space, False, True, 0, 0)

    def _spent(self, steps: Floats, pulls: npt.NDArray[np.int64]) -> Spent:
        """Return the steps and pulls of trials, with the boundaries at their next powers of two.

        g is concave and positive, so it never falls, and the next power of two has a larger g.
        """
        mean = np.maximum(pulls / self.instance.means.size, 1.0)
        power = np.minimum(np.frexp(mean)[1], MAX_STEPS.bit_length() - 1)
        questions = self.instance.questions
        return Spent(
            steps,
            mean,
            self._local_g[power],
            self._global_g[power],
            weighted=not questions.plain,
            places=float((self.instance.shape[1] / questions.asked.sum(axis=1)).sum()),
        )

    @cached_property
    def _most_threads(self) -> int:
        """The threads that can share a trial: one for each block of clients, if clients decide."""
        shared = hasattr(self._problem.rewards, "beside") and self._problem.questions.local
        return -(-self.instance.shape[1] // BLOCK) if shared and len(self._horizon) else 1

    @cached_property
    def _bytes(self) -> int:
        """The bytes of `space`, without making it: they grow linearly with the clients."""
        one, two = (size_of(self._make_space(clients)) for clients in (1, 2))
        return one + (self.instance.shape[1] - 1) * (two - one)

    def need(self) -> Share:
        """Return the most that a trial can use, or refuse one that is too large for the machine.

        Pages that no trial touches take no memory: FedElim with a million clients and three arms
        reserves 5.5 GB and touches 0.8 GB.
        """
        there = machines.physical_memory()
        if self._bytes > there:
            arms, clients = self.instance.shape
            raise InputError(
                f"{arms:,} arms x {clients:,} clients: a trial takes up to {self._bytes:,} bytes "
                f"of memory, this machine has {there:,.0f}; take fewer clients, or a larger machine"
            )
        return Share(self._bytes, self._most_threads)

    def space(self) -> Space:
        """Make scratch memory for `run`, or refuse what is too large for the machine."""
        self.need()
        return self._make_space(self.instance.shape[1])

    def _make_space(self, clients: int) -> Space:
        several = len(self.instance.questions) > 1
        logged = MOST_TIMES if several and isinstance(self._times.chosen, ChosenTimes) else 0
        arms = self.instance.shape[0]
        return make_space(self._problem, arms, clients, len(self._horizon), logged)

    def horizon(self, schedule: int) -> int:
        """Return the step at which an undecided trial of the schedule is cut off.

        It is the last time of the schedule, or max_steps.
        """
        before = sum(place < schedule for place in self.runners)
        return int(self._horizon[self._pass_of[schedule - before]])

    def frame(self, block: Block) -> pl.DataFrame:
        """Make the rows of a block, in order of schedule, then trial."""
        return rows.frame(
            block,
            [str(one) for one in self.schedules],
            {name: getattr(self.setting.key, name) for name in rows.OF_JOB},
        )


def size_of(held: Any) -> int:
    """Return the bytes of all arrays in nested tuples."""
    if isinstance(held, tuple):
        return sum(map(size_of, held))
    return held.nbytes if isinstance(held, np.ndarray) else 0


def new_control() -> kernel.Control:
    """Make the memory that a kernel and its caller share: a stop flag and a count of trials."""
    return kernel.Control(np.zeros(1, np.int64), np.zeros(1, np.int64))


def run_together(
    jobs: Sequence[Job],
    first: int,
    count: int,
    control: kernel.Control | None = None,
    threads: int = 1,
) -> list[Block]:
    """Run the same trials of jobs that differ in delta alone; return the block of each.

    Where spines are dear, every trial is run for all jobs before the next, in one memory, which
    keeps the spines that the job before has drawn. Rows, their errors and the counted work are
    those of each job by itself. Return no blocks if the control stops it. ``threads`` is as for
    `Job.run`.
    """
    steer = control or new_control()
    # schedules that one pass serves at one delta may need two at another: see `_lay_out`
    passes = {len(job._horizon) for job in jobs}
    if len(jobs) == 1 or len(passes) > 1 or not jobs[0].spine_is_dear:
        return [job.run(first, count, steer, threads=threads) for job in jobs]
    space = jobs[0].space()
    found: list[list[Block]] = [[] for _ in jobs]
    for trial in range(first, first + count):
        if steer.stop[0] != 0:  # interrupted: nobody asks for the blocks
            return []
        for blocks, job in zip(found, jobs, strict=True):
            blocks.append(job.run(trial, 1, steer, space, threads=threads))
    return [Block.join(blocks) for blocks in found]


def run_all_blocks(
    jobs: Sequence[Job],
    first: int,
    count: int,
    threads: int,
    report: Callable[[int], object] = lambda _: None,
) -> Iterator[list[Block]]:
    """Yield the trials first .. first + count - 1 of each job in blocks, as threads finish them.

    Block sizes follow the measured speed (they do not change a row). Leaving the iterator early,
    by an exception or Ctrl-C in the caller, stops the kernels after their current trial.
    """
    control = new_control()
    need = jobs[0].need()
    machine: Machine[tuple[int, int]] = Machine(threads)
    workers = machine.at_once(need)
    # trials that may take seconds, or most of the memory, begin one by one
    size = 1 if count < 64 or need.threads > 1 or workers < threads else 16
    started: dict[Future[list[Block]], tuple[Share, float]] = {}
    next_first, end, done = first, first + count, 0

    def offer() -> tuple[tuple[int, int], Share] | None:
        """Return the next block. The last ones share what is left, so that no thread waits long."""
        nonlocal next_first
        fair = math.ceil((end - next_first) / workers)
        length = min(size, fair)
        next_first += length
        return ((next_first - length, length), need) if length else None

    pool = ThreadPoolExecutor(workers, thread_name_prefix="fastfed")
    try:
        while True:
            for block, share in machine.start(offer):
                future = pool.submit(run_together, jobs, *block, control, share.threads)
                started[future] = share, time.perf_counter()
            if not started:
                return
            finished, _ = wait(started, timeout=0.1, return_when=FIRST_COMPLETED)
            for future in finished:
                if future.exception() is not None:
                    _raise_first(started)
                share, since = started.pop(future)
                machine.end(share)
                seconds = time.perf_counter() - since
                blocks = future.result()
                done += len(jobs) * blocks[0].trials
                wanted = int(blocks[0].trials * _CHUNK_SECONDS / max(seconds, 1e-6)) + 1
                size = max(1, min(wanted, 8 * size))
                report(done)
                yield blocks
            if not finished:
                report(done)
    finally:
        control.stop[0] = 1
        pool.shutdown(wait=False, cancel_futures=True)
        # whoever interrupts need not wait for a long trial, or for a compilation
        if not wait(started, timeout=_PATIENCE).not_done:
            pool.shutdown(wait=True)


def _raise_first(started: Iterable[Future[list[Block]]]) -> None:
    """Raise the error of the first block that has one, so that it does not depend on timing.

    ``started`` is in the order of the blocks' trials.
    """
    for future in started:
        future.result()


def _lay_out(
    timetables: Sequence[Timetable],
) -> tuple[kernel.Times, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Join timetables for the kernel; return the times, their horizons, and the pass of each.

    One pass serves equal timetables.
    """
    passes = {one.key: one for one in timetables}
    ends = np.cumsum([0, *(len(one.listed) for one in passes.values())]).tolist()
    plan = [
        (one.period, one.last, *((0, 0) if one.period else (begin, end)))
        for one, (begin, end) in zip(passes.values(), pairwise(ends), strict=True)
    ]
    options = np.array([one.choice for one in passes.values()])
    places = {key: place for place, key in enumerate(passes)}
    return (
        kernel.Times(
            np.array(plan, np.int64).reshape(-1, 4),
            np.concatenate([np.zeros(0, np.int64), *(one.listed for one in passes.values())]),
            ChosenTimes(options, np.zeros(PLACES), np.zeros((0, 0), np.int64))
            if options.any()
            else FixedTimes(()),
        ),
        np.array([one.horizon for one in passes.values()], np.int64),
        np.array([places[one.key] for one in timetables], np.int64),
    )
