"""The summary of a folder, and the file that keeps it.

summary.parquet says in its footer what it sums up: a hash of the contents of all parts, the costs
and the columns. It is trusted only if that is what the folder holds now.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastfed.statistics.summary import COLUMNS, summary_of, to_frame, wanted_costs
from fastfed.sweeps import sealed
from fastfed.sweeps.grid import ROWS
from fastfed.sweeps.store import Store

if TYPE_CHECKING:
    import polars as pl


def stored_summary(
    folder: Path | Store,
    costs: Sequence[float] | None = None,
    bit_costs: Sequence[float] | None = None,
) -> pl.DataFrame:
    """The summary of everything in a sweep's folder, from its rows alone."""
    import polars as pl

    store = Store.of(folder)
    record = store.record()
    wanted, of_bits = wanted_costs(costs, bit_costs, record.spec.cost, record.spec.bit_cost)
    kept = _kept(store, _key(store, wanted, of_bits))
    if kept is None:
        return _summarise(store, wanted, of_bits)
    frame = pl.from_arrow(kept.file.read())
    assert isinstance(frame, pl.DataFrame)
    return frame


def write_summary(store: Store, costs: Sequence[float], bit_costs: Sequence[float]) -> None:
    """Write summary.parquet unless it is up to date."""
    key = _key(store, costs, bit_costs)
    if _kept(store, key) is None:
        frame = _summarise(store, costs, bit_costs)
        sealed.write(store.summary_path, _plain(frame), key, max(1, frame.height), store.check_lock)


def _plain(frame: pl.DataFrame) -> Any:
    """As a pyarrow table with the types that every reader knows."""
    import polars as pl

    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def _key(store: Store, costs: Sequence[float], bit_costs: Sequence[float]) -> bytes:
    """What a summary of the folder as it is now sums up."""
    content = {
        "rows": ROWS,
        "columns": COLUMNS,
        "costs": list(costs),
        "bit_costs": list(bit_costs),
        "cells": [cell.id for cell in store.held()],
        "parts": sorted(part.content for part in store.parts()),
    }
    return hashlib.sha256(json.dumps(content).encode()).hexdigest().encode()


def _kept(store: Store, key: bytes) -> sealed.Sealed | None:
    """summary.parquet, if it is whole and sums up what ``key`` stands for."""
    with suppress(OSError, sealed.Damaged):
        found = sealed.read(store.summary_path)
        if found.about == key:
            return found
    return None


def _summarise(store: Store, costs: Sequence[float], bit_costs: Sequence[float]) -> pl.DataFrame:
    rows: list[dict[str, object]] = []
    for cell, schedules in store.held().items():
        batches = store.batches(cell, schedules)
        rows += [{**cell.names, **row} for row in summary_of(batches, schedules, costs, bit_costs)]
    return to_frame(rows)
