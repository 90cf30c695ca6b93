"""The command line: options in, results on stdout, progress and errors on stderr.

Thin: each command checks nothing itself and imports what it uses when it runs, so that help needs
neither Numba nor Polars. Bad input is one line and exit status 2.
"""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from fastfed import console
from fastfed.errors import InputError, printable
from fastfed.files import checked_folder
from fastfed.results.tables import summary_text
from fastfed.statistics.numbers import short
from fastfed.version import __version__

if TYPE_CHECKING:
    import polars as pl

    from fastfed.sweeps.spec import Spec
    from fastfed.sweeps.store import Store
    from fastfed.sweeps.task import Executor

app = typer.Typer(
    name="fastfed",
    help="Exact simulation of federated best-arm identification.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Click's error class, from wherever this version of Typer has its Click
_UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

# Typer reads these at run time, so they stay in the form that Python 3.11 evaluates.
Texts = Optional[list[str]]  # noqa: UP045
Text = Optional[str]  # noqa: UP045
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A sweep's folder.")]


def _version(asked: bool) -> None:
    if asked:
        print(f"fastfed {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True,
                                          help="Show the version.")] = False,
) -> None:
    pass


@app.command()
def sweep(
    instance: Annotated[Texts, typer.Option(help="Built-in name, file, random:K,M,SEED or "
                                            "scaled:NAME,FACTOR; repeat for several.")] = None,
    delta: Annotated[Texts, typer.Option(help="Error probabilities, as in 0.1,0.01.")] = None,
    cost: Annotated[Texts, typer.Option(help="Costs of an uplink, as in 0,10,100.")] = None,
    period: Annotated[Texts, typer.Option(help="Periods H, as in 1,10,100.")] = None,
    schedule: Annotated[Texts, typer.Option(help="Schedules: fedelim,exponential:1.5.")] = None,
    trials: Annotated[Text, typer.Option(help="Trials of each cell [10000].")] = None,
    seed: Annotated[Text, typer.Option(help="Seed [0].")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.",
                                      parser=checked_folder)] = Path("results"),
    threads: Annotated[Text, typer.Option(help="Threads [all cores].")] = None,
    engine: Annotated[Text, typer.Option(help="skip, dense or auto [auto].")] = None,
    sigma: Annotated[Texts, typer.Option(help="Confidence scale [what fits the instance].")] = None,
    max_steps: Annotated[Text, typer.Option(help="Cut trials off here.")] = None,
    radius: Annotated[Texts, typer.Option(help="Confidence radii, as in paper,mixture-pairs "
                                          "[paper].")] = None,
    target_rse: Annotated[Text, typer.Option(help="Stop a cell at this relative standard error of "
                                             "the mean total cost.")] = None,
    dask: Annotated[Text, typer.Option(help="Run on a Dask cluster: tcp://host:8786, or local:4 "
                                       "for four processes here.")] = None,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="With --dask local:N: a dashboard, "
                                            "which every user of this machine can see.")] = False,
    shard: Annotated[Text, typer.Option(help="Only this share, as in 3/16; `fastfed merge` joins "
                                        "the folders.")] = None,
    spec: Annotated[Optional[Path], typer.Option(  # noqa: UP045
        help="The grid in a file (TOML, or a sweep.json); options override.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no table.")] = False,
) -> None:
    """Run a grid of instances, deltas and schedules; write trial rows as Parquet; resumable."""
    from fastfed.sweeps.grid import Shard
    from fastfed.sweeps.run import iterate
    from fastfed.sweeps.spec import make_spec, read_spec
    from fastfed.sweeps.summary_file import stored_summary

    given = {
        "instance": instance, "delta": _split(delta), "cost": _split(cost),
        "period": _split(period), "schedule": _split_schedules(schedule), "trials": trials,
        "seed": seed, "engine": engine, "sigma": _split(sigma), "max_steps": max_steps,
        "target_rse": target_rse, "radius": _split(radius),
    }
    base = read_spec(spec) if spec is not None else {}
    if spec is not None and (given["schedule"] is not None or given["period"] is not None):
        base = {key: value for key, value in base.items() if key not in ("schedule", "period")}
    grid = make_spec({**base, **{key: value for key, value in given.items() if value is not None}})
    count = None if threads is None else _threads(threads)
    share = None if shard is None else Shard.parse(shard)
    if dashboard and dask is None:
        raise InputError("--dashboard: only a Dask cluster has one; add --dask local:4")
    executor = None if dask is None else _dask(dask, threads, quiet, dashboard)
    run = _watch(iterate(grid, out, executor=executor, threads=count, shard=share), quiet)
    for problem in run.damaged:
        console.say(f"{problem}: put aside as .damaged; its trials are done again where this "
                    "sweep asks for them")
    for failure in run.failures:
        console.say(str(failure))
    if not quiet:
        names = {cell.instance for cell, _ in run.grid.cells}
        frame = stored_summary(run.store, grid.costs)
        console.show(summary_text(_only(frame, names, grid)))
        console.show(f"trial rows: {out}/trials/*.parquet   summary: {out}/summary.parquet   "
              f"spec: {out}/sweep.json")
    if run.failures:
        raise typer.Exit(1)


