"""Which schedule is the cheapest, for every cost C of an uplink at once.

The mean total cost of a schedule, mean(pulls) + C mean(uplinks), is a straight line in C. So the
cheapest schedule over all C >= 0 is the lower envelope of a few lines: a first schedule from C = 0
to the C at which another one overtakes it, and so on, each talking less than the one before.

**Where it changes.** Two lines cross at C* = mean(dp) / mean(du), where dp and du are the
differences of the two schedules' pulls and uplinks (with opposite signs) in the same trial. The
interval of C* is Fieller's: all C at which the paired mean of dp - C du does not differ from 0 by
Student's test. It is exact for normal differences, where the delta method (C* plus or minus two
standard errors) is not, above all if mean(du) is not far from 0: then the interval rightly becomes
long, one-sided, or everything. And it is the same statement as the test: two schedules cannot be
told apart just at those C.

**Who else may be the cheapest.** On each piece of the envelope the winner is compared with every
other schedule by the same paired test. The winner was chosen by the same trials, so the tests are
at the level 1 - 0.05 / (S - 1) for S schedules (Bonferroni): at any given C, the schedule that is
truly the cheapest is then the winner or among its rivals with a probability of at least 95 %.

**Bits.** Where a bit has a price instead, mean(pulls) + c mean(bits) is a line in c, and at any
given c the same comparisons hold. A schedule whose bits were not counted has no such cost.

**Trials in which two schedules do the same** say nothing about which is cheaper, and make the
standard error look small: as in `intervals`, tests use only the k trials in which the two differ,
and no test is surer than 2^-k.

Trials that did not end have no cost. A line is the mean over the trials that its schedule ended,
as in the summary; two schedules are compared by the trials that both ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from fastfed.faces import Faced
from fastfed.statistics.moments import (
    BITS,
    PULLS,
    UPLINKS,
    Batch,
    Moments,
    Prices,
    Trials,
    as_float,
)
from fastfed.statistics.numbers import tidy

if TYPE_CHECKING:
    import polars as pl

LEVEL = 0.95
Interval = tuple[float, float]
"""From, to; the end may be infinite."""


class Unit(NamedTuple):
    """What is paid for beside pulls: a price of 1 for each, and a pull with it."""

    alone: Prices
    with_a_pull: Prices
    column: str
    """Of a cost of this kind, in frames."""

    def total(self, cost: float) -> Prices:
        """Of a pull, and ``cost`` of the unit."""
        return Prices.total_of_bits(cost) if self.alone.bit else Prices.total(cost)


UPLINK = Unit(UPLINKS, Prices.total(1), "cost")
BIT = Unit(BITS, Prices.total_of_bits(1), "bit_cost")


@dataclass(frozen=True)
class Difference:
    """One schedule's cost less another's, over the trials that both ended."""

    pairs: int
    """Those trials."""
    differ: int
    """Those among them in which pulls or what was sent differ; the numbers below are over
    these."""
    pulls: float
    sent: float
    """The means of the two differences; what was sent are uplinks or bits."""
    var_pulls: float
    covariance: float
    var_sent: float
    """Of one trial."""

    def mean(self, cost: float) -> float:
        """Over all pairs."""
        return (self.pulls + cost * self.sent) * self.differ / self.pairs

    def sem(self, cost: float) -> float | None:
        """The standard error of that mean; None below two trials that differ."""
        if self.differ < 2:
            return None
        k, n = self.differ, self.pairs
        one = self.pulls + cost * self.sent
        squares = self._variance(cost) * (k - 1) + k * one * one * (1 - k / n)
        return math.sqrt(squares / (n - 1) / n)

    def _variance(self, cost: float) -> float:
        return max(0.0, self.var_pulls + 2 * cost * self.covariance + cost * cost * self.var_sent)

    def undecided(self, level: float) -> list[Interval]:
        """The costs C >= 0 at which the difference cannot be told from 0."""
        if not self._enough(level):
            return [(0.0, math.inf)]
        reach = _student(self.differ - 1, level) ** 2 / self.differ
        return _where_not_positive(
            self.sent**2 - reach * self.var_sent,
            self.pulls * self.sent - reach * self.covariance,
            self.pulls**2 - reach * self.var_pulls,
        )

    def not_above(self, level: float) -> list[Interval]:
        """The costs C >= 0 at which the difference is not surely above 0."""
        if not self._enough(level):
            return [(0.0, math.inf)]
        below = _where_not_positive(0.0, self.sent / 2, self.pulls)
        return _merged([*self.undecided(level), *below])

    def _enough(self, level: float) -> bool:
        """Whether so few trials can decide anything: k equal signs have the probability 2^-k."""
        return self.differ >= 2 and 2.0**-self.differ <= (1 - level) / 2


def difference(moments: Moments, one: str, other: str, unit: Unit = UPLINK) -> Difference:
    """``one``'s cost less ``other``'s; one of the two must be among the moments' partners."""
    sums, squares = [], []
    for prices in (PULLS, unit.alone, unit.with_a_pull):
        paired = moments.pair(one, other, prices)
        sums.append(paired.x - paired.y)
        squares.append(paired.xx - 2 * paired.xy + paired.yy)
    k = paired.differ
    if k == 0:
        return Difference(paired.count, 0, 0.0, 0.0, 0.0, 0.0, 0.0)
    products = (squares[0], (squares[2] - squares[0] - squares[1]) / 2, squares[1])
    means = ((sums[0], sums[0]), (sums[0], sums[1]), (sums[1], sums[1]))
    centred = [
        as_float((product - a * b / k) / (k - 1)) if k > 1 else math.inf
        for product, (a, b) in zip(products, means, strict=True)
    ]
    return Difference(
        paired.count, k, as_float(Fraction(sums[0], k)), as_float(Fraction(sums[1], k)), *centred
    )


