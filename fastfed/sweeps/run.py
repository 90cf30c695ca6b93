"""Run a sweep: what its folder does not hold yet is computed and written, part by part.

`iterate` yields finished parts, so that whoever runs it can show progress and leave at any time.
What a folder already holds is never computed again; what would not fit with it is rejected.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fastfed.errors import InputError
from fastfed.files import checked_folder
from fastfed.problem.instance import Instance
from fastfed.sweeps import manifest
from fastfed.sweeps.grid import Grid, Shard
from fastfed.sweeps.manifest import Record
from fastfed.sweeps.planner import Planner, Progress
from fastfed.sweeps.spec import Spec
from fastfed.sweeps.store import Part, Problem, Store
from fastfed.sweeps.summary_file import write_summary
from fastfed.sweeps.task import Done, Executor
from fastfed.sweeps.threads import Threads
from fastfed.validation import checked_threads, checked_whole


@dataclass
class Failure:
    """A task that raised: where, what, and how to see it again."""

    where: str
    error: str
    replay: str

    def __str__(self) -> str:
        return f"{self.where}: {self.error}; see it again with: {self.replay}"


@dataclass
class Run:
    """A sweep under way: what it reports besides its parts."""

    store: Store
    grid: Grid
    progress: Progress
    failures: list[Failure] = field(default_factory=list)
    damaged: list[Problem] = field(default_factory=list)


def iterate(
    spec: Spec,
    out: Path,
    *,
    executor: Executor | None = None,
    threads: int | None = None,
    shard: Shard | None = None,
    part_size: int | None = None,
) -> Iterator[tuple[Run, Part | None]]:
    """Run what the folder does not hold yet; yield each part when it is safely written, and
    (run, None) now and then in between. Nothing is lost by leaving early.

    ``part_size`` is the number of trials in a part; None: as many as take a few seconds."""
    if shard is not None and spec.target_rse is not None:
        raise InputError(
            f"shard {shard.index}/{shard.count} with target_rse: a target needs all "
            "trials of a cell, a shard has only its share; leave one of them out"
        )
    if part_size is not None:
        part_size = checked_whole("part_size", part_size, 1, 2**32)
    grid = Grid.lay_out(spec)
    folder = checked_folder(out)
    if executor is not None and not folder.exists():  # else there may be nothing left to run
        executor.refuse_early()
    with Store(folder).lock() as store:
        before = store.record_if_any()
        if before is not None:
            reject_other_sweeps(store, before, grid)
        run = Run(store, grid, Progress(), damaged=put_aside(store))
        planner = Planner(grid, store, shard, part_size)
        run.progress = planner.progress
        store.write_record(manifest.record_of(grid, before))
        yield run, None
        if not planner.finished:
            yield from _run(run, planner, executor or Threads(checked_threads(threads)))
        write_summary(store, spec.costs, spec.bit_costs)


def _run(run: Run, planner: Planner, executor: Executor) -> Iterator[tuple[Run, Part | None]]:
    spec = manifest.SpecRecord.of(run.grid.spec)
    instances = manifest.custom_instances(run.grid)
    for done in executor.run(planner):
        if done is None:
            yield run, None
            continue
        task = done.task
        if done.table is None:
            run.failures.append(_failure(done, run.grid))
            continue
        yield (
            run,
            run.store.write_part(
                task.cell, task.schedules, task.first, task.count, done.table, spec, instances
            ),
        )


def reject_other_sweeps(store: Store, before: Record, grid: Grid) -> None:
    """A folder holds one seed and one way to compute rows, and one instance per name."""
    spec = grid.spec
    for name in manifest.ONE_FOR_ALL:
        old, new = getattr(before, name), getattr(spec, name)
        if old != new:
            raise InputError(
                f"{store.folder}: holds rows with {name} {old}, this sweep has "
                f"{name} {new}; give it another --out"
            )
    known = {cell.instance: cell.digest for cell in before.cells.values()}
    for cell, _ in grid.cells:
        if known.get(cell.instance, cell.digest) != cell.digest:
            raise InputError(
                f"{store.folder}: holds rows of another instance called "
                f"{cell.instance!r} (other means or rewards); give this sweep "
                "another --out, or the instance another name"
            )


def put_aside(store: Store) -> list[Problem]:
    """Put aside damaged parts, whose trials are done again, and parts that repeat others; what
    else stands among the parts is not ours to move."""
    problems = list(store.problems())
    for problem in problems:
        if not problem.redo:
            raise InputError(str(problem))
    store.put_aside(problems)
    return problems


def _failure(done: Done, grid: Grid) -> Failure:
    task = done.task
    cell = task.cell
    source = next(
        (
            one
            for one in grid.spec.instances
            if isinstance(one, str) and Instance.load(one).name == cell.instance
        ),
        cell.instance,
    )
    again = [
        "fastfed",
        "replay",
        source,
        "--schedule",
        task.schedules[0],
        "--delta",
        repr(cell.delta),
        "--sigma",
        repr(cell.sigma),
        "--seed",
        str(cell.seed),
        "--trial",
        str(task.first),
    ]
    if cell.max_steps is not None:
        again += ["--max-steps", str(cell.max_steps)]
    return Failure(
        f"cell {cell} (schedules {', '.join(task.schedules)}), trials {task.first} to "
        f"{task.first + task.count - 1}",
        f"{type(done.error).__name__}: {done.error}",
        shlex.join(again),
    )
