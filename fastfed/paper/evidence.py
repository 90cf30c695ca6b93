"""Evidence for the paper's claims: exact sums over paired trials.

There is one `Place` for each data set, delta and confidence scale.

Two precautions are built in here. Schedules are compared trial by trial, on the same rewards, over
the trials that both ended, if each ended as many as its guarantee says. A claim may be about the
best of several schedules (the best period, the best base). Then the trials with even numbers choose
the best, and those with odd numbers judge it: the least of several means of the same trials would
look better than it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from fastfed.analysis.comparable import comparable
from fastfed.analysis.moments import Halves, Moments, Prices
from fastfed.analysis.verdicts import Cell, comparison, does_not_apply
from fastfed.model.schedules import Schedule
from fastfed.paper.doubling import Doubling
from fastfed.paper.optimum import OptimumPlace
from fastfed.paper.radii import RadiusPlace


@dataclass(frozen=True, eq=False)
class Place:
    """The trials of all schedules at one place, and what theory says of it."""

    instance: str
    delta: float
    sigma: float
    halves: Halves
    costs: tuple[float, ...]
    """Those of an uplink that are looked at."""
    condition: Mapping[float, bool]
    """By cost: whether Theorem 4's condition, C ln T_k <= T_k for every arm, is met."""
    T: float = 0.0
    gap: float = 0.0
    """The smallest local gap."""
    best_period: int = 0
    """The whole H whose bound is least, at C = 10."""
    base_opt: float = 0.0

    @property
    def head(self) -> Cell:
        return {"instance": self.instance, "delta": self.delta}

    @cached_property
    def whole(self) -> Moments:
        """The sums over all trials."""
        return self.halves.all

    @property
    def schedules(self) -> tuple[str, ...]:
        """The schedules with at least one trial that ended."""
        return tuple(name for name in self.halves.even.schedules if self.whole.ended(name))

    @property
    def periods(self) -> dict[int, str]:
        """Map H to its periodic schedule; FedElim0 is H = 1 under another name."""
        found = {
            Schedule.parse(name).period: name
            for name in self.schedules
            if Schedule.parse(name).family == "periodic"
        }
        return {period: found[period] for period in sorted(filter(None, found))}

    @property
    def powers(self) -> dict[int, str]:
        """Those of the paper's panels (c): H = 1, 10, 100, ..."""
        return {
            period: name for period, name in self.periods.items() if str(period).rstrip("0") == "1"
        }

    def compare(
        self,
        one: str,
        other: str,
        x: Prices,
        y: Prices | None = None,
        *,
        limit: float = 1.0,
        note: str = "",
        judge: Moments | None = None,
        **where: Any,
    ) -> Cell:
        """Compare one schedule's mean cost with another's; the ratio should be at most ``limit``.

        An uplink costs ``x`` for the first schedule and ``y`` for the other (None: the same). All
        trials judge, or those of ``judge``.
        """
        prices = (x, x if y is None else y)
        found = comparison(self.whole, (one, other), prices, self.delta, limit, note, judge)
        return {**self.head, **where, **found}

    def cheapest(self, names: Iterable[str], cost: float) -> str | None:
        """Choose the schedule with the least mean total cost, by the trials with even numbers.

        Schedules that end too few trials are excluded; the others are compared over the trials that
        all of them ended.
        """
        chosen = comparable(self.whole, self.delta, names).schedules
        even = self.halves.even.common(chosen)
        means = {name: even.mean(name, Prices.total(cost)) for name in chosen}
        known = {name: mean for name, mean in means.items() if mean is not None}
        return min(known, key=known.__getitem__, default=None)

    def against_best(
        self, one: str, names: Iterable[str], price: float, *, limit: float = 1.0, **where: Any
    ) -> list[Cell]:
        """Compare a schedule with the cheapest of others, an uplink at ``price``.

        Without other schedules there is no cell.
        """
        best = self.cheapest(names, price)
        if best is None:
            return []
        where |= {"limit": limit, "judge": self.halves.odd}
        note = f"best {in_words(best)}, chosen by the other half of the trials"
        return [self.compare(one, best, Prices.total(price), note=note, **where)]

    def if_condition(self, cell: Cell, cost: float) -> Cell:
        """Return the cell, marked as not applicable where Theorem 4 is not about it."""
        return cell if self.condition[cost] else does_not_apply(cell, "C ln T_k > T_k for some arm")


@dataclass
class Evidence:
    """Evidence by which the claims are judged; any field may be empty."""

    panels: list[Place] = field(default_factory=list)
    """Every data set at its own confidence scale, over delta."""
    scales: list[Place] = field(default_factory=list)
    """The same with whatever other confidence scales there are."""
    studies: list[Place] = field(default_factory=list)
    """One delta, many bases and periods."""
    gaps: list[Place] = field(default_factory=list)
    """The synthetic instance with its gaps multiplied."""
    checked: list[Cell] = field(default_factory=list)
    """The lines of `fastfed check` on the panels."""
    good_event: list[Cell] = field(default_factory=list)
    tightness: list[Cell] = field(default_factory=list)
    radii: list[RadiusPlace] = field(default_factory=list)
    """FedElim and FedElim0 under every radius."""
    doubling: Doubling | None = None
    improvements: list[Cell] = field(default_factory=list)
    """T* over 2 M times Theorem 3."""
    limits: list[Cell] = field(default_factory=list)
    """FedElim0 over T* as delta -> 0."""
    optimum: list[OptimumPlace] = field(default_factory=list)
    """FedElim and FedElim0 beside the least pulls."""

    def add(self, other: Evidence) -> None:
        """Add the lists of other evidence, each to the end of the list of the same name."""
        for one in fields(self):
            own = getattr(self, one.name)
            if isinstance(own, list):
                own += getattr(other, one.name)


def in_words(schedule: str) -> str:
    """Write a schedule as H = 100, as lambda = 1.5, or by its name."""
    one = Schedule.parse(schedule)
    symbol = {"periodic": "H", "exponential": "lambda", "fedelim": "lambda"}.get(one.family)
    return schedule if symbol is None or one.value is None else f"{symbol} = {one.value:g}"
