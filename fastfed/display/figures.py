"""Figures from summaries. Only this module and `layout` know matplotlib.

`plot` draws one figure from a summary's frame; `plot_sweep` the usual ones of a sweep. A figure is
made of `Line`s, each with a style of its own (`fastfed.display.styles`), so that it survives a
two-column paper, a grey printer and any kind of colour vision; labels beside the axes say in words
what a line is.
"""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastfed.analysis.comparable import excluded_rows
from fastfed.display.guides import bound_lines
from fastfed.display.layout import (
    lay_out,
    name_lines,
    room_for_axes,
    thin_ticks,
    write_title,
)
from fastfed.display.series import (
    MOST_LINES,
    Chart,
    Line,
    chart,
    has_periods,
    logarithmic_span,
    styled,
)
from fastfed.display.styles import GUIDE
from fastfed.errors import InputError
from fastfed.files import make_folder, replacing
from fastfed.model.choices import DEFAULTS
from fastfed.text import parameters, plain, short

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fastfed.model.instance import Instance

FORMATS = ("png", "pdf", "svg")
_STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 6.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "svg.hashsalt": "fastfed",
}
_NO_DATES = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
}
"""No dates and no versions inside: the same rows give the same file."""
_SIZE = (4.8, 3.4)  # inches; more where labels need it
SIZES = {"screen": _SIZE, "paper": (3.4, 2.5), "paper-wide": (7.0, 3.0)}
"""Styles of figures by name: for a screen, one column of a paper, or two. Sizes in inches."""
_GUIDE_DASHES: tuple[Any, ...] = ("-", "--", "-.", ":")
_GUIDE_MARKERS = ("_", "x", "+", "1")
_FEW = 10  # schedules that a figure keeps if all of them are too many
_CROWD = 8  # lines, beyond which their error bars are faint
_BAND = 0.13  # how dense the band of a level line is


def require_matplotlib() -> Any:
    """Import matplotlib, or refuse and say how to install it."""
    try:
        import matplotlib
    except ImportError:
        raise InputError(
            "figures need matplotlib, which is not installed: pip install "
            "matplotlib, or fastfed with its extra plot"
        ) from None
    return matplotlib


@contextmanager
def style() -> Iterator[Any]:
    """Return matplotlib.pyplot with this package's style and no window."""
    require_matplotlib().use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(_STYLE), _any_font():  # type: ignore[arg-type]
        yield plt
        plt.close("all")


def plot(frame: pl.DataFrame, ax: Axes | None = None, **choice: Any) -> Axes:
    """Draw a summary.

    Parameters
    ----------
    frame
        Rows of a summary, for instance ``sweep.summary(costs=[1, 10])``.
    ax
        Axes to draw into; without them a figure is made, as large as its labels need.
    choice
        As of `fastfed.display.series.chart`.

    Returns
    -------
    matplotlib.axes.Axes
        On a logarithmic axis a bar that would end at or below 0 ends in a small triangle at the
        foot of the axes.
    """
    drawn, own = chart(frame, **choice), ax is None
    with require_matplotlib().rc_context(_STYLE):
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=_SIZE, layout="constrained")
        draw_chart(ax, drawn, own)
    return ax


def draw_chart(ax: Any, drawn: Chart, own: bool) -> None:
    """Draw a whole chart into axes: lines, scales, ticks, title and legend."""
    lines = styled(drawn.lines)
    _set_scales(ax, lines, drawn)
    if drawn.categories is not None:
        lines = _side_by_side(lines)
    handles = _draw_lines(ax, lines)
    for place in drawn.marks:
        ax.axvline(place, color=GUIDE, linestyle="--", linewidth=0.9)
    _set_ticks(ax, drawn, brief=not own)
    ax.set_xlabel(drawn.x_label)
    ax.set_ylabel(drawn.y_label)
    if drawn.categories is None and drawn.small_to_the_right and not ax.xaxis_inverted():
        ax.invert_xaxis()
    with _any_font():
        handles = [one for one, line in zip(handles, lines, strict=True) if line.label]
        named = [line for line in lines if line.label]
        ends = None if drawn.categories is not None else [_right_end(ax, line) for line in named]
        name_lines(ax, handles, [line.label for line in named], ends, own)
        if own:
            room_for_axes(ax)
        write_title(ax, [*drawn.title, *_note_on_zeros(ax, lines)])
        thin_ticks(ax)


