"""Styles of lines: one for each schedule, the same in every figure of a sweep and on its page.

A style is a colour, a marker, a dash and whether the marker is filled. `styles` gives one to each
schedule of a set, in the order of kinds and parameters, periods last:

* FedElim and FedElim0 have looks of their own, the only solid lines;
* colours are dealt in turn, so that eight schedules have eight colours before one repeats. Two
  names of the same communication times, such as fedelim0 and periodic:1, share a colour;
* the kind of a schedule chooses the family of dashes, so that kinds never look alike.

No two styles of a set are equal: 8 colours and 11 markers, dealt in turn, make 88 pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from fastfed.model.schedules import Exponential, Schedule

Dash: TypeAlias = str | tuple[int, tuple[float, ...]]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#882255")
"""Okabe and Ito's colours without their yellow, which is too pale for a line on white, and the
wine red of Tol's muted scheme."""
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">", "p")
GUIDE = "#444444"
"""The colour of bounds and other guides, which are no schedule's."""

_SOLID: Dash = "-"
_DASHES: dict[str, tuple[Dash, ...]] = {
    "fedelim": (_SOLID,),
    "periodic": ((0, (4.5, 1.5)), (0, (2.2, 1.2)), (0, (8, 2))),
    "exponential": ((0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)), (0, (9, 1.5, 3, 1.5))),
    "at": ((0, (1, 1)), (0, (1, 2.2)), (0, (1, 1, 1, 3))),
    "superexponential": ((0, (5, 1, 1, 1, 1, 1, 1, 1)),),
    "adaptive": ((0, (7, 1, 2, 1)), (0, (2, 1, 7, 1, 2, 1))),
}


@dataclass(frozen=True)
class Style:
    """The style of one line."""

    colour: str
    marker: str
    dash: Dash
    filled: bool = True

    def line(self) -> dict[str, Any]:
        """Return the style as keywords of matplotlib's ``plot`` and ``errorbar``."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "linestyle": self.dash,
            "markerfacecolor": self.colour if self.filled else "white",
            "markeredgecolor": self.colour,
        }


FEDELIM = Style(COLOURS[0], "o", _SOLID)
FEDELIM0 = Style(COLOURS[1], "s", _SOLID)
_PAPER = {"fedelim": FEDELIM, "fedelim0": FEDELIM0}
EVERY_H = Style(COLOURS[6], "D", _SOLID)
"""The curve through all periods, in figures against the period."""


def styles(schedules: Iterable[str | Schedule]) -> dict[str, Style]:
    """Give each schedule a style, by name; no two are alike, and the order does not matter."""
    parsed = sorted({Schedule.parse(one) for one in schedules}, key=lambda one: one.sort_key)
    order = sorted(parsed, key=lambda one: one.period is not None)  # periods are many: last
    times = {str(one): times_of(one) for one in order}
    places: dict[object, int] = {("base", 2.0): 0, 1.0: 1}  # the times of FedElim and FedElim0
    free = [place for one, place in places.items() if one not in times.values()]
    # beyond the colours of the first turn all eight are dealt again
    turns = range(len(COLOURS), len(COLOURS) + len(times))
    spare = iter([*range(len(places), len(COLOURS)), *free, *turns])
    for one in times.values():
        if one not in places:
            places[one] = next(spare)
    return {str(one): _look(one, places[times[str(one)]]) for one in order}


def style_of(schedule: str | Schedule) -> Style:
    """Return the style of a schedule that is drawn alone."""
    (style,) = styles([schedule]).values()
    return style


def times_of(one: Schedule) -> object:
    """Return a key that schedules with the same communication times share."""
    if one.period is not None:
        return float(one.period)
    return ("base", float(one.base)) if isinstance(one, Exponential) else str(one)


def _look(one: Schedule, place: int) -> Style:
    """Return the style of a schedule that is dealt the colour of this place."""
    if one.family in _PAPER:
        return _PAPER[one.family]
    dashes = _DASHES.get(one.family, _DASHES["at"])
    turn = place // len(COLOURS)
    colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
    return Style(colour, marker, dashes[turn % len(dashes)], turn % 2 == 0)


def variant(style: Style, place: int) -> Style:
    """Return one of several styles for the same schedule: its colour and dashes, other markers."""
    turn, other = divmod(place, 2)
    marker = MARKERS[(MARKERS.index(style.marker) + turn) % len(MARKERS)]
    return replace(style, marker=marker, filled=style.filled != bool(other))


def numbered(count: int) -> list[Style]:
    """Return styles by number, for lines that are not schedules (one for each delta, say)."""
    dashes = [dash for family in _DASHES.values() for dash in family]
    return [
        Style(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], dashes[i % len(dashes)])
        for i in range(count)
    ]


def sort_key(schedule: str | Schedule) -> tuple[int, float, str]:
    """Return the sort key of legends and axes: the family, then the parameter."""
    return Schedule.parse(schedule).sort_key


def label_of(schedule: str) -> str:
    """Return a schedule's name for legends."""
    return Schedule.parse(schedule).label
