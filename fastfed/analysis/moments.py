"""Exact sums over trials: counts, sums, squares and products of pulls, uplinks and bits.

A summary needs no more of the trials than such sums: the mean and the standard error of
pulls + C x uplinks or pulls + c x bits, for every C and c, and the ratio and the difference of two
schedules with the errors that the paired trials give. The sums are kept as Python integers,
without any rounding. So they do not depend on how the trials are cut into batches, nor on the
batches' order, and two computers agree on every bit. Nothing but the sums is kept: memory does not
grow with the trials.

How whole numbers of up to 63 bits are multiplied and added exactly at the speed of BLAS: each is
cut into limbs of 20 bits. A product of two limbs has at most 40 bits, a sum of 2^13 products at
most 53, and doubles add whole numbers below 2^53 without rounding, in any order.

Only trials that both schedules have are paired (`fastfed.analysis.trials`).

Trials that did not end (``truncated``) have no cost: they are counted, and are in no other sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.analysis.trials import Aligned

_BITS = 20
_CHUNK = 2**13  # trials: products of limbs below 2^40, their sums below 2^53
_MOST_CHUNKS = 2**9  # partial sums below 2^62, within an int64

_Integers = npt.NDArray[np.int64]
_Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Prices:
    """The prices of a pull, an uplink and a bit.

    Total cost has the prices ``Prices.total(C)``, or ``Prices.total_of_bits(c)`` if every bit has a
    price. Then numbers are not paid for.
    """

    pull: Fraction
    uplink: Fraction
    bit: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.uplink and self.bit:
            raise ValueError("a message costs either by itself or by its bits")

    @classmethod
    def total(cls, cost: float) -> Prices:
        """Return the prices of pulls + C x uplinks."""
        return cls(Fraction(1), Fraction(cost))

    @classmethod
    def communication(cls, cost: float) -> Prices:
        """Return the prices of communication alone: C for each uplink."""
        return cls(Fraction(0), Fraction(cost))

    @classmethod
    def total_of_bits(cls, cost: float) -> Prices:
        """Return the prices of pulls + c x bits."""
        return cls(Fraction(1), Fraction(0), Fraction(cost))

    @classmethod
    def communication_of_bits(cls, cost: float) -> Prices:
        """Return the prices of c x bits."""
        return cls(Fraction(0), Fraction(0), Fraction(cost))

    @property
    def each(self) -> tuple[Fraction, Fraction, Fraction]:
        """In the order of the products."""
        return self.pull, self.uplink, self.bit

    @cached_property
    def scale(self) -> int:
        """The least common denominator of the prices."""
        return math.lcm(*(one.denominator for one in self.each))

    @cached_property
    def scaled(self) -> tuple[int, ...]:
        """The prices times ``scale``: whole numbers, which add up faster than fractions."""
        return tuple(int(one * self.scale) for one in self.each)


PULLS = Prices(Fraction(1), Fraction(0))
UPLINKS = Prices(Fraction(0), Fraction(1))
BITS = Prices(Fraction(0), Fraction(0), Fraction(1))
_KINDS = (PULLS, UPLINKS, Prices.total(1), BITS, Prices.total_of_bits(1))
"""Costs in which two schedules may differ, by which prices are not 0."""


@dataclass(frozen=True)
class Paired:
    """Exact sums of the costs x and y of two schedules over the trials that both ended."""

    count: int
    differ: int
    """In how many of the trials x and y may differ; in all others they are equal."""
    x: Fraction
    y: Fraction
    xx: Fraction
    xy: Fraction
    yy: Fraction
    x_most: Fraction
    y_most: Fraction
    """Bounds of the largest x and y."""

    @property
    def ratio(self) -> float | None:
        """mean(x) / mean(y); None if there is nothing to divide by."""
        return as_float(self.x / self.y) if self.y else None

    @property
    def ratio_sem(self) -> float | None:
        """Its standard error, by the delta method: that of the mean of x - ratio y."""
        if not self.y or self.count < 2:
            return None
        r = self.x / self.y
        squares = self.xx - 2 * r * self.xy + r * r * self.yy  # x - r y has the mean 0
        return root(squares / (self.count - 1) * self.count) / abs(as_float(self.y))

    def excess(self, limit: Fraction = Fraction(1)) -> tuple[int, Fraction, Fraction]:
        """Return count, sum and sum of squares of x - limit y.

        Only trials in which it can differ from 0 count.
        """
        count = self.differ if limit == 1 else self.count
        squares = self.xx - 2 * limit * self.xy + limit * limit * self.yy
        return count, self.x - limit * self.y, squares


class Apart(NamedTuple):
    """Differences of two schedules, one less the other, over the trials that both ended."""

    trials: int
    differ: int
    """Trials in which pulls or what was sent differ."""
    sums: tuple[int, int]
    """Of the differences in pulls and in what was sent."""
    products: tuple[int, int, int]
    """Sums of pulls squared, pulls times sent, sent squared."""
    most: tuple[int, ...]
    """The largest pulls, and the most that was sent, of the first schedule."""
    most_of_other: tuple[int, ...]


@dataclass(eq=False)
class _Sums:
    """Sums over the trials that one set of schedules ended, and no other schedule."""

    uncounted: _Integers
    """(schedule,) Trials whose bits were not counted."""
    own: npt.NDArray[np.object_]
    """(schedule, 4, 4) Products of (1, pulls, uplinks, bits) with themselves."""
    across: npt.NDArray[np.object_]
    """(schedule, partner, 3, 3) Products of (pulls, uplinks, bits) with a partner's."""
    differ: _Integers
    """(schedule, partner, kind) Trials in which a cost differs from the partner's."""
    most: _Integers
    """(schedule, 3) The largest pulls, uplinks and bits."""

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(
            self.uncounted + other.uncounted,
            self.own + other.own,
            self.across + other.across,
            self.differ + other.differ,
            np.maximum(self.most, other.most),
        )