def _note_on_zeros(ax: Any, lines: Sequence[Line]) -> list[str]:
    """Note where points of value 0 are drawn, because a logarithmic axis has no 0."""
    zeros = any(y <= 0 for line in lines if not line.plain for y in line.y)
    return ["points at the foot of the axis: 0"] if zeros and ax.get_yscale() == "log" else []


def _set_scales(ax: Any, lines: Sequence[Line], drawn: Chart) -> None:
    xs = [x for line in lines for x in line.x]
    if drawn.categories is None and not drawn.linear_x:
        positive = [x for x in xs if x > 0]
        if positive and len(positive) < len(xs):
            ax.set_xscale("symlog", linthresh=min(positive))
        elif positive:
            ax.set_xscale("log")
            if len(set(xs)) == 1:  # one point makes no axis by itself
                ax.set_xlim(xs[0] / 2, xs[0] * 2)
    span = logarithmic_span(drawn)
    if span is not None:
        ax.set_yscale("log")
        ax.set_ylim(span[0] / 1.25, span[1] * 1.25)


def _side_by_side(lines: Sequence[Line]) -> list[Line]:
    """Move the points over a category apart; guides stay, and are the last."""
    count = sum(not one.plain for one in lines)
    step, middle = min(0.12, 0.7 / max(count, 1)), (count - 1) / 2
    return [
        line if line.plain else replace(line, x=[x + step * (place - middle) for x in line.x])
        for place, line in enumerate(lines)
    ]


def _draw_lines(ax: Any, lines: Sequence[Line]) -> list[Any]:
    """Draw the lines; return the legend's handle of each."""
    handles: list[Any] = []
    look: dict[str, Any]
    guides, ticks = (cycle(some) for some in (_GUIDE_DASHES, _GUIDE_MARKERS))
    log = ax.get_yscale() == "log"
    foot = ax.get_ylim()[0] * 1.06 if log else float("-inf")
    crowded = sum(not line.plain for line in lines) > _CROWD
    for line in lines:
        if line.plain:
            look = {"color": GUIDE, "linestyle": next(guides)}
            if line.style is not None:  # a schedule, level
                look = line.style.line()
            if not line.joined:  # a bound of each category
                look |= {"linestyle": "none", "marker": next(ticks), "markersize": 7}
            handles += ax.plot(line.x, line.y, linewidth=0.9, **look)
            if line.low is not None:
                ax.fill_between(line.x, *line.ends(), color=look["color"], alpha=_BAND, linewidth=0)
            continue
        assert line.style is not None
        lows, highs = line.ends()
        y = [max(value, foot) for value in line.y]
        below = [max(0.0, value - max(low, foot)) for value, low in zip(y, lows, strict=True)]
        above = [max(0.0, high - value) for value, high in zip(y, highs, strict=True)]
        look = {**line.style.line(), "markersize": 3.8, "markeredgewidth": 0.8}
        if not line.joined:
            look["linestyle"] = "none"
        bars = ax.errorbar(line.x, y, yerr=[below, above], capsize=1.8, elinewidth=0.7, **look)
        cut = [x for x, low in zip(line.x, lows, strict=True) if low < foot]
        if cut:
            end = {"color": line.style.colour, "alpha": 0.3 if crowded else 1, "label": "_cut"}
            ax.plot(cut, [foot] * len(cut), linestyle="none", marker="v", markersize=2.5, **end)
        if crowded:  # so many bars would hide the lines
            for bar in (*bars[1], *bars[2]):
                bar.set_alpha(0.3)
        handles.append(bars)
    return handles


def _right_end(ax: Any, line: Line) -> tuple[float, float]:
    """Return the last point of a line in the direction of the axis."""
    points = list(zip(line.x, line.y, strict=True))
    x, y = (min if ax.xaxis_inverted() else max)(points)
    if ax.get_yscale() == "log":
        y = max(y, ax.get_ylim()[0] * 1.06)
    return x, y


