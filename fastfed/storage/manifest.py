"""Records of a sweep's folder: sweep.json, and the index of every part.

Both are JSON, and msgspec checks their types when it reads them. A value of a wrong type, a missing
key or a newer format is refused in one line. sweep.json has the spec. The index of a part has its
cells, and their instances if no name brings them back. So a lost sweep.json can be rebuilt from the
parts; costs and targets, of which no row depends, are then those of the next request.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from fastfed.errors import InputError, UnknownNameError
from fastfed.files import read_regular, replacing
from fastfed.model.cell import Cell
from fastfed.model.choices import DEFAULTS
from fastfed.model.schedules import Schedule
from fastfed.model.setting import Setting
from fastfed.model.spec import InlineInstance, Spec, written_choices
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
        for name in Cell.__dataclass_fields__:
            values = [getattr(cell, name) for cell in cells]
            places = {value: place for place, value in enumerate(dict.fromkeys(values))}
            if len(places) == 1:
                if values[0] != getattr(Cell, name, ...):
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
        rows = zip(*columns.values(), strict=True) if columns else iter(())
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


_KEYS = {*Record.__struct_fields__} - {"last_spec", "own_parts"}
_CHECKSUM = re.compile(rb'"checksum": "([0-9a-f]{64})"\n}\n\Z')


class _Head(Struct):
    """The keys that records and footers of every format have: the format, the version of rows."""

    format: int
    rows: int


class Unfit(InputError):
    """A record or footer that cannot be used; ``other``: of another version, not damaged."""

    def __init__(self, reason: str, other: bool = False) -> None:
        super().__init__(reason)
        self.other = other


_T = TypeVar("_T")


def read_index(content: bytes) -> tuple[Index, list[Piece]]:
    """Read the index of a part and check all of it; raise `Unfit` with the reason."""
    return _reading(_index, content)


def _index(content: bytes) -> tuple[Index, list[Piece]]:
    if _checked_head(content) == FORMAT:
        index = msgspec.json.decode(content, type=Index)
        return index, index.unpacked()
    old = msgspec.json.decode(content, type=_Footer2)
    if old.cell.id != old.id:
        raise Unfit(f"cell {old.id!r} does not fit its id: damaged, or edited by hand")
    piece = Piece(old.cell, _known_schedules(old.schedules), old.first, old.count)
    more = {name: getattr(old, name) for name in ("format", "rows", "instances", "own_parts")}
    return Index.of([piece], **more), [piece]


def read_record(path: Path) -> Record:
    """Read sweep.json: OSError if it cannot be read, `Unfit` if it cannot be used."""
    content = read_regular(path, MOST_FILE)
    record = _reading(_read_record, content)
    found = _CHECKSUM.search(content)
    if found is not None:
        if _checksum(content[: found.start(1)], content[found.end(1) :]) != found[1]:
            raise Unfit("its content does not fit its checksum: damaged, or edited by hand")
        return record
    try:  # an older fastfed wrote none, and these keys alone
        keys = msgspec.json.decode(content, type=dict[str, msgspec.Raw]).keys()
    except UnicodeDecodeError as error:  # of a key: msgspec leaves this to Python
        raise Unfit("a key is not UTF-8: damaged, or edited by hand") from error
    unknown = sorted(keys - _KEYS)
    if unknown or record.format > 2:
        what = f"unknown key {unknown[0]!r}" if unknown else "it has no checksum"
        raise Unfit(f"{what}: damaged, or edited by hand")
    return record


def _read_record(content: bytes) -> Record:
    if _checked_head(content) == FORMAT:
        packed = msgspec.json.decode(content, type=_Record3)
        return _validated(packed, packed.cells.cells())
    old = msgspec.json.decode(content, type=_Record2)
    for name, cell in old.cells.items():
        if cell.id != name:
            raise Unfit(f"cell {name!r} does not fit its id: damaged, or edited by hand")
    return _validated(old, [*old.cells.values()])


def _validated(found: _Record, cells: Sequence[Cell]) -> Record:
    """Check what types cannot express: the hash fits, and the spec can be understood."""
    if found.spec.hash != found.spec_hash:
        raise Unfit("its spec does not fit its spec_hash: damaged, or edited by hand")
    if not cells:
        raise Unfit("it has no cells: damaged, or edited by hand")
    for name in ONE_FOR_ALL:
        for one in {getattr(found, name), *(getattr(cell, name) for cell in cells)}:
            if one != getattr(found.spec, name):
                raise Unfit(
                    f"it has {name} {one}, its spec {name} {getattr(found.spec, name)}: damaged, "
                    "or edited by hand"
                )
    Spec.of({**found.spec.to_dict(), "instance": None, "cost": found.spec.cost or None})
    keys = {name: getattr(found, name) for name in _Record.__struct_fields__}
    return Record(**keys, cells=tuple(cells))


def _reading(read: Callable[[bytes], _T], content: bytes) -> _T:
    """Read JSON; raise `Unfit` with one line about anything that is wrong with it."""
    try:
        return read(content)
    except Unfit:
        raise
    except UnknownNameError as error:
        raise Unfit(
            f"{error}; a class of your own must be defined, or its module imported, before the "
            "folder is opened"
        ) from None
    except (msgspec.ValidationError, InputError) as error:
        raise Unfit(f"not a sweep's record ({error})") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unfit(f"not valid JSON ({error})") from None
    except (TypeError, OverflowError) as error:
        raise Unfit(f"not a sweep's record ({error})") from None


def _checked_head(content: bytes) -> int:
    """Return the format of a record or an index; refuse one that cannot be read."""
    head = msgspec.json.decode(content, type=_Head)
    if head.format > FORMAT or head.rows > ROWS:
        raise Unfit(
            f"written by a newer fastfed (format {head.format}, rows of version "
            f"{head.rows}; this one has {FORMAT} and {ROWS}); update fastfed",
            True,
        )
    if head.format < OLDEST_FORMAT or head.rows < OLDEST_ROWS:
        raise Unfit(
            f"written by an older fastfed (format {head.format}, version of the rows "
            f"{head.rows}; this one reads {OLDEST_FORMAT} and {OLDEST_ROWS}); use that version, or "
            "run the sweep again into another folder",
            True,
        )
    return head.format


@lru_cache(maxsize=1024)
def _known_schedules(names: tuple[str, ...]) -> tuple[str, ...]:
    if tuple(str(one) for one in Schedule.parse_all(names)) != names:
        raise Unfit("schedules that are not written in their canonical form")
    return names


def encoded(record: Record) -> bytes:
    """Write a record as JSON, with its cells in one line and the checksum as the last key."""
    keys = {name: getattr(record, name) for name in _Record.__struct_fields__}
    lines = {name: msgspec.json.format(msgspec.json.encode(one)) for name, one in keys.items()}
    lines["cells"] = msgspec.json.encode(Packed.of(record.cells))
    text = b",\n".join(b'  "%s": %s' % (name.encode(), one) for name, one in lines.items())
    return with_checksum(b"{\n" + text + b"\n}\n")


def write_record(path: Path, record: Record, before: Any = None) -> None:
    """Write sweep.json; ``before`` is passed to `fastfed.files.replacing`."""
    content = encoded(record)
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


def own_parts(settings: Sequence[Setting], schedules: Sequence[Schedule]) -> dict[str, str]:
    """Return the fingerprints of all families of a sweep that are not built in."""
    parts = [*schedules, *(getattr(one, kind) for one in settings for kind in DEFAULTS)]
    named = {f"{one.kind} {one.family}": one for one in parts if hasattr(one, "family")}
    return {name: code for name, one in named.items() if (code := one.code_fingerprint())}


def changed_part(one: dict[str, str], other: dict[str, str]) -> str | None:
    """Return the first name that stands for other code in two records."""
    return next((name for name in one if other.get(name, one[name]) != one[name]), None)


def record_of(
    asked: Spec, settings: Sequence[Setting], own: dict[str, str], before: Record | None
) -> Record:
    """Make the record of a sweep into a folder whose record was ``before``.

    It asks for all that was ever asked for, and holds every cell that the folder has seen and the
    instances that no name brings back.
    """
    cells, instances = [one.key for one in settings], custom_instances(settings)
    spec = asked
    if before is not None:
        cells, instances = [*before.cells, *cells], {**before.instances, **instances}
        spec, own = _united(before.spec, asked), {**before.own_parts, **own}
    last = None if spec == asked else asked
    return _record(spec, cells, instances, own_parts=own, last_spec=last)


def custom_instances(settings: Sequence[Setting]) -> dict[str, str]:
    """Write as TOML the instances that cannot be loaded by name."""
    from fastfed.model.instance_files.load import known_by_name
    from fastfed.model.instance_files.toml_files import to_toml

    distinct = {one.instance.name: one.instance for one in settings}
    return {name: to_toml(one) for name, one in distinct.items() if not known_by_name(name)}


def rebuilt(parts: Sequence[tuple[Index, Sequence[Piece]]], folder: Path) -> Record:
    """Rebuild the record of a folder without sweep.json, from the indices of its parts."""
    gone = f"{folder}: sweep.json is gone, and its parts"
    pieces = [piece for _, some in parts for piece in some]
    own: dict[str, str] = {}
    for index, _ in parts:
        if name := changed_part(own, index.own_parts):
            raise InputError(
                f"{gone} have rows of two versions of your own {name}; move those of one of them "
                "away"
            )
        own |= index.own_parts
    said = {"versions": {index.rows for index, _ in parts}}
    said |= {name: {getattr(one.cell, name) for one in pieces} for name in ONE_FOR_ALL}
    for name, values in said.items():
        if len(values) > 1:
            some = " and ".join(map(str, sorted(values, key=str)[:2]))
            of = "of the rows" if name == "versions" else "(several sweeps)"
            raise InputError(f"{gone} have {name} {some} {of}; move those of one of them away")
    instances = {name: text for index, _ in parts for name, text in index.instances.items()}
    cells = sorted(
        dict.fromkeys(piece.cell for piece in pieces),
        key=lambda cell: (cell.instance, -cell.delta, cell.sigma),
    )
    names = dict.fromkeys(cell.instance for cell in cells)
    chosen: dict[str, Any] = {
        name: written_choices(name, _values(cells, name)) for name in DEFAULTS
    }
    spec = Spec(
        instance=[
            InlineInstance(name, instances[name]) if name in instances else name for name in names
        ],
        delta=_values(cells, "delta"),
        cost=[],
        schedule=[
            str(one)
            for one in Schedule.parse_all(dict.fromkeys(n for p in pieces for n in p.schedules))
        ],
        trials=max(piece.end for piece in pieces),
        sigma=_values(cells, "sigma"),
        **{name: getattr(cells[0], name) for name in ONE_FOR_ALL},
        **chosen,
    )
    return _record(spec, cells, instances, rows=parts[0][0].rows, own_parts=own)


def _values(cells: Sequence[Cell], name: str) -> list[Any]:
    """List the different values of a field of cells."""
    return [*dict.fromkeys(getattr(cell, name) for cell in cells)]


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


def _record(spec: Spec, cells: Iterable[Cell], instances: dict[str, str], **more: Any) -> Record:
    return Record(
        spec=spec,
        spec_hash=spec.hash,
        versions=versions(),
        cells=tuple(dict.fromkeys(cells)),
        instances=instances,
        **{name: getattr(spec, name) for name in ONE_FOR_ALL},
        **more,
    )


def with_costs(record: Record, costs: list[float], bit_costs: list[float]) -> Record:
    """Replace the costs of a record; rows do not depend on costs."""
    spec = msgspec.structs.replace(record.spec, cost=costs, bit_cost=bit_costs)
    return msgspec.structs.replace(record, spec=spec, spec_hash=spec.hash)


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
