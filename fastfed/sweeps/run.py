"""Running of a sweep: trials that its folder lacks are computed and written, part by part.

`iterate` yields finished parts, so that whoever runs it can show progress and leave at any time.
What a folder already holds is never computed again; what would not fit with it is rejected.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fastfed.errors import InputError, UncertainWarning
from fastfed.files import checked_folder
from fastfed.model.choices import DEFAULTS
from fastfed.model.instance import Instance
from fastfed.model.setting import small_scale
from fastfed.storage.folder import Store
from fastfed.storage.manifest import Piece
from fastfed.storage.merge import record_of
from fastfed.storage.summary_cache import write_summary
from fastfed.sweeps.grid import Grid
from fastfed.sweeps.planner import Planner, Progress
from fastfed.sweeps.shards import Shard
from fastfed.sweeps.task import Executor, Task
from fastfed.sweeps.threads import Threads
from fastfed.text import command
from fastfed.validation import checked_threads, checked_whole


@dataclass
class Failure:
    """A task that raised: where, what, and how to see it again."""

    where: str
    error: str
    replay: str

    def __str__(self) -> str:
        return f"{self.where}: {self.error}; see it again with: {self.replay}"


class Unfinished(RuntimeError):
    """A sweep some of whose tasks raised; the parts of all others are written."""

    def __init__(self, failures: list[Failure]) -> None:
        super().__init__("\n".join(map(str, failures)))
        self.failures = failures


@dataclass(frozen=True, kw_only=True)
class Written(Piece):
    """Trials of a cell that were written, and the file that has them."""

    path: Path


@dataclass
class Run:
    """A sweep under way: what it reports besides its parts."""

    store: Store
    grid: Grid
    progress: Progress
    failures: list[Failure] = field(default_factory=list)

    def refuse_failures(self) -> None:
        """Raise `Unfinished` if a task raised."""
        if self.failures:
            raise Unfinished(self.failures)


def iterate(
    grid: Grid,
    out: Path,
    *,
    executor: Executor | None = None,
    threads: int | None = None,
    shard: Shard | None = None,
    part_size: int | None = None,
) -> Iterator[tuple[Run, Written | None]]:
    """Run the trials that the folder lacks; yield each piece once it is safely written.

    (run, None) comes now and then in between. Nothing is lost by leaving early.

    ``part_size`` is the number of trials in a part; None: as many as take a few seconds.
    """
    if shard is not None and grid.spec.stops_early:
        raise InputError(
            f"shard {shard.index}/{shard.count} with target_rse or until_separated: a target "
            "needs all trials of a cell, a shard has only its share; leave one of them out"
        )
    if part_size is not None:
        part_size = checked_whole("part_size", part_size, 1, 2**32)
    if executor is not None:
        _refuse_own_parts(grid)
    runner = executor or Threads(checked_threads(threads))
    folder = checked_folder(out)
    if not folder.exists():  # else there may be nothing left to run
        runner.refuse_early(grid)
    if (doubt := small_scale(grid.settings)) is not None:
        warnings.warn(doubt, UncertainWarning, stacklevel=2)
    with Store(folder).lock() as store:
        store.write_record(record_of(store, grid.spec, grid.settings, grid.schedules))
        planner = Planner(grid, store, shard, part_size)
        run = Run(store, grid, planner.progress)
        yield run, None
        if not planner.finished:
            yield from _run(run, planner, runner)
        write_summary(store)


def _run(run: Run, planner: Planner, executor: Executor) -> Iterator[tuple[Run, Written | None]]:
    for done in executor.run(planner):
        if done is None:
            yield run, None
            continue
        import scipy.special  # noqa: F401 - the summary needs it, and now workers compute

        for place, error in done.failures.items():
            run.failures.append(_failure(done.bundle.tasks[place], error, run.grid))
        if done.rows is not None:
            pieces = [piece for task in done.done for piece in task.pieces]
            part = run.store.write_part(pieces, done.rows)
            yield from ((run, Written(**vars(piece), path=part.path)) for piece in pieces)


def _refuse_own_parts(grid: Grid) -> None:
    """Refuse parts of a user's own in a sweep on other processes, which do not know them."""
    for part in (*(part for one in grid.settings for part in one.parts), *grid.schedules):
        if not part.known_to_workers():
            raise InputError(
                f"{part.kind} {part}: defined in this process, and the workers of a cluster do not "
                "know it; run this sweep on threads, without a cluster"
            )


def _failure(task: Task, error: BaseException, grid: Grid) -> Failure:
    cell, names = task.setting.key, list(map(str, task.schedules))
    source = next(
        (
            one
            for one in grid.spec.instance
            if isinstance(one, str) and Instance.load(one).name == cell.instance
        ),
        cell.instance,
    )
    others = "".join(f", and delta {one.delta:g}" for one in task.others)
    again = command(
        "replay",
        source,
        schedule=names[0],
        delta=cell.delta,
        sigma=cell.sigma,
        seed=cell.seed,
        trial=task.first,
        **{name: one for name, one in cell.choices.items() if one != DEFAULTS[name]},
    )
    return Failure(
        f"cell {cell}{others} (schedules {', '.join(names)}), trials {task.first} to "
        f"{task.first + task.count - 1}",
        f"{type(error).__name__}: {error}",
        again,
    )
