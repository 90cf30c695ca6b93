"""Bounds of the theorems as lines of a figure; nothing here draws.

Each place along x has a setting, and each setting has its bounds. Where one bound holds for all
schedules, or for the paper's, it is a line of its own. Where schedules or periods stand along x,
every schedule has its own bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastfed.display.series import CATEGORIES, Line, period_of, places_of
from fastfed.errors import InputError
from fastfed.model.choices import DEFAULTS, no_theorem
from fastfed.model.schedules import Schedule

if TYPE_CHECKING:
    import polars as pl

    from fastfed.model.instance import Instance
    from fastfed.theory.bounds import Bounds

LEAST = "no algorithm below this (pulls)"
_COSTS = {"total": "total", "pulls": "pulls", "communication": "comm"}
_WIDTH = 1.25  # of a line at a single place, as a factor


def bound_lines(
    frame: pl.DataFrame, instances: Mapping[str, Instance], x: str = "delta", y: str = "total"
) -> list[Line]:
    """Make lines of the bounds on y, each where it is a bound.

    Parameters
    ----------
    frame
        Rows of a summary. At the same place along x all of them have the same setting.
    instances
        Instances of the rows, by name.
    x, y
        As of `fastfed.display.series.chart`.

    Returns
    -------
    list of Line
        Unjoined points where x has categories.
    """
    if y != "error_rate" and y not in _COSTS:
        raise InputError(
            f"no theorem bounds {y}: with bounds choose one of {', '.join(_COSTS)}, error_rate"
        )
    rows = frame.to_dicts()
    places = places_of(rows, x)
    points: dict[str, list[tuple[float, float]]] = {}
    for at, place in enumerate(places):
        row = next(row for row in rows if (period_of(row) if x == "period" else row[x]) == place)
        for label, value in _values(instances[row["instance"]], row, x, y).items():
            if value > 0:  # a logarithmic axis has no 0
                where = float(at if x in CATEGORIES else place)
                points.setdefault(label, []).append((where, value))
    return [_line(label, found, x) for label, found in points.items()]


def _line(label: str, points: list[tuple[float, float]], x: str) -> Line:
    xs, ys = (list(column) for column in zip(*points, strict=True))
    if x in CATEGORIES:
        return Line(label, xs, ys, plain=True, joined=False)
    if len(xs) == 1:  # one point makes no line
        xs, ys = [xs[0] / _WIDTH, xs[0] * _WIDTH], 2 * ys
    return Line(label, xs, ys, plain=True)


def _values(instance: Instance, row: Mapping[str, Any], x: str, y: str) -> dict[str, float]:
    """Return the bounds of a row's setting by their labels; 0 for one that says nothing."""
    from fastfed.theory.bounds import bounds

    if y == "error_rate":
        return {"delta, the rate that is allowed": row["delta"]}
    choices = {name: row.get(name, usual) for name, usual in DEFAULTS.items()}
    if no_theorem(choices):
        return {}
    b = bounds(instance, row["delta"], row["cost"], row["sigma"], **choices)
    if x in ("period", "schedule"):
        name = "periodic:H" if x == "period" else "the schedule"
        found = {f"bound of {name}": _scheme_bound(b, row["schedule"], y)}
    else:
        found = _paper_bounds(b, y)
    if y != "communication":
        found[LEAST] = 0.0 if b.least_pulls is None else float(b.least_pulls)
    return found


def _paper_bounds(b: Bounds, y: str) -> dict[str, float]:
    T = float(b.T)
    if y == "communication":
        return {"bound of fedelim": float(b.fedelim.summed.comm)}
    three = {"3T (fedelim, total)": 3 * T if b.three_T_follows else 0.0} if y == "total" else {}
    return {**three, "2T (fedelim, pulls)": 2 * T, "T (fedelim0, pulls)": T}


def _scheme_bound(b: Bounds, schedule: str, y: str) -> float:
    scheme = b.scheme(Schedule.parse(schedule))
    return 0.0 if scheme is None else float(getattr(scheme.summed, _COSTS[y]))
