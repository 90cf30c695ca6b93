"""Figures from summaries. The only module that knows matplotlib.

A `Line` is a curve with error bars; panels are made of lines and drawn so that they survive a
two-column paper and a grey printer: every line has its own marker and dash, and a label at its
end or in the legend says in words what it is.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastfed.errors import InputError, printable
from fastfed.files import make_folder, replacing

if TYPE_CHECKING:
    import polars as pl

    from fastfed.problem.instance import Instance

FORMATS = ("png", "pdf", "svg")
_STYLE = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "legend.fontsize": 6.5,
    "xtick.labelsize": 7, "ytick.labelsize": 7, "lines.linewidth": 1.1, "lines.markersize": 3.5,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25,
    "grid.linewidth": 0.5, "legend.frameon": False, "figure.dpi": 100, "savefig.dpi": 200,
    "svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "fastfed",
}
_COLOURS = ("#1b4f8f", "#c8502b", "#2f7d4f", "#7a4fa0", "#8a6d1d", "#3c3c3c", "#b0457e", "#4f9fb5",
            "#777777")
_MARKERS = "osD^vPX*<"
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)),
           (0, (2, 1)))
_TOTAL = "total cost (pulls + C x uplinks)"
_COMMUNICATION = "communication cost (C x uplinks)"
_DELTA = "error probability delta"
_PERIOD = "period H (steps)"


@dataclass(frozen=True)
class Line:
    """A curve: what it is, where it goes, and one standard deviation up and down."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] | None = None
    plain: bool = False  # a bound or a guide: thin, no markers
    colour: str | None = None  # None: by its place among the lines


@contextmanager
def style() -> Iterator[Any]:
    """matplotlib.pyplot in this package's style, off screen."""
    try:
        import matplotlib
    except ImportError:
        raise InputError("figures need matplotlib, which is not installed: "
                         "pip install 'fastfed[plot]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(_STYLE), warnings.catch_warnings():  # type: ignore[arg-type]
        # a name in a script that the font lacks is drawn as boxes, which says enough
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield plt
        plt.close("all")


def draw(ax: Any, lines: Sequence[Line], *, x_label: str, y_label: str, title: str = "",
         small_to_the_right: bool = False, log_y: bool = True) -> None:
    """Lines into axes with a logarithmic x."""
    for index, line in enumerate(lines):
        colour = line.colour or _COLOURS[index % len(_COLOURS)]
        dash: Any = _DASHES[index % len(_DASHES)]
        if line.plain:
            ax.plot(line.x, line.y, color=colour, linestyle=dash, linewidth=0.9, label=line.label)
        else:
            ax.errorbar(line.x, line.y, yerr=line.spread, color=colour, linestyle=dash,
                        marker=_MARKERS[index % len(_MARKERS)], capsize=1.8, elinewidth=0.7,
                        label=line.label)
    ax.set_xscale("log")
    if log_y and all(y > 0 for line in lines for y in line.y):
        ax.set_yscale("log")
        positive = [y for line in lines for y in line.y]
        ax.set_ylim(min(positive) / 1.6, max(positive) * 1.6)
    if small_to_the_right:
        ax.invert_xaxis()
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    if title:
        ax.set_title(title)
    ax.legend(handlelength=2.8)


def save(figure: Any, stem: Path, formats: Sequence[str]) -> list[Path]:
    """The figure in each format, each file whole or absent."""
    paths = []
    for kind in checked_formats(formats):
        path = stem.with_name(f"{stem.name}.{kind}")
        # no dates and no versions inside: the same rows give the same file
        metadata = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None},
                    "svg": {"Date": None, "Creator": None}}[kind]
        with replacing(path) as file:
            figure.savefig(file, format=kind, metadata=metadata)
        paths.append(path)
    return paths


def checked_formats(formats: Sequence[str]) -> list[str]:
    for kind in formats:
        if kind not in FORMATS:
            raise InputError(f"figure format {kind!r}: must be one of {', '.join(FORMATS)}")
    if not formats:
        raise InputError(f"no figure format: give one of {', '.join(FORMATS)}")
    return list(dict.fromkeys(formats))


def _literal(name: str) -> str:
    """A name as matplotlib shall write it: a dollar sign begins no formula."""
    return printable(name).replace("$", r"\$")


def in_words(schedule: str) -> str:
    """A schedule's name as a legend says it."""
    kind, _, value = schedule.partition(":")
    if kind == "periodic":
        period = int(value)
        return "every step" if period == 1 else f"every {period:,} steps"
    return {"fedelim": "FedElim", "fedelim0": "FedElim0 (every step)",
            "exponential": f"powers of {value}", "superexponential": "super-exponential",
            "at": f"at {value}"}[kind]


