"""Charts of `fastfed.display.series` as Vega-Lite specifications.

Lines, words, styles and scales are those that `fastfed.display.figures` gives to matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastfed.display.report.data import vega_look
from fastfed.display.series import Chart, Line, logarithmic_span, styled
from fastfed.display.styles import GUIDE
from fastfed.text import printable, short

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # a name: nothing is loaded from it
_GUIDE = {"colour": GUIDE, "shape": "circle", "dash": [6, 3], "filled": True}
_HEIGHT = 200  # of the plot alone: axes, titles and legends come on top
_TWO_COLUMNS = 20  # letters of a label, so that two stand side by side on a narrow screen


def vega_chart(drawn: Chart) -> dict[str, Any]:
    """Make the specification of a chart whose x is a number, with its data."""
    lines = styled(drawn.lines)
    looks = {
        printable(line.label): _GUIDE if line.style is None else vega_look(line.style)
        for line in lines
    }
    span = logarithmic_span(drawn)
    log = {"type": "log", "reverse": drawn.small_to_the_right, "nice": False, "padding": 12}
    x = _axis("x", drawn.x_label, "~g", log)
    kind = {"type": "linear", "zero": False} if span is None else {"type": "log"}
    number = "~g" if drawn.log_y else "~s"
    y = _axis("y", drawn.y_label, number, {"nice": False, "padding": 10, **kind})
    tooltip = [
        {"field": "line", "title": "line"},
        {"field": "x", "type": "quantitative", "title": drawn.x_label, "format": "~g"},
        {"field": "shown", "title": drawn.y_label},
    ]
    colour = _scale(looks, "colour")
    ends = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
    middle = {"x": x, "y": y, "color": colour}
    band = {
        "mark": {"type": "area", "opacity": 0.13},
        "transform": [{"filter": "datum.band"}],
        "encoding": ends,
    }
    bar = {"mark": {"type": "rule"}, "encoding": ends}
    line = {
        "mark": {"type": "line", "strokeWidth": 1.6},
        "encoding": {**middle, "strokeDash": _scale(looks, "dash"), "tooltip": tooltip},
    }
    point = {
        "mark": {"type": "point", "filled": True, "size": 45},
        "encoding": {**middle, "shape": _scale(looks, "shape"), "tooltip": tooltip},
    }
    marks = [
        {
            "data": {"values": [{"mark": place}]},
            "mark": {"type": "rule", "color": GUIDE, "strokeDash": [4, 4]},
            "encoding": {"x": {**x, "field": "mark"}},
        }
        for place in drawn.marks
    ]
    points = {"transform": [{"filter": "datum.point"}]}
    bands = [band] if any(one.plain and one.low is not None for one in lines) else []
    layers = [*bands, line]
    if not all(one.plain for one in lines):
        layers = [*bands, {**points, **bar}, line, {**points, **point}]
    return {
        **_frame(drawn.title),
        "data": {"values": _values(lines, span)},
        "layer": [*layers, *marks],
    }


def _axis(field: str, title: str, number: str, scale: Mapping[str, Any]) -> dict[str, Any]:
    """Make an axis whose numbers have the format ``number``."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "axis": {"format": number, "tickCount": 6, "labelOverlap": True},
        "scale": scale,
    }


def vega_map(title: str, cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Make a map of ratios by delta and C: red above 1, blue below.

    Undecided ratios show a question mark. ``cells`` have delta, cost, value and ``holds``.
    """
    values = [
        {
            "delta": f"{cell['delta']:g}",
            "cost": f"{cell['cost']:g}",
            "value": cell["value"],
            "text": "?" if cell["holds"] is None else f"{cell['value']:.2f}",
            "verdict": cell["verdict"],
        }
        for cell in cells
    ]
    deltas, costs = (
        list(dict.fromkeys(value[key] for value in values)) for key in ("delta", "cost")
    )
    x = {
        "field": "delta",
        "type": "ordinal",
        "sort": deltas,
        "title": "error probability delta",
        "axis": {"labelAngle": -45},
    }
    y = {"field": "cost", "type": "ordinal", "sort": costs[::-1], "title": "cost C of an uplink"}
    return {
        **_frame([title]),
        "data": {"values": values},
        "layer": [
            {
                "mark": "rect",
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": {
                        "field": "value",
                        "type": "quantitative",
                        "legend": None,
                        "scale": {
                            "type": "log",
                            "scheme": "redblue",
                            "reverse": True,
                            "domain": [0.5, 2],
                            "clamp": True,
                        },
                    },
                    "tooltip": [{"field": one} for one in ("delta", "cost", "value", "verdict")],
                },
            },
            {
                "mark": {"type": "text", "fontSize": 9},
                "encoding": {
                    "x": x,
                    "y": y,
                    "text": {"field": "text", "type": "nominal"},
                    "color": {
                        "condition": {"test": "abs(log(datum.value)) > 0.5", "value": "white"},
                        "value": "#111",
                    },
                },
            },
        ],
    }


def _frame(title: Sequence[str]) -> dict[str, Any]:
    return {
        "$schema": SCHEMA,
        "width": "container",
        "height": _HEIGHT,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "background": "#fff",
        "description": printable("; ".join(title)),
        "config": {"font": "system-ui, sans-serif", "axis": {"gridOpacity": 0.6}},
    }


def _scale(looks: Mapping[str, Mapping[str, Any]], what: str) -> dict[str, Any]:
    return {
        "field": "line",
        "type": "nominal",
        "legend": {
            "title": None,
            "orient": "bottom",
            "columns": 2 if max(map(len, looks)) <= _TWO_COLUMNS else 1,
            "labelLimit": 220,
            "symbolSize": 70,
            "symbolStrokeWidth": 2,
            "symbolOpacity": 1,
        },
        "scale": {"domain": list(looks), "range": [look[what] for look in looks.values()]},
    }


def _values(lines: Sequence[Line], span: tuple[float, float] | None) -> list[dict[str, Any]]:
    """Return the points of all lines; points below the axis are drawn at its lower end."""
    foot = -float("inf") if span is None else span[0]
    values = []
    for line in lines:
        lows, highs = line.ends()
        for x, y, low, high in zip(line.x, line.y, lows, highs, strict=True):
            shown = short(y) if low == high else f"{short(y)} ({short(low)} to {short(high)})"
            values.append(
                {
                    "line": printable(line.label),
                    "x": x,
                    "y": max(y, foot),
                    "low": max(low, foot),
                    "high": max(high, foot),
                    "shown": shown,
                    "point": not line.plain,
                    "band": line.plain and line.low is not None,
                }
            )
    return values
