"""Parts: files of trial rows. A part holds pieces, which are trials of a cell under some schedules.

Only the content of a part counts. Its index names the pieces, in the order of their rows, and its
checksums show that no bit has changed. The name of the file is for people.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfed.model.counts import ADDED
from fastfed.simulation import rows
from fastfed.storage import checked_parquet, manifest
from fastfed.storage.checked_parquet import GROUP_ROWS, Damaged, Opened
from fastfed.storage.manifest import Index, Piece

Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class PartFile:
    """A file of trial rows, opened."""

    opened: Opened
    pieces: list[Piece]
    starts: list[int]
    """The row at which each piece begins, and the number of all rows."""

    @property
    def path(self) -> Path:
        return self.opened.path

    @property
    def group_rows(self) -> int:
        """Rows of a row group; a file of format 2 counts as one."""
        return GROUP_ROWS if self.opened.groups else max(1, self.starts[-1])

    def groups(self, first: int, end: int) -> range:
        """Return the row groups that have the rows first .. end - 1."""
        return range(first // self.group_rows, -(-end // self.group_rows))

    def read(self, group: int, columns: Sequence[str] | None) -> Any:
        """Read a row group as a table; raise `Damaged` if its rows are not as indexed."""
        wanted = None if columns is None else [*dict.fromkeys([*columns, "trial"])]
        table = checked_parquet.read_group(self.opened, group, wanted)
        if not {*table.column_names, *ADDED}.issuperset(wanted or ["trial"]):
            raise Damaged("damaged (it lacks columns of trial rows)")
        self._validate(group * self.group_rows, table)
        return table

    def _validate(self, first: int, table: Any) -> None:
        """Check the types of columns, and that the rows have the trials of the pieces."""
        for column in table.schema:
            if column.type != rows.arrow_types(several=True).get(column.name, column.type):
                raise Damaged(f"damaged (its column {column.name} has type {column.type})")
            if table[column.name].null_count and column.name not in rows.NULLABLE:
                raise Damaged(f"damaged (column {column.name} lacks values)")
        end = min(first + self.group_rows, self.starts[-1])
        if len(table) != end - first:
            raise Damaged("damaged (other rows than its index says)")
        at = bisect_right(self.starts, first) - 1
        expected: list[Any] = []
        while self.starts[at] < end:
            piece = self.pieces[at]
            expected += [np.arange(piece.first, piece.end)] * len(piece.schedules)
            at += 1
        skipped = first - self.starts[bisect_right(self.starts, first) - 1]
        trials = np.concatenate(expected)[skipped : skipped + len(table)]
        if (array_of(table, "trial") != trials).any():
            raise Damaged("damaged (other trials than its index says)")


def part_stem(pieces: Sequence[Piece]) -> str:
    """Return the name that a part is given, without the suffix."""
    first = pieces[0]
    said = [(piece.cell.id, piece.first, piece.count, piece.schedules) for piece in pieces]
    mark = hashlib.sha256(repr(said).encode()).hexdigest()[:6]
    if len(pieces) == 1:
        return f"{first.cell.id}-{first.first:010d}-{first.count}-{mark}"
    return f"{first.cell.id}-{first.first:010d}-and-{len(pieces) - 1}-more-{mark}"


def open_part(path: Path) -> tuple[PartFile, Index]:
    """Open a file and verify its index: OSError, `Damaged` or `Unfit` if it is no part."""
    opened = checked_parquet.open_file(path)
    index, pieces = manifest.read_index(opened.about)
    return part_of(opened, pieces), index


def part_of(opened: Opened, pieces: list[Piece]) -> PartFile:
    """Make a part of a file and its pieces."""
    starts = np.cumsum([0, *(piece.rows for piece in pieces)]).tolist()
    groups = len(opened.groups)
    if groups and groups != max(1, -(-starts[-1] // GROUP_ROWS)):
        raise Damaged("damaged (other rows than its index says)")
    return PartFile(replace(opened, about=b""), pieces, starts)  # it would stay in memory


def array_of(table: Any, name: str) -> npt.NDArray[Any]:
    """Return a column of numbers or truths as an array, with -1 for nulls.

    Arrow's own functions import pandas wherever it is installed, which takes half a second.
    """
    import polars as pl

    values = pl.Series(table[name])
    return (values.fill_null(-1) if values.null_count() else values).to_numpy()
