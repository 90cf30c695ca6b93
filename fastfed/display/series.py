"""Lines of a figure from a summary's frame, with their words; nothing here draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fastfed.analysis.comparable import excluded_rows
from fastfed.display.layout import NO_BREAK
from fastfed.display.styles import EVERY_H, Style, label_of, numbered, sort_key, styles, variant
from fastfed.display.tables import USUAL
from fastfed.display.wording import told_apart, trials_text
from fastfed.errors import InputError, nearest
from fastfed.model.choices import CHOICES, DEFAULTS
from fastfed.model.goals import Goal
from fastfed.model.schedules import Schedule
from fastfed.text import parameters, plain, printable

if TYPE_CHECKING:
    import polars as pl

    from fastfed.model.instance import Instance

X = {
    "delta": "error probability delta",
    "period": "period H (steps between uplinks)",
    "cost": "cost C of an uplink (in pulls)",
    "schedule": "schedule",
    **{kind: one.axis for kind, one in CHOICES.items()},
    "gap": "smallest gap of the instance",
}
Y = {
    "total": "total cost (pulls + C x uplinks)",
    "pulls": "pulls",
    "communication": "communication cost (C x uplinks)",
    "error_rate": "error rate",
    "steps": "steps",
}
ERRORS = {
    "sem": "mean ± one standard error",
    "std": "mean ± one standard deviation",
    "quantiles": "median, bars from 5 % to 95 %",
}
_CELL = ("instance", "schedule", "delta", "sigma", *DEFAULTS, "cost")
CATEGORIES = ("schedule", *DEFAULTS)
_WITH_COST = ("total", "communication")
_CATEGORY_WIDTH = 24  # characters
_LOG_FROM = 8.0  # a larger ratio of the values takes a logarithmic axis
_DEEPEST = 3.0  # a bar reaches at most this factor below the least value of a logarithmic axis
MOST_LINES = 48  # in one figure
_TITLE_NAME = 120  # characters of an instance's name
_MOST_NAMED = 3  # schedules in one line of a title


@dataclass(frozen=True)
class Line:
    """A curve: what it is, where it goes, and how far its error bars reach."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] | None = None
    """Up and down from y; or else ``low`` and ``high``, where the bars end."""
    plain: bool = False  # a bound or a guide: thin, no markers
    style: Style | None = None  # None: by its place among the lines
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    joined: bool = True
    """False for points that no line joins, such as those over categories."""

    def ends(self) -> tuple[list[float], list[float]]:
        """Return the ends of the error bars; the points themselves if there are none."""
        spread = self.spread or [0.0] * len(self.y)
        low = self.low or [y - s for y, s in zip(self.y, spread, strict=True)]
        high = self.high or [y + s for y, s in zip(self.y, spread, strict=True)]
        return list(low), list(high)


@dataclass(frozen=True)
class Chart:
    """A figure before it is drawn: its lines, its words and what its axes are."""

    lines: list[Line]
    x_label: str
    y_label: str
    title: list[str]
    """Lines of text: where the rows come from, and what points and bars are."""
    categories: list[str] | None = None
    """Names along x, at 0, 1, 2, ...; None if x is a number."""
    small_to_the_right: bool = False
    linear_x: bool = False
    """Numbers along x evenly, where they are no scales such as costs or periods."""
    log_y: bool = False
    """Logarithmic in any case; else wherever the values differ much."""
    marks: Sequence[float] = ()
    """Places along x with a dashed vertical line, which the title explains."""


