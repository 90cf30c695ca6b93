"""What a sweep's folder says about itself: sweep.json, and the footer of every part.

Both are JSON of one schema, which msgspec checks when it reads them: a value of a wrong type, a
missing key or a newer format ends in one line. Every part carries the spec and, where no name
brings it back, its instance, so that a lost sweep.json can be made again from the parts.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from fastfed.choices import USUAL
from fastfed.errors import InputError, printable
from fastfed.files import replacing
from fastfed.problem.schedule import parse_all
from fastfed.sweeps.grid import ROWS, Cell, Grid
from fastfed.sweeps.spec import Spec, make_spec, written_choices
from fastfed.version import __version__

FORMAT = 2
"""Changes when files of a folder are laid out otherwise than before."""

ONE_FOR_ALL = ("seed", "engine", "max_steps")
"""What all rows of a folder have in common."""

_Count = Annotated[int, Meta(ge=1, le=2**32)]


class InlineInstance(Struct, frozen=True, forbid_unknown_fields=True):
    """An instance that was given as an object: its name and its TOML."""

    name: str
    toml: str


class SpecRecord(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A spec as it is written down: the keys of a spec file, every one in its usual form."""

    instance: list[str | InlineInstance]
    delta: list[float]
    cost: list[float]
    schedule: list[str]
    trials: _Count
    seed: Annotated[int, Meta(ge=0)]
    engine: str
    sigma: list[float | str] = []
    max_steps: Annotated[int, Meta(ge=1)] | None = None
    target_rse: float | None = None
    radius: list[str] = []
    goal: list[str] = []
    uplink: list[str] = []
    bit_cost: list[float] = []

    @staticmethod
    def of(spec: Spec) -> SpecRecord:
        return msgspec.convert(spec.to_dict(), SpecRecord)

    def to_dict(self) -> dict[str, Any]:
        """As in a spec file: what `fastfed.sweeps.spec.make_spec` reads."""
        content: dict[str, Any] = msgspec.to_builtins(self)
        return content

    @property
    def hash(self) -> str:
        return spec_hash(self.to_dict())


class Record(Struct, frozen=True, kw_only=True):
    """The content of sweep.json."""

    format: int = FORMAT
    rows: int = ROWS
    spec: SpecRecord
    spec_hash: str
    seed: Annotated[int, Meta(ge=0)]
    engine: str
    max_steps: Annotated[int, Meta(ge=1)] | None
    versions: dict[str, str]
    cells: Annotated[dict[str, Cell], Meta(min_length=1)]
    instances: dict[str, str]


class Footer(Struct, frozen=True, kw_only=True):
    """What a part says about its rows: trials first .. first + count - 1 of a cell."""

    format: int = FORMAT
    rows: int = ROWS
    id: str
    cell: Cell
    first: Annotated[int, Meta(ge=0, le=2**32)]
    count: _Count
    schedules: Annotated[tuple[str, ...], Meta(min_length=1)]
    spec: SpecRecord
    spec_hash: str
    versions: dict[str, str]
    instances: dict[str, str]


class _Head(Struct):
    """What records and footers of every format have: that format, and the version of their rows."""

    format: int
    rows: int


class Unfit(InputError):
    """A record or footer that cannot be used; ``other``: of another version, not damaged."""

    def __init__(self, reason: str, other: bool = False) -> None:
        super().__init__(printable(reason))
        self.other = other


_T = TypeVar("_T", Record, Footer)


def decoded(content: bytes, kind: type[_T]) -> _T:
    """A record or a footer from its JSON, fully checked, or `Unfit` with the reason."""
    try:
        head = msgspec.json.decode(content, type=_Head)
        if head.format > FORMAT or head.rows > ROWS:
            raise Unfit(
                f"written by a newer fastfed (format {head.format}, rows of version "
                f"{head.rows}; this one has {FORMAT} and {ROWS}); update fastfed",
                True,
            )
        if head.format < FORMAT or head.rows < ROWS:
            raise Unfit(
                f"written by an older fastfed (format {head.format}, version of the rows "
                f"{head.rows}; this one has {FORMAT} and {ROWS}); use that version, or "
                "run the sweep again into another folder",
                True,
            )
        found = msgspec.json.decode(content, type=kind)
        _validate(found)
    except Unfit:
        raise
    except (msgspec.ValidationError, InputError) as error:
        raise Unfit(f"not a sweep's record ({error})") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unfit(f"not valid JSON ({error})") from None
    return found


def _validate(found: Record | Footer) -> None:
    """What a schema of types cannot say: hashes and ids fit, the spec can be understood."""
    spec = _canonical(found.spec.to_dict())
    if _digest(spec) != found.spec_hash:
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
    _understood(spec)


