"""Join the folders of one sweep: the shards of a job array, or machines that ran the same command.

What does not belong together is rejected before anything is written. Parts are copied whole, each
complete or absent as in a sweep; of a part that overlaps with what is there already, only the rest
is taken, once the rows that both have are seen to be equal. Nothing is ever deleted: damaged parts
of the target, and parts that repeat others, are put aside. A merge that was killed leaves
a sweep's folder, and the same command goes on with it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastfed.engine.rows import CELL
from fastfed.errors import InputError
from fastfed.files import checked_folder, replacing
from fastfed.sweeps.manifest import ONE_FOR_ALL, Record, with_costs
from fastfed.sweeps.store import REPEATS, Part, Problem, Store, rows_of
from fastfed.sweeps.summary_file import write_summary


@dataclass
class Merged:
    """What a merge did, and what is still to do."""

    folder: Path
    parts: int = 0  # added
    missing: int = 0  # rows of the spec that no folder had
    left_out: list[str] = field(default_factory=list)  # files left out, and why
    damaged: list[Problem] = field(default_factory=list)  # of the target: put aside


def merge(folders: Sequence[str | Path], out: str | Path) -> Merged:
    """Join the rows of ``folders`` in the folder ``out``, which may hold some of them already."""
    target = Store(checked_folder(out))
    sources = [
        Store(folder)
        for folder in dict.fromkeys(map(Path, folders))
        if folder.resolve() != target.folder.resolve()
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
        write_summary(target, record.spec.cost, record.spec.bit_cost)
        merged.missing = _missing(target, record)
    return merged


def _put_aside(target: Store) -> list[Problem]:
    """Put everything aside that is no part of the target; leave alone what cannot be judged."""
    problems = list(target.problems())
    target.put_aside([problem for problem in problems if problem.redo])
    return problems


def _common_record(stores: list[Store]) -> Record:
    """The sweep.json of folders that belong together."""
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
    """All of a record that rows depend on. The costs are no part of that."""
    cells, spec = record.cells.values(), record.spec
    return {
        **{name: getattr(record, name) for name in ONE_FOR_ALL},
        **{name: sorted({getattr(cell, name) for cell in cells}) for name in CELL},
        "schedule": sorted(spec.schedule),
        "trials": spec.trials,
        "target_rse": spec.target_rse,
        "cells": sorted(record.cells),
    }


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _take(target: Store, part: Part) -> int:
    """Add what ``target`` lacks of a part; how many parts that made."""
    lacking: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for name in part.schedules:
        gaps = []
        for first, end, holder in target.pieces(part.cell, name, part.first, part.end):
            if holder is None:
                gaps.append((first, end))
            elif not _same_rows(part, holder, name, first, end):
                raise InputError(
                    f"{part.path}: other rows than in {holder.path} for trials "
                    f"{first} to {end - 1}, schedule {name}; one of the two is wrong"
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
    record = target.record()
    for ranges, names in lacking.items():
        for first, end in ranges:
            table = rows_of(part, names, first, end)
            target.write_part(
                part.cell, tuple(names), first, end - first, table, record.spec, record.instances
            )
    return sum(map(len, lacking))


def _same_rows(one: Part, other: Part, schedule: str, first: int, end: int) -> bool:
    """Whether two parts agree; equal contents need no look at the rows."""
    if one.content == other.content:
        return True
    return bool(rows_of(one, [schedule], first, end).equals(rows_of(other, [schedule], first, end)))


def _missing(target: Store, record: Record) -> int:
    """Rows of the spec that no folder has; with a target, none is known to be missing."""
    if record.spec.target_rse is not None:
        return 0
    return sum(
        end - first
        for cell in record.cells.values()
        for name in record.spec.schedule
        for first, end in target.missing(cell, name, record.spec.trials)
    )
