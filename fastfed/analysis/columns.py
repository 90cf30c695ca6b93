"""Types of the columns of summaries, checks, comparisons and cheapest schedules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastfed.model.choices import DEFAULTS

_NAMES = ("instance", "schedule", *DEFAULTS, "sweep", "reference", "winner", "runner_up")
_WORDS = ("measure", "claim", "verdict", "reason", "prices")
_COUNTS = ("trials", "ended", "truncated", "pairs", "differ")
_TRUTHS = ("applies", "separated")
_LISTS = ("equal", "rivals", "excluded")


def column_types(names: Iterable[str]) -> dict[str, Any]:
    """Return the Polars type of each column; a column that is not listed above has numbers."""
    import polars as pl

    known: dict[str, Any] = {
        **dict.fromkeys((*_NAMES, *_WORDS), pl.String),
        **dict.fromkeys(_COUNTS, pl.Int64),
        **dict.fromkeys(_TRUTHS, pl.Boolean),
        **dict.fromkeys(_LISTS, pl.List(pl.String)),
    }
    return {name: known.get(name, pl.Float64) for name in names}
