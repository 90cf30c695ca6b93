"""`sweep`, the `Sweep` that it returns, and `open_sweep` for a folder that is there already."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from fastfed.analysis.selection import CHOICES, Held, Selection, values_of
from fastfed.analysis.trials import Trials
from fastfed.api.answers import Answers
from fastfed.api.progress import watch
from fastfed.errors import InputError
from fastfed.files import checked_folder
from fastfed.model.choices import DEFAULTS
from fastfed.model.options import takes
from fastfed.model.spec import GRID, KEYS, GridOptions, option_of
from fastfed.storage.folder import Store
from fastfed.storage.merge import Merged
from fastfed.storage.merge import merge as join
from fastfed.storage.summary_cache import stored_summary
from fastfed.sweeps.dask import Dask
from fastfed.sweeps.grid import Grid
from fastfed.sweeps.run import Run, Written, iterate
from fastfed.sweeps.shards import Shard
from fastfed.text import printable
from fastfed.validation import checked_threads
from fastfed.version import ROWS

if TYPE_CHECKING:
    import polars as pl

    from fastfed.analysis.check import Check


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
    >>> saved.frame.height
    20
    """

    def __init__(self, folder: str | Path | Store) -> None:
        self._store = folder if isinstance(folder, Store) else Store(checked_folder(folder))
        self.folder = self._store.folder
        self._selection: Selection | None = None
        self._record = self._store.record()
        self._title = f"fastfed report: {self.folder.resolve().name}"
        self.merged: Merged | None = None
        """What the merge did, if `merge` made the folder."""

    @property
    def _trials(self) -> Trials:
        """The rows that are asked for; damaged parts are refused when they are read."""
        return self._selection or self._store

    def _only(self, held: Held) -> Sweep:
        found = copy(self)
        found._selection = Selection(self._store, held)
        return found

    def scan(self) -> pl.LazyFrame:
        """Return the rows of all trials, as a Polars LazyFrame over the folder's files.

        Returns
        -------
        polars.LazyFrame
            The files are verified first; one that is damaged is refused.
        """
        import polars as pl

        from fastfed.simulation.rows import schema

        held = self._trials.held()
        parts = [
            part for part in self._store.parts() if any(piece.cell in held for piece in part.pieces)
        ]
        self._store.verify(parts)
        paths = sorted(part.path for part in parts)
        if not paths:
            return pl.LazyFrame(schema=schema())
        found = pl.scan_parquet(paths, glob=False)
        of_instances = {
            frozenset(piece.cell.instance for piece in part.pieces): part.path for part in parts
        }
        several = any(
            "server_answers" in pl.read_parquet_schema(path) for path in of_instances.values()
        )
        if several or self._store.record().rows != ROWS:
            # cells in which the server has one question lack the columns of several, and rows of
            # an older version those that were added since
            found = pl.scan_parquet(
                paths, glob=False, schema=schema(several=several), missing_columns="insert"
            ).with_columns(pl.col(name).fill_null(value) for name, value in DEFAULTS.items())
        if self._selection is None:
            return found
        return found.filter(
            *(
                pl.col(key).is_in(list(map(str, some) if key == "schedule" else some))
                for key in CHOICES
                if (some := values_of(key, held))
            )
        )

    def summary(
        self,
        costs: Sequence[float] | None = None,
        bit_costs: Sequence[float] | None = None,
        prices: Mapping[str, float] | None = None,
    ) -> pl.DataFrame:
        """Summarise the rows: one row per cell, schedule and cost of an uplink or a bit.

        Parameters
        ----------
        costs
            Any costs C of an uplink.
        bit_costs
            Any costs c of a bit, for pulls + c x bits. A row has one or the other. With neither:
            those that the sweep was asked for.
        prices
            Fixed prices of other counts, by name, as in ``{"rounds": 50}``; None: those that the
            sweep was asked for.

        Returns
        -------
        polars.DataFrame
            See `fastfed.analysis.summary`. Nothing is simulated again.
        """
        if self._selection is None and prices is None:
            return stored_summary(self._store, costs, bit_costs)
        return super().summary(costs, bit_costs, prices)

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
        if self._selection is not None:
            raise InputError(
                f"{self.folder}: a filtered sweep is a view of its folder and cannot be saved; "
                "save the whole sweep, and filter the copy"
            )
        return merge([self.folder], folder)

    def _filter_text(self) -> str:
        """Say which values of the choices are left."""
        left = {key: values_of(key, self._trials.held()) for key in CHOICES}
        return "; ".join(f"{key} {', '.join(map(str, some))}" for key, some in left.items())

    def _about(self) -> Mapping[str, object]:
        return {
            **_about_spec(self._record.spec.to_dict()),
            **({} if self._selection is None else {"filter": self._filter_text()}),
            "version of the rows": self._record.rows,
            "format of the folder": self._record.format,
            "versions": ", ".join(f"{name} {one}" for name, one in self._record.versions.items()),
        }

    def __str__(self) -> str:
        """Return the table that `fastfed sweep` prints: all rows, or those of low cost."""
        from fastfed.display.sweep_text import sweep_text

        return sweep_text(self.summary(), self.instances)

    def __repr__(self) -> str:
        held = self._trials.held()
        schedules = values_of("schedule", held)
        return (
            f"<Sweep {printable(str(self.folder))}: {len(held)} cells x "
            f"{len(schedules)} schedules, up to {self._record.spec.trials:,} trials each>"
        )