@dataclass(frozen=True)
class _Measure:
    """The columns of a point and of the ends of its error bar."""

    y: str
    errors: str

    @property
    def columns(self) -> tuple[str, str | None, str | None]:
        if self.y == "error_rate":
            return "error_rate", "error_low", "error_high"
        if self.errors == "quantiles":
            return f"{self.y}_q50", f"{self.y}_q05", f"{self.y}_q95"
        return f"{self.y}_mean", f"{self.y}_{self.errors}", None

    def point(self, row: Mapping[str, Any]) -> tuple[float, float, float] | None:
        """Return the value and the ends of its bar; None where nothing was measured."""
        middle, low, high = (None if name is None else row[name] for name in self.columns)
        if middle is None:
            return None
        if self.columns[2] is None:
            spread = low or 0.0
            return middle, middle - spread, middle + spread
        return middle, middle if low is None else low, middle if high is None else high

    @property
    def of_means(self) -> bool:
        return self.columns[0].endswith("_mean")

    @property
    def words(self) -> str:
        if self.y == "error_rate":
            return "rate with its exact 95 % interval"
        return ERRORS[self.errors]


def chart(
    frame: pl.DataFrame,
    x: str = "delta",
    y: str = "total",
    group: str | None = None,
    cost: float | None = None,
    errors: str = "sem",
    schedules: Sequence[str] | None = None,
) -> Chart:
    """Make the lines of a figure.

    Parameters
    ----------
    frame
        Rows of a summary.
    x
        "delta", "period", "cost", "schedule", "radius", "goal", "uplink" or "gap" (the
        smallest gap of an instance, a column that `with_gaps` adds).
    y
        "total", "pulls", "communication", "error_rate" or "steps".
    group
        The column that has a line for each of its values: as a rule "schedule", or "delta" where
        the schedules stand along x. What else differs between rows gets lines of its own.
    cost
        The cost C of an uplink; needed where the frame has several.
    errors
        "sem" (mean and one standard error), "std" (mean and one standard deviation) or
        "quantiles" (median, 5 % and 95 %). An error rate always has its exact 95 % interval.
    schedules
        All schedules of the sweep, from which their styles follow; None: those of the frame.
    """
    group = group or ("delta" if x in ("schedule", "period") else "schedule")
    measure = _Measure(y, errors)
    _validate(frame, x, group, measure)
    chosen = _of_cost(frame, x, y, group, cost)
    rows = chosen.to_dicts()
    looks = styles(schedules or frame["schedule"].unique())
    if x != "schedule":
        rows = _every_step_once(rows, x)
    places = places_of(rows, x)
    keys = _keys(rows, x, group, frame.columns)
    names = {key: _names(rows, key) for key in keys}
    series = _Series(rows, x, measure, keys, names, places, looks)
    lines = series.against_period() if x == "period" else series.lines()
    if not lines:
        raise InputError(
            f"nothing to plot against {x}: "
            + ("no schedule has a period" if x == "period" else "no row has a value")
        )
    if len(lines) > MOST_LINES:
        raise InputError(f"{len(lines)} lines in one figure, at most {MOST_LINES}: {_fewer(names)}")
    categories = None
    if x in CATEGORIES:
        told = told_apart(
            [label_of(p) if x == "schedule" else printable(p) for p in places], _CATEGORY_WIDTH
        )
        categories = list(told.values())
    return Chart(
        lines,
        X[x],
        Y[y],
        [*_title(rows, x, keys, measure), *_failing(chosen)],
        categories,
        small_to_the_right=x == "delta",
        log_y=y == "error_rate",
    )


def _fewer(names: Mapping[str, Mapping[Any, str]]) -> str:
    """Say what to filter: the choices that tell the lines apart, those with most values first."""
    many = sorted(names, key=lambda key: -len(names[key]))
    listed = " or ".join(f"--{key} ({len(names[key])} values)" for key in many[:2])
    return f"choose fewer values of {listed}, or filter(...) in Python"


def styled(lines: Sequence[Line]) -> list[Line]:
    """Give a style to every line that has none, except guides."""
    spare = iter(numbered(len(lines)))
    return [
        line if line.style or line.plain else replace(line, style=next(spare)) for line in lines
    ]


