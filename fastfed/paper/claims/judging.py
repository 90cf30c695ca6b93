"""The list of all claims, judged from the evidence; `analysis.verdicts` decides each cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastfed.analysis.verdicts import Cell, Claim
from fastfed.paper.claims import adaptive, costs, growth, optimum, periods, studies, theorems
from fastfed.paper.evidence import Evidence, Place
from fastfed.paper.radii import judge_radii

_Judge = Callable[[Sequence[Place]], Claim | None]
PANELS: tuple[_Judge, ...] = (
    theorems.delta_pac,
    costs.total_three,
    costs.total_any_cost,
    costs.total_outside,
    costs.pulls_two,
    costs.fedelim0_cheaper,
    costs.communication,
    costs.communication_falls,
    costs.periodic_gap,
    periods.sweet_spot,
    periods.spot_at_100,
    periods.periodic_beats,
    periods.almost_best,
    periods.minimum_movielens,
    periods.minimum_any_period,
    periods.minimum_bernoulli,
    growth.linear_in_log,
    adaptive.adaptive_beats_fedelim,
    adaptive.adaptive_minimum,
)
GAPS: tuple[_Judge, ...] = (growth.inverse_square, growth.talk_growth)
STUDIES: tuple[_Judge, ...] = (studies.trade_off, studies.near_best_period, studies.base_two)
CHECKED: tuple[Callable[[Sequence[Cell]], Claim | None], ...] = (
    theorems.theorem_two,
    theorems.theorem_three,
    theorems.two_T,
    theorems.three_T,
)


def judge(evidence: Evidence) -> list[Claim]:
    """Judge every claim for which there are cells."""
    found: list[Claim | None] = []
    for places, claims in (
        (evidence.panels, PANELS),
        (evidence.scales, (periods.minimum_everywhere,)),
        (evidence.gaps, GAPS),
        (evidence.studies, STUDIES),
    ):
        found += [claim(places) for claim in claims] if places else []
    found += [claim(evidence.checked) for claim in CHECKED]
    found += [theorems.good_event(evidence.good_event), growth.tight_in_clients(evidence.tightness)]
    found += judge_radii(evidence.radii)
    found += [
        optimum.theorem_3_improved(evidence.improvements),
        optimum.within_eight(evidence.limits),
        optimum.mostly_the_radius(evidence.optimum),
    ]
    return [claim for claim in found if claim is not None]
