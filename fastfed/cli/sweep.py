"""`fastfed sweep`: a grid of cells into a folder, from options or from a spec file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastfed import console
from fastfed.cli import lists, options
from fastfed.cli.options import Values
from fastfed.display.sweep_text import sweep_text
from fastfed.errors import InputError
from fastfed.files import checked_folder
from fastfed.model.choices import DEFAULTS
from fastfed.text import command

if TYPE_CHECKING:
    import polars as pl

    from fastfed.sweeps.dask import Dask
    from fastfed.sweeps.run import Run


_CHOICES = options.choices(
    {
        "instance": "synthetic",
        "schedule": "fedelim,fedelim0",
        "delta": "0.1,0.05,0.01,0.005,0.001",
        "sigma": options.SIGMA,
        **DEFAULTS,
    }
)
_PRICES = options.prices("0,10,100")
_GRID = {
    "instance": _CHOICES.pop("instance"),
    "schedule": _CHOICES.pop("schedule"),
    "period": options.several(
        "LIST",
        "Also run periodic:H [5,1,10,100,1000,10000,100000].",
        partial(lists.numbers, "period", whole=True),
    ),
    "delta": _CHOICES.pop("delta"),
    "radius": _CHOICES.pop("radius"),
    "trials": options.text("NUMBER", "Trials of each cell [10000]."),
    "cost": _PRICES.pop("cost"),
}
"""The keys of a spec that users need first."""

_PLACE = {
    "out": options.folder("Folder for the results [results, or that of --spec]."),
    "spec": options.file("TOML file or sweep.json; options override it [none]."),
}

_MORE = {
    **_CHOICES,
    **_PRICES,
    "seed": options.text("NUMBER", "Seed [0]."),
    "until_separated": options.flag(
        "until-separated",
        "End a cell when its cheapest schedule is separated.",
    ),
    "target_rse": options.text(
        "NUMBER",
        "End a cell at this relative standard error [never].",
    ),
    "max_steps": options.text("NUMBER", "Cut trials off at this step [never]."),
    "engine": options.text("NAME", "skip, dense (every step, same rows) or auto [auto]."),
}
"""The other keys of a spec."""

_RUN = {
    **options.THREADS,
    "dask": options.text(
        "ADDRESS",
        "Dask scheduler, as tcp://host:8786 [threads].",
    ),
    "shard": options.text("I/N", "Run shard I of N; `fastfed merge` joins them [all]."),
    "quiet": options.flag("quiet", "Show no progress and no table."),
}


@options.takes(grid=_GRID, place=_PLACE, more=_MORE, how=_RUN)
def sweep(grid: Values, place: Values, more: Values, how: Values) -> None:
    """Simulate a grid of instances, deltas and schedules.

    It writes rows of trials to a folder. The same command again computes only what is missing. A
    cell has one value of each choice, and all schedules.

    \b
    Examples:
      fastfed sweep --trials 10000
      fastfed sweep --instance means.csv --radius mixture-pairs --period 1:1e5:log
    """
    from fastfed.api.progress import watch
    from fastfed.api.sweep import sweep_parts
    from fastfed.model.spec import option_of

    quiet, spec = how["quiet"], place["spec"]
    if quiet:
        from fastfed.kernels.compiling import say_nothing

        say_nothing()
    content = _content(grid | more, spec)
    asked = {option_of(key): value for key, value in content.items()}
    client = _client(how["dask"], how["threads"], quiet)
    out = _folder_of(spec, quiet) if place["out"] is None else place["out"]
    parts = sweep_parts(**asked, out=out, threads=how["threads"], client=client, shard=how["shard"])
    run = watch(parts, not quiet)
    for failure in run.failures:
        console.say(str(failure))
    if not quiet:
        # who asks for costs of a bit alone is shown these, and finds the default C in the summary
        ran = run.grid.spec
        _show(run, out, [] if ran.bit_cost and "cost" not in content else ran.cost)
    if run.failures:
        raise typer.Exit(1)


def _folder_of(spec: Path | None, quiet: bool) -> Path:
    """Name the folder of a sweep without ``--out``: that of its sweep.json, or the default."""
    if spec is None or spec.name != "sweep.json":
        return Path("results")
    if not quiet:
        console.say(f"{spec}: the sweep goes on in {spec.parent}; --out DIR writes elsewhere")
    return spec.parent


def _content(given: dict[str, Any], spec: Path | None) -> dict[str, Any]:
    """Return the keys of a spec: those of the file, replaced by the options that were given.

    Schedules or periods that are given replace both of the file's.
    """
    from fastfed.model.spec import read_spec

    content = {} if spec is None else read_spec(spec)
    if given["schedule"] is not None or given["period"] is not None:
        content = {
            key: value for key, value in content.items() if key not in ("schedule", "period")
        }
    content |= {key: value for key, value in given.items() if value not in (None, False)}
    return content


def _client(dask: str | None, threads: str | None, quiet: bool) -> Dask | None:
    """Make the cluster that was asked for; None means threads of this process."""
    if dask is None:
        return None
    from fastfed.sweeps.dask import Dask

    if threads is not None:
        raise InputError(
            f"--threads {threads} with --dask {dask}: the workers of a cluster "
            "have their own threads; leave one of them out"
        )
    return Dask(dask, say=lambda line: None if quiet else console.say(line))


def _show(run: Run, out: Path, costs: list[float]) -> None:
    """Show the summary of what was asked for, and the place of everything."""
    from fastfed.api.sweep import Sweep

    instances = {one.instance.name: one.instance for one in run.grid.settings}
    frame = Sweep(run.store).summary(costs, run.grid.spec.bit_cost)
    console.show(sweep_text(_asked_for(frame, run), instances, out))


def _asked_for(frame: pl.DataFrame, run: Run) -> pl.DataFrame:
    """Select the rows of this run's grid; the folder may hold others, from earlier runs."""
    import polars as pl

    from fastfed.model.cell import CELL

    wanted = pl.DataFrame([one.key.names for one in run.grid.settings])
    return frame.join(wanted, on=CELL, how="semi", maintain_order="left").filter(
        pl.col("schedule").is_in(run.grid.spec.schedule)
    )


def merge(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR", help="Folders of the same sweep.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the joined rows.", parser=checked_folder)
    ],
) -> None:
    """Join folders of the same sweep, for example its shards.

    The same command again continues an interrupted merge.

    \b
    Examples:
      fastfed merge shards/* --out results
      fastfed merge monday tuesday --out results
    """
    from fastfed.api.sweep import merge as join

    merged = join(folders, out).merged
    assert merged is not None
    if merged.missing:
        go_on = command("sweep", spec=f"{out}/sweep.json", out=out)
        console.say(
            f"{merged.missing:,} rows of the spec are in none of the folders; compute "
            f"them with: {go_on}"
        )
    console.show(f"{merged.parts} parts added to {out}/trials/   summary: {out}/summary.parquet")


@options.takes(
    how={
        "shards": options.text(
            "NUMBER", "Number of shards [1; of several folders: as many as fit them]."
        )
    }
)
def missing(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of one sweep.")],
    how: Values,
) -> None:
    """List the shards of a sweep that are still to run.

    The output is a list of indices for a Slurm array.

    \b
    Examples:
      fastfed missing results --shards 16
      fastfed missing shards/* --shards 1000
      sbatch --array=$(fastfed missing shards/* --shards 16) job.sh
    """
    from fastfed.sweeps.shards import as_ranges, missing_shards

    found = missing_shards(folders, how["shards"])
    if found:
        console.show(as_ranges(found))
    else:
        console.say("no shard is missing: `fastfed merge` joins the folders")