def logarithmic_span(drawn: Chart) -> tuple[float, float] | None:
    """Return the ends of a logarithmic y axis; None for a linear axis."""
    lines = drawn.lines
    values = [y for line in lines for y in line.y if y > 0]
    lows, highs = ([end for line in lines for end in line.ends()[side]] for side in (0, 1))
    if not values and not any(high > 0 for high in highs):
        return None
    zeros = any(y <= 0 for line in lines for y in line.y)
    if zeros and not all(high > 0 for high in highs):
        return None  # 0 without a bar: a linear axis shows it
    least = min([*values, *([high for high in highs if high > 0] if zeros else [])])
    deepest = least / _DEEPEST
    cut = zeros or any(low < deepest for low in lows)
    low = deepest if cut else min([least, *(one for one in lows if deepest <= one)])
    high = max([*values, *highs])
    return (low, high) if drawn.log_y or high / low >= _LOG_FROM else None


def with_gaps(frame: pl.DataFrame, instances: Mapping[str, Instance]) -> pl.DataFrame:
    """Add a column ``gap``: the smallest gap of each row's instance and goal.

    Gaps are local or global. The smallest one makes the instance hard.
    """
    import polars as pl

    asked = frame.select("instance", "goal").unique().rows()
    gaps = [
        (name, goal, Goal.parse(goal).smallest_gap(instances[name]))
        for name, goal in asked
        if name in instances
    ]
    for name, goal, gap in gaps:
        if math.isinf(gap):
            raise InputError(
                f"x gap: instance {printable(name)} with goal {goal} has no gap, because it has "
                "one arm; choose another x, or leave the instance out"
            )
    known = pl.DataFrame(
        gaps, {"instance": pl.String, "goal": pl.String, "gap": pl.Float64}, orient="row"
    )
    return frame.join(known, on=["instance", "goal"], how="left", maintain_order="left")


def _validate(frame: pl.DataFrame, x: str, group: str, measure: _Measure) -> None:
    for what, value, known in (
        ("x", x, list(X)),
        ("y", measure.y, list(Y)),
        ("errors", measure.errors, list(ERRORS)),
        ("group", group, list(_CELL)),
    ):
        if value not in known:
            raise InputError(
                f"{what} = {value!r}{nearest(str(value), known)}: must be one of {', '.join(known)}"
            )
    if not len(frame):
        raise InputError("nothing to plot: the summary has no rows")
    column = "schedule" if x == "period" else x
    for name in (column, group, *filter(None, measure.columns)):
        if name == f"{measure.y}_{measure.errors}" and name not in frame.columns:
            raise InputError(f"errors = {measure.errors!r}: {measure.y} has sem only; use sem")
        if name not in frame.columns:
            raise InputError(f"nothing to plot: the summary has no column {name!r}")


def _of_cost(frame: pl.DataFrame, x: str, y: str, group: str, cost: float | None) -> pl.DataFrame:
    """Select the rows with one cost, unless the cost is on the x axis or has a line each."""
    import polars as pl

    if frame["cost"].is_null().any():
        raise InputError(
            "the summary has costs of a bit: figures show costs of an uplink; leave bit_costs out"
        )
    costs = sorted(frame["cost"].unique().to_list())
    if cost is not None:
        chosen = frame.filter(pl.col("cost") == cost)
        if not len(chosen):
            raise InputError(
                f"cost = {plain(cost)}: the summary has C = {', '.join(map(plain, costs))}"
            )
        return chosen
    if len(costs) == 1 or "cost" in (x, group):
        return frame
    if y in _WITH_COST:
        raise InputError(
            f"the summary has C = {', '.join(map(plain, costs))}: choose one, as in "
            f"cost={plain(costs[-1])}, or group='cost'"
        )
    return frame.filter(pl.col("cost") == costs[0])


def has_periods(frame: pl.DataFrame) -> bool:
    """Tell whether there is anything to draw against the period."""
    return any(Schedule.parse(name).period is not None for name in frame["schedule"].unique())


def _every_step_once(rows: list[dict[str, Any]], x: str) -> list[dict[str, Any]]:
    """Keep only one of FedElim0 and periodic:1, which have the same communication times.

    The one kept is periodic:1 if periods are on the x axis, and FedElim0 otherwise.
    """
    both = {row["schedule"] for row in rows} >= {"fedelim0", "periodic:1"}
    spare = "fedelim0" if x == "period" else "periodic:1"
    return [row for row in rows if not (both and row["schedule"] == spare)]


