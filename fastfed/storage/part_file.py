"""Files of trial rows: their footers, their rows, and the reasons why a file is not counted.

Only the content of a part counts. Its footer names the cell, the schedules and the trials, and its
checksum shows that no bit has changed. The name of the file is for people.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.model.cell import Cell
from fastfed.simulation import rows
from fastfed.storage import checksum, manifest
from fastfed.storage.checksum import Damaged
from fastfed.storage.manifest import Footer, Unfit
from fastfed.text import printable


@dataclass(frozen=True)
class PartFile:
    """A file of trial rows: trials first .. first + count - 1 of a cell under some schedules."""

    path: Path
    cell: Cell
    first: int
    count: int
    schedules: tuple[str, ...]
    content: str  # the hash of the file's content
    verified: checksum.Verified | None = field(default=None, compare=False, repr=False)
    """Content of the file as it was verified, if it is held in memory."""

    @property
    def end(self) -> int:
        return self.first + self.count


_MANY_ROWS = 10_000
"""From so many rows on threads read a part faster."""

DAMAGED, REPEATS, FOREIGN, UNREADABLE = "damaged", "repeats", "foreign", "unreadable"
_ASIDE = {DAMAGED: ".damaged", REPEATS: ".repeated", FOREIGN: ".foreign"}


@dataclass(frozen=True)
class PartProblem:
    """A file among the parts whose rows are not counted, or that repeats others, and why."""

    path: Path
    reason: str
    redo: bool  # whether a sweep may put it aside
    kind: str = DAMAGED
    part: PartFile | None = None  # what a file that repeats others holds

    @property
    def suffix(self) -> str:
        """The suffix of the file's name after it is set aside."""
        return _ASIDE.get(self.kind, ".damaged")

    @property
    def outcome(self) -> str:
        """The fate of the file in a sweep or a merge, for messages."""
        if not self.redo:
            return "left alone"
        if self.kind == REPEATS:
            return f"put aside as {self.suffix}; no trial is lost"
        return f"put aside as {self.suffix}; its trials are missing until they are done again"

    def __str__(self) -> str:
        return printable(f"{self.path}: {self.reason}")


def part_stem(about: Footer | PartFile) -> str:
    """Return the name that a part is given, without the suffix."""
    mark = hashlib.sha256("\n".join(about.schedules).encode()).hexdigest()[:6]
    return f"{about.cell.id}-{about.first:010d}-{about.count}-{mark}"


def read_footer(path: Path) -> tuple[Footer | PartProblem, checksum.Verified | None]:
    """Read the footer of a file after verifying every bit of the file."""
    try:
        found = checksum.read(path)
        about = manifest.decoded(found.about, Footer)
        _validate_layout(about, found.file)
    except OSError as error:
        reason = f"cannot be read ({error.strerror})"
        return PartProblem(path, reason, redo=False, kind=UNREADABLE), None
    except Unfit as error:
        kind = FOREIGN if error.other else DAMAGED
        return PartProblem(path, str(error), redo=not error.other, kind=kind), None
    except Damaged as error:
        return PartProblem(path, str(error), redo=True), None
    return about, found


def _validate_layout(about: Footer, file: Any) -> None:
    """Check that each schedule has one row group, with all the trials, in order."""
    groups = [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)]
    if groups != [about.count] * len(about.schedules):
        raise Damaged("damaged (other rows than its footer says)")
    for column in file.schema_arrow:
        if column.type != _arrow_types().get(column.name, column.type):
            raise Damaged(f"damaged (its column {column.name} has type {column.type})")
    _trials_in_order(_read_columns(file, range(len(groups)), ["trial"]), about)


@cache
def _arrow_types() -> dict[str, Any]:
    """Return the Arrow type of every column of trial rows."""
    import pyarrow as pa

    kinds = {
        "String": pa.string(),
        "Boolean": pa.bool_(),
        "Float64": pa.float64(),
        "Int32": pa.int32(),
        "Int64": pa.int64(),
        "UInt64": pa.uint64(),
        "List(Int32)": pa.list_(pa.int32()),
    }
    return {name: kinds[kind] for name, kind in {**rows.COLUMNS, **rows.OF_SEVERAL}.items()}


def _trials_in_order(table: Any, about: Footer | PartFile) -> None:
    trial = _array(table["trial"]).reshape(-1, about.count)
    if (trial != np.arange(about.first, about.first + about.count)).any():
        raise Damaged("damaged (other trials than its footer says)")


def _array(column: Any) -> npt.NDArray[Any]:
    """Return a column of numbers or truths as an array, with -1 for nulls.

    Arrow's own functions import pandas wherever it is installed, which takes half a second.
    """
    values = column.combine_chunks()
    here = slice(values.offset, values.offset + len(values))
    known, content = (
        np.zeros(0, np.uint8) if one is None else np.frombuffer(one, np.uint8)
        for one in values.buffers()
    )
    if str(values.type) == "bool":
        return _bits(content)[here]
    kind = {"int64": np.int64, "double": np.float64}[str(values.type)]
    found = content[: content.size // 8 * 8].view(kind)[here]
    return np.where(_bits(known)[here], found, -1) if values.null_count else found


def _bits(packed: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    return np.unpackbits(packed, bitorder="little").view(bool)


def by_schedule(table: Any, schedules: Sequence[str]) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """Return the columns of rows, which have as many trials of each schedule, as arrays."""
    values = {name: _array(table[name]) for name in table.column_names}
    count = len(table) // len(schedules)
    parts = {name: slice(at * count, (at + 1) * count) for at, name in enumerate(schedules)}
    return {
        name: {column: array[part] for column, array in values.items()}
        for name, part in parts.items()
    }


def read_rows(
    part: PartFile, schedules: Sequence[str], columns: Sequence[str] | None = None
) -> Any:
    """Read the rows of some schedules of a part, as a pyarrow table.

    They come from the bytes that were verified, if those are still in memory. Otherwise the file is
    read and verified again.
    """
    place = {name: number for number, name in enumerate(part.schedules)}
    places = [place[name] for name in schedules]
    try:
        found = part.verified or checksum.read(part.path)
        if found.content != part.content:
            raise Damaged("changed while it was in use")
        return _read_columns(found.file, places, columns)
    except OSError as error:
        raise InputError(f"{part.path}: cannot be read ({error.strerror})") from None
    except Damaged as error:
        raise InputError(
            f"{part.path}: {error}; the same sweep, run again, does its trials again"
        ) from None


def rows_of(part: PartFile, schedules: Sequence[str], first: int, end: int) -> Any:
    """Read trials first .. end - 1 of some schedules, as a pyarrow table without metadata."""
    import pyarrow as pa

    table = read_rows(part, schedules).replace_schema_metadata(None)
    starts = range(first - part.first, len(table), part.count)
    return pa.concat_tables([table.slice(start, end - first) for start in starts])


def _read_columns(file: Any, groups: Sequence[int] | range, columns: Sequence[str] | None) -> Any:
    import pyarrow as pa

    names = set(file.schema_arrow.names)
    if columns is not None and not names.issuperset(columns):
        raise Damaged("damaged (it lacks columns of trial rows)")
    try:
        table = file.read_row_groups(
            list(groups),
            None if columns is None else list(columns),
            use_threads=file.metadata.num_rows > _MANY_ROWS,
        )
    except MemoryError:  # says nothing about the file, which must not be moved away
        raise
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"damaged ({type(error).__name__})") from None
    for name in table.column_names:
        if table[name].null_count and name not in rows.NULLABLE:
            raise Damaged(f"damaged (column {name} lacks values)")
    return table
