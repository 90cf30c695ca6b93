"""Claims of our own on the optimum T*: see `fastfed.paper.optimum`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from fastfed.analysis.moments import PULLS
from fastfed.analysis.verdicts import Cell, normal
from fastfed.paper.claims.criteria import claim
from fastfed.paper.optimum import LIMITS, PAIRS, RUNS, OptimumPlace
from fastfed.text import number

_OURS = "not in the paper: docs/explanation/optimum.md"


@claim(
    "theorem-3-improved",
    "Theorem 3 can be improved by a factor of up to 2M, and not by more: T* is at most 2M "
    "times as much, and instances of two arms attain it.",
    _OURS,
    "T* over 2M times Theorem 3 at most 1; on the instances of two arms the inverse, too "
    "(computed, to a relative 1e-6)",
)
def theorem_3_improved(cells: Sequence[Cell]) -> Sequence[Cell]:
    return cells


@claim(
    "within-8-T*",
    "As delta goes to 0, FedElim0 pulls at most 8 times what any algorithm must, and at most "
    "4 times with a radius per pair, whatever the numbers of arms and clients.",
    _OURS,
    f"FedElim0's pulls per unit of ln(1/delta) at most {LIMITS['paper']:g} T* with the paper's "
    f"radius, {LIMITS[PAIRS]:g} T* with {PAIRS}; Gaussian rewards (computed)",
)
def within_eight(cells: Sequence[Cell]) -> Sequence[Cell]:
    return cells


@claim(
    "mostly-the-radius",
    "FedElim pulls several times the least pulls of any algorithm, and its radius explains "
    "more of that than doubling, proportions and thresholds together.",
    _OURS,
    "the factors of doubling, proportions and thresholds over that of the radius below 1",
)
def mostly_the_radius(places: Sequence[OptimumPlace]) -> Iterator[Cell]:
    """Compare what the radius explains of FedElim's factor with all the rest together.

    The rest is G / L and the radius F / G, with F and G the mean pulls of FedElim with the paper's
    radius and with `mixture-pairs`, and L the least pulls. The error of ln(rest / radius) is at
    most that of ln(G / F) plus that of ln G.
    """
    own, pairs = RUNS["fedelim", "paper"], RUNS["fedelim", PAIRS]
    for place in places:
        split, found = place.split(), place.factor(pairs)
        if split is None or found is None:
            continue
        paired = place.moments.pair(pairs, own, PULLS)
        value = found[0] / split.radius
        if paired.ratio is None or paired.ratio_sem is None or math.isnan(found[1]):
            error = None
        else:
            error = value * (paired.ratio_sem / paired.ratio + found[1] / found[0])
        text = (
            f"{number(value, error)}; {split.total:.3g} x the least pulls = radius "
            f"{split.radius:.2f} x doubling {split.doubling:.2f} x proportions "
            f"{split.proportions:.2f} x thresholds {split.thresholds:.2f}"
        )
        yield {**place.head, **normal(value, 1.0, error, text)}