def places_of(rows: Sequence[Mapping[str, Any]], x: str) -> list[Any]:
    """Return the values along x, in order."""
    if x == "period":
        return sorted({period_of(row) for row in rows if period_of(row) is not None})
    values = list(dict.fromkeys(row[x] for row in rows if row[x] is not None))
    return values if x in CATEGORIES else sorted(values)  # categories: in the order of the spec


def period_of(row: Mapping[str, Any]) -> float | None:
    """Return the period of a row's schedule; None if it has none."""
    period = Schedule.parse(row["schedule"]).period
    return None if period is None else float(period)


def _keys(
    rows: Sequence[Mapping[str, Any]], x: str, group: str, columns: Sequence[str]
) -> list[str]:
    """Return the columns that tell lines apart.

    They are the group, and all columns that differ between rows at the same place of a line.
    """
    along = "schedule" if x == "period" else x
    keys = [group] if group != along else []
    others = [name for name in _CELL if name in columns and name not in (along, *keys)]

    def different(*names: str) -> int:
        return len({tuple(row[name] for name in (along, *keys, *names)) for row in rows})

    while (found := different()) < len(rows):
        telling = next((name for name in others if different(name) > found), None)
        if telling is None:  # the same cell twice: no column tells its rows apart
            break
        keys.append(telling)
    several = [key for key in keys if len({row[key] for row in rows}) > 1]
    return several or [key for key in keys if key == group]  # what is constant is in the title


def _names(rows: Sequence[Mapping[str, Any]], key: str) -> dict[Any, str]:
    """Return the words for every value of a column."""
    values = list(dict.fromkeys(row[key] for row in rows))
    if key == "schedule":
        return {value: label_of(value) for value in values}
    if key in ("delta", "sigma", "cost"):
        shown = parameters(values)
        head = {"delta": "delta ", "sigma": "sigma ", "cost": "C = "}[key]
        return {value: head + shown[value] for value in values}
    return {value: printable(str(value)) for value in values}


