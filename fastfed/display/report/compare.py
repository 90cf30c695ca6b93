"""Paired comparisons of a report: those of `fastfed compare`, for every choice with several values.

The page shows them at the costs of the sweep. An interval at any other cost would need more sums
than the page holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastfed.analysis.compare import Comparison, compare
from fastfed.analysis.selection import CHOICES, Held, values_of
from fastfed.analysis.trials import Trials
from fastfed.display.compare_table import few_bits, ratio_text
from fastfed.display.report.data import rounded
from fastfed.errors import InputError
from fastfed.text import printable

MOST = 1500
"""Comparisons by one choice. Each takes a third of a millisecond: more would make the page slow."""
_FIRST = ("radius", "uplink", "goal", "sigma")
"""Choices that a user makes come before what the problem prescribes."""


def add_comparisons(data: dict[str, Any], trials: Trials, costs: Sequence[float]) -> None:
    """Add the comparisons by each choice, or a message in place of too many."""
    held = trials.held()
    found: dict[str, Any] = {}
    for by in sorted(CHOICES, key=lambda one: (one not in _FIRST, one != "schedule")):
        if len(values_of(by, held)) < 2:
            continue
        count = _pairs(held, by) * (len(costs) + 3)  # pulls, uplinks and bits
        if count > MOST:
            found[by] = {
                "message": f"{count:,} comparisons by {by} are too many for a page: use fastfed "
                f"compare --by {by}, or filter the report"
            }
            continue
        try:
            found[by] = _table(compare(trials, by, costs, prices=trials.prices), held)
        except InputError as error:  # of rows that cannot be compared
            found[by] = {"message": printable(str(error))}
    data["compare"] = found


def _pairs(held: Held, by: str) -> int:
    """Count the values of a choice beside the reference, over all that else is equal."""
    rows = [{**cell.names, "schedule": str(one)} for cell in held for one in held[cell]]
    others = {tuple(value for name, value in row.items() if name != by) for row in rows}
    return len(rows) - len(others)


def _table(found: Comparison, held: Held) -> dict[str, Any]:
    """Make one line for each value and what else is equal, with a ratio for each measure."""
    cells = {tuple(cell.names.values()): place for place, cell in enumerate(held)}
    keys = list(next(iter(held)).names)
    measures: dict[str, int] = {}
    lines: dict[tuple[int, str], dict[str, Any]] = {}
    hidden = () if few_bits(found) else ("bits",)
    for row in found.frame.filter(~found.frame["measure"].is_in(hidden)).to_dicts():
        place = cells[tuple(row[key] for key in keys)]
        name = "total" if row["cost"] is None else f"total at C = {row['cost']:g}"
        measure = name if row["measure"] == "total" else row["measure"]
        line = lines.setdefault(
            (place, row["schedule"]),
            {
                "cell": place,
                "schedule": row["schedule"],
                "value": _shown(row[found.by]),
                "reference": _shown(row["reference"]),
                "ratios": {},
            },
        )
        line["ratios"][measures.setdefault(measure, len(measures))] = _ratio(row)
    return {
        "level": found.level,
        "count": found.frame.height,
        "notes": [printable(note) for note in found.notes],
        "measures": list(measures),
        "lines": list(lines.values()),
    }


def _ratio(row: Mapping[str, Any]) -> list[Any] | None:
    """Return the ratio, the ends of its interval, if it is separated, and all of it as text."""
    if row["ratio"] is None:
        return None
    ends = (row[name] for name in ("ratio", "ratio_low", "ratio_high"))
    return [*map(rounded, ends), row["separated"], ratio_text(row)]


def _shown(value: object) -> object:
    return printable(value) if isinstance(value, str) else value
