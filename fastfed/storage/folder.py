"""A sweep's folder: parts of trial rows that are complete or absent, and what they cover.

    results/sweep.json                      the spec, its hash, seed, versions, cells
    results/trials/<cell>-<part>.parquet    trial rows of one or many cells
    results/summary.parquet

A `Store` opens the parts by their indices alone. Rows are verified when they are read: those of the
cells that are asked for, and of no others. `fastfed.storage.part_file` reads them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from fastfed.analysis.trials import BATCH_COLUMNS, Batch
from fastfed.errors import InputError
from fastfed.files import PARTIAL, make_folder, refuse_nul
from fastfed.model.cell import Cell
from fastfed.model.counts import ADDED
from fastfed.model.instance import Instance
from fastfed.model.instance_files.toml_files import from_toml
from fastfed.model.schedules import Schedule
from fastfed.model.spec import COSTS, loaded
from fastfed.storage import checked_parquet, manifest
from fastfed.storage.checked_parquet import Damaged, Encoded
from fastfed.storage.lock import Lock
from fastfed.storage.manifest import Index, Piece, Record, Unfit
from fastfed.storage.part_file import (
    Columns,
    PartFile,
    PartProblem,
    array_of,
    open_part,
    part_of,
    part_stem,
)
from fastfed.version import ROWS

_MOST_HELD = 2**27
"""So many bytes of rows stay in memory; others are read again."""

_HELD_COLUMNS = (*BATCH_COLUMNS, "skip_error")
"""The columns of rows that answers ask for, which are verified and held at once."""

_BATCH_ROWS = 2**16
"""Pieces are joined to batches of up to so many rows: each batch costs a millisecond to add up."""

Gaps = tuple[tuple[int, int], ...]
"""Ranges [first, end) of trials, in order."""


class Span(NamedTuple):
    """Trials [first, end) of a cell under some schedules, and the part and row where they begin."""

    first: int
    end: int
    schedules: tuple[str, ...]
    part: PartFile
    start: int

    def row(self, schedule: str, trial: int) -> int:
        """Return the row of a trial."""
        return (
            self.start
            + self.schedules.index(schedule) * (self.end - self.first)
            + (trial - self.first)
        )


class Store:
    """The folder of a sweep, for reading and, inside `lock`, for writing."""

    def __init__(self, folder: Path) -> None:
        refuse_nul(folder)
        self.folder = folder
        self.trials = folder / "trials"
        self.manifest_path = folder / "sweep.json"
        self.summary_path = folder / "summary.parquet"
        self._lock: Lock | None = None
        self._record: Record | None = None
        self._opened: list[PartFile | PartProblem] | None = None
        self._parts: dict[Path, PartFile] | None = None
        self._problems: list[PartProblem] = []
        self._spans: dict[Cell, list[Span]] = {}
        self._sound: set[tuple[Path, int]] = set()  # row groups that were verified
        self._rows: dict[tuple[Path, int], Columns] = {}  # the latest that were used come last
        self._held_bytes = 0
        self._schedules: dict[tuple[str, ...], list[Schedule]] = {}  # by their names, parsed once

    # What the folder says

    def record(self) -> Record:
        """Return the content of sweep.json; without that file, rebuild it from the parts.

        A file that cannot be used raises InputError.
        """
        if self._record is None:
            try:
                self._record = manifest.read_record(self.manifest_path)
            except FileNotFoundError:
                self._record = self._rebuilt()
            except OSError as error:
                raise InputError(
                    f"{self.manifest_path}: cannot be read ({error.strerror})"
                ) from None
            except Unfit as error:
                fix = "; move it away, and it is made again from what the parts say"
                fix = "" if error.other else fix
                raise InputError(f"{self.manifest_path}: {error}{fix}") from None
        return self._record

    def record_if_any(self) -> Record | None:
        """Return the record; None if the folder holds no sweep yet."""
        there = self.manifest_path.exists() or any(
            isinstance(one, PartFile) for one in self._open_all()
        )
        return self.record() if there else None

    def _rebuilt(self) -> Record:
        parts = [one for one in self._open_all() if isinstance(one, PartFile)]
        if not parts:
            what = "no such folder" if not self.folder.exists() else "no sweep.json in it"
            raise InputError(
                f"{self.folder}: not a sweep's folder ({what}); `fastfed sweep --out DIR` makes one"
            )
        return manifest.rebuilt([(one.index, one.pieces) for one in parts], self.folder)

    def write_record(self, record: Record) -> None:
        """Write sweep.json, if anything in it is new."""
        if not self.manifest_path.exists() or record != self.record():
            manifest.write_record(self.manifest_path, record, self.check_lock)
        self._record = record

    # What the folder holds

    def parts(self) -> list[PartFile]:
        """List the parts of this sweep; `problems` lists all other files."""
        if self._parts is None:
            opened, cells = self._open_all(), None
            if self.manifest_path.exists() or any(isinstance(one, PartFile) for one in opened):
                cells = {*self.record().cells}
            self._parts, self._spans, self._problems = {}, {}, []
            for part in opened:
                if isinstance(part, PartProblem):
                    self._problems.append(part)
                elif cells is not None and part.index.rows != self.record().rows:
                    reason = f"version {part.index.rows} of the rows, sweep.json has another"
                    self._leave_out(part.path, f"{reason}; move the file away", damaged=False)
                elif cells is not None and not cells.issuperset(p.cell for p in part.pieces):
                    cell = next(p.cell for p in part.pieces if p.cell not in cells)
                    self._leave_out(
                        part.path,
                        f"rows of another sweep ({cell}, seed {cell.seed}, engine {cell.engine}, "
                        f"max_steps {cell.max_steps}); move the file away",
                        damaged=False,
                    )
                else:
                    self._add(part)
            self._opened = None
            self._refuse_overlaps()
        return [*self._parts.values()]

    def _open_all(self) -> list[PartFile | PartProblem]:
        """Open every file among the parts, and verify its index."""
        if self._opened is None:
            with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
                self._opened = list(pool.map(open_part, self._files()))
        return self._opened

    def _files(self) -> list[Path]:
        try:
            with os.scandir(self.trials) as entries:
                names = sorted(entry.name for entry in entries)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(f"{self.trials}: cannot be read ({error.strerror})") from None
        return [
            self.trials / name
            for name in names
            if name.endswith(".parquet") and not name.startswith(".")
        ]

    def _add(self, part: PartFile) -> None:
        assert self._parts is not None
        self._parts[part.path] = part
        for piece, start in zip(part.pieces, part.starts, strict=False):
            span = Span(piece.first, piece.end, piece.schedules, part, start)
            self._spans.setdefault(piece.cell, []).append(span)

    def _leave_out(self, path: Path, reason: str, *, damaged: bool) -> None:
        """Count no row of a file, and say why."""
        self._problems.append(PartProblem(path, reason, damaged))
        part = self._parts.pop(path, None) if self._parts else None
        for cell in dict.fromkeys(piece.cell for piece in part.pieces) if part else ():
            self._spans[cell] = [one for one in self._spans[cell] if one.part is not part]
            if not self._spans[cell]:
                del self._spans[cell]

    def _refuse_overlaps(self) -> None:
        """Refuse a trial that two parts have: plain readers of the files would see it twice."""
        for cell, spans in self._spans.items():
            spans.sort(key=lambda one: one[:2])
            last: dict[str, Span] = {}
            for span in spans:
                for name in span.schedules:
                    before = last.get(name)
                    if before is not None and before.end > span.first:
                        raise InputError(
                            f"{before.part.path} and {span.part.path.name}: both have trials "
                            f"{span.first} to {min(before.end, span.end) - 1} of {cell}, "
                            f"{name}; move one of the two files away"
                        )
                    last[name] = span

    def problems(self) -> list[PartProblem]:
        """List the files among the parts whose rows are not counted."""
        self.parts()
        return sorted(self._problems, key=lambda problem: problem.path)

    def verify(self, cells: Iterable[Cell] | None = None, *, decode: bool = True) -> None:
        """Verify the rows of some cells, or of all; leave out the parts that are damaged.

        Rows are decoded and held while there is room, unless nobody will read them.
        """
        self.parts()
        wanted: dict[PartFile, set[int]] = {}
        for cell in self._spans if cells is None else cells:
            for span in self._spans.get(cell, ()):
                rows = (span.end - span.first) * len(span.schedules)
                wanted.setdefault(span.part, set()).update(
                    span.part.groups(span.start, span.start + rows)
                )
        for part, groups in wanted.items():
            new = sorted(one for one in groups if (part.path, one) not in self._sound)
            try:
                for group in new:
                    if decode and self._held_bytes < _MOST_HELD:
                        self._load(part, [group], _HELD_COLUMNS)
                    else:
                        checked_parquet.verify_groups(part.opened, [group])
            except OSError as error:
                reason = f"cannot be read ({error.strerror})"
                self._leave_out(part.path, reason, damaged=False)
            except Damaged as error:
                self._leave_out(part.path, str(error), damaged=True)
            if decode:
                self._sound.update((part.path, one) for one in new)

    def held(self) -> dict[Cell, list[Schedule]]:
        """List the cells that have rows, in the order of the record, with their schedules."""
        self.parts()
        return {
            cell: self._parsed(tuple(dict.fromkeys(n for s in spans for n in s.schedules)))
            for cell in (self.record().cells if self._spans else ())
            if (spans := self._spans.get(cell))
        }

    def _parsed(self, names: tuple[str, ...]) -> list[Schedule]:
        if names not in self._schedules:
            found = map(Schedule.parse, names)
            self._schedules[names] = sorted(found, key=lambda one: one.sort_key)
        return self._schedules[names]

    @property
    def source(self) -> str:
        """Name of the folder, for messages."""
        return str(self.folder)

    @property
    def costs(self) -> list[float]:
        """Costs of an uplink that the sweep was asked for."""
        return list(self.record().spec.cost or COSTS)

    @property
    def prices(self) -> dict[str, float]:
        """Fixed prices of the sweep."""
        return dict(self.record().spec.price)

    @property
    def bit_costs(self) -> list[float]:
        """Costs of a bit that the sweep was asked for."""
        return list(self.record().spec.bit_cost)

    @cached_property
    def instances(self) -> dict[str, Instance]:
        """Instances of the rows, by name: loaded as the spec says, equal to those that were run."""
        record = self.record()
        found: dict[str, Instance] = {}
        problems: list[str] = []
        wanted = {cell.instance: cell.digest for cell in self.held()}
        texts = record.instances
        for source in (*texts, *record.spec.instance, *wanted):
            try:
                if isinstance(source, str) and source in texts:
                    one = from_toml(texts[source], source)
                else:
                    one = loaded(source)
            except InputError as error:
                problems.append(str(error))
                continue
            if wanted.get(one.name) == one.digest:
                found[one.name] = one
            elif one.name in wanted and one.name not in found:
                problems.append(f"{one.name} now has other means or rewards")
        for name in wanted:
            if name not in found:
                raise InputError(
                    f"{self.folder}: its instance {name!r} cannot be had any more "
                    f"({problems[0]}); go where the sweep was started, or put it back"
                )
        return found

    def choices(self, cell: Cell) -> dict[str, Any]:
        """Return the names of the radius, goal and uplink of a cell."""
        return dict(cell.choices)

    def spans(self, cell: Cell, schedule: str) -> list[Span]:
        """List the trials of a schedule as disjoint ranges, in order."""
        self.parts()
        return sorted(
            (one for one in self._spans.get(cell, ()) if schedule in one.schedules),
            key=lambda one: one.first,
        )

    def ranges(self, cell: Cell, schedule: str) -> list[tuple[int, int]]:
        """List the trials [first, end) of a schedule, in order."""
        return [(one.first, one.end) for one in self.spans(cell, schedule)]

    def missing(
        self, cell: Cell, schedules: Sequence[str], first: int, end: int
    ) -> dict[Gaps, list[str]]:
        """Return the schedules that lack trials of [first, end), by the ranges that they lack."""
        self.parts()
        if cell not in self._spans:
            return {((first, end),): list(schedules)} if first < end and schedules else {}
        found: dict[Gaps, list[str]] = {}
        for name in schedules:
            edges = [edge for one in self.ranges(cell, name) for edge in one]
            bounds = [first, *(min(max(edge, first), end) for edge in edges), end]
            pairs = zip(bounds[::2], bounds[1::2], strict=True)
            gaps = tuple((low, high) for low, high in pairs if low < high)
            if gaps:
                found.setdefault(gaps, []).append(name)
        return found

    # Rows

    def batches(
        self,
        cell: Cell,
        schedules: Sequence[str],
        columns: Sequence[str] = BATCH_COLUMNS,
        until: int | None = None,
    ) -> Iterator[Batch]:
        """Yield the trials of a cell in batches, in order, aligned over the schedules.

        A batch has the schedules that hold all its trials; trials that none holds are left out.
        Small pieces are joined.
        """
        waiting: list[Batch] = []
        rows = 0
        for batch in self._batches(cell, schedules, columns, until):
            size = sum(len(one[columns[0]]) for one in batch.values())
            if waiting and (rows + size > _BATCH_ROWS or batch.keys() != waiting[0].keys()):
                yield _joined(waiting)
                waiting, rows = [], 0
            waiting.append(batch)
            rows += size
        if waiting:
            yield _joined(waiting)

    def _batches(
        self, cell: Cell, schedules: Sequence[str], columns: Sequence[str], until: int | None
    ) -> Iterator[Batch]:
        """Yield a batch for each range of trials that stands in the same pieces."""
        spans = {name: self.spans(cell, name) for name in schedules}
        edges = sorted({edge for held in spans.values() for one in held for edge in one[:2]})
        at = dict.fromkeys(schedules, 0)
        for low, high in pairwise(edges):
            if until is not None and low >= until:
                return
            end = high if until is None else min(high, until)
            batch: dict[str, Columns] = {}
            for name, held in spans.items():
                while at[name] < len(held) and held[at[name]].end <= low:
                    at[name] += 1
                if at[name] < len(held) and held[at[name]].first <= low:
                    span = held[at[name]]
                    first = span.row(name, low)
                    batch[name] = self._columns(span.part, first, first + end - low, columns)
            if batch:
                yield batch

    def _columns(self, part: PartFile, first: int, end: int, columns: Sequence[str]) -> Columns:
        """Return columns of the rows first .. end - 1 of a part."""
        groups, size = part.groups(first, end), part.group_rows
        with _readable(part.path):
            loaded = self._load(part, groups, columns)
        pieces = [
            {
                name: held[name][max(0, first - at * size) : end - at * size]
                for name in columns
                if name in held
            }
            for at, held in zip(groups, loaded, strict=True)
        ]
        found: Columns = _concatenated(pieces)
        return found

    def _load(self, part: PartFile, groups: Sequence[int], columns: Sequence[str]) -> list[Columns]:
        """Return row groups as arrays; from memory, if they are there."""
        lacking = [
            one
            for one in groups
            if not {*columns} - {*ADDED} <= {*self._rows.get((part.path, one), ())}
        ]
        read = part.read(lacking, columns) if lacking else ()
        new = {
            group: {name: array_of(table, name) for name in columns if name in table.column_names}
            for group, table in zip(lacking, read, strict=True)
        }
        found = []
        for group in groups:
            held = self._rows.pop((part.path, group), {})
            self._held_bytes -= _bytes_of(held)
            held = new.get(group, held)
            self._held_bytes += _bytes_of(held)
            self._rows[part.path, group] = held
            found.append(held)
        while self._held_bytes > _MOST_HELD and len(self._rows) > 1:
            self._held_bytes -= _bytes_of(self._rows.pop(next(iter(self._rows))))
        return found

    def tables(self, part: PartFile) -> Iterator[tuple[Piece, Any]]:
        """Read all rows of a part, piece by piece, as tables of pyarrow."""
        import pyarrow as pa

        with _readable(part.path):
            groups = part.groups(0, part.starts[-1])
            table = pa.concat_tables(part.read(groups, None)).replace_schema_metadata(None)
        for piece, start in zip(part.pieces, part.starts, strict=False):
            yield piece, table.slice(start, piece.rows)

    # Writing

    def write_part(self, pieces: list[Piece], rows: Encoded, table: Any = None) -> PartFile:
        """Add the encoded rows of some pieces as a part.

        It has the version and the instances of the record, if the folder has one already.
        ``table`` has the same rows, for those who read them next.
        """
        record, names = self._record, {piece.cell.instance for piece in pieces}
        known = {} if record is None else record.instances
        index = Index.of(
            pieces,
            rows=ROWS if record is None else record.rows,
            instances={name: text for name, text in known.items() if name in names},
            own_parts={} if record is None else record.own_parts,
        )
        path = _free(self.trials / f"{part_stem(pieces)}.parquet")
        about = msgspec.json.encode(index)
        opened = checked_parquet.write(path, rows, about, self.check_lock)
        part = part_of(opened, index, pieces)
        if self._parts is not None:
            self._add(part)
        self._sound.update((path, group) for group in range(len(opened.groups)))
        if table is not None and self._held_bytes < _MOST_HELD:
            for group in part.groups(0, part.starts[-1]):
                some = table.slice(group * part.group_rows, part.group_rows)
                held = {name: array_of(some, name) for name in some.column_names}
                self._rows[path, group] = held
                self._held_bytes += _bytes_of(held)
        return part

    def put_aside(self) -> list[PartProblem]:
        """Rename damaged parts so that readers no longer find them; their trials are done again.

        Any other file among the parts is refused, because it is not ours to move.
        """
        self.verify()
        problems = self.problems()
        for problem in problems:
            if not problem.damaged:
                raise InputError(str(problem))
        for problem in problems:
            path = problem.path
            try:
                path.rename(_free(path.with_name(f"{path.name}.damaged")))
            except OSError as error:
                raise InputError(f"{path}: cannot be put aside ({error.strerror})") from None
        self._problems = []
        return problems

    @contextmanager
    def lock(self) -> Iterator[Store]:
        """Make the folder and hold it: a second process is told so and stops."""
        if self.trials.is_symlink():
            raise InputError(
                f"{self.trials}: a symbolic link, so files elsewhere would be written and moved; "
                "make it a folder, or name the folder that the link leads to"
            )
        make_folder(self.trials)
        with Lock(self.folder) as lock:
            self._lock = lock
            self._remove_leftovers()
            try:
                yield self
            finally:
                self._lock = None

    def check_lock(self) -> None:
        """Raise if the lock under which we write is lost."""
        if self._lock is not None:
            self._lock.check()

    def _remove_leftovers(self) -> None:
        """Remove what a killed run of ours left half written in our two folders, nothing else."""
        ours = {self.folder: r"\.(sweep\.json|summary\.parquet)", self.trials: r"\..*\.parquet"}
        for folder, name in ours.items():
            with os.scandir(folder) as entries:
                left = [
                    entry.name
                    for entry in entries
                    if re.fullmatch(rf"{name}\.[0-9a-f]{{8}}{re.escape(PARTIAL)}", entry.name)
                ]
            for one in left:
                with suppress(OSError):
                    (folder / one).unlink()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn a part that cannot be read, or is damaged, into one line."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except Damaged as error:
        fix = "the same sweep, run again, does its trials again"
        raise InputError(f"{path}: {error}; {fix}") from None


def _joined(batches: Sequence[Batch]) -> Batch:
    """Join batches of the same schedules."""
    return {name: _concatenated([one[name] for one in batches]) for name in batches[0]}


def _concatenated(pieces: Sequence[Any]) -> Any:
    """Join columns of consecutive rows."""
    if len(pieces) == 1:
        return pieces[0]
    return {name: np.concatenate([one[name] for one in pieces]) for name in pieces[0]}


def _bytes_of(columns: Columns) -> int:
    return sum(one.nbytes for one in columns.values())


def _free(path: Path) -> Path:
    """Return a path that no file has: the given one, or one with a number before the suffix."""
    number, found = 2, path
    while os.path.lexists(found):
        found = path.with_name(f"{path.stem}-{number}{path.suffix}")
        number += 1
    return found