@dataclass(frozen=True)
class _Series:
    """Rows on their way to lines."""

    rows: list[dict[str, Any]]
    x: str
    measure: _Measure
    keys: list[str]
    names: dict[str, dict[Any, str]]
    places: list[Any]
    looks: Mapping[str, Style]
    """Styles of schedules."""

    def lines(self) -> list[Line]:
        groups = self._grouped(self.keys, self.rows)
        looks = self._styles(list(groups))
        lines = [
            self._line(", ".join(self._words(self.keys, key)), rows, look)
            for (key, rows), look in zip(groups.items(), looks, strict=True)
        ]
        if len(lines) == 1 and self.keys != ["schedule"]:  # the title says what it is
            lines = [replace(lines[0], label="")]
        return [line for line in lines if line.x]

    def against_period(self) -> list[Line]:
        """Draw a curve through the periods, and schedules without a period as level lines.

        The error bars of a level line become a band.
        """
        others = [key for key in self.keys if key != "schedule"]
        curves = self._grouped(others, [row for row in self.rows if period_of(row) is not None])
        levels = self._grouped(
            ["schedule", *others], [row for row in self.rows if period_of(row) is None]
        )
        cells = self._values(others)

        def label(head: str, key: tuple[Any, ...]) -> str:
            return ", ".join([head, *self._words(others, key)]) if cells[1:] else head

        lines = [
            self._line(label("periodic:H", key), rows, variant(EVERY_H, cells.index(key)))
            for key, rows in curves.items()
        ]
        lines = [line for line in lines if line.x]
        if not lines:
            return []
        ends = [min(self.places), max(self.places)]
        if ends[0] == ends[1]:
            ends = [ends[0] / 2, ends[1] * 2]
        for key, rows in levels.items():
            point = self.measure.point(rows[0])
            if point is not None:
                name = label(label_of(key[0]), key[1:])
                look = variant(self.looks[key[0]], cells.index(key[1:]))
                y, low, high = ([value] * 2 for value in point)
                lines.append(Line(name, ends, y, plain=True, style=look, low=low, high=high))
        return lines

    def _grouped(
        self, keys: Sequence[str], rows: Sequence[dict[str, Any]]
    ) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in rows:
            groups.setdefault(tuple(row[key] for key in keys), []).append(row)

        def order(values: tuple[Any, ...]) -> list[Any]:
            pairs = zip(keys, values, strict=True)
            return [sort_key(value) if key == "schedule" else value for key, value in pairs]

        return {values: groups[values] for values in sorted(groups, key=order)}

    def _values(self, keys: Sequence[str]) -> list[tuple[Any, ...]]:
        """List the values of some keys, in the order of the rows."""
        return list(dict.fromkeys(tuple(row[key] for key in keys) for row in self.rows))

    def _styles(self, keys: Sequence[tuple[Any, ...]]) -> list[Style]:
        """Choose styles whose colours follow the group, the first key; a schedule has its own.

        Where other keys tell lines apart, too, markers follow these. Points that no line joins show
        no dashes, so colour and marker alone tell them apart.
        """
        groups, others = self._values(self.keys[:1]), self._values(self.keys[1:])
        wanted = looks = numbered(len(keys))
        if self.keys[:1] == ["schedule"]:
            wanted = [variant(self.looks[key[0]], others.index(key[1:])) for key in keys]
        elif len(others) > 1:
            wanted = [
                replace(looks[others.index(key[1:])], colour=looks[groups.index(key[:1])].colour)
                for key in keys
            ]
        if self.x in CATEGORIES:
            wanted = [replace(style, dash=EVERY_H.dash) for style in wanted]
        return wanted if len(set(wanted)) == len(keys) else looks

    def _words(self, keys: Sequence[str], values: Sequence[Any]) -> list[str]:
        return [self.names[key][value] for key, value in zip(keys, values, strict=True)]

    def _line(self, label: str, rows: Sequence[Mapping[str, Any]], look: Style) -> Line:
        points = []
        for row in rows:
            value = period_of(row) if self.x == "period" else row[self.x]
            point = self.measure.point(row)
            if value is not None and point is not None:
                at = self.places.index(value) if self.x in CATEGORIES else value
                points.append((float(at), *point))
        points.sort()
        x, y, low, high = (
            (list(column) for column in zip(*points, strict=True)) if points else ([], [], [], [])
        )
        return Line(label, x, y, style=look, low=low, high=high, joined=self.x not in CATEGORIES)


def _failing(frame: pl.DataFrame) -> list[str]:
    """Name schedules that fail in more trials than delta allows; these cannot be the cheapest."""
    rows = zip(frame["schedule"], excluded_rows(frame), strict=True)
    named = [label_of(name) for name, why in rows if why is not None]
    names = list(dict.fromkeys(named))
    if not names:
        return []
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return [f"more errors than delta allows: {', '.join(names[:_MOST_NAMED])}{more}"]


def _title(
    rows: Sequence[Mapping[str, Any]], x: str, keys: Sequence[str], measure: _Measure
) -> list[str]:
    """Write what all rows share, and what points and bars are; ``keys`` are in the labels."""
    shared = []
    for name in ("instance", "schedule", "delta", "cost", "sigma", *DEFAULTS):
        values = {row[name] for row in rows if name in row}
        if len(values) != 1 or name == x or values == {USUAL.get(name)}:
            continue
        if name == "schedule" and name in keys:  # which its label says
            continue
        if name == "cost" and measure.y not in _WITH_COST:
            continue
        (value,) = values
        if name == "instance":
            shared.append(told_apart([value], _TITLE_NAME)[value])
        else:
            shared.append(_names(rows, name)[value].replace(" ", NO_BREAK))
    trials = sorted({row["trials"] for row in rows if "trials" in row})
    count = ""
    if trials:
        cut = max(row.get("truncated") or 0 for row in rows)
        count = ", " + trials_text(trials[0], trials[-1], cut, measure.of_means)
    return [line for line in (", ".join(shared), f"{measure.words}{count}") if line]
