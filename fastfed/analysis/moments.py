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
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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


def kept(values: _Floats, where: _Truths) -> _Floats:
    """Return values (..., column, trial), 0 at the trials that do not count."""
    return values if where.all() else np.where(where[..., None, :], values, 0.0)


def largest(values: _Floats, where: _Truths) -> _Floats:
    """Return the largest values (..., column) of the trials that count."""
    found: _Floats = kept(values, where).max(axis=-1, initial=0.0)
    return found


@dataclass(frozen=True, eq=False)
class Pairs:
    """Sums over the trials that both a schedule and a partner ended, for each schedule."""

    sums: Sums
    """(schedule,) Of the partner's counts, then of the schedule's less the partner's."""
    most: _Floats
    """(2, schedule, column) The partner's and the schedule's largest counts."""
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
        most = [largest(one, both) for one in (np.broadcast_to(beside, values.shape), values)]
        return cls(Sums.of(both, beside, apart), np.stack(most), differ.reshape(-1, 1 << columns))

    def __add__(self, other: Pairs) -> Pairs:
        """Add the sums of two sets of trials."""
        most = np.maximum(self.most, other.most)
        return Pairs(self.sums + other.sums, most, self.differ + other.differ)


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

    def __add__(self, other: CellSums) -> CellSums:
        """Add the sums of two sets of trials."""
        return CellSums(
            self.present + other.present,
            self.wrong + other.wrong,
            self.own + other.own,
            np.maximum(self.most, other.most),
            tuple(one + two for one, two in zip(self.pairs, other.pairs, strict=True)),
        )


@dataclass(frozen=True)
class Paired:
    """Sums of the costs x and y of two schedules over the trials that both ended."""

    count: int
    differ: int
    """In how many of the trials x and y may differ; in all others they are equal."""
    y: float
    """Mean of y,"""
    d: float
    """and of d = x - y."""
    yy: float
    yd: float
    dd: float
    """Sums of products of deviations from these means."""
    x_most: float
    y_most: float
    """Bounds of the largest x and y."""

    @property
    def means(self) -> tuple[float, float]:
        """mean(x) and mean(y)."""
        return self.y + self.d, self.y

    @property
    def ratio(self) -> float | None:
        """mean(x) / mean(y); None if there is nothing to divide by."""
        return (self.y + self.d) / self.y if self.y else None

    @property
    def ratio_sem(self) -> float | None:
        """Its standard error, by the delta method: that of the mean of x - ratio y."""
        if not self.y or self.count < 2:
            return None
        _, scatter = self.less(self.means[0] / self.y)
        return math.sqrt(scatter / (self.count - 1) / self.count) / abs(self.y)

    def less(self, limit: float) -> tuple[float, float]:
        """Return the mean of x - limit y, and the scatter about it."""
        a = 1.0 - limit
        return self.d + a * self.y, max(0.0, self.dd + 2 * a * self.yd + a * a * self.yy)

    def excess(self, limit: float = 1.0) -> tuple[int, float, float, float, float]:
        """Return count, mean and scatter of x - limit y, and the limits of a further trial.

        Only trials in which it can differ from 0 count. For the limits see
        `fastfed.analysis.intervals.mean_tails`.
        """
        mean, scatter = self.less(limit)
        count = self.differ if limit == 1 else self.count
        if count != self.count:
            mean, scatter = _where_it_differs(self.count, count, mean, mean, scatter)
        return count, mean, scatter, -limit * self.y_most, self.x_most


@dataclass(frozen=True)
class Apart:
    """Differences of two schedules, one less the other, over the trials that both ended.

    They are differences in what has fixed prices, and in what is sent.
    """

    trials: int
    differ: int
    """Trials in which the two differ. The numbers below are over these trials."""
    means: tuple[float, float]
    scatter: tuple[float, float, float]
    """Sums of products of deviations: base with base, base with sent, sent with sent."""
    most: tuple[float, float]
    """The largest base cost, and the most that was sent, of the first schedule,"""
    most_of_other: tuple[float, float]


