"""Claims on bases and on the three schemes, from many schedules at one delta."""

from __future__ import annotations

from collections.abc import Sequence

from fastfed.analysis.moments import PULLS, UPLINKS
from fastfed.analysis.verdicts import Claim, conclude
from fastfed.paper.claims.criteria import ALMOST, COST, TOTAL, with_schedules
from fastfed.paper.evidence import Place


def trade_off(studies: Sequence[Place]) -> Claim | None:
    cells = []
    for place in with_schedules(studies, "fedelim"):
        for period in dict.fromkeys((10, place.best_period)):
            if period in place.periods:
                name = place.periods[period]
                cells += [
                    place.compare(
                        "fedelim", name, UPLINKS, what=f"FedElim talks less than H = {period}"
                    ),
                    place.compare(
                        name, "fedelim", PULLS, what=f"H = {period} pulls less than FedElim"
                    ),
                ]
        if "superexponential" in place.schedules:
            last = "superexponential"
            cells += [
                place.compare(
                    last, "fedelim", UPLINKS, what="super-exponential talks less than FedElim"
                ),
                place.compare(
                    "fedelim", last, PULLS, what="FedElim pulls less than super-exponential"
                ),
                place.compare(
                    "fedelim", last, TOTAL, what="FedElim costs less than super-exponential"
                ),
            ]
    return conclude(
        "trade-off",
        "Periodic communication pulls least and talks most, super-exponential "
        "communication talks least and pulls most, FedElim lies between.",
        "Supplement, table of the three schemes",
        "ratios of the means below 1; periodic with H = 10 and with H nearest H_opt",
        cells,
    )


def near_best_period(studies: Sequence[Place]) -> Claim | None:
    cells = []
    for place in with_schedules(studies, "fedelim"):
        if place.best_period in place.periods:
            chosen = place.periods[place.best_period]
            cells.append(
                place.compare(
                    "fedelim",
                    chosen,
                    TOTAL,
                    limit=ALMOST,
                    note=f"H_opt = {place.best_period:,}",
                    what="FedElim against H_opt",
                )
            )
            cells += place.against_best(
                chosen, place.periods.values(), COST, limit=ALMOST, what="H_opt against the best"
            )
    return conclude(
        "near-best-period",
        "H_opt = sqrt(C T / (M K)) is a good period, and FedElim costs about "
        "as much without knowing it.",
        "Supplement, optimal period",
        f"mean total over the other's below {ALMOST:g}",
        cells,
    )


def base_two(studies: Sequence[Place]) -> Claim | None:
    cells = []
    for place in with_schedules(studies, "fedelim"):
        bases = [
            name
            for name in place.schedules
            if name.startswith(("exponential", "fedelim")) and name != "fedelim0"
        ]
        if len(bases) > 1:
            cells += place.against_best("fedelim", bases, COST, limit=ALMOST)
    return conclude(
        "base-two",
        "The base lambda = 2 works well; nothing is gained by knowing the best.",
        "Supplement, base lambda",
        f"FedElim's mean total over the least of all bases below {ALMOST:g}",
        cells,
    )
