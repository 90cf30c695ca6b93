"""Claims of our own on the schedule `adaptive`: the successor of FedElim's absolute minimum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastfed.analysis.moments import PULLS, UPLINKS
from fastfed.analysis.verdicts import Cell
from fastfed.paper.claims.criteria import claim, with_schedules
from fastfed.paper.evidence import Place

_OURS = "not in the paper: docs/explanation/adaptive.md"


@claim(
    "adaptive-beats-fedelim",
    "The schedule `adaptive` pulls less and sends less than FedElim.",
    _OURS,
    "mean pulls, and mean uplinks, over FedElim's below 1",
)
def adaptive_beats_fedelim(panels: Sequence[Place]) -> Iterator[Cell]:
    for place in with_schedules(panels, "fedelim", "adaptive"):
        for what, prices in (("pulls", PULLS), ("uplinks", UPLINKS)):
            yield place.compare("adaptive", "fedelim", prices, what=what)


@claim(
    "adaptive-minimum",
    "Neither FedElim nor any period (H = 1, 5, 10, ..., 10^5) is cheaper than `adaptive`, "
    "whatever C > 0 is.",
    f"{_OURS}; the paper says it of FedElim (Figure 3(c))",
    "adaptive's mean total over the least of all others at most 1",
)
def adaptive_minimum(panels: Sequence[Place]) -> Iterator[Cell]:
    """Yield the cells of FedElim's claim of the absolute minimum for its successor, at C > 0."""
    for place in with_schedules(panels, "fedelim", "adaptive"):
        others = ["fedelim", *place.periods.values()]
        for cost in place.costs:
            if cost > 0:
                yield from place.against_best("adaptive", others, cost, cost=cost)
