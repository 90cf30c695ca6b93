"""Sums over trials, by the names of counted columns: counts, means, scatter and maxima.

An answer needs no more of the trials than such sums: the mean and the standard error of every cost
that is a sum of price times count (`fastfed.analysis.prices`), and the ratio and the difference of
two schedules with the errors that the paired trials give. Memory does not grow with the trials.

Sums are doubles. The sums of a block of trials are centred at its own means, and two sums are
merged by the rule of Chan, Golub and LeVeque (1979). Blocks are cut at fixed trial numbers
(`fastfed.analysis.trials.blocks`) and added in order, so no bit depends on files, threads or
batches. Of a pair the differences are summed beside the partner's counts, and not the schedule's
own: nearly equal schedules would lose digits.

Only trials that both schedules have are paired. Trials that did not end (``truncated``) have no
cost: they are counted, and are in no other sum. A count that is not known (bits that were not
counted, a column that older rows lack) makes the sums of its column NaN, and those of no other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfed.analysis.paired import Paired
from fastfed.analysis.prices import Prices, Unit
from fastfed.analysis.trials import Aligned
from fastfed.model.counts import COUNTS

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]
_Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sums:
    """Count, means and scatter about the means of columns, for arrays of sets of trials."""

    count: _Integers
    """(...,)"""
    mean: _Floats
    """(..., column)"""
    scatter: _Floats
    """(..., column, column) Sums of products of deviations from the means."""

    @classmethod
    def of(cls, where: _Truths, *parts: _Floats) -> Sums:
        """Sum the values (..., column, trial) of the trials (..., trial) that count.

        The columns of all parts stand one after the other. Where all trials count, a part that is
        the same for many sets is summed once.
        """
        count = where.sum(axis=-1)
        divisor = max(1, where.shape[-1]) if where.all() else np.maximum(count, 1)[..., None]
        size = parts[0].shape[-2]
        mean = np.empty((*count.shape, size * len(parts)))
        scatter = np.empty((*mean.shape, mean.shape[-1]))
        centred = []
        for place, values in enumerate(parts):
            middle = kept(values, where).sum(axis=-1) / divisor
            mean[..., size * place : size * (place + 1)] = middle
            centred.append(kept(values - middle[..., None], where))
        # a row times a matrix takes a third of the time of a product of two thin matrices
        for row in range(mean.shape[-1]):
            place, column = divmod(row, size)
            one = centred[place][..., column : column + 1, :]
            for other in range(place, len(parts)):
                first = column if other == place else 0
                some = slice(size * other + first, size * (other + 1))
                products = one @ centred[other][..., first:, :].swapaxes(-1, -2)
                scatter[..., row, some] = scatter[..., some, row] = products[..., 0, :]
        return cls(count, mean, scatter)

    def __add__(self, other: Sums) -> Sums:
        """Merge the sums of two sets of trials."""
        count = self.count + other.count
        share = other.count / np.maximum(count, 1)
        step = other.mean - self.mean
        between = (self.count * share)[..., None, None] * step[..., :, None] * step[..., None, :]
        mean = self.mean + share[..., None] * step
        return Sums(count, mean, self.scatter + other.scatter + between)

    @classmethod
    def stacked(cls, some: Sequence[Sums]) -> Sums:
        """Put several arrays of sums side by side, along a new first axis."""
        return cls(
            np.stack([one.count for one in some]),
            np.stack([one.mean for one in some]),
            np.stack([one.scatter for one in some]),
        )

    def __getitem__(self, at: int) -> Sums:
        """Return the sums of one set."""
        return Sums(self.count[at], self.mean[at], self.scatter[at])

    def dot(self, paid: _Floats) -> _Floats:
        """Return the mean (...,) of a cost; columns without a price may be unknown."""
        return np.asarray((self.mean[..., paid != 0] * paid[paid != 0]).sum(axis=-1))

    def form(self, x: _Floats, y: _Floats) -> _Floats:
        """Return the scatter (...,) of two costs."""
        some = self.scatter[..., x != 0, :][..., y != 0]
        return np.asarray((x[x != 0, None] * y[y != 0] * some).sum(axis=(-2, -1)))


def kept(values: _Floats, where: _Truths) -> _Floats:
    """Return values (..., column, trial), 0 at the trials that do not count."""
    return values if where.all() else np.where(where[..., None, :], values, 0.0)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Sums over the trials that both a schedule and a partner ended, for each schedule."""

    sums: Sums
    """(schedule,) Of the partner's counts, then of the schedule's less the partner's."""
    differ: _Integers
    """(schedule, 2^columns) Pairs by the columns in which they differ, as binary digits."""

    @classmethod
    def of(cls, values: _Floats, usable: _Truths, partner: int) -> Pairs:
        """Pair the values (schedule, column, trial) of the usable trials with one schedule's."""
        both = usable & usable[partner]
        beside = values[partner]
        apart = values - beside
        schedules, columns = values.shape[:2]
        # schedules are numbered, so that one histogram counts the digits of all of them
        codes = np.zeros(both.shape, np.int32)
        for digit in range(columns):
            codes += (both & (apart[:, digit] != 0)) * np.int32(1 << digit)
        codes += (np.arange(schedules, dtype=np.int32) << columns)[:, None]
        differ = np.bincount(codes.ravel(), minlength=schedules << columns)
        return cls(Sums.of(both, beside, apart), differ.reshape(-1, 1 << columns))

    def __add__(self, other: Pairs) -> Pairs:
        """Add the sums of two sets of trials."""
        return Pairs(self.sums + other.sums, self.differ + other.differ)