@app.command()
def summary(
    folder: Folder,
    cost: Annotated[Texts, typer.Option(help="Costs of an uplink [those of the sweep].")] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="As CSV.")] = False,
) -> None:
    """The summary of a sweep's folder, for any costs: nothing is simulated again."""
    from fastfed.sweeps.store import Store
    from fastfed.sweeps.summary_file import stored_summary

    if json and csv:
        raise InputError("--json and --csv: choose one")
    store = Store(folder)
    frame = stored_summary(store, _costs(cost))
    if json:
        print(frame.write_json())
    elif csv:
        print(frame.write_csv(), end="")
    else:
        console.show(summary_text(frame))
    _name_problems(store)


@app.command()
def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Sweeps' folders.")],
    out: Annotated[Path, typer.Option(help="Folder for all their rows.", parser=checked_folder)],
) -> None:
    """Join the folders of one sweep, as its shards wrote them; the same command again goes on."""
    from fastfed.sweeps.merge import merge as join

    merged = join(folders, out)
    for problem in merged.damaged:
        print(f"fastfed: {problem}: {'put aside as .damaged' if problem.redo else 'left alone'}",
              file=sys.stderr)
    for path in merged.left_out:
        console.say(f"{path}: left out, unreadable or of another sweep")
    if merged.missing:
        go_on = shlex.join(["fastfed", "sweep", "--spec", f"{out}/sweep.json", "--out", str(out)])
        console.say(f"{merged.missing:,} rows of the spec are in none of the folders; compute "
                    f"them with: {go_on}")
    console.show(f"{merged.parts} parts added to {out}/trials/   summary: {out}/summary.parquet")
    if merged.damaged:
        raise typer.Exit(1)


@app.command()
def plot(
    folder: Folder,
    out: Annotated[Optional[Path], typer.Option(  # noqa: UP045
        help="Folder for the figures [DIR/figures].")] = None,
    cost: Annotated[Texts, typer.Option(help="Costs of an uplink [those of the sweep].")] = None,
    format: Annotated[str, typer.Option(help="png, pdf or svg; a comma list for several.")] = "png",
    bounds: Annotated[bool, typer.Option("--bounds", help="Draw T, 2T, 3T and the lower bound "
                                         "beside the total cost against delta.")] = False,
) -> None:
    """Figures from a sweep: cost against delta, communication against delta, cost against H."""
    from fastfed.results.figures import plot_sweep
    from fastfed.sweeps.store import Store
    from fastfed.sweeps.summary_file import stored_summary

    store = Store(folder)
    frame = stored_summary(store, _costs(cost))
    instances = None
    if bounds:
        from fastfed.theory.check import instances_of

        instances = instances_of(store)
    for path in plot_sweep(frame, out or folder / "figures", _split([format]) or [], instances):
        console.show(path)
    _name_problems(store)


