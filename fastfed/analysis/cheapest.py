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

**Prices.** Other counts may have fixed prices (`fastfed.analysis.prices`): their cost stands in for
the pulls above. Where a bit has a price c in place of an uplink, the total is a line in c, and at
any given c the same comparisons hold. A schedule whose bits were not counted has no such cost.

**Over other choices.** Trials are paired across radii, uplinks and other choices of a run, too.
With ``over``, every value of these choices makes schedules of its own, and one of all is the
winner.

**Trials in which two schedules do the same** say nothing about which is cheaper. As in `intervals`,
tests use only the trials in which the two differ, decide nothing below 59 of them, and must
survive one further trial, the worst that the costs seen allow.

**Trials that fail** (a wrong answer, or none) say nothing about the price of an answer. As
`fastfed.analysis.comparable` says, a schedule that fails in more trials than delta allows is
excluded and named with its share; the others are compared over the trials that all of them answered
rightly. Lines, crossovers, intervals and tests are all of these trials. Below 3 / delta of them
nothing is separated. A trial that loses the best arm may cost 100,000 times as much as the others.
A winner whose mean over all trials is at least twice that over the compared ones is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from fastfed.analysis.columns import column_types
from fastfed.analysis.comparable import (
    Failures,
    common_trials,
    comparable,
    excluded_text,
    few_text,
    least_trials,
)
from fastfed.analysis.cost_ranges import Interval, holds
from fastfed.analysis.moments import Moments
from fastfed.analysis.paired import Paired
from fastfed.analysis.prices import Given, Unit, columns_of, costs_of, units
from fastfed.analysis.trials import Passes, Run, Trials, columns_with, read_runs, runs_of
from fastfed.errors import InputError, nearest
from fastfed.model.cell import CELL

if TYPE_CHECKING:
    import polars as pl