@dataclass(frozen=True)
class Rival:
    """A schedule that may be as cheap as the winner of a piece, and for which C of the piece."""

    schedule: str
    where: tuple[Interval, ...]


@dataclass(frozen=True)
class Piece:
    """A range of C with one winner."""

    winner: str
    low: float
    high: float
    high_interval: Interval | None
    """Of the C at which the next schedule takes over; None for the last piece."""
    equal: tuple[str, ...]
    """Schedules that did the same as the winner in every trial."""
    rivals: tuple[Rival, ...]
    """In the order in which they were given; see the module for what "may be" means."""


@dataclass(frozen=True)
class Envelope:
    """The cheapest schedules of one cell (an instance, a delta, a scale)."""

    cell: Mapping[str, Any]
    pieces: tuple[Piece, ...]
    never_ended: tuple[str, ...]
    """Schedules that have no trial that ended, and so no cost."""
    unfinished: Mapping[str, float]
    """The share of trials that did not end, by schedule, where it is not 0."""
    trials: tuple[int, int]
    """The least and the largest number of trials of a schedule."""
    moments: Moments = field(repr=False, compare=False)

    def at(self, cost: float, unit: Unit = UPLINK) -> dict[str, Any]:
        """The winner at one cost, its margin over the next best, and who is not separable. There
        is none where no schedule has a cost."""
        names = _measured(self.moments, unit)
        prices = unit.total(cost)
        mean = {name: _mean(self.moments, name, prices) for name in names}
        order = sorted(names, key=lambda name: (mean[name], _mean(self.moments, name, unit.alone)))
        row: dict[str, Any] = {
            **self.cell,
            "cost": None,
            "bit_cost": None,
            unit.column: cost,
            "winner": None,
            "total_mean": None,
            "total_sem": None,
            "equal": [],
            "runner_up": None,
            "margin": None,
            "margin_sem": None,
            "pairs": None,
            "rivals": [],
        }
        if not order:
            return row
        winner = order[0]
        against = {name: difference(self.moments, name, winner, unit) for name in order[1:]}
        equal = [name for name, other in against.items() if other.pairs and not other.differ]
        behind = [name for name in order[1:] if name not in equal]
        row |= {
            "winner": winner,
            "total_mean": mean[winner],
            "total_sem": self.moments.sem(winner, prices),
            "equal": equal,
        }
        if behind:
            nearest = against[behind[0]]
            row |= {"runner_up": behind[0], "pairs": nearest.pairs}
            if nearest.pairs:
                row |= {"margin": nearest.mean(cost), "margin_sem": nearest.sem(cost)}
        level = _simultaneous(len(names))
        row["rivals"] = [name for name in behind if _holds(cost, against[name].not_above(level))]
        return row

    def rows(self) -> Iterator[dict[str, Any]]:
        """The pieces, as rows of a frame."""
        for piece in self.pieces:
            low, high = piece.high_interval or (None, None)
            yield {
                **self.cell,
                "winner": piece.winner,
                "cost_from": piece.low,
                "cost_to": piece.high,
                "cost_to_low": low,
                "cost_to_high": high,
                "equal": list(piece.equal),
                "rivals": [one.schedule for one in piece.rivals],
            }

    def __str__(self) -> str:
        return "\n".join(_envelope_text(self))


