"""Shards that have not finished: which indices of an array of jobs are still to run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fastfed.errors import InputError
from fastfed.files import checked_folder
from fastfed.storage.folder import Store
from fastfed.sweeps.grid import Shard
from fastfed.validation import checked_whole


def missing_shards(folders: Sequence[str | Path], shards: int) -> list[int]:
    """List the shards, counted from 1, some of whose trials are in none of the folders."""
    count = checked_whole("shards", shards, 1, 10**6)
    stores = [Store(checked_folder(folder)) for folder in folders]
    spec = stores[0].record().asked_last
    if spec.stops_early:
        raise InputError(
            f"{folders[0]}: a sweep that stops early has no shards; `fastfed sweep` goes on with it"
        )
    found = []
    cells = {cell.id: cell for store in stores for cell in store.record().cells.values()}
    for index in range(1, count + 1):
        shares = {cell: Shard(index, count).share(cell, spec.trials) for cell in cells.values()}
        if any(
            _lacks([one for store in stores for one in store.ranges(cell, name)], first, end)
            for cell, (first, end) in shares.items()
            for name in spec.schedule
        ):
            found.append(index)
    return found


def _lacks(ranges: Sequence[tuple[int, int]], first: int, end: int) -> bool:
    """Tell whether a trial of [first, end) is in none of the ranges."""
    for low, high in sorted(ranges):
        if low <= first < high:
            first = high
    return first < end


def as_ranges(indices: Sequence[int]) -> str:
    """Write indices as a scheduler takes them: 3,7-9."""
    spans: list[list[int]] = []
    for index in indices:
        if spans and index == spans[-1][1] + 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
