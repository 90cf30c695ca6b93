"""What to run next: the missing trials of every cell, in pieces that follow the measured speed."""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass

from fastfed.problem.instance import Instance
from fastfed.statistics.moments import Moments, Prices, Trials
from fastfed.statistics.summary import relative_error
from fastfed.sweeps.grid import Cell, Grid, Shard
from fastfed.sweeps.store import Store
from fastfed.sweeps.task import Done, Task

_PART_SECONDS = 2.0  # what a part aims at: little is lost by a kill, and files stay few
_LAST_SECONDS = 0.3  # the smallest worth a file
_FIRST_PART = 250  # trials, before the speed is known
_MOST_ROWS = 500_000  # in one part
_FIRST_STAGE = 1_000  # trials after which a target is looked at for the first time


@dataclass
class Progress:
    """Where a sweep stands: handed out with every part."""

    trials_done: int = 0
    trials_planned: int = 0
    pulls: int = 0
    cell: str = ""
    workers: int = 1
    in_flight: int = 0


class Planner:
    """Hands out what is missing, cell by cell. ``part_size`` is how many trials a part has; None:
    as many as take a few seconds."""

    def __init__(
        self, grid: Grid, store: Store, shard: Shard | None = None, part_size: int | None = None
    ) -> None:
        self.spec, self.store, self.shard = grid.spec, store, shard
        self._part_size = part_size
        self.progress = Progress()
        self._cells = list(grid.cells)
        self._gaps: deque[tuple[Cell, Instance, tuple[str, ...], int, int]] = deque()
        self._left = 0  # trials in the gaps
        self._goal: dict[Cell, int] = {}
        self._outstanding: Counter[Cell] = Counter()
        self._rate: dict[str, float] = {}  # trials a second and worker, by instance
        if self.spec.target_rse is None:
            for cell, instance in self._cells:
                self._queue(cell, instance, self.spec.trials)
            self._cells = []

    @property
    def finished(self) -> bool:
        """Whether there is nothing to do from the start."""
        return not (self._gaps or self._cells)

    def next_task(self, workers: int) -> Task | None:
        """The next part to compute, sized for so many workers; None if there is none, or none until
        results come in."""
        self.progress.workers = workers
        while not self._gaps:
            # with a target, the size of a cell's next stage hangs on the results of this one
            idle = next((one for one in self._cells if not self._outstanding[one[0]]), None)
            if idle is None:
                return None
            self._next_stage(*idle)
        cell, instance, schedules, first, end = self._gaps[0]
        most = max(1, _MOST_ROWS // len(schedules))
        count = min(self._size(instance, workers), end - first, most)
        if end - first < 1.5 * count:  # no crumbs
            count = min(end - first, most)
        if first + count == end:
            self._gaps.popleft()
        else:
            self._gaps[0] = (cell, instance, schedules, first + count, end)
        self._left -= count
        self._outstanding[cell] += 1
        self.progress.cell = str(cell)
        self.progress.in_flight += 1
        return Task(cell, instance, schedules, first, count)

    def _size(self, instance: Instance, workers: int) -> int:
        """How many trials the next part should have: a few seconds' worth, less near the end, so
        that no worker waits long for another."""
        if self._part_size is not None:
            return self._part_size
        rate = self._rate.get(instance.name)
        if rate is None:
            return _FIRST_PART
        share = min(rate * _PART_SECONDS, self._left / workers)
        return max(1, math.ceil(max(share, rate * _LAST_SECONDS)))

    def record(self, done: Done) -> None:
        """Take account of a result: progress, and how fast trials of its instance are."""
        self._outstanding[done.task.cell] -= 1
        self.progress.in_flight -= 1
        if done.error is None:
            rate = done.task.count / max(done.seconds, 1e-6)
            before = self._rate.get(done.task.instance.name, rate)
            self._rate[done.task.instance.name] = 0.5 * (before + rate)
        self.progress.trials_done += done.task.count
        self.progress.pulls += done.pulls

    def _queue(self, cell: Cell, instance: Instance, trials: int) -> None:
        """Queue what is missing of a cell's first ``trials`` trials: schedules that miss the same
        ranges run together, on the same walks."""
        by_gaps: dict[tuple[tuple[int, int], ...], list[str]] = {}
        for name in self.spec.schedules:
            gaps = tuple(self.store.missing(cell, name, trials))
            if self.shard is not None:
                low, high = self.shard.share(cell, trials)
                gaps = tuple(
                    (max(first, low), min(end, high))
                    for first, end in gaps
                    if max(first, low) < min(end, high)
                )
            if gaps:
                by_gaps.setdefault(gaps, []).append(name)
        for gaps, names in by_gaps.items():
            for first, end in gaps:
                self._gaps.append((cell, instance, tuple(names), first, end))
                self._left += end - first
                self.progress.trials_planned += end - first

    def _next_stage(self, cell: Cell, instance: Instance) -> None:
        """Grow a cell whose target is not reached; drop it if it is finished."""
        goal = self._goal.get(cell, 0)
        if goal >= self.spec.trials or (goal and self._precise(cell, goal)):
            self._cells.remove((cell, instance))
            return
        goal = min(self.spec.trials, max(_FIRST_STAGE, 2 * goal))
        self._goal[cell] = goal
        self._queue(cell, instance, goal)

    def _precise(self, cell: Cell, trials: int) -> bool:
        """Whether the first ``trials`` trials alone reach the target: no matter who ran them."""
        assert self.spec.target_rse is not None
        names = self.spec.schedules
        moments = Moments(names)
        for batch in self.store.batches(cell, names, until=trials):
            moments.add(Trials.of(batch, names))
        errors = [
            relative_error(moments, name, prices)
            for name in names
            for prices in (
                *map(Prices.total, self.spec.costs),
                *map(Prices.total_of_bits, self.spec.bit_costs),
            )
        ]
        return all(map(moments.trials, names)) and all(
            error is None or error < self.spec.target_rse for error in errors
        )
