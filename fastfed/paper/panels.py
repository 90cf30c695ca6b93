"""The paper's nine panels and the studies' figures.

Each is a `fastfed.display.series.Chart`, made from a summary's rows by the code that `fastfed plot`
uses, and drawn by it: one schedule looks the same in every figure of the project. The charts also
go, as they are, into the page (`fastfed.paper.page`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from fastfed.display.series import Chart, Line, chart
from fastfed.display.styles import EVERY_H, style_of, variant
from fastfed.model.schedules import Schedule
from fastfed.paper.evidence import COST, PRICES, RADII, RUNS, Evidence, Place
from fastfed.paper.tables import STUDY_DELTA, study_bounds
from fastfed.text import plain

PANELS = ("a", "b", "c")
_PAPER_COSTS = (0.0, 10.0, 100.0)
_SHORT = ("fedelim", "periodic:1", "periodic:5", "periodic:10")  # of panels (b)
_POWERS = [f"periodic:{10**power}" for power in range(6)]  # of panels (c)
_SCHEMES = ("fedelim", "periodic:100", "superexponential")
_ADAPTIVE = ("fedelim", "adaptive", "periodic:10", "periodic:100", "periodic:1000")
_ERRORS = "std"  # as in the paper
_MARKERS = dict(zip(RADII, (None, "^", "v", "P", "X"), strict=True))
"""Markers of the radii; None: the schedule's own."""


def charts(frames: Mapping[str, pl.DataFrame], evidence: Evidence) -> dict[str, Chart]:
    """Make all charts with lines, by name: "synthetic-a" and so on.

    ``frames`` are the summaries of the sweeps, by name; that of `gaps` has a column gap.
    """
    found: dict[str, Chart] = {}
    for name, rows in _by_instance(frames["panels"]):
        found |= {
            f"{name}-a": panel_a(rows),
            f"{name}-b": _against_delta(rows, _SHORT, "(b)", y="communication"),
            f"{name}-c": _against_period(rows, _POWERS, "(c)"),
            f"{name}-schemes": _against_delta(rows, _SCHEMES, "three schemes"),
            f"{name}-adaptive": _against_delta(rows, _ADAPTIVE, "adaptive", errors="sem"),
        }
    for name, rows in _by_instance(frames["studies"]):
        found |= {f"{name}-base": base_study(rows), f"{name}-period": period_study(rows)}
    for name, places in _of_instances(evidence["radii"]):
        found[f"{name}-radii"] = radii_study(places)
    if "gaps" in frames:
        found["synthetic-gap"] = _gap_study(frames["gaps"], "total")
        found["synthetic-talk"] = _gap_study(frames["gaps"], "communication")
    for name, places in _of_instances(evidence["optimum"]):
        found[f"{figure_stem(name)}-optimum"] = optimum_study(places)
    return found


def panel_a(rows: pl.DataFrame) -> Chart:
    """Chart FedElim's total cost for each C, and FedElim0's pulls, against delta."""
    parts = {f"fedelim, C = {cost:g}": _of(rows, "fedelim", cost) for cost in _PAPER_COSTS}
    parts["fedelim0, pulls alone"] = _of(rows, "fedelim0", 0.0)
    first = parts[f"fedelim, C = {_PAPER_COSTS[0]:g}"]
    lines = [replace(line, label=label) for label, one in parts.items() for line in one.lines]
    bases = [line.style or EVERY_H for line in lines]
    styled = [
        replace(line, style=variant(base, bases[:place].count(base)))
        for place, (line, base) in enumerate(zip(lines, bases, strict=True))
    ]
    return _titled(replace(first, lines=styled), rows, "(a)")


def _of(rows: pl.DataFrame, schedule: str, cost: float, errors: str = _ERRORS) -> Chart:
    """Chart the total cost of one schedule against delta."""
    return chart(
        rows.filter(pl.col("schedule") == schedule),
        x="delta",
        y="total",
        group="schedule",
        cost=cost,
        errors=errors,
    )


def _against_delta(
    rows: pl.DataFrame, names: Sequence[str], what: str, y: str = "total", errors: str = _ERRORS
) -> Chart:
    """Chart a cost of these schedules against delta."""
    some = rows.filter(pl.col("schedule").is_in(names))
    drawn = chart(some, x="delta", y=y, cost=COST, errors=errors)
    return _titled(drawn, rows, f"{what}, C = {COST:g}")


def _against_period(
    rows: pl.DataFrame, names: Sequence[str], what: str, more: str = "", marks: Sequence[float] = ()
) -> Chart:
    """Chart the total cost against the period, with FedElim as a level line."""
    here = rows.filter(
        pl.col("delta") == STUDY_DELTA,
        pl.col("cost") == COST,
        pl.col("schedule").is_in(["fedelim", *names]),
    )
    drawn = chart(here, x="period", y="total", errors=_ERRORS)
    curve = next(line for line in drawn.lines if not line.plain)
    least = min(zip(curve.y, curve.x, strict=True))[1]
    where = f"{what}, C = {COST:g}, delta = {STUDY_DELTA:g}, least at H = {least:,.0f}"
    return _titled(replace(drawn, marks=marks), rows, where, more)


