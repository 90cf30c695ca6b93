"""Records of a sweep's folder: sweep.json, and the index of every part.

Both are JSON, and msgspec checks their types when it reads them. A value of a wrong type, a missing
key or a newer format is refused in one line. sweep.json has the spec. The index of a part has its
cells, and their instances if no name brings them back, so that a part can be read alone. A lost
sweep.json is written anew by the next sweep that asks for these cells.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from fastfed.errors import InputError, UnknownNameError
from fastfed.files import read_regular, replacing
from fastfed.model.cell import Cell
from fastfed.model.choices import DEFAULTS
from fastfed.model.schedules import Schedule
from fastfed.model.setting import Setting
from fastfed.model.spec import Spec, written_choices
from fastfed.storage.checked_parquet import Damaged
from fastfed.validation import MOST_FILE
from fastfed.version import OLDEST_ROWS, ROWS, __version__

FORMAT = 3
"""Changes when files of a folder are laid out otherwise than before."""
OLDEST_FORMAT = 2
"""The oldest format that is still read."""

ONE_FOR_ALL = ("seed", "engine", "max_steps")
"""Fields that all rows of a folder have in common."""


class Packed(Struct, frozen=True):
    """Cells as columns, which take a tenth of the room.

    A column is one value if all cells have the same, a list of different values and one of places
    in it if many cells share them, else a list. A column of defaults is left out.
    """

    count: Annotated[int, Meta(ge=0, le=2**32)]
    columns: dict[str, Any]

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> Packed:
        """Pack cells."""
        columns: dict[str, Any] = {}
        for name, field in Cell.__dataclass_fields__.items():
            values = [getattr(cell, name) for cell in cells]
            places = {value: place for place, value in enumerate(dict.fromkeys(values))}
            if len(places) == 1:
                if values[0] != field.default:
                    columns[name] = values[0]
            elif 2 * len(places) > len(values):
                columns[name] = values
            else:
                columns[name] = {"of": [*places], "at": [places[value] for value in values]}
        return cls(len(cells), columns)

    def cells(self) -> list[Cell]:
        """Unpack the cells; raise an InputError if columns do not fit."""
        columns = {name: self._column(name, given) for name, given in self.columns.items()}
        if unknown := sorted({*columns} - {*Cell.__dataclass_fields__}):
            raise InputError(f"cells with an unknown column {unknown[0]!r}")
        for field in fields(Cell):  # msgspec 0.18 cannot set those of a frozen class
            if field.default is not MISSING:
                columns.setdefault(field.name, [field.default] * self.count)
        rows = zip(*columns.values(), strict=True)
        return msgspec.convert([dict(zip(columns, row, strict=True)) for row in rows], list[Cell])

    def _column(self, name: str, given: Any) -> list[Any]:
        if isinstance(given, dict):
            of, at = given.get("of"), given.get("at")
            if not (isinstance(of, list) and isinstance(at, list)) or not all(
                isinstance(one, int) and 0 <= one < len(of) for one in at
            ):
                raise InputError(f"column {name} of cells is not as it should be")
            given = [of[one] for one in at]
        values = given if isinstance(given, list) else [given] * self.count
        if len(values) != self.count:
            raise InputError(f"column {name} has {len(values)} values for {self.count} cells")
        return values


class _Record(Struct, frozen=True, kw_only=True):
    """The keys of sweep.json besides the cells."""

    format: int = FORMAT
    rows: int = ROWS
    spec: Spec
    spec_hash: str
    seed: Annotated[int, Meta(ge=0)]
    engine: str
    max_steps: Annotated[int, Meta(ge=1)] | None
    versions: dict[str, str]
    instances: dict[str, str]
    own_parts: dict[str, str] = {}
    """Fingerprints of the families that are not built in, as in {"schedule mine": ...}."""
    last_spec: Spec | None = None
    """The latest request, where ``spec``, which joins all of them, asks for more."""

    @property
    def asked_last(self) -> Spec:
        """The spec of the latest sweep into the folder."""
        return self.spec if self.last_spec is None else self.last_spec


class Record(_Record, frozen=True, kw_only=True):
    """The content of sweep.json."""

    cells: Annotated[tuple[Cell, ...], Meta(min_length=1)]


class _Record3(_Record, frozen=True, kw_only=True):
    cells: Packed


class _Record2(_Record, frozen=True, kw_only=True):
    cells: Annotated[dict[str, Cell], Meta(min_length=1)]


_Count = Annotated[int, Meta(ge=1, le=2**32)]
_First = Annotated[int, Meta(ge=0, le=2**32)]
_Names = Annotated[tuple[str, ...], Meta(min_length=1)]


@dataclass(frozen=True)
class Piece:
    """Trials first .. first + count - 1 of a cell under some schedules, as a part holds them."""

    cell: Cell
    schedules: tuple[str, ...]
    first: int
    count: int

    @property
    def end(self) -> int:
        return self.first + self.count

    @property
    def rows(self) -> int:
        """The number of its rows."""
        return self.count * len(self.schedules)


class Index(Struct, frozen=True, kw_only=True):
    """The index of a part: all that is needed to read it without sweep.json."""

    format: int = FORMAT
    rows: int = ROWS
    versions: dict[str, str]
    instances: dict[str, str] = {}
    own_parts: dict[str, str] = {}
    cells: Packed
    schedules: list[_Names]
    pieces: Annotated[
        list[tuple[Annotated[int, Meta(ge=0)], Annotated[int, Meta(ge=0)], _First, _Count]],
        Meta(min_length=1),
    ]
    """Places of the cell and of the schedules, the first trial and the number of trials."""

    @classmethod
    def of(cls, pieces: Sequence[Piece], **more: Any) -> Index:
        """Make the index of some pieces, in the order of their rows."""
        cells = {cell: place for place, cell in enumerate(dict.fromkeys(p.cell for p in pieces))}
        names = {one: at for at, one in enumerate(dict.fromkeys(p.schedules for p in pieces))}
        return cls(
            versions=versions(),
            cells=Packed.of([*cells]),
            schedules=[*names],
            pieces=[(cells[p.cell], names[p.schedules], p.first, p.count) for p in pieces],
            **more,
        )

    def unpacked(self) -> list[Piece]:
        """List the pieces."""
        cells = self.cells.cells()
        names = [_known_schedules(one) for one in self.schedules]
        if any(a >= len(cells) or b >= len(names) for a, b, *_ in self.pieces):
            raise InputError("pieces of cells or schedules that it does not have")
        return [Piece(cells[a], names[b], first, count) for a, b, first, count in self.pieces]


class _Footer2(Struct, frozen=True, kw_only=True):
    """The index of a part of format 2, which has one cell."""

    format: int
    rows: int
    id: str
    cell: Cell
    first: _First
    count: _Count
    schedules: _Names
    versions: dict[str, str]
    instances: dict[str, str]
    own_parts: dict[str, str] = {}


_CHECKSUM = re.compile(rb'"checksum": "([0-9a-f]{64})"\n}\n\Z')


class _Head(Struct):
    """The keys that records and footers of every format have: the format, the version of rows."""

    format: int
    rows: int


class Unfit(InputError):
    """A record or an index that this fastfed cannot use, though it is not damaged."""


def read_index(content: bytes) -> tuple[Index, list[Piece]]:
    """Read the index of a part and check all of it: `Damaged` or `Unfit` if it cannot be used."""
    with _reading("a part's index"):
        if _checked_head(content) == FORMAT:
            index = msgspec.json.decode(content, type=Index)
            return index, index.unpacked()
        old = msgspec.json.decode(content, type=_Footer2)
        piece = Piece(old.cell, _known_schedules(old.schedules), old.first, old.count)
        more = {name: getattr(old, name) for name in ("format", "rows", "instances", "own_parts")}
        return Index.of([piece], **more), [piece]


def read_record(path: Path) -> Record:
    """Read sweep.json: OSError if it cannot be read, `Damaged` or `Unfit` if it cannot be used."""
    content = read_regular(path, MOST_FILE)
    with _reading("a sweep's record"):
        record: _Record3 | _Record2
        if _checked_head(content) == FORMAT:
            record = msgspec.json.decode(content, type=_Record3)
            cells = record.cells.cells()
        else:
            record = msgspec.json.decode(content, type=_Record2)
            cells = [*record.cells.values()]
        Spec.of({**record.spec.to_dict(), "instance": None, "cost": record.spec.cost or None})
        if not cells:
            raise InputError("no cells")
    found = _CHECKSUM.search(content)
    if found is None:  # an early fastfed wrote only that of the spec
        sound = record.format == OLDEST_FORMAT and record.spec.hash == record.spec_hash
    else:
        sound = _checksum(content[: found.start(1)], content[found.end(1) :]) == found[1]
    if not sound:
        raise Damaged("its content does not fit its checksum: damaged, or edited by hand")
    keys = {name: getattr(record, name) for name in _Record.__struct_fields__}
    return Record(**keys, cells=tuple(cells))


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Say of JSON in one line what is wrong with it."""
    try:
        yield
    except Unfit:
        raise
    except UnknownNameError as error:
        raise Unfit(
            f"{error}; a class of your own must be defined, or its module imported, before the "
            "folder is opened"
        ) from None
    except (msgspec.ValidationError, InputError, TypeError, OverflowError) as error:
        raise Damaged(f"not {what} ({error})") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Damaged(f"not valid JSON ({error})") from None


