"""A sweep's folder: parts of trial rows that are complete or absent, and what they cover.

    results/sweep.json                      the spec, its hash, seed, versions, cells
    results/trials/<cell>-<part>.parquet    trial rows of one or many cells
    results/summary.parquet

A `Store` opens the parts by their indices alone. Rows are verified when they are read: those of the
cells that are asked for, and of no others. A file that cannot be used is refused, so that no answer
lacks trials in silence. Who moves it away has an answer from the others, and the same sweep makes
it again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from fastfed.analysis.trials import BATCH_COLUMNS, Batch
from fastfed.errors import InputError
from fastfed.files import leftovers, make_folder, refuse_nul, within
from fastfed.model.cell import Cell
from fastfed.model.instance import Instance
from fastfed.model.instance_files.toml_files import from_toml
from fastfed.model.schedules import Schedule
from fastfed.model.spec import COSTS, loaded
from fastfed.storage import checked_parquet, manifest
from fastfed.storage.checked_parquet import Damaged, Encoded
from fastfed.storage.lock import Lock
from fastfed.storage.manifest import ONE_FOR_ALL, Index, Piece, Record, Unfit
from fastfed.storage.part_file import Columns, PartFile, array_of, open_part, part_of, part_stem
from fastfed.text import printable
from fastfed.version import ROWS

_MOST_HELD = 8
"""So many row groups stay in memory, which are 20 MB; others are read again."""

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
        self._writes = False  # the record is one that we write, not one that was read
        self._parts: list[PartFile] | None = None
        self._spans: dict[Cell, list[Span]] = {}
        self._held_columns = lru_cache(_MOST_HELD)(_no_columns)

    # What the folder says

    def record(self) -> Record:
        """Return the content of sweep.json; refuse a folder without it, or one that is damaged."""
        found = self.record_if_any()
        if found is None:
            what, rest = "no such folder", ""
            if self.folder.exists():
                what, rest = "no sweep.json in it", ", and takes over the trials that are there"
            raise InputError(
                f"{self.folder}: not a sweep's folder ({what}); `fastfed sweep --out DIR` makes "
                f"one{rest}"
            )
        return found

    def record_if_any(self) -> Record | None:
        """Return the record; None if the folder has none."""
        if self._record is None:
            with _refused(self.manifest_path), suppress(FileNotFoundError, NotADirectoryError):
                self._record = manifest.read_record(self.manifest_path)
        return self._record

    def write_record(self, record: Record) -> None:
        """Write sweep.json, if it is new and all parts are sound and fit it."""
        old, self._record, self._parts = self.record_if_any(), record, None
        self._writes = True
        self.verify()
        if record != old:
            manifest.write_record(self.manifest_path, record, self.check_lock)

    def with_cells_of_parts(self, record: Record) -> Record:
        """Add to a record what the parts of a folder say of themselves whose own is lost."""
        opened = _each(open_part, self._files())
        cells = dict.fromkeys(record.cells)
        cells |= dict.fromkeys(
            piece.cell
            for part, _ in opened
            for piece in part.pieces
            if all(getattr(piece.cell, name) == getattr(record, name) for name in ONE_FOR_ALL)
        )
        instances, own = record.instances, record.own_parts
        for _, index in opened:
            instances, own = index.instances | instances, index.own_parts | own
        return msgspec.structs.replace(
            record, cells=tuple(cells), instances=instances, own_parts=own
        )

    # What the folder holds

    def parts(self) -> list[PartFile]:
        """Open the parts by their indices; refuse a file that is none of this sweep's."""
        if self._parts is None:
            files, self._spans = self._files(), {}
            if not self._writes:  # who adds cells writes the record before their parts
                self._record = None
            record = self.record_if_any()
            cells = {*record.cells} if record is not None else set()

            def opened(path: Path) -> PartFile:
                part, index = open_part(path)
                if record is not None:
                    _refuse_other_sweep(part, index, record, cells)
                return part

            found = _each(opened, files)
            for part in found:
                self._add(part)
            self._refuse_overlaps()
            self._parts = found
        return self._parts

    def _files(self) -> list[Path]:
        try:
            names = sorted(path.name for path in self.trials.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(f"{self.trials}: cannot be read ({error.strerror})") from None
        some = (one for one in names if one.endswith(".parquet") and not one.startswith("."))
        return [self.trials / name for name in some]

    def _add(self, part: PartFile) -> None:
        for piece, start in zip(part.pieces, part.starts, strict=False):
            span = Span(piece.first, piece.end, piece.schedules, part, start)
            self._spans.setdefault(piece.cell, []).append(span)

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

    def verify(self, parts: Iterable[PartFile] | None = None) -> None:
        """Verify all rows of some parts, or of all, without decoding them."""
        opened = {one.path: one.opened for one in (self.parts() if parts is None else parts)}
        _each(lambda path: checked_parquet.verify(opened[path]), opened)

    def held(self) -> dict[Cell, list[Schedule]]:
        """List the cells that have rows, in the order of the record, with their schedules."""
        self.parts()
        names = {
            cell: tuple(dict.fromkeys(name for span in spans for name in span.schedules))
            for cell in (self.record().cells if self._spans else ())
            if (spans := self._spans.get(cell))
        }
        parsed = {
            one: sorted(map(Schedule.parse, one), key=lambda schedule: schedule.sort_key)
            for one in {*names.values()}
        }
        return {cell: parsed[one] for cell, one in names.items()}

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
        """Instances of the rows, by name, equal to those that were run."""
        texts = self.record().instances
        found: dict[str, Instance] = {}
        for name, digest in {cell.instance: cell.digest for cell in self.held()}.items():
            problem = "it now has other means or rewards"
            try:
                found[name] = from_toml(texts[name], name) if name in texts else loaded(name)
            except InputError as error:
                problem = str(error)
            if name not in found or found[name].digest != digest:
                raise InputError(
                    f"{self.folder}: its instance {name!r} cannot be had any more ({problem}); go "
                    "where the sweep was started, or put it back"
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
        """
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
                    batch[name] = self._columns(span.part, first, first + end - low, tuple(columns))
            if batch:
                yield batch

    def _columns(self, part: PartFile, first: int, end: int, columns: tuple[str, ...]) -> Columns:
        """Return columns of the rows first .. end - 1 of a part."""
        groups, size = part.groups(first, end), part.group_rows
        with _refused(part.path):
            held = [self._group(part, group, columns) for group in groups]
        pieces = [
            {name: of[max(0, first - at * size) : end - at * size] for name, of in one.items()}
            for at, one in zip(groups, held, strict=True)
        ]
        if len(pieces) == 1:
            return pieces[0]
        return {name: np.concatenate([one[name] for one in pieces]) for name in pieces[0]}

    def _group(self, part: PartFile, group: int, columns: tuple[str, ...]) -> Columns:
        """Return those of some columns that a row group has; each is read once."""
        held = self._held_columns(part, group)
        if missing := [name for name in columns if name not in held]:
            table = part.read(group, missing)
            there = {*table.column_names}
            held |= {name: array_of(table, name) if name in there else None for name in missing}
        return {name: held[name] for name in columns if held[name] is not None}

    def tables(self, part: PartFile) -> Iterator[tuple[Piece, Any]]:
        """Read all rows of a part, piece by piece, as tables of pyarrow."""
        import pyarrow as pa

        with _refused(part.path):
            groups = [part.read(group, None) for group in part.groups(0, part.starts[-1])]
        table = pa.concat_tables(groups).replace_schema_metadata(None)
        for piece, start in zip(part.pieces, part.starts, strict=False):
            yield piece, table.slice(start, piece.rows)

    # Writing

    def write_part(self, pieces: list[Piece], rows: Encoded) -> PartFile:
        """Add the encoded rows of some pieces as a part.

        It has the version and the instances of the record, if the folder has one already.
        """
        record, names = self._record, {piece.cell.instance for piece in pieces}
        known = {} if record is None else record.instances
        index = Index.of(
            pieces,
            rows=ROWS if record is None else record.rows,
            instances={name: text for name, text in known.items() if name in names},
            own_parts={} if record is None else record.own_parts,
        )
        path = stem = self.trials / f"{part_stem(pieces)}.parquet"
        number = 2
        while os.path.lexists(path):
            path = stem.with_stem(f"{stem.stem}-{number}")
            number += 1
        opened = checked_parquet.write(path, rows, msgspec.json.encode(index), self.check_lock)
        part = part_of(opened, pieces)
        if self._parts is not None:
            self._parts.append(part)
            self._add(part)
        return part

    @contextmanager
    def lock(self) -> Iterator[Store]:
        """Make the folder and hold it: a second process is told so and stops."""
        make_folder(within(self.folder, "trials"))
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
        for folder, name in (
            (self.folder, "sweep.json"),
            (self.folder, "summary.parquet"),
            (self.trials, "*.parquet"),
        ):
            for left in leftovers(folder, name):
                with suppress(OSError):
                    left.unlink()


def _refuse_other_sweep(part: PartFile, index: Index, record: Record, cells: set[Cell]) -> None:
    """Refuse a part that does not fit the record, whose cells are given as a set."""
    if index.rows != record.rows:
        raise Unfit(f"version {index.rows} of the rows, sweep.json has another; move the file away")
    if changed := manifest.changed_part(index.own_parts, record.own_parts):
        raise Unfit(f"rows of another version of your own {changed}; move the file away")
    for cell in (piece.cell for piece in part.pieces):
        if cell not in cells:
            raise Unfit(
                f"rows of another sweep ({cell}, seed {cell.seed}, engine {cell.engine}, "
                f"max_steps {cell.max_steps}); move the file away"
            )


def _no_columns(part: PartFile, group: int) -> dict[str, Any]:
    return {}


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Refuse in one line a file that cannot be read, or is damaged."""
    try:
        yield
    except OSError as error:
        reason = f"cannot be read ({error.strerror})"
    except Unfit as error:
        reason = str(error)
    except Damaged as error:
        reason = f"{error}; move it away, and the same sweep makes it again"
    else:
        return
    raise InputError(printable(f"{path}: {reason}"))


_Result = TypeVar("_Result")


def _each(do: Callable[[Path], _Result], paths: Iterable[Path]) -> list[_Result]:
    """Do something with every file; refuse one that cannot be used."""

    def attempt(path: Path) -> _Result:
        with _refused(path):
            return do(path)

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(attempt, paths))
