"""The paper's claims, each a set of cells: measured values that should lie below a limit.

One cell stands for each data set, delta, cost or whatever the claim speaks of. How a cell is
measured is said in `fastfed.paper.evidence`, how verdicts follow from cells in
`fastfed.statistics.verdicts`. No figure is written here but the limits, and each of them is in
the claim's ``criterion``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from fastfed.paper.evidence import Evidence, Place
from fastfed.paper.radii import judge_radii
from fastfed.statistics.moments import PULLS, UPLINKS, Prices
from fastfed.statistics.numbers import number
from fastfed.statistics.verdicts import (
    DOES_NOT_APPLY,
    Cell,
    Claim,
    conclude,
    error_share,
    normal,
)

COST = 10.0  # the C of the paper's panels (b) and (c)
PAPER_COSTS = (0.0, 10.0, 100.0)
ALMOST = 1.5  # "almost as well as the best", where the paper gives no number
STRAIGHT = 0.05  # a line is straight if no point is further off, relative to the line
POWER = 0.15  # an exponent is 1 if it is no further off: the bounds have a logarithm, too
GROWTH = 1.25  # what is O(f) grows no more than that relative to f, from the least T to the largest

TOTAL = Prices.total(COST)

SLIPS = (
    "The main text's condition alpha(n) <= Delta^2 / 4 is Delta / 4 in the proof of Theorem 2.",
    "The proof of Theorem 2 writes 102 = 64 e / (e - 1), which is 101.2...: rounded up, not equal.",
    "For very wide gaps the closed forms of T_km and T_k fall below the one pull that is always "
    "made.",
    "Theorem 3 is stated without the factor 2 with which its proof ends.",
    "Theorem 4 counts log2 of the last step as the uplinks of an arm, one too few: n = 1 is one, "
    "too.",
    "Theorem 4's total <= 3T does not follow from C ln T_k <= T_k: the proof adds C ceil(log2 "
    "T_k), which that condition bounds only by C + T_k / ln 2.",
    "The proof of Theorem 4 says that an arm leaves FedElim's server before twice the step at "
    "which it leaves FedElim0's (T_k^(2),C < 2 T_k^(2)). That is false path by path: an arm that "
    "could leave at one step need not at the next power of two. What holds on the good event, and "
    "is all that the theorem needs, is T_k^(2),C < 2 n_k.",
)
"""Where the paper's text and its proofs differ, or a proof has a gap; the bounds are corrected."""


def slips(evidence: Evidence) -> list[str]:
    """The slips, the last one with what was measured of it."""
    if evidence.doubling is None:
        return list(SLIPS)
    return [*SLIPS[:-1], f"{SLIPS[-1]} {evidence.doubling}"]


def judge(evidence: Evidence) -> list[Claim]:
    """Every claim for which there are cells."""
    found: list[Claim | None] = []
    for places, claims in (
        (evidence.panels, PANELS),
        (evidence.scales, (minimum_everywhere,)),
        (evidence.gaps, GAPS),
        (evidence.studies, STUDIES),
    ):
        found += [claim(places) for claim in claims] if places else []
    found += [claim(evidence.checked) for claim in CHECKED]
    found += [good_event(evidence.good_event), tight_in_clients(evidence.tightness)]
    found += judge_radii(evidence.radii)
    return [claim for claim in found if claim is not None]


def delta_pac(panels: Sequence[Place]) -> Claim | None:
    cells = []
    for place in panels:
        for name in ("fedelim", "fedelim0"):
            if name in place.schedules:
                cells.append(
                    {**place.head, "schedule": name, **error_share(place.whole, name, place.delta)}
                )
    return conclude(
        "delta-pac",
        "All local best arms and the global one are found with probability at least "
        "1 - delta, by FedElim and by FedElim0.",
        "Theorem 1",
        "the share of trials with a wrong answer is at most delta (a trial that did not end "
        "counts as right when the claim is to be refuted, as wrong when it is to be confirmed)",
        cells,
    )


def good_event(cells: Sequence[Cell]) -> Claim | None:
    return conclude(
        "good-event",
        "All empirical means stay within their radii at all times with probability "
        "at least 1 - delta.",
        "Proof of Theorem 1, equation of the event E",
        "the share of runs that leave the radii is at most delta: all arms and clients, every step "
        "up to a horizon N, with delta / (2 N) for what lies beyond",
        cells,
    )


def total_three(panels: Sequence[Place]) -> Claim | None:
    return conclude(
        "total-three",
        "FedElim's total cost is at most 3 times what FedElim0 pulls, for C = 0, 10 and 100.",
        "Abstract; Theorem 4; Figures 2(a), 3(a), 4(a)",
        "ratio of the means at most 3",
        [
            place.if_condition(_over_pulls0(place, cost, 3.0), cost)
            for cost in PAPER_COSTS
            for place in _with(panels, "fedelim", "fedelim0")
            if cost in place.costs
        ],
    )


