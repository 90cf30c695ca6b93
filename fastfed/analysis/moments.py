"""Exact sums over trials: counts, sums, squares and products of pulls, uplinks and bits.

A summary needs no more of the trials than such sums: the mean and the standard error of
pulls + C x uplinks or pulls + c x bits, for every C and c, and the ratio and the difference of two
schedules with the errors that the paired trials give. The sums are whole numbers, without any
rounding. So they do not depend on how the trials are cut into batches, nor on the
batches' order, and two computers agree on every bit. Nothing but the sums is kept: memory does not
grow with the trials.

How whole numbers of up to 63 bits are multiplied and added exactly at the speed of BLAS: each is
cut into limbs of 20 bits. A product of two limbs has at most 40 bits, a sum of 2^11 products at
most 51, and doubles add whole numbers below 2^53 without rounding, in any order. (With 2^13
products BLAS starts threads, which take twice the time.) A sum is kept as three words of 60 bits,
and becomes one of Python's integers when it is asked for.

Only trials that both schedules have are paired (`fastfed.analysis.trials`).

Trials that did not end (``truncated``) have no cost: they are counted, and are in no other sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from operator import mul
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.analysis.trials import Aligned

_BITS = 20
_CHUNK = 2**11  # trials: products of limbs below 2^40, their sums below 2^51
_MOST_CHUNKS = 2**9  # four partial sums, below 2^62 together, are within an int64
_LIMBS_OF_WORD = 3
_WORD = _BITS * _LIMBS_OF_WORD
_WORDS = 3  # 180 bits: 2^32 products of 126 bits need 158

_Integers = npt.NDArray[np.int64]
_Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Prices:
    """The prices of a pull, an uplink and a bit: whole numbers, all to be divided by ``scale``.

    Total cost has the prices ``UPLINK.total(C)``, or ``BIT.total(c)`` if every bit has a price.
    Then numbers are not paid for.
    """

    pull: int
    uplink: int
    bit: int = 0
    scale: int = 1

    def __post_init__(self) -> None:
        if self.uplink and self.bit:
            raise ValueError("a message costs either by itself or by its bits")

    @classmethod
    def total(cls, cost: float) -> Prices:
        """Return the prices of pulls + C x uplinks."""
        return UPLINK.total(cost)

    @property
    def each(self) -> tuple[int, int, int]:
        """Prices of a pull, an uplink and a bit, in the order of the products."""
        return self.pull, self.uplink, self.bit

    def spent(self, *columns: _Integers) -> npt.NDArray[np.float64]:
        """Return the cost of each trial, from its pulls, uplinks and bits, rounded to doubles."""
        shares = (price / self.scale for price in self.each)
        paid = [share * column for share, column in zip(shares, columns, strict=True) if share]
        return np.asarray(sum(paid), dtype=np.float64)


PULLS = Prices(1, 0)
UPLINKS = Prices(0, 1)
BITS = Prices(0, 0, 1)


class Unit(NamedTuple):
    """Unit of communication that has a price: an uplink, or a bit."""

    alone: Prices
    column: str
    """Of a cost of this kind, in frames."""

    def communication(self, cost: float) -> Prices:
        """Return the prices of communication alone: ``cost`` for each unit."""
        price, scale = float(cost).as_integer_ratio()
        return Prices(0, price * self.alone.uplink, price * self.alone.bit, scale)

    def total(self, cost: float) -> Prices:
        """Return the prices of a total: 1 for a pull, and ``cost`` for the unit."""
        paid = self.communication(cost)
        return replace(paid, pull=paid.scale)


UPLINK = Unit(UPLINKS, "cost")
BIT = Unit(BITS, "bit_cost")

Cost = tuple[float, Unit]
"""A cost of an uplink or of a bit."""


def costs_of(uplinks: Iterable[float], bits: Iterable[float]) -> list[Cost]:
    """List the costs of an uplink and of a bit, each with its unit."""
    return [*((float(one), UPLINK) for one in uplinks), *((float(one), BIT) for one in bits)]


_KINDS = ((1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1), (1, 0, 1))
"""Costs in which two schedules may differ, by which prices are not 0."""


@dataclass(frozen=True)
class Paired:
    """Exact sums of the costs x and y of two schedules over the trials that both ended.

    They are whole numbers: costs in units of 1 / ``scale``, products in units of 1 / ``scale``^2.
    """

    count: int
    differ: int
    """In how many of the trials x and y may differ; in all others they are equal."""
    scale: int
    x: int
    y: int
    xx: int
    xy: int
    yy: int
    x_most: int
    y_most: int
    """Bounds of the largest x and y."""

    @property
    def means(self) -> tuple[float, float]:
        """mean(x) and mean(y)."""
        return as_float(self.x, self.count * self.scale), as_float(self.y, self.count * self.scale)

    @property
    def ratio(self) -> float | None:
        """mean(x) / mean(y); None if there is nothing to divide by."""
        return as_float(self.x, self.y) if self.y else None

    @property
    def ratio_sem(self) -> float | None:
        """Its standard error, by the delta method: that of the mean of x - ratio y."""
        x, y, n = self.x, self.y, self.count
        if not y or n < 2:
            return None
        squares = y * y * self.xx - 2 * x * y * self.xy + x * x * self.yy  # x - r y has the mean 0
        unit = y * self.scale
        return root(squares * n, unit * unit * (n - 1)) / abs(as_float(y, self.scale))

    def excess(self, limit: Fraction = Fraction(1)) -> tuple[int, int, int, int, int]:
        """Return count, sum and sum of squares of x - limit y in some unit, and limits in it.

        Only trials in which it can differ from 0 count. The limits are those of a further trial:
        see `fastfed.analysis.intervals.mean_tails`.
        """
        count = self.differ if limit == 1 else self.count
        a, b = limit.denominator, limit.numerator
        squares = a * a * self.xx - 2 * a * b * self.xy + b * b * self.yy
        return count, a * self.x - b * self.y, squares, -b * self.y_most, a * self.x_most


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
    own: _Integers
    """(word, schedule, 4, 4) Products of (1, pulls, uplinks, bits) with themselves."""
    across: _Integers
    """(word, schedule, partner, 3, 3) Products of (pulls, uplinks, bits) with a partner's."""
    differ: _Integers
    """(schedule, partner, kind) Trials in which a cost differs from the partner's."""
    most: _Integers
    """(schedule, 3) The largest pulls, uplinks and bits."""

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(
            self.uncounted + other.uncounted,
            _carried(self.own + other.own),
            _carried(self.across + other.across),
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
        self._own_of: dict[tuple[int, ...], list[list[int]]] = {}  # what `_own` has found

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
        self._own_of.clear()

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
        differ = np.zeros((len(ended), len(chosen), len(_KINDS)), np.int64)
        for place, row in enumerate(chosen):
            both = ended & ended[row]
            p, u, b = (both & (one != one[row]) for one in (pulls, uplinks, counted))
            for kind, one in enumerate((p, u, p | u, b, p | b)):
                differ[:, place, kind] = one.sum(axis=1)
        return _Sums(
            (ended & (counted < 0)).sum(axis=1),
            _own_products(columns),
            _cross_products(columns[:, 1:], columns[chosen, 1:]),
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
        return self._own(self._row[schedule])[0][0]

    def counted(self, schedule: str) -> bool:
        """Tell whether the bits of every trial that ended are known."""
        row = self._row[schedule]
        return not any(sums.uncounted[row] for _, sums in self._ended(row))

    def has_cost(self, schedule: str, prices: Prices) -> bool:
        """Tell whether the cost is known: where bits have a price, they must be counted."""
        return not prices.bit or self.counted(schedule)

    def mean(self, schedule: str, prices: Prices) -> float | None:
        """Return the mean cost of the trials that ended.

        It is None if no trial ended, or if bits have a price and were not counted.
        """
        if not self.has_cost(schedule, prices):
            return None
        count, total, _ = self._sums(prices, self._row[schedule])
        return as_float(total, count * prices.scale) if count else None

    def std(self, schedule: str, prices: Prices) -> float | None:
        """Return the standard deviation of the cost of the trials that ended; None below two."""
        if not self.has_cost(schedule, prices):
            return None
        n, total, squares = self._sums(prices, self._row[schedule])
        return root(n * squares - total**2, n * (n - 1) * prices.scale**2) if n > 1 else None

    def covariance(self, schedule: str, x: Prices, y: Prices) -> float | None:
        """Return the covariance of two costs over the trials that ended; None below two trials."""
        row = self._row[schedule]
        (n, one, _), (_, other, _) = self._sums(x, row), self._sums(y, row)
        scatter = n * _combined(self._own(row), x, y) - one * other
        return as_float(scatter, n * (n - 1) * x.scale * y.scale) if n > 1 else None

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
        mine, theirs = self._row[one], self._row[other]
        across, differing = self._across(one, other)
        count, above, squares = self._sums(x, mine, theirs)
        _, below, others = self._sums(y, theirs, mine)
        differ = count
        if x == y:
            paid = tuple(int(price != 0) for price in x.each)
            differ = differing[_KINDS.index(paid) if any(paid) else 0]
        scale = math.lcm(x.scale, y.scale)
        a, b = scale // x.scale, scale // y.scale
        return Paired(
            count,
            differ,
            scale,
            a * above,
            b * below,
            a * a * squares,
            a * b * _combined(across, x, y),
            b * b * others,
            a * self._most(x, mine, theirs),
            b * self._most(y, theirs, mine),
        )

    def _across(self, one: str, other: str) -> tuple[list[list[int]], list[int]]:
        """Return the products of a pair, and by kind the number of trials in which costs differ."""
        turned = other not in self._place
        row, place = (
            (self._row[other], self._place[one]) if turned else (self._row[one], self._place[other])
        )
        parts = [sums for _, sums in self._ended(self._row[one], self._row[other])]
        words = [sums.across[:, row, place] for sums in parts]
        differ = sum((sums.differ[row, place] for sums in parts), np.zeros(len(_KINDS), np.int64))
        return _added([one.swapaxes(1, 2) if turned else one for one in words], 3), differ.tolist()

    def apart(self, some: Sequence[str], other: str, sent: Prices) -> list[Apart]:
        """Sum the differences of schedules from a partner in pulls and in what is sent.

        The same sums follow from three calls of `pair` for each, which take thirty times as long.
        """
        rows, y, place = [self._row[one] for one in some], self._row[other], self._place[other]
        kinds = [0, sent.each.index(1)]
        c = kinds[1]
        words = np.zeros((_WORDS, 5, len(rows)), np.int64)
        counts = np.zeros((2, len(rows)), np.int64)
        most = np.zeros((2, len(rows), 2), np.int64)
        for pattern, sums in self._ended(y):
            both = np.array([pattern[row] for row in rows], np.int64)
            mine, theirs = (np.moveaxis(sums.own[:, one], 1, -1) for one in (rows, [y]))
            cross = np.moveaxis(sums.across[:, rows, place], 1, -1)  # (word, column, column, row)
            differences = (
                mine[:, 0, 1] - theirs[:, 0, 1],
                mine[:, 0, 1 + c] - theirs[:, 0, 1 + c],
                mine[:, 1, 1] - 2 * cross[:, 0, 0] + theirs[:, 1, 1],
                mine[:, 1, 1 + c] - cross[:, 0, c] - cross[:, c, 0] + theirs[:, 1, 1 + c],
                mine[:, 1 + c, 1 + c] - 2 * cross[:, c, c] + theirs[:, 1 + c, 1 + c],
            )
            words = _carried(words + both * np.stack(differences, 1))
            counts += both * [mine[0, 0, 0], sums.differ[rows, place, 2 * c]]
            largest = [sums.most[rows][:, kinds], sums.most[[y] * len(rows)][:, kinds]]
            most = np.maximum(most, both[:, None] * largest)
        totals: Any = sum(one.astype(object) << (_WORD * at) for at, one in enumerate(words))
        return [
            Apart(trials, differ, tuple(found[:2]), tuple(found[2:]), tuple(own), tuple(theirs))
            for trials, differ, found, own, theirs in zip(
                *counts.tolist(), totals.T.tolist(), *most.tolist(), strict=True
            )
        ]

    def excess(self, schedule: str, prices: Prices, bound: float) -> tuple[int, int, int, int, int]:
        """Return count, sum and sum of squares of the cost less ``bound``, and limits.

        The unit is 1 / scale of the prices and the bound. The limits are those of a further trial:
        see `fastfed.analysis.intervals.mean_tails`.
        """
        row = self._row[schedule]
        count, total, squares = self._sums(prices, row)
        b, a = bound.as_integer_ratio()
        b *= prices.scale
        scatter = a * a * squares - 2 * a * b * total + count * b * b
        return count, a * total - count * b, scatter, -b, a * self._most(prices, row)

    def _most(self, prices: Prices, row: int, *beside: int) -> int:
        """Bound the largest cost, times ``scale``, of a trial that ended (that all ended).

        The bound is the cost of the largest pulls, uplinks and bits, which may be those of
        different trials.
        """
        parts = [sums.most[row].tolist() for _, sums in self._ended(row, *beside)]
        most = [max(column) for column in zip([0, 0, 0], *parts, strict=True)]
        return sum(map(mul, prices.each, most))

    def _own(self, row: int, *beside: int) -> list[list[int]]:
        """Return the products of (1, pulls, uplinks, bits) over trials that ended (all ended)."""
        rows = row, *beside
        if rows not in self._own_of:
            self._own_of[rows] = _added([sums.own[:, row] for _, sums in self._ended(*rows)], 4)
        return self._own_of[rows]

    def _sums(self, prices: Prices, row: int, *beside: int) -> tuple[int, int, int]:
        """Count, sum and sum of squares over the trials that ended (that all ended), scaled."""
        own = self._own(row, *beside)
        return own[0][0], sum(map(mul, prices.each, own[0][1:])), _combined(own, prices, prices)


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


def as_float(number: Fraction | int, over: Fraction | int = 1) -> float:
    """Return the double nearest to a quotient of numbers; of whole numbers it is the fastest."""
    try:
        return float(number / over)
    except OverflowError:
        return math.inf if (number > 0) == (over > 0) else -math.inf


def root(number: Fraction | int, over: Fraction | int = 1) -> float:
    """Return the square root of a quotient, also of those that are too large for a double."""
    size = _bit_length(number) - _bit_length(over)
    exponent = max(0, size // 2 - 400)
    try:
        return math.ldexp(math.sqrt(as_float(number, over * 4**exponent)), exponent)
    except OverflowError:
        return math.inf


def _bit_length(number: Fraction | int) -> int:
    return number.numerator.bit_length() - number.denominator.bit_length()


def _combined(products: Sequence[Sequence[int]], x: Prices, y: Prices) -> int:
    """Return the sum of x times y, from products whose last are those of pulls, uplinks, bits."""
    return sum(
        a * b * one
        for a, row in zip(x.each, products[-3:], strict=True)
        if a
        for b, one in zip(y.each, row[-3:], strict=True)
        if b
    )


def _own_products(columns: _Integers) -> _Integers:
    """Sum products of columns over the trials: (word, schedule, column, column)."""
    return _summed(columns, columns, lambda a, b: np.matmul(a, b.transpose(0, 2, 1)))


def _cross_products(columns: _Integers, others: _Integers) -> _Integers:
    """Sum products of columns of two schedules: (word, schedule, other, column, column)."""

    def multiply(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        found = a @ b.reshape(-1, b.shape[-1]).T
        return found.reshape(*a.shape[:2], *b.shape[:2]).transpose(0, 2, 1, 3)

    return _summed(columns, others, multiply)


def _summed(columns: _Integers, others: _Integers, multiply: Callable[..., Any]) -> _Integers:
    """Sum the products limb by limb in doubles, and combine the limbs to words."""
    largest = int(max(columns.max(initial=0), others.max(initial=0)))
    limbs = max(1, -(-largest.bit_length() // _BITS))
    total: Any = 0
    partial: Any = 0
    chunks = range(0, columns.shape[-1], _CHUNK)
    for number, first in enumerate(chunks, 1):
        part = slice(first, first + _CHUNK)
        partial = partial + multiply(
            _cut(columns[..., part], limbs), _cut(others[..., part], limbs)
        ).astype(np.int64)
        if number % _MOST_CHUNKS == 0 or number == len(chunks):
            total = _carried(total + _words(partial, limbs))
            partial = 0
    return np.asarray(total)


def _cut(columns: _Integers, limbs: int) -> npt.NDArray[np.float64]:
    """Split whole numbers into limbs, as doubles: (schedule, column x limb, trial)."""
    cut = np.stack([columns >> (_BITS * limb) & (2**_BITS - 1) for limb in range(limbs)], axis=2)
    schedules, width, trials = columns.shape
    return cut.reshape(schedules, width * limbs, trials).astype(np.float64)


def _words(products: _Integers, limbs: int) -> _Integers:
    """Combine sums of products of limbs, (..., column x limb, column x limb), to words."""
    *outer, first, second = products.shape
    parts = products.reshape(*outer, first // limbs, limbs, second // limbs, limbs)
    words = np.zeros((_WORDS, *outer, first // limbs, second // limbs), np.int64)
    digit = np.zeros(words.shape[1:], np.int64)
    for place in range(_WORDS * _LIMBS_OF_WORD):
        for limb in range(max(0, place - limbs + 1), min(limbs, place + 1)):
            digit = digit + parts[..., limb, :, place - limb]
        word, shift = divmod(place, _LIMBS_OF_WORD)
        words[word] += (digit & (2**_BITS - 1)) << (_BITS * shift)
        digit = digit >> _BITS
    return words


def _carried(words: _Integers) -> _Integers:
    """Carry what is too large for a word into the next one, in place."""
    for low, high in pairwise(words):
        high += low >> _WORD
        low &= 2**_WORD - 1
    return words


def _added(parts: Sequence[_Integers], size: int) -> list[list[int]]:
    """Add up matrices of words, as a matrix of Python's integers."""
    if not parts:
        return [[0] * size for _ in range(size)]
    words = reduce(lambda one, other: _carried(one + other), parts)
    return [
        [sum(one << (_WORD * place) for place, one in enumerate(cell)) for cell in row]
        for row in np.moveaxis(words, 0, -1).tolist()
    ]