def _compare(what: str, one: Record | Cell, spec: SpecRecord) -> None:
    """All rows of a folder have the seed, engine and max_steps of its spec."""
    for name in ONE_FOR_ALL:
        if getattr(one, name) != getattr(spec, name):
            raise Unfit(
                f"{what} has {name} {getattr(one, name)}, its spec {name} "
                f"{getattr(spec, name)}: damaged, or edited by hand"
            )


@lru_cache(maxsize=64)
def _known_schedules(names: tuple[str, ...]) -> None:
    if tuple(str(one) for one in parse_all(names)) != names:
        raise Unfit("schedules that are not written in their usual form")


@lru_cache(maxsize=64)
def _understood(spec: str) -> None:
    """Check a spec as if it were given now, once for all parts that have the same."""
    make_spec({**json.loads(spec), "instance": None})


def encoded(content: Record | Footer, indent: int = 0) -> bytes:
    """A record or a footer as JSON."""
    return msgspec.json.format(msgspec.json.encode(content), indent=indent)


def write_record(path: Path, record: Record, before: Any = None) -> None:
    """Write sweep.json. ``before``: as of `fastfed.files.replacing`."""
    with replacing(path, before) as file:
        file.write(encoded(record, indent=2) + b"\n")


def record_of(grid: Grid, before: Record | None) -> Record:
    """The record of a sweep: the latest spec, every cell that the folder has seen, and the
    instances that no name brings back."""
    cells = dict(before.cells) if before else {}
    instances = dict(before.instances) if before else {}
    for cell, _ in grid.cells:
        cells.setdefault(cell.id, cell)
    instances.update(custom_instances(grid))
    return _record(SpecRecord.of(grid.spec), cells, instances)


def custom_instances(grid: Grid) -> dict[str, str]:
    """The TOML of those instances that no name brings back."""
    from fastfed.problem.instance_files import known_by_name, to_toml

    distinct = {instance.name: instance for _, instance in grid.cells}
    return {name: to_toml(one) for name, one in distinct.items() if not known_by_name(name)}


def rebuilt(footers: Iterable[Footer], folder: Path) -> Record:
    """The record of a folder whose sweep.json is gone, from what its parts say."""
    cells: dict[str, Cell] = {}
    instances: dict[str, str] = {}
    spec: SpecRecord | None = None
    for footer in footers:
        cells[footer.id] = footer.cell
        instances.update(footer.instances)
        spec = footer.spec if spec is None else _united(spec, footer.spec, folder)
    assert spec is not None
    in_order = sorted(
        cells.items(), key=lambda item: (item[1].instance, -item[1].delta, item[1].sigma)
    )
    return _record(spec, dict(in_order), instances)


def _united(one: SpecRecord, other: SpecRecord, folder: Path) -> SpecRecord:
    """The spec that asks for what two specs of the same sweep ask for."""
    if one == other:
        return one
    for name in ONE_FOR_ALL:
        if getattr(one, name) != getattr(other, name):
            raise InputError(
                f"{folder}: sweep.json is gone, and its parts are of several sweeps "
                f"({name} {getattr(one, name)} and {getattr(other, name)}); move "
                "those of one of them away"
            )
    lists = {
        name: list(dict.fromkeys([*getattr(one, name), *getattr(other, name)]))
        for name in ("instance", "delta", "cost", "bit_cost", "schedule", "sigma")
    }
    for name, usual in USUAL.items():  # where none is written down, the usual one is meant
        lists[name] = written_choices(
            name,
            dict.fromkeys([*(getattr(one, name) or [usual]), *(getattr(other, name) or [usual])]),
        )
    return msgspec.structs.replace(one, trials=max(one.trials, other.trials), **lists)


def _record(spec: SpecRecord, cells: dict[str, Cell], instances: dict[str, str]) -> Record:
    return Record(
        spec=spec,
        spec_hash=spec.hash,
        seed=spec.seed,
        engine=spec.engine,
        max_steps=spec.max_steps,
        versions=versions(),
        cells=cells,
        instances=instances,
    )


def with_costs(record: Record, costs: list[float], bit_costs: list[float]) -> Record:
    """The same record with other costs: they are no part of what rows depend on."""
    spec = msgspec.structs.replace(record.spec, cost=costs, bit_cost=bit_costs)
    return msgspec.structs.replace(record, spec=spec, spec_hash=spec.hash)


def spec_hash(spec: dict[str, Any]) -> str:
    """SHA-256 of a spec, whatever the order of its keys."""
    return _digest(_canonical(spec))


def _canonical(spec: dict[str, Any]) -> str:
    return json.dumps(spec, sort_keys=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def versions() -> dict[str, str]:
    """What computed the rows."""
    from importlib.metadata import version

    libraries = ("numpy", "numba", "polars", "pyarrow", "scipy")
    return {
        "fastfed": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
    }
