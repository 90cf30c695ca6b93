"""Commands that read a sweep's folder: summary, best, compare, plot, report, check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fastfed import console
from fastfed.cli import lists, options
from fastfed.cli.options import Folder, Values
from fastfed.display.compare_table import compare_columns, compare_lines
from fastfed.display.table_formats import FORMATS, frame_columns
from fastfed.display.tables import (
    Column,
    check_text,
    law_lines,
    laws_text,
    summary_cells,
    summary_text,
)
from fastfed.errors import InputError
from fastfed.files import checked_folder

if TYPE_CHECKING:
    import polars as pl

    from fastfed.api.sweep import Sweep

Table = tuple[list[str], list[Column]]
"""Lines of text above a table, and its columns."""


def show_table(
    shape: str | None,
    frame: Callable[[], pl.DataFrame],
    columns: Callable[[], Table],
    text: Callable[[], str],
) -> None:
    """Print a table as text, or in the notation that was asked for."""
    if shape == "json":
        console.show_json(frame())
    elif shape == "csv":
        console.show_csv(frame())
    else:
        console.show(text() if shape is None else FORMATS[shape](*columns()))


def opened(folder: Path, which: Values) -> Sweep:
    """Open a sweep's folder; with filters, only the rows that have the wanted values."""
    from fastfed.api.sweep import open_sweep

    sweep = open_sweep(folder)
    return sweep.filter(**which) if options.given(which) else sweep


@options.takes(
    prices=options.prices("those of the sweep", "those of the sweep"),
    which=options.FILTERS,
    form=options.FORMS,
)
def summary(folder: Folder, prices: Values, which: Values, form: Values) -> None:
    """Print the mean costs of a sweep, for any cost C.

    The command reads the folder and simulates nothing.

    \b
    Examples:
      fastfed summary results --cost 1,3,7
      fastfed summary results --schedule fedelim,fedelim0 --delta 0.01
      fastfed summary results --csv > summary.csv
    """
    shape = options.one_of(form)
    sweep = opened(folder, which)
    frame = sweep.summary(prices["cost"], prices["bit_cost"])

    def columns() -> Table:
        shared, found = summary_cells(frame, sweep.instances)
        return [*law_lines(frame, sweep.instances), f"all rows: {shared}"], found

    show_table(shape, lambda: frame, columns, lambda: summary_text(frame, sweep.instances))
    name_problems(sweep)


@options.takes(
    prices=options.prices("all C >= 0 at once"), which=options.FILTERS, form=options.FORMS
)
def best(folder: Folder, prices: Values, which: Values, form: Values) -> None:
    """Find the cheapest schedule, for all costs C at once.

    It prints the costs C at which the cheapest schedule changes, with 95 % intervals. "not
    separable" names the schedules that the trials cannot tell from the cheapest one.

    \b
    Examples:
      fastfed best results
      fastfed best results --cost 1,10,100
      fastfed best results --bit-cost 0.1,1
    """
    from fastfed.display.cheapest_text import best_columns, best_text

    shape = options.one_of(form)
    sweep = opened(folder, which)
    wanted, of_bits = prices["cost"] or [], prices["bit_cost"] or []
    found = sweep.best()
    everywhere = not (wanted or of_bits)

    def frame() -> pl.DataFrame:
        return found.frame if everywhere else found.at(wanted, of_bits)

    def columns() -> Table:
        if everywhere:
            return found.excluded_text(), frame_columns(frame())
        shared, made, notes = best_columns(found, wanted, of_bits)
        return [f"all rows: {shared}", *notes], made

    def text() -> str:
        told = str(found) if everywhere else best_text(found, wanted, of_bits)
        return "\n".join([*laws_text(sweep.instances), told])

    show_table(shape, frame, columns, text)
    name_problems(sweep)


@options.takes(
    what={
        "by": options.text(
            "NAME",
            "Choice to compare, if there is one folder: radius, uplink, goal, sigma, delta, "
            "schedule or instance [none].",
        ),
        "to": options.text(
            "NAME",
            "Reference value [paper, exact, best or fedelim0 if the sweep has it; otherwise the "
            "first].",
        ),
    },
    prices=options.prices("those of the sweep", "those of the sweep"),
    which=options.FILTERS,
    form=options.FORMS,
)
def compare(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR [DIR]", help="A sweep's folder, or two.")
    ],
    what: Values,
    prices: Values,
    which: Values,
    form: Values,
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
    shape = options.one_of(form)
    if len(folders) > 2:
        raise InputError(f"{len(folders)} folders: compare takes one with --by, or two")
    if (what["by"] is None) != (len(folders) == 2):
        raise InputError(
            "--by is missing: give --by radius, uplink, goal, sigma, delta, schedule or instance, "
            "or two folders"
            if len(folders) == 1
            else f"--by {what['by']} with two folders: leave one of them out"
        )
    sweeps = [opened(checked_folder(folder), which) for folder in folders]
    found = sweeps[0].compare(
        sweeps[1] if len(sweeps) == 2 else what["by"],
        prices["cost"],
        prices["bit_cost"],
        to=what["to"],
    )

    def columns() -> Table:
        shared, made = compare_columns(found)
        return [*compare_lines(found), f"all rows: {shared}"], made

    show_table(shape, lambda: found.frame, columns, lambda: str(found))
    for sweep in sweeps:
        name_problems(sweep)