CONFIDENCE = 0.95
DEARER = 2.0
"""The factor to the mean over all trials from which a winner is named for it."""
_COSTS, _WINNER = ("cost", "bit_cost"), ("total_mean", "total_sem", "equal")
_NEXT = ("runner_up", "margin", "margin_sem", "pairs", "differ", "rivals", "excluded")
"""Columns of the cheapest schedule at a cost, and of the others, besides those of the cell."""


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
    never_right: tuple[str, ...]
    """Schedules that have no trial with right answers, and so no cost."""
    excluded: Mapping[str, Failures]
    """Schedules that cannot be the cheapest: they fail in more trials than delta allows."""
    dearer: Mapping[str, float]
    """Winners with the factor from their mean cost over the compared trials to that over all trials
    that ended, at C = 0, where it is at least `DEARER`."""
    trials: tuple[int, int]
    """The least and the largest number of trials of a schedule."""
    compared: int
    """The trials that all schedules which are compared answered rightly."""
    least: int
    """The number of such trials below which nothing is separated."""
    schedules: tuple[str, ...]
    """Those that are compared."""
    moments: Moments = field(repr=False, compare=False)
    """Over the trials that are compared."""
    unit: Unit
    """An uplink, beside the fixed prices."""
    over: Mapping[str, Mapping[str, Any]]
    """By schedule: its own name and its values of the choices over which the winner is found;
    empty if that is the schedule alone."""

    def _won(self, winner: str | None) -> dict[str, Any]:
        """Return the winner, with its values of the choices over which it was found."""
        if not self.over:
            return {"winner": winner}
        none: Mapping[str, Any] = dict.fromkeys(next(iter(self.over.values())))
        values = self.over[winner] if winner is not None else none
        return {"winner": values["schedule"], **{k: values[k] for k in values if k != "schedule"}}

    def lead(self, cost: float, unit: Unit) -> tuple[str | None, dict[str, Paired]]:
        """Return the winner at one cost, and the costs of all others less the winner's.

        The others stand in the order of their means. There is no winner where no schedule has a
        cost.
        """
        found = lines(self.moments, self.schedules, unit)
        order = sorted(
            found, key=lambda name: (found[name][0] + cost * found[name][1], found[name])
        )
        # rounding may put another line of the same cost first: those on the envelope have pairs
        winner = next((name for name in order if name in self.moments.partners), None)
        others = [] if winner is None else [name for name in order if name != winner]
        return winner, {
            name: self.moments.apart(name, str(winner), unit, self.least) for name in others
        }

    def at(self, cost: float, unit: Unit | None = None) -> dict[str, Any]:
        """Find the winner at one cost, its margin over the next best, and its rivals.

        Rivals are the schedules that the trials do not separate from the winner.
        """
        unit = unit or self.unit
        row = {**self.cell, **dict.fromkeys(_COSTS), unit.column: cost, **self._won(None)}
        row |= dict.fromkeys((*_WINNER, *_NEXT))
        row |= {"equal": [], "rivals": [], "excluded": list(self.excluded)}
        winner, against = self.lead(cost, unit)
        if winner is None:
            return row
        behind = {name: other for name, other in against.items() if other.differ}
        level = _simultaneous(len(against) + 1)
        row |= {
            **self._won(winner),
            "total_mean": self.moments.mean(winner, unit.total(cost)),
            "total_sem": self.moments.sem(winner, unit.total(cost)),
            "equal": [name for name in against if name not in behind],
            "rivals": [name for name, one in behind.items() if holds(cost, one.not_above(level))],
        }
        if behind:
            name, nearest = next(iter(behind.items()))
            row |= {
                "runner_up": name,
                "pairs": nearest.pairs,
                "differ": nearest.differ,
                "margin": nearest.mean(cost),
                "margin_sem": nearest.sem(cost),
            }
        return row

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return the pieces, as rows of a frame."""
        for piece in self.pieces:
            low, high = piece.high_interval or (None, None)
            yield {
                **self.cell,
                **self._won(piece.winner),
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
        from fastfed.display.cheapest_text import cheapest_table

        return cheapest_table(Cheapest((self,)), every=True, framed=False).text()


@dataclass(frozen=True, repr=False)
class Cheapest:
    """The cheapest schedules of all cells, as `best` returns them; as text, a row for each cell.

    `fastfed.Best` is something else: the goal of finding the best arm.

    Examples
    --------
    >>> import fastfed as ff
    >>> res = ff.simulate([[0.9, 0.1], [0.1, 0.4]], ["fedelim", "fedelim0"], delta=0.1, trials=50)
    >>> res.best().frame["winner"].to_list()
    ['fedelim0', 'fedelim']
    """

    envelopes: tuple[Envelope, ...]
    prices: Given = None
    """Fixed prices besides that of an uplink."""

    @property
    def frame(self) -> pl.DataFrame:
        """The pieces of all cells, one row each.

        The row has the ``winner`` from C = ``cost_from`` to ``cost_to``, the 95 % interval
        ``cost_to_low`` to ``cost_to_high`` of that end, the schedules ``equal`` to the winner, and
        the ``rivals`` that may be as cheap somewhere on the piece. ``pairs`` is the number of
        trials that compare the schedules, those that all of them answered rightly. ``excluded``
        schedules fail in more trials than delta allows.
        """
        return _frame([row for one in self.envelopes for row in one.rows()])

    def at(self, costs: Iterable[float], bit_costs: Iterable[float] = ()) -> pl.DataFrame:
        """Find the winner of every cell at given costs, one row each.

        The row has the winner, its mean total cost, the paired margin of the runner-up with its
        standard error, and the rivals at this cost. ``pairs`` is the number of trials that compare
        the schedules, and in ``differ`` of them the runner-up differs from the winner. ``excluded``
        schedules fail in more trials than delta allows.
        """
        wanted = costs_of(costs, bit_costs, self.prices)
        return _frame([one.at(cost, unit) for one in self.envelopes for cost, unit in wanted])

    def notes(self) -> list[str]:
        """Return lines on excluded schedules, on dear trials that failed, and on few trials."""
        trials = [(one.compared, one.least) for one in self.envelopes]
        dearer: dict[str, float] = {}
        for name, factor in (item for one in self.envelopes for item in one.dearer.items()):
            dearer[name] = max(factor, dearer.get(name, 0.0))
        named = ", ".join(f"{name} {factor:.3g}" for name, factor in dearer.items())
        more = f"with the trials that failed costs are in the mean so many times as high: {named}"
        return [
            *excluded_text([one.excluded for one in self.envelopes], "cells"),
            *([more] if named else []),
            *few_text(trials, "cells"),
        ]

    def __str__(self) -> str:
        from fastfed.display.cheapest_text import cheapest_table

        return cheapest_table(self, rest=".frame", framed=False).text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from fastfed.display.cheapest_text import cheapest_table

        return cheapest_table(self, rest=".frame").html()


def envelope(
    first: Moments,
    collect: Callable[[Moments], None],
    cell: Mapping[str, Any],
    prices: Given = None,
    over: Mapping[str, Mapping[str, Any]] | None = None,
) -> Envelope:
    """Find the cheapest schedules over all C >= 0.

    ``first`` has the sums of all trials, and ``collect`` makes further passes over them: one for
    the trials that all schedules answered rightly, one for their pairs with the cheapest.
    """
    delta = float(cell["delta"])
    chosen, least = comparable(first, delta), least_trials(delta)
    counts = [first.trials(name) for name in first.schedules if first.trials(name)]
    unit = units(prices)[0]
    moments = common_trials(collect, first, chosen.schedules)
    # no pairs are needed to find the winners, and pairs of all would be quadratic in their number
    winners = dict.fromkeys(
        name for one in units(prices) for name, *_ in _walk(lines(moments, chosen.schedules, one))
    )
    if winners:
        moments = common_trials(collect, first, chosen.schedules, list(winners))
    dearer = {
        name: every / own
        for name in winners
        if (own := moments.mean(name, unit.base))
        and (every := first.mean(name, unit.base) or 0.0) >= DEARER * own
    }
    return Envelope(
        cell,
        tuple(_pieces(moments, lines(moments, chosen.schedules, unit), least, unit)),
        chosen.never_right,
        chosen.excluded,
        dearer,
        (min(counts, default=0), max(counts, default=0)),
        moments.ended(chosen.schedules[0]) if chosen.schedules else 0,
        least,
        chosen.schedules,
        moments,
        unit,
        over or {},
    )


def lines(moments: Moments, names: Iterable[str], unit: Unit) -> dict[str, tuple[float, float]]:
    """Return mean costs at fixed prices, and means of what is sent, where both are known."""
    found = {
        name: (moments.mean(name, unit.base), moments.mean(name, unit.alone)) for name in names
    }
    return {
        name: (base, sent)
        for name, (base, sent) in found.items()
        if base is not None and sent is not None
    }


def cheapest(trials: Trials, prices: Given = None, over: Sequence[str] = ()) -> Cheapest:
    """Find the cheapest schedules of every cell, or over all values of some choices."""
    costs_of([0.0], [], prices)  # refused if uplinks have a price already
    for one in over:
        if one not in CELL or one in _APART:
            reason = _APART.get(one, f"must be one of {', '.join(_OVER)}")
            raise InputError(f"over {one}{'' if one in _APART else nearest(one, _OVER)}: {reason}")
    columns = columns_of((0.0, unit) for unit in units(prices))
    found = []
    for where, some in runs_of({"": trials}, over):
        runs: dict[str, Run] = {}
        values: dict[str, dict[str, Any]] = {}
        for _, (rows, cell, schedule) in some:
            chosen = {key: cell.names[key] for key in over}
            name = ", ".join([schedule, *map(str, chosen.values())])
            runs[name], values[name] = (rows, cell, schedule), {"schedule": schedule, **chosen}
        passes = Passes(partial(read_runs, runs, columns_with(columns)), list(runs))
        passes.collect(first := Moments(list(runs), (), columns))
        found.append(envelope(first, passes.collect, where, prices, values if over else None))
    return Cheapest(tuple(found), prices)


_APART = {
    "delta": "another delta allows other errors, so their costs are not those of one promise",
    "instance": "another instance is another problem, whose trials are not paired with these",
    "goal": "another goal asks another question, whose answer has another cost",
    "schedule": "the winner is found over all schedules already",
}
"""Choices over which there is no winner, and why."""
_OVER = tuple(name for name in CELL if name not in _APART)


def _walk(
    found: Mapping[str, tuple[float, float]],
) -> Iterator[tuple[str, float, str | None]]:
    """Walk along the lower envelope of lines, from C = 0 on; without lines there is nothing.

    The next line is always the one that cuts the present line first. Yield each line, the C at
    which the next one takes over, and the next one.
    """
    winner, low = min(found, key=found.__getitem__, default=None), 0.0
    while winner is not None:
        base, sent = found[winner]
        cuts = {
            name: ((one - base) / (sent - less), less)
            for name, (one, less) in found.items()
            if less < sent
        }
        following = min(cuts, key=cuts.__getitem__, default=None)
        low = math.inf if following is None else max(low, cuts[following][0])
        yield winner, low, following
        winner = following


def _pieces(
    moments: Moments, found: Mapping[str, tuple[float, float]], least: int, unit: Unit
) -> Iterator[Piece]:
    """Make the pieces of the lower envelope that are longer than a point."""
    low, level = 0.0, _simultaneous(len(found))
    for winner, high, following in _walk(found):
        against = {
            name: moments.apart(name, winner, unit, least) for name in found if name != winner
        }
        interval = None
        if following is not None:
            # differences that never vary leave no interval, but for rounding
            spans = against[following].undecided(CONFIDENCE) or [(high, high)]
            interval = (min(span[0] for span in spans), max(span[1] for span in spans))
        if high > low:
            equal = tuple(name for name, one in against.items() if not one.differ)
            yield Piece(winner, low, high, interval, equal, _rivals(against, (low, high), level))
        low = high


def _rivals(against: Mapping[str, Paired], piece: Interval, level: float) -> tuple[Rival, ...]:
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
