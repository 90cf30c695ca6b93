"""`fastfed sweep`: a grid of cells into a folder, from options or from a spec file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from fastfed import console
from fastfed.commands import completing, options
from fastfed.commands.options import BIT_COST, INSTANCE, RANGES, SCHEDULES, Rewards, Text, Texts
from fastfed.errors import InputError
from fastfed.files import checked_folder
from fastfed.results.tables import summary_text

if TYPE_CHECKING:
    import polars as pl

    from fastfed.sweeps.run import Run
    from fastfed.sweeps.task import Executor


def sweep(
    instance: Annotated[
        Texts,
        typer.Option(
            metavar="NAME",
            help=f"{INSTANCE}; repeat for several [synthetic].",
            autocompletion=completing.instances,
        ),
    ] = None,
    delta: Annotated[
        Texts,
        typer.Option(
            metavar="LIST", help=f"Error probabilities, {RANGES} [0.1,0.05,0.01,0.005,0.001]."
        ),
    ] = None,
    cost: Annotated[
        Texts, typer.Option(metavar="LIST", help=f"Costs C of an uplink, {RANGES} [0,10,100].")
    ] = None,
    bit_cost: Annotated[Texts, typer.Option(metavar="LIST", help=f"{BIT_COST} [none].")] = None,
    period: Annotated[
        Texts,
        typer.Option(metavar="LIST", help=f"Periods H, {RANGES} [5,1,10,100,1000,10000,100000]."),
    ] = None,
    schedule: Annotated[
        Texts,
        typer.Option(
            metavar="LIST",
            help=f"Schedules: {SCHEDULES} [fedelim,fedelim0].",
            autocompletion=completing.schedules,
        ),
    ] = None,
    trials: Annotated[
        Text, typer.Option(metavar="NUMBER", help="Trials of each cell [10000].")
    ] = None,
    seed: Annotated[Text, typer.Option(metavar="NUMBER", help="Seed [0].")] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the results.", metavar="DIR", parser=checked_folder)
    ] = Path("results"),
    threads: Annotated[Text, typer.Option(metavar="NUMBER", help="Threads [all cores].")] = None,
    engine: Annotated[
        Text, typer.Option(metavar="NAME", help="skip, dense or auto [auto].")
    ] = None,
    sigma: Annotated[
        Texts,
        typer.Option(
            metavar="LIST", help="Confidence scales: numbers, or proxy [what fits the instance]."
        ),
    ] = None,
    rewards: Rewards = None,
    max_steps: Annotated[
        Text, typer.Option(metavar="NUMBER", help="Cut trials off here [never].")
    ] = None,
    radius: Annotated[
        Texts,
        typer.Option(
            metavar="LIST",
            help="Confidence radii: paper, "
            "stitched, mixture, stitched-pairs, mixture-pairs "
            "[paper].",
            autocompletion=completing.radii,
        ),
    ] = None,
    goal: Annotated[
        Texts,
        typer.Option(
            metavar="LIST",
            help="Goals: best, top:N, eps:E, threshold:TAU or threshold:TAU,E [best].",
            autocompletion=completing.goals,
        ),
    ] = None,
    uplink: Annotated[
        Texts,
        typer.Option(
            metavar="LIST",
            help="How means reach the server: exact, dither:KAPPA, round:C0 [exact].",
            autocompletion=completing.uplinks,
        ),
    ] = None,
    target_rse: Annotated[
        Text,
        typer.Option(
            metavar="NUMBER",
            help="Stop a cell at this relative standard error of the mean total cost [never].",
        ),
    ] = None,
    dask: Annotated[
        Text,
        typer.Option(
            metavar="ADDRESS",
            help="Run on a Dask cluster: "
            "tcp://host:8786, or local:4 for four processes here "
            "[threads here].",
        ),
    ] = None,
    dashboard: Annotated[
        bool,
        typer.Option(
            "--dashboard",
            help="With --dask local:N: a dashboard, which every user of this machine can see.",
        ),
    ] = False,
    shard: Annotated[
        Text,
        typer.Option(
            metavar="I/N",
            help="Only this share, as in 3/16; `fastfed merge` joins the folders [all].",
        ),
    ] = None,
    spec: Annotated[
        Optional[Path],
        typer.Option(  # noqa: UP045
            metavar="FILE",
            help="The grid in a file (TOML, or a sweep.json); options override [none].",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no table.")] = False,
) -> None:
    """Run a grid of instances, deltas and schedules; write trial rows as Parquet; resumable.

    \b
    Examples:
      fastfed sweep --trials 10000
      fastfed sweep --instance means.csv --rewards bernoulli --period 1:1e5:log --schedule fedelim
    """
    from fastfed.api.progress import watch
    from fastfed.sweeps.grid import Shard
    from fastfed.sweeps.run import iterate
    from fastfed.sweeps.spec import make_spec
    from fastfed.validation import checked_threads

    given = {
        "instance": instance,
        "delta": options.numbers("delta", delta),
        "cost": options.numbers("cost", cost),
        "bit_cost": options.numbers("bit-cost", bit_cost),
        "period": options.numbers("period", period, whole=True),
        "schedule": options.schedules(schedule),
        "trials": trials,
        "seed": seed,
        "engine": engine,
        "sigma": options.numbers("sigma", sigma),
        "max_steps": max_steps,
        "target_rse": target_rse,
        "radius": options.split("radius", radius),
        "goal": options.goals(goal),
        "uplink": options.split("uplink", uplink),
    }
    content = _content(given, spec, rewards)
    grid = make_spec(content)
    count = None if threads is None else checked_threads(threads)
    share = None if shard is None else Shard.parse(shard)
    executor = _executor(dask, threads, dashboard, quiet)
    run = watch(iterate(grid, out, executor=executor, threads=count, shard=share), not quiet)
    for problem in run.damaged:
        console.say(f"{problem}: {problem.outcome}")
    for failure in run.failures:
        console.say(str(failure))
    if not quiet:
        # who asks for costs of a bit alone is shown these, and finds the usual C in the summary
        _show(run, out, () if grid.bit_costs and "cost" not in content else grid.costs)
    if run.failures:
        raise typer.Exit(1)


def _content(given: dict[str, Any], spec: Path | None, rewards: str | None) -> dict[str, Any]:
    """The keys of a spec: those of the file, if there is one, and over them what was given. Whoever
    gives schedules or periods means just these, and none of the file's."""
    from fastfed.problem.instance_files import with_rewards
    from fastfed.sweeps.spec import read_spec

    content = {} if spec is None else read_spec(spec)
    if given["schedule"] is not None or given["period"] is not None:
        content = {
            key: value for key, value in content.items() if key not in ("schedule", "period")
        }
    content |= {key: value for key, value in given.items() if value is not None}
    if rewards is not None:
        content["instance"] = with_rewards(content.get("instance") or ["synthetic"], rewards)
    return content


