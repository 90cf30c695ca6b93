"""Claims on FedElim's cost and communication beside FedElim0 and short periods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastfed.analysis.moments import PULLS, UPLINKS, Prices
from fastfed.analysis.verdicts import Cell
from fastfed.paper.claims.criteria import PAPER_COSTS, claim, over_pulls_of_fedelim0, with_schedules
from fastfed.paper.evidence import Place


@claim(
    "total-three",
    "FedElim's total cost is at most 3 times what FedElim0 pulls, for C = 0, 10 and 100.",
    "Abstract; Theorem 4; Figures 2(a), 3(a), 4(a)",
    "ratio of the means at most 3",
)
def total_three(panels: Sequence[Place]) -> Iterator[Cell]:
    for cost in PAPER_COSTS:
        for place in with_schedules(panels, "fedelim", "fedelim0"):
            if cost in place.costs:
                yield place.if_condition(over_pulls_of_fedelim0(place, cost, 3.0), cost)


@claim(
    "total-three-any-cost",
    "The factor 3 does not depend on C.",
    "Remark 4; 'regardless of the value of C', text to Figure 2(a)",
    "ratio of the means at most 3 for every C that was looked at and meets the condition of "
    "Theorem 4, C ln T_k <= T_k for every arm",
)
def total_any_cost(panels: Sequence[Place]) -> Iterator[Cell]:
    return _any_cost(panels, inside=True)


@claim(
    "total-three-outside",
    "The factor 3 even where Theorem 4's condition is broken.",
    "no theorem says so; 'regardless of the value of C', text to Figure 2(a)",
    "the same for every C that was looked at and breaks the condition",
)
def total_outside(panels: Sequence[Place]) -> Iterator[Cell]:
    return _any_cost(panels, inside=False)


def _any_cost(panels: Sequence[Place], inside: bool) -> Iterator[Cell]:
    for place in with_schedules(panels, "fedelim", "fedelim0"):
        for cost in place.costs:
            if place.condition[cost] == inside:
                yield over_pulls_of_fedelim0(place, cost, 3.0)


@claim(
    "pulls-two",
    "FedElim pulls at most twice as often as FedElim0.",
    "Abstract; Theorem 4",
    "ratio of the means at most 2",
)
def pulls_two(panels: Sequence[Place]) -> Iterator[Cell]:
    for place in with_schedules(panels, "fedelim", "fedelim0"):
        yield over_pulls_of_fedelim0(place, 0.0, 2.0)


@claim(
    "fedelim0-cheaper",
    "Where talking is free (C = 0), FedElim0 is cheaper than FedElim.",
    "Captions of Figures 2(a), 4(a)",
    "FedElim0's mean pulls over FedElim's below 1",
)
def fedelim0_cheaper(panels: Sequence[Place]) -> Iterator[Cell]:
    for place in with_schedules(panels, "fedelim", "fedelim0"):
        yield place.compare("fedelim0", "fedelim", PULLS)


@claim(
    "communication",
    "FedElim spends less on communication than periodic schemes with H = 1, 5 and 10.",
    "Figures 2(b), 3(b), 4(b) and their text",
    "FedElim's mean communication cost over the periodic one's below 1",
)
def communication(panels: Sequence[Place]) -> Iterator[Cell]:
    for place in with_schedules(panels, "fedelim"):
        for period, name in place.periods.items():
            if period in (1, 5, 10):
                yield place.compare("fedelim", name, UPLINKS, schedule=name)


@claim(
    "communication-falls",
    "A longer period (H = 1, 5, 10) never spends more on communication than a shorter one.",
    "Text to Figure 2(b)",
    "mean communication cost over that of the next shorter period at most 1",
)
def communication_falls(panels: Sequence[Place]) -> Iterator[Cell]:
    for place in panels:
        periods = place.periods
        for short, long in ((1, 5), (5, 10)):
            if {short, long} <= periods.keys():
                what = f"H = {long} against {short}"
                yield place.compare(periods[long], periods[short], UPLINKS, what=what)


@claim(
    "periodic-gap",
    "A periodic scheme's total cost is at most 1 + C / H times what FedElim0 pulls.",
    "Remark 4, multiplicative gap of periodic communication",
    "ratio of the means at most 1 + C / H (the bound behind the remark also has (H + C) M K, "
    "which the remark leaves out and long periods show)",
)
def periodic_gap(panels: Sequence[Place]) -> Iterator[Cell]:
    for place in with_schedules(panels, "fedelim0"):
        for cost in sorted({10.0, 100.0} & set(place.costs)):
            for period, name in place.periods.items():
                prices, limit = (Prices.total(cost), PULLS), 1 + cost / period
                yield place.compare(
                    name, "fedelim0", *prices, limit=limit, cost=cost, schedule=name
                )