@dataclass(frozen=True, repr=False)
class Best(Faced):
    """The cheapest schedules of all cells; as text, what `fastfed best` prints."""

    envelopes: tuple[Envelope, ...]

    @property
    def frame(self) -> pl.DataFrame:
        """One row for each piece of each cell: ``winner`` from C = ``cost_from`` to ``cost_to``,
        the 95 % interval ``cost_to_low`` to ``cost_to_high`` of that end, schedules ``equal`` to
        the winner, and ``rivals`` that may be as cheap somewhere on the piece."""
        return _frame([row for one in self.envelopes for row in one.rows()])

    def at(self, costs: Iterable[float], bit_costs: Iterable[float] = ()) -> pl.DataFrame:
        """One row for each cell and cost, of an uplink or of a bit: the winner, its mean total
        cost, the paired margin of the runner-up over it with its standard error, and the rivals
        at this cost."""
        wanted = [
            *((float(cost), UPLINK) for cost in costs),
            *((float(cost), BIT) for cost in bit_costs),
        ]
        return _frame([one.at(cost, unit) for one in self.envelopes for cost, unit in wanted])

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.envelopes)) or "no rows yet"

    __repr__ = __str__


def envelope(moments: Moments, cell: Mapping[str, Any]) -> Envelope:
    """The cheapest schedules over all C >= 0, from moments whose partners are all schedules."""
    names = _measured(moments)
    present = [moments.trials(name) for name in moments.schedules if moments.trials(name)]
    shares = {
        name: 1 - moments.ended(name) / moments.trials(name)
        for name in moments.schedules
        if moments.trials(name)
    }
    return Envelope(
        cell,
        tuple(_pieces(moments, names)),
        tuple(name for name in moments.schedules if name not in names),
        {name: share for name, share in shares.items() if share},
        (min(present, default=0), max(present, default=0)),
        moments,
    )


def envelope_of(
    batches: Iterable[Batch], schedules: Sequence[str], cell: Mapping[str, Any]
) -> Envelope:
    """The envelope of one cell from batches of its trials; memory stays flat."""
    moments = Moments(schedules, schedules)
    for batch in batches:
        moments.add(Trials.of(batch, moments.schedules))
    return envelope(moments, cell)


def _measured(moments: Moments, unit: Unit = UPLINK) -> list[str]:
    """The schedules that have a cost."""
    return [
        name
        for name in moments.schedules
        if moments.ended(name) and (unit is UPLINK or moments.counted(name))
    ]


def _mean(moments: Moments, name: str, prices: Prices) -> float:
    mean = moments.mean(name, prices)
    assert mean is not None  # only schedules that ended are asked
    return mean


def _pieces(moments: Moments, names: Sequence[str]) -> Iterator[Piece]:
    """From C = 0 on: always the line that cuts the present one first."""
    if not names:
        return
    pulls = {name: _mean(moments, name, PULLS) for name in names}
    uplinks = {name: _mean(moments, name, UPLINKS) for name in names}
    winner = min(names, key=lambda name: (pulls[name], uplinks[name]))
    low, level = 0.0, _simultaneous(len(names))
    while True:
        cuts = {
            name: (pulls[name] - pulls[winner]) / (uplinks[winner] - uplinks[name])
            for name in names
            if uplinks[name] < uplinks[winner]
        }
        following = min(cuts, key=lambda name: (cuts[name], uplinks[name]), default=None)
        high, interval = math.inf, None
        if following is not None:
            high = max(low, cuts[following])
            # differences that never vary leave no interval, but for rounding
            spans = difference(moments, following, winner).undecided(LEVEL) or [(high, high)]
            interval = (min(span[0] for span in spans), max(span[1] for span in spans))
        if high > low:
            equal, rivals = _others(moments, names, winner, (low, high), level)
            yield Piece(winner, low, high, interval, equal, rivals)
        if following is None:
            return
        winner, low = following, high


def _others(
    moments: Moments, names: Sequence[str], winner: str, piece: Interval, level: float
) -> tuple[tuple[str, ...], tuple[Rival, ...]]:
    """Who equals the winner, and who may be as cheap somewhere on the piece."""
    equal, rivals = [], []
    for name in names:
        if name == winner:
            continue
        against = difference(moments, name, winner)
        if against.pairs and not against.differ:
            equal.append(name)
            continue
        where = [(max(a, piece[0]), min(b, piece[1])) for a, b in against.not_above(level)]
        # one point alone is where two pieces meet
        where = [(a, b) for a, b in where if a < b]
        if where:
            rivals.append(Rival(name, tuple(where)))
    return tuple(equal), tuple(rivals)


