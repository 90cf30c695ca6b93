"""What the paper's claims are judged by: exact sums over paired trials, one `Place` for each data
set, delta and confidence scale.

Two precautions are built in here. Schedules are compared trial by trial, on the same rewards, over
the trials that both ended. And where a claim speaks of the best of several schedules (the best
period, the best base), the trials with even numbers choose it and those with odd numbers judge it:
the least of several means of the same trials would look better than it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fastfed.paper.doubling import Doubling
from fastfed.paper.radii import RadiusPlace
from fastfed.problem.schedule import parse
from fastfed.statistics.moments import Halves, Moments, Prices
from fastfed.statistics.verdicts import Cell, does_not_apply, ratio


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
        """Those that have trials that ended."""
        return tuple(name for name in self.halves.even.schedules if self.whole.ended(name))

    @property
    def periods(self) -> dict[int, str]:
        """The periodic schedules by H. (FedElim0 is H = 1 under another name.)"""
        found = {
            parse(name).period: name for name in self.schedules if parse(name).kind == "periodic"
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
        """One schedule's mean cost at prices ``x`` over the other's at ``y`` (None: the same),
        which should be at most ``limit``; judged by all trials, or by ``judge``."""
        pair = (self.whole if judge is None else judge).pair(one, other, x, y)
        return {**self.head, **where, **ratio(pair, limit, note)}

    def cheapest(self, names: Iterable[str], cost: float) -> str | None:
        """The one with the least mean total cost, by the trials with even numbers."""
        means = {name: self.halves.even.mean(name, Prices.total(cost)) for name in names}
        known = {name: mean for name, mean in means.items() if mean is not None}
        return min(known, key=known.__getitem__, default=None)

    def against_best(
        self, one: str, names: Iterable[str], price: float, *, limit: float = 1.0, **where: Any
    ) -> list[Cell]:
        """A schedule over the cheapest of others, an uplink at ``price``; no cell without any."""
        best = self.cheapest(names, price)
        if best is None:
            return []
        return [
            self.compare(
                one,
                best,
                Prices.total(price),
                limit=limit,
                judge=self.halves.odd,
                note=f"best {in_words(best)}, chosen by the other half of the trials",
                **where,
            )
        ]

    def if_condition(self, cell: Cell, cost: float) -> Cell:
        """The cell, which does not apply where Theorem 4 is not about it."""
        return cell if self.condition[cost] else does_not_apply(cell, "C ln T_k > T_k for some arm")


@dataclass(frozen=True)
class Evidence:
    """What the claims are judged by; any of it may be empty."""

    panels: Sequence[Place] = ()
    """Every data set at its own confidence scale, over delta."""
    scales: Sequence[Place] = ()
    """The same with whatever other confidence scales there are."""
    studies: Sequence[Place] = ()
    """One delta, many bases and periods."""
    gaps: Sequence[Place] = ()
    """The synthetic instance with its gaps multiplied."""
    checked: Sequence[Cell] = ()
    """The lines of `fastfed check` on the panels."""
    good_event: Sequence[Cell] = ()
    tightness: Sequence[Cell] = ()
    radii: Sequence[RadiusPlace] = ()
    """FedElim and FedElim0 under every radius."""
    doubling: Doubling | None = None


def in_words(schedule: str) -> str:
    """H = 100, lambda = 1.5, or its name."""
    one = parse(schedule)
    symbol = {"periodic": "H", "exponential": "lambda", "fedelim": "lambda"}.get(one.kind)
    return schedule if symbol is None or one.value is None else f"{symbol} = {one.value:g}"
