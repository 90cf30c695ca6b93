"""The list of all claims, judged from the evidence; `analysis.verdicts` decides each cell."""

from __future__ import annotations

from fastfed.analysis.verdicts import Claim
from fastfed.paper.claims import adaptive, costs, growth, optimum, periods, radii, studies, theorems
from fastfed.paper.claims.criteria import Judge
from fastfed.paper.evidence import Evidence

CLAIMS: dict[str, tuple[Judge, ...]] = {
    "panels": (
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
    ),
    "scales": (periods.minimum_everywhere,),
    "gaps": (growth.inverse_square, growth.talk_growth),
    "studies": (studies.trade_off, studies.near_best_period, studies.base_two),
    "checked": (theorems.theorem_two, theorems.theorem_three, theorems.two_T, theorems.three_T),
    "good_event": (theorems.good_event,),
    "tightness": (growth.tight_in_clients,),
    "radii": (radii.delta_pac, radii.saving, radii.tightest),
    "improvements": (optimum.theorem_3_improved,),
    "limits": (optimum.within_eight,),
    "optimum": (optimum.mostly_the_radius,),
}
"""The claims, by the field of the evidence that judges them."""


def judge(evidence: Evidence) -> list[Claim]:
    """Judge every claim for which there are cells."""
    every = [
        claim(getattr(evidence, field)) for field, claims in CLAIMS.items() for claim in claims
    ]
    return [claim for claim in every if claim is not None]
