"""The cheapest schedule, for every cost C of an uplink at once.

The mean total cost of a schedule, mean(pulls) + C mean(uplinks), is a straight line in C. So the
cheapest schedule over all C >= 0 is the lower envelope of a few lines: a first schedule from C = 0
to the C at which another one overtakes it, and so on, each talking less than the one before.

**Where it changes.** Two lines cross at C* = mean(dp) / mean(du), where dp and du are the
differences of the two schedules' pulls and uplinks (with opposite signs) in the same trial. The
interval of C* is Fieller's: all C at which the test of `fastfed.analysis.intervals` cannot tell the
paired mean of dp - C du from 0. The delta method (C* plus or minus two standard errors) is wrong,
above all if mean(du) is not far from 0: then Fieller's interval rightly becomes long, one-sided,
or everything. And it is the same statement as the test: two schedules cannot be told apart just
at those C.

**Who else may be the cheapest.** On each piece of the envelope the winner is compared with every
other schedule by the same paired test. The winner was chosen by the same trials, so the tests are
at the level 1 - 0.05 / (S - 1) for S schedules (Bonferroni): at any given C, the schedule that is
truly the cheapest is then the winner or among its rivals with a probability of at least 95 %.

**Bits.** Where a bit has a price instead, mean(pulls) + c mean(bits) is a line in c, and at any
given c the same comparisons hold. A schedule whose bits were not counted has no such cost.

**Trials in which two schedules do the same** say nothing about which is cheaper. As in `intervals`,
tests use only the trials in which the two differ, decide nothing below 59 of them, and must
survive one further trial, the worst that the costs seen allow.

**Trials that did not end** have no cost. As `fastfed.analysis.comparable` says, a schedule that
leaves more trials unended than delta allows is excluded and named with its share; the others are
compared over the trials that all of them ended. Lines, crossovers, intervals and tests are all of
these trials.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fastfed.analysis.columns import column_types
from fastfed.analysis.comparable import Unended, comparable, excluded_text
from fastfed.analysis.cost_ranges import Interval, common, holds, merged, where_not_positive
from fastfed.analysis.intervals import LEAST_DIFFERING, student_quantile
from fastfed.analysis.moments import (
    BIT,
    PULLS,
    UPLINK,
    Apart,
    Moments,
    Prices,
    Unit,
    as_float,
    costs_of,
)
from fastfed.analysis.trials import Passes, Trials

if TYPE_CHECKING:
    import polars as pl

CONFIDENCE = 0.95
_WINNER = ("cost", "bit_cost", "winner", "total_mean", "total_sem", "equal")
_NEXT = ("runner_up", "margin", "margin_sem", "pairs", "differ", "rivals", "excluded")
"""Columns of the cheapest schedule at a cost, and of the others, besides those of the cell."""


@dataclass(frozen=True)
class Difference:
    """The cost of one schedule less that of another, over the trials that both ended."""

    pairs: int
    """The number of these trials."""
    differ: int
    """The number of pairs in which pulls, uplinks or bits differ. The numbers below are over these
    pairs."""
    pulls: float
    sent: float
    """The means of the two differences; what was sent are uplinks or bits."""
    var_pulls: float
    covariance: float
    var_sent: float
    """Of one trial."""
    worst: tuple[float, float]
    """Minus the largest pulls, and what was sent at most, of the other schedule: the least that
    the differences of a further trial can be."""
    worst_turned: tuple[float, float]
    """The same of this schedule."""

    @classmethod
    def of(cls, found: Apart, scale: int = 1) -> Difference:
        """Make a difference from sums in units of 1 / ``scale``."""
        k = found.differ
        if k == 0:
            return cls(found.trials, 0, 0.0, 0.0, 0.0, 0.0, 0.0, (0.0, 0.0), (0.0, 0.0))
        (p, s), (pp, ps, ss) = found.sums, found.products
        var_pulls, covariance, var_sent = (
            as_float(k * product - a * b, k * (k - 1) * scale**2) if k > 1 else math.inf
            for product, a, b in ((pp, p, p), (ps, p, s), (ss, s, s))
        )
        worst, turned = (
            (-as_float(most[0], scale), -as_float(most[1], scale))
            for most in (found.most_of_other, found.most)
        )
        means = (as_float(p, k * scale), as_float(s, k * scale))
        return cls(found.trials, k, *means, var_pulls, covariance, var_sent, worst, turned)

    def mean(self, cost: float) -> float:
        """Return the mean total cost of the one schedule less that of the other, over all pairs."""
        return (self.pulls + cost * self.sent) * self.differ / self.pairs

    def sem(self, cost: float) -> float | None:
        """Return the standard error of that mean; None below two trials that differ."""
        if self.differ < 2:
            return None
        k, n = self.differ, self.pairs
        one = self.pulls + cost * self.sent
        squares = self._variance(cost) * (k - 1) + k * one * one * (1 - k / n)
        return math.sqrt(squares / (n - 1) / n)

    def _variance(self, cost: float) -> float:
        return max(0.0, self.var_pulls + 2 * cost * self.covariance + cost * cost * self.var_sent)

    @property
    def enough(self) -> bool:
        """Tell whether enough trials differ to decide anything."""
        return self.differ >= LEAST_DIFFERING

    def undecided(self, level: float) -> list[Interval]:
        """Return the costs C >= 0 at which the difference cannot be told from 0."""
        return common(self.not_above(level), self.turned.not_above(level))

    @property
    def turned(self) -> Difference:
        """The same difference with the two schedules exchanged."""
        return replace(
            self,
            pulls=-self.pulls,
            sent=-self.sent,
            worst=self.worst_turned,
            worst_turned=self.worst,
        )

    def not_above(self, level: float) -> list[Interval]:
        """Return the costs C >= 0 at which the difference is not surely above 0."""
        if not self.enough:
            return [(0.0, math.inf)]
        # with the worst further trial, as in `fastfed.analysis.intervals`
        k = self.differ + 1
        p, s = self.worst[0] - self.pulls, self.worst[1] - self.sent
        pulls, sent = self.pulls + p / k, self.sent + s / k
        var_pulls, covariance, var_sent = (
            one * (k - 2) / (k - 1) + product / k
            for one, product in (
                (self.var_pulls, p * p),
                (self.covariance, p * s),
                (self.var_sent, s * s),
            )
        )
        reach = student_quantile(k - 1, level) ** 2 / k
        near = where_not_positive(
            sent**2 - reach * var_sent,
            pulls * sent - reach * covariance,
            pulls**2 - reach * var_pulls,
        )
        return merged([*near, *where_not_positive(0.0, sent / 2, pulls)])


def differences(
    moments: Moments, some: Sequence[str], other: str, unit: Unit = UPLINK
) -> dict[str, Difference]:
    """Compute the cost of each of ``some`` less that of ``other``, which must be a partner."""
    found = moments.apart(some, other, unit.alone)
    return {name: Difference.of(one) for name, one in zip(some, found, strict=True)}


@dataclass(frozen=True)
class Rival:
    """A schedule that may be as cheap as the winner of a piece, for some C of the piece."""

    schedule: str
    where: tuple[Interval, ...]
    differ: int
    """The trials in which it differs from the winner; below 59 they decide nothing."""


@dataclass(frozen=True)
class Piece:
    """A range of C in which one schedule, the winner, is the cheapest."""

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
    excluded: Mapping[str, Unended]
    """Schedules that cannot be the cheapest: more trials did not end than delta allows."""
    unfinished: Mapping[str, float]
    """The share of trials that did not end, by schedule, where it is not 0."""
    trials: tuple[int, int]
    """The least and the largest number of trials of a schedule."""
    compared: int
    """The trials that all schedules which are compared ended."""
    schedules: tuple[str, ...]
    """Those that are compared."""
    moments: Moments = field(repr=False, compare=False)
    """Over the trials that are compared."""

    def at(self, cost: float, unit: Unit = UPLINK) -> dict[str, Any]:
        """Find the winner at one cost, its margin over the next best, and its rivals.

        Rivals are the schedules that the trials do not separate from the winner. There is no winner
        where no schedule has a cost.
        """
        names = [
            name
            for name in self.schedules
            if self.compared and self.moments.has_cost(name, unit.alone)
        ]
        prices = unit.total(cost)
        mean = {name: known_mean(self.moments, name, prices) for name in names}
        sent = {name: known_mean(self.moments, name, unit.alone) for name in names}
        order = sorted(names, key=lambda name: (mean[name], sent[name]))
        row = {**self.cell, **dict.fromkeys((*_WINNER, *_NEXT)), unit.column: cost}
        row |= {"equal": [], "rivals": [], "excluded": list(self.excluded)}
        if not order:
            return row
        # rounding may put another line of the same cost first: those on the envelope have pairs
        winner = next(name for name in order if self.moments.has_pairs(name))
        others = [name for name in order if name != winner]
        against = differences(self.moments, others, winner, unit)
        behind = [name for name, other in against.items() if other.differ]
        row |= {
            "winner": winner,
            "total_mean": mean[winner],
            "total_sem": self.moments.sem(winner, prices),
            "equal": [name for name in others if name not in behind],
        }
        if behind:
            nearest = against[behind[0]]
            row |= {
                "runner_up": behind[0],
                "pairs": nearest.pairs,
                "differ": nearest.differ,
                "margin": nearest.mean(cost),
                "margin_sem": nearest.sem(cost),
            }
        level = _simultaneous(len(names))
        row["rivals"] = [name for name in behind if holds(cost, against[name].not_above(level))]
        return row

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return the pieces, as rows of a frame."""
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
                "pairs": self.compared,
                "excluded": list(self.excluded),
            }

    def __str__(self) -> str:
        from fastfed.display.cheapest_text import envelope_text

        return envelope_text(self)


