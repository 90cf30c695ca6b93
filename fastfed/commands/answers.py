"""Commands that ask a sweep's folder: best, plot, replay. Only replay simulates anything: the one
trial that it tells, of a folder or of an instance."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from fastfed import console
from fastfed.commands import completing, options
from fastfed.commands.options import BIT_COST, RANGES, Folder, Rewards, Text, Texts
from fastfed.errors import InputError
from fastfed.files import checked_folder

if TYPE_CHECKING:
    import polars as pl

    from fastfed.api.sweep import Sweep

_MOST_WRONG = 50  # rows that --wrong prints
_MOST_LINES = 48  # in one figure, before every delta gets a figure of its own


def best(
    folder: Folder,
    cost: Annotated[
        Texts,
        typer.Option(metavar="LIST", help=f"Costs C of an uplink, {RANGES} [all C >= 0 at once]."),
    ] = None,
    bit_cost: Annotated[Texts, typer.Option(metavar="LIST", help=f"{BIT_COST} [none].")] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Find the cheapest schedule for all costs C: where it changes, and what is not separable.

    \b
    Examples:
      fastfed best results
      fastfed best results --cost 1,10,100
      fastfed best results --bit-cost 0.1,1
    """
    from fastfed.api.sweep import open_sweep
    from fastfed.results.tables import best_text

    sweep = open_sweep(folder)
    wanted, of_bits = options.costs(cost) or [], options.costs(bit_cost, "bit-cost") or []
    found = sweep.best()
    everywhere = not (wanted or of_bits)
    if json:
        print((found.frame if everywhere else found.at(wanted, of_bits)).write_json())
    else:
        show_laws(sweep)
        console.show(found if everywhere else best_text(found, wanted, of_bits))
    name_problems(sweep)


def plot(
    folder: Folder,
    x: Annotated[
        Text,
        typer.Option(
            metavar="NAME",
            help="Along x: delta, period, cost, schedule, "
            "radius, goal, uplink or gap [the three usual "
            "figures].",
        ),
    ] = None,
    y: Annotated[
        Text,
        typer.Option(
            metavar="NAME", help="total, pulls, communication, error_rate or steps [total]."
        ),
    ] = None,
    group: Annotated[
        Text,
        typer.Option(
            metavar="NAME",
            help="A line for each: schedule, delta, "
            "cost, instance, sigma, radius, goal, uplink "
            "[schedule].",
        ),
    ] = None,
    cost: Annotated[
        Texts,
        typer.Option(metavar="LIST", help=f"Costs C of an uplink, {RANGES} [those of the sweep]."),
    ] = None,
    errors: Annotated[
        Text,
        typer.Option(
            metavar="NAME", help="Bars: sem, std or quantiles [std; sem with --x or --y]."
        ),
    ] = None,
    out: Annotated[
        Optional[Path],
        typer.Option(  # noqa: UP045
            metavar="DIR", help="Folder for the figures [DIR/figures].", parser=checked_folder
        ),
    ] = None,
    format: Annotated[str, typer.Option(metavar="LIST", help="png, pdf or svg.")] = "png",
    bounds: Annotated[
        bool,
        typer.Option(
            "--bounds",
            help="Draw T, 2T, 3T and the lower bound beside the total cost against delta.",
        ),
    ] = False,
) -> None:
    """Draw figures from a sweep: the usual three, or one of your choice with --x and --y.

    A figure of total or communication cost is drawn for each cost C; one with more than 48 lines
    is split into one for each delta.

    \b
    Examples:
      fastfed plot results --format png,pdf
      fastfed plot results --x cost --y total --cost 0.1:1e4:log21
    """
    from fastfed.api.sweep import open_sweep

    sweep = open_sweep(folder)
    kinds = options.split("format", [format]) or []
    target = out or folder / "figures"
    wanted = options.costs(cost)
    if x is None and y is None and group is None:
        from fastfed.results.figures import plot_sweep

        paths = plot_sweep(
            sweep.summary(wanted or sweep.costs),
            target,
            kinds,
            sweep.instances if bounds else None,
            errors or "std",
        )
    elif bounds:
        raise InputError("--bounds: stands beside the usual figures; leave out --x, --y, --group")
    else:
        paths = _plot_one(
            sweep,
            {"x": x or "delta", "y": y or "total", "group": group, "errors": errors or "sem"},
            wanted,
            target,
            kinds,
        )
    for path in paths:
        console.show(path)
    name_problems(sweep)


