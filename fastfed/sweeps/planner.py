"""The planner of a sweep: the missing trials of every cell, in parts sized by measured speed."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from fastfed.analysis.comparable import excluded
from fastfed.analysis.moments import Moments, costs_of
from fastfed.analysis.separation import separated
from fastfed.analysis.summary import relative_error
from fastfed.analysis.trials import collect
from fastfed.model.schedules import Schedule
from fastfed.model.setting import Setting
from fastfed.storage.folder import Store
from fastfed.sweeps.grid import Grid
from fastfed.sweeps.shards import Shard
from fastfed.sweeps.task import Done, Task

_PART_SECONDS = 2.0  # what a part aims at: little is lost by a kill, and files stay few
_LAST_SECONDS = 0.3  # the smallest worth a file
# cells of an instance, from which on both grow with it. A part holds its instance, if no name
# brings that back: 57 bytes a cell and 0.7 us to write, which is 170 MB and 2.2 s for a million
# clients with three arms. So their parts take 90 s
_LONGER = 65_536
_FIRST_PART = 250  # trials, before the speed is known,
# and their cells: a trial of FedElim takes 1.5 us a cell, if each client has an easy question
_FIRST_CELLS = 1_000_000
_MOST_ROWS = 500_000  # in one part
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

    ``part_size`` is the number of trials in a part; None: as many as take a few seconds.
    """

    def __init__(
        self, grid: Grid, store: Store, shard: Shard | None = None, part_size: int | None = None
    ) -> None:
        self.spec, self.store, self.shard = grid.spec, store, shard
        self._part_size = part_size
        self._costs = costs_of(grid.spec.cost, grid.spec.bit_cost)
        self.progress = Progress()
        self._schedules = grid.schedules
        self._settings = list(grid.settings)
        self._gaps: deque[tuple[tuple[Setting, ...], tuple[Schedule, ...], int, int]] = deque()
        self._left = 0  # trials in the gaps
        self._goal: dict[Setting, int] = {}
        self._outstanding: Counter[Setting] = Counter()
        self._rate: dict[str, float] = {}  # trials a second and worker, by instance
        if not self.spec.stops_early:
            self._queue(self._settings, self.spec.trials)
            self._settings = []

    @property
    def finished(self) -> bool:
        """Tell whether there is nothing to run."""
        return not (self._gaps or self._settings)

    def next_task(self, workers: int) -> Task | None:
        """Return the next part to compute, sized for this number of workers.

        It is None if nothing is left, or if nothing can start before results come in.
        """
        self.progress.workers = workers
        while not self._gaps:
            # with a target, the size of a cell's next stage hangs on the results of this one
            idle = next((one for one in self._settings if not self._outstanding[one]), None)
            if idle is None:
                return None
            self._next_stage(idle)
        settings, schedules, first, end = self._gaps[0]
        most = max(1, _MOST_ROWS // (len(schedules) * len(settings)))
        count = min(self._size(settings, workers), end - first, most)
        if end - first < 1.5 * count:  # no crumbs
            count = min(end - first, most)
        if first + count == end:
            self._gaps.popleft()
        else:
            self._gaps[0] = (settings, schedules, first + count, end)
        self._left -= len(settings) * count
        self._outstanding.update(settings)
        self.progress.cell = str(settings[0].key)
        self.progress.in_flight += 1
        return Task(settings[0], schedules, first, count, settings[1:])

    def _size(self, settings: tuple[Setting, ...], workers: int) -> int:
        """Return the number of trials of the next part.

        A part takes a few seconds, and less near the end, so that no worker waits long for another.
        """
        if self._part_size is not None:
            return self._part_size
        rate = self._rate.get(settings[0].instance.name)
        if rate is None:
            cells = len(settings) * min(settings[0].instance.means.size, _LONGER)
            return max(1, min(_FIRST_PART, _FIRST_CELLS // cells))
        rate *= max(1.0, settings[0].instance.means.size / _LONGER)
        share = min(rate * _PART_SECONDS, self._left / workers / len(settings))
        return max(1, math.ceil(max(share, rate * _LAST_SECONDS)))

    def record(self, done: Done) -> None:
        """Take account of a result: progress, and how fast trials of its instance are."""
        self._outstanding.subtract(done.task.settings)
        self.progress.in_flight -= 1
        trials = len(done.task.settings) * done.task.count
        if done.error is None:
            rate = trials / max(done.seconds, 1e-6)
            name = done.task.setting.instance.name
            self._rate[name] = 0.5 * (self._rate.get(name, rate) + rate)
        self.progress.trials_done += trials
        self.progress.pulls += done.pulls

    def _queue(self, settings: Sequence[Setting], trials: int) -> None:
        """Queue the missing ones of the first ``trials`` trials of each setting.

        Schedules that miss the same ranges run together, on the same walks. So do settings that
        differ in delta alone, a few at a time, if that saves time.
        """
        alike: dict[Any, list[Setting]] = {}
        for setting in settings:
            for gaps, schedules in self._missing(setting, trials).items():
                dear = setting.instance.rewards.spine_is_dear
                dear = dear and all(one.eliminates for one in schedules)
                walks = _but_delta(setting) if dear else setting.key
                alike.setdefault((gaps, tuple(schedules), walks), []).append(setting)
        for (gaps, schedules, _), found in alike.items():
            for begin in range(0, len(found), _TOGETHER):
                some = tuple(found[begin : begin + _TOGETHER])
                for first, end in gaps:
                    self._gaps.append((some, schedules, first, end))
                    self._left += len(some) * (end - first)
                    self.progress.trials_planned += len(some) * (end - first)

    def _missing(
        self, setting: Setting, trials: int
    ) -> dict[tuple[tuple[int, int], ...], list[Schedule]]:
        """Return the schedules that miss trials of a setting, by the ranges that they miss."""
        by_gaps: dict[tuple[tuple[int, int], ...], list[Schedule]] = {}
        low, high = (0, trials) if self.shard is None else self.shard.share(setting.key, trials)
        for schedule in self._schedules:
            pieces = self.store.pieces(setting.key, schedule.name, low, high)
            gaps = tuple((first, end) for first, end, part in pieces if part is None)
            if gaps:
                by_gaps.setdefault(gaps, []).append(schedule)
        return by_gaps

    def _next_stage(self, setting: Setting) -> None:
        """Grow a setting whose target is not reached; drop it if it is finished."""
        goal = self._goal.get(setting, 0)
        if goal >= self.spec.trials or (goal and self._settled(setting, goal)):
            self._settings.remove(setting)
            return
        goal = min(self.spec.trials, max(_FIRST_STAGE, 2 * goal))
        self._goal[setting] = goal
        self._queue([setting], goal)

    def _settled(self, setting: Setting, trials: int) -> bool:
        """Tell whether the first ``trials`` trials of a cell reach all targets."""
        if self.spec.target_rse is not None and not self._precise(setting, trials):
            return False
        if not self.spec.until_separated:
            return True
        look = (trials // _FIRST_STAGE).bit_length()  # 1, 2, 3, ... at 1,000, 2,000, 4,000, ...
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
        moments = Moments(names)
        collect(self.store.batches(setting.key, names, until=trials), names, moments)
        # more trials do not make the mean of a schedule that seldom ends a cost
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


def _but_delta(setting: Setting) -> tuple[Any, ...]:
    """Return all that a setting is made of, besides its delta."""
    kept = [one.name for one in fields(setting) if one.compare and one.name != "delta"]
    return tuple(getattr(setting, name) for name in kept)
