"""A grid of cells (instance, delta, confidence sigma), its trials, and a folder that fills up.

`iterate` is the engine: it yields finished parts, so that a notebook or the command line can show
its own progress. `sweep` runs it to the end and returns the summary. What a folder already holds
is never computed again; what would not fit with it is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastfed.confidence import MAX_STEPS
from fastfed.errors import InputError, nearest
from fastfed.executors import Done, Executor, Task, Threads
from fastfed.instance import Instance
from fastfed.store import ROWS, Cell, Part, Store, spec_hash, versions
from fastfed.summary import Sample, checked_costs, summary_rows, to_frame, yardstick_of

if TYPE_CHECKING:
    import polars as pl

DEFAULT_DELTAS = (0.1, 0.05, 0.01, 0.005, 0.001)
DEFAULT_COSTS = (0.0, 10.0, 100.0)
DEFAULT_SCHEDULES = ("fedelim", "fedelim0")
DEFAULT_PERIODS = (5, 1, 10, 100, 1_000, 10_000, 100_000)
_PART_SECONDS = 2.0  # what a part aims at: little is lost by a kill, and files stay few
_LAST_SECONDS = 0.3  # the smallest worth a file
_FIRST_PART = 250  # trials, before the speed is known
_MOST_ROWS = 500_000  # in one part
_FIRST_STAGE = 1_000  # trials after which a target is looked at for the first time


@dataclass(frozen=True)
class Spec:
    """The whole grid. Instances are given by name or file, or as objects."""

    instances: tuple[str | Instance, ...] = ("synthetic",)
    deltas: tuple[float, ...] = DEFAULT_DELTAS
    costs: tuple[float, ...] = DEFAULT_COSTS
    schedules: tuple[str, ...] = (*DEFAULT_SCHEDULES, *(f"periodic:{h}" for h in DEFAULT_PERIODS))
    trials: int = 10_000
    seed: int = 0
    engine: str = "auto"
    sigmas: tuple[float | None, ...] = (None,)
    max_steps: int | None = None
    target_rse: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in a spec file: what `from_dict` reads back."""
        named = [one if isinstance(one, str) else _inline(one) for one in self.instances]
        content: dict[str, Any] = {
            "instance": named, "delta": list(self.deltas), "cost": list(self.costs),
            "schedule": list(self.schedules), "trials": self.trials, "seed": self.seed,
            "engine": self.engine, "sigma": [s for s in self.sigmas if s is not None],
            "max_steps": self.max_steps, "target_rse": self.target_rse,
        }
        return {key: value for key, value in content.items() if value not in (None, [])}


SPEC_KEYS = ("instance", "delta", "cost", "schedule", "period", "trials", "seed", "engine",
             "sigma", "max_steps", "target_rse")


def make_spec(options: dict[str, Any]) -> Spec:
    """A spec from the keys of a spec file or the options of the command line, all checked."""
    from fastfed.simulate import (
        checked_delta,
        checked_engine,
        checked_sigma,
        checked_whole,
        parse_schedules,
    )

    unknown = sorted(set(options) - set(SPEC_KEYS))
    if unknown:
        raise InputError(f"unknown key {unknown[0]!r}{nearest(unknown[0], SPEC_KEYS)} in the spec: "
                         f"known are {', '.join(SPEC_KEYS)}")
    given = {key: value for key, value in options.items() if value is not None}
    names = _texts(given.get("schedule"))
    periods = _texts(given.get("period"))
    if names is None and periods is None:
        periods = [str(h) for h in DEFAULT_PERIODS]
    if names is None:
        names = list(DEFAULT_SCHEDULES)
    schedules = [str(one) for one in parse_schedules(
        [*names, *(f"periodic:{h}" for h in periods or ())])]
    deltas = _distinct("delta", [checked_delta(d) for d in _list(given.get("delta",
                                                                           DEFAULT_DELTAS))])
    sigmas = [checked_sigma(s) for s in _list(given.get("sigma", ()))]
    target = given.get("target_rse")
    if target is not None:
        try:
            target = float(target)
        except (TypeError, ValueError):
            raise InputError(f"target_rse = {target!r}: must be a number") from None
        if not 0 < target < 1:
            raise InputError(f"target_rse = {target!r}: must lie strictly between 0 and 1, as "
                             "in 0.002")
    instances = _list(given.get("instance", ("synthetic",)))
    if not instances:
        raise InputError("no instances: give at least one, as in synthetic")
    most = given.get("max_steps")
    return Spec(
        instances=tuple(_from_inline(one) for one in instances),
        deltas=tuple(deltas),
        costs=tuple(checked_costs(_list(given.get("cost", DEFAULT_COSTS)))),
        schedules=tuple(schedules),
        trials=checked_whole("trials", given.get("trials", 10_000), 1, 2**32),
        seed=checked_whole("seed", given.get("seed", 0), 0, 2**64 - 1),
        engine=checked_engine(given.get("engine", "auto")),
        sigmas=tuple(_distinct("sigma", sigmas)) or (None,),
        max_steps=None if most is None else checked_whole("max_steps", most, 1, MAX_STEPS),
        target_rse=target,
    )