@dataclass(frozen=True, repr=False)
class Cheapest:
    """The cheapest schedules of all cells, as `best` returns them; as text, the lines of each cell.

    `fastfed.Best` is something else: the goal of finding the best arm.

    Examples
    --------
    >>> import fastfed as ff
    >>> res = ff.simulate([[0.9, 0.1], [0.1, 0.4]], ["fedelim", "fedelim0"], delta=0.1, trials=50)
    >>> res.best().frame["winner"].to_list()
    ['fedelim0', 'fedelim']
    """

    envelopes: tuple[Envelope, ...]

    @property
    def frame(self) -> pl.DataFrame:
        """The pieces of all cells, one row each.

        The row has the ``winner`` from C = ``cost_from`` to ``cost_to``, the 95 % interval
        ``cost_to_low`` to ``cost_to_high`` of that end, the schedules ``equal`` to the winner, and
        the ``rivals`` that may be as cheap somewhere on the piece. ``pairs`` is the number of
        trials that compare the schedules, those that all of them ended. ``excluded`` schedules left
        more trials unended than delta allows.
        """
        return _frame([row for one in self.envelopes for row in one.rows()])

    def at(self, costs: Iterable[float], bit_costs: Iterable[float] = ()) -> pl.DataFrame:
        """Find the winner of every cell at given costs, one row each.

        The row has the winner, its mean total cost, the paired margin of the runner-up with its
        standard error, and the rivals at this cost. ``pairs`` is the number of trials that compare
        the schedules, and in ``differ`` of them the runner-up differs from the winner. ``excluded``
        schedules left more trials unended than delta allows.
        """
        wanted = costs_of(costs, bit_costs)
        return _frame([one.at(cost, unit) for one in self.envelopes for cost, unit in wanted])

    def excluded_text(self) -> list[str]:
        """Return a line for each schedule that is excluded from some cells."""
        return excluded_text([one.excluded for one in self.envelopes], "cells")

    def __str__(self) -> str:
        from fastfed.display.cheapest_text import cheapest_text

        return cheapest_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from fastfed.display.notebook import best_html

        return best_html(self)


