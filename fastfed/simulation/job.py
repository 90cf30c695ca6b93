"""One cell of an experiment: a setting and schedules in, blocks of rows out.

`Job` lays everything out as arrays, once, and then any range of trials can be run, on any number
of threads, in any order, with the same rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.kernels import trials as kernel
from fastfed.kernels.adaptive import PLACES, ChosenTimes, FixedTimes
from fastfed.kernels.betting_pass import make_betting_space, run_betting_trials
from fastfed.kernels.memory import Space, make_space
from fastfed.kernels.rounds_server import MOST_ROUNDS, AtRounds
from fastfed.kernels.server_questions import Questions
from fastfed.model.goals import Goal
from fastfed.model.instance import Instance
from fastfed.model.radii import Betting
from fastfed.model.schedules import Algorithm, Periodic, Schedule
from fastfed.model.schedules.base import Timetable
from fastfed.model.setting import Options, Setting
from fastfed.simulation import machine as machines
from fastfed.simulation import rows
from fastfed.simulation.algorithms import RoundsRunner
from fastfed.simulation.machine import Machine
from fastfed.simulation.rows import Block, Departures, Rows

if TYPE_CHECKING:
    import polars as pl

Floats = npt.NDArray[np.float64]

_CHUNK_SECONDS = 0.2  # what one call of the kernel aims at: short enough for bar and Ctrl-C


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
        self._times, self._horizon, self._pass_of = _lay_out(
            [one.kernel(setting) for one in self.schedules if one.eliminates]
        )
        self._betting = isinstance(setting.radius, Betting)
        self._every = _lay_out([Periodic(1).kernel(setting)])[0]
        choices = setting.kernels
        client_radius, question_radii = choices.pop("radius")
        self._problem = kernel.Problem(
            seed=np.uint64(setting.seed),
            rewards=setting.reward_kernel,
            local_radius=client_radius,
            question_radii=question_radii,
            skip=self.engine != "dense",
            questions=_lay_out_questions(setting),
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
    def visits_rounds(self) -> bool:
        """Tell whether the server visits every round: reports may be missing, or carry noise."""
        return isinstance(self._problem.participation, AtRounds)

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
    ) -> Block:
        """Run the trials first, ..., first + count - 1, on the calling thread, without the GIL.

        ``space`` is scratch memory from `space`, to be used by one thread at a time, and only for
        jobs that differ in delta alone. Departures are those of schedules that eliminate.
        """
        steer = control or new_control()
        if not self.runners:
            return self._run_passes(first, count, steer, space, keep_departures)
        blocks = [self._run_rounds(one, first, count, steer) for one in self.runners.values()]
        if len(self.runners) < len(self.schedules):
            blocks.append(self._run_passes(first, count, steer, space, keep_departures))
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
            np.zeros((0, 0, 0), np.int64),
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
        run_trials = run_betting_trials if self._betting else kernel.run_trials
        run_trials(
            self._problem,
            self._every._replace(times=self._every.times.copy()),  # a thread's own: it is written
            self._times,
            self._limits,
            space or self.space(),
            found,
            control,
            np.int64(first),
        )
        self._refuse_many_rounds()
        # a walk is drawn up to the power of two that follows the last step
        drawn_to = 2.0 * np.maximum(found.ints[:, :, kernel.STEPS], 1)
        pulls = found.ints[:, :, kernel.PULLS]
        summed = self.instance.rewards.sum_error(self.setting, drawn_to, pulls)
        left: Any = found[-len(Departures._fields) :]
        block = Block(
            first,
            found.ints,
            found.skip_error,
            found.pulls,
            found.accepted,
            found.server_arms,
            found.work,
            np.minimum(1.0, found.draws * self._problem.rewards.draw_error(drawn_to) + summed),
            Departures(*left) if keep_departures else None,
        )
        return block if len(self._pass_of) == passes else block.of_schedules(self._pass_of)

    def _refuse_many_rounds(self) -> None:
        """Refuse a trial with more rounds than a server visits that has to visit them all."""
        participation = self._problem.participation
        if self.visits_rounds and participation.too_many[0]:
            raise InputError(
                f"{self.setting.key}: a trial has more than {MOST_ROUNDS:,} communication rounds, "
                "and each is visited where reports are lost or noisy; take a schedule with fewer "
                "rounds, or a lower max_steps"
            )

    @cached_property
    def _bytes(self) -> int:
        """The bytes of `space`, without making it: they grow linearly with the clients."""
        one, two = (size_of(self._make_space(clients)) for clients in (1, 2))
        return one + (self.instance.shape[1] - 1) * (two - one)

    def need(self) -> int:
        """Return the bytes that a trial takes at most; refuse what the machine does not have.

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
        return self._bytes

    def space(self) -> Any:
        """Make scratch memory for `run`, or refuse what is too large for the machine."""
        if self.instance.means.size > machines.MANY_CELLS:
            self.need()
        return self._make_space(self.instance.shape[1])

    def _make_space(self, clients: int) -> Any:
        make = make_betting_space if self._betting else make_space
        return make(self._problem, self.instance.shape[0], clients, len(self._horizon))

    def horizon(self, schedule: int) -> int:
        """Return the step at which an undecided trial of the schedule is cut off.

        It is the last time of the schedule, or max_steps.
        """
        before = sum(place < schedule for place in self.runners)
        return int(self._horizon[self._pass_of[schedule - before]])

    def frame(self, block: Block) -> pl.DataFrame:
        """Make the rows of a block as a data frame, in order of schedule, then trial."""
        return rows.frame(self.rows(block))

    def rows(self, block: Block) -> Rows:
        """Add the names of the schedules, and the columns that all rows have in common."""
        key = self.setting.key
        of_job = {name: getattr(key, name) for name in rows.OF_JOB}
        return Rows(block, list(map(str, self.schedules)), of_job)


