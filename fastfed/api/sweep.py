"""`sweep`, the `Sweep` that it returns, and `open_sweep` for a folder that is there already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastfed.api.answers import Answers
from fastfed.api.progress import watch
from fastfed.files import checked_folder
from fastfed.goals import Goal
from fastfed.problem.instance import Instance
from fastfed.problem.schedule import Schedule
from fastfed.statistics.moments import Batch
from fastfed.sweeps.dask import Dask
from fastfed.sweeps.grid import Cell, Shard
from fastfed.sweeps.run import Run, iterate
from fastfed.sweeps.spec import DEFAULT_COSTS, DEFAULT_DELTAS, make_spec
from fastfed.sweeps.store import Part, Store
from fastfed.sweeps.summary_file import stored_summary
from fastfed.uplinks import Uplink

if TYPE_CHECKING:
    import polars as pl

    from fastfed.theory.check import Check

Instances = Sequence[str | Path | Instance] | str | Path | Instance


class Sweep(Answers):
    """A sweep's folder, opened: its rows, and what follows from them.

    Made by `sweep` and `open_sweep`. It shows the folder as it was when it was first asked; open
    it again to see what another process has added since.

    Parameters
    ----------
    folder
        The folder.

    Examples
    --------
    >>> import tempfile
    >>> import fastfed as ff
    >>> saved = ff.simulate([[0.9], [0.1]], delta=0.1, trials=20).save(tempfile.mkdtemp())
    >>> saved.frame.height, saved.problems
    (20, [])
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = checked_folder(folder)
        self._store = Store(self.folder)
        self._record = self._store.record()

    def _write_report(self, path: Path) -> Path:
        from fastfed.results.report import write_folder_report

        return write_folder_report(self._store, path)

    def scan(self) -> pl.LazyFrame:
        """The rows of all trials, as a Polars LazyFrame over the folder's files.

        Returns
        -------
        polars.LazyFrame
            Files that are damaged, or of another sweep, are left out; a trial that stands in two
            files is there once.
        """
        import polars as pl

        from fastfed.engine.rows import schema

        paths = [part.path for part in self._store.parts()]
        if not paths:
            return pl.LazyFrame(schema=schema())
        found = pl.scan_parquet(paths, glob=False)
        # the same trial has the same row wherever it stands
        return found.unique(maintain_order=True) if self._store.problems() else found

    def summary(
        self, costs: Sequence[float] | None = None, bit_costs: Sequence[float] | None = None
    ) -> pl.DataFrame:
        """One row per instance, delta, scale, schedule and cost of an uplink, or of a bit.

        Parameters
        ----------
        costs
            Any costs C of an uplink.
        bit_costs
            Any costs c of a bit, for pulls + c x bits. A row has one or the other. With neither:
            those that the sweep was asked for.

        Returns
        -------
        polars.DataFrame
            See `fastfed.statistics.summary`. Nothing is simulated again.
        """
        return stored_summary(self._store, costs, bit_costs)

    def check(self, costs: Sequence[float] | None = None) -> Check:
        """Compare the rows of the folder with the theorems.

        Parameters
        ----------
        costs
            Costs C of an uplink; None: those that the sweep was asked for.

        Returns
        -------
        fastfed.Check
        """
        from fastfed.theory.check import check

        return check(self._store, costs)

    def save(self, folder: str | Path) -> Sweep:
        """Copy the rows into another folder, new or of the same sweep.

        Parameters
        ----------
        folder
            The other folder.

        Returns
        -------
        Sweep
            That folder, opened.
        """
        from fastfed.sweeps.merge import merge

        merge([self.folder], folder)
        return Sweep(folder)

    @cached_property
    def instances(self) -> dict[str, Instance]:
        """The instances of the rows, by name, equal to those that were run."""
        from fastfed.theory.check import instances_of

        return instances_of(self._store)

    @property
    def costs(self) -> list[float]:
        """The costs of an uplink that the sweep was asked for."""
        return list(self._record.spec.cost)

    @property
    def problems(self) -> list[str]:
        """Files among the parts whose rows are not counted, or that repeat others, and why."""
        return [str(problem) for problem in self._store.problems()]

    def _held(self) -> dict[Cell, list[str]]:
        return self._store.held()

    def _batches(self, cell: Cell, schedules: Sequence[str]) -> Iterator[Batch]:
        return self._store.batches(cell, schedules)

    def _ranges(self, cell: Cell, schedule: str) -> list[tuple[int, int]]:
        return [(first, end) for first, end, _ in self._store.spans(cell, schedule)]

    def _about(self) -> Mapping[str, object]:
        spec = self._record.spec
        return {
            "folder": self.folder.name,
            "instances": ", ".join(self.instances),
            "rewards": "; ".join(
                dict.fromkeys(repr(one.rewards) for one in self.instances.values())
            ),
            "trials": f"{spec.trials:,}",
            "seed": spec.seed,
            "engine": spec.engine,
            **self._record.versions,
        }

    def __repr__(self) -> str:
        held = self._held()
        schedules = {name for names in held.values() for name in names}
        return (
            f"<Sweep {self.folder}: {len(held)} cells x {len(schedules)} schedules, "
            f"up to {self._record.spec.trials:,} trials each>"
        )


