"""Shards: the shares of a sweep that an array of jobs runs, and those that are still to run."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fastfed.errors import InputError
from fastfed.files import checked_folder
from fastfed.model.cell import Cell
from fastfed.storage.folder import Store
from fastfed.validation import checked_whole

_MOST_GUESSED = 1000  # shards


@dataclass(frozen=True)
class Shard:
    """The index-th of count equal shares of every cell: a sweep split without a scheduler."""

    index: int  # from 1
    count: int

    @staticmethod
    def parse(text: str) -> Shard:
        """Read a shard from its text, as in "3/16" for the third of sixteen."""
        match = re.fullmatch(r"\s*([0-9]{1,9})\s*/\s*([0-9]{1,9})\s*", str(text))
        if match is None:
            raise InputError(f"shard {text!r}: must be I/N, as in 3/16 for the third of sixteen")
        shard = Shard(int(match[1]), int(match[2]))
        if not 1 <= shard.index <= shard.count:
            raise InputError(
                f"shard {text!r}: shards of {shard.count} count from 1 to {shard.count}"
                if shard.count
                else f"shard {text!r}: there must be at least one shard, as in 1/1"
            )
        return shard

    def share(self, cell: Cell, trials: int) -> tuple[int, int]:
        """Return the trials [first, end) of a cell that belong to this shard.

        The shares of all shards are disjoint and cover the cell. The shard that gets the first
        trials differs between cells, so that few trials are spread fairly.
        """
        turn = (self.index + zlib.crc32(cell.id.encode())) % self.count
        return trials * turn // self.count, trials * (turn + 1) // self.count


def missing_shards(folders: Sequence[str | Path], shards: int | str | None) -> list[int]:
    """List the shards, counted from 1, some of whose trials are in none of the folders.

    ``shards`` is the number of all shards. None: 1 for one folder; for several, the number of
    which each folder holds one whole shard.
    """
    stores = [Store(checked_folder(folder)) for folder in folders]
    if shards is None:
        count = 1 if len(stores) == 1 else _shards_of(stores)
    else:
        count = checked_whole("shards", shards, 1, 10**6)
    spec = stores[0].record().asked_last
    if spec.stops_early:
        raise InputError(
            f"{folders[0]}: a sweep that stops early has no shards; `fastfed sweep` goes on with it"
        )
    found = []
    cells = {cell.id: cell for store in stores for cell in store.record().cells}
    for index in range(1, count + 1):
        shares = {cell: Shard(index, count).share(cell, spec.trials) for cell in cells.values()}
        if any(
            _lacks([one for store in stores for one in store.ranges(cell, name)], first, end)
            for cell, (first, end) in shares.items()
            for name in spec.schedule
        ):
            found.append(index)
    return found


def _shards_of(stores: Sequence[Store]) -> int:
    """Return the least number of shards of which each folder holds one, and the whole of it."""
    record = stores[0].record()
    asked, cell = record.asked_last, record.cells[0]
    held = [store.ranges(cell, asked.schedule[0]) for store in stores]
    for count in range(1, min(asked.trials, _MOST_GUESSED) + 1):
        shares = {Shard(index, count).share(cell, asked.trials) for index in range(1, count + 1)}
        if all(len(ranges) == 1 and ranges[0] in shares for ranges in held):
            return count
    raise InputError(
        f"{stores[0].folder}: cannot tell how many shards there are; give their number, as in "
        "--shards 16"
    )


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