def total_any_cost(panels: Sequence[Place]) -> Claim | None:
    return conclude(
        "total-three-any-cost",
        "The factor 3 does not depend on C.",
        "Remark 4; 'regardless of the value of C', text to Figure 2(a)",
        "ratio of the means at most 3 for every C that was looked at and meets the condition of "
        "Theorem 4, C ln T_k <= T_k for every arm",
        _any_cost(panels, inside=True),
    )


def total_outside(panels: Sequence[Place]) -> Claim | None:
    return conclude(
        "total-three-outside",
        "The factor 3 even where Theorem 4's condition is broken.",
        "no theorem says so; 'regardless of the value of C', text to Figure 2(a)",
        "the same for every C that was looked at and breaks the condition",
        _any_cost(panels, inside=False),
    )


def _any_cost(panels: Sequence[Place], inside: bool) -> list[Cell]:
    return [
        _over_pulls0(place, cost, 3.0)
        for place in _with(panels, "fedelim", "fedelim0")
        for cost in place.costs
        if place.condition[cost] == inside
    ]


def pulls_two(panels: Sequence[Place]) -> Claim | None:
    return conclude(
        "pulls-two",
        "FedElim pulls at most twice as often as FedElim0.",
        "Abstract; Theorem 4",
        "ratio of the means at most 2",
        [_over_pulls0(place, 0.0, 2.0) for place in _with(panels, "fedelim", "fedelim0")],
    )


def fedelim0_cheaper(panels: Sequence[Place]) -> Claim | None:
    return conclude(
        "fedelim0-cheaper",
        "Where talking is free (C = 0), FedElim0 is cheaper than FedElim.",
        "Captions of Figures 2(a), 4(a)",
        "FedElim0's mean pulls over FedElim's below 1",
        [
            place.compare("fedelim0", "fedelim", PULLS)
            for place in _with(panels, "fedelim", "fedelim0")
        ],
    )


def communication(panels: Sequence[Place]) -> Claim | None:
    cells = [
        place.compare("fedelim", name, UPLINKS, schedule=name)
        for place in _with(panels, "fedelim")
        for period, name in place.periods.items()
        if period in (1, 5, 10)
    ]
    return conclude(
        "communication",
        "FedElim spends less on communication than periodic schemes with H = 1, 5 and 10.",
        "Figures 2(b), 3(b), 4(b) and their text",
        "FedElim's mean communication cost over the periodic one's below 1",
        cells,
    )


def communication_falls(panels: Sequence[Place]) -> Claim | None:
    cells = [
        place.compare(
            place.periods[long], place.periods[short], UPLINKS, what=f"H = {long} against {short}"
        )
        for place in panels
        for short, long in ((1, 5), (5, 10))
        if {short, long} <= place.periods.keys()
    ]
    return conclude(
        "communication-falls",
        "A longer period (H = 1, 5, 10) never spends more on communication than a shorter one.",
        "Text to Figure 2(b)",
        "mean communication cost over that of the next shorter period at most 1",
        cells,
    )