def _set_ticks(ax: Any, drawn: Chart, brief: bool) -> None:
    """Write the numbers along the axes; ``brief`` ones where there is little room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    log, (low, high) = ax.get_yscale() == "log", ax.get_ylim()
    if log and high / low < 300:
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_minor_formatter(NullFormatter())
    if not log or high / low < 300:
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value, brief)))
    names = drawn.categories
    if names is not None:
        turn = 90 if sum(map(len, names)) > 45 else 0
        size = 5 if brief and turn else 7
        ax.set_xticks(
            range(len(names)), labels=names, parse_math=False, rotation=turn, fontsize=size
        )
        ax.set_xlim(-0.5, len(names) - 0.5)
        return
    xs = sorted({x for line in drawn.lines if not line.plain for x in line.x})
    if xs and len(xs) <= 16:
        shown = parameters(xs)
        ax.set_xticks(xs, labels=[_tick(x, brief) if brief and x >= 1000 else shown[x] for x in xs])
        ax.xaxis.minorticks_off()
    elif ax.get_xscale() == "log":  # too many: round numbers, written as everywhere else
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: _tick(value, brief) if brief else plain(value))
        )
        ax.xaxis.minorticks_off()


def _tick(value: float, brief: bool) -> str:
    if brief and 1000 <= abs(value) < 1e9:
        unit, letter = (1e6, "M") if abs(value) >= 1e6 else (1e3, "k")
        return f"{value / unit:g}{letter}"
    if 1000 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    return short(value) if value >= 0 else f"-{short(-value)}"


@contextmanager
def _any_font() -> Iterator[None]:
    """Silence the warnings of letters that the font lacks, which are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def save(figure: Any, stem: Path, formats: Sequence[str], dpi: int | None = None) -> list[Path]:
    """Save the figure in each format; every file is whole or absent."""
    paths = []
    for kind in checked_formats(formats):
        path = stem.with_name(f"{stem.name}.{kind}")
        with _any_font(), require_matplotlib().rc_context(_STYLE), replacing(path) as file:
            dots = dpi or _STYLE["savefig.dpi"]
            figure.savefig(file, format=kind, metadata=_NO_DATES[kind], dpi=dots)
        paths.append(path)
    return paths


def svg(figure: Figure) -> str:
    """Return a figure as SVG, for a page."""
    text = io.StringIO()
    with _any_font(), require_matplotlib().rc_context(_STYLE):
        figure.savefig(text, format="svg", metadata=_NO_DATES["svg"])
    return text.getvalue()


def checked_formats(formats: Sequence[str]) -> list[str]:
    """Check a list of file formats: at least one, and none twice."""
    for kind in formats:
        if kind not in FORMATS:
            raise InputError(f"figure format {kind!r}: must be one of {', '.join(FORMATS)}")
    if not formats:
        raise InputError(f"no figure format: give one of {', '.join(FORMATS)}")
    return list(dict.fromkeys(formats))


_CELL = ("instance", "sigma", *DEFAULTS, "cost")


def plot_sweep(
    frame: pl.DataFrame,
    out: Path,
    formats: Sequence[str],
    instances: Mapping[str, Instance] | None = None,
    errors: str = "std",
    size: str = "screen",
    schedules: Sequence[str] | None = None,
    title: bool = True,
) -> list[Path]:
    """Draw the three figures of a sweep, for each instance, scale and cost, into ``out``.

    With ``instances``, by name, the first figure has the bounds of the theorems. Of more schedules
    than a figure can tell apart, figures against delta have the cheapest ones.
    """
    checked_formats(formats)
    make_folder(out)
    paths: list[Path] = []
    keys = [key for key in _CELL if key in frame.columns]
    schedules = schedules or frame["schedule"].unique().to_list()
    for values, rows in frame.group_by(keys, maintain_order=True):
        cell = dict(zip(keys, values, strict=True))
        stem, cost = file_stem(cell), float(cell["cost"])
        # one delta makes no axis: its points would stand one above the other
        x = "delta" if rows["delta"].n_unique() > 1 else "schedule"
        draw = partial(chart, errors=errors, schedules=schedules)
        rows, every = _cheapest_rows(rows) if x == "delta" else rows, rows
        total = draw(rows, x=x, y="total")
        charts = {f"total-{x}": _with_bounds(total, rows, instances, x, "total")}
        if cost > 0:
            charts[f"communication-{x}"] = draw(rows, x=x, y="communication")
        if len(rows) < len(every):
            note = f"the cheapest of {every['schedule'].n_unique()} schedules"
            charts = {key: replace(one, title=[*one.title, note]) for key, one in charts.items()}
        for (delta,), one in every.group_by(["delta"], maintain_order=True):
            if has_periods(one):
                charts[f"total-period-d{plain(float(delta))}"] = draw(one, x="period", y="total")
        for kind, drawn in charts.items():
            shown = drawn if title else replace(drawn, title=[])
            paths += write_chart(shown, out / f"{stem}-{kind}", formats, size)
    if not paths:
        raise InputError("nothing to plot: the sweep has no rows yet")
    return paths