class Moments:
    """The sums, over any number of batches.

    Every schedule is paired with each of ``partners`` (such as the yardstick, or the schedules that
    are the cheapest at some cost): pairs of all schedules would be quadratic in their number.
    Trials are summed by the set of schedules that ended them, as a rule all: so the trials that any
    given schedules ended can be had.
    """

    def __init__(self, schedules: Sequence[str], partners: Sequence[str] = ()) -> None:
        self.schedules = tuple(schedules)
        self._row = {name: row for row, name in enumerate(self.schedules)}
        self.partners = tuple(name for name in dict.fromkeys(partners) if name in self._row)
        self._place = {name: place for place, name in enumerate(self.partners)}
        self._present = np.zeros(len(self.schedules), np.int64)
        self._wrong = np.zeros(len(self.schedules), np.int64)
        self._by_ended: dict[tuple[bool, ...], _Sums] = {}

    def add(self, trials: Aligned) -> None:
        """Add a batch, whose schedules are those of these sums."""
        if not len(trials.trial):
            return
        self._present += trials.present.sum(axis=1)
        self._wrong += trials.wrong.sum(axis=1)
        patterns, of_trial = trials.ended[:, :1], np.zeros(len(trials.trial), np.int64)
        if (trials.ended != patterns).any():
            patterns, of_trial = np.unique(trials.ended, axis=1, return_inverse=True)
        for index, pattern in enumerate(patterns.T):
            self._include(tuple(pattern.tolist()), self._sum(trials, of_trial.ravel() == index))

    def _include(self, pattern: tuple[bool, ...], sums: _Sums) -> None:
        known = self._by_ended.get(pattern)
        self._by_ended[pattern] = sums if known is None else known + sums

    def _sum(self, trials: Aligned, which: _Truths) -> _Sums:
        """Sum up some trials that the same schedules ended."""
        whole = bool(which.all())
        ended, pulls, uplinks, counted = (
            one if whole else one[:, which]
            for one in (trials.ended, trials.pulls, trials.uplinks, trials.bits)
        )
        bits = np.maximum(counted, 0)
        columns = np.stack([one * ended for one in (np.ones_like(pulls), pulls, uplinks, bits)], 1)
        chosen = [self._row[name] for name in self.partners]
        across = np.zeros((len(ended), len(chosen), 3, 3), dtype=object)
        differ = np.zeros((len(ended), len(chosen), len(_KINDS)), np.int64)
        if chosen:
            across += _cross_products(columns[:, 1:], columns[chosen, 1:])
        for place, row in enumerate(chosen):
            both = ended & ended[row]
            p, u, b = (both & (one != one[row]) for one in (pulls, uplinks, counted))
            for kind, one in enumerate((p, u, p | u, b, p | b)):
                differ[:, place, kind] = one.sum(axis=1)
        return _Sums(
            (ended & (counted < 0)).sum(axis=1),
            _own_products(columns),
            across,
            differ,
            columns[:, 1:].max(axis=2),
        )

    def __add__(self, other: Moments) -> Moments:
        """Add up the sums of two sets of trials."""
        if (self.schedules, self.partners) != (other.schedules, other.partners):
            raise ValueError("sums of different schedules do not add up")
        both = Moments(self.schedules, self.partners)
        both._present = self._present + other._present
        both._wrong = self._wrong + other._wrong
        for part in (self, other):
            for pattern, sums in part._by_ended.items():
                both._include(pattern, sums)
        return both

    def common(self, schedules: Iterable[str]) -> Moments:
        """Return the same sums over the trials that all of these schedules ended.

        The numbers of trials and of errors stay those of all trials.
        """
        rows = [self._row[name] for name in schedules]
        found = Moments(self.schedules, self.partners)
        found._present, found._wrong = self._present, self._wrong
        found._by_ended = dict(self._ended(*rows))
        return found

    def _ended(self, *rows: int) -> Iterator[tuple[tuple[bool, ...], _Sums]]:
        """Yield the sums over the trials that the schedules in these rows ended, in parts."""
        for pattern, sums in self._by_ended.items():
            if all(pattern[row] for row in rows):
                yield pattern, sums

    def has_pairs(self, schedule: str) -> bool:
        """Tell whether every schedule is paired with this one."""
        return schedule in self._place

    def trials(self, schedule: str) -> int:
        """Return the number of trials of a schedule, with those that did not end."""
        return int(self._present[self._row[schedule]])

    def errors(self, schedule: str) -> int:
        """Count the trials with a wrong or missing answer, with those that did not end."""
        return int(self._wrong[self._row[schedule]])

    def ended(self, schedule: str) -> int:
        """Return the number of trials that ended."""
        row = self._row[schedule]
        return sum(int(sums.own[row, 0, 0]) for _, sums in self._ended(row))

    def counted(self, schedule: str) -> bool:
        """Tell whether the bits of every trial that ended are known."""
        row = self._row[schedule]
        return not any(sums.uncounted[row] for _, sums in self._ended(row))

    def mean(self, schedule: str, prices: Prices) -> float | None:
        """Return the mean cost of the trials that ended.

        It is None if no trial ended, or if bits have a price and were not counted.
        """
        if prices.bit and not self.counted(schedule):
            return None
        count, total, _ = self._sums(schedule, prices)
        return as_float(total / count) if count else None

    def std(self, schedule: str, prices: Prices) -> float | None:
        """Return the standard deviation of the cost of the trials that ended; None below two."""
        if prices.bit and not self.counted(schedule):
            return None
        count, total, squares = self._sums(schedule, prices)
        return root((squares - total * total / count) / (count - 1)) if count > 1 else None

    def covariance(self, schedule: str, x: Prices, y: Prices) -> float | None:
        """Return the covariance of two costs over the trials that ended; None below two trials."""
        count, one, _ = self._sums(schedule, x)
        _, other, _ = self._sums(schedule, y)
        row = self._row[schedule]
        own = sum((sums.own[row] for _, sums in self._ended(row)), np.zeros((4, 4), dtype=object))
        products = _combined(own[1:, 1:], x, y)
        return as_float((products - one * other / count) / (count - 1)) if count > 1 else None

    def sem(self, schedule: str, prices: Prices) -> float | None:
        """Return the standard error of the mean cost."""
        std = self.std(schedule, prices)
        return None if std is None else std / math.sqrt(self.ended(schedule))

    def pair(self, one: str, other: str, x: Prices, y: Prices | None = None) -> Paired:
        """Pair the costs of two schedules, at prices ``x`` and ``y`` (None: the same).

        At least one of the two must be among the partners. If bits have a price, the bits of both
        schedules must be counted.
        """
        y = x if y is None else y
        turned = other not in self._place
        row, place = (
            (self._row[other], self._place[one]) if turned else (self._row[one], self._place[other])
        )
        parts = [sums for _, sums in self._ended(self._row[one], self._row[other])]
        across = sum((sums.across[row, place] for sums in parts), np.zeros((3, 3), dtype=object))
        count, above, squares = self._sums(one, x, other)
        _, below, others = self._sums(other, y, one)
        differ = count
        if x == y:
            kinds = [tuple(map(bool, kind.each)) for kind in _KINDS]
            mine = tuple(map(bool, x.each))
            kind = kinds.index(mine) if any(mine) else 0
            differ = sum(int(sums.differ[row, place, kind]) for sums in parts)
        return Paired(
            count,
            differ,
            above,
            below,
            squares,
            _combined(across.T if turned else across, x, y),
            others,
            self.most(one, x, other),
            self.most(other, y, one),
        )

    def apart(self, one: str, other: str, sent: Prices) -> Apart:
        """Sum the differences of two schedules in pulls and in what is sent, in whole numbers.

        The same sums follow from three calls of `pair`, which take ten times as long.
        """
        turned = other not in self._place
        row, place = (
            (self._row[other], self._place[one]) if turned else (self._row[one], self._place[other])
        )
        x, y = self._row[one], self._row[other]
        c = sent.scaled.index(1)
        count = differ = p = s = pp = ps = ss = 0
        most = [[0, 0], [0, 0]]
        for _, sums in self._ended(x, y):
            mine, theirs, cross = sums.own[x], sums.own[y], sums.across[row, place]
            cross = cross.T if turned else cross
            count += mine[0, 0]
            differ += int(sums.differ[row, place, 2 * c])
            p += mine[0, 1] - theirs[0, 1]
            s += mine[0, 1 + c] - theirs[0, 1 + c]
            pp += mine[1, 1] - 2 * cross[0, 0] + theirs[1, 1]
            ps += mine[1, 1 + c] - cross[0, c] - cross[c, 0] + theirs[1, 1 + c]
            ss += mine[1 + c, 1 + c] - 2 * cross[c, c] + theirs[1 + c, 1 + c]
            for known, of in zip(most, (x, y), strict=True):
                known[:] = map(max, known, (int(sums.most[of, 0]), int(sums.most[of, c])))
        return Apart(count, differ, (p, s), (pp, ps, ss), tuple(most[0]), tuple(most[1]))

    def excess(
        self, schedule: str, prices: Prices, bound: float
    ) -> tuple[int, Fraction, Fraction, Fraction, Fraction]:
        """Return count, sum and sum of squares of the cost less ``bound``, and limits.

        The limits are those of a further trial: see `fastfed.analysis.intervals.mean_tails`.
        """
        count, total, squares = self._sums(schedule, prices)
        b = Fraction(bound)
        scatter = squares - 2 * b * total + count * b * b
        return count, total - count * b, scatter, -b, self.most(schedule, prices)

    def most(self, schedule: str, prices: Prices, beside: str | None = None) -> Fraction:
        """Bound the largest cost of a trial that ended (that both schedules ended).

        The bound is the cost of the largest pulls, uplinks and bits, which may be those of
        different trials.
        """
        row = self._row[schedule]
        rows = (row,) if beside is None else (row, self._row[beside])
        parts = [sums.most[row].tolist() for _, sums in self._ended(*rows)]
        most = [max(column) for column in zip([0, 0, 0], *parts, strict=True)]
        return Fraction(sum(map(mul, prices.scaled, most)), prices.scale)

    def _sums(
        self, schedule: str, prices: Prices, beside: str | None = None
    ) -> tuple[int, Fraction, Fraction]:
        """Count, sum and sum of squares over the trials that ended (that both ended)."""
        row = self._row[schedule]
        rows = (row,) if beside is None else (row, self._row[beside])
        own = sum((sums.own[row] for _, sums in self._ended(*rows)), np.zeros((4, 4), dtype=object))
        total = Fraction(sum(map(mul, prices.scaled, own[0, 1:].tolist())), prices.scale)
        return int(own[0, 0]), total, _combined(own[1:, 1:], prices, prices)


