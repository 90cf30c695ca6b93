"""Joining of rows: those of other folders (`merge`), or of trials in memory (`save`).

Folders that do not belong together are refused before anything is written. Only rows that the
target lacks are added; rows that both have are compared. Parts are complete or absent, as in a
sweep, and nothing is deleted. A merge that was killed leaves the folder of a sweep, and the same
command continues it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from fastfed.errors import InputError
from fastfed.files import checked_folder
from fastfed.model.cell import Cell
from fastfed.model.instance_files.load import brought_back_by_name
from fastfed.model.radii import Radius
from fastfed.model.spec import Spec
from fastfed.simulation import rows
from fastfed.storage import checked_parquet, manifest
from fastfed.storage.folder import Span, Store
from fastfed.storage.manifest import FORMAT, ONE_FOR_ALL, Piece, Record
from fastfed.storage.summary_cache import write_summary

if TYPE_CHECKING:
    from fastfed.model.schedules import Schedule
    from fastfed.model.setting import Setting
    from fastfed.simulation.job import Job
    from fastfed.simulation.rows import Block

MOST_ROWS = 500_000
"""The largest number of rows in a part."""

_BOUNDS = ("skip_error", "draw_error")
_COSTS = ("cost", "bit_cost")

Rows = tuple[Piece, Any, object]
"""A piece, its rows as a table of pyarrow, and the name of their source."""


@dataclass(frozen=True)
class Merged:
    """The result of a merge: parts added, and rows of the spec that no folder had."""

    parts: int
    missing: int


def merge(folders: Sequence[str | Path], out: str | Path) -> Merged:
    """Join the rows of ``folders`` in the folder ``out``, which may hold some of them already."""
    target = Store(checked_folder(out))
    sources = [
        one
        for one in map(Store, dict.fromkeys(map(Path, folders)))
        if one.folder.resolve() != target.folder.resolve()
    ]
    if not sources:
        raise InputError(
            f"{target.folder}: nothing to merge with it; name at least one other folder"
        )
    # rejects what does not belong together, or is damaged, before a folder is made
    _common_record(sources)
    for source in sources:
        source.verify()
    with target.lock():
        _refuse_format_2(target)
        there = [] if target.record_if_any() is None else [target]
        record = _common_record([*there, *sources])
        given = (
            (piece, table, part.path)
            for source in sources
            for part in source.parts()
            for piece, table in source.tables(part)
        )
        parts = _join(target, record, given)
        return Merged(parts, _missing(target, record))


def save(folder: str | Path, jobs: Sequence[Job], blocks: Sequence[Block]) -> None:
    """Write the rows of jobs that a folder does not hold yet, one block a job."""
    job, block = jobs[0], blocks[0]
    settings, setting = [one.setting for one in jobs], job.setting
    if not hasattr(setting.radius, "family"):
        raise InputError(
            f"radius {setting.radius}: a folder outlives the process and knows radii by "
            f"name only ({', '.join(Radius.families)}), so rows of your own radius cannot be "
            "saved in one; write them with "
            "result.frame.write_parquet(file)"
        )
    name = setting.instance.name
    spec = Spec.of(
        {
            "instance": [name if brought_back_by_name(setting.instance) else setting.instance],
            "delta": [one.delta for one in settings],
            "schedule": job.schedules,
            "trials": block.first + block.trials,
            "seed": setting.seed,
            "engine": setting.engine,
            "sigma": [setting.sigma],
            "max_steps": setting.max_steps,
            **setting.choices,
        }
    )
    names = tuple(map(str, job.schedules))
    with Store(checked_folder(folder)).lock() as store:
        before = store.record_if_any()
        if before is not None:  # costs are no part of rows: the folder keeps its own
            kept = {name: getattr(before.spec, name) for name in _COSTS}
            spec = msgspec.structs.replace(spec, **kept)
        given = (
            (
                Piece(its_job.setting.key, names, its_block.first, its_block.trials),
                rows.table([its_job.rows(its_block)]),
                "the rows to save",
            )
            for its_job, its_block in zip(jobs, blocks, strict=True)
        )
        _join(store, record_of(store, spec, settings, job.schedules), given)


def record_of(
    store: Store, spec: Spec, settings: Sequence[Setting], schedules: Sequence[Schedule]
) -> Record:
    """Make the record of a folder to which a sweep adds; refuse one whose rows do not fit."""
    new = manifest.record_of(spec, settings, schedules)
    before = store.record_if_any()
    if before is None:
        return store.with_cells_of_parts(new)
    record = _joined(store.folder, before, new, "this sweep")
    _refuse_format_2(store)
    return record


def _join(target: Store, record: Record, given: Iterable[Rows]) -> int:
    """Add the rows that a folder lacks; return the number of new parts."""
    target.write_record(record)
    added = _Added(target)
    for piece, table, source in given:
        added.take(piece, table, source)
    added.write()
    write_summary(target)
    return added.parts


class _Added:
    """Rows that a folder lacks, which become parts."""

    def __init__(self, target: Store) -> None:
        self.target, self.parts = target, 0
        self._waiting: list[tuple[Piece, Any]] = []
        self._ranges: dict[Cell, list[Piece]] = {}  # of those that wait
        self._rows = 0
        # one piece after the other is compared with the same row groups
        self._group = lru_cache(maxsize=8)(lambda part, group: part.read(group, None))

    def take(self, piece: Piece, table: Any, source: object) -> None:
        """Take the rows of a piece that the target lacks; compare all others."""
        import pyarrow as pa

        beside = self._ranges.get(piece.cell, ())
        if any(one.first < piece.end and piece.first < one.end for one in beside) or (
            self._waiting and self._waiting[0][1].schema != table.schema
        ):
            self.write()
        lacking = self.target.missing(piece.cell, piece.schedules, piece.first, piece.end)
        if lacking != {((piece.first, piece.end),): [*piece.schedules]}:
            for name in piece.schedules:
                for span in self.target.spans(piece.cell, name):
                    self._compare(piece, table, name, span, source)
        self._ranges.setdefault(piece.cell, []).append(piece)
        for gaps, names in lacking.items():
            for first, end in gaps:
                some = [_rows_of(piece, table, name, first, end) for name in names]
                part = Piece(piece.cell, tuple(names), first, end - first)
                self._waiting.append((part, pa.concat_tables(some)))
                self._rows += part.rows
        if self._rows >= MOST_ROWS:
            self.write()

    def write(self) -> None:
        """Write the rows that wait as a part."""
        import pyarrow as pa

        if self._waiting:
            pieces, tables = [one for one, _ in self._waiting], [one for _, one in self._waiting]
            self.target.write_part(pieces, checked_parquet.encode(pa.concat_tables(tables)))
            self.parts += 1
            self._waiting, self._rows = [], 0
        self._ranges = {}

    def _compare(self, piece: Piece, table: Any, name: str, span: Span, source: object) -> None:
        """Refuse rows that differ from those of the target.

        The bounds on errors are left out: they depend on the other schedules of a run, because
        clients are followed as far as any of its rows needs. Both are bounds for the one row.
        """
        import pyarrow as pa

        first, end = max(piece.first, span.first), min(piece.end, span.end)
        if first >= end:
            return
        ours = _rows_of(piece, table, name, first, end)
        row, size = span.row(name, first), span.part.group_rows
        theirs = pa.concat_tables(
            self._group(span.part, group).slice(
                max(0, row - group * size), row + end - first - max(row, group * size)
            )
            for group in span.part.groups(row, row + end - first)
        )
        columns = [
            column
            for column in ours.column_names
            if column not in _BOUNDS and not ours[column].equals(theirs[column])
        ]
        if columns:
            raise InputError(
                f"{source}: other rows than in {span.part.path} for trials {first} to {end - 1}, "
                f"schedule {name} (column {', '.join(columns)}); one of the two is wrong"
            )


def _rows_of(piece: Piece, table: Any, schedule: str, first: int, end: int) -> Any:
    """Return the rows of some trials of a schedule."""
    begin = piece.schedules.index(schedule) * piece.count
    return table.slice(begin + first - piece.first, end - first)


def _common_record(stores: Sequence[Store]) -> Record:
    """Return the record of several folders together; refuse those that cannot be one."""
    record = msgspec.structs.replace(stores[0].record(), format=FORMAT)
    for store in stores[1:]:
        record = _joined(stores[0].folder, record, store.record(), str(store.folder))
    return record


def _joined(folder: Path, before: Record, new: Record, source: str) -> Record:
    """Join the record of a folder and that of more rows; refuse rows that do not fit.

    A folder holds one version of the rows, one seed, one engine, one max_steps, and for each
    name one instance and one version of a user's own code.
    """
    values = ((name, getattr(before, name), getattr(new, name)) for name in ("rows", *ONE_FOR_ALL))
    for name, old, asked in values:
        if old != asked:
            what = {"rows": "version"}.get(name, name)
            raise InputError(
                f"{folder}: holds rows with {what} {old}, {source} has {what} {asked}; give it "
                "another --out"
            )
    if changed := manifest.changed_part(before.own_parts, new.own_parts):
        raise InputError(
            f"{folder}: holds rows of another version of your own {changed} than {source} (its "
            "code or a constant changed, or Python's version); give it another --out, or the "
            "class another family"
        )
    digests = {cell.instance: cell.digest for cell in before.cells}
    for cell in new.cells:
        if digests.get(cell.instance, cell.digest) != cell.digest:
            raise InputError(
                f"{folder}: holds rows of another instance called {cell.instance!r} than {source} "
                "(other means or rewards); give it another --out, or the instance another name"
            )
    return manifest.joined(before, new)


def _refuse_format_2(store: Store) -> None:
    """Refuse to write into a folder of an older format."""
    record = store.record_if_any()
    if record is not None and record.format != FORMAT:
        raise InputError(
            f"{store.folder}: has format {record.format}, and new rows would have format {FORMAT}; "
            f"`fastfed merge {store.folder} --out DIR` rewrites it, and the sweep goes on in DIR"
        )


def _missing(target: Store, record: Record) -> int:
    """Count the rows of the spec that no folder has; 0 if its cells stop early."""
    asked = record.asked_last
    if asked.stops_early:
        return 0
    return sum(
        (end - first) * len(names)
        for cell in record.cells
        for gaps, names in target.missing(cell, asked.schedule, 0, asked.trials).items()
        for first, end in gaps
    )
