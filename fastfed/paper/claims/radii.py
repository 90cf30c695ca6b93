"""Claims of our own on the confidence radii: see `fastfed.paper.radii`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastfed.analysis.verdicts import Cell, error_share
from fastfed.paper.claims.criteria import claim
from fastfed.paper.radii import COST, OTHERS, PAPER, TIGHTEST, RadiusPlace

_OURS = "not in the paper: fastfed's radii, docs/explanation/radii.md"


@claim(
    "radii-delta-pac",
    "With every other radius, too, all answers are right with probability at least 1 - delta.",
    _OURS,
    "the share of trials with a wrong answer is at most delta",
)
def delta_pac(places: Sequence[RadiusPlace]) -> Iterator[Cell]:
    for place in places:
        for radius in OTHERS:
            share = error_share(place.moments, radius, place.delta)
            yield {**place.head, "radius": radius, **share}


@claim(
    "radii-saving",
    "Every other radius makes FedElim and FedElim0 cheaper, at every delta.",
    _OURS,
    f"mean cost (FedElim: total at C = {COST:g}; FedElim0: pulls) over that with the paper's "
    "radius below 1",
)
def saving(places: Sequence[RadiusPlace]) -> Iterator[Cell]:
    return (place.over(radius, PAPER) for place in places for radius in OTHERS)


@claim(
    "radii-tightest",
    f"Of all radii, {TIGHTEST} is the cheapest.",
    _OURS,
    "its mean cost over that of each of the others below 1",
)
def tightest(places: Sequence[RadiusPlace]) -> Iterator[Cell]:
    for place in places:
        for other in OTHERS:
            if other != TIGHTEST:
                yield place.over(TIGHTEST, other) | {"radius": f"against {other}"}