def _about_spec(spec: Mapping[str, Any]) -> dict[str, object]:
    """Show a spec key by key; an instance that was given as an object goes by its name."""
    shown: dict[str, object] = {}
    for key, value in spec.items():
        if isinstance(value, dict):  # prices
            shown[key] = ", ".join(f"{name} {price:g}" for name, price in value.items())
            continue
        items = value if isinstance(value, list) else [value]
        shown[key] = ", ".join(
            str(item["name"])
            if isinstance(item, dict)
            else item
            if isinstance(item, str)
            else json.dumps(item)
            for item in items
        )
    return shown


def check(folder: str | Path, costs: Sequence[float] | None = None) -> Check:
    """Compare every cell and schedule in a sweep's folder with the theorems.

    Bounds are those of the cell's confidence scale, radius and goal. Only stored rows are read,
    batch by batch. See `fastfed.analysis.check` for what a verdict means, and what it does not:
    the theorems leave a fourfold slack.

    Parameters
    ----------
    folder
        A sweep's folder.
    costs
        Costs C of an uplink; None: those of the sweep.

    Returns
    -------
    Check
        Print it, or take its ``frame``.

    Examples
    --------
    >>> import tempfile
    >>> import fastfed as ff
    >>> done = ff.simulate([[0.9], [0.1]], delta=0.1, trials=200).save(tempfile.mkdtemp())
    >>> ff.check(done.folder, costs=[10]).violated
    False
    """
    return Sweep(folder).check(costs)


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


def merge(folders: Sequence[str | Path] | str | Path, out: str | Path) -> Sweep:
    """Join the folders of one sweep, as its shards wrote them: `fastfed merge` in Python.

    Folders that do not belong together are refused before anything is written. A merge that was
    interrupted goes on with the same call.

    Parameters
    ----------
    folders
        Folders of sweeps, one or several.
    out
        The folder for all their rows, new or with some of them.

    Returns
    -------
    Sweep
        The folder ``out``, opened. Its ``merged`` tells how many ``parts`` were added, and how many
        rows of the spec are still ``missing``.

    Examples
    --------
    >>> import tempfile
    >>> import fastfed as ff
    >>> place = tempfile.mkdtemp()
    >>> for share in (1, 2):
    ...     shard = ff.sweep(deltas=[0.1], schedules=["fedelim"], trials=20, shard=f"{share}/2",
    ...                      out=f"{place}/{share}", progress=False)
    >>> whole = ff.merge([f"{place}/1", f"{place}/2"], out=f"{place}/whole")
    >>> whole.frame.height, whole.merged.missing
    (20, 0)
    """
    merged = join([folders] if isinstance(folders, str | Path) else folders, out)
    made = Sweep(out)
    made.merged = merged
    return made


class SweepOptions(GridOptions, total=False):
    """Options of a sweep: its grid, its folder, and how it is run."""

    out: str | Path
    threads: int | None
    client: Any
    shard: str | None
    part_size: int | None


SWEEP: dict[str, Any] = {
    **GRID,
    "out": "results",
    "threads": None,
    "client": None,
    "shard": None,
    "part_size": None,
}
"""Defaults of `SweepOptions`."""


@takes(SweepOptions, SWEEP)
def sweep(*, progress: bool = True, **options: Unpack[SweepOptions]) -> Sweep:
    """Simulate a grid of instances, deltas and schedules, as the command `fastfed sweep` does.

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
    prices
        Fixed prices of other counts in total costs, as in ``{"rounds": 50}``.
    schedules, periods
        Communication schedules: names or objects, and periods H. With neither: fedelim, fedelim0
        and the periods 1, 5, 10, 100, ..., 100,000.
    trials
        Trials of every cell and schedule.
    seed
        The same seed gives the same rows.
    out
        The folder. What it holds already is not computed again.
    threads
        None: all cores.
    engine
        "skip", "dense", "python" or "auto": see `fastfed.simulate`.
    sigma
        Scales of the confidence radii; None: the default of each instance.
    max_steps
        Cut trials off at this step.
    target_rse
        Stop a cell when the relative standard error of its mean total costs is this small, at
        all costs of an uplink and of a bit.
    until_separated
        Stop a cell when its cheapest schedule is separated from all others at all given costs.
        Looks are at n, 2 n, 4 n, ... trials with n = max(2,000, 3 / delta), and a false separation
        at any of them has a probability of at most 5 %: see `fastfed.analysis.separation`.
    radii
        Names of confidence radii, one or several: see `fastfed.simulate`.
    goals, uplinks, participations
        Goals, uplinks and participations, one or several: see `fastfed.simulate`.
    client
        A dask.distributed.Client, or the address of a scheduler: run the trials on its cluster.
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
    run = watch(sweep_parts(**options), progress)
    run.refuse_failures()
    return Sweep(run.store)


@takes(SweepOptions, SWEEP)
def sweep_parts(**options: Unpack[SweepOptions]) -> Iterator[tuple[Run, Written | None]]:
    """Run a sweep and yield after each part: `sweep` for code that follows its progress.

    Parameters
    ----------
    instances, deltas, costs, bit_costs, prices, schedules, periods, trials, seed, out, threads
        The same as for `sweep`.
    engine, sigma, max_steps, target_rse, until_separated, radii, goals, uplinks, participations
        The same as for `sweep`.
    client, shard
        The same as for `sweep`.
    part_size
        The same as for `sweep`.

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
    given: dict[str, Any] = {**options}
    threads, client, shard = given["threads"], given["client"], given["shard"]
    return iterate(
        Grid.of({key: given[option_of(key)] for key in KEYS}),
        checked_folder(given["out"]),
        threads=None if threads is None else checked_threads(threads),
        part_size=given["part_size"],
        executor=client if client is None or isinstance(client, Dask) else Dask(client),
        shard=None if shard is None else Shard.parse(shard),
    )