def _lay_out_questions(setting: Setting) -> Questions:
    """Lay the questions of the server out for the kernel."""
    instance = setting.instance
    questions, arms, available = instance.questions, instance.shape[0], instance.available
    asked = np.array(questions.asked, order="C")  # another layout would be another kernel
    return Questions(
        np.array(questions.factors, order="C"),
        asked.sum(axis=2),
        np.array(questions.candidates, order="C"),
        _pair_scales(setting),
        available.astype(np.float64),
        np.array(available.T, order="C"),
        np.ones((arms, arms)),
        np.ones(arms, np.int64),
        questions.local,
        bool(asked.all()),
    )


def _pair_scales(setting: Setting) -> Floats:
    """Return the scale of each pair of arms in each question, and of each arm on the diagonal."""
    scales = setting.instance.questions.arm_scales
    one, other = scales[:, :, None], scales[:, None, :]
    found = np.sqrt(0.5 * (one**2 + other**2)) if setting.radius.pairs else 0.5 * (one + other)
    each = np.arange(scales.shape[1])
    found[:, each, each] = scales
    return np.asarray(found)


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
) -> list[Block]:
    """Run the same trials of jobs that differ in delta alone; return the block of each.

    Where spines are dear, every trial is run for all jobs before the next, in one memory, which
    keeps the spines that the job before has drawn. Rows, their errors and the counted work are
    those of each job by itself. Return no blocks if the control stops it.
    """
    steer = control or new_control()
    # schedules that one pass serves at one delta may need two at another: see `_lay_out`
    passes = {len(job._horizon) for job in jobs}
    if len(jobs) == 1 or len(passes) > 1 or not jobs[0].spine_is_dear:
        return [job.run(first, count, steer) for job in jobs]
    space = jobs[0].space()
    found: list[list[Block]] = [[] for _ in jobs]
    for trial in range(first, first + count):
        if steer.stop[0] != 0:  # interrupted: nobody asks for the blocks
            return []
        for blocks, job in zip(found, jobs, strict=True):
            blocks.append(job.run(trial, 1, steer, space))
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
    need = jobs[0].need()
    machine: Machine[tuple[int, int]] = Machine(threads)
    workers = machine.at_once(need)
    # trials that may take seconds, or most of the memory, begin one by one
    size = 1 if count < 64 or workers < threads else 16
    next_first, end, done = first, first + count, 0

    def offer() -> tuple[tuple[int, int], int] | None:
        """Return the next block. The last ones share what is left, so that no thread waits long."""
        nonlocal next_first
        fair = math.ceil((end - next_first) / workers)
        length = min(size, fair)
        next_first += length
        return ((next_first - length, length), need) if length else None

    def timed(block: tuple[int, int], control: kernel.Control) -> tuple[list[Block], float]:
        begin = time.perf_counter()
        return run_together(jobs, *block, control), time.perf_counter() - begin

    for found in machine.run(offer, timed, new_control()):
        if found is None:
            report(done)
            continue
        blocks, seconds = found
        done += len(jobs) * blocks[0].trials
        wanted = int(blocks[0].trials * _CHUNK_SECONDS / max(seconds, 1e-6)) + 1
        size = max(1, min(wanted, 8 * size))
        report(done)
        yield blocks


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
            ChosenTimes(options, np.zeros(PLACES)) if options.any() else FixedTimes(()),
        ),
        np.array([one.horizon for one in passes.values()], np.int64),
        np.array([places[one.key] for one in timetables], np.int64),
    )
