"""Rows that were computed in memory, kept in a sweep's folder as if a sweep had written them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fastfed.errors import InputError
from fastfed.files import checked_folder
from fastfed.problem.instance_files import known_by_name
from fastfed.radius import NAMES
from fastfed.sweeps import manifest
from fastfed.sweeps.grid import Cell, Grid
from fastfed.sweeps.run import put_aside, reject_other_sweeps
from fastfed.sweeps.spec import Spec
from fastfed.sweeps.store import Store
from fastfed.sweeps.summary_file import write_summary
from fastfed.sweeps.task import plain_table

if TYPE_CHECKING:
    from fastfed.engine.job import Job
    from fastfed.engine.rows import Block


def keep(
    folder: str | Path, cells: Sequence[Cell], jobs: Sequence[Job], blocks: Sequence[Block]
) -> None:
    """Write what a folder does not hold yet of these rows: one job, one block a cell."""
    job, cell, block = jobs[0], cells[0], blocks[0]
    if job.radius.function is not None:
        raise InputError(
            f"radius {job.radius}: a folder outlives the process and knows radii by "
            f"name only ({', '.join(NAMES)}), so rows of your own radius cannot be "
            "kept in one, nor checked; write them with "
            "result.frame.write_parquet(file)"
        )
    name = job.instance.name
    spec = Spec(
        instances=(name if known_by_name(name) else job.instance,),
        deltas=tuple(one.delta for one in cells),
        schedules=tuple(map(str, job.schedules)),
        trials=block.first + block.trials,
        seed=cell.seed,
        engine=cell.engine,
        sigmas=(cell.sigma,),
        max_steps=cell.max_steps,
        radii=(cell.radius,),
        goals=(cell.goal,),
        uplinks=(cell.uplink,),
    )
    with Store(checked_folder(folder)).lock() as store:
        before = store.record_if_any()
        if before is not None:  # costs are no part of rows: the folder keeps its own
            spec = replace(
                spec, costs=tuple(before.spec.cost), bit_costs=tuple(before.spec.bit_cost)
            )
        grid = Grid(spec, [(one, job.instance) for one in cells])
        if before is not None:
            reject_other_sweeps(store, before, grid)
        put_aside(store)
        store.write_record(manifest.record_of(grid, before))
        for one, its_job, its_block in zip(cells, jobs, blocks, strict=True):
            _write_missing(store, one, its_job, its_block, spec)
        write_summary(store, spec.costs, spec.bit_costs)


def _write_missing(store: Store, cell: Cell, job: Job, block: Block, spec: Spec) -> None:
    import polars as pl

    frame = job.frame(block)
    by_gap: dict[tuple[int, int], list[str]] = {}
    for name in spec.schedules:
        for first, end, part in store.pieces(cell, name, block.first, block.first + block.trials):
            if part is None:
                by_gap.setdefault((first, end), []).append(name)
    record = manifest.SpecRecord.of(spec)
    instances = manifest.custom_instances(Grid(spec, [(cell, job.instance)]))
    for (first, end), names in by_gap.items():
        rows = frame.filter(
            pl.col("trial").is_between(first, end - 1), pl.col("schedule").is_in(names)
        )
        store.write_part(
            cell, tuple(names), first, end - first, plain_table(rows), record, instances
        )