@dataclass(frozen=True, eq=False)
class CellSums:
    """All sums over some trials of a cell; those of other trials of the cell can be added."""

    present: _Integers
    """(schedule,) Trials, with those that did not end."""
    wrong: _Integers
    """(schedule,) Trials with a wrong or missing answer, with those that did not end."""
    own: Sums
    """(schedule,) Of the counts of each schedule."""
    most: _Floats
    """(schedule, column) The largest counts."""
    pairs: tuple[Pairs, ...]
    """With each partner."""

    @classmethod
    def of(
        cls,
        trials: Aligned,
        usable: _Truths,
        partners: Sequence[int],
        columns: Sequence[str],
        paired: Sequence[str],
    ) -> CellSums:
        """Sum a block of trials, of which the usable ones have a cost."""
        values, beside = trials.values(columns), trials.values(paired)
        return cls(
            trials.present.sum(axis=1),
            trials.wrong.sum(axis=1),
            Sums.of(usable, values),
            kept(values, usable).max(axis=-1, initial=0.0),
            tuple(Pairs.of(beside, usable, row) for row in partners),
        )

    def __add__(self, other: CellSums) -> CellSums:
        """Add the sums of two sets of trials."""
        return CellSums(
            self.present + other.present,
            self.wrong + other.wrong,
            self.own + other.own,
            np.maximum(self.most, other.most),
            tuple(one + two for one, two in zip(self.pairs, other.pairs, strict=True)),
        )


@lru_cache(maxsize=16)
def _none(schedules: tuple[str, ...], *more: Any) -> CellSums:
    """Return the sums of no trials, which take as long to make as those of a few."""
    trials = Aligned.of({}, schedules)
    return CellSums.of(trials, trials.ended, *more)


