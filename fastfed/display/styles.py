"""Styles of lines: one for each schedule, the same in every figure.

A style is a colour, a marker, a dash and whether the marker is filled. It follows from the
schedule alone, so that a schedule looks the same in every panel, figure and report:

* FedElim and FedElim0 have looks of their own, the only solid lines;
* the kind of a schedule chooses the family of dashes, so that kinds never look alike;
* a period chooses its colour by its power of ten and its marker by its leading digit, so that
  1, 2, 5, 10, 20, 50, ... all differ; the parameters of the other kinds are spread by a hash.

There are more schedules than styles. Where two schedules of one figure would look alike, the
later one (in the order of kinds and parameters) moves on to the nearest style that is free:
`styles` promises that no two of its answers are equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

from fastfed.errors import InputError
from fastfed.model.schedules import Schedule

Dash: TypeAlias = str | tuple[int, tuple[float, ...]]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#882255")
"""Okabe and Ito's colours without their yellow, which is too pale for a line on white, and the
wine red of Tol's muted scheme."""
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">", "p", "h")
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
_FAMILIES = tuple(_DASHES)


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


def style_of(schedule: str | Schedule) -> Style:
    """Return the style that a schedule has unless another schedule needs it."""
    one = Schedule.parse(schedule)
    if one.family in _PAPER:
        return _PAPER[one.family]
    dashes = _DASHES.get(one.family, _DASHES["at"])
    spread = _spread(str(one))
    if one.period is not None:
        digits = str(one.period)
        power, lead = len(digits) - 1, int(digits[0])
        rest = int(digits[1:] or "0")
        return Style(
            COLOURS[power % len(COLOURS)],
            MARKERS[lead - 1],
            dashes[spread % len(dashes) if rest else 0],
            power < len(COLOURS),
        )
    colour, marker = divmod(spread % (len(COLOURS) * len(MARKERS)), len(MARKERS))
    return Style(COLOURS[colour], MARKERS[marker], dashes[spread // 96 % len(dashes)])


def styles(schedules: Iterable[str | Schedule]) -> dict[str, Style]:
    """Give each schedule a style, by name; no two are alike, and the order does not matter."""
    order = sorted({Schedule.parse(one) for one in schedules}, key=lambda one: one.sort_key)
    chosen = distinct([style_of(one) for one in order])
    return dict(zip(map(str, order), chosen, strict=True))


def distinct(wanted: Sequence[Style]) -> list[Style]:
    """Replace each repeated style by the nearest one that is free.

    The colour is kept as long as other dashes, fillings or markers are left.
    """
    taken: set[Style] = set()
    first = set(wanted)
    nearby: dict[Style, Iterator[Style]] = {}  # what was passed over once is never free again
    chosen: list[Style] = []
    for style in wanted:
        if style in taken:
            others = nearby.setdefault(style, _nearby(style))
            found = next((one for one in others if one not in taken and one not in first), None)
            if found is None:
                raise InputError(f"{len(wanted):,} lines: too many to tell apart; draw fewer")
            style = found
        taken.add(style)
        chosen.append(style)
    return chosen


def numbered(count: int) -> list[Style]:
    """Return styles by number, for lines that are not schedules (one for each delta, say)."""
    dashes = [dash for family in _FAMILIES for dash in _DASHES[family]]
    return distinct(
        [
            Style(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], dashes[i % len(dashes)])
            for i in range(count)
        ]
    )


def sort_key(schedule: str | Schedule) -> tuple[int, float, str]:
    """Return the sort key of legends and axes: the family, then the parameter."""
    return Schedule.parse(schedule).sort_key


def label_of(schedule: str) -> str:
    """Return a schedule's name for legends."""
    return Schedule.parse(schedule).label


def _spread(name: str) -> int:
    """Return a number that depends on the name alone, in every process."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")


def _nearby(style: Style) -> Iterator[Style]:
    """Yield all other styles, those of the same colour and dashes first."""
    home = next(family for family in _FAMILIES if style.dash in _DASHES[family])
    families = [home, *(family for family in _FAMILIES if family not in (home, "fedelim"))]
    colours = _from(COLOURS, style.colour)
    for family in families:
        for colour in colours:
            for filled, marker, dash in product(
                (style.filled, not style.filled), _from(MARKERS, style.marker), _DASHES[family]
            ):
                yield replace(style, colour=colour, marker=marker, dash=dash, filled=filled)


def _from(items: Sequence[str], first: str) -> list[str]:
    """Return the items in a circle, beginning with ``first``."""
    at = items.index(first)
    return [*items[at:], *items[:at]]