def envelope(moments: Moments, cell: Mapping[str, Any]) -> Envelope:
    """Find the cheapest schedules over all C >= 0; all `winners` are partners of the moments."""
    chosen = comparable(moments, float(cell["delta"]))
    present = {name: moments.trials(name) for name in moments.schedules if moments.trials(name)}
    shares = {name: 1 - moments.ended(name) / count for name, count in present.items()}
    return Envelope(
        cell,
        tuple(_pieces(chosen.moments, chosen.schedules)) if chosen.trials else (),
        chosen.never_ended,
        chosen.excluded,
        {name: share for name, share in shares.items() if share},
        (min(present.values(), default=0), max(present.values(), default=0)),
        chosen.trials,
        chosen.schedules,
        chosen.moments,
    )


def winners(moments: Moments, delta: float) -> list[str]:
    """List the schedules that are the cheapest at some cost of an uplink or of a bit.

    No pairs are needed. A second pass over the trials pairs all schedules with these few: a pass
    that pairs all with all is quadratic in the number of schedules.
    """
    chosen = comparable(moments, delta)
    if not chosen.trials:
        return []
    found = []
    for unit in (UPLINK, BIT):
        names = [one for one in chosen.schedules if chosen.moments.has_cost(one, unit.alone)]
        found += [winner for winner, _ in _walk(chosen.moments, names, unit)]
    return list(dict.fromkeys(found))


