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

A batch has, for each schedule, the arrays ``trial`` (ascending), ``pulls``, ``uplinks``,
``correct`` and ``truncated``, and ``bits``, -1 where they were not counted. A trial stands in the
same batch for all its schedules; a schedule may lack some trials, and only trials that both
schedules have are paired.

Trials that did not end (``truncated``) have no cost: they are counted, and are in no other sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Batch = Mapping[str, Mapping[str, npt.NDArray[Any]]]
"""By schedule, by column."""

COLUMNS = ("trial", "pulls", "uplinks", "bits", "correct", "truncated")
"""What a batch has of each schedule; without ``bits`` none were counted."""

_BITS = 20
_CHUNK = 2**13  # trials: products of limbs below 2^40, their sums below 2^53
_MOST_CHUNKS = 2**9  # partial sums below 2^62, within an int64

_Integers = npt.NDArray[np.int64]
_Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Trials:
    """A batch, lined up: arrays of (schedule, trial), zero where a schedule lacks a trial."""

    schedules: tuple[str, ...]
    trial: _Integers
    present: _Truths
    ended: _Truths
    wrong: _Truths
    """Present, and not all answers are right. A trial that did not end has not given them all."""
    pulls: _Integers
    uplinks: _Integers
    bits: _Integers
    """-1 where they were not counted."""

    @classmethod
    def of(cls, batch: Batch, schedules: Sequence[str]) -> Trials:
        """Line up a batch; schedules that it does not have get no trials."""
        own = {
            name: np.asarray(batch[name]["trial"], dtype=np.int64)
            for name in schedules
            if name in batch
        }
        numbers = list(own.values())
        trial = numbers[0] if numbers else np.zeros(0, np.int64)
        if any(not np.array_equal(trial, other) for other in numbers[1:]):
            trial = np.unique(np.concatenate(numbers))
        shape = (len(schedules), len(trial))
        present, correct, cut = (np.zeros(shape, bool) for _ in range(3))
        pulls, uplinks, bits = (np.zeros(shape, np.int64) for _ in range(3))
        for row, name in enumerate(schedules):
            if name in own:
                at = (
                    slice(None)
                    if len(own[name]) == len(trial)
                    else np.searchsorted(trial, own[name])
                )
                present[row, at] = True
                for target, column in (
                    (pulls, "pulls"),
                    (uplinks, "uplinks"),
                    (correct, "correct"),
                    (cut, "truncated"),
                ):
                    target[row, at] = batch[name][column]
                bits[row, at] = batch[name].get("bits", -1)
        ended = present & ~cut
        return cls(
            tuple(schedules),
            trial,
            present,
            ended,
            present & ~(correct & ended),
            pulls,
            uplinks,
            bits,
        )

    def half(self, odd: bool) -> Trials:
        """The trials with an even, or with an odd number."""
        keep = self.trial % 2 == int(odd)
        return Trials(
            self.schedules,
            self.trial[keep],
            self.present[:, keep],
            self.ended[:, keep],
            self.wrong[:, keep],
            self.pulls[:, keep],
            self.uplinks[:, keep],
            self.bits[:, keep],
        )


@dataclass(frozen=True)
class Prices:
    """What a pull, an uplink and a bit count for: total cost is ``Prices.total(C)``, or, where each
    bit has a price, ``Prices.total_of_bits(c)``. Who pays for bits does not pay for scalars."""

    pull: Fraction
    uplink: Fraction
    bit: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.uplink and self.bit:
            raise ValueError("a message costs either by itself or by its bits")

    @classmethod
    def total(cls, cost: float) -> Prices:
        """Pulls + C x uplinks."""
        return cls(Fraction(1), Fraction(cost))

    @classmethod
    def communication(cls, cost: float) -> Prices:
        """C x uplinks."""
        return cls(Fraction(0), Fraction(cost))

    @classmethod
    def total_of_bits(cls, cost: float) -> Prices:
        """Pulls + c x bits."""
        return cls(Fraction(1), Fraction(0), Fraction(cost))

    @classmethod
    def communication_of_bits(cls, cost: float) -> Prices:
        """c x bits."""
        return cls(Fraction(0), Fraction(0), Fraction(cost))

    @property
    def each(self) -> tuple[Fraction, Fraction, Fraction]:
        """In the order of the products."""
        return self.pull, self.uplink, self.bit


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
        """Count, mean and variance of x - limit y over the trials in which it can differ from 0.
        The variance of fewer than two trials is given as 0."""
        count = self.differ if limit == 1 else self.count
        if count == 0:
            return 0, Fraction(0), Fraction(0)
        total = self.x - limit * self.y
        squares = self.xx - 2 * limit * self.xy + limit * limit * self.yy
        if count == 1:
            return 1, total, Fraction(0)
        return count, total / count, (squares - total * total / count) / (count - 1)


