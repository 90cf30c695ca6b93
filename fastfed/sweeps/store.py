"""A sweep's folder: parts of trial rows that are complete or absent, and what they cover.

    results/sweep.json                      the spec, its hash, seed, versions, cells
    results/trials/<cell>-<part>.parquet    trial rows, one row group per schedule
    results/summary.parquet

What a part holds is decided by its content alone: its footer says which trials of which cell and
schedules it has, and its seal that no bit of it has changed. Its name is for people.
"""

from __future__ import annotations

import hashlib
import os
import re
from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from fastfed.errors import InputError, printable
from fastfed.files import PARTIAL, make_folder, read_regular
from fastfed.problem.schedule import parse
from fastfed.statistics.moments import COLUMNS, Batch
from fastfed.sweeps import manifest, sealed
from fastfed.sweeps.grid import Cell
from fastfed.sweeps.lock import Lock
from fastfed.sweeps.manifest import Footer, Record, SpecRecord, Unfit
from fastfed.sweeps.sealed import Damaged


@dataclass(frozen=True)
class Part:
    """A file of trial rows: trials first .. first + count - 1 of a cell under some schedules."""

    path: Path
    cell: Cell
    first: int
    count: int
    schedules: tuple[str, ...]
    content: str  # the hash of the file's content

    @property
    def end(self) -> int:
        return self.first + self.count


DAMAGED, REPEATS, FOREIGN, UNREADABLE = "damaged", "repeats", "foreign", "unreadable"
_ASIDE = {DAMAGED: ".damaged", REPEATS: ".repeated", FOREIGN: ".foreign"}


@dataclass(frozen=True)
class Problem:
    """A file among the parts whose rows are not counted, or that repeats others, and why."""

    path: Path
    reason: str
    redo: bool  # whether a sweep may put it aside
    kind: str = DAMAGED
    part: Part | None = None  # what a file that repeats others holds

    @property
    def suffix(self) -> str:
        """What is added to the file's name when it is put aside."""
        return _ASIDE.get(self.kind, ".damaged")

    @property
    def outcome(self) -> str:
        """What becomes of the file in a sweep or a merge."""
        if not self.redo:
            return "left alone"
        if self.kind == REPEATS:
            return f"put aside as {self.suffix}; no trial is lost"
        return f"put aside as {self.suffix}; its trials are missing until they are done again"

    def __str__(self) -> str:
        return printable(f"{self.path}: {self.reason}")


Span = tuple[int, int, Part]
"""Trials [first, end) of a schedule, and the part that has them."""