def cheapest(trials: Trials) -> Cheapest:
    """Find the cheapest schedules of every cell."""
    found = []
    for cell, schedules in trials.held().items():
        names = [str(one) for one in schedules]
        rows = Passes(partial(trials.batches, cell, names), names)
        rows.collect(first := Moments(names))
        rows.collect(moments := Moments(names, winners(first, cell.delta)))
        found.append(envelope(moments, cell.names))
    return Cheapest(tuple(found))


def known_mean(moments: Moments, name: str, prices: Prices) -> float:
    """Return the mean cost of a schedule that ended trials and has the cost."""
    mean = moments.mean(name, prices)
    assert mean is not None  # only schedules that ended are asked
    return mean


def _walk(
    moments: Moments, names: Sequence[str], unit: Unit = UPLINK
) -> Iterator[tuple[str, float]]:
    """Walk along the lower envelope of the lines, from C = 0 on; without names there are none.

    The next line is always the one that cuts the present line first. Yield each line with the C at
    which the next one takes over.
    """
    if not names:
        return
    pulls = {name: known_mean(moments, name, PULLS) for name in names}
    sent = {name: known_mean(moments, name, unit.alone) for name in names}
    winner, low = min(names, key=lambda name: (pulls[name], sent[name])), 0.0
    while True:
        cuts = {
            name: (pulls[name] - pulls[winner]) / (sent[winner] - sent[name])
            for name in names
            if sent[name] < sent[winner]
        }
        if not cuts:
            yield winner, math.inf
            return
        following = min(cuts, key=lambda name: (cuts[name], sent[name]))
        low = max(low, cuts[following])
        yield winner, low
        winner = following


def _pieces(moments: Moments, names: Sequence[str]) -> Iterator[Piece]:
    """Make the pieces of the lower envelope that are longer than a point."""
    walk = list(_walk(moments, names))
    low, level = 0.0, _simultaneous(len(names))
    later: list[str | None] = [*(name for name, _ in walk[1:]), None]
    for (winner, high), following in zip(walk, later, strict=True):
        against = differences(moments, [name for name in names if name != winner], winner)
        interval = None
        if following is not None:
            # differences that never vary leave no interval, but for rounding
            spans = against[following].undecided(CONFIDENCE) or [(high, high)]
            interval = (min(span[0] for span in spans), max(span[1] for span in spans))
        if high > low:
            equal = tuple(name for name, one in against.items() if not one.differ)
            yield Piece(winner, low, high, interval, equal, _rivals(against, (low, high), level))
        low = high


def _rivals(against: Mapping[str, Difference], piece: Interval, level: float) -> tuple[Rival, ...]:
    """List the schedules that may be as cheap as the winner on a piece."""
    rivals = []
    for name, one in against.items():
        if one.differ:
            where = [(max(a, piece[0]), min(b, piece[1])) for a, b in one.not_above(level)]
            # one point alone is where two pieces meet
            where = [(a, b) for a, b in where if a < b]
            if where:
                rivals.append(Rival(name, tuple(where), one.differ))
    return tuple(rivals)


def _simultaneous(count: int) -> float:
    """Return the level at which all comparisons of one with the others hold together."""
    return 1 - (1 - CONFIDENCE) / max(1, count - 1)


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(rows, schema=column_types(rows[0] if rows else ()))
