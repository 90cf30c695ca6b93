"""From trials to the file: one pass over the rows of each cell feeds the whole page."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from fastfed.analysis.cheapest import envelope
from fastfed.analysis.check import CellCheck, judge
from fastfed.analysis.prices import costs_of, units
from fastfed.analysis.quantiles import CellQuantiles
from fastfed.analysis.selection import every_schedule
from fastfed.analysis.summary import paired_moments
from fastfed.analysis.trials import Passes, Trials
from fastfed.display.report.compare import add_comparisons
from fastfed.display.report.data import cell_data, report_data
from fastfed.display.report.details import add_bounds, add_quantiles, add_verdicts
from fastfed.display.report.page import page
from fastfed.display.styles import styles
from fastfed.errors import InputError
from fastfed.files import make_folder, replacing
from fastfed.model.cell import Cell
from fastfed.model.choices import DEFAULTS
from fastfed.model.schedules import Schedule
from fastfed.validation import checked_costs
from fastfed.version import __version__

MOST_CELLS = 3_000
"""Cells of a page, which then has 10 MB and takes 400 MB to make: both are in proportion."""


def write_report(
    trials: Trials,
    path: Path,
    about: Mapping[str, object],
    title: str = "fastfed report",
    progress: Callable[[int], object] = lambda done: None,
) -> Path:
    """Write the page of these trials; return the path.

    Parameters
    ----------
    trials
        The rows, of which only sums and quantiles are kept.
    path
        The file, which appears whole or not at all.
    about
        What was run, in order: shown as it is.
    title
        Title of the page.
    progress
        Called with the number of cells that are done.
    """
    held = trials.held()
    if not held:
        raise InputError(f"{trials.source}: nothing to report, the sweep has no rows yet")
    if len(held) > MOST_CELLS:
        raise InputError(
            f"{trials.source}: {len(held):,} cells, and a page shows at most {MOST_CELLS:,}; name "
            "some of them, as in `fastfed report DIR --delta 0.1`"
        )
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name the file to write, as in report.html")
    make_folder(path.parent)
    about = {**about, **_provenance(trials, held)}
    try:
        costs: list[float] | None = checked_costs(trials.costs)
        trials.instances  # noqa: B018 - refused if one cannot be loaded any more
    except InputError as error:  # all else can still be shown
        costs = None
        about["no bounds and no verdicts"] = str(error)
    data = _data(trials, held, about, costs, progress)
    with replacing(path) as file:
        file.write(page(data, title).encode())
    return path


def _data(
    trials: Trials,
    held: Mapping[Any, Sequence[Schedule]],
    about: dict[str, object],
    costs: list[float] | None,
    progress: Callable[[int], object],
) -> dict[str, Any]:
    """Read the cells one after the other; with ``costs``, also compare them with the theorems."""
    shown = sorted(trials.costs)
    priced = costs_of(shown, (), trials.prices)
    cells: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for cell, schedules in held.items():
        names = [str(one) for one in schedules]
        moments, quantiles = paired_moments(schedules), CellQuantiles(names, priced)
        checks = [] if costs is None else [CellCheck(trials, cell, schedules, costs)]
        rows = Passes(partial(trials.batches, cell, names), names)
        rows.collect(moments, quantiles, *checks)
        found = envelope(moments, rows.collect, cell.names, trials.prices)
        data = cell_data(found, schedules, moments)
        add_quantiles(data, quantiles, [unit.total(cost) for cost, unit in priced])
        for one in checks:
            lines += one.lines(moments)
            add_bounds(data, one.bounds)
        cells.append(data)
        progress(len(cells))
    schedules = [one for each in held.values() for one in each]
    fixed, looks = units(trials.prices)[0].base, styles(every_schedule(trials))
    whole = report_data(cells, schedules, about, shown, fixed, looks)
    if costs is not None:
        add_verdicts(whole, judge(lines))
    add_comparisons(whole, trials, shown)
    return whole


def _provenance(trials: Trials, held: Mapping[Cell, Sequence[Schedule]]) -> dict[str, object]:
    """Say what was run, cell by cell, and when and by which command the page was made."""

    def values(key: str) -> str:
        return ", ".join(dict.fromkeys(str(cell.names[key]) for cell in held))

    try:
        rewards = {name: repr(one.rewards) for name, one in trials.instances.items()}
    except InputError:  # of an instance that is gone
        rewards = {}
    program = Path(sys.argv[0]).name
    return {
        **{key: values(key) for key in ("sigma", *DEFAULTS)},
        "rewards": "; ".join(
            f"{name}: {rewards[name]}" if name in rewards else f"{name}: not known any more"
            for name in dict.fromkeys(cell.instance for cell in held)
        ),
        "page made at": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "page made by": shlex.join(["fastfed", *sys.argv[1:]])
        if program in ("fastfed", "__main__.py")
        else f"Python ({program or 'interactive'})",
        "made with": f"fastfed {__version__}",
    }
