"""Claims on how costs grow with delta, the gaps and the clients."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from fastfed.analysis.moments import PULLS, UPLINKS
from fastfed.analysis.verdicts import Cell, normal
from fastfed.paper.claims.criteria import (
    GROWTH,
    POWER,
    STRAIGHT,
    TOTAL,
    claim,
    relative_error,
    with_schedules,
)
from fastfed.paper.evidence import Place
from fastfed.text import number

_MEASURED = (("fedelim", TOTAL), ("fedelim0", PULLS))


@claim(
    "linear-in-log",
    "The total cost grows linearly in ln(1/delta).",
    "Contributions; Theorem 4",
    f"no delta's mean is more than {STRAIGHT:.0%} off the line fitted through all",
)
def linear_in_log(panels: Sequence[Place]) -> Iterator[Cell]:
    for name, prices in _MEASURED:
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
            text = f"{number(value, error)} ({slope:,.0f} for each unit of ln(1/delta))"
            yield some[worst].head | {"schedule": name, **normal(value, STRAIGHT, error, text)}


@claim(
    "inverse-square",
    "The total cost grows as 1/gap^2.",
    "Contributions; Theorem 4",
    f"the exponent of 1/gap^2, all gaps scaled together, is within {POWER:g} of 1 (the bounds "
    "have a logarithm of the gap, too)",
)
def inverse_square(gaps: Sequence[Place]) -> Iterator[Cell]:
    for name, prices in _MEASURED:
        some = with_schedules(gaps, name)
        if len(some) < 3:
            continue
        x = -2 * np.log([place.gap for place in some])
        weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        means = [place.whole.mean(name, prices) or math.nan for place in some]
        exponent = float(weights @ np.log(means))
        errors = [relative_error(place, name, prices) for place in some]
        error = math.hypot(*(weights * errors))
        found = normal(abs(exponent - 1), POWER, error, f"exponent {number(exponent, error)}")
        yield _synthetic(some[0], name, found)


@claim(
    "talk-growth",
    "FedElim's communication cost is O(ln T), that of super-exponential communication O(ln ln T).",
    "Supplement, table of the three schemes",
    f"mean uplinks over ln T (over ln ln T) grow less than {GROWTH:g}-fold from the widest "
    "gaps to the smallest",
)
def talk_growth(gaps: Sequence[Place]) -> Iterator[Cell]:
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
        errors = [relative_error(place, name, UPLINKS) for place in (least, most)]
        error = value * math.hypot(*errors)
        text = (
            f"uplinks over {law} grow {number(value, error)}-fold from "
            f"T = {least.T:,.0f} to {most.T:,.0f}"
        )
        yield _synthetic(least, name, normal(value, GROWTH, error, text))


def _synthetic(place: Place, schedule: str, found: Cell) -> Cell:
    """Make the cell of a comparison over the scaled gaps of the synthetic instance."""
    return {"instance": "synthetic", "delta": place.delta, "schedule": schedule, **found}


@claim(
    "tight-in-clients",
    "For many clients the upper bound T and the lower bound differ by logarithms only.",
    "Remark 3; Contributions",
    f"T over the lower bound grows less than {GROWTH:g}-fold with the number of clients M, "
    "where Delta_km <= sqrt(M) Delta_k; the synthetic clients, repeated",
)
def tight_in_clients(cells: Sequence[Cell]) -> Sequence[Cell]:
    return cells
