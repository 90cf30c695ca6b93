"""Records of a sweep's folder: sweep.json, and the footer of every part.

Both are JSON, and msgspec checks their types when it reads them. A value of a wrong type, a missing
key or a newer format is refused in one line. Every part carries the spec, and its instance if the
instance cannot be loaded by name. So a lost sweep.json can be rebuilt from the parts.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Sequence
from functools import cache, lru_cache, partial, reduce
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
from fastfed.model.spec import Spec, written_choices
from fastfed.validation import MOST_FILE
from fastfed.version import OLDEST_ROWS, ROWS, __version__

FORMAT = 2
"""Changes when files of a folder are laid out otherwise than before."""

ONE_FOR_ALL = ("seed", "engine", "max_steps")
"""Fields that all rows of a folder have in common."""

_Count = Annotated[int, Meta(ge=1, le=2**32)]


class Record(Struct, frozen=True, kw_only=True):
    """The content of sweep.json."""

    format: int = FORMAT
    rows: int = ROWS
    spec: Spec
    spec_hash: str
    seed: Annotated[int, Meta(ge=0)]
    engine: str
    max_steps: Annotated[int, Meta(ge=1)] | None
    versions: dict[str, str]
    cells: Annotated[dict[str, Cell], Meta(min_length=1)]
    instances: dict[str, str]
    last_spec: Spec | None = None
    """The latest request, where ``spec``, which joins all of them, asks for more."""

    @property
    def asked_last(self) -> Spec:
        """The spec of the latest sweep into the folder."""
        return self.spec if self.last_spec is None else self.last_spec


class Footer(Struct, frozen=True, kw_only=True):
    """The footer of a part, which has trials first .. first + count - 1 of a cell."""

    format: int = FORMAT
    rows: int = ROWS
    id: str
    cell: Cell
    first: Annotated[int, Meta(ge=0, le=2**32)]
    count: _Count
    schedules: Annotated[tuple[str, ...], Meta(min_length=1)]
    spec: Spec
    spec_hash: str
    versions: dict[str, str]
    instances: dict[str, str]


_KEYS = {*Record.__struct_fields__} - {"last_spec"}
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


_T = TypeVar("_T", Record, Footer)


def decoded(content: bytes, kind: type[_T]) -> _T:
    """Read a record or a footer from JSON and check all of it; raise `Unfit` with the reason."""
    try:
        head = msgspec.json.decode(content, type=_Head)
        if head.format > FORMAT or head.rows > ROWS:
            raise Unfit(
                f"written by a newer fastfed (format {head.format}, rows of version "
                f"{head.rows}; this one has {FORMAT} and {ROWS}); update fastfed",
                True,
            )
        if head.format < FORMAT or head.rows < OLDEST_ROWS:
            raise Unfit(
                f"written by an older fastfed (format {head.format}, version of the rows "
                f"{head.rows}; this one reads {FORMAT} and {OLDEST_ROWS}); use that version, or "
                "run the sweep again into another folder",
                True,
            )
        found = msgspec.json.decode(content, type=kind)
        _validate(found)
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
    return found


def _validate(found: Record | Footer) -> None:
    """Check what types cannot express: hashes and ids fit, and the spec can be understood."""
    if found.spec.hash != found.spec_hash:
        raise Unfit("its spec does not fit its spec_hash: damaged, or edited by hand")
    cells = found.cells if isinstance(found, Record) else {found.id: found.cell}
    for name, cell in cells.items():
        if cell.id != name:
            raise Unfit(f"cell {name!r} does not fit its id: damaged, or edited by hand")
        _compare(f"cell {name!r}", cell, found.spec)
    if isinstance(found, Record):
        _compare("the record", found, found.spec)
    if isinstance(found, Footer):
        _known_schedules(found.schedules)
    _understood(json.dumps(found.spec.to_dict(), sort_keys=True))


def _compare(what: str, one: Record | Cell, spec: Spec) -> None:
    """Check that seed, engine and max_steps are those of the spec, as in all rows of a folder."""
    for name in ONE_FOR_ALL:
        if getattr(one, name) != getattr(spec, name):
            raise Unfit(
                f"{what} has {name} {getattr(one, name)}, its spec {name} "
                f"{getattr(spec, name)}: damaged, or edited by hand"
            )


@lru_cache(maxsize=64)
def _known_schedules(names: tuple[str, ...]) -> None:
    if tuple(str(one) for one in Schedule.parse_all(names)) != names:
        raise Unfit("schedules that are not written in their canonical form")


@lru_cache(maxsize=64)
def _understood(spec: str) -> None:
    """Check a spec as if it were given now, once for all parts that have the same."""
    Spec.of({**json.loads(spec), "instance": None})


def encoded(content: Record | Footer, indent: int = 0) -> bytes:
    """Write a record or a footer as JSON."""
    return msgspec.json.format(msgspec.json.encode(content), indent=indent)


def write_record(path: Path, record: Record, before: Any = None) -> None:
    """Write sweep.json; ``before`` is passed to `fastfed.files.replacing`."""
    content = with_checksum(encoded(record, indent=2))
    if len(content) > MOST_FILE:
        raise InputError(
            f"{path}: {len(content):,} bytes, more than {MOST_FILE:,}; sweep fewer or smaller "
            "instances into one folder"
        )
    with replacing(path, before) as file:
        file.write(content)


def read_record(path: Path) -> Record:
    """Read sweep.json: OSError if it cannot be read, `Unfit` if it cannot be used."""
    content = read_regular(path, MOST_FILE)
    record = decoded(content, Record)
    found = _CHECKSUM.search(content)
    if found is None:  # an older fastfed wrote none, and these keys alone
        unknown = sorted(msgspec.json.decode(content, type=dict[str, msgspec.Raw]).keys() - _KEYS)
        if unknown:
            raise Unfit(f"unknown key {unknown[0]!r}: damaged, or edited by hand")
    elif _checksum(content[: found.start(1)], content[found.end(1) :]) != found[1]:
        raise Unfit("its content does not fit its checksum: damaged, or edited by hand")
    return record


def with_checksum(content: bytes) -> bytes:
    """Add the checksum of all other bytes to a JSON object, as its last key."""
    head, tail = content.rstrip()[:-1].rstrip() + b',\n  "checksum": "', b'"\n}\n'
    return head + _checksum(head, tail) + tail


def _checksum(head: bytes, tail: bytes) -> bytes:
    return hashlib.sha256(head + tail).hexdigest().encode()


def record_of(asked: Spec, settings: Sequence[Setting], before: Record | None) -> Record:
    """Make the record of a sweep into a folder whose record was ``before``.

    It asks for all that was ever asked for, and holds every cell that the folder has seen and the
    instances that no name brings back.
    """
    cells, instances = {one.key.id: one.key for one in settings}, custom_instances(settings)
    spec = asked
    if before is not None:
        cells, instances = {**before.cells, **cells}, {**before.instances, **instances}
        spec = _united(before.spec, asked)
    return _record(spec, cells, instances, last_spec=None if spec == asked else asked)


def custom_instances(settings: Sequence[Setting]) -> dict[str, str]:
    """Write as TOML the instances that cannot be loaded by name."""
    from fastfed.model.instance_files import known_by_name
    from fastfed.model.instance_writing import to_toml

    distinct = {one.instance.name: one.instance for one in settings}
    return {name: to_toml(one) for name, one in distinct.items() if not known_by_name(name)}


def rebuilt(footers: Sequence[Footer], folder: Path) -> Record:
    """Rebuild the record of a folder without sweep.json, from the footers of its parts."""
    first, *others = dict.fromkeys(footer.rows for footer in footers)
    if others:
        raise InputError(
            f"{folder}: sweep.json is gone, and its parts have versions {first} and {others[0]} of "
            "the rows; move those of one of them away"
        )
    instances = {name: text for one in footers for name, text in one.instances.items()}
    spec = reduce(partial(_united_parts, folder), (footer.spec for footer in footers))
    cells = {footer.id: footer.cell for footer in footers}.values()
    in_order = sorted(cells, key=lambda cell: (cell.instance, -cell.delta, cell.sigma))
    return _record(spec, {cell.id: cell for cell in in_order}, instances, rows=first)


def _united_parts(folder: Path, one: Spec, other: Spec) -> Spec:
    """Unite the specs of two parts; refuse those that cannot be of one folder."""
    for name in ONE_FOR_ALL:
        if getattr(one, name) != getattr(other, name):
            raise InputError(
                f"{folder}: sweep.json is gone, and its parts are of several sweeps "
                f"({name} {getattr(one, name)} and {getattr(other, name)}); move "
                "those of one of them away"
            )
    return _united(one, other)


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
        **lists,
    )


def _record(spec: Spec, cells: dict[str, Cell], instances: dict[str, str], **more: Any) -> Record:
    return Record(
        spec=spec,
        spec_hash=spec.hash,
        versions=versions(),
        cells=cells,
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
