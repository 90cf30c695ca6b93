"""Claims on the best period, and on FedElim beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastfed.analysis.verdicts import Cell
from fastfed.paper.claims.criteria import ALMOST, COST, TOTAL, claim, with_schedules
from fastfed.paper.evidence import Place

_AT_MOST_THE_LEAST = "FedElim's mean total over the least periodic one at most 1"


@claim(
    "sweet-spot",
    "Over the period H, the total cost falls, has a least value, and rises.",
    "Remark 2; supplement, optimal period",
    "the least mean total over H = 10 ... 10^4 lies below those of H = 1 and H = 10^5",
)
def sweet_spot(panels: Sequence[Place]) -> Iterator[Cell]:
    for place in panels:
        names = list(place.powers.values())
        ends = place.cheapest((names[0], names[-1]) if names else (), COST)
        inner = place.cheapest(names[1:-1], COST)
        if ends is not None and inner is not None:
            period = next(period for period, name in place.powers.items() if name == inner)
            note = f"best H = {period:,} of those between, chosen by the other half of the trials"
            yield place.compare(inner, ends, TOTAL, judge=place.halves.odd, note=note)


@claim(
    "spot-at-100",
    "On the synthetic data the best of the periods is around H = 100.",
    "Text to Figure 2(c)",
    "the mean total at H = 100 over the least of the other powers of ten below 1",
)
def spot_at_100(panels: Sequence[Place]) -> Iterator[Cell]:
    for place in panels:
        if place.instance == "synthetic" and 100 in place.powers:
            others = [name for period, name in place.powers.items() if period != 100]
            yield from place.against_best("periodic:100", others, COST)


@claim(
    "periodic-beats",
    "On the synthetic data, periods H = 100 and H = 1000 are cheaper than FedElim at C = 10.",
    "Supplement, optimal period",
    "mean total over FedElim's below 1",
)
def periodic_beats(panels: Sequence[Place]) -> Iterator[Cell]:
    for place in with_schedules(panels, "fedelim"):
        for period, name in place.periods.items():
            if place.instance == "synthetic" and period in (100, 1000):
                yield place.compare(name, "fedelim", TOTAL, schedule=name)


@claim(
    "almost-best",
    "Without knowing C, FedElim does almost as well as the best period.",
    "Captions of Figures 2(c), 4(c); Remark 2",
    f"FedElim's mean total over the least periodic one below {ALMOST:g} ('almost' has no "
    "number in the paper)",
)
def almost_best(panels: Sequence[Place]) -> Iterator[Cell]:
    return _minima(panels, "", limit=ALMOST)


@claim(
    "minimum-movielens",
    "On movielens, no periodic scheme is cheaper than FedElim (H = 10^0 ... 10^5, C = 10).",
    "Figure 3(c) and its text",
    _AT_MOST_THE_LEAST,
)
def minimum_movielens(panels: Sequence[Place]) -> Iterator[Cell]:
    return _minima(panels, "movielens")


@claim(
    "minimum-bernoulli",
    "On bernoulli, no periodic scheme is cheaper than FedElim (H = 10^0 ... 10^5, C = 10).",
    "supplement, Bernoulli",
    _AT_MOST_THE_LEAST,
)
def minimum_bernoulli(panels: Sequence[Place]) -> Iterator[Cell]:
    return _minima(panels, "bernoulli")


@claim(
    "minimum-any-period",
    "On movielens, no periodic scheme is cheaper than FedElim, H = 5 among them (C = 10).",
    "'among all schemes that communicate periodically', text to Figure 3(c)",
    _AT_MOST_THE_LEAST,
)
def minimum_any_period(panels: Sequence[Place]) -> Iterator[Cell]:
    """Yield the cells of the minimum over H, with H = 5, which only panels (b) have."""
    for place in with_schedules(panels, "fedelim"):
        if place.instance.startswith("movielens"):
            yield from place.against_best("fedelim", place.periods.values(), COST)


@claim(
    "minimum-map",
    "No periodic scheme (H = 10^0 ... 10^5) is cheaper than FedElim, whatever "
    "delta, C > 0 and the scale of the confidence radii.",
    "Figure 3(c), supplement, Bernoulli; extended here",
    _AT_MOST_THE_LEAST,
)
def minimum_everywhere(scales: Sequence[Place]) -> Iterator[Cell]:
    """Yield the cells of the same over delta, C and confidence scale: they are the map."""
    for place in with_schedules(scales, "fedelim"):
        for cost in place.costs:
            if cost > 0:
                where = {"cost": cost, "sigma": place.sigma}
                yield from place.against_best("fedelim", place.powers.values(), cost, **where)


def _minima(panels: Sequence[Place], instance: str, limit: float = 1.0) -> Iterator[Cell]:
    for place in with_schedules(panels, "fedelim"):
        if place.instance.startswith(instance):
            yield from place.against_best("fedelim", place.powers.values(), COST, limit=limit)