def open_sweep(folder: str | Path) -> Sweep:
    """Open the folder of a sweep that was run before, here or elsewhere.

    Parameters
    ----------
    folder
        What `fastfed sweep --out`, `sweep`, `fastfed merge` or ``Result.save`` wrote.

    Returns
    -------
    Sweep
        Nothing is simulated again.

    Examples
    --------
    >>> import tempfile
    >>> import fastfed as ff
    >>> folder = tempfile.mkdtemp()
    >>> saved = ff.simulate([[0.9], [0.1]], delta=0.1, trials=20).save(folder)
    >>> ff.open_sweep(folder).scan().collect().height
    20
    """
    return Sweep(folder)


def sweep(
    *,
    instances: Instances = ("synthetic",),
    deltas: Sequence[float] | float = DEFAULT_DELTAS,
    costs: Sequence[float] = DEFAULT_COSTS,
    bit_costs: Sequence[float] = (),
    schedules: Sequence[str | Schedule] | str | Schedule | None = None,
    periods: Sequence[int] | None = None,
    trials: int = 10_000,
    seed: int = 0,
    out: str | Path = "results",
    threads: int | None = None,
    engine: str = "auto",
    sigma: float | str | Sequence[float | str] | None = None,
    max_steps: int | None = None,
    target_rse: float | None = None,
    radii: Sequence[str] | str = ("paper",),
    goals: Sequence[str | Goal] | str | Goal = ("best",),
    uplinks: Sequence[str | Uplink] | str | Uplink = ("exact",),
    client: Any = None,
    shard: str | None = None,
    part_size: int | None = None,
    progress: bool = True,
) -> Sweep:
    """Run a grid of instances, deltas and schedules into a folder: `fastfed sweep` in Python.

    Parameters
    ----------
    instances
        Built-in names, files or `Instance` objects; one or several.
    deltas
        Allowed error probabilities.
    costs
        Costs C of an uplink for the summary. Rows do not depend on them.
    bit_costs
        Costs c of a bit, for rows of the summary with pulls + c x bits.
    schedules, periods
        When clients talk: names or objects, and periods H. With neither: fedelim, fedelim0 and
        the periods 1, 5, 10, 100, ..., 100,000.
    trials
        Trials of every cell and schedule.
    seed
        The same seed gives the same rows.
    out
        The folder. What it holds already is not computed again.
    threads
        None: all cores.
    engine
        "skip", "dense" or "auto": see `fastfed.simulate`.
    sigma
        Scales of the confidence radii; None: what fits each instance.
    max_steps
        Give trials up at this step.
    target_rse
        Stop a cell when the relative standard error of its mean total costs is this small, at
        all costs of an uplink and of a bit.
    radii
        Names of confidence radii, one or several: see `fastfed.simulate`.
    goals, uplinks
        Goals and uplinks, one or several: see `fastfed.simulate`.
    client
        A dask.distributed.Client: run the trials on its cluster.
    shard
        Only a share of the trials, as in "3/16".
    part_size
        Trials in a part; None: as many as take a few seconds.
    progress
        Show how far it is: a bar on a terminal, a line every 30 seconds elsewhere.

    Returns
    -------
    Sweep
        The folder, opened.

    Examples
    --------
    >>> import tempfile
    >>> import fastfed as ff
    >>> done = ff.sweep(instances="synthetic", deltas=[0.1], schedules=["fedelim", "fedelim0"],
    ...                 trials=50, out=tempfile.mkdtemp())
    >>> done.summary(costs=[10])["schedule"].to_list()
    ['fedelim', 'fedelim0']
    """
    run = watch(
        sweep_parts(
            instances=instances,
            deltas=deltas,
            costs=costs,
            bit_costs=bit_costs,
            schedules=schedules,
            periods=periods,
            trials=trials,
            seed=seed,
            out=out,
            threads=threads,
            engine=engine,
            sigma=sigma,
            max_steps=max_steps,
            target_rse=target_rse,
            radii=radii,
            goals=goals,
            uplinks=uplinks,
            client=client,
            shard=shard,
            part_size=part_size,
        ),
        progress,
    )
    if run.failures:
        raise RuntimeError("\n".join(map(str, run.failures)))
    return Sweep(out)