def read_spec(path: Path) -> dict[str, Any]:
    """The keys of a spec file: TOML, or the sweep.json of an earlier sweep."""
    import json
    import tomllib

    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text") from None
    except ValueError as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise InputError(f"{path}: not valid {kind}: {error}") from None
    if path.suffix == ".json":
        content = content.get("spec") if isinstance(content, dict) else None
    if not isinstance(content, dict):
        raise InputError(f"{path}: no sweep's spec in it")
    unknown = sorted(set(content) - set(SPEC_KEYS))
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r}{nearest(unknown[0], SPEC_KEYS)}; "
                         f"known are {', '.join(SPEC_KEYS)}")
    return content


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
        for source in spec.instances:
            instance = source if isinstance(source, Instance) else Instance.load(source)
            if names.setdefault(instance.name, instance.digest) != instance.digest:
                raise InputError(f"two instances are called {instance.name!r}: names must differ")
            for delta in spec.deltas:
                for sigma in spec.sigmas:
                    cell = Cell(instance.name, instance.digest, delta,
                                instance.default_sigma if sigma is None else sigma,
                                spec.seed, spec.engine, spec.max_steps)
                    if cell not in [one for one, _ in grid.cells]:
                        grid.cells.append((cell, instance))
        return grid


class _Planner:
    """Hands out what is missing, cell by cell, in pieces that follow the measured speed."""

    def __init__(self, grid: Grid, store: Store) -> None:
        self.spec, self.store = grid.spec, store
        self.progress = Progress()
        self._cells = list(grid.cells)
        self._gaps: list[tuple[Cell, Instance, tuple[str, ...], int, int]] = []
        self._goal: dict[Cell, int] = {}
        self._outstanding = 0
        self._rate: dict[str, float] = {}  # trials a second and worker, by instance
        if self.spec.target_rse is None:
            for cell, instance in self._cells:
                self._queue(cell, instance, self.spec.trials)
            self._cells = []
        self.progress.trials_planned = sum(end - first for *_, first, end in self._gaps)

    def next_task(self, workers: int) -> Task | None:
        while not self._gaps:
            # with a target, the next cell's or stage's size hangs on the results of this one
            if self._outstanding or not self._cells:
                return None
            self._next_stage()
        cell, instance, schedules, first, end = self._gaps[0]
        count = min(self._size(instance, workers), end - first, _MOST_ROWS // len(schedules))
        if end - first < 1.5 * count:  # no crumbs
            count = min(end - first, _MOST_ROWS // len(schedules))
        if first + count == end:
            self._gaps.pop(0)
        else:
            self._gaps[0] = (cell, instance, schedules, first + count, end)
        self._outstanding += 1
        self.progress.cell = str(cell)
        self.progress.in_flight = self._outstanding
        return Task(cell, instance, schedules, first, count)

    def _size(self, instance: Instance, workers: int) -> int:
        """How many trials the next part should have: a few seconds' worth, less near the end, so
        that no worker waits long for another."""
        rate = self._rate.get(instance.digest)
        if rate is None:
            return _FIRST_PART
        left = sum(end - first for *_, first, end in self._gaps)
        share = min(rate * _PART_SECONDS, left / workers)
        return max(1, math.ceil(max(share, rate * _LAST_SECONDS)))

    def record(self, done: Done) -> None:
        self._outstanding -= 1
        self.progress.in_flight = self._outstanding
        if done.error is None:
            rate = done.task.count / max(done.seconds, 1e-6)
            before = self._rate.get(done.task.instance.digest, rate)
            self._rate[done.task.instance.digest] = 0.5 * (before + rate)
        self.progress.trials_done += done.task.count
        self.progress.pulls += done.pulls

    def _queue(self, cell: Cell, instance: Instance, trials: int) -> int:
        """Queue what is missing of a cell's first ``trials`` trials: schedules that miss the same
        ranges run together, on the same walks."""
        by_gaps: dict[tuple[tuple[int, int], ...], list[str]] = {}
        for name in self.spec.schedules:
            gaps = tuple(self.store.missing(cell, name, trials))
            if gaps:
                by_gaps.setdefault(gaps, []).append(name)
        queued = 0
        for gaps, names in by_gaps.items():
            for first, end in gaps:
                self._gaps.append((cell, instance, tuple(names), first, end))
                queued += end - first
        return queued

    def _next_stage(self) -> None:
        """Grow the first cell whose target is not reached; drop cells that are finished."""
        cell, instance = self._cells[0]
        goal = self._goal.get(cell, 0)
        if goal >= self.spec.trials or (goal and self._precise(cell, goal)):
            self._cells.pop(0)
            return
        goal = min(self.spec.trials, max(_FIRST_STAGE, 2 * goal))
        self._goal[cell] = goal
        self.progress.trials_planned += self._queue(cell, instance, goal)

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
) -> Iterator[tuple[Run, Part | None]]:
    """Run what the folder does not hold yet; yield each part when it is safely written, and
    (run, None) now and then in between. Nothing is lost by leaving early."""
    from fastfed.simulate import checked_threads

    grid = Grid.lay_out(spec)
    store = Store(out)
    with store.lock():
        _refuse_strangers(store, grid)
        store.parts()
        run = Run(store, grid, Progress(), damaged=list(store.unreadable))
        for path in run.damaged:  # done again
            path.unlink(missing_ok=True)
        planner = _Planner(grid, store)
        run.progress = planner.progress
        _record(store, grid)
        yield run, None
        if planner._gaps or planner._cells:
            runner = executor or Threads(checked_threads(threads))
            planner.progress.workers = runner.workers
            content = spec.to_dict()
            for done in runner.run(planner):
                if done is None:
                    yield run, None
                    continue
                task = done.task
                if done.table is None:
                    run.failures.append(_failure(done))
                    continue
                yield run, store.write_part(task.cell, task.schedules, task.first, task.count,
                                            done.table, content)
        _finish(store, grid)


def sweep_parts(
    *, instances: Sequence[str | Instance] | str | Instance = ("synthetic",),
    deltas: Sequence[float] = DEFAULT_DELTAS, costs: Sequence[float] = DEFAULT_COSTS,
    schedules: Sequence[str] | None = None, periods: Sequence[int] | None = None,
    trials: int = 10_000, seed: int = 0, out: str | Path = "results", threads: int | None = None,
    engine: str = "auto", sigma: float | Sequence[float] | None = None,
    max_steps: int | None = None, target_rse: float | None = None,
) -> Iterator[tuple[Run, Part | None]]:
    """`sweep`, part by part: yields (run, part) when a part is written, and (run, None) now and
    then in between; ``run.progress`` says where things stand, ``run.failures`` what went wrong."""
    spec = make_spec({
        "instance": [instances] if isinstance(instances, str | Instance) else list(instances),
        "delta": deltas, "cost": costs, "schedule": schedules, "period": periods,
        "trials": trials, "seed": seed, "engine": engine, "sigma": sigma,
        "max_steps": max_steps, "target_rse": target_rse,
    })
    return iterate(spec, Path(out), threads=threads)


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
    wanted = checked_costs(manifest["spec"].get("cost", DEFAULT_COSTS) if costs is None else costs)
    if manifest.get("summary_of") == _summary_key(store, wanted) and store.summary_path.exists():
        return pl.read_parquet(store.summary_path)
    return _summarise(store, wanted)


def _summarise(store: Store, costs: Sequence[float]) -> pl.DataFrame:
    held: dict[Cell, dict[str, None]] = {}
    for part in store.parts():
        held.setdefault(part.cell, {}).update(dict.fromkeys(part.schedules))
    order = {(c["instance"], c["delta"], c["sigma"]): i
             for i, c in enumerate(store.manifest().get("cells", []))}
    rows: list[dict[str, object]] = []
    for cell in sorted(held, key=lambda c: (order.get((c.instance, c.delta, c.sigma), 10**9),
                                            c.id)):
        samples = _Samples(store, cell)
        for name in sorted(held[cell], key=_schedule_order):
            sample = samples[name]
            head = {"instance": cell.instance, "schedule": name, "delta": cell.delta,
                    "sigma": cell.sigma}
            rows += [{**head, **row} for row in
                     summary_rows(sample, samples.paired(name), costs)]
    return to_frame(rows)


class _Samples:
    """Samples of a cell, one schedule at a time, the yardstick kept."""

    def __init__(self, store: Store, cell: Cell) -> None:
        self._store, self._cell = store, cell
        self._yardstick = yardstick_of({
            name: sample for name in ("fedelim0", "periodic:1")
            if (sample := _sample(store, cell, name)) is not None
        })

    def __getitem__(self, name: str) -> Sample:
        sample = _sample(self._store, self._cell, name)
        assert sample is not None
        self._latest = name, sample
        return sample

    def paired(self, name: str) -> Sample | None:
        """The yardstick, if it has the same trials."""
        sample = self._latest[1]
        if self._yardstick is None or len(self._yardstick.pulls) != len(sample.pulls):
            return None
        return self._yardstick


def _sample(store: Store, cell: Cell, name: str, until: int | None = None) -> Sample | None:
    columns = store.samples(cell, name, until)
    if not len(columns["trial"]):
        return None
    return Sample(columns["pulls"], columns["uplinks"], columns["correct"], columns["truncated"])


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
    known = {one["instance"]: one["digest"] for one in before.get("cells", [])}
    for cell, _ in grid.cells:
        if known.get(cell.instance, cell.digest) != cell.digest:
            raise InputError(f"{store.folder}: holds rows of another instance called "
                             f"{cell.instance!r} (other means or rewards); give this sweep "
                             "another --out, or the instance another name")


def _record(store: Store, grid: Grid, summary_of: str | None = None) -> None:
    """Write sweep.json: the latest spec, and every cell that the folder has seen."""
    cells = {}
    if store.manifest_path.exists():
        cells = {Cell(**{k: c[k] for k in Cell.__dataclass_fields__}).id: c
                 for c in store.manifest().get("cells", [])}
    for cell, _ in grid.cells:
        cells.setdefault(cell.id, {"id": cell.id, **vars(cell)})
    spec = grid.spec.to_dict()
    content = {
        "format": 1, "rows": ROWS, "spec": spec, "spec_hash": spec_hash(spec),
        "seed": grid.spec.seed, "engine": grid.spec.engine, "max_steps": grid.spec.max_steps,
        "versions": versions(), "cells": list(cells.values()), "summary_of": summary_of,
    }
    if store.manifest_path.exists():
        before = store.manifest()
        if summary_of is None:
            content["summary_of"] = before.get("summary_of")
        if before == content:
            return
    store.write_manifest(content)


def _finish(store: Store, grid: Grid) -> None:
    from fastfed.store import replacing

    costs = list(grid.spec.costs)
    key = _summary_key(store, costs)
    if store.manifest().get("summary_of") == key and store.summary_path.exists():
        return
    frame = _summarise(store, costs)
    with replacing(store.summary_path) as file:
        frame.write_parquet(file, compression="zstd")
    _record(store, grid, key)


def _failure(done: Done) -> Failure:
    task = done.task
    cell = task.cell
    return Failure(
        f"cell {cell} (schedules {', '.join(task.schedules)}), trials {task.first} to "
        f"{task.first + task.count - 1}",
        f"{type(done.error).__name__}: {done.error}",
        f"fastfed replay {cell.instance} --schedule {task.schedules[0]} --delta {cell.delta:g} "
        f"--seed {cell.seed} --trial {task.first}",
    )


def _list(value: Any) -> list[Any]:
    if isinstance(value, str | int | float | Instance) or value is None:
        return [] if value is None else [value]
    return list(value)


def _texts(value: Any) -> list[str] | None:
    return None if value is None else [str(one) for one in _list(value)]


def _distinct(name: str, values: list[float]) -> list[float]:
    if not values and name == "delta":
        raise InputError("no deltas: give at least one, as in 0.01")
    return list(dict.fromkeys(values))


def _inline(instance: Instance) -> dict[str, Any]:
    return {"name": instance.name, "means": instance.means.tolist(),
            "sigma": instance.rewards.sigma, "arms": list(instance.arms),
            "clients": list(instance.clients)}


def _from_inline(one: Any) -> str | Instance:
    from fastfed.rewards import Gaussian

    if isinstance(one, str | Instance):
        return one
    if isinstance(one, Path):
        return str(one)
    if isinstance(one, dict) and "means" in one:
        return Instance(one["means"], Gaussian(one.get("sigma", 1.0)), arms=one.get("arms"),
                        clients=one.get("clients"), name=one.get("name", "custom"))
    raise InputError(f"instance {one!r}: must be a name, a file, or a table with means")
