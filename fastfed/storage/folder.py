"""A sweep's folder: parts of trial rows that are complete or absent, and what they cover.

    results/sweep.json                      the spec, its hash, seed, versions, cells
    results/trials/<cell>-<part>.parquet    trial rows, one row group per schedule
    results/summary.parquet

`fastfed.storage.part_file` reads the parts.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fastfed.analysis.trials import BATCH_COLUMNS, Batch
from fastfed.errors import InputError
from fastfed.files import PARTIAL, make_folder, refuse_nul
from fastfed.model.cell import Cell
from fastfed.model.instance import Instance
from fastfed.model.instance_files import from_toml
from fastfed.model.schedules import Schedule
from fastfed.model.spec import Spec, loaded
from fastfed.storage import checksum, manifest
from fastfed.storage.lock import Lock
from fastfed.storage.manifest import Footer, Record, Unfit
from fastfed.storage.part_file import (
    FOREIGN,
    REPEATS,
    PartFile,
    PartProblem,
    by_schedule,
    part_stem,
    read_footer,
    read_rows,
    rows_of,
)
from fastfed.version import ROWS

_MOST_HELD = 2**27
"""So many bytes of parts that were written or verified stay in memory; others are read again."""

_BATCH_ROWS = 2**16
"""Parts are joined to batches of up to so many rows: each batch costs a millisecond to add up."""

Span = tuple[int, int, PartFile]
"""Trials [first, end) of a schedule, and the part that has them."""


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
        self._scanned: list[tuple[Path, Footer | PartProblem, str]] | None = None
        self._verified: dict[Path, checksum.Verified] = {}
        self._rows: dict[Path, Any] = {}  # of parts that were written, or read as a whole
        self._held_bytes = 0
        self._parts: list[PartFile] | None = None
        self._problems: list[PartProblem] = []
        self._spans: dict[tuple[Cell, str], list[Span]] = {}
        self._schedules: dict[str, Schedule] = {}  # by their names, parsed once

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
        return self.record() if self.manifest_path.exists() or self._footers() else None

    def _footers(self) -> list[Footer]:
        return [found for _, found, _ in self._scan() if isinstance(found, Footer)]

    def _rebuilt(self) -> Record:
        footers = self._footers()
        if not footers:
            what = "no such folder" if not self.folder.exists() else "no sweep.json in it"
            raise InputError(
                f"{self.folder}: not a sweep's folder ({what}); `fastfed sweep --out DIR` makes one"
            )
        return manifest.rebuilt(footers, self.folder)

    def write_record(self, record: Record) -> None:
        """Write sweep.json, if anything in it is new."""
        if not self.manifest_path.exists() or record != self.record():
            manifest.write_record(self.manifest_path, record, self.check_lock)
        self._record = record

    # What the folder holds

    def parts(self) -> list[PartFile]:
        """List the sound parts of this sweep; `problems` lists all other files."""
        if self._parts is None:
            gone = not self.manifest_path.exists()
            if gone and self._footers():
                self.record()  # made from the footers, while they are at hand
            cells = None if gone else self.record().cells
            self._parts, self._problems = [], []
            for path, found, content in sorted(self._scan(), key=_preference):
                if isinstance(found, PartProblem):
                    self._problems.append(found)
                    continue
                about = found.cell, found.first, found.count, found.schedules
                part = PartFile(path, *about, content, self._verified.pop(path, None))
                if cells is not None and found.rows != self.record().rows:
                    self._problems.append(_of_another_version(part, found.rows))
                elif cells is not None and part.cell.id not in cells:
                    self._problems.append(_of_another_sweep(part))
                else:
                    self.add(part)
            self._parts.sort(key=lambda part: part.path)
            self._problems.sort(key=lambda problem: problem.path)
            self._scanned = None  # footers have the whole spec: keep them no longer than needed
        return self._parts

    def problems(self) -> list[PartProblem]:
        """List the files among the parts that are damaged, unreadable or no part of this sweep."""
        self.parts()
        return self._problems

    def held(self) -> dict[Cell, list[Schedule]]:
        """List the cells that have rows, in the order of the record, with their schedules."""
        found: dict[Cell, list[Schedule]] = {}
        for cell, name in self._spans_by_key():
            if name not in self._schedules:
                self._schedules[name] = Schedule.parse(name)
            found.setdefault(cell, []).append(self._schedules[name])
        in_order = dict.fromkeys([*self.record().cells.values(), *found])
        return {
            cell: sorted(found[cell], key=lambda one: one.sort_key)
            for cell in in_order
            if cell in found
        }

    @property
    def source(self) -> str:
        """Name of the folder, for messages."""
        return str(self.folder)

    @property
    def costs(self) -> list[float]:
        """Costs of an uplink that the sweep was asked for."""
        return list(self.record().spec.cost)

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

    def ranges(self, cell: Cell, schedule: str) -> list[tuple[int, int]]:
        """List the trials [first, end) of a schedule, in order."""
        return [(first, end) for first, end, _ in self.spans(cell, schedule)]

    def _spans_by_key(self) -> dict[tuple[Cell, str], list[Span]]:
        self.parts()
        return self._spans

    def spans(self, cell: Cell, schedule: str) -> list[Span]:
        """List the trials of a schedule as disjoint ranges, in order, each with its part."""
        return self._spans_by_key().get((cell, schedule), [])

    def pieces(
        self, cell: Cell, schedule: str, first: int, end: int
    ) -> list[tuple[int, int, PartFile | None]]:
        """Cut the trials [first, end) into ranges, each with the part that has it, or None."""
        return _pieces(self.spans(cell, schedule), first, end)

    def by_range(
        self,
        cell: Cell,
        schedules: Sequence[str],
        first: int,
        end: int,
        path: Path | None = None,
    ) -> dict[tuple[int, int], list[str]]:
        """Return the ranges of [first, end) that the part at ``path`` has, with their schedules.

        Without a path these are the ranges that no part has.
        """
        found: dict[tuple[int, int], list[str]] = {}
        for name in schedules:
            for low, high, part in self.pieces(cell, name, first, end):
                if (part and part.path) == path:
                    found.setdefault((low, high), []).append(name)
        return found

    def missing(self, cell: Cell, schedule: str, trials: int) -> list[tuple[int, int]]:
        """List the ranges [first, end) of 0 .. trials - 1 that no part covers."""
        return [
            (first, end)
            for first, end, part in self.pieces(cell, schedule, 0, trials)
            if part is None
        ]

    def add(self, part: PartFile) -> None:
        """Register a part that is in the folder."""
        if self._parts is None:
            return
        new = repeated = 0
        for name in part.schedules:
            spans = self._spans.setdefault((part.cell, name), [])
            for first, end, holder in _pieces(spans, part.first, part.end):
                if holder is None:
                    insort(spans, (first, end, part), key=_start)
                    new += 1
                else:
                    repeated += 1
        if repeated:
            reason = (
                f"has {'' if new else 'only '}trials that another part has too; it is not damaged, "
                "but whoever reads the plain files sees them twice"
            )
            self._problems.append(PartProblem(part.path, reason, True, REPEATS, part))
        if new:
            self._parts.append(part)

    def _files(self) -> Iterator[Path]:
        try:
            with os.scandir(self.trials) as entries:
                names = sorted(entry.name for entry in entries)
        except FileNotFoundError:
            return
        except OSError as error:
            raise InputError(f"{self.trials}: cannot be read ({error.strerror})") from None
        for name in names:
            if name.endswith(".parquet") and not name.startswith("."):
                yield self.trials / name

    def _scan(self) -> list[tuple[Path, Footer | PartProblem, str]]:
        """Read every file among the parts once, with its footer if it is a sound part."""
        if self._scanned is None:
            self._scanned, self._verified, self._rows, self._held_bytes = [], {}, {}, 0
            paths = list(self._files())
            with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
                for path, (found, whole) in zip(paths, pool.map(read_footer, paths), strict=True):
                    self._scanned.append((path, found, "" if whole is None else whole.content))
                    if whole is not None and self._has_room(whole.size):
                        self._verified[path] = whole
        return self._scanned

    def _has_room(self, size: int) -> bool:
        """Reserve memory for a part, if there is some left."""
        if self._held_bytes + size > _MOST_HELD:
            return False
        self._held_bytes += size
        return True

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
        Small parts are joined. At any time no more than a batch of `_BATCH_ROWS` rows and one part
        of each schedule are in memory.
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
        """Yield a batch for each range of trials that stands in the same parts."""
        spans = {name: self.spans(cell, name) for name in schedules}
        edges = sorted(
            {edge for held in spans.values() for first, end, _ in held for edge in (first, end)}
        )
        at = dict.fromkeys(schedules, 0)
        open_parts: dict[Path, dict[str, dict[str, Any]]] = {}
        for low, high in pairwise(edges):
            if until is not None and low >= until:
                return
            holders: dict[str, PartFile] = {}
            for name, held in spans.items():
                while at[name] < len(held) and held[at[name]][1] <= low:
                    at[name] += 1
                if at[name] < len(held) and held[at[name]][0] <= low:
                    holders[name] = held[at[name]][2]
            if not holders:
                continue
            used = {part.path: part for part in holders.values()}
            open_parts = {
                path: open_parts.get(path) or self._columns(part, schedules, columns)
                for path, part in used.items()
            }
            end = high if until is None else min(high, until)
            yield {
                name: {
                    column: values[low - part.first : end - part.first]
                    for column, values in open_parts[part.path][name].items()
                }
                for name, part in holders.items()
            }

    def _columns(
        self, part: PartFile, schedules: Sequence[str], columns: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        """Return columns of a part, by schedule; from memory, if they are there."""
        asked = set(schedules)
        wanted = [name for name in part.schedules if name in asked]
        rows = self._rows.get(part.path)
        if rows is not None and {*columns} <= {*rows.column_names}:
            found = by_schedule(rows.select(columns), part.schedules)
            return {name: found[name] for name in wanted}
        rows = read_rows(part, wanted, columns)
        if len(wanted) == len(part.schedules):
            self._hold(part, rows)
        return by_schedule(rows, wanted)

    def _hold(self, part: PartFile, rows: Any) -> None:
        if part.path not in self._rows and self._has_room(rows.nbytes):
            self._rows[part.path] = rows

    def write_part(
        self,
        cell: Cell,
        schedules: tuple[str, ...],
        first: int,
        count: int,
        table: Any,
        spec: Spec,
    ) -> PartFile:
        """Add the rows in ``table`` (of pyarrow, schedule by schedule) as a part.

        It has the version and the instance of the record, if the folder has one already.
        """
        record = self._record
        known = {} if record is None else record.instances
        about = Footer(
            rows=ROWS if record is None else record.rows,
            id=cell.id,
            cell=cell,
            first=first,
            count=count,
            schedules=schedules,
            spec=spec,
            spec_hash=spec.hash,
            versions=manifest.versions(),
            instances={name: text for name, text in known.items() if name == cell.instance},
        )
        path = self.free_path(about)
        content = checksum.write(path, table, manifest.encoded(about), count, self.check_lock)
        part = PartFile(path, cell, first, count, schedules, content)
        self.add(part)
        self._hold(part, table.select(BATCH_COLUMNS))
        return part

    def free_path(self, about: Footer | PartFile) -> Path:
        """Return a path for a part that no file has, even if somebody renamed a file."""
        stem = part_stem(about)
        return _free(self.trials / f"{stem}.parquet", lambda n: f"{stem}-{n}.parquet")

    def put_aside(self, problems: Sequence[PartProblem]) -> None:
        """Rename files so that readers no longer find them.

        No trial is lost. If a part overlaps with others, the trials that only this part is counted
        for are first written as new parts.
        """
        for problem in problems:
            if problem.part is not None:
                self._write_rest(problem.part)
        for problem in problems:
            path, name = problem.path, f"{problem.path.name}{problem.suffix}"
            try:
                path.rename(_free(path.with_name(name), f"{name}{{}}".format))
            except OSError as error:
                raise InputError(f"{path}: cannot be put aside ({error.strerror})") from None
        if problems:
            self._parts, self._problems, self._spans = None, [], {}

    def _write_rest(self, part: PartFile) -> None:
        """Write the trials for which this part is counted as new parts, without the others."""
        rest = self.by_range(part.cell, part.schedules, part.first, part.end, part.path)
        spec = self.record().spec
        for (first, end), names in rest.items():
            table = rows_of(part, names, first, end)
            self.write_part(part.cell, tuple(names), first, end - first, table, spec)

    # Writing

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


def _joined(batches: Sequence[Batch]) -> Batch:
    """Join batches of the same schedules."""
    if len(batches) == 1:
        return batches[0]
    return {
        name: {column: np.concatenate([one[name][column] for one in batches]) for column in columns}
        for name, columns in batches[0].items()
    }


def _preference(scanned: tuple[Path, Footer | PartProblem, str]) -> tuple[bool, int, Path]:
    """Sort key for overlapping parts: files with their original name first, then larger ones."""
    path, found, _ = scanned
    if isinstance(found, PartProblem):
        return True, 0, path
    return path.stem != part_stem(found), -found.count * len(found.schedules), path


def _free(path: Path, numbered: Any) -> Path:
    number = 2
    while os.path.lexists(path):
        path = path.with_name(numbered(number))
        number += 1
    return path


def _of_another_sweep(part: PartFile) -> PartProblem:
    cell = part.cell
    return PartProblem(
        part.path,
        f"rows of another sweep ({cell}, seed {cell.seed}, engine "
        f"{cell.engine}, max_steps {cell.max_steps}); move the file away",
        redo=not part.path.name.startswith(cell.id),
        kind=FOREIGN,
    )


def _of_another_version(part: PartFile, rows: int) -> PartProblem:
    reason = f"version {rows} of the rows, sweep.json has another; move the file away"
    return PartProblem(part.path, reason, redo=False, kind=FOREIGN)


def _pieces(spans: list[Span], first: int, end: int) -> list[tuple[int, int, PartFile | None]]:
    pieces: list[tuple[int, int, PartFile | None]] = []
    at = first
    for position in range(max(0, bisect_right(spans, first, key=_start) - 1), len(spans)):
        low, high, part = spans[position]
        if low >= end:
            break
        if low > at:
            pieces.append((at, low, None))
            at = low
        if high > at:
            pieces.append((at, min(high, end), part))
            at = min(high, end)
    if at < end:
        pieces.append((at, end, None))
    return pieces


def _start(span: Span) -> int:
    return span[0]
