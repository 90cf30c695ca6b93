"""`simulate` and the `Result` that it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastfed.api.answers import Answers
from fastfed.api.progress import reporting
from fastfed.choices import USUAL
from fastfed.engine.job import Job, run_blocks
from fastfed.engine.rows import Block
from fastfed.errors import InputError
from fastfed.goals import Goal
from fastfed.problem.instance import Instance
from fastfed.problem.schedule import Schedule
from fastfed.radius import Radius
from fastfed.statistics.moments import Batch
from fastfed.sweeps.grid import ROWS, Cell
from fastfed.sweeps.manifest import versions
from fastfed.sweeps.spec import DEFAULT_COSTS
from fastfed.uplinks import Uplink
from fastfed.validation import (
    MOST_TRIALS,
    checked_engine,
    checked_threads,
    checked_trials,
    checked_whole,
)

if TYPE_CHECKING:
    import polars as pl

    from fastfed.api.sweep import Sweep
    from fastfed.theory.check import Check


@dataclass(frozen=True, eq=False, repr=False)
class Result(Answers):
    """What `simulate` returns: the rows of its trials, and what follows from them.

    Two results are equal if they hold the same rows of the same instance. ``result + more`` joins
    trials that follow each other, of the same job: see `simulate`'s ``first``.

    Examples
    --------
    >>> import fastfed as ff
    >>> res = ff.simulate([[0.9], [0.1]], ["fedelim", "fedelim0"], delta=0.1, trials=20)
    >>> res.frame.height, res.summary(costs=[10])["schedule"].to_list()
    (40, ['fedelim', 'fedelim0'])
    """

    jobs: tuple[Job, ...]
    """One for each delta."""
    blocks: tuple[Block, ...]
    """The rows of each job, as arrays."""
    cells: tuple[Cell, ...]
    """What each job is called in a sweep's folder."""

    @property
    def job(self) -> Job:
        """The job, of the first delta if there are several."""
        return self.jobs[0]

    @property
    def block(self) -> Block:
        """The rows as arrays, of the first delta if there are several."""
        return self.blocks[0]

    @property
    def engine(self) -> str:
        """Which engine ran: "skip" or "dense"."""
        return self.job.engine

    @property
    def first(self) -> int:
        """The number of the first trial."""
        return self.block.first

    @property
    def trials(self) -> int:
        """How many trials of each schedule and delta."""
        return self.block.trials

    @property
    def pulls(self) -> npt.NDArray[np.int64]:
        """(schedule, trial, K, M): how often each arm was pulled at each client. With several
        deltas, an axis for them comes first."""
        if not self.job.keep_pulls:
            raise InputError("pulls were not kept: call simulate(..., keep_pulls=True)")
        every = [block.pulls for block in self.blocks]
        return every[0] if len(every) == 1 else np.stack(every)

    @property
    def frame(self) -> pl.DataFrame:
        """The rows, one for each trial, schedule and delta."""
        import polars as pl

        if "_frame" not in self.__dict__:
            frames = [job.frame(block) for job, block in zip(self.jobs, self.blocks, strict=True)]
            object.__setattr__(self, "_frame", pl.concat(frames))
        found: pl.DataFrame = self.__dict__["_frame"]
        return found

    def scan(self) -> pl.LazyFrame:
        """The rows as a Polars LazyFrame.

        Returns
        -------
        polars.LazyFrame
        """
        return self.frame.lazy()

    def summary(
        self, costs: Sequence[float] | None = None, bit_costs: Sequence[float] | None = None
    ) -> pl.DataFrame:
        """One row per delta, schedule and cost of an uplink, or of a bit.

        Parameters
        ----------
        costs
            Costs C of an uplink; None: 0, 10 and 100, if no bit costs are given either.
        bit_costs
            Costs c of a bit, for pulls + c x bits. A row has one or the other.

        Returns
        -------
        polars.DataFrame
            See `fastfed.statistics.summary`.

        Examples
        --------
        >>> import fastfed as ff
        >>> res = ff.simulate([[0.9], [0.1]], delta=0.1, trials=20)
        >>> res.summary(costs=[0, 10])["trials"].to_list()
        [20, 20]
        """
        from fastfed.statistics.summary import summarise, wanted_costs

        return summarise(self.frame, *wanted_costs(costs, bit_costs, self.costs))

    def check(self, costs: Sequence[float] | None = None) -> Check:
        """Compare these rows with the theorems.

        Parameters
        ----------
        costs
            Costs C of an uplink; None: 0, 10 and 100.

        Returns
        -------
        fastfed.Check
        """
        with TemporaryDirectory() as folder:
            return self.save(folder).check(costs)

    def save(self, folder: str | Path) -> Sweep:
        """Write the rows into a sweep's folder, new or with other rows of the same seed.

        Parameters
        ----------
        folder
            The folder. A later `fastfed.sweep` into it computes only what is not there.

        Returns
        -------
        fastfed.Sweep
            The folder, opened.
        """
        from fastfed.api.sweep import open_sweep
        from fastfed.sweeps.keep import keep

        keep(folder, self.cells, self.jobs, self.blocks)
        return open_sweep(folder)

    @property
    def instances(self) -> dict[str, Instance]:
        """The instance, by its name."""
        return {self.job.instance.name: self.job.instance}

    @property
    def costs(self) -> list[float]:
        """What `summary` takes where no costs are given."""
        return list(DEFAULT_COSTS)

    def _held(self) -> dict[Cell, list[str]]:
        return {cell: [str(one) for one in self.job.schedules] for cell in self.cells}

    def _choices(self, cell: Cell) -> dict[str, Any]:
        return {**cell.choices, "radius": self.job.radius}  # which may be a user's own function

    def _theory(self) -> tuple[dict[str, Instance] | None, Check | None]:
        # bounds and verdicts know radii by their names
        return (None, None) if self.job.radius.function is not None else super()._theory()

    def _batches(self, cell: Cell, schedules: Sequence[str]) -> Iterator[Batch]:
        import polars as pl

        from fastfed.statistics.summary import frame_batch

        yield frame_batch(self.frame.filter(pl.col("delta") == cell.delta))

    def _ranges(self, cell: Cell, schedule: str) -> list[tuple[int, int]]:
        return [(self.first, self.first + self.trials)]

    def _about(self) -> Mapping[str, object]:
        job = self.job
        return {
            "instance": job.instance.name,
            "rewards": repr(job.instance.rewards),
            "delta": ", ".join(f"{one.delta:g}" for one in self.jobs),
            "seed": job.seed,
            "trials": f"{self.trials:,}",
            "engine": job.engine,
            "version of the rows": ROWS,
            "versions": ", ".join(f"{name} {one}" for name, one in versions().items()),
            "largest skip_error of a trial": f"{self.frame['skip_error'].to_numpy().max():.3g}",
        }

    def __add__(self, other: Result) -> Result:
        if not isinstance(other, Result):
            return NotImplemented
        mine, theirs = self._of_job(), other._of_job()
        for name in mine:
            if mine[name] != theirs[name]:
                raise InputError(
                    f"results of two jobs cannot be added: {name} is {mine[name]} "
                    f"and {theirs[name]}"
                )
        one, two = sorted((self, other), key=lambda result: result.first)
        end = one.first + one.trials
        if two.first != end:
            what = "are in both" if two.first < end else "would be missing"
            low, high = sorted((two.first, end))
            raise InputError(
                f"trials {low} to {high - 1} {what}: add results whose trials follow "
                f"each other, as of simulate(..., first={end})"
            )
        blocks = tuple(Block.join([a, b]) for a, b in zip(one.blocks, two.blocks, strict=True))
        return Result(self.jobs, blocks, self.cells)

    def _of_job(self) -> dict[str, object]:
        """What rows depend on besides the number of the trial."""
        names = ("delta", "sigma", "seed", "engine", "max_steps", *USUAL)
        return {
            "instance": self.job.instance,
            "schedules": ", ".join(map(str, self.job.schedules)),
            "keep_pulls": self.job.keep_pulls,
            **{name: [getattr(cell, name) for cell in self.cells] for name in names},
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        return (
            self.job.instance == other.job.instance
            and self.job.keep_pulls == other.job.keep_pulls
            and self.frame.equals(other.frame)
            and all(
                np.array_equal(a.pulls, b.pulls)
                for a, b in zip(self.blocks, other.blocks, strict=True)
            )
        )

    def __hash__(self) -> int:
        job = self.job
        return hash(
            (
                job.instance,
                tuple(map(str, job.schedules)),
                self.first,
                self.trials,
                job.seed,
                tuple(one.delta for one in self.jobs),
            )
        )

    def __repr__(self) -> str:
        deltas = ", ".join(f"{job.delta:g}" for job in self.jobs)
        return (
            f"<Result {self.job.instance.name}: {self.trials} trials x "
            f"{len(self.job.schedules)} schedules, delta {deltas}, "
            f"engine {self.engine}>"
        )


def simulate(
    instance: Instance | str | Path | npt.ArrayLike,
    schedules: Sequence[str | Schedule] | str | Schedule = ("fedelim",),
    *,
    delta: float | Sequence[float],
    trials: int,
    seed: int = 0,
    first: int = 0,
    threads: int | None = None,
    engine: str = "auto",
    sigma: float | str | None = None,
    max_steps: int | None = None,
    radius: str | Radius = "paper",
    goal: str | Goal = "best",
    uplink: str | Uplink = "exact",
    progress: bool | Callable[[int, int], object] = False,
    keep_pulls: bool = False,
) -> Result:
    """Run independent trials of every schedule on the same rewards.

    Parameters
    ----------
    instance
        An `Instance`, a built-in's name or a file, or a K x M array of means (Gaussian rewards
        with standard deviation 1).
    schedules
        When clients talk to the server: names or objects, one or several.
    delta
        The allowed error probability; several run one after the other on the same rewards.
    trials
        How many trials.
    seed
        The same seed gives the same rows, whatever the machine and the number of threads.
    first
        The number of the first trial: ``first=1000`` goes on where 1,000 trials ended, and the
        two results can be added.
    threads
        None: all cores.
    engine
        "skip" (exact up to the column ``skip_error``, logarithmic in the pulls), "dense" (every
        step of the same walk) or "auto".
    sigma
        The scale of the confidence radii. None: what fits the instance; "proxy": half the range
        of bounded rewards.
    max_steps
        Give trials up at this step.
    radius
        The confidence radius: "paper", "stitched", "mixture", "stitched-pairs", "mixture-pairs",
        "mixture:5000" (tuned at step 5,000), or a `fastfed.Radius` of your own.
    goal
        What clients and server want to know: "best"; "top:3" (the three best arms); "eps:0.1" (an
        arm at most 0.1 worse than the best); "threshold:0.5" (the arms that pay more than 0.5) or
        "threshold:0.5,0.05" (where means within 0.05 of that may be called either way); or a
        `fastfed.Goal`.
    uplink
        How means reach the server: "exact", or in a few bits: "dither:1", "round:0.1", or the
        object that one of these names stands for.
    progress
        Show a bar, or call this with (trials done, trials in all).
    keep_pulls
        Keep how often every arm was pulled at every client, in every trial.

    Returns
    -------
    Result
        The rows (``frame``), their ``summary``, the ``best`` schedule, ``plot``, ``replay``, ...

    Examples
    --------
    >>> import fastfed as ff
    >>> res = ff.simulate("synthetic", ["fedelim", "fedelim0"], delta=0.1, trials=100)
    >>> res
    <Result synthetic: 100 trials x 2 schedules, delta 0.1, engine skip>
    >>> res.frame.height
    200
    >>> more = ff.simulate("synthetic", ["fedelim", "fedelim0"], delta=0.1, trials=50, first=100)
    >>> (res + more).trials
    150
    """
    one = Instance.of(instance)
    count = checked_trials(trials)
    start = checked_whole("first", first, 0, MOST_TRIALS - count)
    deltas = [delta] if isinstance(delta, str) or not np.iterable(delta) else list(delta)
    if not deltas:
        raise InputError("no deltas: give at least one, as in 0.01")
    jobs = [
        Job(
            one,
            schedules,
            delta=each,
            seed=seed,
            engine=engine,
            sigma=sigma,
            max_steps=max_steps,
            radius=radius,
            goal=goal,
            uplink=uplink,
            keep_pulls=keep_pulls,
        )
        for each in dict.fromkeys(deltas)
    ]
    workers = checked_threads(threads)
    blocks = []
    with reporting(progress, count * len(jobs)) as report:
        for place, job in enumerate(jobs):
            before = place * count
            found = run_blocks(
                job, start, count, workers, lambda done, before=before: report(before + done)
            )  # type: ignore[misc]
            blocks.append(Block.join(sorted(found, key=lambda block: block.first)))
    cells = tuple(
        Cell(
            one.name,
            one.digest,
            job.delta,
            float(job.sigma),
            job.seed,
            checked_engine(engine),  # type: ignore[arg-type]
            None if max_steps is None else job.max_steps,
            **job.choices,
        )
        for job in jobs
    )
    return Result(tuple(jobs), tuple(blocks), cells)