class Halves:
    """The same sums over the trials with even and with odd numbers.

    A choice that is made with one half, such as the best of many periods, is judged with the other
    half.
    """

    def __init__(self, schedules: Sequence[str], partners: Sequence[str] = ()) -> None:
        self.even, self.odd = Moments(schedules, partners), Moments(schedules, partners)

    def add(self, trials: Aligned) -> None:
        self.even.add(trials.half(odd=False))
        self.odd.add(trials.half(odd=True))

    @property
    def all(self) -> Moments:
        """The sums over both halves."""
        return self.even + self.odd


def as_float(number: Fraction | int, over: int = 1) -> float:
    """Return the double nearest to a number, or to a quotient of whole numbers."""
    try:
        return float(number) if over == 1 else number / over  # type: ignore[return-value]
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def root(number: Fraction) -> float:
    """Return the square root, also of numbers that are too large for a double."""
    exponent = max(0, (number.numerator.bit_length() - number.denominator.bit_length()) // 2 - 400)
    scaled = math.sqrt(number / Fraction(4) ** exponent)
    return as_float(Fraction(scaled) * 2**exponent)


def _combined(products: npt.NDArray[np.object_], x: Prices, y: Prices) -> Fraction:
    """Return the sum of x times y, from the products of pulls, uplinks and bits."""
    total = sum(
        a * b * one
        for a, row in zip(x.scaled, products.tolist(), strict=True)
        if a
        for b, one in zip(y.scaled, row, strict=True)
        if b
    )
    return Fraction(total, x.scale * y.scale)


def _own_products(columns: _Integers) -> npt.NDArray[np.object_]:
    """Sum products of columns over the trials: (schedule, column, column)."""
    return _summed(columns, columns, lambda a, b: np.matmul(a, b.transpose(0, 2, 1)))


def _cross_products(columns: _Integers, others: _Integers) -> npt.NDArray[np.object_]:
    """Sum products of columns of two schedules: (schedule, other, column, column)."""

    def multiply(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        flat = a.reshape(-1, a.shape[-1]) @ b.reshape(-1, b.shape[-1]).T
        return flat.reshape(*a.shape[:2], *b.shape[:2]).transpose(0, 2, 1, 3)

    return _summed(columns, others, multiply)


def _summed(
    columns: _Integers, others: _Integers, multiply: Callable[..., Any]
) -> npt.NDArray[np.object_]:
    """Sum the products limb by limb in doubles, and combine the limbs in Python's integers."""
    width = columns.shape[1]
    limbs = max(
        1, -(-int(max(columns.max(initial=0), others.max(initial=0))).bit_length() // _BITS)
    )
    total: Any = 0
    partial: Any = 0
    chunks = range(0, columns.shape[-1], _CHUNK)
    for number, first in enumerate(chunks, 1):
        part = slice(first, first + _CHUNK)
        partial = partial + multiply(
            _cut(columns[..., part], limbs), _cut(others[..., part], limbs)
        ).astype(np.int64)
        if number % _MOST_CHUNKS == 0 or number == len(chunks):
            total = total + partial.astype(object)
            partial = 0
    shifts = np.array([1 << (_BITS * limb) for limb in range(limbs)], dtype=object)
    shape = (*total.shape[:-2], width, limbs, width, limbs)
    products = total.reshape(shape) * shifts[:, None, None] * shifts
    return np.asarray(products.sum(axis=(-3, -1)), dtype=object)


def _cut(columns: _Integers, limbs: int) -> npt.NDArray[np.float64]:
    """Split whole numbers into limbs, as doubles: (schedule, column x limb, trial)."""
    cut = np.stack([columns >> (_BITS * limb) & (2**_BITS - 1) for limb in range(limbs)], axis=2)
    schedules, width, trials = columns.shape
    return cut.reshape(schedules, width * limbs, trials).astype(np.float64)
