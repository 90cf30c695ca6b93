"""A grid of cells (instance, delta, confidence sigma), its trials, and a folder that fills up.

`iterate` is the engine: it yields finished parts, so that a notebook or the command line can show
its own progress. `sweep` runs it to the end and returns the summary. What a folder already holds
is never computed again; what would not fit with it is refused.
"""

from __future__ import annotations

import math
import re
import shlex
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastfed.errors import InputError
from fastfed.problem.instance import Instance
from fastfed.problem.limits import most_steps, refuse_endless, resolve_sigma
from fastfed.statistics.summary import (
    COLUMNS,
    Sample,
    checked_costs,
    summary_rows,
    to_frame,
    yardstick_of,
)
from fastfed.sweeps.dask import Dask
from fastfed.sweeps.executors import Done, Executor, Task, Threads
from fastfed.sweeps.spec import DEFAULT_COSTS, DEFAULT_DELTAS, Spec, costs_of, make_spec
from fastfed.sweeps.store import ROWS, Cell, Part, Store, spec_hash, versions
from fastfed.validation import checked_threads, checked_whole

if TYPE_CHECKING:
    import polars as pl

_PART_SECONDS = 2.0  # what a part aims at: little is lost by a kill, and files stay few
_LAST_SECONDS = 0.3  # the smallest worth a file
_FIRST_PART = 250  # trials, before the speed is known
_MOST_ROWS = 500_000  # in one part
_FIRST_STAGE = 1_000  # trials after which a target is looked at for the first time


@dataclass
class Progress:
    """Where a sweep stands: handed out with every part."""

    trials_done: int = 0
    trials_planned: int = 0
    pulls: int = 0
    cell: str = ""
    workers: int = 1
    in_flight: int = 0


@dataclass
class Grid:
    """The spec with its instances loaded and its cells laid out."""

    spec: Spec
    cells: list[tuple[Cell, Instance]] = field(default_factory=list)

    @staticmethod
    def lay_out(spec: Spec) -> Grid:
        grid = Grid(spec)
        names: dict[str, str] = {}
        seen: set[Cell] = set()
        for source in spec.instances:
            instance = source if isinstance(source, Instance) else Instance.load(source)
            if names.setdefault(instance.name, instance.digest) != instance.digest:
                raise InputError(f"two instances are called {instance.name!r}: names must differ")
            for delta in spec.deltas:
                for sigma in spec.sigmas:
                    cell = Cell(instance.name, instance.digest, delta,
                                resolve_sigma(instance, sigma),
                                spec.seed, spec.engine, spec.max_steps)
                    if spec.max_steps is None:
                        refuse_endless(instance, delta, cell.sigma)
                    else:
                        checked_whole("max_steps", spec.max_steps, 1, most_steps(instance))
                    if cell not in seen:
                        seen.add(cell)
                        grid.cells.append((cell, instance))
        return grid


@dataclass(frozen=True)
class Shard:
    """The index-th of count equal shares of every cell: a sweep split without a scheduler."""

    index: int  # from 1
    count: int

    @staticmethod
    def parse(text: str) -> Shard:
        match = re.fullmatch(r"\s*([0-9]{1,9})\s*/\s*([0-9]{1,9})\s*", str(text))
        if match is None:
            raise InputError(f"shard {text!r}: must be I/N, as in 3/16 for the third of sixteen")
        shard = Shard(int(match[1]), int(match[2]))
        if not 1 <= shard.index <= shard.count:
            raise InputError(f"shard {text!r}: shards of {shard.count} count from 1 to "
                             f"{shard.count}" if shard.count else
                             f"shard {text!r}: there must be at least one shard, as in 1/1")
        return shard

    def share(self, cell: Cell, trials: int) -> tuple[int, int]:
        """This shard's trials [first, end) of a cell; the shares of all shards are disjoint and
        cover it. Who gets the first differs between cells, to be fair if trials are few."""
        turn = (self.index + zlib.crc32(cell.id.encode())) % self.count
        return trials * turn // self.count, trials * (turn + 1) // self.count


