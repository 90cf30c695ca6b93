"""A sweep's folder: parts of trial rows that are complete or absent, and what they cover.

    results/sweep.json                      the spec, its hash, seed, versions, what is covered
    results/trials/<cell>-<part>.parquet    trial rows, one row group per schedule
    results/summary.parquet

A part names its cell, its first trial and how many; its footer says the same, and which schedules
it holds. Every file is written under a temporary name, synced, then renamed.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from fastfed.engine import rows
from fastfed.errors import InputError
from fastfed.version import __version__

FORMAT = 1
ROWS = rows.VERSION
"""The version of the rows: see `fastfed.engine.rows`."""
_KEY = b"fastfed"


@cache
def versions() -> dict[str, str]:
    """What computed the rows."""
    from importlib.metadata import version

    libraries = ("numpy", "numba", "polars", "pyarrow", "scipy")
    return {"fastfed": __version__, "python": platform.python_version(),
            **{name: version(name) for name in libraries}}


@dataclass(frozen=True)
class Cell:
    """One point of the grid: all that the rows of its trials depend on."""

    instance: str
    digest: str
    delta: float
    sigma: float
    seed: int
    engine: str
    max_steps: int | None

    @property
    def id(self) -> str:
        """A readable name that no other cell shares."""
        strong = hashlib.sha256(json.dumps([*vars(self).values(), ROWS]).encode()).hexdigest()
        slug = re.sub(r"[^A-Za-z0-9.]+", "_", self.instance)[:40].strip("_")
        return f"{slug}-d{self.delta:g}-s{self.sigma:g}-{strong[:10]}"

    def __str__(self) -> str:
        return f"{self.instance}, delta {self.delta:g}, sigma {self.sigma:g}"


@dataclass(frozen=True)
class Part:
    """A file of trial rows: trials first .. first + count - 1 of a cell under some schedules."""

    path: Path
    cell: Cell
    first: int
    count: int
    schedules: tuple[str, ...]


@dataclass(frozen=True)
class Batch:
    """Trials first .. end - 1: the asked columns of every schedule that has them all."""

    first: int
    end: int
    columns: dict[str, dict[str, Any]]  # by schedule, then by column: a NumPy array


class Store:
    """The folder, opened for one sweep (`open`) or for reading (`Store(path)`)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trials = folder / "trials"
        self.unreadable: list[Path] = []
        self._parts: list[Part] | None = None
        self._by_cell: dict[Cell, list[Part]] = {}

    @property
    def manifest_path(self) -> Path:
        return self.folder / "sweep.json"

    @property
    def summary_path(self) -> Path:
        return self.folder / "summary.parquet"

    def manifest(self) -> dict[str, Any]:
        """sweep.json, or a clear refusal."""
        try:
            content = json.loads(self.manifest_path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            what = "no such folder" if not self.folder.exists() else "no sweep.json in it"
            raise InputError(f"{self.folder}: not a sweep's folder ({what}); "
                             "`fastfed sweep --out DIR` makes one") from None
        except OSError as error:
            raise InputError(f"{self.manifest_path}: cannot be read ({error.strerror})") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.manifest_path}: not valid JSON ({error})") from None
        if not isinstance(content, dict) or not isinstance(content.get("spec"), dict):
            raise InputError(f"{self.manifest_path}: not a sweep's record (no 'spec' in it)")
        return content

    def recorded_cells(self) -> list[Cell]:
        """The cells that sweep.json lists."""
        try:
            return [Cell(**{name: cell[name] for name in Cell.__dataclass_fields__})
                    for cell in self.manifest().get("cells", [])]
        except (KeyError, TypeError):
            raise InputError(f"{self.manifest_path}: its list of cells is damaged; remove the file "
                             "and the folder's trials/, or give another --out") from None

    def parts(self) -> list[Part]:
        """Every complete part; files that are none are listed in `unreadable`."""
        if self._parts is None:
            self._parts = []
            self.unreadable = []
            for path in sorted(self.trials.glob("*.parquet")):
                part = _read_part(path)
                if part is None or not path.name.startswith(part.cell.id):
                    self.unreadable.append(path)
                else:
                    self.add(part)
        return self._parts

    def parts_of(self, cell: Cell, schedule: str) -> list[Part]:
        """The parts that hold a schedule of a cell, in order of trial."""
        self.parts()
        held = [part for part in self._by_cell.get(cell, ()) if schedule in part.schedules]
        return sorted(held, key=lambda part: part.first)

    def missing(self, cell: Cell, schedule: str, trials: int) -> list[tuple[int, int]]:
        """The ranges [first, end) of 0 .. trials - 1 that no part covers."""
        gaps, at = [], 0
        for part in self.parts_of(cell, schedule):
            first, end = part.first, part.first + part.count
            if first > at:
                gaps.append((at, min(first, trials)))
            at = max(at, end)
            if at >= trials:
                break
        if at < trials:
            gaps.append((at, trials))
        return [(first, end) for first, end in gaps if first < end]

    def write_part(self, cell: Cell, schedules: tuple[str, ...], first: int, count: int,
                   table: bytes, spec: dict[str, Any]) -> Part:
        """Add the rows in ``table`` (an Arrow stream) as a part."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        about = {"format": FORMAT, "rows": ROWS, "cell": vars(cell), "first": first,
                 "count": count, "schedules": schedules, "seed": cell.seed, "spec": spec,
                 "spec_hash": spec_hash(spec), "versions": versions()}
        rows = pa.ipc.open_stream(table).read_all()
        rows = rows.replace_schema_metadata({_KEY: json.dumps(about).encode()})
        mark = hashlib.sha256("\n".join(schedules).encode()).hexdigest()[:6]
        path = self.trials / f"{cell.id}-{first:010d}-{count}-{mark}.parquet"
        with replacing(path) as file:
            pq.write_table(rows, file, compression="zstd", row_group_size=count)
        part = Part(path, cell, first, count, schedules)
        self.add(part)
        return part

    def add(self, part: Part) -> None:
        """Know of a part that has come to stand in the folder."""
        if self._parts is not None:
            self._parts.append(part)
            self._by_cell.setdefault(part.cell, []).append(part)

    def samples(self, cell: Cell, schedule: str, until: int | None = None) -> dict[str, Any]:
        """pulls, uplinks, correct, truncated and trial of one schedule, in order of trial.

        Reads only that schedule's row groups: a cell of any size fits in memory."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = ["trial", "pulls", "uplinks", "correct", "truncated"]
        tables = []
        for part in self.parts_of(cell, schedule):
            try:
                with pq.ParquetFile(part.path) as file:
                    tables.append(file.read_row_group(part.schedules.index(schedule), names))
            except (OSError, pa.ArrowException):
                raise InputError(f"{part.path}: damaged; remove it, and the same sweep does its "
                                 "trials again") from None
        if not tables:
            return {name: np.zeros(0) for name in names}
        table = pa.concat_tables(tables)
        columns = {name: table[name].to_numpy() for name in names}
        trial, keep = np.unique(columns["trial"], return_index=True)
        if until is not None:
            keep = keep[trial < until]
        return {name: column[keep] for name, column in columns.items()}

    def batches(self, cell: Cell, schedules: Sequence[str], columns: Sequence[str] = (),
                until: int | None = None) -> Iterator[Batch]:
        """The trials of several schedules, batch by batch, by schedule and column."""
        yield Batch(0, 0, {name: self.samples(cell, name, until) for name in schedules})

    def write_manifest(self, content: dict[str, Any]) -> None:
        with replacing(self.manifest_path) as file:
            file.write(json.dumps(content, indent=2).encode() + b"\n")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Make the folder and hold it: a second process is told so and stops."""
        make_folder(self.trials)
        path = self.folder / ".lock"
        try:
            file = path.open("w")
        except OSError as error:
            raise InputError(f"{self.folder}: cannot be written ({error.strerror})") from None
        with file:
            if not _locked(file):
                raise InputError(f"{self.folder}: another sweep is writing here; wait for it, "
                                 "or give this one its own --out")
            for left in self.folder.glob("**/.*.partial"):  # of a run that was killed
                left.unlink(missing_ok=True)
            yield


def _locked(file: IO[str]) -> bool:
    """An advisory lock that dies with its process."""
    try:
        import fcntl
    except ImportError:  # Windows: the folder is not guarded
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read_part(path: Path) -> Part | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(path)
        content = json.loads((about.metadata or {})[_KEY])
        part = Part(path, Cell(**content["cell"]), content["first"], content["count"],
                    tuple(content["schedules"]))
        whole = (content["format"] == FORMAT and content["rows"] == ROWS
                 and about.num_rows == part.count * len(part.schedules)
                 and about.num_row_groups == len(part.schedules))
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        return None
    return part if whole else None


def spec_hash(spec: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"{folder}: there is a file of that name; choose another folder") from None
    except NotADirectoryError:
        raise InputError(f"{folder}: a file stands where a folder should be") from None
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror})") from None


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears whole under ``path``, or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
        raise
