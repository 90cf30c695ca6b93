"""The paper's nine panels and the studies' figures.

Each is a `fastfed.display.series.Chart`, made from a summary's rows by the code that `fastfed plot`
uses, and drawn by it: one schedule looks the same in every figure of the project. The charts also
go, as they are, into the page (`fastfed.paper.page`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from fastfed.analysis.verdicts import Cell
from fastfed.display.series import Chart, Line, chart
from fastfed.display.styles import EVERY_H, Style, distinct, style_of
from fastfed.model.schedules import Schedule
from fastfed.paper.evidence import COST, RUNS, Place
from fastfed.paper.tables import STUDY_DELTA, study_bounds
from fastfed.text import plain

PANELS = ("a", "b", "c")
_PAPER_COSTS = (0.0, 10.0, 100.0)
_SHORT = ("fedelim", "periodic:1", "periodic:5", "periodic:10")  # of panels (b)
_POWERS = [f"periodic:{10**power}" for power in range(6)]  # of panels (c)
_SCHEMES = ("fedelim", "periodic:100", "superexponential")
_ADAPTIVE = ("fedelim", "adaptive", "periodic:10", "periodic:100", "periodic:1000")
_ERRORS = "std"  # as in the paper
_OWN_COSTS = {"fedelim": COST, "fedelim0": 0.0}  # of an uplink, in the study of radii
_MARKERS = {
    "paper": None,
    "stitched": "^",
    "mixture": "v",
    "stitched-pairs": "P",
    "mixture-pairs": "X",
}
"""Of the radii; None: the schedule's own."""


@dataclass(frozen=True)
class Frames:
    """The summaries that are drawn."""

    panels: pl.DataFrame
    """Every data set at its own confidence scale, over delta."""
    studies: pl.DataFrame
    """One delta, many bases and periods. May be empty."""
    radii: pl.DataFrame
    """FedElim's total and FedElim0's pulls under every radius. May be empty."""
    gaps: pl.DataFrame
    """The synthetic instance with its gaps scaled; column gap. May be empty."""
    clients: Sequence[Cell] = ()
    """T over the lower bound for ever more clients."""
    optimum: Sequence[Place] = ()
    """FedElim and FedElim0 beside the least pulls."""

    @property
    def names(self) -> list[str]:
        """The paper's data sets."""
        return self.panels["instance"].unique(maintain_order=True).to_list()


def charts(frames: Frames) -> dict[str, Chart]:
    """Make all charts with lines, by name: "synthetic-a" and so on."""
    found: dict[str, Chart] = {}
    for name in frames.names:
        rows = frames.panels.filter(pl.col("instance") == name)
        found |= {
            f"{name}-a": panel_a(rows),
            f"{name}-b": _against_delta(rows, _SHORT, "(b)", y="communication"),
            f"{name}-c": _against_period(rows, _POWERS, "(c)"),
            f"{name}-schemes": _against_delta(rows, _SCHEMES, "three schemes"),
            f"{name}-adaptive": _against_delta(rows, _ADAPTIVE, "adaptive", errors="sem"),
        }
    for name, rows in _by_instance(frames.studies):
        found |= {f"{name}-base": base_study(rows), f"{name}-period": period_study(rows)}
    for name, rows in _by_instance(frames.radii):
        found[f"{name}-radii"] = radii_study(rows)
    if len(frames.gaps):
        found |= {
            "synthetic-gap": _gap_study(frames.gaps, "total"),
            "synthetic-talk": _gap_study(frames.gaps, "communication"),
        }
    for name in dict.fromkeys(place.instance for place in frames.optimum):
        some = [place for place in frames.optimum if place.instance == name]
        found[f"{figure_stem(name)}-optimum"] = optimum_study(some)
    if frames.clients:
        found["synthetic-clients"] = clients_study(frames.clients)
    return found


