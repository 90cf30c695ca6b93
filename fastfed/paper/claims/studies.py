"""Claims on bases and on the three schemes, from many schedules at one delta."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastfed.analysis.moments import PULLS, UPLINKS
from fastfed.analysis.verdicts import Cell
from fastfed.paper.claims.criteria import ALMOST, COST, TOTAL, claim, with_schedules
from fastfed.paper.evidence import Place

_LEAST_TALK = (
    ("superexponential", "fedelim", UPLINKS, "super-exponential talks less than FedElim"),
    ("fedelim", "superexponential", PULLS, "FedElim pulls less than super-exponential"),
    ("fedelim", "superexponential", TOTAL, "FedElim costs less than super-exponential"),
)


@claim(
    "trade-off",
    "Periodic communication pulls least and talks most, super-exponential "
    "communication talks least and pulls most, FedElim lies between.",
    "Supplement, table of the three schemes",
    "ratios of the means below 1; periodic with H = 10 and with H nearest H_opt",
)
def trade_off(studies: Sequence[Place]) -> Iterator[Cell]:
    for place in with_schedules(studies, "fedelim"):
        for period in dict.fromkeys((10, place.best_period)):
            if period in place.periods:
                name = place.periods[period]
                what = f"FedElim talks less than H = {period}"
                yield place.compare("fedelim", name, UPLINKS, what=what)
                what = f"H = {period} pulls less than FedElim"
                yield place.compare(name, "fedelim", PULLS, what=what)
        if "superexponential" in place.schedules:
            for one, other, prices, what in _LEAST_TALK:
                yield place.compare(one, other, prices, what=what)


@claim(
    "near-best-period",
    "H_opt = sqrt(C T / (M K)) is a good period, and FedElim costs about "
    "as much without knowing it.",
    "Supplement, optimal period",
    f"mean total over the other's below {ALMOST:g}",
)
def near_best_period(studies: Sequence[Place]) -> Iterator[Cell]:
    for place in with_schedules(studies, "fedelim"):
        if place.best_period in place.periods:
            chosen = place.periods[place.best_period]
            note, what = f"H_opt = {place.best_period:,}", "FedElim against H_opt"
            yield place.compare("fedelim", chosen, TOTAL, limit=ALMOST, note=note, what=what)
            yield from place.against_best(
                chosen, place.periods.values(), COST, limit=ALMOST, what="H_opt against the best"
            )


@claim(
    "base-two",
    "The base lambda = 2 works well; nothing is gained by knowing the best.",
    "Supplement, base lambda",
    f"FedElim's mean total over the least of all bases below {ALMOST:g}",
)
def base_two(studies: Sequence[Place]) -> Iterator[Cell]:
    for place in with_schedules(studies, "fedelim"):
        bases = [
            name
            for name in place.schedules
            if name.startswith(("exponential", "fedelim")) and name != "fedelim0"
        ]
        if len(bases) > 1:
            yield from place.against_best("fedelim", bases, COST, limit=ALMOST)
