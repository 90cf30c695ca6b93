"""The paper's panels and the studies' figures, from frames, with the primitives of `figures`.

Each panel is a function that draws into axes: the single figures and the contact sheet share it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fastfed.files import make_folder
from fastfed.paper.claims import COST, PAPER_COSTS
from fastfed.results.figures import FORMATS, Line, draw, in_words, save, style
from fastfed.results.wording import trials_text
from fastfed.statistics.verdicts import Cell

PANEL_DELTA = 0.01  # that of the panels against H
_TOTAL = "total cost (pulls + C × uplinks)"
_COMMUNICATION = "communication cost (C × uplinks)"
_DELTA = "error probability δ"
_SIZE = (3.35, 3.2)  # inches: a column of a two-column paper
_SHEET_DPI = 95  # the contact sheet stays below 300 kB


@dataclass(frozen=True)
class Frames:
    """The summaries that are drawn."""

    panels: pl.DataFrame
    """Every data set at its own confidence scale, over delta."""
    studies: pl.DataFrame
    """One delta, many bases and periods; columns period_opt and base_opt. May be empty."""


def write(frames: Frames, minima: Sequence[Cell], out: Path) -> list[Path]:
    """Every figure in every format, and the contact sheet. ``minima`` are the cells of the map
    of FedElim's cost over the best period's."""
    folder = out / "figures"
    make_folder(folder)
    names = [name for name in frames.panels["instance"].unique(maintain_order=True)
             if name != "movielens-gaussian"]
    paths: list[Path] = []
    with style() as plt:
        for name in names:
            rows = frames.panels.filter(pl.col("instance") == name)
            for letter, panel in PANELS.items():
                paths += _figure(plt, panel, rows, folder / f"{name}-{letter}")
            paths += _figure(plt, schemes, rows, folder / f"{name}-schemes")
        studied = frames.studies.group_by(["instance"], maintain_order=True) if len(
            frames.studies) else ()
        for (name,), rows in studied:
            paths += _figure(plt, base_study, rows, folder / f"{name}-base")
            paths += _figure(plt, period_study, rows, folder / f"{name}-period")
        for name in dict.fromkeys(cell["instance"] for cell in minima):
            cells = pl.DataFrame([cell for cell in minima if cell["instance"] == name])
            paths += _map(plt, cells, folder / f"{name}-minimum")
        figure, axes = plt.subplots(len(names), len(PANELS), squeeze=False, layout="constrained",
                                    figsize=(10.5, 3.15 * len(names)))
        for name, line in zip(names, axes, strict=True):
            for panel, ax in zip(PANELS.values(), line, strict=True):
                panel(plt, ax, frames.panels.filter(pl.col("instance") == name))
        figure.set_dpi(_SHEET_DPI)
        with plt.rc_context({"savefig.dpi": _SHEET_DPI}):
            paths += save(figure, out / "contact-sheet", ["png"])
    return paths


def panel_a(plt: Any, ax: Any, rows: pl.DataFrame) -> None:
    """FedElim's total cost for each C, and FedElim0's pulls, against delta."""
    lines, ends = [], []
    for place, cost in enumerate(PAPER_COSTS):
        words = ("uplinks are free (C = 0)" if cost == 0 else
                 f"an uplink costs {cost:g} pulls (C = {cost:g})")
        lines.append(_by_delta(rows, "fedelim", "total", f"FedElim, {words}", cost,
                               0.06 * (place - 1)))
        ends.append(f"C = {cost:g}")
    lines.append(_by_delta(rows, "fedelim0", "pulls", "FedElim0 (every step), pulls alone"))
    draw(ax, lines, x_label=_DELTA, y_label=_TOTAL, title=_title(rows, "(a)"), log_y=False,
         small_to_the_right=True)
    _finish(plt, ax, lines, [*ends, "FedElim0"])


def panel_b(plt: Any, ax: Any, rows: pl.DataFrame) -> None:
    """Communication cost of FedElim and of short periods against delta."""
    lines = [_by_delta(rows, "fedelim", "communication", "FedElim (at steps 1, 2, 4, 8, ...)")]
    for period in (1, 5, 10):
        lines.append(_by_delta(rows, f"periodic:{period}", "communication",
                               f"{in_words(f'periodic:{period}')} (H = {period})"))
    draw(ax, lines, x_label=_DELTA, y_label=_COMMUNICATION, small_to_the_right=True,
         title=_title(rows, f"(b), C = {COST:g}"))
    _finish(plt, ax, lines, ["FedElim", "H = 1", "H = 5", "H = 10"])


def panel_c(plt: Any, ax: Any, rows: pl.DataFrame) -> None:
    """Total cost against the period, with FedElim as a level line."""
    here = rows.filter(pl.col("delta") == PANEL_DELTA, pl.col("cost") == COST)
    periods = _periods(here)
    chosen = periods.filter(pl.col("period").log10().round(6) % 1 == 0)
    _against_period(plt, ax, here, chosen)
    ax.set_title(_title(here, f"(c), C = {COST:g}, δ = {PANEL_DELTA:g}"))


PANELS: dict[str, Callable[[Any, Any, pl.DataFrame], None]] = {
    "a": panel_a, "b": panel_b, "c": panel_c}


def schemes(plt: Any, ax: Any, rows: pl.DataFrame) -> None:
    """The three schemes' total cost against delta."""
    lines = [_by_delta(rows, name, "total", words) for name, words in (
        ("periodic:100", "every 100 steps (H = 100)"), ("fedelim", "FedElim (at 2^t)"),
        ("superexponential", "super-exponential (at 2^(2^t))"))]
    draw(ax, lines, x_label=_DELTA, y_label=_TOTAL, small_to_the_right=True,
         title=_title(rows, f"three schemes, C = {COST:g}"))
    _finish(plt, ax, lines, ["H = 100", "FedElim", "super-exp."])


