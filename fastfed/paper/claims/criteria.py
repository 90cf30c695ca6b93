"""Limits of the criteria, the form of a claim, and comparisons that several claims share.

No figure is typed but these limits. Each of them is named in the criterion of its claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from fastfed.analysis.moments import PULLS, Prices
from fastfed.analysis.verdicts import Cell, Claim, conclude
from fastfed.paper.evidence import Place

COST = 10.0  # the C of the paper's panels (b) and (c)
PAPER_COSTS = (0.0, 10.0, 100.0)
ALMOST = 1.5  # "almost as well as the best", where the paper gives no number
STRAIGHT = 0.05  # a line is straight if no point is further off, relative to the line
POWER = 0.15  # an exponent is 1 if it is no further off: the bounds have a logarithm, too
GROWTH = 1.25  # what is O(f) grows no more than that relative to f, from the least T to the largest

TOTAL = Prices.total(COST)

Judge = Callable[[Sequence[Any]], Claim | None]
"""A claim, as a function of a field of the evidence; None if the evidence has no cell for it."""


def claim(
    key: str, text: str, where: str, criterion: str
) -> Callable[[Callable[[Sequence[Any]], Iterable[Cell]]], Judge]:
    """Make a claim of a function that yields its cells, as a decorator."""

    def make(cells: Callable[[Sequence[Any]], Iterable[Cell]]) -> Judge:
        @wraps(cells)
        def judge(evidence: Sequence[Any]) -> Claim | None:
            return conclude(key, text, where, criterion, list(cells(evidence)))

        return judge

    return make


def over_pulls_of_fedelim0(place: Place, cost: float, limit: float) -> Cell:
    """Compare FedElim's total cost with what FedElim0 pulls."""
    return place.compare("fedelim", "fedelim0", Prices.total(cost), PULLS, limit=limit, cost=cost)


def with_schedules(places: Sequence[Place], *names: str) -> list[Place]:
    """List the places at which all these schedules have trials that ended."""
    return [place for place in places if set(names) <= set(place.schedules)]


def relative_error(place: Place, name: str, prices: Prices) -> float:
    """Return the standard error of a mean over the mean; NaN below two trials."""
    mean, sem = place.whole.mean(name, prices), place.whole.sem(name, prices)
    return math.nan if sem is None or not mean else sem / mean
