"""Join the folders of one sweep: the shards of a job array, or machines that ran the same command.

What does not belong together is refused before anything is written. Parts are copied whole, each
complete or absent as in a sweep; of a part that overlaps with what is there already, only the rest
is taken, once the rows that both have are seen to be equal. A merge that was killed leaves a
sweep's folder, and the same command goes on with it.
"""

from __future__ import annotations

import shutil
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastfed.errors import InputError
from fastfed.sweeps.run import write_summary
from fastfed.sweeps.spec import costs_of
from fastfed.sweeps.store import ROWS, Cell, Part, Store, replacing, spec_hash

_Span = tuple[int, int, Part]  # trials [first, end) of a schedule, and a part that has them


@dataclass
class Merged:
    """What a merge did, and what is still to do."""

    folder: Path
    parts: int = 0  # added
    missing: int = 0  # rows of the spec that no folder had
    left_out: list[Path] = field(default_factory=list)  # files that are no part of this sweep


def merge(folders: Sequence[str | Path], out: str | Path) -> Merged:
    """Join the rows of ``folders`` in the folder ``out``, which may hold some of them already."""
    target = Store(Path(out))
    sources = [Store(folder) for folder in dict.fromkeys(map(Path, folders))
               if folder.resolve() != target.folder.resolve()]
    if not sources:
        raise InputError(f"{target.folder}: nothing to merge with it; name at least one other "
                         "folder")
    merged = Merged(target.folder)
    record = {**_common_record(sources), "summary_of": None}
    with target.lock():
        if target.manifest_path.exists():
            record = _common_record([target, *sources])
        elif any(target.trials.glob("*.parquet")):
            raise InputError(f"{target.folder}: holds trial rows but no sweep.json; give another "
                             "--out, or remove its trials/")
        _write_record(target, record)
        target.parts()
        for path in target.unreadable:
            path.unlink(missing_ok=True)
        cells = set(target.recorded_cells())
        held: dict[tuple[Cell, str], list[_Span]] = {}
        for part in target.parts():
            _add(held, part)
        for source in sources:
            for part in source.parts():
                if part.cell in cells:
                    merged.parts += _take(target, held, part)
                else:
                    merged.left_out.append(part.path)
            merged.left_out += source.unreadable
        _write_record(target, {**record, "summary_of": write_summary(
            target, costs_of(record["spec"]))})
        merged.missing = _missing(record["spec"], cells, held)
    return merged


def _common_record(stores: list[Store]) -> dict[str, Any]:
    """The sweep.json of folders that belong together."""
    first, costs = stores[0], dict[float, None]()
    known = {cell.instance: cell.digest for cell in first.recorded_cells()}
    for store in stores:
        theirs = _about(store)
        for cell in store.recorded_cells():
            if known.get(cell.instance, cell.digest) != cell.digest:
                raise InputError(
                    f"{store.folder}: its instance {cell.instance!r} is not the one of "
                    f"{first.folder} (other means or rewards); only folders of one sweep can be "
                    "merged")
        for name, ours in _about(first).items():
            if theirs[name] != ours:
                raise InputError(
                    f"{store.folder}: a sweep with {name} {_text(theirs[name])}, but "
                    f"{first.folder} has {name} {_text(ours)}; only folders of one sweep can be "
                    "merged")
        costs.update(dict.fromkeys(costs_of(store.manifest()["spec"])))
    record = first.manifest()
    if record.get("rows") != ROWS:
        raise InputError(f"{first.folder}: holds rows of version {record.get('rows')}, this "
                         f"fastfed has version {ROWS}")
    spec = {**record["spec"], "cost": list(costs)}
    return {**record, "spec": spec, "spec_hash": spec_hash(spec)}


def _about(store: Store) -> dict[str, Any]:
    """All of a record that rows depend on. The costs are no part of that."""
    record, cells = store.manifest(), store.recorded_cells()
    spec = record["spec"]
    try:
        return {
            **{name: record.get(name) for name in ("seed", "engine", "max_steps")},
            "version of the rows": record.get("rows"),
            **{name: sorted({getattr(cell, name) for cell in cells})
               for name in ("instance", "delta", "sigma")},
            "schedule": sorted(spec["schedule"]), "trials": spec["trials"],
            "target_rse": spec.get("target_rse"), "cells": sorted(cell.id for cell in cells),
        }
    except (KeyError, TypeError):
        raise InputError(f"{store.manifest_path}: not a whole record of a sweep; the sweep's "
                         "command, given again, mends it") from None


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _write_record(target: Store, record: dict[str, Any]) -> None:
    if not target.manifest_path.exists() or target.manifest() != record:
        target.write_manifest(record)


def _take(target: Store, held: dict[tuple[Cell, str], list[_Span]], part: Part) -> int:
    """Add what ``target`` lacks of a part; how many parts that made."""
    lacking: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for name in part.schedules:
        gaps = []
        for first, end, holder in _pieces(held.get((part.cell, name), []), part.first,
                                          part.first + part.count):
            if holder is None:
                gaps.append((first, end))
            elif not _rows(part, name, first, end).equals(_rows(holder, name, first, end)):
                raise InputError(f"{part.path}: other rows than in {holder.path} for trials "
                                 f"{first} to {end - 1}, schedule {name}; one of the two is wrong")
        if gaps:
            lacking.setdefault(tuple(gaps), []).append(name)
    _add(held, part)
    whole = ((part.first, part.first + part.count),)
    if lacking == {whole: list(part.schedules)}:
        with part.path.open("rb") as rows, replacing(target.trials / part.path.name) as file:
            shutil.copyfileobj(rows, file)
        target.add(replace(part, path=target.trials / part.path.name))
        return 1
    spec = target.manifest()["spec"]
    for ranges, names in lacking.items():
        for first, end in ranges:
            table = _stream([_rows(part, name, first, end) for name in names])
            target.write_part(part.cell, tuple(names), first, end - first, table, spec)
    return sum(map(len, lacking))


def _pieces(spans: list[_Span], first: int, end: int) -> list[tuple[int, int, Part | None]]:
    """[first, end) in pieces: which part has each, if any."""
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


def _add(held: dict[tuple[Cell, str], list[_Span]], part: Part) -> None:
    for name in part.schedules:
        spans = held.setdefault((part.cell, name), [])
        for first, end, holder in _pieces(spans, part.first, part.first + part.count):
            if holder is None:
                insort(spans, (first, end, part), key=_start)


def _start(span: _Span) -> int:
    return span[0]


def _rows(part: Part, schedule: str, first: int, end: int) -> Any:
    """Trials first .. end - 1 of one schedule, as a pyarrow table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(part.path) as file:
            group = file.read_row_group(part.schedules.index(schedule))
    except (OSError, pa.ArrowException):
        raise InputError(f"{part.path}: damaged; remove it, and the same sweep does its trials "
                         "again") from None
    return group.slice(first - part.first, end - first)


def _stream(tables: list[Any]) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _missing(
    spec: dict[str, Any], cells: set[Cell], held: dict[tuple[Cell, str], list[_Span]]
) -> int:
    """Rows of the spec that no folder has; with a target, none is known to be missing."""
    if spec.get("target_rse") is not None:
        return 0
    return sum(end - first for cell in cells for name in spec["schedule"]
               for first, end, holder in _pieces(held.get((cell, name), []), 0, spec["trials"])
               if holder is None)