class Store:
    """The folder of a sweep, for reading and, inside `lock`, for writing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trials = folder / "trials"
        self._lock: Lock | None = None
        self._record: Record | None = None
        self._scanned: list[tuple[Path, Footer | Problem, str]] | None = None
        self._parts: list[Part] | None = None
        self._problems: list[Problem] = []
        self._spans: dict[tuple[Cell, str], list[Span]] = {}

    @staticmethod
    def of(folder: Store | Path | str) -> Store:
        """A store as it is, or the one of a folder."""
        return folder if isinstance(folder, Store) else Store(Path(folder))

    @property
    def manifest_path(self) -> Path:
        return self.folder / "sweep.json"

    @property
    def summary_path(self) -> Path:
        return self.folder / "summary.parquet"

    # What the folder says

    def record(self) -> Record:
        """sweep.json, or what the parts say if it is gone, or a clear refusal."""
        if self._record is None:
            try:
                self._record = manifest.decoded(read_regular(self.manifest_path), Record)
            except FileNotFoundError:
                self._record = self._rebuilt()
            except OSError as error:
                raise InputError(
                    f"{self.manifest_path}: cannot be read ({error.strerror})"
                ) from None
            except Unfit as error:
                fix = (
                    ""
                    if error.other
                    else ("; move it away, and it is made again from what the parts say")
                )
                raise InputError(f"{self.manifest_path}: {error}{fix}") from None
        return self._record

    def record_if_any(self) -> Record | None:
        """As `record`; None if the folder is not a sweep's yet."""
        known = self.manifest_path.exists() or any(
            isinstance(found, Footer) for _, found, _ in self._scan()
        )
        return self.record() if known else None

    def _rebuilt(self) -> Record:
        footers = [found for _, found, _ in self._scan() if isinstance(found, Footer)]
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

    def parts(self) -> list[Part]:
        """Every part of this sweep that is whole; `problems` lists the files that are none."""
        if self._parts is None:
            gone = not self.manifest_path.exists()
            if gone and any(isinstance(found, Footer) for _, found, _ in self._scan()):
                self.record()  # made from the footers, while they are at hand
            cells = None if gone else self.record().cells
            self._parts, self._problems = [], []
            for path, found, content in sorted(self._scan(), key=_preference):
                if isinstance(found, Problem):
                    self._problems.append(found)
                    continue
                part = Part(path, found.cell, found.first, found.count, found.schedules, content)
                if cells is not None and part.cell.id not in cells:
                    self._problems.append(_of_another_sweep(part))
                else:
                    self.add(part)
            self._parts.sort(key=lambda part: part.path)
            self._problems.sort(key=lambda problem: problem.path)
            self._scanned = None  # footers have the whole spec: keep them no longer than needed
        return self._parts

    def problems(self) -> list[Problem]:
        """The files among the parts that are damaged, unreadable or no part of this sweep."""
        self.parts()
        return self._problems

    def held(self) -> dict[Cell, list[str]]:
        """What the folder holds: the cells, in the order of the record, and their schedules."""
        found: dict[Cell, dict[str, None]] = {}
        for cell, name in self._spans_by_key():
            found.setdefault(cell, {})[name] = None
        place = {cell: number for number, cell in enumerate(self.record().cells.values())}
        return {
            cell: sorted(found[cell], key=lambda name: parse(name).sort_key)
            for cell in sorted(found, key=lambda cell: place.get(cell, len(place)))
        }

    def _spans_by_key(self) -> dict[tuple[Cell, str], list[Span]]:
        self.parts()
        return self._spans

    def spans(self, cell: Cell, schedule: str) -> list[Span]:
        """Which trials of a schedule are in which part: disjoint, in order of trial."""
        return self._spans_by_key().get((cell, schedule), [])

    def pieces(
        self, cell: Cell, schedule: str, first: int, end: int
    ) -> list[tuple[int, int, Part | None]]:
        """Trials [first, end) in pieces: which part has each, if any."""
        return _pieces(self.spans(cell, schedule), first, end)

    def missing(self, cell: Cell, schedule: str, trials: int) -> list[tuple[int, int]]:
        """The ranges [first, end) of 0 .. trials - 1 that no part covers."""
        return [
            (first, end)
            for first, end, part in self.pieces(cell, schedule, 0, trials)
            if part is None
        ]

    def add(self, part: Part) -> None:
        """Take account of a part that stands in the folder."""
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
            some = "" if new else "only "
            self._problems.append(
                Problem(
                    part.path,
                    f"has {some}trials that another part has too; it is not damaged, but "
                    "whoever reads the plain files sees them twice",
                    redo=True,
                    kind=REPEATS,
                    part=part,
                )
            )
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

    def _scan(self) -> list[tuple[Path, Footer | Problem, str]]:
        """Every file among the parts, read once, with its footer if it is a whole part."""
        if self._scanned is None:
            paths = list(self._files())
            with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
                self._scanned = [
                    (path, *found)
                    for path, found in zip(paths, pool.map(_footer, paths), strict=True)
                ]
        return self._scanned

    # Rows

    def batches(
        self,
        cell: Cell,
        schedules: Sequence[str],
        columns: Sequence[str] = COLUMNS,
        until: int | None = None,
    ) -> Iterator[Batch]:
        """The trials of a cell, batch by batch in order, aligned over the schedules.

        A batch has the schedules that hold all its trials; trials that none holds are left out.
        At any time no more than one part of each schedule is in memory.
        """
        spans = {name: self.spans(cell, name) for name in schedules}
        edges = sorted(
            {edge for held in spans.values() for first, end, _ in held for edge in (first, end)}
        )
        at = dict.fromkeys(schedules, 0)
        open_parts: dict[Path, dict[str, dict[str, Any]]] = {}
        for low, high in pairwise(edges):
            if until is not None and low >= until:
                return
            holders: dict[str, Part] = {}
            for name, held in spans.items():
                while at[name] < len(held) and held[at[name]][1] <= low:
                    at[name] += 1
                if at[name] < len(held) and held[at[name]][0] <= low:
                    holders[name] = held[at[name]][2]
            if not holders:
                continue
            used = {part.path: part for part in holders.values()}
            open_parts = {
                path: open_parts.get(path) or _columns(part, schedules, columns)
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

    def samples(self, cell: Cell, schedule: str, until: int | None = None) -> dict[str, Any]:
        """The columns of a batch of one schedule, for all its trials at once."""
        import numpy as np

        found = [batch[schedule] for batch in self.batches(cell, [schedule], until=until)]
        return {
            column: np.concatenate([one[column] for one in found]) if found else np.zeros(0)
            for column in COLUMNS
        }

    def write_part(
        self,
        cell: Cell,
        schedules: tuple[str, ...],
        first: int,
        count: int,
        table: Any,
        spec: SpecRecord,
        instances: dict[str, str] | None = None,
    ) -> Part:
        """Add the rows in ``table`` (of pyarrow, schedule by schedule) as a part."""
        known = {} if instances is None else instances
        about = Footer(
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
        content = sealed.write(path, table, manifest.encoded(about), count, self.check_lock)
        part = Part(path, cell, first, count, schedules, content)
        self.add(part)
        return part

    def free_path(self, about: Footer | Part) -> Path:
        """A name for a part that no file has yet, even if somebody renamed one to ours."""
        stem = _stem(about)
        return _free(self.trials / f"{stem}.parquet", lambda n: f"{stem}-{n}.parquet")

    def put_aside(self, problems: Sequence[Problem]) -> None:
        """Move files out of the way of readers. Nothing is lost: of a part that repeats others,
        the trials that are counted from it are first written as parts of their own."""
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

    def _write_rest(self, part: Part) -> None:
        """Write the trials that are counted from this part, in parts without those that are
        counted from others."""
        rest: dict[tuple[int, int], list[str]] = {}
        for name in part.schedules:
            for first, end, holder in self.pieces(part.cell, name, part.first, part.end):
                if holder is not None and holder.path == part.path:
                    rest.setdefault((first, end), []).append(name)
        record = self.record()
        for (first, end), names in rest.items():
            self.write_part(
                part.cell,
                tuple(names),
                first,
                end - first,
                rows_of(part, names, first, end),
                record.spec,
                record.instances,
            )

    # Writing

    @contextmanager
    def lock(self) -> Iterator[Store]:
        """Make the folder and hold it: a second process is told so and stops."""
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


def _stem(about: Footer | Part) -> str:
    """The name that a part is given, without its ending."""
    mark = hashlib.sha256("\n".join(about.schedules).encode()).hexdigest()[:6]
    return f"{about.cell.id}-{about.first:010d}-{about.count}-{mark}"


def _preference(scanned: tuple[Path, Footer | Problem, str]) -> tuple[bool, int, Path]:
    """Of parts that repeat each other, the trials are counted from those that have the name which
    they were given, and from the larger."""
    path, found, _ = scanned
    if isinstance(found, Problem):
        return True, 0, path
    return path.stem != _stem(found), -found.count * len(found.schedules), path


def _free(path: Path, numbered: Any) -> Path:
    number = 2
    while os.path.lexists(path):
        path = path.with_name(numbered(number))
        number += 1
    return path


def _footer(path: Path) -> tuple[Footer | Problem, str]:
    """What a file says it holds, once every bit of it is verified."""
    try:
        found = sealed.read(path)
        about = manifest.decoded(found.about, Footer)
        _validate_layout(about, found.file)
    except OSError as error:
        return Problem(path, f"cannot be read ({error.strerror})", redo=False, kind=UNREADABLE), ""
    except Unfit as error:
        return Problem(
            path, str(error), redo=not error.other, kind=FOREIGN if error.other else DAMAGED
        ), ""
    except Damaged as error:
        return Problem(path, str(error), redo=True), ""
    return about, found.content


def _validate_layout(about: Footer, file: Any) -> None:
    """One row group for each schedule, each with all the trials, in order."""
    groups = [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)]
    if groups != [about.count] * len(about.schedules):
        raise Damaged("damaged (other rows than its footer says)")
    _trials_in_order(_read_columns(file, range(len(groups)), ["trial"]), about)


def _trials_in_order(table: Any, about: Footer | Part) -> None:
    import numpy as np

    trial = table["trial"].to_numpy().reshape(-1, about.count)
    if (trial != np.arange(about.first, about.first + about.count)).any():
        raise Damaged("damaged (other trials than its footer says)")


def _columns(
    part: Part, schedules: Sequence[str], columns: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Columns of a part, by schedule; the file is verified again, in the bytes that are used."""
    wanted = [name for name in part.schedules if name in set(schedules)]
    table = read_rows(part, wanted, columns)
    values = {
        name: (table[name].fill_null(-1) if name == "bits" else table[name]).to_numpy()
        for name in columns
    }
    return {
        name: {
            column: array[place * part.count : (place + 1) * part.count]
            for column, array in values.items()
        }
        for place, name in enumerate(wanted)
    }


def read_rows(part: Part, schedules: Sequence[str], columns: Sequence[str] | None = None) -> Any:
    """The rows of some schedules of a part, as a pyarrow table, verified."""
    try:
        found = sealed.read(part.path)
        if found.content != part.content:
            raise Damaged("changed while it was in use")
        place = {name: number for number, name in enumerate(part.schedules)}
        return _read_columns(found.file, [place[name] for name in schedules], columns)
    except OSError as error:
        raise InputError(f"{part.path}: cannot be read ({error.strerror})") from None
    except Damaged as error:
        raise InputError(
            f"{part.path}: {error}; the same sweep, run again, does its trials again"
        ) from None


def rows_of(part: Part, schedules: Sequence[str], first: int, end: int) -> Any:
    """Trials first .. end - 1 of some schedules, as a pyarrow table without metadata."""
    import pyarrow as pa

    table = read_rows(part, schedules).replace_schema_metadata(None)
    return pa.concat_tables(
        [
            table.slice(place * part.count + first - part.first, end - first)
            for place in range(len(schedules))
        ]
    )


def _read_columns(file: Any, groups: Sequence[int] | range, columns: Sequence[str] | None) -> Any:
    import pyarrow as pa

    names = set(file.schema_arrow.names)
    if columns is not None and not names.issuperset(columns):
        raise Damaged("damaged (it lacks columns of trial rows)")
    try:
        return file.read_row_groups(list(groups), None if columns is None else list(columns))
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"damaged ({type(error).__name__})") from None


def _of_another_sweep(part: Part) -> Problem:
    cell = part.cell
    return Problem(
        part.path,
        f"rows of another sweep ({cell}, seed {cell.seed}, engine "
        f"{cell.engine}, max_steps {cell.max_steps}); move the file away",
        redo=not part.path.name.startswith(cell.id),
        kind=FOREIGN,
    )


def _pieces(spans: list[Span], first: int, end: int) -> list[tuple[int, int, Part | None]]:
    pieces: list[tuple[int, int, Part | None]] = []
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