class Moments:
    """The sums, over any number of batches.

    Every schedule is paired with each of ``partners`` (such as FedElim and the yardstick, or all
    schedules, if anybody may be compared with anybody).
    """

    def __init__(self, schedules: Sequence[str], partners: Sequence[str] = ()) -> None:
        self.schedules = tuple(schedules)
        self.partners = tuple(name for name in dict.fromkeys(partners) if name in self.schedules)
        self._row = {name: row for row, name in enumerate(self.schedules)}
        self._place = {name: place for place, name in enumerate(self.partners)}
        count, others = len(self.schedules), len(self.partners)
        self._present = np.zeros(count, np.int64)
        self._wrong = np.zeros(count, np.int64)
        self._uncounted = np.zeros(count, np.int64)
        # Products of (1, pulls, uplinks, bits) with themselves, over the trials that a schedule
        # ended, and over those that it ended while the other did not.
        self._own = np.zeros((count, 4, 4), dtype=object)
        self._alone: dict[tuple[str, str], npt.NDArray[np.object_]] = {}
        # Products of (pulls, uplinks, bits) with a partner's, over the trials that both ended.
        self._across = np.zeros((count, others, 3, 3), dtype=object)
        self._differ = np.zeros((count, others, len(_KINDS)), np.int64)

    def add(self, trials: Trials) -> None:
        """Add a batch, whose schedules are those of these sums."""
        if not len(trials.trial):
            return
        self._present += trials.present.sum(axis=1)
        self._wrong += trials.wrong.sum(axis=1)
        self._uncounted += (trials.ended & (trials.bits < 0)).sum(axis=1)
        columns = np.stack(
            [
                trials.ended.astype(np.int64),
                trials.pulls * trials.ended,
                trials.uplinks * trials.ended,
                np.maximum(trials.bits, 0) * trials.ended,
            ],
            axis=1,
        )
        self._own += _own_products(columns)
        chosen = [self._row[name] for name in self.partners]
        if chosen:
            self._across += _cross_products(columns[:, 1:], columns[chosen, 1:])
        for place, row in enumerate(chosen):
            both = trials.ended & trials.ended[row]
            pulls = both & (trials.pulls != trials.pulls[row])
            uplinks = both & (trials.uplinks != trials.uplinks[row])
            bits = both & (trials.bits != trials.bits[row])
            for kind, which in enumerate((pulls, uplinks, pulls | uplinks, bits, pulls | bits)):
                self._differ[:, place, kind] += which.sum(axis=1)
            self._add_alone(columns, trials.ended, row)

    def _add_alone(self, columns: _Integers, ended: _Truths, partner: int) -> None:
        """What one of a pair ended and the other did not: as a rule nothing."""
        for index, name in enumerate(self.schedules):
            ways = [(index, partner)]
            if name not in self._place:  # else its own turn as a partner brings the other way
                ways.append((partner, index))
            for one, other in ways:
                apart = ended[one] & ~ended[other]
                if apart.any():
                    pair = self.schedules[one], self.schedules[other]
                    sums = _own_products(columns[one : one + 1, :, apart])[0]
                    self._alone[pair] = self._alone.get(pair, 0) + sums

    def __add__(self, other: Moments) -> Moments:
        """The sums over the trials of both."""
        if (self.schedules, self.partners) != (other.schedules, other.partners):
            raise ValueError("sums of different schedules do not add up")
        both = Moments(self.schedules, self.partners)
        for name in ("_present", "_wrong", "_uncounted", "_own", "_across", "_differ"):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        for pair in {**self._alone, **other._alone}:
            both._alone[pair] = np.asarray(self._alone.get(pair, 0) + other._alone.get(pair, 0))
        return both

    def trials(self, schedule: str) -> int:
        """How many trials of a schedule were added, those that did not end among them."""
        return int(self._present[self._row[schedule]])

    def errors(self, schedule: str) -> int:
        """Trials without all the right answers; those that did not end are among them."""
        return int(self._wrong[self._row[schedule]])

    def ended(self, schedule: str) -> int:
        """How many of them ended."""
        return int(self._own[self._row[schedule], 0, 0])

    def counted(self, schedule: str) -> bool:
        """Whether the bits of every trial that ended are known."""
        return not self._uncounted[self._row[schedule]]

    def mean(self, schedule: str, prices: Prices) -> float | None:
        """Mean cost of the trials that ended; None also where bits have a price and were not
        counted."""
        if prices.bit and not self.counted(schedule):
            return None
        count, total, _ = self._sums(schedule, prices)
        return as_float(total / count) if count else None

    def std(self, schedule: str, prices: Prices) -> float | None:
        """Standard deviation of the cost of the trials that ended; None below two."""
        if prices.bit and not self.counted(schedule):
            return None
        count, total, squares = self._sums(schedule, prices)
        return root((squares - total * total / count) / (count - 1)) if count > 1 else None

    def covariance(self, schedule: str, x: Prices, y: Prices) -> float | None:
        """Covariance of two costs of the trials that ended, from exact sums; None below two."""
        count, one, _ = self._sums(schedule, x)
        _, other, _ = self._sums(schedule, y)
        products = _combined(self._own[self._row[schedule]][1:, 1:], x, y)
        return as_float((products - one * other / count) / (count - 1)) if count > 1 else None

    def sem(self, schedule: str, prices: Prices) -> float | None:
        """Standard error of that mean."""
        std = self.std(schedule, prices)
        return None if std is None else std / math.sqrt(self.ended(schedule))

    def pair(self, one: str, other: str, x: Prices, y: Prices | None = None) -> Paired:
        """One schedule's cost at prices ``x`` beside the other's at ``y`` (None: the same).
        At least one of the two must be among the partners; where bits have a price, those of both
        must be counted."""
        y = x if y is None else y
        if other in self._place:
            at = self._row[one], self._place[other]
            across = self._across[at]
        else:
            at = self._row[other], self._place[one]
            across = self._across[at].T
        count, above, squares = self._sums(one, x, other)
        _, below, others = self._sums(other, y, one)
        differ = count
        if x == y:
            kinds = [tuple(map(bool, kind.each)) for kind in _KINDS]
            mine = tuple(map(bool, x.each))
            differ = int(self._differ[at][kinds.index(mine) if any(mine) else 0])
        return Paired(count, differ, above, below, squares, _combined(across, x, y), others)

    def _sums(
        self, schedule: str, prices: Prices, beside: str | None = None
    ) -> tuple[int, Fraction, Fraction]:
        """Count, sum and sum of squares over the trials that ended (that both ended)."""
        own = self._own[self._row[schedule]]
        if beside is not None:
            own = own - self._alone.get((schedule, beside), 0)
        total = sum(
            (price * own[0, 1 + place] for place, price in enumerate(prices.each)), Fraction(0)
        )
        return int(own[0, 0]), total, _combined(own[1:, 1:], prices, prices)