def panel_a(rows: pl.DataFrame) -> Chart:
    """Chart FedElim's total cost for each C, and FedElim0's pulls, against delta."""
    parts = {f"fedelim, C = {cost:g}": _of(rows, "fedelim", cost) for cost in _PAPER_COSTS}
    parts["fedelim0, pulls alone"] = _of(rows, "fedelim0", 0.0)
    first = parts[f"fedelim, C = {_PAPER_COSTS[0]:g}"]
    lines = [replace(line, label=label) for label, one in parts.items() for line in one.lines]
    looks = distinct([line.style for line in lines if line.style is not None])
    styled = [replace(line, style=look) for line, look in zip(lines, looks, strict=True)]
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
    lines = []
    for (schedule, radius), run in RUNS.items():
        points = [(place.delta, place.factor(run)) for place in places]
        known = [(delta, *found) for delta, found in points if found is not None]
        x, y, spread = (list(column) for column in zip(*known, strict=True))
        spread = [0.0 if math.isnan(error) else error for error in spread]
        label = f"{schedule}, {radius}"
        lines.append(Line(label, x, y, spread, style=_look(schedule, radius)))
    deltas = sorted(place.delta for place in places)
    ones = [1.0, 1.0]
    lines.append(Line("no algorithm below this", [deltas[0], deltas[-1]], ones, plain=True))
    trials = min(place.whole.trials(run) for place in places for run in RUNS.values())
    return Chart(
        lines,
        "error probability delta",
        "pulls over the least pulls",
        [
            f"{places[0].instance}: pulls beside T*",
            f"the least are T* kl(delta, 1 - delta); mean ± one standard error, {trials:,} trials",
        ],
        small_to_the_right=True,
        log_y=True,
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


def radii_study(rows: pl.DataFrame) -> Chart:
    """Chart cost against delta for every radius.

    A schedule keeps its colour and a radius has its marker. With the paper's radius, a schedule
    looks as in every other figure.
    """
    lines = []
    for radius in _MARKERS:
        some = rows.filter(pl.col("radius") == radius)
        for schedule, cost in _OWN_COSTS.items():
            drawn = _of(some, schedule, cost, "sem")
            label, look = f"{schedule}, {radius}", _look(schedule, radius)
            lines += [replace(line, label=label, style=look) for line in drawn.lines]
    return _titled(
        replace(drawn, lines=lines),
        rows,
        f"radii: FedElim's total cost at C = {COST:g}, FedElim0's pulls",
    )


def _look(schedule: str, radius: str) -> Style:
    """Return the style of a schedule with a radius."""
    look, marker = style_of(schedule), _MARKERS[radius]
    return look if marker is None else replace(look, marker=marker, filled=False)


def _gap_study(rows: pl.DataFrame, what: str) -> Chart:
    """Chart the total or the communication cost against the smallest gap."""
    drawn = chart(rows, x="gap", y=what, cost=COST, errors=_ERRORS)
    return replace(
        drawn,
        title=[f"synthetic, all gaps scaled, C = {COST:g}", drawn.title[-1]],
        small_to_the_right=True,
    )


def clients_study(cells: Sequence[Cell]) -> Chart:
    """Chart T over the lower bound against the number of clients."""
    line = Line(
        "T over the lower bound",
        [float(cell["clients"]) for cell in cells],
        [cell["value"] for cell in cells],
    )
    return Chart(
        [line],
        "clients M",
        "T over the lower bound, relative to the first",
        ["synthetic, its clients repeated", "computed: no chance in it"],
    )


def _titled(drawn: Chart, rows: pl.DataFrame, what: str, more: str = "") -> Chart:
    """Title a chart with its data set and the paper's panel, and explain points and bars below."""
    return replace(drawn, title=[f"{rows['instance'][0]} {what}", f"{drawn.title[-1]}{more}"])


def radii_frame(panels: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Join the summaries of the paper's radius and of the others, from which the study is drawn."""
    if not len(others):
        return pl.DataFrame()
    own = panels.join(others.select("instance", "delta").unique(), on=["instance", "delta"])
    every = pl.concat([own, others.select(own.columns)])
    chosen = [
        (pl.col("schedule") == name) & (pl.col("cost") == cost) for name, cost in _OWN_COSTS.items()
    ]
    return every.filter(pl.any_horizontal(chosen))


def _by_instance(rows: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    if not len(rows):
        return []
    return [(str(name), some) for (name,), some in rows.group_by(["instance"], maintain_order=True)]
