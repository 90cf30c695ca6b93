"""The summary of a folder, and the file summary.parquet that saves it.

The footer of summary.parquet has a hash of its sources: the checksums of all parts, the costs and
the columns. The file is used only if that is the hash of the folder as it is now.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fastfed.analysis.summary import SUMMARY_COLUMNS, summary, wanted_costs
from fastfed.storage import checksum
from fastfed.storage.folder import Store

if TYPE_CHECKING:
    import polars as pl


def stored_summary(
    folder: Path | Store,
    costs: Sequence[float] | None = None,
    bit_costs: Sequence[float] | None = None,
) -> pl.DataFrame:
    """Return the summary of all rows in a sweep's folder."""
    import polars as pl

    store = folder if isinstance(folder, Store) else Store(folder)
    wanted, of_bits = wanted_costs(costs, bit_costs, store.costs, store.bit_costs)
    kept = _kept(store, _key(store, wanted, of_bits))
    if kept is None:
        return summary(store, wanted, of_bits)
    frame = pl.from_arrow(kept.file.read())
    assert isinstance(frame, pl.DataFrame)
    return frame


def write_summary(store: Store) -> None:
    """Write summary.parquet, for all costs of the record, unless it is up to date."""
    costs, bit_costs = store.record().spec.cost, store.record().spec.bit_cost
    key = _key(store, costs, bit_costs)
    if _kept(store, key) is None:
        import polars as pl

        frame = summary(store, costs, bit_costs)
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())  # types every reader knows
        checksum.write(store.summary_path, table, key, max(1, frame.height), store.check_lock)


def _key(store: Store, costs: Sequence[float], bit_costs: Sequence[float]) -> bytes:
    """Hash everything that a summary of the folder depends on."""
    content = {
        "rows": store.record().rows,
        "columns": SUMMARY_COLUMNS,
        "costs": list(costs),
        "bit_costs": list(bit_costs),
        "cells": [cell.id for cell in store.held()],
        "parts": sorted(part.content for part in store.parts()),
    }
    return hashlib.sha256(json.dumps(content).encode()).hexdigest().encode()


def _kept(store: Store, key: bytes) -> checksum.Verified | None:
    """Read summary.parquet; None if it is damaged or has another key."""
    with suppress(OSError, checksum.Damaged):
        found = checksum.read(store.summary_path)
        if found.about == key:
            return found
    return None
