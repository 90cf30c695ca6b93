"""The table that a sweep prints: all rows if they are few, otherwise the cheapest schedules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fastfed.display.tables import summary_text
from fastfed.model.choices import DEFAULTS
from fastfed.text import command, printable

if TYPE_CHECKING:
    import polars as pl

    from fastfed.model.instance import Instance

_GROUP = ("instance", "delta", "sigma", *DEFAULTS, "cost", "bit_cost")  # a cell, and a cost
MOST = 24
"""Rows that a table on a screen may have."""


def sweep_text(
    frame: pl.DataFrame, instances: Mapping[str, Instance], folder: Path | None = None
) -> str:
    """Write a summary in at most `MOST` rows, and name what shows the others.

    That is a command on the folder, or a method of the sweep if no folder is given.

    Of more rows, those with the lowest mean total cost of each cell and C are shown, as many of
    each as there is room for.
    """
    from fastfed.analysis.summary import not_ended_text  # NumPy, which help need not wait for

    if len(frame) <= MOST:
        return summary_text(frame, instances)
    groups = frame.n_unique(_GROUP)
    each = max(1, MOST // groups)
    lowest = _lowest(frame, each)
    note = "" if not_ended_text(lowest.head(MOST)) else not_ended_text(frame)
    first = f"the first {MOST} of {len(lowest)} rows with " if len(lowest) > MOST else ""
    schedules = "schedule" if each == 1 else f"{each} schedules"
    return "\n".join(
        [
            *filter(None, [note]),
            summary_text(lowest.head(MOST), instances),
            f"Shown: {first}the {schedules} with the lowest mean total cost of each cell and C.",
            f"All {len(frame):,} rows: {_asks('summary', folder)}",
            f"Significant differences: {_asks('best', folder)}",
        ]
    )


def _asks(name: str, folder: Path | None) -> str:
    """Return the command, or the call, that gives another answer of the sweep."""
    if folder is None:
        return f"sweep.{name}()"
    return printable(command(name, folder))


def _lowest(frame: pl.DataFrame, each: int) -> pl.DataFrame:
    """Select the cheapest rows of each cell and cost, the cheapest first.

    As in `fastfed best`, a schedule that leaves more trials unended than delta allows has no place
    among them.
    """
    import polars as pl

    fair = frame.filter(
        pl.col("total_mean").is_not_null() & (pl.col("truncated_low") <= pl.col("delta"))
    )
    groups = [
        rows.sort("total_mean", "uplinks_mean", maintain_order=True).head(each)
        for _, rows in (fair if len(fair) else frame).group_by(_GROUP, maintain_order=True)
    ]
    return pl.concat(groups)