def _where_it_differs(
    count: int, differ: int, x: float, y: float, scatter: float
) -> tuple[float, float]:
    """Restrict a mean and a scatter of products to the trials outside which both values are 0."""
    if not differ:
        return 0.0, 0.0
    share = count / differ
    left = scatter + count * x * y - differ * (share * x) * (share * y)
    # what is left may be rounding of what cancels
    return share * x, left if abs(left) > 1e-15 * abs(scatter + count * x * y) else 0.0


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
        self._place = {name: place for place, name in enumerate(self.partners)}
        self._common = None if common is None else [self._row[name] for name in common]
        self.sums = self._of(Aligned.of({}, self.schedules))

    def add(self, trials: Aligned) -> None:
        """Add a block of trials, whose schedules are those of these sums."""
        self.sums += self._of(trials)

    def _of(self, trials: Aligned) -> CellSums:
        """Sum a block of trials."""
        usable = trials.ended
        if self._common is not None:
            usable = usable & trials.right[self._common].all(axis=0)
        values, paired = trials.values(self.columns), trials.values(self.paired)
        return CellSums(
            trials.present.sum(axis=1),
            trials.wrong.sum(axis=1),
            Sums.of(usable, values),
            largest(values, usable),
            tuple(Pairs.of(paired, usable, self._row[name]) for name in self.partners),
        )

    def __add__(self, other: Moments) -> Moments:
        """Add up the sums of two sets of trials."""
        both = copy(self)
        both.sums = self.sums + other.sums
        return both

    @property
    def never_failed(self) -> bool:
        """Tell whether every schedule answered every trial of the cell rightly."""
        counts = {self.trials(name) for name in self.schedules}
        return len(counts) < 2 and not any(map(self.errors, self.schedules))

    def has_pairs(self, schedule: str) -> bool:
        """Tell whether every schedule is paired with this one."""
        return schedule in self._place

    def trials(self, schedule: str) -> int:
        """Return the number of trials of a schedule, with those that did not end."""
        return int(self.sums.present[self._row[schedule]])

    def errors(self, schedule: str) -> int:
        """Count the trials with a wrong or missing answer, with those that did not end."""
        return int(self.sums.wrong[self._row[schedule]])

    def ended(self, schedule: str) -> int:
        """Return the number of trials that ended, of the common ones if these alone have costs."""
        return int(self.sums.own.count[self._row[schedule]])

    def has_cost(self, schedule: str, prices: Prices) -> bool:
        """Tell whether every count that has a price is known."""
        return not math.isnan(self._mean(self._row[schedule], prices))

    def _mean(self, row: int, prices: Prices) -> float:
        paid = prices.along(self.columns)
        return float(paid[paid != 0] @ self.sums.own.mean[row][paid != 0])

    def mean(self, schedule: str, prices: Prices) -> float | None:
        """Return the mean cost of the trials that ended.

        It is None if no trial ended, or if a count that has a price is not known.
        """
        mean = self._mean(self._row[schedule], prices)
        return None if math.isnan(mean) or not self.ended(schedule) else mean

    def described(self, schedule: str) -> tuple[_Floats, _Floats]:
        """Return the means and the covariances of all columns over the trials that ended.

        They are NaN for counts that are not known, and for too few trials.
        """
        row, ended = self._row[schedule], self.ended(schedule)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(ended > 0, self.sums.own.mean[row], np.nan)
            return means, np.where(ended > 1, self.sums.own.scatter[row], np.nan) / (ended - 1)

    def covariance(self, schedule: str, x: Prices, y: Prices) -> float | None:
        """Return the covariance of two costs over the trials that ended; None below two trials."""
        if self.ended(schedule) < 2 or not all(self.has_cost(schedule, one) for one in (x, y)):
            return None
        own, row = self.sums.own, self._row[schedule]
        a, b = (one.along(self.columns) for one in (x, y))
        return _form(own.scatter[row], a, b) / (self.ended(schedule) - 1)

    def std(self, schedule: str, prices: Prices) -> float | None:
        """Return the standard deviation of the cost of the trials that ended; None below two."""
        variance = self.covariance(schedule, prices, prices)
        return None if variance is None else math.sqrt(max(0.0, variance))

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
        row, paid = self._row[schedule], prices.along(self.columns)
        own = self.sums.own
        scatter = max(0.0, _form(own.scatter[row], paid, paid))
        mean, most = self._mean(row, prices), _dot(paid, self.sums.most[row])
        return int(own.count[row]), mean - bound, scatter, -bound, most

    def pair(self, one: str, other: str, x: Prices, y: Prices | None = None) -> Paired:
        """Pair the costs of two schedules, at prices ``x`` and ``y`` (None: the same).

        At least one of the two must be among the partners, and all counts that have a price known.
        """
        y = x if y is None else y
        turned = other not in self._place
        partner, row = (one, other) if turned else (other, one)
        pairs, at = self.sums.pairs[self._place[partner]], self._row[row]
        a, b = (each.along(self.paired) for each in (x, y))
        none = np.zeros_like(a)
        # as forms of the partner's counts and the differences
        paid_x = np.concatenate([a, none if turned else a])
        paid_y = np.concatenate([b, b if turned else none])
        paid = paid_x - paid_y
        mean, scatter = pairs.sums.mean[at], pairs.sums.scatter[at]
        of_partner, most = pairs.most[:, at]
        count = int(pairs.sums.count[at])
        return Paired(
            count,
            self._differing(pairs.differ[at], x.names) if x == y else count,
            _dot(paid_y, mean),
            _dot(paid, mean),
            _form(scatter, paid_y, paid_y),
            _form(scatter, paid_y, paid),
            _form(scatter, paid, paid),
            _dot(a, of_partner if turned else most),
            _dot(b, most if turned else of_partner),
        )

    def apart(self, some: Sequence[str], other: str, unit: Unit) -> list[Apart]:
        """Sum the differences of schedules from a partner, at fixed prices and in what is sent."""
        pairs = self.sums.pairs[self._place[other]]
        base, sent = (one.along(self.paired) for one in (unit.base, unit.alone))
        none = np.zeros_like(base)
        forms = [np.concatenate([none, one]) for one in (base, sent)]
        found = []
        for row in (self._row[name] for name in some):
            count = int(pairs.sums.count[row])
            differ = self._differing(pairs.differ[row], (*unit.base.names, *unit.alone.names))
            p, s = (_dot(one, pairs.sums.mean[row]) for one in forms)
            scatter = pairs.sums.scatter[row]
            (base_mean, pp), (_, ps), (sent_mean, ss) = (
                _where_it_differs(count, differ, x, y, _form(scatter, forms[i], forms[j]))
                for x, y, i, j in ((p, p, 0, 0), (p, s, 0, 1), (s, s, 1, 1))
            )
            theirs, most = pairs.most[:, row]
            found.append(
                Apart(
                    count,
                    differ,
                    (base_mean, sent_mean),
                    (max(0.0, pp), ps, max(0.0, ss)),
                    (_dot(base, most), _dot(sent, most)),
                    (_dot(base, theirs), _dot(sent, theirs)),
                )
            )
        return found

    def _differing(self, counts: _Integers, names: Sequence[str]) -> int:
        """Count the pairs that differ in any of some columns."""
        digits = sum(1 << self.paired.index(name) for name in names)
        return int(counts[np.arange(len(counts)) & digits != 0].sum())


def _dot(paid: _Floats, counts: _Floats) -> float:
    """Add up prices times counts, leaving out counts without a price."""
    return float(paid[paid != 0] @ counts[paid != 0])


def _form(scatter: _Floats, x: _Floats, y: _Floats) -> float:
    """Return the scatter of two costs, from that of the columns that have a price."""
    return float(x[x != 0] @ scatter[np.ix_(x != 0, y != 0)] @ y[y != 0])


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
