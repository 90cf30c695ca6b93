"""Claims on how costs grow with delta, the gaps and the clients."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fastfed.analysis.moments import PULLS, UPLINKS
from fastfed.analysis.verdicts import Cell, Claim, conclude, normal
from fastfed.paper.claims.criteria import (
    GROWTH,
    POWER,
    STRAIGHT,
    TOTAL,
    relative_error,
    with_schedules,
)
from fastfed.paper.evidence import Place
from fastfed.text import number


def linear_in_log(panels: Sequence[Place]) -> Claim | None:
    cells = []
    for name, prices in (("fedelim", TOTAL), ("fedelim0", PULLS)):
        for instance in dict.fromkeys(place.instance for place in panels):
            some = [place for place in with_schedules(panels, name) if place.instance == instance]
            if len(some) < 3:
                continue
            x = np.log([1 / place.delta for place in some])
            y = np.array([place.whole.mean(name, prices) for place in some])
            slope, offset = np.polyfit(x, y, 1)
            off = np.abs(y / (slope * x + offset) - 1)
            worst = int(off.argmax())
            sem = some[worst].whole.sem(name, prices)
            value, error = float(off[worst]), None if sem is None else sem / float(y[worst])
            cells.append(
                {
                    **some[worst].head,
                    "schedule": name,
                    **normal(
                        value,
                        STRAIGHT,
                        error,
                        f"{number(value, error)} ({slope:,.0f} for each unit of ln(1/delta))",
                    ),
                }
            )
    return conclude(
        "linear-in-log",
        "The total cost grows linearly in ln(1/delta).",
        "Contributions; Theorem 4",
        f"no delta's mean is more than {STRAIGHT:.0%} off the line fitted through all",
        cells,
    )


def inverse_square(gaps: Sequence[Place]) -> Claim | None:
    cells = []
    for name, prices in (("fedelim", TOTAL), ("fedelim0", PULLS)):
        some = with_schedules(gaps, name)
        if len(some) < 3:
            continue
        x = -2 * np.log([place.gap for place in some])
        weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        exponent = float(
            weights @ np.log([place.whole.mean(name, prices) or math.nan for place in some])
        )
        error = math.hypot(
            *(
                weight * relative_error(place, name, prices)
                for weight, place in zip(weights, some, strict=True)
            )
        )
        cells.append(
            {
                "instance": "synthetic",
                "delta": some[0].delta,
                "schedule": name,
                **normal(abs(exponent - 1), POWER, error, f"exponent {number(exponent, error)}"),
            }
        )
    return conclude(
        "inverse-square",
        "The total cost grows as 1/gap^2.",
        "Contributions; Theorem 4",
        f"the exponent of 1/gap^2, all gaps scaled together, is within {POWER:g} of 1 (the bounds "
        "have a logarithm of the gap, too)",
        cells,
    )


def talk_growth(gaps: Sequence[Place]) -> Claim | None:
    cells = []
    for name, law, function in (
        ("fedelim", "ln T", math.log),
        ("superexponential", "ln ln T", lambda T: math.log(math.log(T))),
    ):
        some = sorted(with_schedules(gaps, name), key=lambda place: place.T)
        if len(some) < 2:
            continue
        least, most = some[0], some[-1]
        means = [place.whole.mean(name, UPLINKS) for place in (least, most)]
        assert means[0] is not None
        assert means[1] is not None
        value = means[1] / function(most.T) / (means[0] / function(least.T))
        error = value * math.hypot(
            *(relative_error(place, name, UPLINKS) for place in (least, most))
        )
        cells.append(
            {
                "instance": "synthetic",
                "delta": least.delta,
                "schedule": name,
                **normal(
                    value,
                    GROWTH,
                    error,
                    f"uplinks over {law} grow {number(value, error)}-fold from "
                    f"T = {least.T:,.0f} to {most.T:,.0f}",
                ),
            }
        )
    return conclude(
        "talk-growth",
        "FedElim's communication cost is O(ln T), that of super-exponential "
        "communication O(ln ln T).",
        "Supplement, table of the three schemes",
        f"mean uplinks over ln T (over ln ln T) grow less than {GROWTH:g}-fold from the widest "
        "gaps to the smallest",
        cells,
    )


def tight_in_clients(cells: Sequence[Cell]) -> Claim | None:
    return conclude(
        "tight-in-clients",
        "For many clients the upper bound T and the lower bound differ by logarithms only.",
        "Remark 3; Contributions",
        f"T over the lower bound grows less than {GROWTH:g}-fold with the number of clients M, "
        "where Delta_km <= sqrt(M) Delta_k; the synthetic clients, repeated",
        cells,
    )