class _Planner:
    """Hands out what is missing, cell by cell, in pieces that follow the measured speed."""

    def __init__(self, grid: Grid, store: Store, shard: Shard | None = None) -> None:
        self.spec, self.store, self.shard = grid.spec, store, shard
        self.progress = Progress()
        self._cells = list(grid.cells)
        self._gaps: deque[tuple[Cell, Instance, tuple[str, ...], int, int]] = deque()
        self._left = 0  # trials in the gaps
        self._goal: dict[Cell, int] = {}
        self._outstanding: Counter[Cell] = Counter()
        self._rate: dict[str, float] = {}  # trials a second and worker, by instance
        if self.spec.target_rse is None:
            for cell, instance in self._cells:
                self._queue(cell, instance, self.spec.trials)
            self._cells = []

    @property
    def finished(self) -> bool:
        """Whether there is nothing to do from the start."""
        return not (self._gaps or self._cells)

    def next_task(self, workers: int) -> Task | None:
        self.progress.workers = workers
        while not self._gaps:
            # with a target, the size of a cell's next stage hangs on the results of this one
            idle = next((one for one in self._cells if not self._outstanding[one[0]]), None)
            if idle is None:
                return None
            self._next_stage(*idle)
        cell, instance, schedules, first, end = self._gaps[0]
        count = min(self._size(instance, workers), end - first, _MOST_ROWS // len(schedules))
        if end - first < 1.5 * count:  # no crumbs
            count = min(end - first, _MOST_ROWS // len(schedules))
        if first + count == end:
            self._gaps.popleft()
        else:
            self._gaps[0] = (cell, instance, schedules, first + count, end)
        self._left -= count
        self._outstanding[cell] += 1
        self.progress.cell = str(cell)
        self.progress.in_flight += 1
        return Task(cell, instance, schedules, first, count)

    def _size(self, instance: Instance, workers: int) -> int:
        """How many trials the next part should have: a few seconds' worth, less near the end, so
        that no worker waits long for another."""
        rate = self._rate.get(instance.digest)
        if rate is None:
            return _FIRST_PART
        share = min(rate * _PART_SECONDS, self._left / workers)
        return max(1, math.ceil(max(share, rate * _LAST_SECONDS)))

    def record(self, done: Done) -> None:
        self._outstanding[done.task.cell] -= 1
        self.progress.in_flight -= 1
        if done.error is None:
            rate = done.task.count / max(done.seconds, 1e-6)
            before = self._rate.get(done.task.instance.digest, rate)
            self._rate[done.task.instance.digest] = 0.5 * (before + rate)
        self.progress.trials_done += done.task.count
        self.progress.pulls += done.pulls

    def _queue(self, cell: Cell, instance: Instance, trials: int) -> None:
        """Queue what is missing of a cell's first ``trials`` trials: schedules that miss the same
        ranges run together, on the same walks."""
        by_gaps: dict[tuple[tuple[int, int], ...], list[str]] = {}
        for name in self.spec.schedules:
            gaps = tuple(self.store.missing(cell, name, trials))
            if self.shard is not None:
                low, high = self.shard.share(cell, trials)
                gaps = tuple((max(first, low), min(end, high)) for first, end in gaps
                             if max(first, low) < min(end, high))
            if gaps:
                by_gaps.setdefault(gaps, []).append(name)
        for gaps, names in by_gaps.items():
            for first, end in gaps:
                self._gaps.append((cell, instance, tuple(names), first, end))
                self._left += end - first
                self.progress.trials_planned += end - first

    def _next_stage(self, cell: Cell, instance: Instance) -> None:
        """Grow a cell whose target is not reached; drop it if it is finished."""
        goal = self._goal.get(cell, 0)
        if goal >= self.spec.trials or (goal and self._precise(cell, goal)):
            self._cells.remove((cell, instance))
            return
        goal = min(self.spec.trials, max(_FIRST_STAGE, 2 * goal))
        self._goal[cell] = goal
        self._queue(cell, instance, goal)

    def _precise(self, cell: Cell, trials: int) -> bool:
        """Whether the first ``trials`` trials alone reach the target: no matter who ran them."""
        assert self.spec.target_rse is not None
        for name in self.spec.schedules:
            sample = _sample(self.store, cell, name, trials)
            if sample is None:
                return False
            for cost in self.spec.costs:
                total = sample.total(cost)
                mean = float(total.mean())
                if len(total) < 2 or mean == 0:
                    continue
                if float(total.std(ddof=1)) / math.sqrt(len(total)) / mean >= self.spec.target_rse:
                    return False
        return True


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
    damaged: list[Path] = field(default_factory=list)


def iterate(
    spec: Spec, out: Path, *, executor: Executor | None = None, threads: int | None = None,
    shard: Shard | None = None,
) -> Iterator[tuple[Run, Part | None]]:
    """Run what the folder does not hold yet; yield each part when it is safely written, and
    (run, None) now and then in between. Nothing is lost by leaving early."""
    if shard is not None and spec.target_rse is not None:
        raise InputError(f"shard {shard.index}/{shard.count} with target_rse: a target needs all "
                         "trials of a cell, a shard has only its share; leave one of them out")
    grid = Grid.lay_out(spec)
    store = Store(out)
    with store.lock():
        _refuse_strangers(store, grid)
        _refuse_stray_parts(store, spec)
        run = Run(store, grid, Progress(), damaged=list(store.unreadable))
        for path in run.damaged:
            if path.is_dir():
                raise InputError(f"{path}: a folder among the trial rows; move it away")
        for path in run.damaged:  # done again; the file itself is put aside, not lost
            path.replace(path.with_name(f"{path.name}.damaged"))
        planner = _Planner(grid, store, shard)
        run.progress = planner.progress
        _record(store, grid)
        yield run, None
        if not planner.finished:
            runner = executor or Threads(checked_threads(threads))
            content = spec.to_dict()
            for done in runner.run(planner):
                if done is None:
                    yield run, None
                    continue
                task = done.task
                if done.table is None:
                    run.failures.append(_failure(done, grid))
                    continue
                yield run, store.write_part(task.cell, task.schedules, task.first, task.count,
                                            done.table, content)
        _finish(store, grid)


def sweep_parts(
    *, instances: Sequence[str | Instance] | str | Instance = ("synthetic",),
    deltas: Sequence[float] = DEFAULT_DELTAS, costs: Sequence[float] = DEFAULT_COSTS,
    schedules: Sequence[str] | None = None, periods: Sequence[int] | None = None,
    trials: int = 10_000, seed: int = 0, out: str | Path = "results", threads: int | None = None,
    engine: str = "auto", sigma: float | str | Sequence[float | str] | None = None,
    max_steps: int | None = None, target_rse: float | None = None,
    client: Any = None, shard: str | None = None,
) -> Iterator[tuple[Run, Part | None]]:
    """`sweep`, part by part: yields (run, part) when a part is written, and (run, None) now and
    then in between; ``run.progress`` says where things stand, ``run.failures`` what went wrong.

    ``client``, a dask.distributed.Client, runs the trials on its cluster; ``shard``, as in
    "3/16", only that share of them."""
    spec = make_spec({
        "instance": [instances] if isinstance(instances, str | Instance) else list(instances),
        "delta": deltas, "cost": costs, "schedule": schedules, "period": periods,
        "trials": trials, "seed": seed, "engine": engine, "sigma": sigma,
        "max_steps": max_steps, "target_rse": target_rse,
    })
    return iterate(spec, Path(out), threads=threads,
                   executor=None if client is None else Dask(client),
                   shard=None if shard is None else Shard.parse(shard))


def sweep(
    *, out: str | Path = "results", costs: Sequence[float] = DEFAULT_COSTS, **options: Any
) -> pl.DataFrame:
    """Run a sweep into the folder ``out`` and return its summary: `fastfed sweep` in Python.

    Takes the arguments of `sweep_parts`.
    """
    failures: list[Failure] = []
    for run, _ in sweep_parts(out=out, costs=costs, **options):
        failures = run.failures
    if failures:
        raise RuntimeError("\n".join(map(str, failures)))
    return stored_summary(Path(out), costs)


def stored_summary(out: Path, costs: Sequence[float] | None = None) -> pl.DataFrame:
    """The summary of everything in a sweep's folder, from its rows alone."""
    import polars as pl

    store = Store(out)
    manifest = store.manifest()
    wanted = costs_of(manifest["spec"]) if costs is None else checked_costs(costs)
    if manifest.get("summary_of") == _summary_key(store, wanted) and store.summary_path.exists():
        with suppress(pl.exceptions.PolarsError, OSError):
            kept = pl.read_parquet(store.summary_path)
            if kept.columns == list(COLUMNS):
                return kept
    return _summarise(store, wanted)


def _summarise(store: Store, costs: Sequence[float]) -> pl.DataFrame:
    held: dict[Cell, dict[str, None]] = {}
    for part in store.parts():
        held.setdefault(part.cell, {}).update(dict.fromkeys(part.schedules))
    with suppress(InputError):  # a damaged record costs the order of the cells, no more
        listed = {cell: place for place, cell in enumerate(store.recorded_cells())}
        held = dict(sorted(held.items(), key=lambda item: listed.get(item[0], len(listed))))
    rows: list[dict[str, object]] = []
    for cell in held:
        samples = _Samples(store, cell)
        for name in sorted(held[cell], key=_schedule_order):
            sample = samples[name]
            head = {"instance": cell.instance, "schedule": name, "delta": cell.delta,
                    "sigma": cell.sigma}
            rows += [{**head, **row} for row in
                     summary_rows(sample, samples.yardstick, costs)]
    return to_frame(rows)


class _Samples:
    """Samples of a cell, one schedule at a time, the yardstick kept."""

    def __init__(self, store: Store, cell: Cell) -> None:
        self._store, self._cell = store, cell
        self.yardstick = yardstick_of({
            name: sample for name in ("fedelim0", "periodic:1")
            if (sample := _sample(store, cell, name)) is not None
        })

    def __getitem__(self, name: str) -> Sample:
        sample = _sample(self._store, self._cell, name)
        assert sample is not None
        return sample


def _sample(store: Store, cell: Cell, name: str, until: int | None = None) -> Sample | None:
    columns = store.samples(cell, name, until)
    if not len(columns["trial"]):
        return None
    return Sample(**columns)


def _schedule_order(name: str) -> tuple[int, float, str]:
    kind, _, value = name.partition(":")
    rank = {"fedelim": 0, "fedelim0": 1, "periodic": 2, "exponential": 3}.get(kind, 4)
    return rank, float(value) if kind in ("periodic", "exponential") else 0.0, name


def _summary_key(store: Store, costs: Sequence[float]) -> str:
    return spec_hash({"parts": sorted(p.path.name for p in store.parts()), "costs": list(costs)})


def _refuse_strangers(store: Store, grid: Grid) -> None:
    """A folder holds one seed and one way to compute rows, and one instance per name."""
    if not store.manifest_path.exists():
        if any(store.trials.glob("*.parquet")):
            raise InputError(f"{store.folder}: holds trial rows but no sweep.json; give another "
                             "--out, or remove its trials/")
        return
    before = store.manifest()
    spec = grid.spec
    for name, old, new in (
        ("seed", before.get("seed"), spec.seed),
        ("engine", before.get("engine"), spec.engine),
        ("max_steps", before.get("max_steps"), spec.max_steps),
        ("version of the rows", before.get("rows"), ROWS),
    ):
        if old != new:
            raise InputError(f"{store.folder}: holds rows with {name} {old}, this sweep has "
                             f"{name} {new}; give it another --out")
    known = {cell.instance: cell.digest for cell in store.recorded_cells()}
    for cell, _ in grid.cells:
        if known.get(cell.instance, cell.digest) != cell.digest:
            raise InputError(f"{store.folder}: holds rows of another instance called "
                             f"{cell.instance!r} (other means or rewards); give this sweep "
                             "another --out, or the instance another name")


def _refuse_stray_parts(store: Store, spec: Spec) -> None:
    for part in store.parts():
        if (part.cell.seed, part.cell.engine, part.cell.max_steps) != (
                spec.seed, spec.engine, spec.max_steps):
            raise InputError(f"{part.path}: rows of another sweep (seed {part.cell.seed}, engine "
                             f"{part.cell.engine}, max_steps {part.cell.max_steps}); move the file "
                             "away")


def _record(store: Store, grid: Grid, summary_of: str | None = None) -> None:
    """Write sweep.json: the latest spec, every cell that the folder has seen, and the instances
    that no name brings back."""
    from fastfed.problem.instance_files import known_by_name, to_toml

    cells = {}
    instances: dict[str, str] = {}
    if store.manifest_path.exists():
        recorded = store.manifest().get("instances")
        instances = dict(recorded) if isinstance(recorded, dict) else {}
        cells = {cell.id: {"id": cell.id, **vars(cell)} for cell in store.recorded_cells()}
    for cell, instance in grid.cells:
        cells.setdefault(cell.id, {"id": cell.id, **vars(cell)})
        if not known_by_name(instance.name):
            instances[instance.name] = to_toml(instance)
    spec = grid.spec.to_dict()
    content = {
        "format": 1, "rows": ROWS, "spec": spec, "spec_hash": spec_hash(spec),
        "seed": grid.spec.seed, "engine": grid.spec.engine, "max_steps": grid.spec.max_steps,
        "versions": versions(), "cells": list(cells.values()),
        "instances": instances, "summary_of": summary_of,
    }
    if store.manifest_path.exists():
        before = store.manifest()
        if summary_of is None:
            content["summary_of"] = before.get("summary_of")
        if before == content:
            return
    store.write_manifest(content)


def _finish(store: Store, grid: Grid) -> None:
    key = write_summary(store, grid.spec.costs)
    if store.manifest().get("summary_of") != key:
        _record(store, grid, key)


def write_summary(store: Store, costs: Sequence[float]) -> str:
    """Write summary.parquet unless it is up to date; what sweep.json should call it."""
    from fastfed.sweeps.store import replacing

    key = _summary_key(store, costs)
    if store.manifest().get("summary_of") != key or not store.summary_path.exists():
        frame = _summarise(store, costs)
        with replacing(store.summary_path) as file:
            frame.write_parquet(file, compression="zstd")
    return key


def _failure(done: Done, grid: Grid) -> Failure:
    task = done.task
    cell = task.cell
    source = next((one for one in grid.spec.instances if isinstance(one, str)
                   and Instance.load(one).name == cell.instance), cell.instance)
    again = ["fastfed", "replay", source, "--schedule", task.schedules[0], "--delta",
             repr(cell.delta), "--sigma", repr(cell.sigma), "--seed", str(cell.seed),
             "--trial", str(task.first)]
    if cell.max_steps is not None:
        again += ["--max-steps", str(cell.max_steps)]
    return Failure(
        f"cell {cell} (schedules {', '.join(task.schedules)}), trials {task.first} to "
        f"{task.first + task.count - 1}",
        f"{type(done.error).__name__}: {done.error}",
        shlex.join(again),
    )