@options.takes(
    axes={
        "x": options.text(
            "NAME",
            "Quantity along x: delta, period, cost, schedule, radius, goal, uplink or gap [delta].",
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
    prices={"cost": options.prices("those of the sweep")["cost"]},
    files={
        "out": options.folder("Folder for the figures [DIR/figures]."),
        "format": options.text(
            "LIST", "File formats: png, pdf or svg [png; pdf with --style paper]."
        ),
        "style": options.text(
            "NAME", "Size: screen, paper (one column) or paper-wide (two columns) [screen]."
        ),
        "bands": options.flag("bands", "Draw errors as bands instead of bars."),
        "bounds": options.flag(
            "bounds", "Draw the theorems' bounds; with --x or --y a figure for each setting."
        ),
    },
    which=options.FILTERS,
)
def plot(folder: Folder, axes: Values, prices: Values, files: Values, which: Values) -> None:
    """Draw three standard figures, or one with --x and --y.

    The standard figures are total cost against delta, communication cost against delta, and total
    cost against the period. There is one of each for every cost C. A figure with more than 48 lines
    is split by delta.

    \b
    Examples:
      fastfed plot results --format png,pdf
      fastfed plot results --x cost --y total --cost 0.1:1e4:log21
    """
    sweep = opened(folder, which)
    form, size = files["format"], files["style"] or "screen"
    usual = "png" if size == "screen" else "pdf"
    kinds = lists.split("format", [usual if form is None else form])
    how = {"formats": kinds, "size": size, "bands": files["bands"], **options.given(axes)}
    target, costs = files["out"] or folder / "figures", prices["cost"] or sweep.costs
    if how.keys() & {"x", "y", "group"}:
        draw = _plot_bounds if files["bounds"] else _plot_one
        choice = {"x": "delta", "y": "total", "group": None, "errors": "sem", **how}
        paths = draw(sweep, choice, costs, target)
    else:
        from fastfed.display.figures import plot_sweep

        instances = sweep.instances if files["bounds"] else None
        paths = plot_sweep(sweep.summary(costs), target, instances=instances, **how)
    for path in paths:
        console.show(path)
    name_problems(sweep)


def _plot_one(sweep: Sweep, choice: Values, costs: list[float], out: Path) -> list[Path]:
    """Draw one figure, or one for each cost or delta.

    Costs that are neither along x nor lines have a figure each. Deltas have a figure each if all of
    them together would be too many lines.
    """
    from fastfed.display.figures import plot_files
    from fastfed.display.series import TooManyLines
    from fastfed.display.wording import plain

    of_cost = "cost" in (choice["x"], choice["group"]) or (
        choice["y"] not in ("total", "communication")
    )
    paths = []
    for one in [None] if of_cost else costs:
        frame = sweep.plot_frame(choice["x"], choice["y"], costs if one is None else [one])
        stem = f"{choice['y']}-{choice['x']}" + ("" if one is None else f"-C{one:g}")
        try:
            paths += plot_files(frame, out / stem, **choice)
        except TooManyLines:
            if "delta" in (choice["x"], choice["group"]):
                raise
            for (delta,), rows in frame.group_by(["delta"], maintain_order=True):
                paths += plot_files(rows, out / f"{stem}-d{plain(delta)}", **choice)
    return paths


def _plot_bounds(sweep: Sweep, choice: Values, costs: list[float], out: Path) -> list[Path]:
    """Draw a figure with bounds for each setting, because every setting has bounds of its own."""
    from fastfed.display.figures import file_stem, plot_files

    x, y, group = choice["x"], choice["y"], choice["group"]
    frame = sweep.plot_frame(x, y, costs)
    if y in ("pulls", "error_rate") and x != "cost":  # the same at every cost
        frame = frame.filter(frame["cost"] == frame["cost"].min())
    setting = [*(key for key in options.FILTERS if key != "schedule"), "cost"]
    along = {x, "instance"} if x == "gap" else {x}
    keys = [key for key in setting if key not in along and frame[key].n_unique() > 1]
    if group in keys:
        raise InputError(
            f"--bounds with --group {group}: every {group} has bounds of its own; leave --group "
            "out, for one figure each"
        )
    choice["instances"] = sweep.instances
    if not keys:
        return plot_files(frame, out / f"{y}-{x}-bounds", **choice)
    paths = []
    for values, rows in frame.group_by(keys, maintain_order=True):
        own = file_stem(dict(zip(keys, values, strict=True)))  # empty: all choices are the defaults
        stem = "-".join(filter(None, (f"{y}-{x}-bounds", own)))
        paths += plot_files(rows, out / stem, **choice)
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
    name_problems(sweep)


@options.takes(
    prices={"cost": options.prices("those of the sweep")["cost"]},
    which=options.FILTERS,
    form=options.FORMS,
)
def check(folder: Folder, prices: Values, which: Values, form: Values) -> None:
    """Test whether a sweep obeys the paper's theorems.

    The exit status is 1 if a theorem that applies is contradicted. The theorems' bounds are several
    times larger than the measured costs. Passing therefore does not validate the simulator.

    \b
    Examples:
      fastfed check results
      fastfed check results --cost 1,10 --json
    """
    sweep = opened(folder, which)
    found = sweep.check(prices["cost"])

    def columns() -> Table:
        return laws_text(sweep.instances), frame_columns(found.frame)

    def text() -> str:
        return "\n".join([*laws_text(sweep.instances), check_text(found)])

    show_table(options.one_of(form), lambda: found.frame, columns, text)
    name_problems(sweep)
    if found.contradicted:
        raise typer.Exit(1)


def name_problems(sweep: Sweep) -> None:
    """Name the damaged files of a sweep, and end with exit status 1 if there are any.

    Their trials are missing in the answer that was printed.
    """
    for problem in sweep.problems:
        console.say(str(problem))
    if sweep.problems:
        raise typer.Exit(1)