def _simultaneous(count: int) -> float:
    """The level at which all comparisons of one with the others hold together."""
    return 1 - (1 - LEVEL) / max(1, count - 1)


def _student(freedom: int, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def _where_not_positive(a: float, b: float, c: float) -> list[Interval]:
    """The C >= 0 with a C^2 + 2 b C + c <= 0: at most two intervals."""
    if a == 0:
        if b == 0:
            return [(0.0, math.inf)] if c <= 0 else []
        root = -c / (2 * b)
        return _clipped([(-math.inf, root) if b > 0 else (root, math.inf)])
    discriminant = b * b - a * c
    if discriminant < 0:
        return [] if a > 0 else [(0.0, math.inf)]
    # without cancellation: the larger root in absolute value first, the other from their product
    q = -(b + math.copysign(math.sqrt(discriminant), b))
    roots = sorted([q / a, c / q if q else 0.0])
    if a > 0:
        return _clipped([(roots[0], roots[1])])
    return _clipped([(-math.inf, roots[0]), (roots[1], math.inf)])


def _clipped(intervals: Iterable[Interval]) -> list[Interval]:
    return [(max(a, 0.0), b) for a, b in intervals if b >= 0]


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The same set as intervals that do not touch, in order."""
    merged: list[Interval] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _holds(cost: float, where: Iterable[Interval]) -> bool:
    return any(low <= cost <= high for low, high in where)


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    kinds: dict[str, Any] = {
        "winner": pl.String,
        "runner_up": pl.String,
        "equal": pl.List(pl.String),
        "rivals": pl.List(pl.String),
        "pairs": pl.Int64,
        **dict.fromkeys(
            (
                "cost_from",
                "cost_to",
                "cost_to_low",
                "cost_to_high",
                "cost",
                "bit_cost",
                "total_mean",
                "total_sem",
                "margin",
                "margin_sem",
            ),
            pl.Float64,
        ),
    }
    overrides = {name: kind for name, kind in kinds.items() if rows and name in rows[0]}
    return pl.DataFrame(rows, schema_overrides=overrides)


def _envelope_text(found: Envelope) -> list[str]:
    where = ", ".join(
        f"{value}"
        if name == "instance"
        else f"{name} {_cost(value)}"
        if isinstance(value, float)
        else f"{name} {value}"
        for name, value in found.cell.items()
    )
    least, most = found.trials
    count = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    lines = [f"{where}: the cheapest schedule by the cost C of an uplink, {count} trials"]
    for piece in found.pieces:
        if math.isinf(piece.high):
            span = f"C from {_cost(piece.low)} on" if piece.low else "every C"
        else:
            assert piece.high_interval is not None
            span = (
                f"C from {_cost(piece.low)} to {_cost(piece.high)} "
                f"[{_cost(piece.high_interval[0])}, {_cost(piece.high_interval[1])}]"
            )
        same = f" (does the same: {', '.join(piece.equal)})" if piece.equal else ""
        lines.append(f"  {span}: {piece.winner}{same}")
        lines += [
            f"    not separable: {one.schedule}{_where_text(one, piece)}" for one in piece.rivals
        ]
    lines += [f"  no cost: {name}, of which no trial ended" for name in found.never_ended]
    if found.unfinished:
        worst = max(found.unfinished.values())
        lines.append(
            f"  trials that did not end are left out, up to {100 * worst:.3g} % of a "
            "schedule's: " + ", ".join(found.unfinished)
        )
    if any(piece.high_interval for piece in found.pieces):
        lines.append("  in brackets: 95 % interval of the C at which the next schedule takes over")
    return lines


def _where_text(rival: Rival, piece: Piece) -> str:
    if rival.where == ((piece.low, piece.high),):
        return ""
    spans = []
    for low, high in rival.where:
        if low == piece.low:
            spans.append(f"up to {_cost(high)}")
        else:
            spans.append(
                f"from {_cost(low)}" + ("" if high == piece.high else f" to {_cost(high)}")
            )
    return f" for C {' and '.join(spans)}"


def _cost(number: float) -> str:
    """Three digits, thousands apart."""
    if math.isinf(number):
        return "no limit"
    rounded = float(f"{number:.3g}")
    return f"{rounded:,.0f}" if 1000 <= rounded < 1e7 else tidy(f"{rounded:g}")