def figure_stem(instance: str) -> str:
    """Return the beginning of the names of an instance's figures."""
    return instance.replace(":", "-").replace(",", "-")


def optimum_study(places: Sequence[Place]) -> Chart:
    """Chart mean pulls over the least pulls of any algorithm against delta."""
    deltas = [place.delta for place in places]
    lines = _lines_of_runs(places, RUNS, lambda place, run: place.factor(run))
    least = Line("no algorithm below this", [min(deltas), max(deltas)], [1.0, 1.0], plain=True)
    return _against_small_delta(
        [*lines, least],
        "pulls over the least pulls",
        f"{places[0].instance}: pulls beside T*",
        places[0],
        ratio=True,
    )


def radii_study(places: Sequence[Place]) -> Chart:
    """Chart cost against delta for every radius.

    A schedule keeps its colour and a radius has its marker. With the paper's radius, a schedule
    looks as in every other figure.
    """

    def cost(place: Place, run: str) -> tuple[float | None, float | None]:
        prices = PRICES[run.split()[0]]
        return place.whole.mean(run, prices), place.whole.sem(run, prices)

    runs = [f"{schedule} {radius}" for radius in RADII for schedule in PRICES]
    return _against_small_delta(
        _lines_of_runs(places, runs, cost),
        "cost (fedelim: total, fedelim0: pulls)",
        f"{places[0].instance} radii: FedElim's total cost at C = {COST:g}, FedElim0's pulls",
        places[0],
    )


def _lines_of_runs(
    places: Sequence[Place],
    runs: Sequence[str],
    value: Callable[[Place, str], tuple[float | None, float | None] | None],
) -> Iterator[Line]:
    """Make a line of values and standard errors against delta for schedules with their radii."""
    for run in runs:
        points = [(place.delta, *(value(place, run) or (None, None))) for place in places]
        known = [(x, y, error or 0.0) for x, y, error in points if y is not None]
        schedule, radius = run.split()
        look, marker = style_of(schedule), _MARKERS[radius]
        look = look if marker is None else replace(look, marker=marker, filled=False)
        x, y, spread = ([point[at] for point in known] for at in range(3))
        spread = [0.0 if math.isnan(error) else error for error in spread]
        yield Line(f"{schedule}, {radius}", x, y, spread, style=look)


def _against_small_delta(
    lines: Iterable[Line], label: str, title: str, place: Place, ratio: bool = False
) -> Chart:
    trials = place.whole.trials(RUNS[0])
    return Chart(
        list(lines),
        "error probability delta",
        label,
        [title, f"mean ± one standard error, {trials:,} trials"],
        small_to_the_right=True,
        log_y=ratio,
    )


def period_study(rows: pl.DataFrame) -> Chart:
    """Chart the total cost against H, with many points around H_opt."""
    best = float(study_bounds(rows["instance"][0]).period_opt)
    periods = [name for name in rows["schedule"].unique() if name.startswith("periodic:")]
    more = f"; dashed: H_opt = {best:,.0f}, where the bound is least"
    return _against_period(rows, periods, "period", more, [best])


def base_study(rows: pl.DataFrame) -> Chart:
    """Chart the total cost against the base lambda, with lambda_opt and FedElim's 2 marked."""
    points = []
    for row in rows.filter(pl.col("cost") == COST).iter_rows(named=True):
        one = Schedule.parse(row["schedule"])
        if one.family in ("exponential", "fedelim") and row["total_mean"] is not None:
            points.append((float(one.value or 2.0), row["total_mean"], row["total_std"] or 0.0))
    x, y, spread = (list(column) for column in zip(*sorted(points), strict=True))
    fedelim, best = _of(rows, "fedelim", COST), float(study_bounds(rows["instance"][0]).base_opt)
    lines = [
        Line("at powers of lambda", x, y, spread, style=EVERY_H),
        *(replace(one, label="fedelim, lambda = 2", x=[2.0]) for one in fedelim.lines),
    ]
    return _titled(
        Chart(lines, "base lambda", fedelim.y_label, fedelim.title, marks=[best]),
        rows,
        f"base, C = {COST:g}, delta = {plain(float(rows['delta'][0]))}",
        f"; dashed: lambda_opt = {best:.3f}, where the bound is least",
    )


def _gap_study(rows: pl.DataFrame, what: str) -> Chart:
    """Chart the total or the communication cost against the smallest gap."""
    drawn = chart(rows, x="gap", y=what, cost=COST, errors=_ERRORS)
    return replace(
        drawn,
        title=[f"synthetic, all gaps scaled, C = {COST:g}", drawn.title[-1]],
        small_to_the_right=True,
    )


def _titled(drawn: Chart, rows: pl.DataFrame, what: str, more: str = "") -> Chart:
    """Title a chart with its data set and the paper's panel, and explain points and bars below."""
    return replace(drawn, title=[f"{rows['instance'][0]} {what}", f"{drawn.title[-1]}{more}"])


def _by_instance(rows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    for (name,), some in rows.group_by(["instance"], maintain_order=True):
        yield str(name), some


def _of_instances(places: Sequence[Place]) -> Iterator[tuple[str, list[Place]]]:
    for name in dict.fromkeys(place.instance for place in places):
        yield name, [place for place in places if place.instance == name]
