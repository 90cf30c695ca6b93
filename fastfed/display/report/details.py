"""Details of a report: quantiles, the theorems' bounds, and the verdicts of `check`.

Each function adds to the numbers that `report_data` made. The page shows what it finds, so that a
report of rows without a folder, or of an instance that is gone, simply has less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastfed.analysis.check import Check
from fastfed.analysis.intervals import finite
from fastfed.analysis.prices import PULLS, UPLINKS, Prices
from fastfed.analysis.quantiles import CellQuantiles
from fastfed.analysis.verdicts import NOT_REFUTED, VERDICTS
from fastfed.display.report.data import rounded
from fastfed.model.cell import CELL
from fastfed.model.choices import DEFAULTS
from fastfed.text import printable
from fastfed.theory.bounds import Bounds


def add_quantiles(cell: dict[str, Any], quantiles: CellQuantiles, totals: Sequence[Prices]) -> None:
    """Add quantiles (5 %, 50 % and 95 %) of pulls, uplinks and total costs.

    Totals are those at the sweep's costs. A total at other prices has no quantile without the
    trials themselves.
    """
    for row in cell["rows"]:
        own = quantiles[row["schedule"]]
        found = {prices: list(map(finite, ends)) for prices, ends in own.found().items()}
        row["quantiles"] = {
            "pulls": found[PULLS],
            "uplinks": found[UPLINKS],
            "total": [found[one] for one in totals],
            "error": own.error,
        }


def add_bounds(cell: dict[str, Any], b: Bounds) -> None:
    """Add T of a cell, and the least mean pulls of any algorithm where they are known.

    FedElim's total <= 3T is known as long as pulls + C x uplinks, as summed by the theorems, is
    at most 3T: ``three`` is the largest such C.
    """
    T, summed = float(b.T[0]), b.fedelim.summed
    uplinks = float(summed.uplinks[0])  # none with a single arm: then the claim holds for every C
    cell["bounds"] = {
        "T": rounded(T),
        "lower": rounded(None if b.least_pulls is None else float(b.least_pulls[0])),
        "three": rounded((3 * T - float(summed.pulls[0])) / uplinks if uplinks else None),
    }


def add_verdicts(data: dict[str, Any], check: Check) -> None:
    """Add the lines of `fastfed check`, by cell and schedule.

    Texts that recur are written once and numbered, because a sweep of many schedules has tens of
    thousands of lines. The page divides means by bounds itself.
    """
    claims: dict[str, int] = {}
    reasons: dict[str, int] = {}
    cells = {_key(cell["where"]): cell for cell in data["cells"]}
    for cell in data["cells"]:
        cell["lines"] = {}
    for line in check.lines:
        where = {**line, "instance": printable(line["instance"])}
        power = line.get("power") if line["verdict"] == NOT_REFUTED else None
        cells[_key(where)]["lines"].setdefault(line["schedule"], []).append(
            [
                claims.setdefault(line["claim"], len(claims)),
                line.get("cost"),
                *(rounded(line[name]) for name in ("mean", "bound")),
                VERDICTS.index(line["verdict"]),
                reasons.setdefault(printable(line["reason"] or ""), len(reasons)),
                *([] if power is None else [rounded(power)]),
            ]
        )
    data.update(claims=list(claims), verdicts=list(VERDICTS), reasons=list(reasons))


def _key(where: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(where.get(name, DEFAULTS.get(name)) for name in CELL)
