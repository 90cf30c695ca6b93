"""The summary of a folder, and the file summary.parquet that saves it.

The index of summary.parquet has a hash of its sources: the checksums of all parts, the costs and
the columns. The file is used only if that is the hash of the folder as it is now.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from fastfed.analysis.summary import SUMMARY_COLUMNS, summaries, summary, to_frame, wanted_costs
from fastfed.storage import checked_parquet
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
        return summary(store, wanted, of_bits, store.prices)
    store.verify()
    return pl.read_parquet(kept)  # it takes half of the memory of Arrow's reader


def write_summary(store: Store) -> None:
    """Write summary.parquet, for all costs of the record, unless it is up to date."""
    key = _key(store, store.costs, store.bit_costs)
    if _kept(store, key) is None:
        import polars as pl

        plain = pl.CompatLevel.oldest()  # types that every reader knows
        frames = summaries(store, store.costs, store.bit_costs, store.prices)
        tables = (one.to_arrow(compat_level=plain) for one in frames)
        none = to_frame([]).to_arrow(compat_level=plain)
        rows = checked_parquet.encode(next(tables, none), tables)
        checked_parquet.write(store.summary_path, rows, key, store.check_lock)


def _key(store: Store, costs: Sequence[float], bit_costs: Sequence[float]) -> bytes:
    """Hash everything that a summary of the folder depends on, as JSON."""
    content = {
        "rows": store.record().rows,
        "columns": SUMMARY_COLUMNS,
        "costs": list(costs),
        "bit_costs": list(bit_costs),
        "prices": store.prices,
        "cells": [cell.id for cell in store.held()],
        "parts": sorted(part.opened.content for part in store.parts()),
    }
    return json.dumps(hashlib.sha256(json.dumps(content).encode()).hexdigest()).encode()


def _kept(store: Store, key: bytes) -> IO[bytes] | None:
    """Read summary.parquet into memory; None if it is damaged or has another key."""
    with suppress(OSError, checked_parquet.Damaged):
        opened, content = checked_parquet.read_whole(store.summary_path)
        return content if opened.about == key else None
    return None
