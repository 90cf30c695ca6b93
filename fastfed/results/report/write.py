"""From rows to the file: one pass over the trials of each cell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastfed.errors import InputError
from fastfed.files import make_folder, replacing
from fastfed.problem.instance import Instance
from fastfed.results.report.data import report_data
from fastfed.results.report.details import add_bounds, add_quantiles, add_verdicts
from fastfed.results.report.page import page
from fastfed.statistics.moments import COLUMNS, Batch, Moments, Trials
from fastfed.statistics.quantiles import Quantiles
from fastfed.sweeps.store import Store
from fastfed.theory.check import Check, check, instances_of


@dataclass(frozen=True)
class Rows:
    """The trials of one cell, to be read once."""

    where: Mapping[str, Any]
    """``instance``, ``delta``, ``sigma`` and whatever else names the cell."""
    schedules: Sequence[str]
    batches: Iterable[Batch]
    """With `fastfed.statistics.moments.COLUMNS` and, if the report is to say how far the trials
    may be from the step-by-step ones, ``skip_error``."""


def write_report(
    path: Path,
    cells: Iterable[Rows],
    about: Mapping[str, object],
    costs: Sequence[float],
    *,
    instances: Mapping[str, Instance] | None = None,
    checked: Check | None = None,
    title: str = "fastfed report",
) -> Path:
    """Write the page of these rows; the path.

    Parameters
    ----------
    path
        The file, which appears whole or not at all.
    cells
        The rows, cell by cell: only sums and quantiles of them are kept.
    about
        What was run, in order: shown as it is.
    costs
        The costs at which totals get quantiles; the page begins with the middle one.
    instances
        By name, for the bounds of the theorems; None: the page has none.
    checked
        The verdicts on these rows; None: the page has none.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name the file to write, as in report.html")
    make_folder(path.parent)
    wanted = sorted(costs)
    found = [_Cell(rows, wanted) for rows in cells]
    worst = max((one.skip_error for one in found if one.skip_error is not None), default=None)
    if worst is not None:
        about = {**about, "largest skip_error of a trial": f"{worst:.3g}"}
    data = report_data([(one.where, one.moments) for one in found], about, wanted)
    add_quantiles(data, [one.quantiles for one in found])
    if instances is not None:
        add_bounds(data, [instances[one.where["instance"]] for one in found])
    if checked is not None:
        add_verdicts(data, checked)
    with replacing(path) as file:
        file.write(page(data, title).encode())
    return path


def write_folder_report(folder: Path | Store, path: Path | None = None) -> Path:
    """The report of a sweep's folder; ``path`` None: report.html in it."""
    store = Store.of(folder)
    record = store.record()
    held = store.held()
    if not held:
        raise InputError(f"{store.folder}: nothing to report, the sweep has no rows yet")
    about = {
        **_about_spec(record.spec.to_dict()),
        "version of the rows": record.rows,
        "format of the folder": record.format,
        "versions": ", ".join(f"{name} {one}" for name, one in record.versions.items()),
    }
    try:
        instances = instances_of(store)
        checked = check(store)
    except InputError as error:  # an instance that is gone: all else can still be shown
        instances, checked = None, None
        about["no bounds and no verdicts"] = str(error)
    cells = (
        Rows(cell.names, names, store.batches(cell, names, _COLUMNS))
        for cell, names in held.items()
    )
    return write_report(
        path or store.folder / "report.html",
        cells,
        about,
        record.spec.cost,
        instances=instances,
        checked=checked,
        title=f"fastfed report: {store.folder.resolve().name}",
    )


_COLUMNS = (*COLUMNS, "skip_error")


def _about_spec(spec: Mapping[str, Any]) -> dict[str, object]:
    """The spec, key by key; an instance that was given as an object goes by its name."""
    shown = {}
    for key, value in spec.items():
        items = value if isinstance(value, list) else [value]
        shown[key] = ", ".join(
            str(item["name"])
            if isinstance(item, dict)
            else item
            if isinstance(item, str)
            else json.dumps(item)
            for item in items
        )
    return dict(shown)


class _Cell:
    """What is kept of one cell."""

    def __init__(self, rows: Rows, costs: Sequence[float]) -> None:
        self.where = dict(rows.where)
        self.moments = Moments(rows.schedules, rows.schedules)
        self.quantiles = {name: Quantiles(costs) for name in rows.schedules}
        self.skip_error: float | None = None
        for batch in rows.batches:
            self._add(batch)

    def _add(self, batch: Batch) -> None:
        trials = Trials.of(batch, self.moments.schedules)
        self.moments.add(trials)
        for row, name in enumerate(trials.schedules):
            here = trials.present[row]
            self.quantiles[name].add(trials.pulls[row, here], trials.uplinks[row, here])
        for columns in batch.values():
            if "skip_error" in columns and len(columns["skip_error"]):
                largest = float(columns["skip_error"].max())
                self.skip_error = max(self.skip_error or 0.0, largest)