def base_study(plt: Any, ax: Any, rows: pl.DataFrame) -> None:
    """Total cost against the base lambda, lambda_opt marked."""
    here = rows.filter(pl.col("cost") == COST).with_columns(
        pl.when(pl.col("schedule") == "fedelim").then(pl.lit("exponential:2"))
        .otherwise(pl.col("schedule")).alias("schedule"))
    bases = here.filter(pl.col("schedule").str.starts_with("exponential:")).with_columns(
        pl.col("schedule").str.strip_prefix("exponential:").cast(pl.Float64).alias("base")
    ).sort("base")
    line = Line("talk at ⌈λ^t⌉ (FedElim is λ = 2)", bases["base"].to_list(),
                bases["total_mean"].to_list(), bases["total_std"].fill_null(0).to_list())
    draw(ax, [line], x_label="base λ", y_label=_TOTAL, log_y=False,
         title=_title(here, f"base λ, C = {COST:g}, δ = {here['delta'][0]:g}"))
    best = float(here["base_opt"][0])
    ax.axvline(best, color="#3c3c3c", linestyle="--", linewidth=0.9,
               label=f"λ_opt = {best:.3f}, least of the bounds")
    ax.axvline(2, color="#c8502b", linestyle=":", linewidth=0.9, label="FedElim, λ = 2")
    ticks = [1.1, 1.5, 2, 3, 5, 10]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    _finish(plt, ax)


def period_study(plt: Any, ax: Any, rows: pl.DataFrame) -> None:
    """Total cost against H, finely around H_opt."""
    here = rows.filter(pl.col("cost") == COST)
    best = float(here["period_opt"][0])
    periods = _periods(here).filter(pl.col("period") >= best / 40)
    _against_period(plt, ax, here, periods, best)
    ax.set_title(_title(here, f"period H, C = {COST:g}, δ = {here['delta'][0]:g}"))


def _against_period(plt: Any, ax: Any, here: pl.DataFrame, periods: pl.DataFrame,
                    mark: float | None = None) -> None:
    line = Line("periodic, every H steps", periods["period"].to_list(),
                periods["total_mean"].to_list(), periods["total_std"].fill_null(0).to_list())
    level = here.filter(pl.col("schedule") == "fedelim").row(0, named=True)
    mean, std = level["total_mean"], level["total_std"] or 0.0
    ends = [line.x[0], line.x[-1]]
    guide = Line("FedElim, which has no H (band: ± one std)", ends, [mean, mean], plain=True)
    draw(ax, [line, guide], x_label="period H (steps between uplinks)", y_label=_TOTAL,
         log_y=mark is None)
    ax.fill_between(ends, mean - std, mean + std, color="#c8502b", alpha=0.18, linewidth=0)
    ax.annotate("FedElim", (ends[-1], mean), xytext=(3, 0), textcoords="offset points",
                va="center", fontsize=6.5, annotation_clip=False)
    least = periods.row(int(periods["total_mean"].arg_min() or 0), named=True)
    foot = least["total_mean"] - (least["total_std"] or 0.0)
    low, high = ax.get_ylim()
    ax.set_ylim(low / (high / low) ** 0.12 if mark is None else low - 0.12 * (high - low), high)
    ax.annotate(f"least: H = {least['period']:,}", (least["period"], foot), xytext=(0, -4),
                textcoords="offset points", ha="center", va="top", fontsize=6.5,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})
    if mark is not None:
        ax.axvline(mark, color="#3c3c3c", linestyle="--", linewidth=0.9,
                   label=f"H_opt = {mark:,.0f}, least of the bounds")
    _finish(plt, ax)