def periodic_gap(panels: Sequence[Place]) -> Claim | None:
    cells = []
    for place in _with(panels, "fedelim0"):
        for cost in (10.0, 100.0):
            cells += [
                place.compare(
                    name,
                    "fedelim0",
                    Prices.total(cost),
                    PULLS,
                    limit=1 + cost / period,
                    cost=cost,
                    schedule=name,
                )
                for period, name in place.periods.items()
                if cost in place.costs
            ]
    return conclude(
        "periodic-gap",
        "A periodic scheme's total cost is at most 1 + C / H times what FedElim0 pulls.",
        "Remark 4, multiplicative gap of periodic communication",
        "ratio of the means at most 1 + C / H (the bound behind the remark also has (H + C) M K, "
        "which the remark leaves out and long periods show)",
        cells,
    )


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
                    note=f"best H = {_period(place, inner):,} of those between, chosen by the other "
                    "half of the trials",
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
        for place in _with(panels, "fedelim")
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
    """H = 5 is in the paper's panels (b), not in its panels (c)."""
    cells = [
        cell
        for place in _with(panels, "fedelim")
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
    """The same over delta, C and confidence scale: the cells are the map."""
    cells = [
        cell
        for place in _with(scales, "fedelim")
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
        for place in _with(panels, "fedelim")
        if place.instance.startswith(instance)
        for cell in place.against_best("fedelim", place.powers.values(), COST, limit=limit)
    ]


def linear_in_log(panels: Sequence[Place]) -> Claim | None:
    cells = []
    for name, prices in (("fedelim", TOTAL), ("fedelim0", PULLS)):
        for instance in dict.fromkeys(place.instance for place in panels):
            some = [place for place in _with(panels, name) if place.instance == instance]
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
        some = _with(gaps, name)
        if len(some) < 3:
            continue
        x = -2 * np.log([place.gap for place in some])
        weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        exponent = float(
            weights @ np.log([place.whole.mean(name, prices) or math.nan for place in some])
        )
        error = math.hypot(
            *(
                weight * _relative(place, name, prices)
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
        some = sorted(_with(gaps, name), key=lambda place: place.T)
        if len(some) < 2:
            continue
        least, most = some[0], some[-1]
        means = [place.whole.mean(name, UPLINKS) for place in (least, most)]
        assert means[0] is not None
        assert means[1] is not None
        value = means[1] / function(most.T) / (means[0] / function(least.T))
        error = value * math.hypot(*(_relative(place, name, UPLINKS) for place in (least, most)))
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


def trade_off(studies: Sequence[Place]) -> Claim | None:
    cells = []
    for place in _with(studies, "fedelim"):
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
    for place in _with(studies, "fedelim"):
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
    for place in _with(studies, "fedelim"):
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


def theorem_two(checked: Sequence[Cell]) -> Claim | None:
    return conclude(
        "pulls-T",
        "FedElim0 pulls at most T times, in a share 1 - delta of all trials.",
        "Theorem 2",
        "the share of trials beyond T is at most delta",
        _lines(checked, "pulls <= T", "fedelim0"),
    )


def theorem_three(checked: Sequence[Cell]) -> Claim | None:
    return conclude(
        "lower-bound",
        "FedElim0 pulls no less on average than the lower bound.",
        "Theorem 3, with the factor 2 of its proof",
        "mean pulls at least the bound; Gaussian rewards only",
        _lines(checked, "mean pulls >= lower", "fedelim0"),
    )


def two_T(checked: Sequence[Cell]) -> Claim | None:
    return conclude(
        "pulls-2T",
        "FedElim pulls at most 2T times, in a share 1 - delta of all trials.",
        "Theorem 4, trial by trial",
        "the share of trials beyond 2T is at most delta",
        _lines(checked, "pulls <= 2T", "fedelim"),
    )


def three_T(checked: Sequence[Cell]) -> Claim | None:
    return conclude(
        "total-3T",
        "FedElim's total cost is at most 3T, in a share 1 - delta of all trials.",
        "Theorem 4, trial by trial",
        "the share of trials beyond 3T is at most delta, for every C at which 3T follows",
        _lines(checked, "total <= 3T", "fedelim"),
    )


def _lines(checked: Sequence[Cell], claim: str, schedule: str) -> list[Cell]:
    """The lines of a check as cells, to be decided anew over this claim's data sets."""
    wanted = (
        "instance",
        "delta",
        "value",
        "sem",
        "limit",
        "at_most",
        "p_below",
        "p_above",
        "power",
        "text",
        "reason",
    )
    cells = []
    for line in checked:
        if (line["claim"], line["schedule"]) == (claim, schedule) and "value" in line:
            cell = {key: line[key] for key in wanted if key in line}
            if line.get("cost") is not None:
                cell["cost"] = line["cost"]
            if line["verdict"] == DOES_NOT_APPLY:
                cell["verdict"] = DOES_NOT_APPLY
            cells.append(cell)
    return cells


def _over_pulls0(place: Place, cost: float, limit: float) -> Cell:
    return place.compare("fedelim", "fedelim0", Prices.total(cost), PULLS, limit=limit, cost=cost)


def _with(places: Sequence[Place], *names: str) -> list[Place]:
    """The places at which all these schedules have trials that ended."""
    return [place for place in places if set(names) <= set(place.schedules)]


def _relative(place: Place, name: str, prices: Prices) -> float:
    """The standard error of a mean over the mean; not a number below two trials."""
    mean, sem = place.whole.mean(name, prices), place.whole.sem(name, prices)
    return math.nan if sem is None or not mean else sem / mean


def _period(place: Place, name: str) -> int:
    return next(period for period, one in place.periods.items() if one == name)


_Judge = Callable[[Sequence[Place]], Claim | None]
PANELS: tuple[_Judge, ...] = (
    delta_pac,
    total_three,
    total_any_cost,
    total_outside,
    pulls_two,
    fedelim0_cheaper,
    communication,
    communication_falls,
    periodic_gap,
    sweet_spot,
    spot_at_100,
    periodic_beats,
    almost_best,
    minimum_movielens,
    minimum_any_period,
    minimum_bernoulli,
    linear_in_log,
)
GAPS: tuple[_Judge, ...] = (inverse_square, talk_growth)
STUDIES: tuple[_Judge, ...] = (trade_off, near_best_period, base_two)
CHECKED: tuple[Callable[[Sequence[Cell]], Claim | None], ...] = (
    theorem_two,
    theorem_three,
    two_T,
    three_T,
)
