"""Join the folders of one sweep: the shards of a job array, or machines that ran the same command.

Folders that do not belong together are refused before anything is written. Parts are copied whole,
and a part is complete or absent, as in a sweep. If a part overlaps with rows of the target, the
common rows are compared and only the other rows are copied. Nothing is ever deleted: damaged parts
of the target, and parts that repeat others, are set aside under another name. A merge that was
killed leaves the folder of a sweep, and the same command continues it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastfed.errors import InputError
from fastfed.files import checked_folder, replacing
from fastfed.model.cell import CELL
from fastfed.storage.folder import Store
from fastfed.storage.manifest import ONE_FOR_ALL, Record, with_costs
from fastfed.storage.part_file import REPEATS, PartFile, PartProblem, rows_of
from fastfed.storage.summary_cache import write_summary

_BOUNDS = ("skip_error", "draw_error")


@dataclass
class Merged:
    """The result of a merge: parts added, rows still missing, and files left out."""

    folder: Path
    parts: int = 0  # added
    missing: int = 0  # rows of the spec that no folder had
    left_out: list[str] = field(default_factory=list)  # files left out, and why
    damaged: list[PartProblem] = field(default_factory=list)  # of the target: put aside

    @property
    def problems(self) -> list[str]:
        """Lines that name the files whose rows are not in the folder, with the reason."""
        return [
            *(f"{problem}: {problem.outcome}" for problem in self.damaged),
            *(f"{left}: left out" for left in self.left_out),
        ]


def merge(folders: Sequence[str | Path], out: str | Path) -> Merged:
    """Join the rows of ``folders`` in the folder ``out``, which may hold some of them already."""
    target = Store(checked_folder(out))
    sources = [
        one
        for one in map(Store, dict.fromkeys(map(Path, folders)))
        if one.folder.resolve() != target.folder.resolve()
    ]
    if not sources:
        raise InputError(
            f"{target.folder}: nothing to merge with it; name at least one other folder"
        )
    _common_record(sources)  # rejects what does not belong together before a folder is made
    merged = Merged(target.folder)
    with target.lock():
        there = target.record_if_any()
        record = _common_record(sources if there is None else [target, *sources])
        merged.damaged = _put_aside(target)
        target.write_record(record)
        for source in sources:
            for part in source.parts():
                if part.cell.id in record.cells:
                    merged.parts += _take(target, part)
                else:
                    merged.left_out.append(f"{part.path}: of another sweep")
            merged.left_out += [
                str(problem) for problem in source.problems() if problem.kind != REPEATS
            ]
        write_summary(target)
        merged.missing = _missing(target, record)
    return merged


def _put_aside(target: Store) -> list[PartProblem]:
    """Set aside the files that are no sound parts of the target; leave unreadable files alone."""
    problems = list(target.problems())
    target.put_aside([problem for problem in problems if problem.redo])
    return problems


def _common_record(stores: list[Store]) -> Record:
    """Return the record of folders that belong together; refuse all others."""
    first, costs, bit_costs = stores[0], dict[float, None](), dict[float, None]()
    known = {cell.instance: cell.digest for cell in first.record().cells.values()}
    for store in stores:
        theirs = _about(store.record())
        for cell in store.record().cells.values():
            if known.get(cell.instance, cell.digest) != cell.digest:
                raise InputError(
                    f"{store.folder}: its instance {cell.instance!r} is not the one of "
                    f"{first.folder} (other means or rewards); only folders of one sweep can be "
                    "merged"
                )
        for name, ours in _about(first.record()).items():
            if theirs[name] != ours:
                raise InputError(
                    f"{store.folder}: a sweep with {name} {_text(theirs[name])}, but "
                    f"{first.folder} has {name} {_text(ours)}; only folders of one sweep can be "
                    "merged"
                )
        costs.update(dict.fromkeys(store.record().spec.cost))
        bit_costs.update(dict.fromkeys(store.record().spec.bit_cost))
    return with_costs(first.record(), list(costs), list(bit_costs))


def _about(record: Record) -> dict[str, Any]:
    """Return the fields of a record on which rows depend; costs are none of them."""
    cells, spec = record.cells.values(), record.spec
    return {
        "version of the rows": record.rows,
        **{name: getattr(record, name) for name in ONE_FOR_ALL},
        **{name: sorted({getattr(cell, name) for cell in cells}) for name in CELL},
        "schedule": sorted(spec.schedule),
        "trials": spec.trials,
        "target_rse": spec.target_rse,
        "until_separated": spec.until_separated,
        "cells": sorted(record.cells),
    }


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _take(target: Store, part: PartFile) -> int:
    """Add the rows of a part that ``target`` lacks; return the number of parts written."""
    lacking: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for name in part.schedules:
        gaps = []
        for first, end, holder in target.pieces(part.cell, name, part.first, part.end):
            if holder is None:
                gaps.append((first, end))
            elif columns := _differing(part, holder, name, first, end):
                raise InputError(
                    f"{part.path}: other rows than in {holder.path} for trials "
                    f"{first} to {end - 1}, schedule {name} (column {', '.join(columns)}); "
                    "one of the two is wrong"
                )
        if gaps:
            lacking.setdefault(tuple(gaps), []).append(name)
    whole = ((part.first, part.end),)
    if lacking == {whole: list(part.schedules)}:
        copy = target.free_path(part)
        with part.path.open("rb") as rows, replacing(copy, target.check_lock) as file:
            shutil.copyfileobj(rows, file)
        target.add(replace(part, path=copy))
        return 1
    spec = target.record().spec
    for ranges, names in lacking.items():
        for first, end in ranges:
            table = rows_of(part, names, first, end)
            target.write_part(part.cell, tuple(names), first, end - first, table, spec)
    return sum(map(len, lacking))


def _differing(one: PartFile, other: PartFile, schedule: str, first: int, end: int) -> list[str]:
    """List the columns in which two parts differ; parts with equal checksums do not.

    The bounds on errors are left out: they depend on the other schedules of a run, because clients
    are followed as far as any of its rows needs. Both are bounds for the one row.
    """
    if one.content == other.content:
        return []
    ours, theirs = (rows_of(part, [schedule], first, end) for part in (one, other))
    names = [name for name in ours.column_names if name not in _BOUNDS]
    return [name for name in names if not ours[name].equals(theirs[name])]


def _missing(target: Store, record: Record) -> int:
    """Count the rows of the spec that no folder has; 0 if its cells stop early."""
    asked = record.asked_last
    if asked.stops_early:
        return 0
    return sum(
        end - first
        for cell in record.cells.values()
        for name in asked.schedule
        for first, end in target.missing(cell, name, asked.trials)
    )
