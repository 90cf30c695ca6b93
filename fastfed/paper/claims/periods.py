"""Claims on the best period, and on FedElim beside it."""

from __future__ import annotations

from collections.abc import Sequence

from fastfed.analysis.verdicts import Cell, Claim, conclude
from fastfed.paper.claims.criteria import ALMOST, COST, TOTAL, with_schedules
from fastfed.paper.evidence import Place


def sweet_spot(panels: Sequence[Place]) -> Claim | None:
    cells = []
    for place in panels:
        names = list(place.powers.values())
        ends, inner = (
            place.cheapest(some, COST)
            for some in ((names[0], names[-1]) if names else (), names[1:-1])
        )
        if ends is not None and inner is not None:
            cells.append(
                place.compare(
                    inner,
                    ends,
                    TOTAL,
                    judge=place.halves.odd,
                    note=f"best H = {_period(place, inner):,} of those between, chosen by the "
                    "other half of the trials",
                )
            )
    return conclude(
        "sweet-spot",
        "Over the period H, the total cost falls, has a least value, and rises.",
        "Remark 2; supplement, optimal period",
        "the least mean total over H = 10 ... 10^4 lies below those of H = 1 and H = 10^5",
        cells,
    )


def spot_at_100(panels: Sequence[Place]) -> Claim | None:
    cells = []
    for place in panels:
        if place.instance == "synthetic" and 100 in place.powers:
            others = [name for period, name in place.powers.items() if period != 100]
            cells += place.against_best("periodic:100", others, COST)
    return conclude(
        "spot-at-100",
        "On the synthetic data the best of the periods is around H = 100.",
        "Text to Figure 2(c)",
        "the mean total at H = 100 over the least of the other powers of ten below 1",
        cells,
    )


def periodic_beats(panels: Sequence[Place]) -> Claim | None:
    cells = [
        place.compare(place.periods[period], "fedelim", TOTAL, schedule=place.periods[period])
        for place in with_schedules(panels, "fedelim")
        if place.instance == "synthetic"
        for period in (100, 1000)
        if period in place.periods
    ]
    return conclude(
        "periodic-beats",
        "On the synthetic data, periods H = 100 and H = 1000 are cheaper than FedElim at C = 10.",
        "Supplement, optimal period",
        "mean total over FedElim's below 1",
        cells,
    )


def almost_best(panels: Sequence[Place]) -> Claim | None:
    return conclude(
        "almost-best",
        "Without knowing C, FedElim does almost as well as the best period.",
        "Captions of Figures 2(c), 4(c); Remark 2",
        f"FedElim's mean total over the least periodic one below {ALMOST:g} ('almost' has no "
        "number in the paper)",
        _minima(panels, "", limit=ALMOST),
    )


def minimum_movielens(panels: Sequence[Place]) -> Claim | None:
    return _absolute_minimum(panels, "movielens", "Figure 3(c) and its text")


def minimum_bernoulli(panels: Sequence[Place]) -> Claim | None:
    return _absolute_minimum(panels, "bernoulli", "supplement, Bernoulli")


def _absolute_minimum(panels: Sequence[Place], instance: str, where: str) -> Claim | None:
    return conclude(
        f"minimum-{instance}",
        f"On {instance}, no periodic scheme is cheaper than FedElim (H = 10^0 ... 10^5, C = 10).",
        where,
        "FedElim's mean total over the least periodic one at most 1",
        _minima(panels, instance),
    )


def minimum_any_period(panels: Sequence[Place]) -> Claim | None:
    """Judge the claim about the minimum over H, with H = 5, which only panels (b) have."""
    cells = [
        cell
        for place in with_schedules(panels, "fedelim")
        if place.instance.startswith("movielens")
        for cell in place.against_best("fedelim", place.periods.values(), COST)
    ]
    return conclude(
        "minimum-any-period",
        "On movielens, no periodic scheme is cheaper than FedElim, H = 5 among them (C = 10).",
        "'among all schemes that communicate periodically', text to Figure 3(c)",
        "FedElim's mean total over the least periodic one at most 1",
        cells,
    )


def minimum_everywhere(scales: Sequence[Place]) -> Claim | None:
    """Judge the same claim over delta, C and confidence scale: the cells are the map."""
    cells = [
        cell
        for place in with_schedules(scales, "fedelim")
        for cost in place.costs
        if cost > 0
        for cell in place.against_best(
            "fedelim", place.powers.values(), cost, cost=cost, sigma=place.sigma
        )
    ]
    return conclude(
        "minimum-map",
        "No periodic scheme (H = 10^0 ... 10^5) is cheaper than FedElim, whatever "
        "delta, C > 0 and the scale of the confidence radii.",
        "Figure 3(c), supplement, Bernoulli; extended here",
        "FedElim's mean total over the least periodic one at most 1",
        cells,
    )


def _minima(panels: Sequence[Place], instance: str, limit: float = 1.0) -> list[Cell]:
    return [
        cell
        for place in with_schedules(panels, "fedelim")
        if place.instance.startswith(instance)
        for cell in place.against_best("fedelim", place.powers.values(), COST, limit=limit)
    ]


def _period(place: Place, name: str) -> int:
    return next(period for period, one in place.periods.items() if one == name)