def sweep_parts(
    *,
    instances: Instances = ("synthetic",),
    deltas: Sequence[float] | float = DEFAULT_DELTAS,
    costs: Sequence[float] = DEFAULT_COSTS,
    bit_costs: Sequence[float] = (),
    schedules: Sequence[str | Schedule] | str | Schedule | None = None,
    periods: Sequence[int] | None = None,
    trials: int = 10_000,
    seed: int = 0,
    out: str | Path = "results",
    threads: int | None = None,
    engine: str = "auto",
    sigma: float | str | Sequence[float | str] | None = None,
    max_steps: int | None = None,
    target_rse: float | None = None,
    radii: Sequence[str] | str = ("paper",),
    goals: Sequence[str | Goal] | str | Goal = ("best",),
    uplinks: Sequence[str | Uplink] | str | Uplink = ("exact",),
    client: Any = None,
    shard: str | None = None,
    part_size: int | None = None,
) -> Iterator[tuple[Run, Part | None]]:
    """`sweep`, part by part, for whoever wants to follow it.

    Parameters
    ----------
    instances, deltas, costs, bit_costs, schedules, periods, trials, seed, out, threads, engine
        As of `sweep`.
    sigma, max_steps, target_rse, radii, goals, uplinks, client, shard, part_size
        As of `sweep`.

    Yields
    ------
    (run, part)
        When a part is safely written, and (run, None) now and then in between;
        ``run.progress`` says where things stand, ``run.failures`` what went wrong. Nothing is
        lost by leaving early.

    Examples
    --------
    >>> import tempfile
    >>> import fastfed as ff
    >>> for run, part in ff.sweep_parts(deltas=[0.1], schedules=["fedelim"], trials=20,
    ...                                 part_size=10, out=tempfile.mkdtemp()):
    ...     done = run.progress.trials_done
    >>> done
    20
    """
    if isinstance(schedules, Schedule):
        schedules = [schedules]
    spec = make_spec(
        {
            "instance": [instances]
            if isinstance(instances, str | Path | Instance)
            else list(instances),
            "delta": deltas,
            "cost": costs,
            "bit_cost": bit_costs,
            "schedule": schedules,
            "period": periods,
            "trials": trials,
            "seed": seed,
            "engine": engine,
            "sigma": sigma,
            "max_steps": max_steps,
            "target_rse": target_rse,
            "radius": radii,
            "goal": goals,
            "uplink": uplinks,
        }
    )
    return iterate(
        spec,
        checked_folder(out),
        threads=threads,
        part_size=part_size,
        executor=None if client is None else Dask(client),
        shard=None if shard is None else Shard.parse(shard),
    )
