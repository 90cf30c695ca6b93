"""Commands that read a sweep's folder: summary, best, compare, plot, report, check."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fastfed import console
from fastfed.cli import lists, options
from fastfed.cli.options import Folder, Values
from fastfed.display.compare_table import compare_table
from fastfed.display.table import MOST, Table
from fastfed.display.tables import check_table, laws_text, summary_table
from fastfed.errors import InputError
from fastfed.files import checked_folder, within

if TYPE_CHECKING:
    import polars as pl

    from fastfed.api.sweep import Sweep


def show_table(table: Table, how: Values) -> None:
    """Print a table in the notation that was asked for."""
    console.show(table.written(how["format"]))


def most_rows(how: Values) -> int | None:
    """Return the number of rows to show; None: all, which is meant for papers.

    Programs get all rows of the frame, and none of the cells.
    """
    if how["format"] in ("csv", "json"):
        return MOST
    return None if how["all"] or how["format"] != "text" else MOST


def opened(folder: Path, which: Values) -> Sweep:
    """Open a sweep's folder; with filters, only the rows that have the wanted values."""
    from fastfed.api.sweep import open_sweep

    sweep = open_sweep(folder)
    return sweep.filter(**which) if options.given(which) else sweep


@options.takes(
    prices=options.prices("those of the sweep", "those of the sweep"),
    which=options.FILTERS,
    how=options.SHOWN,
)
def summary(folder: Folder, prices: Values, which: Values, how: Values) -> None:
    """Print the mean costs of a sweep, for any cost C.

    The command reads the folder and simulates nothing.

    \b
    Examples:
      fastfed summary results --cost 1,3,7
      fastfed summary results --schedule fedelim,fedelim0 --delta 0.01
      fastfed summary results --format csv > summary.csv
    """
    sweep = opened(folder, which)
    frame = sweep.summary(prices["cost"], prices["bit_cost"], prices["price"])
    show_table(summary_table(frame, sweep.instances, most_rows(how)), how)


@options.takes(
    prices=options.prices("all C >= 0 at once"),
    what={
        "over": options.several(
            "LIST",
            "Choices, as in radius,uplink: find one winner over all their values together [none].",
            partial(lists.split, "over"),
        )
    },
    which=options.FILTERS,
    how=options.SHOWN,
)
def best(folder: Folder, prices: Values, what: Values, which: Values, how: Values) -> None:
    """Find the cheapest schedule, for all costs C at once.

    It prints the costs C at which the cheapest schedule changes, with 95 % intervals. "not
    separable" names the schedules that the trials cannot tell from the cheapest one.

    \b
    Examples:
      fastfed best results
      fastfed best results --cost 1,10,100
      fastfed best results --bit-cost 0.1,1
      fastfed best results --cost 10 --price rounds=50 --over radius,uplink
    """
    from fastfed.display.cheapest_text import best_table, cheapest_table

    sweep = opened(folder, which)
    wanted, of_bits = prices["cost"] or [], prices["bit_cost"] or []
    found = sweep.best(prices=prices["price"], over=what["over"] or ())
    if wanted or of_bits:
        table = best_table(found, wanted, of_bits, most_rows(how))
    else:
        table = cheapest_table(found, how["all"])
    show_table(replace(table, above=[*laws_text(sweep.instances), *table.above]), how)


@options.takes(
    what={
        "by": options.text(
            "NAME",
            "Choice to compare, if there is one folder: radius, uplink, goal, participation, "
            "sigma, delta, schedule or instance [a choice with several values, or schedule].",
        ),
        "to": options.text(
            "NAME",
            "Reference value [paper, exact, best or fedelim0 if the sweep has it; otherwise the "
            "first].",
        ),
    },
    prices=options.prices("those of the sweep", "those of the sweep"),
    which=options.FILTERS,
    how=options.SHOWN,
)
def compare(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR [DIR]", help="A sweep's folder, or two.")
    ],
    what: Values,
    prices: Values,
    which: Values,
    how: Values,
) -> None:
    """Compare schedules, radii or whole sweeps on paired trials.

    It prints ratios of mean total cost, pulls, uplinks and bits, and differences of total cost, all
    else equal. The intervals of all ratios hold simultaneously with probability 95 %, and so do
    those of all differences.

    \b
    Examples:
      fastfed compare results --by radius --cost 10
      fastfed compare results --by uplink --bit-cost 1 --schedule fedelim
      fastfed compare monday tuesday
    """
    if len(folders) > 2:
        raise InputError(f"{len(folders)} folders: compare takes one or two")
    if what["by"] is not None and len(folders) == 2:
        raise InputError(f"--by {what['by']} with two folders: leave one of them out")
    sweeps = [opened(checked_folder(folder), which) for folder in folders]
    found = sweeps[0].compare(
        sweeps[1] if len(sweeps) == 2 else what["by"],
        prices["cost"],
        prices["bit_cost"],
        to=what["to"],
        prices=prices["price"],
    )

    show_table(compare_table(found, most_rows(how)), how)


