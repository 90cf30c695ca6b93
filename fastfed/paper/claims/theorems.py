"""Claims of Theorems 1 to 4, trial by trial, and of the event behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastfed.analysis.verdicts import DOES_NOT_APPLY, Cell, error_share
from fastfed.paper.claims.criteria import claim
from fastfed.paper.evidence import Place


@claim(
    "delta-pac",
    "All local best arms and the global one are found with probability at least "
    "1 - delta, by FedElim and by FedElim0.",
    "Theorem 1",
    "the share of trials with a wrong answer is at most delta (a trial that did not end "
    "counts as right when the claim is to be refuted, as wrong when it is to be confirmed)",
)
def delta_pac(panels: Sequence[Place]) -> Iterator[Cell]:
    for place in panels:
        for name in ("fedelim", "fedelim0"):
            if name in place.schedules:
                share = error_share(place.whole, name, place.delta)
                yield {**place.head, "schedule": name, **share}


@claim(
    "good-event",
    "All empirical means stay within their radii at all times with probability at least 1 - delta.",
    "Proof of Theorem 1, equation of the event E",
    "the share of runs that leave the radii is at most delta: all arms and clients, every step "
    "up to a horizon N, with delta / (2 N) for what lies beyond",
)
def good_event(cells: Sequence[Cell]) -> Sequence[Cell]:
    return cells


@claim(
    "pulls-T",
    "FedElim0 pulls at most T times, in a share 1 - delta of all trials.",
    "Theorem 2",
    "the share of trials beyond T is at most delta",
)
def theorem_two(checked: Sequence[Cell]) -> Iterator[Cell]:
    return _lines(checked, "pulls <= T", "fedelim0")


@claim(
    "lower-bound",
    "FedElim0 pulls no less on average than the lower bound.",
    "Theorem 3, with the factor 2 of its proof",
    "mean pulls at least the bound; Gaussian rewards only",
)
def theorem_three(checked: Sequence[Cell]) -> Iterator[Cell]:
    return _lines(checked, "mean pulls >= Theorem 3", "fedelim0")


@claim(
    "pulls-2T",
    "FedElim pulls at most 2T times, in a share 1 - delta of all trials.",
    "Theorem 4, trial by trial",
    "the share of trials beyond 2T is at most delta",
)
def two_T(checked: Sequence[Cell]) -> Iterator[Cell]:
    return _lines(checked, "pulls <= 2T", "fedelim")


@claim(
    "total-3T",
    "FedElim's total cost is at most 3T, in a share 1 - delta of all trials.",
    "Theorem 4, trial by trial",
    "the share of trials beyond 3T is at most delta, for every C at which 3T follows",
)
def three_T(checked: Sequence[Cell]) -> Iterator[Cell]:
    return _lines(checked, "total <= 3T", "fedelim")


def _lines(checked: Sequence[Cell], claim: str, schedule: str) -> Iterator[Cell]:
    """Yield the lines of a check as cells, to be decided anew over this claim's data sets."""
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
    for line in checked:
        if (line["claim"], line["schedule"]) == (claim, schedule) and "value" in line:
            cell = {key: line[key] for key in wanted if key in line}
            if line.get("cost") is not None:
                cell["cost"] = line["cost"]
            if line["verdict"] == DOES_NOT_APPLY:
                cell["verdict"] = DOES_NOT_APPLY
            yield cell