def _checked_head(content: bytes) -> int:
    """Return the format of a record or an index; refuse one that cannot be read."""
    head = msgspec.json.decode(content, type=_Head)
    if head.format > FORMAT or head.rows > ROWS:
        raise Unfit(
            f"written by a newer fastfed (format {head.format}, rows of version "
            f"{head.rows}; this one has {FORMAT} and {ROWS}); update fastfed"
        )
    if head.format < OLDEST_FORMAT or head.rows < OLDEST_ROWS:
        raise Unfit(
            f"written by an older fastfed (format {head.format}, version of the rows "
            f"{head.rows}; this one reads {OLDEST_FORMAT} and {OLDEST_ROWS}); use that version, or "
            "run the sweep again into another folder"
        )
    return head.format


@lru_cache(maxsize=1024)
def _known_schedules(names: tuple[str, ...]) -> tuple[str, ...]:
    if tuple(str(one) for one in Schedule.parse_all(names)) != names:
        raise InputError("schedules that are not written in their canonical form")
    return names


def write_record(path: Path, record: Record, before: Any = None) -> None:
    """Write sweep.json, with all cells in one line; ``before``: as of `fastfed.files.replacing`."""
    keys = {name: getattr(record, name) for name in _Record.__struct_fields__}
    lines = {name: msgspec.json.format(msgspec.json.encode(one)) for name, one in keys.items()}
    lines["cells"] = msgspec.json.encode(Packed.of(record.cells))
    text = b",\n".join(b'  "%s": %s' % (name.encode(), one) for name, one in lines.items())
    content = with_checksum(b"{\n" + text + b"\n}\n")
    if len(content) > MOST_FILE:
        raise InputError(
            f"{path}: {len(content):,} bytes, more than {MOST_FILE:,}; sweep fewer or smaller "
            "instances into one folder"
        )
    with replacing(path, before) as file:
        file.write(content)


