"""The command line: options in, results on stdout, progress and errors on stderr.

Thin: each command checks nothing itself and imports what it uses when it runs, so that help needs
neither Numba nor Polars. Bad input is one line and exit status 2.
"""

from __future__ import annotations

import shlex
import signal
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from fastfed import console
from fastfed.commands import answers, completing, options
from fastfed.commands.options import (
    BIT_COST,
    INSTANCE,
    RANGES,
    SCHEDULES,
    Folder,
    Rewards,
    Text,
    Texts,
)
from fastfed.commands.reproduce import reproduce
from fastfed.commands.sweep import sweep
from fastfed.errors import InputError
from fastfed.files import checked_folder
from fastfed.results.tables import summary_text
from fastfed.version import __version__

app = typer.Typer(
    name="fastfed",
    help="Exact simulation of federated best-arm identification.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Click's error class, from wherever this version of Typer has its Click
_UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


def _version(asked: bool) -> None:
    if asked:
        print(f"fastfed {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


app.command()(sweep)


@app.command()
def summary(
    folder: Folder,
    cost: Annotated[
        Texts,
        typer.Option(metavar="LIST", help=f"Costs C of an uplink, {RANGES} [those of the sweep]."),
    ] = None,
    bit_cost: Annotated[
        Texts, typer.Option(metavar="LIST", help=f"{BIT_COST} [those of the sweep].")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="As CSV.")] = False,
) -> None:
    """Print the summary of a sweep's folder for any costs; nothing is simulated again.

    \b
    Examples:
      fastfed summary results --cost 1,3,7
      fastfed summary results --bit-cost 0.1,1
      fastfed summary results --csv > summary.csv
    """
    from fastfed.api.sweep import open_sweep

    if json and csv:
        raise InputError("--json and --csv: choose one")
    opened = open_sweep(folder)
    frame = opened.summary(options.costs(cost), options.costs(bit_cost, "bit-cost"))
    if json:
        print(frame.write_json())
    elif csv:
        print(frame.write_csv(), end="")
    else:
        console.show(summary_text(frame, opened.instances))
    answers.name_problems(opened)


@app.command()
def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Sweeps' folders.")],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for all their rows.", parser=checked_folder)
    ],
) -> None:
    """Join the folders of one sweep, as its shards wrote them; the same command again goes on.

    \b
    Examples:
      fastfed merge shards/* --out results
      fastfed merge monday tuesday --out results
    """
    from fastfed.sweeps.merge import merge as join

    merged = join(folders, out)
    for problem in merged.damaged:
        console.say(f"{problem}: {problem.outcome}")
    for left in merged.left_out:
        console.say(f"{left}: left out")
    if merged.missing:
        go_on = shlex.join(["fastfed", "sweep", "--spec", f"{out}/sweep.json", "--out", str(out)])
        console.say(
            f"{merged.missing:,} rows of the spec are in none of the folders; compute "
            f"them with: {go_on}"
        )
    console.show(f"{merged.parts} parts added to {out}/trials/   summary: {out}/summary.parquet")
    if merged.damaged or merged.left_out:  # a script must not go on as if all were there
        raise typer.Exit(1)


app.command()(answers.best)
app.command()(answers.plot)
app.command()(answers.replay)