class Halves:
    """The same sums over the trials with even and with odd numbers: what is chosen by the one
    half (the best of many periods, say) is judged by the other, which did not choose it."""

    def __init__(self, schedules: Sequence[str], partners: Sequence[str] = ()) -> None:
        self.even, self.odd = Moments(schedules, partners), Moments(schedules, partners)

    @classmethod
    def of(
        cls, batches: Iterable[Batch], schedules: Sequence[str], partners: Sequence[str]
    ) -> Halves:
        halves = cls(schedules, partners)
        for batch in batches:
            halves.add(Trials.of(batch, schedules))
        return halves

    def add(self, trials: Trials) -> None:
        self.even.add(trials.half(odd=False))
        self.odd.add(trials.half(odd=True))

    @property
    def all(self) -> Moments:
        """The sums over both halves."""
        return self.even + self.odd


def as_float(number: Fraction) -> float:
    """The nearest double; infinite where there is none."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def root(number: Fraction) -> float:
    """The square root; of numbers beyond the doubles, too."""
    exponent = max(0, (number.numerator.bit_length() - number.denominator.bit_length()) // 2 - 400)
    scaled = math.sqrt(number / Fraction(4) ** exponent)
    return as_float(Fraction(scaled) * 2**exponent)


def _combined(products: npt.NDArray[np.object_], x: Prices, y: Prices) -> Fraction:
    """The sum of x times y, from the products of pulls, uplinks and bits."""
    return sum(
        (
            a * b * products[i, j]
            for i, a in enumerate(x.each)
            if a
            for j, b in enumerate(y.each)
            if b
        ),
        Fraction(0),
    )


def _own_products(columns: _Integers) -> npt.NDArray[np.object_]:
    """(schedule, column, trial) to (schedule, column, column): sums over the trials."""
    return _summed(columns, columns, lambda a, b: np.matmul(a, b.transpose(0, 2, 1)))


def _cross_products(columns: _Integers, others: _Integers) -> npt.NDArray[np.object_]:
    """To (schedule, other, column, column)."""

    def multiply(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        flat = a.reshape(-1, a.shape[-1]) @ b.reshape(-1, b.shape[-1]).T
        return flat.reshape(*a.shape[:2], *b.shape[:2]).transpose(0, 2, 1, 3)

    return _summed(columns, others, multiply)


def _summed(
    columns: _Integers, others: _Integers, multiply: Callable[..., Any]
) -> npt.NDArray[np.object_]:
    """The products, limb by limb in doubles, put together again in Python's integers."""
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
    """(schedule, column, trial) to (schedule, column x limb, trial), limbs as doubles."""
    cut = np.stack([columns >> (_BITS * limb) & (2**_BITS - 1) for limb in range(limbs)], axis=2)
    schedules, width, trials = columns.shape
    return cut.reshape(schedules, width * limbs, trials).astype(np.float64)