def with_checksum(content: bytes) -> bytes:
    """Add the checksum of all other bytes to a JSON object, as its last key."""
    head, tail = content.rstrip()[:-1].rstrip() + b',\n  "checksum": "', b'"\n}\n'
    return head + _checksum(head, tail) + tail


def _checksum(head: bytes, tail: bytes) -> bytes:
    return hashlib.sha256(head + tail).hexdigest().encode()


def changed_part(one: dict[str, str], other: dict[str, str]) -> str | None:
    """Return the first name that stands for other code in two records."""
    return next((name for name in one if other.get(name, one[name]) != one[name]), None)


def record_of(spec: Spec, settings: Sequence[Setting], schedules: Sequence[Schedule]) -> Record:
    """Make the record of a sweep.

    It holds the instances that no name brings back, as TOML, and the fingerprints of all families
    that are not built in.
    """
    from fastfed.model.instance_files.load import brought_back_by_name
    from fastfed.model.instance_files.toml_files import to_toml

    distinct = {one.instance.name: one.instance for one in settings}
    parts = [*schedules, *(getattr(one, kind) for one in settings for kind in DEFAULTS)]
    families = {f"{one.kind} {one.family}": one for one in parts if hasattr(one, "family")}
    return Record(
        spec=spec,
        spec_hash=spec.hash,
        versions=versions(),
        cells=tuple(dict.fromkeys(one.key for one in settings)),
        instances={
            name: to_toml(one) for name, one in distinct.items() if not brought_back_by_name(one)
        },
        own_parts={
            name: code for name, one in families.items() if (code := one.code_fingerprint())
        },
        **{name: getattr(spec, name) for name in ONE_FOR_ALL},
    )


def joined(before: Record, new: Record) -> Record:
    """Join two records: of all that was ever asked for, and every cell that was seen."""
    spec, asked = _united(before.spec, new.spec), new.asked_last
    return msgspec.structs.replace(
        new,
        format=FORMAT,
        spec=spec,
        spec_hash=spec.hash,
        cells=tuple(dict.fromkeys([*before.cells, *new.cells])),
        instances={**before.instances, **new.instances},
        own_parts={**before.own_parts, **new.own_parts},
        last_spec=None if spec == asked else asked,
    )


def _united(one: Spec, other: Spec) -> Spec:
    """Make the spec that asks for what two specs of the same folder ask for."""
    if one == other:
        return one
    targets = (one.target_rse, other.target_rse)
    lists = {
        name: list(dict.fromkeys([*getattr(one, name), *getattr(other, name)]))
        for name in ("instance", "delta", "cost", "bit_cost", "schedule", "sigma")
    }
    for name in DEFAULTS:
        both = [*one.choices(name), *other.choices(name)]
        lists[name] = written_choices(name, dict.fromkeys(both))
    return msgspec.structs.replace(
        one,
        trials=max(one.trials, other.trials),
        target_rse=None if None in targets else min(targets),  # type: ignore[type-var]
        until_separated=one.until_separated and other.until_separated,
        price=other.price or one.price,
        **lists,
    )


@cache
def versions() -> dict[str, str]:
    """Return the versions of everything that computes rows."""
    from importlib.metadata import version

    libraries = ("numpy", "numba", "polars", "pyarrow", "scipy")
    return {
        "fastfed": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
    }