def _cheapest_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out the dearest schedules on average over delta if all are too many for a figure.

    Those that err in more trials than delta allows come last.
    """
    import polars as pl

    if rows["schedule"].n_unique() <= MOST_LINES:
        return rows
    err = pl.Series("err", [why is not None for why in excluded_rows(rows)], pl.Boolean)
    costs = rows.select("schedule", "total_mean", err)
    means = costs.group_by("schedule", maintain_order=True).agg(
        pl.col("total_mean").mean(), pl.col("err").any()
    )
    order = means.sort("err", "total_mean", nulls_last=True, maintain_order=True)
    kept = order["schedule"][:_FEW]
    return rows.filter(rows["schedule"].is_in([*kept, "fedelim"]))


def plot_files(
    frame: pl.DataFrame,
    stem: Path,
    formats: Sequence[str],
    size: str = "screen",
    instances: Mapping[str, Instance] | None = None,
    title: bool = True,
    **choice: Any,
) -> list[Path]:
    """Draw the figure that `plot` makes of a summary into files whose names begin with ``stem``.

    With ``instances``, by name, the figure has the bounds of the theorems.
    """
    checked_formats(formats)
    drawn = _with_bounds(chart(frame, **choice), frame, instances, choice["x"], choice["y"])
    make_folder(stem.parent)
    return write_chart(drawn if title else replace(drawn, title=[]), stem, formats, size)


def _with_bounds(
    drawn: Chart, frame: pl.DataFrame, instances: Mapping[str, Instance] | None, x: str, y: str
) -> Chart:
    """Add the bounds of the theorems to a chart, if instances are given."""
    guides = [] if instances is None else bound_lines(frame, instances, x, y)
    return replace(drawn, lines=[*drawn.lines, *guides])


def chart_figure(drawn: Chart, size: str = "screen") -> Figure:
    """Draw a chart as a figure of its own, with a final layout that saving does not move."""
    with require_matplotlib().rc_context(_STYLE):
        from matplotlib.figure import Figure  # without pyplot: nobody's screen is touched

        if size not in SIZES:
            raise InputError(f"figure style {size!r}: must be one of {', '.join(SIZES)}")
        figure = Figure(figsize=SIZES[size], layout="constrained")
        # in a column of a paper the figure keeps its size, and its labels find room
        draw_chart(figure.add_subplot(), drawn, own=size == "screen")
        with _any_font():
            lay_out(figure)
        figure.set_layout_engine("none")  # which would lay it out again for each format
        return figure


def write_chart(
    drawn: Chart, stem: Path, formats: Sequence[str], size: str = "screen"
) -> list[Path]:
    """Save a chart in files whose names begin with ``stem``."""
    return save(chart_figure(drawn, size), stem, formats)


def contact_sheet(rows: Sequence[Sequence[Figure]], stem: Path, dpi: int) -> list[Path]:
    """Put figures on one sheet, in rows and columns, as PNG.

    They are the same pictures, made smaller, so that no text moves.
    """
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def picture(figure: Figure) -> Any:
        figure.set_dpi(dpi)
        canvas = FigureCanvasAgg(figure)
        with _any_font():
            canvas.draw()
        return np.asarray(canvas.buffer_rgba())

    images = [[picture(figure) for figure in line] for line in rows]
    heights = [max(image.shape[0] for image in line) for line in images]
    widths = [max(image.shape[1] for image in column) for column in zip(*images, strict=True)]
    sheet = Figure(figsize=(sum(widths) / dpi, sum(heights) / dpi), dpi=dpi)
    for row, line in enumerate(images):
        for column, image in enumerate(line):
            foot = sum(heights[row + 1 :]) + heights[row] - image.shape[0]
            sheet.figimage(image, sum(widths[:column]), foot)
    return save(sheet, stem, ["png"], dpi)


_LETTERS = {"sigma": "s", "cost": "C", "delta": "d"}


def file_stem(cell: Mapping[str, Any]) -> str:
    """Return a file name for a cell that no other cell has, on any file system.

    A name that is long, or has other characters than small letters, digits, dots and dashes, ends
    in a part of its hash.
    """
    parts = []
    for key, value in cell.items():
        if DEFAULTS.get(key) == value:  # which a name does not say
            continue
        if key in _LETTERS:
            parts.append(_LETTERS[key] + plain(float(value)).replace(",", ""))
            continue
        name = str(value)
        safe = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:40]
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        parts.append(name if safe == name else f"{safe}~{digest}")
    return "_".join(parts)