def _plot_one(
    sweep: Sweep, choice: dict[str, Any], costs: list[float] | None, out: Path, kinds: list[str]
) -> list[Path]:
    """One figure; one for each cost where costs neither stand along x nor have lines; and one for
    each delta where all of them together would be too many lines."""
    from fastfed.results.figures import plot_files
    from fastfed.results.series import chart
    from fastfed.results.wording import plain

    of_cost = "cost" in (choice["x"], choice["group"]) or (
        choice["y"] not in ("total", "communication")
    )
    known = sweep.costs if costs is None else costs
    paths = []
    for one in [None] if of_cost else known:
        frame = sweep.plot_frame(choice["x"], choice["y"], known if one is None else [one])
        stem = f"{choice['y']}-{choice['x']}" + ("" if one is None else f"-C{one:g}")
        crowded = len(chart(frame, **choice).lines) > _MOST_LINES
        if crowded and "delta" not in (choice["x"], choice["group"]):
            for (delta,), rows in frame.group_by(["delta"], maintain_order=True):
                paths += plot_files(rows, out / f"{stem}-d{plain(delta)}", kinds, **choice)
        else:
            paths += plot_files(frame, out / stem, kinds, **choice)
    return paths


def replay(
    what: Annotated[
        str,
        typer.Argument(
            metavar="INSTANCE_OR_DIR",
            help="A built-in name, a file, or a sweep's folder.",
            autocompletion=completing.instances,
        ),
    ],
    schedule: Annotated[
        Text,
        typer.Option(
            metavar="NAME",
            help="Schedule [fedelim; in a folder, the one it holds].",
            autocompletion=completing.schedules,
        ),
    ] = None,
    delta: Annotated[
        Text,
        typer.Option(
            metavar="NUMBER", help="Error probability [0.01; in a folder, the one it holds]."
        ),
    ] = None,
    seed: Annotated[Text, typer.Option(metavar="NUMBER", help="Seed of the run [0].")] = None,
    trial: Annotated[Text, typer.Option(metavar="NUMBER", help="Number of the trial [0].")] = None,
    sigma: Annotated[
        Text, typer.Option(metavar="NUMBER", help="Confidence scale [what fits the instance].")
    ] = None,
    max_steps: Annotated[
        Text, typer.Option(metavar="NUMBER", help="Cut the trial off here [never].")
    ] = None,
    radius: Annotated[
        Text,
        typer.Option(
            metavar="NAME",
            help="Confidence radius [paper; in a folder, the one it holds].",
            autocompletion=completing.radii,
        ),
    ] = None,
    goal: Annotated[
        Text,
        typer.Option(
            metavar="NAME",
            help="Goal [best; in a folder, the one it holds].",
            autocompletion=completing.goals,
        ),
    ] = None,
    uplink: Annotated[
        Text,
        typer.Option(
            metavar="NAME",
            help="How means reach the server [exact; in a folder, as it holds].",
            autocompletion=completing.uplinks,
        ),
    ] = None,
    rewards: Rewards = None,
    instance: Annotated[
        Text, typer.Option(metavar="NAME", help="Of a folder: which instance [the one it holds].")
    ] = None,
    wrong: Annotated[
        bool, typer.Option("--wrong", help="Of a folder: list the trials that erred.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Tell one trial event by event; it equals its row in a sweep.

    \b
    Examples:
      fastfed replay synthetic --schedule periodic:100 --trial 7312
      fastfed replay results --wrong
    """
    if Path(what).is_dir():
        if rewards is not None:
            raise InputError(
                f"--rewards {rewards}: the rows in {what} say what their rewards are; leave it out"
            )
        _replay_folder(
            Path(what),
            {
                "schedule": schedule,
                "delta": delta,
                "sigma": sigma,
                "instance": instance,
                "radius": radius,
                "goal": goal,
                "uplink": uplink,
            },
            trial,
            wrong,
            json,
        )
        return
    if wrong or instance is not None:
        raise InputError(f"{what}: no such folder; --wrong and --instance ask a sweep's folder")
    from fastfed.engine.replay import replay as tell
    from fastfed.problem.instance import Instance

    # an empty text is a slip, which is named, and not the default
    given = {
        "schedule": schedule,
        "delta": delta,
        "seed": seed,
        "trial": trial,
        "radius": radius,
        "goal": goal,
        "uplink": uplink,
    }
    usual: dict[str, Any] = {"schedule": "fedelim", "delta": "0.01"}
    usual |= {name: value for name, value in given.items() if value is not None}
    _show_story(tell(Instance.load(what, rewards), sigma=sigma, max_steps=max_steps, **usual), json)  # type: ignore[arg-type]


def _replay_folder(
    folder: Path, which: dict[str, Any], trial: str | None, wrong: bool, json: bool
) -> None:
    from fastfed.api.sweep import open_sweep

    sweep = open_sweep(folder)
    if wrong:
        if not json:
            show_laws(sweep)
        _show_wrong(sweep.wrong(**which), folder, json)
    else:
        if trial is None:
            raise InputError(
                f"{folder}: which trial? give --trial N, or --wrong for those that erred"
            )
        _show_story(sweep.replay(trial, **which), json)  # type: ignore[arg-type]
    name_problems(sweep)


def _show_story(story: Any, json: bool) -> None:
    if json:
        print(story.frame.write_json())
    else:
        console.show(story)


def _show_wrong(rows: pl.DataFrame, folder: Path, json: bool) -> None:
    from fastfed.choices import USUAL
    from fastfed.results.tables import Column, table_text

    if json:
        print(rows.write_json())
        return
    if not len(rows):
        console.show("no trial erred")
        return
    shown = rows.head(_MOST_WRONG).to_dicts()
    differing = [name for name in USUAL if rows[name].n_unique() > 1]
    console.show(
        "\n".join(
            table_text(
                [
                    *(
                        Column(name, [str(row[name]) for row in shown], left=True, name=True)
                        for name in ("instance", "schedule", *differing)
                    ),
                    *(
                        Column(name, [f"{row[name]:g}" for row in shown])
                        for name in ("delta", "sigma")
                    ),
                    *(
                        Column(name, [f"{row[name]:,}" for row in shown])
                        for name in ("trial", "pulls")
                    ),
                    Column(
                        "global answer",
                        [
                            str(row["global_arm"])
                            if row["global_answer"] is None
                            else " ".join(map(str, row["global_answer"])) or "none"
                            for row in shown
                        ],
                    ),
                    Column("local errors", [str(row["local_errors"]) for row in shown]),
                    Column("ended", ["no" if row["truncated"] else "yes" for row in shown]),
                ]
            )
        )
    )
    if len(rows) > len(shown):
        console.show(f"... {len(rows) - len(shown):,} more: --json has all")
    first = shown[0]
    again = shlex.join(
        [
            "fastfed",
            "replay",
            str(folder),
            "--trial",
            str(first["trial"]),
            "--schedule",
            first["schedule"],
            "--delta",
            repr(first["delta"]),
            "--instance",
            first["instance"],
            "--sigma",
            repr(first["sigma"]),
            *(part for name in USUAL for part in (f"--{name}", first[name])),
        ]
    )
    console.show(f"{len(rows):,} rows erred; the first one's story: {again}")


def show_laws(sweep: Sweep) -> None:
    """Above a table: the law of the rewards of each instance."""
    from fastfed.results.tables import laws_text

    for line in laws_text(sweep.instances):
        console.show(line)


def name_problems(sweep: Sweep) -> None:
    """Name the files whose trials are missing in what was shown; exit status 1 if there are."""
    for problem in sweep.problems:
        console.say(str(problem))
    if sweep.problems:
        raise typer.Exit(1)