def against_delta(frame: pl.DataFrame, schedules: Sequence[str], what: str) -> list[Line]:
    """One line per schedule: the mean of ``what`` against delta."""
    import polars as pl

    lines = []
    for name in schedules:
        rows = frame.filter(pl.col("schedule") == name).sort("delta")
        if len(rows):
            lines.append(Line(in_words(name), rows["delta"].to_list(),
                              rows[f"{what}_mean"].to_list(),
                              rows[f"{what}_std"].fill_null(0).to_list()))
    return lines


def against_period(frame: pl.DataFrame, label: str = "periodic") -> list[Line]:
    """Total cost against H, and FedElim as a level line, for rows of one delta and cost."""
    import polars as pl

    periodic = frame.filter(pl.col("schedule").str.starts_with("periodic:")).with_columns(
        pl.col("schedule").str.strip_prefix("periodic:").cast(pl.Int64).alias("period")
    ).sort("period")
    lines = []
    if len(periodic):
        periods = periodic["period"].to_list()
        lines.append(Line(label, periods, periodic["total_mean"].to_list(),
                          periodic["total_std"].fill_null(0).to_list()))
        level = frame.filter(pl.col("schedule") == "fedelim")
        if len(level):
            mean = float(level["total_mean"][0])
            lines.append(Line("FedElim", [periods[0], periods[-1]], [mean, mean], plain=True))
    return lines


def bound_lines(instance: Instance, sigma: float, cost: float, deltas: Sequence[float]
                ) -> list[Line]:
    """T, 2T, 3T and the lower bound against delta, each where it is one."""
    import numpy as np

    from fastfed.problem.rewards import Gaussian
    from fastfed.theory.bounds import bounds

    x = np.array(sorted(deltas))
    if len(x) == 1:  # one point makes no line
        x = x[0] ** np.array([1.05, 0.95])
    b = bounds(instance, x, cost, sigma)
    everywhere = np.full(x.shape, True)
    lines = []
    for label, y, known in (
        ("3T (FedElim, total)", 3 * b.T, b.three_T_follows),
        ("2T (FedElim, pulls)", 2 * b.T, everywhere),
        ("T (FedElim0, pulls)", b.T, everywhere),
        ("lower bound (pulls)", b.lower, everywhere & isinstance(instance.rewards, Gaussian)),
    ):
        drawn = known & (y > 0)
        if drawn.sum() > 1:
            lines.append(Line(label, x[drawn].tolist(), y[drawn].tolist(), plain=True,
                              colour="#222222"))
    return lines


def plot_sweep(frame: pl.DataFrame, out: Path, formats: Sequence[str],
               instances: Mapping[str, Instance] | None = None) -> list[Path]:
    """The three figures of a sweep for each of its instances, scales and costs; with
    ``instances``, by name, the bounds of the theorems stand in the first."""
    checked_formats(formats)
    make_folder(out)
    paths: list[Path] = []
    with style() as plt:
        for (instance, sigma, cost), rows in frame.group_by(["instance", "sigma", "cost"],
                                                            maintain_order=True):
            names = rows["schedule"].unique(maintain_order=True).to_list()
            if "fedelim0" in names:  # the same times under another name
                names = [name for name in names if name != "periodic:1"]
            title = (f"{_literal(str(instance))}, uplink cost C = {cost:g}, mean ± one standard "
                     "deviation")
            stem = re.sub(r"[^A-Za-z0-9.]+", "_", f"{instance}-s{sigma:g}-C{cost:g}")
            totals = against_delta(rows, names, "total")
            if instances is not None:
                totals += bound_lines(instances[str(instance)], float(sigma), float(cost),
                                      rows["delta"].unique().to_list())
            panels = [("total-delta", title, totals, _TOTAL)]
            if cost > 0:
                panels.append(("communication-delta", title,
                               against_delta(rows, names, "communication"), _COMMUNICATION))
            for (delta,), one in rows.group_by(["delta"], maintain_order=True):
                panels.append((f"total-period-d{delta:g}", f"{title}, delta = {delta:g}",
                               against_period(one), _TOTAL))
            for kind, heading, lines, y_label in panels:
                if not lines:
                    continue
                figure, ax = plt.subplots(figsize=(4.6, 3.2), layout="constrained")
                by_delta = kind.endswith("-delta")
                draw(ax, lines, x_label=_DELTA if by_delta else _PERIOD, y_label=y_label,
                     title=heading, small_to_the_right=by_delta)
                if len(lines) > 4:
                    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=2.8)
                paths += save(figure, out / f"{stem}-{kind}", formats)
                plt.close(figure)
    if not paths:
        raise InputError("nothing to plot: the sweep has no rows yet")
    return paths