def _map(plt: Any, cells: pl.DataFrame, stem: Path) -> list[Path]:
    """FedElim's cost over the best period's, by delta and C, for each confidence scale."""
    scales = cells["sigma"].unique(maintain_order=True).to_list()
    deltas = cells["delta"].unique().sort(descending=True).to_list()
    costs = cells["cost"].unique().sort().to_list()
    figure, axes = plt.subplots(len(scales), 1, squeeze=False, layout="constrained",
                                figsize=(6.9, 2.3 * len(scales)))
    for sigma, (ax,) in zip(scales, axes, strict=True):
        ratio = [[0.0] * len(deltas) for _ in costs]
        for cell in cells.filter(pl.col("sigma") == sigma).iter_rows(named=True):
            x, y = deltas.index(cell["delta"]), costs.index(cell["cost"])
            ratio[y][x] = math.log(cell["value"])
            wins = cell["holds"] is True
            ax.text(x, y, f"{cell['value']:.3f}" + ("?" if cell["holds"] is None else ""),
                    ha="center", va="center", fontsize=6, weight="bold" if wins else "normal")
            if wins:
                ax.add_patch(plt.Rectangle((x - 0.46, y - 0.44), 0.92, 0.88, fill=False,
                                           edgecolor="black", linewidth=1.2))
        ax.imshow(ratio, cmap="RdBu_r", vmin=-0.7, vmax=0.7, aspect="auto", origin="lower",
                  alpha=0.55)
        ax.set_xticks(range(len(deltas)), [f"{delta:g}" for delta in deltas])
        ax.set_yticks(range(len(costs)), [f"{cost:g}" for cost in costs])
        ax.set_xlabel(_DELTA)
        ax.set_ylabel("cost of an uplink C")
        ax.grid(visible=False)
        ax.set_title(f"{cells['instance'][0]}, confidence scale {sigma:g}: FedElim's mean total "
                     "cost over the best period's (boxed: no period is cheaper)")
    paths = save(figure, stem, FORMATS)
    plt.close(figure)
    return paths


def _figure(plt: Any, panel: Callable[[Any, Any, pl.DataFrame], None], rows: pl.DataFrame,
            stem: Path) -> list[Path]:
    figure, ax = plt.subplots(figsize=_SIZE, layout="constrained")
    panel(plt, ax, rows)
    paths = save(figure, stem, FORMATS)
    plt.close(figure)
    return paths


def _by_delta(rows: pl.DataFrame, schedule: str, what: str, label: str, cost: float = COST,
              aside: float = 0.0) -> Line:
    """``aside`` moves the points, in decades of delta, so that error bars stand side by side."""
    chosen = rows.filter(pl.col("schedule") == schedule, pl.col("cost") == cost).sort(
        "delta", descending=True)
    return Line(label, (chosen["delta"] * 10.0**aside).to_list(), chosen[f"{what}_mean"].to_list(),
                chosen[f"{what}_std"].fill_null(0).to_list())


def _periods(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("schedule").str.starts_with("periodic:")).with_columns(
        pl.col("schedule").str.strip_prefix("periodic:").cast(pl.Int64).alias("period")
    ).sort("period")


def _title(rows: pl.DataFrame, what: str) -> str:
    cut = int(rows["truncated"].max() or 0)  # type: ignore[arg-type]
    least, most = (int(count) for count in (rows["trials"].min(),  # type: ignore[arg-type]
                                            rows["trials"].max()))
    return (f"{rows['instance'][0]} {what}\n"
            f"mean ± one standard deviation, {trials_text(least, most, cut)}")


def _finish(plt: Any, ax: Any, lines: Sequence[Line] = (), ends: Sequence[str] = ()) -> None:
    """Names at the lines' ends, whole numbers on a linear axis, the legend below the axes."""
    logarithmic = ax.get_yscale() == "log"
    if not logarithmic:
        ax.yaxis.set_major_formatter(plt.FuncFormatter(lambda value, _: f"{value:,.0f}"))
    if lines:
        deltas = [x for line in lines for x in line.x]
        ax.set_xlim(1.4 * max(deltas), min(deltas) / 1.4)
    low, high = ax.get_ylim()
    scale: Callable[[float], float] = math.log if logarithmic else float
    heights = [(scale(line.y[-1]) - scale(low)) / (scale(high) - scale(low)) for line in lines]
    order = sorted(range(len(ends)), key=heights.__getitem__)
    for index, place in zip(order, _apart([heights[index] for index in order]), strict=True):
        ax.annotate(ends[index], (1.0, place), xycoords="axes fraction", xytext=(3, 0),
                    textcoords="offset points", va="center", fontsize=6.5, annotation_clip=False)
    ax.legend(loc="upper left", bbox_to_anchor=(-0.1, -0.23), handlelength=2.8, borderpad=0)


def _apart(places: Sequence[float], least: float = 0.065, top: float = 0.98) -> list[float]:
    """Ascending places moved so that no label lies on another, none above the axes."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + least) if moved else place)
    for index in range(len(moved) - 1, -1, -1):
        moved[index] = min(moved[index], top)
        top = moved[index] - least
    return moved