@options.takes(
    axes={
        "x": options.text(
            "NAME",
            "Quantity along x: delta, period, cost, schedule, a choice (as radius) or gap [delta].",
        ),
        "y": options.text(
            "NAME", "Quantity along y: total, pulls, communication, error_rate or steps [total]."
        ),
        "group": options.text(
            "NAME",
            "Draw one line for each schedule, delta, cost, instance, sigma, radius, goal or uplink "
            "[schedule].",
        ),
        "errors": options.text(
            "NAME", "Error bars: sem, std or quantiles [std; sem with --x or --y]."
        ),
    },
    prices={
        key: one for key, one in options.prices("those of the sweep").items() if key != "bit_cost"
    },
    files={
        "out": options.folder("Folder for the figures [DIR/figures]."),
        "format": options.text(
            "LIST", "File formats: png, pdf or svg [png; pdf with --style paper]."
        ),
        "style": options.text(
            "NAME", "Size: screen, paper (one column) or paper-wide (two columns) [screen]."
        ),
        "title": options.Option(
            bool,
            typer.Option("--title/--no-title", help="Write the title above the figure."),
            default=True,
        ),
        "bounds": options.flag(
            "bounds", "Draw the theorems' bounds; with --x or --y a figure for each setting."
        ),
    },
    which=options.FILTERS,
)
def plot(folder: Folder, axes: Values, prices: Values, files: Values, which: Values) -> None:
    """Draw three standard figures, or one with --x and --y.

    The standard figures are total cost against delta, communication cost against delta, and total
    cost against the period. There is one of each for every cost C.

    \b
    Examples:
      fastfed plot results --format png,pdf
      fastfed plot results --x cost --y total --cost 0.1:1e4:log21
    """
    sweep = opened(folder, which)
    form, size = files["format"], files["style"] or "screen"
    usual = "png" if size == "screen" else "pdf"
    kinds = lists.split("format", [usual if form is None else form])
    how = {"formats": kinds, "size": size, **options.given(axes)}
    how |= {"schedules": sweep.every_schedule, "title": files["title"]}
    target, costs = files["out"] or within(folder, "figures"), prices["cost"] or sweep.costs
    if files["bounds"]:
        if prices["price"]:
            raise InputError("--bounds with --price: the bounds are those of pulls + C x uplinks")
        how["instances"] = sweep.instances
    if how.keys() & {"x", "y", "group"}:
        choice = {"x": "delta", "y": "total", "group": None, "errors": "sem", **how}
        frame = sweep.plot_frame(choice["x"], costs, prices["price"])
        paths = _plot_one(frame, choice, target)
    else:
        from fastfed.display.figures import plot_sweep

        paths = plot_sweep(sweep.summary(costs, prices=prices["price"]), target, **how)
    for path in paths[:MOST]:
        console.show(path)
    if len(paths) > MOST:
        console.show(f"... and {len(paths) - MOST:,} more figures in {target}")


def _plot_one(frame: pl.DataFrame, choice: Values, out: Path) -> list[Path]:
    """Draw one figure, or one for each cost; with bounds, one for each setting."""
    from fastfed.display.figures import file_stem, plot_files

    x, y, group = choice["x"], choice["y"], choice["group"]
    keys, stem = ["cost"], f"{y}-{x}"
    if y not in ("total", "communication") and "cost" not in (x, group):
        frame = frame.filter(frame["cost"] == frame["cost"].min())  # the same at every cost
        keys = []
    if "instances" in choice:
        stem += "-bounds"
        keys += [
            key
            for key in options.FILTERS
            if key not in ("schedule", *(["instance"] * (x == "gap")))
        ]
        keys = [key for key in keys if key != x and frame[key].n_unique() > 1]
        if group in keys:
            raise InputError(
                f"--bounds with --group {group}: every {group} has bounds of its own; leave "
                "--group out, for one figure each"
            )
    keys = [key for key in keys if key not in (x, group)]
    paths = []
    for values, rows in frame.group_by(keys, maintain_order=True) if keys else [((), frame)]:
        own = file_stem(dict(zip(keys, values, strict=True)))  # empty: all are the defaults
        paths += plot_files(rows, out / "-".join(filter(None, (stem, own))), **choice)
    return paths


@options.takes(
    files={
        "out": options.file("File for the page [DIR/report.html]."),
        "open": options.flag("open", "Open the page in the browser."),
    },
    which=options.FILTERS,
)
def report(folder: Folder, files: Values, which: Values) -> None:
    """Write the results of a sweep as one interactive HTML page.

    On the page you can choose C, sort tables and save figures. It works offline.

    \b
    Examples:
      fastfed report results --open
      fastfed report results --out synthetic.html
    """
    sweep = opened(folder, which)
    path = sweep.report(files["out"] or sweep.folder / "report.html", progress=True)
    console.show(path)
    if files["open"]:
        from webbrowser import open as open_page

        if not open_page(path.resolve().as_uri()):
            console.say(f"no browser could be started; open {path} in one")


@options.takes(
    prices={"cost": options.prices("those of the sweep")["cost"]},
    which=options.FILTERS,
    how=options.SHOWN,
)
def check(folder: Folder, prices: Values, which: Values, how: Values) -> None:
    """Test whether a sweep obeys the paper's theorems.

    The exit status is 1 if a theorem that applies is contradicted. The theorems' bounds are several
    times larger than the measured costs. Passing therefore does not validate the simulator.

    \b
    Examples:
      fastfed check results
      fastfed check results --cost 1,10 --all
    """
    sweep = opened(folder, which)
    found = sweep.check(prices["cost"])

    table = check_table(found, most_rows(how) is None)
    show_table(replace(table, above=[*laws_text(sweep.instances), *table.above]), how)
    if found.contradicted:
        raise typer.Exit(1)
