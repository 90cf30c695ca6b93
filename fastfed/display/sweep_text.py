"""The first screen after a sweep: for each cell and cost the cheapest schedule, beside FedElim."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastfed.display.legends import summary_legend
from fastfed.display.table import Column, Table
from fastfed.display.tables import (
    NONE,
    error_cell,
    key_columns,
    laws_text,
    over_least,
    shared_text,
    span_text,
    total_cell,
    usual_values,
)
from fastfed.model.choices import DEFAULTS
from fastfed.text import command, digits, printable

if TYPE_CHECKING:
    import polars as pl

    from fastfed.model.instance import Instance

_CELL = ("instance", "delta", "sigma", *DEFAULTS)
_GROUP = (*_CELL, "cost", "bit_cost")
_FEDELIM = ("fedelim", "exponential:2")
_BETTER = {"schedule": "phases", "radius": "mixture-pairs"}
"""Choices that often save most, as measured in docs/explanation/algorithms.md and radii.md."""
MOST = 16
"""Rows of the first screen."""


def sweep_text(
    frame: pl.DataFrame, instances: Mapping[str, Instance], folder: Path | None = None
) -> str:
    """Write the cheapest schedule of each cell and cost with FedElim beside it, at most `MOST`.

    Lines below name what to ask next: a command on the folder, or a method of the sweep if no
    folder is given.
    """
    from fastfed.analysis.summary import not_ended_text  # NumPy, which help need not wait for

    if not len(frame):
        return "no rows yet"
    pairs = [_pair(rows) for _, rows in frame.group_by(_GROUP, maintain_order=True)]
    costs = sorted({one["cost"] for one, _ in pairs if one["cost"] is not None})
    if len(pairs) > MOST and len(costs) > 1:
        middle = costs[len(costs) // 2]
        pairs = [pair for pair in pairs if pair[0]["cost"] == middle]
    best, paper = [one for one, _ in pairs], [other for _, other in pairs]
    shared, columns = key_columns(best, _GROUP, usual=usual_values(instances))
    shared.append(span_text([row["trials"] for row in best]))
    columns += [
        Column("cheapest", [printable(row["schedule"] or NONE) for row in best], True, name=True),
        Column("total ± sem", [total_cell(row) if row["schedule"] else "" for row in best]),
        Column("x T*", [digits(over_least(row, instances)) for row in best]),
        Column("error % [95 %]", [error_cell(row) if row["schedule"] else "" for row in best]),
    ]
    if any(paper):
        columns += [
            Column("fedelim", [total_cell(row) if row else "" for row in paper]),
            Column("x cheapest", [_over(*pair) for pair in pairs]),
            Column("x T*", [digits(over_least(row, instances)) if row else "" for row in paper]),
        ]
    columns = [one for one in columns if any(one.cells) or not one.head.startswith("x ")]
    note = not_ended_text(frame).splitlines()
    above = [*note, *laws_text(instances, frame), shared_text(shared)]
    legend = summary_legend([column.head for column in columns])
    over = ",".join(key for key in ("radius", "uplink") if frame[key].n_unique() > 1) or None
    asks = (_asks("summary", folder, "--all"), _asks("best", folder, over=over))
    # means of a summary are of all trials that ended, those of `best` of right answers
    every = "Every C, over right answers alone" if (frame["error_rate"] > 0).any() else "Every C"
    below = [*legend, *_excluded(frame), f"All {len(frame):,} rows: {asks[0]}. {every}: {asks[1]}"]
    below += _next_step(frame, folder)
    shown = dict.fromkeys(f"{row['cost']:g}" for row in best if row["cost"] is not None)
    rest = _asks("best", folder, "--all", cost=",".join(shown) or None)
    return Table(columns, above, below, frame).first(MOST, rest).text()


def _pair(rows: pl.DataFrame) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the row of the lowest mean total cost, and that of FedElim.

    As in `fastfed best`, a schedule that fails in more trials than delta allows is excluded. If all
    are, the row has no schedule.
    """
    import polars as pl

    from fastfed.analysis.comparable import excluded_rows

    kept = pl.Series([why is None for why in excluded_rows(rows)], dtype=pl.Boolean)
    fair = rows.filter(kept & rows["total_mean"].is_not_null())
    best = fair.sort("total_mean", "uplinks_mean", maintain_order=True).to_dicts()
    paper = rows.filter(pl.col("schedule").is_in(_FEDELIM)).to_dicts()
    none = rows.row(0, named=True) | dict.fromkeys(("schedule", "total_mean", "pulls_mean"))
    return best[0] if best else none, paper[0] if paper else None


def _excluded(frame: pl.DataFrame) -> list[str]:
    """Write a line for each schedule that is excluded from some cells."""
    from fastfed.analysis.comparable import excluded_rows, excluded_text

    cells: dict[tuple[object, ...], dict[str, Any]] = {}
    names = frame.select(_CELL).iter_rows()
    for cell, schedule, why in zip(names, frame["schedule"], excluded_rows(frame), strict=True):
        cells.setdefault(cell, {}).update({} if why is None else {schedule: why})
    return excluded_text(list(cells.values()), "cells")


def _over(best: Mapping[str, Any], paper: Mapping[str, Any] | None) -> str:
    if paper is None or paper["total_mean"] is None or not best["total_mean"]:
        return ""
    return digits(paper["total_mean"] / best["total_mean"])


def _asks(name: str, folder: Path | None, *words: str, **options: str | None) -> str:
    """Return the command, or the call, that gives another answer of the sweep."""
    return f"{name}()" if folder is None else printable(command(name, folder, *words, **options))


def _next_step(frame: pl.DataFrame, folder: Path | None) -> list[str]:
    """Name what the sweep has not tried and often saves most, with the command to type."""
    untried = {key: name for key, name in _BETTER.items() if name not in set(frame[key])}
    if folder is None or not untried or set(frame["goal"]) != {"best"}:
        return []
    radii = dict.fromkeys([*frame["radius"], _BETTER["radius"]])
    line = command(
        "sweep",
        spec=folder / "sweep.json",
        schedule="fedelim,phases" if "schedule" in untried else None,
        radius=",".join(radii) if "radius" in untried else None,
    )
    return ["Next, often far cheaper:", f"  {printable(line)}"]
