"""Save rows that were computed in memory in a folder, as a sweep would have written them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fastfed.errors import InputError
from fastfed.files import checked_folder
from fastfed.model.instance_files import known_by_name
from fastfed.model.radii import Radius
from fastfed.model.setting import Setting
from fastfed.model.spec import Spec
from fastfed.simulation.rows import plain_table
from fastfed.storage import manifest
from fastfed.storage.folder import Store
from fastfed.storage.manifest import Record
from fastfed.storage.part_file import PartProblem
from fastfed.storage.summary_cache import write_summary
from fastfed.version import ROWS

if TYPE_CHECKING:
    from fastfed.simulation.job import Job
    from fastfed.simulation.rows import Block


def save(folder: str | Path, jobs: Sequence[Job], blocks: Sequence[Block]) -> None:
    """Write the rows of jobs that a folder does not hold yet, one block a job."""
    job, block = jobs[0], blocks[0]
    settings, setting = [one.setting for one in jobs], job.setting
    if not hasattr(setting.radius, "family"):
        raise InputError(
            f"radius {setting.radius}: a folder outlives the process and knows radii by "
            f"name only ({', '.join(Radius.families)}), so rows of your own radius cannot be "
            "saved in one; write them with "
            "result.frame.write_parquet(file)"
        )
    name = setting.instance.name
    spec = Spec.of(
        {
            "instance": [name if known_by_name(name) else setting.instance],
            "delta": [one.delta for one in settings],
            "schedule": job.schedules,
            "trials": block.first + block.trials,
            "seed": setting.seed,
            "engine": setting.engine,
            "sigma": [setting.sigma],
            "max_steps": setting.max_steps,
            **setting.choices,
        }
    )
    with Store(checked_folder(folder)).lock() as store:
        before = store.record_if_any()
        if before is not None:  # costs are no part of rows: the folder keeps its own
            spec = replace(spec, cost=before.spec.cost, bit_cost=before.spec.bit_cost)
            reject_other_sweeps(store, before, settings)
        put_aside(store)
        store.write_record(manifest.record_of(spec, settings, before))
        for its_job, its_block in zip(jobs, blocks, strict=True):
            _write_missing(store, its_job, its_block, spec)
        write_summary(store)


def _write_missing(store: Store, job: Job, block: Block, spec: Spec) -> None:
    import polars as pl

    frame, cell = job.frame(block), job.setting.key
    gaps = store.by_range(cell, spec.schedule, block.first, block.first + block.trials)
    for (first, end), names in gaps.items():
        rows = frame.filter(
            pl.col("trial").is_between(first, end - 1), pl.col("schedule").is_in(names)
        )
        store.write_part(cell, tuple(names), first, end - first, plain_table(rows), spec)


def reject_other_sweeps(store: Store, before: Record, settings: Sequence[Setting]) -> None:
    """Refuse settings that do not fit a folder.

    A folder holds one version of the rows, one seed, one engine, one max_steps, and one instance
    for each name.
    """
    if before.rows != ROWS:
        raise InputError(
            f"{store.folder}: holds version {before.rows} of the rows, this fastfed makes version "
            f"{ROWS}; give it another --out, or use fastfed "
            f"{before.versions.get('fastfed', 'of then')}"
        )
    for name in manifest.ONE_FOR_ALL:
        old, new = getattr(before, name), getattr(settings[0], name)
        if old != new:
            raise InputError(
                f"{store.folder}: holds rows with {name} {old}, this sweep has "
                f"{name} {new}; give it another --out"
            )
    known = {cell.instance: cell.digest for cell in before.cells.values()}
    for cell in (one.key for one in settings):
        if known.get(cell.instance, cell.digest) != cell.digest:
            raise InputError(
                f"{store.folder}: holds rows of another instance called "
                f"{cell.instance!r} (other means or rewards); give this sweep "
                "another --out, or the instance another name"
            )


def put_aside(store: Store) -> list[PartProblem]:
    """Set aside damaged parts, whose trials are computed again, and parts that repeat others.

    Any other file among the parts is refused, because it is not ours to move.
    """
    problems = list(store.problems())
    for problem in problems:
        if not problem.redo:
            raise InputError(str(problem))
    store.put_aside(problems)
    return problems