@app.command()
def bounds(
    instance: Annotated[str, typer.Argument(help="Built-in name or file.")],
    delta: Annotated[Texts, typer.Option(help="Error probabilities [0.01].")] = None,
    cost: Annotated[Texts, typer.Option(help="Costs of an uplink [10].")] = None,
    period: Annotated[Text, typer.Option(help="Period H [the best one].")] = None,
    base: Annotated[Text, typer.Option(help="Base lambda of an exponential scheme.")] = None,
    sigma: Annotated[Text, typer.Option(help="Confidence scale [what fits the instance].")] = None,
    radius: Annotated[Texts, typer.Option(help="Confidence radii [paper].")] = None,
    json: Annotated[bool, typer.Option("--json", help="Everything, as a JSON list with one item "
                                       "for each radius, delta and cost.")] = False,
) -> None:
    """What the theorems say of an instance: T, the bounds of each scheme, the best H and lambda."""
    from fastfed.problem.instance import Instance
    from fastfed.results.tables import bounds_text
    from fastfed.theory.bounds import bounds as bounds_of

    one = Instance.load(instance)
    found = [bounds_of(one, d, c, sigma, period, base, r)  # type: ignore[arg-type]
             for r in _split(radius) or ["paper"] for d in _split(delta) or ["0.01"]
             for c in _costs(cost) or [10.0]]
    if json:
        from json import dumps

        print(dumps([b.to_dict() for b in found], allow_nan=False))
    else:
        console.show(bounds_text(found))


@app.command()
def check(
    folder: Folder,
    cost: Annotated[Texts, typer.Option(help="Costs of an uplink [those of the sweep].")] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Hold a sweep against the theorems: a verdict per claim, exit status 1 if one is violated.

    This tests the theorems, which leave a fourfold slack: it does not validate the simulator.
    """
    from fastfed.sweeps.store import Store
    from fastfed.theory.check import check as check_sweep

    store = Store(folder)
    found = check_sweep(store, _costs(cost))
    if json:
        print(found.frame.write_json())
    else:
        console.show(found)
    _name_problems(store)
    if found.violated:
        raise typer.Exit(1)


@app.command()
def replay(
    instance: Annotated[str, typer.Argument(help="Built-in name or file.")],
    schedule: Annotated[str, typer.Option(help="Schedule.")] = "fedelim",
    delta: Annotated[str, typer.Option(help="Error probability.")] = "0.01",
    seed: Annotated[str, typer.Option(help="Seed of the run.")] = "0",
    trial: Annotated[str, typer.Option(help="Number of the trial.")] = "0",
    sigma: Annotated[Text, typer.Option(help="Confidence scale.")] = None,
    max_steps: Annotated[Text, typer.Option(help="Cut the trial off here.")] = None,
    radius: Annotated[str, typer.Option(help="Confidence radius.")] = "paper",
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """One trial's story, event by event, equal to its row in a sweep."""
    from fastfed.engine.replay import replay as tell
    from fastfed.problem.instance import Instance

    story = tell(Instance.load(instance), schedule, delta=delta, seed=seed, trial=trial,  # type: ignore[arg-type]
                 sigma=sigma, max_steps=max_steps, radius=radius)  # type: ignore[arg-type]
    if json:
        print(story.frame.write_json())
    else:
        console.show(story)


@app.command()
def errors(
    instance: Annotated[str, typer.Argument(help="Built-in name or file.")],
    schedule: Annotated[str, typer.Option(help="Schedule.")] = "fedelim",
    delta: Annotated[Texts, typer.Option(help="Error probabilities that the radii allow "
                                         "[0.01].")] = None,
    radius: Annotated[Texts, typer.Option(help="Confidence radii [paper].")] = None,
    trials: Annotated[str, typer.Option(help="Trials for each answer.")] = "10000",
    seed: Annotated[str, typer.Option(help="Seed.")] = "0",
    sigma: Annotated[Text, typer.Option(help="Confidence scale [what fits the instance].")] = None,
    threads: Annotated[Text, typer.Option(help="Threads [all cores].")] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """How often an answer is really wrong, by importance sampling: down to 1e-100 and below."""
    from fastfed.problem.instance import Instance
    from fastfed.theory.error_probability import error_frame, error_probability

    one = Instance.load(instance)
    progress = _counting if sys.stderr.isatty() else None
    found = [error_probability(one, schedule, delta=d, radius=r, trials=trials, seed=seed,  # type: ignore[arg-type]
                               sigma=sigma, threads=threads, progress=progress)  # type: ignore[arg-type]
             for r in _split(radius) or ["paper"] for d in _split(delta) or ["0.01"]]
    if json:
        print(error_frame(found).write_json())
    else:
        console.show("\n\n".join(map(str, found)))


@app.command()
def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for everything.",
                                      parser=checked_folder)] = Path("paper"),
    trials: Annotated[Text, typer.Option(help="Trials of each cell [10000].")] = None,
    only: Annotated[Text, typer.Option(help="synthetic, bernoulli or movielens.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few trials: about a minute.")] = False,
    threads: Annotated[Text, typer.Option(help="Threads [all cores].")] = None,
    seed: Annotated[Text, typer.Option(help="Seed [0].")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no verdicts.")] = False,
) -> None:
    """The paper's experiments again: nine panels, the table, every claim with a verdict."""
    from fastfed.paper.experiments import plan, write
    from fastfed.validation import checked_seed, checked_trials

    count = None if threads is None else _threads(threads)
    plans = plan(out, trials=checked_trials(trials or 10_000), only=only,
                 quick=quick, seed=checked_seed(seed or 0))
    for one in plans:
        if not quiet:
            print(f"{one.name}: {one.spec.trials:,} trials of each cell", file=sys.stderr)
        run = _watch(one.parts(count), quiet)
        for failure in run.failures:
            console.say(str(failure))
        if run.failures:
            raise typer.Exit(1)
    claims, paths = write(out)
    if not quiet:
        for claim in claims:
            console.show(f"{claim.key}: {claim.verdict}")
        console.show(f"{len(paths)} files: {out}/claims.md, {out}/table.md, "
                     f"{out}/contact-sheet.png, {out}/figures/")


