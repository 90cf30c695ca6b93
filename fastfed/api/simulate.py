"""`simulate` and the `Result` that it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from fastfed.analysis.selection import Held
from fastfed.analysis.trials import BATCH_COLUMNS, Batch
from fastfed.api.answers import Answers
from fastfed.api.progress import reporting
from fastfed.errors import InputError
from fastfed.model.cell import Cell
from fastfed.model.choices import DEFAULTS
from fastfed.model.instance import Instance
from fastfed.model.options import takes
from fastfed.model.rewards import Rewards
from fastfed.model.schedules import Schedule
from fastfed.model.setting import RUN, Options
from fastfed.model.spec import COSTS
from fastfed.simulation.job import Job, run_all_blocks
from fastfed.simulation.rows import COUNTED, Block
from fastfed.storage.manifest import versions
from fastfed.text import printable
from fastfed.validation import MOST_TRIALS, checked_threads, checked_trials, checked_whole
from fastfed.version import ROWS

if TYPE_CHECKING:
    import polars as pl

    from fastfed.api.sweep import Sweep


@dataclass(frozen=True, eq=False, repr=False)
class Result(Answers):
    """The result of `simulate`: the rows of its trials, and answers from them.

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

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The setting of each job, by names."""
        return tuple(job.setting.key for job in self.jobs)

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
        """The engine that ran: "skip", "dense" or "python"."""
        return self.job.engine

    @property
    def first(self) -> int:
        """The number of the first trial."""
        return self.block.first

    @property
    def trials(self) -> int:
        """The number of trials of each schedule and delta."""
        return self.block.trials

    @property
    def pulls(self) -> npt.NDArray[np.int64]:
        """The pulls of each arm at each client, (schedule, trial, K, M).

        With several deltas, an axis for them comes first.
        """
        if not self.job.keep_pulls:
            raise InputError("pulls were not kept: call simulate(..., keep_pulls=True)")
        every = [block.pulls for block in self.blocks]
        return every[0] if len(every) == 1 else np.stack(every)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The rows, one for each trial, schedule and delta."""
        import polars as pl

        pairs = zip(self.jobs, self.blocks, strict=True)
        return pl.concat([job.frame(block) for job, block in pairs])

    def scan(self) -> pl.LazyFrame:
        """Return the rows as a Polars LazyFrame.

        Returns
        -------
        polars.LazyFrame
        """
        return self.frame.lazy()

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
        from fastfed.storage.merge import save

        save(folder, self.jobs, self.blocks)
        return open_sweep(folder)

    # The rows as questions take them: `fastfed.analysis.trials.Trials`

    @property
    def _trials(self) -> Result:
        return self

    @property
    def source(self) -> str:
        """Name of the rows, for messages."""
        return repr(self)

    @property
    def instances(self) -> dict[str, Instance]:
        """The instance, by its name."""
        return {self.job.instance.name: self.job.instance}

    @property
    def costs(self) -> list[float]:
        """The costs of an uplink that are taken where none are given."""
        return list(COSTS)

    @property
    def prices(self) -> dict[str, float]:
        """Fixed prices of counted columns: none but that of a pull."""
        return {}

    @property
    def bit_costs(self) -> list[float]:
        """The costs of a bit that are taken where none are given: none."""
        return []

    def held(self) -> dict[Cell, list[Schedule]]:
        """List the cells, one for each delta, with their schedules.

        Returns
        -------
        dict
            From the cell to its schedules.
        """
        return {cell: list(self.job.schedules) for cell in self.cells}

    def choices(self, cell: Cell) -> dict[str, Any]:
        """Return the radius, goal and uplink of a cell.

        Parameters
        ----------
        cell
            A cell of this result, as `held` lists them.

        Returns
        -------
        dict
            By the names of the arguments of `fastfed.bounds`.
        """
        return {**cell.choices, "radius": self.job.setting.radius}  # or a user's own function

    def batches(
        self, cell: Cell, schedules: Sequence[str], columns: Sequence[str] = BATCH_COLUMNS
    ) -> Iterator[Batch]:
        """Read the trials of a cell.

        Parameters
        ----------
        cell
            A cell of this result, as `held` lists them.
        schedules
            Names of schedules.
        columns
            Columns of the rows.

        Yields
        ------
        dict
            All trials at once: by schedule, then by column.
        """
        block = self.blocks[self.cells.index(cell)]
        place = {str(one): row for row, one in enumerate(self.job.schedules)}
        values: dict[str, npt.NDArray[Any]] = {"skip_error": block.skip_error}
        for name in columns:
            if name in COUNTED:
                kind = bool if COUNTED[name] == "Boolean" else np.int64
                values[name] = block.column(name).astype(kind, copy=False)
        values["trial"] = np.broadcast_to(
            np.arange(block.first, block.first + block.trials), block.skip_error.shape
        )
        yield {
            name: {column: values[column][place[name]] for column in columns} for name in schedules
        }

    def ranges(self, cell: Cell, schedule: str) -> list[tuple[int, int]]:
        """List the trials that there are.

        Parameters
        ----------
        cell, schedule
            A cell that is held, and the name of one of its schedules.

        Returns
        -------
        list
            One range [first, end).
        """
        return [(self.first, self.first + self.trials)]

    def _only(self, held: Held) -> Result:
        jobs, blocks = [], []
        for cell, job, block in zip(self.cells, self.jobs, self.blocks, strict=True):
            if cell in held:
                kept = list(held[cell])
                jobs.append(Job(job.setting, kept, keep_pulls=job.keep_pulls))
                blocks.append(block.of_schedules([job.schedules.index(one) for one in kept]))
        return Result(tuple(jobs), tuple(blocks))

    def _about(self) -> Mapping[str, object]:
        job = self.job
        return {
            "instance": job.instance.name,
            "rewards": job.instance.rewards_text,
            "delta": ", ".join(f"{one.delta:g}" for one in self.cells),
            "seed": job.setting.seed,
            "trials": f"{self.trials:,}",
            "engine": job.engine,
            "version of the rows": ROWS,
            "versions": ", ".join(f"{name} {one}" for name, one in versions().items()),
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
        return Result(self.jobs, blocks)

    def _of_job(self) -> dict[str, object]:
        """Return everything that rows depend on besides the number of the trial."""
        names = ("delta", "sigma", "seed", "engine", "max_steps", *DEFAULTS)
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
        return hash((self.job.instance, self.first, self.trials))

    def __repr__(self) -> str:
        deltas = ", ".join(f"{cell.delta:g}" for cell in self.cells)
        return (
            f"<Result {printable(self.job.instance.name)}: {self.trials} trials x "
            f"{len(self.job.schedules)} schedules, delta {deltas}, "
            f"engine {self.engine}>"
        )


@takes(Options, RUN)
def simulate(
    instance: Instance | str | Path | npt.ArrayLike,
    schedules: Sequence[str | Schedule] | str | Schedule = ("fedelim",),
    *,
    delta: float | Sequence[float],
    trials: int,
    first: int = 0,
    threads: int | None = None,
    progress: bool | Callable[[int, int], object] = False,
    keep_pulls: bool = False,
    rewards: Rewards | str | None = None,
    **options: Unpack[Options],
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
        The allowed error probability; several run on the same rewards.
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
        step of the same walk), "auto", or "python" (decisions of a `fastfed.Algorithm` are not
        compiled, for debugging).
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
        How means reach the server: "exact"; in a few bits: "dither:1", "round:0.1"; with noise that
        hides single rewards: "laplace:1"; or the object that one of these names stands for.
    participation
        Which clients report at a round: "full"; or each with probability 0.8, where the server
        decides at rounds with all clients, "wait:0.8", or by the last reports, "random:0.8".
    progress
        Show a bar, or call this with (trials done, trials in all).
    keep_pulls
        Keep how often every arm was pulled at every client, in every trial.
    rewards
        The reward distribution of an array of means, or of a file that names none, as in
        "bernoulli" or `fastfed.Gaussian(2.0)`; None: Gaussian, sigma 1.

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
    one = Instance.of(instance, rewards)
    count = checked_trials(trials)
    start = checked_whole("first", first, 0, MOST_TRIALS - count)
    deltas = [delta] if isinstance(delta, str) or not np.iterable(delta) else list(delta)
    if not deltas:
        raise InputError("no deltas: give at least one, as in 0.01")
    jobs = [
        Job.of(one, schedules, delta=each, keep_pulls=keep_pulls, **options)
        for each in dict.fromkeys(deltas)
    ]
    return Result(tuple(jobs), _run_all(jobs, start, count, checked_threads(threads), progress))


def _run_all(
    jobs: Sequence[Job],
    first: int,
    count: int,
    workers: int,
    progress: bool | Callable[[int, int], object],
) -> tuple[Block, ...]:
    """Run the same trials of each job: one job after the other, or all on the same spines."""
    together = [jobs] if jobs[0].spine_is_dear else [[job] for job in jobs]
    joined: list[Block] = []
    with reporting(progress, count * len(jobs)) as report:
        for some in together:
            before = len(joined) * count
            found = run_all_blocks(
                some,
                first,
                count,
                workers,
                lambda done, before=before: report(before + done),  # type: ignore[misc]
            )
            in_order = sorted(found, key=lambda blocks: blocks[0].first)
            joined += [Block.join(blocks) for blocks in zip(*in_order, strict=True)]
    return tuple(joined)
