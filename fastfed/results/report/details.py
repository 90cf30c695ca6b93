"""What a report has beyond moments: quantiles, the theorems' bounds, and the verdicts of `check`.

Each function adds to the numbers that `report_data` made. The page shows what it finds, so that a
report of rows without a folder, or of an instance that is gone, simply has less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fastfed.choices import USUAL
from fastfed.errors import printable
from fastfed.problem.instance import Instance
from fastfed.problem.rewards import Gaussian
from fastfed.statistics.quantiles import Quantiles
from fastfed.statistics.verdicts import VERDICTS
from fastfed.theory.bounds import bounds
from fastfed.theory.check import Check

SHARES = (0.05, 0.5, 0.95)
_DIGITS = 9  # of bounds and what is measured against them, which are shown with at most seven


def add_quantiles(data: dict[str, Any], quantiles: Sequence[Mapping[str, Quantiles]]) -> None:
    """5 %, 50 % and 95 % of pulls, of uplinks, and of the total at each of the sweep's costs;
    ``quantiles`` are by cell, then by schedule. A total at any other C has no quantile without
    the trials themselves."""
    for cell, by_schedule in zip(data["cells"], quantiles, strict=True):
        for row in cell["rows"]:
            found = by_schedule[row["schedule"]]
            row["quantiles"] = {
                "pulls": _finite(found.pulls(SHARES)),
                "uplinks": _finite(found.uplinks(SHARES)),
                "total": [_finite(found.total(cost, SHARES)) for cost in data["costs"]],
                "error": found.error,
            }


def add_bounds(data: dict[str, Any], instances: Sequence[Instance]) -> None:
    """T of each cell, and the lower bound where it is one; ``instances`` are by cell.

    FedElim's total <= 3T is known as long as pulls + C x uplinks, as summed by the theorems, is
    at most 3T: ``three`` is the largest such C."""
    for cell, instance in zip(data["cells"], instances, strict=True):
        where = cell["where"]
        radius, goal, uplink = (where.get(name, usual) for name, usual in USUAL.items())
        b = bounds(
            instance, where["delta"], 0.0, where["sigma"], radius=radius, goal=goal, uplink=uplink
        )
        # Theorem 3 is about Gaussian rewards and the best arm
        known_below = isinstance(instance.rewards, Gaussian) and b.goal == USUAL["goal"]
        lower = float(b.lower) if known_below else None
        known = b.fedelim.summed
        cell["bounds"] = {
            "T": _rounded(float(b.T)),
            "lower": _rounded(lower),
            "three": _rounded(float((3 * b.T - known.pulls) / known.uplinks)),
        }


def add_verdicts(data: dict[str, Any], check: Check) -> None:
    """The lines of `fastfed check`, by cell. Texts that recur are written once and numbered:
    a sweep of many schedules has tens of thousands of lines."""
    claims: dict[str, int] = {}
    reasons: dict[str, int] = {}
    cells = {_key(cell["where"]): cell for cell in data["cells"]}
    for cell in data["cells"]:
        cell["lines"] = []
    for line in check.frame.to_dicts():
        line["instance"] = printable(line["instance"])
        cells[_key(line)]["lines"].append(
            [
                claims.setdefault(line["claim"], len(claims)),
                line["schedule"],
                line["cost"],
                *(_rounded(line[name]) for name in ("mean", "bound", "tightness")),
                VERDICTS.index(line["verdict"]),
                _rounded(line["power"]),
                reasons.setdefault(printable(line["reason"] or ""), len(reasons)),
            ]
        )
    data.update(claims=list(claims), verdicts=list(VERDICTS), reasons=list(reasons))


def _key(where: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        where["instance"],
        where["delta"],
        where["sigma"],
        *(where.get(name, usual) for name, usual in USUAL.items()),
    )


def _finite(numbers: Sequence[float]) -> list[float | None]:
    """JSON has no infinity."""
    return [one if math.isfinite(one) else None for one in numbers]


def _rounded(number: float | None) -> float | None:
    """With more digits than are ever shown; None for what JSON does not have."""
    if number is None or not math.isfinite(number):
        return None
    return float(f"{number:.{_DIGITS}g}")