def _executor(
    dask: str | None, threads: str | None, dashboard: bool, quiet: bool
) -> Executor | None:
    """The cluster that was asked for; None: threads of this process."""
    if dask is None:
        if dashboard:
            raise InputError("--dashboard: only a Dask cluster has one; add --dask local:4")
        return None
    from fastfed.sweeps.dask import Dask

    if threads is not None:
        raise InputError(
            f"--threads {threads} with --dask {dask}: the workers of a cluster "
            "have their own threads; leave one of them out"
        )
    return Dask(dask, say=lambda line: None if quiet else console.say(line), dashboard=dashboard)


def _show(run: Run, out: Path, costs: tuple[float, ...]) -> None:
    """The summary of what was asked for, and where everything is."""
    from fastfed.api.sweep import open_sweep

    instances = {one.name: one for _, one in run.grid.cells}
    frame = open_sweep(out).summary(costs, run.grid.spec.bit_costs)
    console.show(summary_text(_asked_for(frame, run), instances))
    console.show(
        f"trial rows: {out}/trials/*.parquet   summary: {out}/summary.parquet   "
        f"spec: {out}/sweep.json"
    )


def _asked_for(frame: pl.DataFrame, run: Run) -> pl.DataFrame:
    """The rows of this run's grid: the folder may hold others, from earlier runs."""
    import polars as pl

    from fastfed.choices import PLURAL

    spec = run.grid.spec
    names = {cell.instance for cell, _ in run.grid.cells}
    return frame.filter(
        pl.col("instance").is_in(list(names)),
        pl.col("delta").is_in(list(spec.deltas)),
        pl.col("schedule").is_in(list(spec.schedules)),
        *(pl.col(name).is_in(list(getattr(spec, several))) for name, several in PLURAL.items()),
    )