@app.command()
def instances() -> None:
    """What is built in, with sizes and gaps."""
    from fastfed.problem.instance_files import FAMILIES, builtin_names, load

    print(f"{'name':<12} {'arms':>4} {'clients':>7} {'local gap':>9} {'global gap':>10}  "
          "description")
    for name in builtin_names():
        one = load(name)
        arms, clients = one.shape
        print(f"{name:<12} {arms:>4} {clients:>7} {one.local_gaps.min():>9.4g} "
              f"{one.global_gaps.min():>10.4g}  {one.description}")
    print("families: " + "; ".join(FAMILIES.values()))
    print("files: .toml, .csv, .parquet")


movielens = typer.Typer(help="The MovieLens instance.", no_args_is_help=True,
                        rich_markup_mode=None)
app.add_typer(movielens, name="movielens")


@movielens.callback()
def _movielens() -> None:
    pass


@movielens.command("build")
def movielens_build(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the original files are: "
                                           "user_ratedmovies.dat (or -timestamps), "
                                           "movie_countries.dat, movie_genres.dat.")],
    out: Annotated[Path, typer.Option(help="Where to write the instance.")] = Path(
        "movielens.parquet"),
    rule: Annotated[str, typer.Option(help="Clean-up: paper or ties.")] = "paper",
    empty: Annotated[str, typer.Option(help="Empty cells: zero or drop-country.")] = "zero",
) -> None:
    """Make the instance from the original data files, and compare its counts with the paper's."""
    from fastfed.problem.movielens import build_instance

    instance, report = build_instance(folder, rule, empty)
    instance.save(out)
    console.show(report)
    console.show(f"{instance.shape[0]} arms x {instance.shape[1]} clients written to {out}; "
          f"use it as --instance {out}")


def run_process(arguments: list[str]) -> int:
    """`run` for a process of its own, whose standard files are put in order first and last."""
    console.open_standard_files()
    status = run(arguments)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is done: Ctrl-C may end it without a word
    return 2 if console.lost_output() and status == 0 else status


