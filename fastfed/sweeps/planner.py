"""The planner of a sweep: the missing trials of every cell, in parts sized by measured speed."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from fastfed.analysis.comparable import excluded
from fastfed.analysis.moments import Moments
from fastfed.analysis.prices import columns_of, costs_of
from fastfed.analysis.separation import first_look, separated
from fastfed.analysis.summary import relative_error
from fastfed.analysis.trials import collect
from fastfed.model.schedules import Schedule
from fastfed.model.setting import Setting
from fastfed.storage.folder import Gaps, Store
from fastfed.storage.merge import MOST_ROWS
from fastfed.sweeps.grid import Grid
from fastfed.sweeps.shards import Shard
from fastfed.sweeps.task import Bundle, Done, Task

_PART_SECONDS = 2.0  # what a part aims at: little is lost by a kill, and files stay few
_LAST_SECONDS = 0.3  # the smallest worth a file
# cells of an instance, from which on both grow with it. A part holds its instance, if no name
# brings that back: 57 bytes a cell and 0.7 us to write, which is 170 MB and 2.2 s for a million
# clients with three arms. So their parts take 90 s
_LONGER = 65_536
_FIRST_PART = 250  # trials, before the speed is known,
# and their cells: a trial of FedElim takes 1.5 us a cell, if each client has an easy question
_FIRST_CELLS = 1_000_000
# settings on one spine: a trial of `movielens` takes 0.89 of the time, with all 13 deltas of the
# paper 0.82 to 0.88; but the more there are, the longer is a task
_TOGETHER = 4
_FIRST_STAGE = 1_000  # trials after which a target is looked at for the first time


@dataclass
class Progress:
    """The progress of a sweep, yielded with every part."""

    trials_done: int = 0
    trials_planned: int = 0
    pulls: int = 0
    cell: str = ""
    workers: int = 1
    in_flight: int = 0


class Planner:
    """The plan of a sweep, which hands out the missing trials cell by cell.

    ``part_size`` is the number of trials in a part, which then has one task; None: as many as
    take a few seconds.
    """

    def __init__(
        self, grid: Grid, store: Store, shard: Shard | None = None, part_size: int | None = None
    ) -> None:
        self.spec, self.store, self.shard = grid.spec, store, shard
        self._part_size = part_size
        self._costs = costs_of(grid.spec.cost, grid.spec.bit_cost, grid.spec.price)
        self.progress = Progress()
        self._schedules = {one.name: one for one in grid.schedules}
        self._settings = list(grid.settings)
        self._gaps: deque[tuple[tuple[Setting, ...], tuple[Schedule, ...], int, int]] = deque()
        self._left = 0  # trials in the gaps
        self._goal: dict[Setting, int] = {}
        self._outstanding: Counter[Setting] = Counter()
        self._rate: dict[str, float] = {}  # trials a second and worker, by instance
        self._speed: float | None = None  # the same times the cells of an instance, of all
        self._begun = time.monotonic()
        if not self.spec.stops_early:
            self._queue(self._settings, self.spec.trials)
            self._settings = []

    @property
    def finished(self) -> bool:
        """Tell whether there is nothing to run."""
        return not (self._gaps or self._settings)

    def next_bundle(self, workers: int) -> Bundle | None:
        """Return the tasks of the next part, sized for this number of workers.

        It is None if nothing is left, or if nothing can start before results come in.
        """
        self.progress.workers = workers
        tasks: list[Task] = []
        room, rows = 1.0, MOST_ROWS  # of the time of a part, and of its rows
        while room > 0 and (self._gaps or self._queue_next_stage()):
            settings, schedules, first, end = self._gaps[0]
            most = rows // (len(schedules) * len(settings))
            if tasks and (not most or not _same_columns(settings[0], tasks[0].setting)):
                break
            share = self._share(settings, workers)
            count = min(math.ceil(room * share / len(settings)), end - first, max(1, most))
            if end - first < 1.5 * count:  # no crumbs
                count = min(end - first, max(1, most))
            tasks.append(self._take(count))
            room -= tasks[-1].trials / share
            rows -= tasks[-1].trials * len(schedules)
            if first + count < end or self._part_size is not None:
                break
        if not tasks:
            return None
        self.progress.cell = str(tasks[0].setting.key)
        self.progress.in_flight += 1
        return Bundle(tuple(tasks), 2 * self._seconds)

    def _take(self, count: int) -> Task:
        """Take the first trials of the first gap."""
        settings, schedules, first, end = self._gaps[0]
        if first + count == end:
            self._gaps.popleft()
        else:
            self._gaps[0] = (settings, schedules, first + count, end)
        self._left -= len(settings) * count
        self._outstanding.update(settings)
        return Task(settings[0], schedules, first, count, settings[1:])

    @property
    def _seconds(self) -> float:
        """Time of a part: seconds, and a hundredth of a long sweep, so that files stay few."""
        return max(_PART_SECONDS, (time.monotonic() - self._begun) / 100)

    def _share(self, settings: tuple[Setting, ...], workers: int) -> float:
        """Return the number of trials, of all settings together, that would fill a part.

        A part takes a few seconds, and less near the end, so that no worker waits long for another.
        The speed of an instance that was never run is guessed from that of the others.
        """
        if self._part_size is not None:
            return self._part_size * len(settings)
        instance = settings[0].instance
        rate = self._rate.get(instance.name)
        if rate is None and self._speed is not None:
            rate = self._speed / instance.means.size
        if rate is None:
            cells = len(settings) * min(instance.means.size, _LONGER)
            return max(1, min(_FIRST_PART, _FIRST_CELLS // cells)) * len(settings)
        rate *= max(1.0, instance.means.size / _LONGER)
        share = min(rate * self._seconds, self._left / workers)
        return max(share, rate * _LAST_SECONDS, 1e-9)

    def record(self, done: Done) -> None:
        """Take account of a result: progress, and how fast trials of its instances are."""
        begun, rest = done.bundle.tasks[: done.begun], done.bundle.tasks[done.begun :]
        for task in done.bundle.tasks:
            self._outstanding.subtract(task.settings)
        for task in reversed(rest):
            self._gaps.appendleft(
                (task.settings, task.schedules, task.first, task.first + task.count)
            )
            self._left += task.trials
        self.progress.in_flight -= 1
        work: Counter[str] = Counter()
        for task in done.done:
            work[task.setting.instance.name] += task.trials
        sizes = {one.setting.instance.name: one.setting.instance.means.size for one in done.done}
        if work:
            speed = sum(work[name] * sizes[name] for name in work) / max(done.seconds, 1e-6)
            for name in work:
                rate = speed / sizes[name]
                self._rate[name] = 0.5 * (self._rate.get(name, rate) + rate)
            self._speed = 0.5 * ((self._speed or speed) + speed)
        self.progress.trials_done += sum(task.trials for task in begun)
        self.progress.pulls += done.pulls

    def _queue(self, settings: Sequence[Setting], trials: int) -> None:
        """Queue the missing ones of the first ``trials`` trials of each setting.

        Schedules that miss the same ranges run together, on the same walks. So do settings that
        differ in delta alone, a few at a time, if that saves time.
        """
        alike: dict[Any, list[Setting]] = {}
        for setting in settings:
            for gaps, names in self._missing(setting, trials).items():
                dear = setting.instance.rewards.spine_is_dear
                dear = dear and all(self._schedules[name].eliminates for name in names)
                walks = _but_delta(setting) if dear else setting.key
                alike.setdefault((gaps, tuple(names), walks), []).append(setting)
        for (gaps, names, _), found in alike.items():
            schedules = tuple(self._schedules[name] for name in names)
            for begin in range(0, len(found), _TOGETHER):
                some = tuple(found[begin : begin + _TOGETHER])
                for first, end in gaps:
                    self._gaps.append((some, schedules, first, end))
                    self._left += len(some) * (end - first)
                    self.progress.trials_planned += len(some) * (end - first)

    def _missing(self, setting: Setting, trials: int) -> dict[Gaps, list[str]]:
        """Return the schedules that miss trials of a setting, by the ranges that they miss."""
        low, high = (0, trials) if self.shard is None else self.shard.share(setting.key, trials)
        return self.store.missing(setting.key, self.spec.schedule, low, high)

    def _queue_next_stage(self) -> bool:
        """Queue trials of a setting that has a target and none under way; tell if there is one.

        The size of a cell's next stage depends on the results of the one before.
        """
        while not self._gaps:
            idle = next((one for one in self._settings if not self._outstanding[one]), None)
            if idle is None:
                return False
            self._next_stage(idle)
        return True

    def _next_stage(self, setting: Setting) -> None:
        """Grow a setting whose target is not reached; drop it if it is finished."""
        goal = self._goal.get(setting, 0)
        if goal >= self.spec.trials or (goal and self._settled(setting, goal)):
            self._settings.remove(setting)
            return
        goal = min(self.spec.trials, max(self._first_stage(setting), 2 * goal))
        self._goal[setting] = goal
        self._queue([setting], goal)

    def _first_stage(self, setting: Setting) -> int:
        """Return the number of trials after which a setting is first looked at."""
        return first_look(setting.delta) if self.spec.until_separated else _FIRST_STAGE

    def _settled(self, setting: Setting, trials: int) -> bool:
        """Tell whether the first ``trials`` trials of a cell reach all targets."""
        if self.spec.target_rse is not None and not self._precise(setting, trials):
            return False
        if not self.spec.until_separated:
            return True
        look = (trials // self._first_stage(setting)).bit_length()  # 1, 2, 3, ...
        return separated(
            lambda: self.store.batches(setting.key, self.spec.schedule, until=trials),
            self.spec.schedule,
            setting.delta,
            self._costs,
            look,
        )

    def _precise(self, setting: Setting, trials: int) -> bool:
        """Tell whether the first ``trials`` trials alone reach the target, whoever ran them."""
        assert self.spec.target_rse is not None
        names = self.spec.schedule
        moments = Moments(names, (), columns_of(self._costs))
        collect(self.store.batches(setting.key, names, until=trials), names, moments)
        # more trials do not make the mean of a schedule that fails too often a cost
        out = excluded(moments, names, setting.delta)
        errors = [
            relative_error(moments, name, unit.total(cost))
            for name in names
            if name not in out
            for cost, unit in self._costs
        ]
        return all(map(moments.trials, names)) and all(
            error is None or error < self.spec.target_rse for error in errors
        )


def _same_columns(one: Setting, other: Setting) -> bool:
    """Tell whether the rows of two settings have the same columns."""
    several = [len(setting.instance.questions) > 1 for setting in (one, other)]
    return several[0] == several[1]


def _but_delta(setting: Setting) -> tuple[Any, ...]:
    """Return all that a setting is made of, besides its delta."""
    kept = [one.name for one in fields(setting) if one.compare and one.name != "delta"]
    return tuple(getattr(setting, name) for name in kept)