class Moments:
    """Sums of the trials of a cell: a collector of its blocks, and the costs that follow.

    Every schedule is paired with each of ``partners`` (such as the yardstick, or the schedules that
    are the cheapest at some cost): pairs of all schedules would be quadratic in their number. Pairs
    have the sums of the columns ``paired`` (None: of all). With ``common``, only the trials that
    all of these schedules answered rightly have a cost.
    """

    def __init__(
        self,
        schedules: Sequence[str],
        partners: Sequence[str] = (),
        columns: Sequence[str] = tuple(COUNTS),
        common: Sequence[str] | None = None,
        paired: Sequence[str] | None = None,
    ) -> None:
        self.schedules, self.columns = tuple(schedules), tuple(columns)
        self.paired = self.columns if paired is None else tuple(paired)
        self._row = {name: row for row, name in enumerate(self.schedules)}
        self.partners = tuple(name for name in dict.fromkeys(partners) if name in self._row)
        self._rows = tuple(self._row[name] for name in self.partners)
        self._common = None if common is None else [self._row[name] for name in common]
        self.sums = _none(self.schedules, self._rows, self.columns, self.paired)

    def add(self, trials: Aligned) -> None:
        """Add a block of trials; other schedules are left out."""
        trials = trials.only(self.schedules)
        usable = trials.ended
        if self._common is not None:
            usable = usable & trials.right[self._common].all(axis=0)
        found = CellSums.of(trials, usable, self._rows, self.columns, self.paired)
        self.sums = self.sums + found if self.sums.present.any() else found

    def __add__(self, other: Moments) -> Moments:
        """Add up the sums of two sets of trials."""
        both = copy(self)
        both.sums = self.sums + other.sums
        return both

    @property
    def never_failed(self) -> bool:
        """Tell whether every schedule answered every trial of the cell rightly."""
        return not self.sums.wrong.any() and len(set(self.sums.present.tolist())) < 2

    def trials(self, schedule: str) -> int:
        """Return the number of trials of a schedule, with those that did not end."""
        return int(self.sums.present[self._row[schedule]])

    def errors(self, schedule: str) -> int:
        """Count the trials with a wrong or missing answer, with those that did not end."""
        return int(self.sums.wrong[self._row[schedule]])

    def ended(self, schedule: str) -> int:
        """Return the number of trials that ended, of the common ones if these alone have costs."""
        return int(self.sums.own.count[self._row[schedule]])

    def _own(self, schedule: str) -> Sums:
        return self.sums.own[self._row[schedule]]

    def mean(self, schedule: str, prices: Prices) -> float | None:
        """Return the mean cost of the trials that ended.

        It is None if no trial ended, or if a count that has a price is not known.
        """
        mean = float(self._own(schedule).dot(prices.along(self.columns)))
        return None if math.isnan(mean) or not self.ended(schedule) else mean

    def described(self, schedule: str) -> tuple[_Floats, _Floats]:
        """Return the means and the covariances of all columns over the trials that ended.

        They are NaN for counts that are not known, and for too few trials.
        """
        own, ended = self._own(schedule), self.ended(schedule)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(ended > 0, own.mean, np.nan)
            return means, np.where(ended > 1, own.scatter, np.nan) / (ended - 1)

    def std(self, schedule: str, prices: Prices) -> float | None:
        """Return the standard deviation of the cost of the trials that ended; None below two."""
        ended, paid = self.ended(schedule), prices.along(self.columns)
        if ended < 2 or self.mean(schedule, prices) is None:
            return None
        return math.sqrt(max(0.0, float(self._own(schedule).form(paid, paid))) / (ended - 1))

    def sem(self, schedule: str, prices: Prices) -> float | None:
        """Return the standard error of the mean cost."""
        std = self.std(schedule, prices)
        return None if std is None else std / math.sqrt(self.ended(schedule))

    def excess(
        self, schedule: str, prices: Prices, bound: float
    ) -> tuple[int, float, float, float, float]:
        """Return count, mean and scatter of the cost less ``bound``, and limits.

        The limits are those of a further trial: see `fastfed.analysis.intervals.mean_tails`.
        """
        own, paid = self._own(schedule), prices.along(self.columns)
        mean, scatter = float(own.dot(paid)), max(0.0, float(own.form(paid, paid)))
        return int(own.count), mean - bound, scatter, -bound, self._most(schedule, prices)

    def _most(self, schedule: str, prices: Prices) -> float:
        """Return a bound of the largest cost of a trial."""
        most = dict(zip(self.columns, self.sums.most[self._row[schedule]].tolist(), strict=True))
        return math.fsum(price * most[name] for name, price in prices.items)

    def pair(self, one: str, other: str, x: Prices, y: Prices | None = None) -> Paired:
        """Pair the costs of two schedules, at prices ``x`` and ``y`` (None: the same).

        The other one must be among the partners, and all counts that have a price known.
        """
        y = x if y is None else y
        a, b = (each.along(self.paired) for each in (x, y))
        x_most, y_most = self._most(one, x), self._most(other, y)
        limits = (-y_most, -y_most), (x_most, 0.0)
        difference, less = np.concatenate([a - b, a]), np.concatenate([-b, 0 * a])
        found = self._paired(one, other, difference, less, *limits)
        differ = self._differing(one, other, x.names) if x == y else found.pairs
        return replace(found, differ=differ)

    def apart(self, one: str, other: str, unit: Unit, needed: int = 0) -> Paired:
        """Pair the differences of two schedules at fixed prices, and in what is sent."""
        base, sent = (
            np.concatenate([0 * along, along])
            for along in (each.along(self.paired) for each in (unit.base, unit.alone))
        )
        (low, low_sent), most = (
            (self._most(name, unit.base), self._most(name, unit.alone)) for name in (other, one)
        )
        found = self._paired(one, other, base, sent, (-low, -low_sent), most)
        differ = self._differing(one, other, (*unit.base.names, *unit.alone.names))
        return replace(found, differ=differ, support=differ, needed=needed)

    def _paired(
        self,
        one: str,
        other: str,
        u: _Floats,
        v: _Floats,
        least: tuple[float, float],
        most: tuple[float, float],
    ) -> Paired:
        """Make pairs of two forms of the partner's counts and the differences."""
        sums = self.sums.pairs[self.partners.index(other)].sums[self._row[one]]
        count = int(sums.count)
        return Paired(
            count,
            count,
            count,
            float(sums.dot(u)),
            float(sums.dot(v)),
            float(sums.form(u, u)),
            float(sums.form(u, v)),
            float(sums.form(v, v)),
            least,
            most,
        )

    def _differing(self, one: str, other: str, names: Sequence[str]) -> int:
        """Count the pairs that differ in any of some columns."""
        counts = self.sums.pairs[self.partners.index(other)].differ[self._row[one]]
        digits = sum(1 << self.paired.index(name) for name in names)
        return int(counts[np.arange(len(counts)) & digits != 0].sum())


class Halves:
    """The same sums over the trials with even and with odd numbers.

    A choice that is made with one half, such as the best of many periods, is judged with the other
    half.
    """

    def __init__(
        self,
        schedules: Sequence[str],
        partners: Sequence[str] = (),
        common: Sequence[str] | None = None,
    ) -> None:
        columns = ("pulls", "uplinks")
        self.even, self.odd = (Moments(schedules, partners, columns, common) for _ in range(2))

    def add(self, trials: Aligned) -> None:
        self.even.add(trials.half(odd=False))
        self.odd.add(trials.half(odd=True))

    @property
    def all(self) -> Moments:
        """The sums over both halves."""
        return self.even + self.odd