def run(arguments: list[str]) -> int:
    """Run a command line in this process; its exit status."""
    try:
        status = app(arguments, standalone_mode=False)
        sys.stdout.flush()
        return _interrupted(arguments) if status == 130 else int(status or 0)
    except (InputError, _UsageError) as error:
        message = error.format_message() if isinstance(error, _UsageError) else str(error)
        console.say(_in_brief(" ".join(message.split())))
        return 2
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted(arguments)
    except SystemExit:  # Typer's way out when the reader of stdout has gone
        return 0
    except BrokenPipeError:  # the reader of stdout has gone, as in `| head`
        console.lost_output()
        return 0
    except OSError as error:
        console.say(f"{error.filename or 'file'}: {error.strerror or error}")
        return 2
    except MemoryError:
        console.say("not enough memory; take fewer threads, or a smaller instance")
        return 2


def _in_brief(line: str) -> str:
    """A line of bearable length: what is too long about it is most often a value."""
    return line if len(line) <= 900 else f"{line[:500]} ... {line[-350:]}"


def _interrupted(arguments: list[str]) -> int:
    again = shlex.join(["fastfed", *arguments])
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():  # which has shown ^C
            print(file=sys.stderr)
    console.say(f"stopped; finished parts are kept, go on with: {again}")
    return 130


def _watch(parts: Any, quiet: bool) -> Any:
    """Run a sweep to its end, with a bar if stderr is a terminal."""
    if quiet or not sys.stderr.isatty():
        return deque((run for run, _ in parts), maxlen=1)[0]
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(),
               TextColumn("{task.percentage:3.0f}%"), TextColumn("{task.fields[speed]}"),
               TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=None, speed="")
        begin = time.perf_counter()
        for run, _ in parts:
            p = run.progress
            seconds = max(time.perf_counter() - begin, 1e-9)
            bar.update(task, description=printable(p.cell) or "reading", total=p.trials_planned,
                       completed=p.trials_done,
                       speed=f"{p.workers} workers, {p.in_flight} tasks, "
                             f"{p.trials_done / seconds:,.0f} trials/s, "
                             f"{short(p.pulls / seconds)} pulls/s")
    return run


def _only(frame: pl.DataFrame, names: set[str], spec: Spec) -> pl.DataFrame:
    import polars as pl

    return frame.filter(
        pl.col("instance").is_in(list(names)), pl.col("delta").is_in(list(spec.deltas)),
        pl.col("schedule").is_in(list(spec.schedules)), pl.col("radius").is_in(list(spec.radii)))


def _name_problems(store: Store) -> None:
    """Name the files whose trials are missing in what was shown; exit status 1 if there are."""
    problems = store.problems()
    for problem in problems:
        print(f"fastfed: {problem}", file=sys.stderr)
    if problems:
        raise typer.Exit(1)


def _split(values: list[str] | None) -> list[str] | None:
    if values is None:
        return None
    return [item.strip() for value in values for item in value.split(",") if item.strip()]


def _costs(values: list[str] | None) -> list[float] | None:
    from fastfed.validation import checked_costs

    items = _split(values)
    return None if items is None else checked_costs(items)


def _split_schedules(values: list[str] | None) -> list[str] | None:
    """A comma list in which ``at:1,5,25`` is one item."""
    items: list[str] = []
    for item in _split(values) or []:
        if items and items[-1].startswith("at:") and item.isdigit():
            items[-1] += f",{item}"
        else:
            items.append(item)
    return None if values is None else items


def _dask(address: str, threads: str | None, quiet: bool, dashboard: bool) -> Executor:
    from fastfed.sweeps.dask import Dask

    if threads is not None:
        raise InputError(f"--threads {threads} with --dask {address}: the workers of a cluster "
                         "have their own threads; leave one of them out")
    return Dask(address, say=lambda line: None if quiet else console.say(line),
                dashboard=dashboard)


def _threads(text: str) -> int:
    from fastfed.validation import checked_threads

    return checked_threads(text)


def _counting(done: int, total: int) -> None:
    """Progress on a terminal, on a line that is gone in the end."""
    print("\r\033[K" if done == total else f"\r{done} of {total} answers", end="", flush=True,
          file=sys.stderr)