@app.command()
def report(
    folder: Folder,
    out: Annotated[
        Optional[Path],
        typer.Option(  # noqa: UP045
            metavar="FILE", help="The file to write [DIR/report.html]."
        ),
    ] = None,
    open: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write one interactive page of HTML that needs no network: choose C, sort, save figures.

    \b
    Examples:
      fastfed report results --open
      fastfed report results --out synthetic.html
    """
    from fastfed.api.sweep import open_sweep

    opened = open_sweep(folder)
    path = opened.report(out or opened.folder / "report.html")
    console.show(path)
    if open:
        from webbrowser import open as open_page

        if not open_page(path.resolve().as_uri()):
            console.say(f"no browser could be started; open {path} in one")
    answers.name_problems(opened)


@app.command()
def bounds(
    instance: Annotated[
        str,
        typer.Argument(
            metavar="INSTANCE", help=f"{INSTANCE}.", autocompletion=completing.instances
        ),
    ],
    delta: Annotated[
        Texts, typer.Option(metavar="LIST", help=f"Error probabilities, {RANGES} [0.01].")
    ] = None,
    cost: Annotated[
        Texts, typer.Option(metavar="LIST", help=f"Costs C of an uplink, {RANGES} [10].")
    ] = None,
    period: Annotated[Text, typer.Option(metavar="NUMBER", help="Period H [the best one].")] = None,
    base: Annotated[
        Text, typer.Option(metavar="NUMBER", help="Base lambda of an exponential scheme [none].")
    ] = None,
    sigma: Annotated[
        Text,
        typer.Option(metavar="NUMBER", help="Confidence scale, or proxy [what fits the instance]."),
    ] = None,
    rewards: Rewards = None,
    radius: Annotated[
        Texts,
        typer.Option(
            metavar="LIST", help="Confidence radii [paper].", autocompletion=completing.radii
        ),
    ] = None,
    goal: Annotated[
        Texts,
        typer.Option(
            metavar="LIST", help="Goals, as of sweep [best].", autocompletion=completing.goals
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Everything, as a JSON list with one item for each goal, radius, delta and cost.",
        ),
    ] = False,
) -> None:
    """The theorems as numbers for an instance: T, the bounds of each scheme, the best H and lambda.

    \b
    Examples:
      fastfed bounds synthetic --delta 0.1,0.01 --cost 10
      fastfed bounds movielens --sigma proxy --json
    """
    from fastfed.problem.instance import Instance
    from fastfed.results.tables import bounds_text
    from fastfed.theory.bounds import bounds as bounds_of

    one = Instance.load(instance, rewards)
    found = [
        bounds_of(one, d, c, sigma, period, base, r, g)  # type: ignore[arg-type]
        for g in options.goals(goal) or ["best"]
        for r in options.split("radius", radius) or ["paper"]
        for d in options.numbers("delta", delta) or ["0.01"]
        for c in options.costs(cost) or [10.0]
    ]
    if json:
        from json import dumps

        print(dumps([b.to_dict() for b in found], allow_nan=False))
    else:
        console.show(bounds_text(found))


@app.command()
def check(
    folder: Folder,
    cost: Annotated[
        Texts,
        typer.Option(metavar="LIST", help=f"Costs C of an uplink, {RANGES} [those of the sweep]."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Compare a sweep with the theorems: a verdict per claim, exit status 1 if one is violated.

    This tests the theorems, which leave a fourfold slack: it does not validate the simulator.

    \b
    Examples:
      fastfed check results
      fastfed check results --cost 1,10 --json
    """
    from fastfed.api.sweep import open_sweep

    opened = open_sweep(folder)
    found = opened.check(options.costs(cost))
    if json:
        print(found.frame.write_json())
    else:
        from fastfed.results.tables import check_text

        answers.show_laws(opened)
        console.show(check_text(found))
    answers.name_problems(opened)
    if found.violated:
        raise typer.Exit(1)


@app.command()
def errors(
    instance: Annotated[
        str,
        typer.Argument(
            metavar="INSTANCE", help=f"{INSTANCE}.", autocompletion=completing.instances
        ),
    ],
    schedule: Annotated[
        Text,
        typer.Option(
            metavar="NAME",
            help=f"Schedule: {SCHEDULES} [fedelim].",
            autocompletion=completing.schedules,
        ),
    ] = None,
    delta: Annotated[
        Texts,
        typer.Option(
            metavar="LIST", help=f"Error probabilities that the radii allow, {RANGES} [0.01]."
        ),
    ] = None,
    radius: Annotated[
        Texts,
        typer.Option(
            metavar="LIST", help="Confidence radii [paper].", autocompletion=completing.radii
        ),
    ] = None,
    trials: Annotated[
        Text, typer.Option(metavar="NUMBER", help="Trials for each answer [10000].")
    ] = None,
    seed: Annotated[Text, typer.Option(metavar="NUMBER", help="Seed [0].")] = None,
    sigma: Annotated[
        Text,
        typer.Option(metavar="NUMBER", help="Confidence scale, or proxy [what fits the instance]."),
    ] = None,
    rewards: Rewards = None,
    threads: Annotated[Text, typer.Option(metavar="NUMBER", help="Threads [all cores].")] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Estimate how often an answer is really wrong, by importance sampling, down to 1e-100.

    \b
    Examples:
      fastfed errors synthetic --delta 0.01
      fastfed errors bernoulli --delta 0.1:1e-6:log --schedule periodic:100
    """
    from fastfed.problem.instance import Instance
    from fastfed.theory.error_probability import error_frame, error_probability

    one = Instance.load(instance, rewards)
    progress = _counting if sys.stderr.isatty() else None
    given = {"schedule": schedule, "trials": trials, "seed": seed}
    usual: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    found = [
        error_probability(
            one,
            delta=d,
            radius=r,
            sigma=sigma,
            threads=threads,  # type: ignore[arg-type]
            progress=progress,
            **usual,
        )
        for r in options.split("radius", radius) or ["paper"]
        for d in options.numbers("delta", delta) or ["0.01"]
    ]
    if json:
        print(error_frame(found).write_json())
    else:
        console.show("\n\n".join(map(str, found)))


app.command()(reproduce)


@app.command()
def instances() -> None:
    """List the built-in instances, with their sizes and gaps.

    \b
    Examples:
      fastfed instances
      fastfed sweep --instance movielens --trials 100
    """
    from fastfed.problem.instance_files import FAMILIES, builtin_names, load

    print(
        f"{'name':<12} {'arms':>4} {'clients':>7} {'local gap':>9} {'global gap':>10}  description"
    )
    for name in builtin_names():
        one = load(name)
        arms, clients = one.shape
        print(
            f"{name:<12} {arms:>4} {clients:>7} {one.local_gaps.min():>9.4g} "
            f"{one.global_gaps.min():>10.4g}  {one.description}"
        )
    print("families: " + "; ".join(FAMILIES.values()))
    print("files: .toml, .csv, .parquet")


movielens = typer.Typer(help="The MovieLens instance.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(movielens, name="movielens")


@movielens.callback()
def _movielens() -> None:
    pass


@movielens.command("build")
def movielens_build(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Where the original files are: "
            "user_ratedmovies.dat (or -timestamps), "
            "movie_countries.dat, movie_genres.dat.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Where to write the instance [movielens.parquet].",
        ),
    ] = Path("movielens.parquet"),
    rule: Annotated[
        str,
        typer.Option(metavar="NAME", show_default=False, help="Clean-up: paper or ties [paper]."),
    ] = "paper",
    empty: Annotated[
        str,
        typer.Option(
            metavar="NAME", show_default=False, help="Empty cells: zero or drop-country [zero]."
        ),
    ] = "zero",
) -> None:
    """Make the instance from the original data files, and compare its counts with the paper's.

    \b
    Examples:
      fastfed movielens build hetrec2011
      fastfed movielens build hetrec2011 --rule ties --out ties.parquet
    """
    from fastfed.problem.movielens import build_instance

    instance, report = build_instance(folder, rule, empty)
    instance.save(out)
    console.show(report)
    console.show(
        f"{instance.shape[0]} arms x {instance.shape[1]} clients written to {out}; "
        f"use it as --instance {out}"
    )


def run_process(arguments: list[str]) -> int:
    """`run` for a process of its own, whose standard files are put in order first and last."""
    console.open_standard_files()
    status = run(arguments)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is done: Ctrl-C may end it without a word
    lost = console.lost_output()
    console.lost_messages()
    return 2 if lost and status == 0 else status


@cache
def _program() -> Any:
    """The commands, put together from their signatures: once in a process, for it takes 20 ms."""
    return typer.main.get_command(app)


def run(arguments: list[str]) -> int:
    """Run a command line in this process; its exit status."""
    try:
        status = _program()(arguments, prog_name="fastfed", standalone_mode=False)
        sys.stdout.flush()
        return _interrupted(arguments) if status == 130 else int(status or 0)
    except (InputError, _UsageError) as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            return run([*arguments, "--help"])
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


def _counting(done: int, total: int) -> None:
    """Progress on a terminal, on a line that is gone in the end."""
    print(
        "\r\033[K" if done == total else f"\r{done} of {total} answers",
        end="",
        flush=True,
        file=sys.stderr,
    )
