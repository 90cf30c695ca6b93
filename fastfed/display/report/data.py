"""The numbers of a report, from moments: what the page needs, and never a trial's row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastfed.analysis.cheapest import Envelope, Piece, Rival
from fastfed.analysis.intervals import clopper_pearson, finite
from fastfed.analysis.moments import Moments
from fastfed.analysis.prices import PULLS, Prices
from fastfed.analysis.summary import yardstick_of
from fastfed.display.styles import COLOURS, Style, styles
from fastfed.model.counts import COUNTS
from fastfed.model.schedules import Schedule
from fastfed.text import printable

_SHAPES = {
    "o": "circle",
    "s": "square",
    "D": "diamond",
    "^": "triangle-up",
    "v": "triangle-down",
    "<": "triangle-left",
    ">": "triangle-right",
    "P": "cross",
    "X": "M-1,-0.6L-0.6,-1L0,-0.4L0.6,-1L1,-0.6L0.4,0L1,0.6L0.6,1L0,0.4L-0.6,1L-1,0.6L-0.4,0Z",
    "*": "M0,-1L0.3,-0.35L1,-0.3L0.45,0.15L0.6,0.85L0,0.45L-0.6,0.85L-0.45,0.15L-1,-0.3"
    "L-0.3,-0.35Z",
    "p": "M0,-1L0.95,-0.31L0.59,0.81L-0.59,0.81L-0.95,-0.31Z",
}
"""matplotlib's markers as Vega's shapes."""
_DIGITS = 9  # shown with at most seven: enough that rounding twice does not show


def report_data(
    cells: Sequence[Mapping[str, Any]],
    schedules: Iterable[Schedule],
    about: Mapping[str, object],
    costs: Sequence[float] = (0.0, 10.0, 100.0),
    fixed: Prices = PULLS,
    looks: Mapping[str, Style] | None = None,
) -> dict[str, Any]:
    """Make everything that the page shows, as JSON's types.

    Parameters
    ----------
    cells
        What `cell_data` made of each cell.
    schedules
        Schedules of the cells.
    about
        What was run, in order: shown as it is.
    costs
        The costs that the sweep asked for; the page begins with the middle one.
    fixed
        The prices of all other counts, with which the page begins.
    looks
        Styles of schedules; None: as if there were no others.
    """
    order = sorted(dict.fromkeys(schedules), key=lambda one: one.sort_key)
    looks = looks or styles(order)
    return {
        "about": {str(key): printable(str(value)) for key, value in about.items()},
        "counts": COUNTS,
        "costs": sorted(costs),
        "prices": dict(fixed.items),
        "colours": list(COLOURS),
        "schedules": [
            {
                "name": str(one),
                "label": one.label,
                "period": one.period,
                **vega_look(looks[str(one)]),
            }
            for one in order
        ],
        "cells": list(cells),
    }


def vega_look(style: Style) -> dict[str, Any]:
    """Translate the style of a line into Vega's terms."""
    dash = [1, 0] if isinstance(style.dash, str) else [2 * length for length in style.dash[1]]
    return {
        "colour": style.colour,
        "shape": _SHAPES[style.marker],
        "dash": dash,
        "filled": style.filled,
    }


def cell_data(found: Envelope, schedules: Sequence[Schedule], moments: Moments) -> dict[str, Any]:
    """Make what the page shows of a cell: its cheapest schedules, and the sums of all trials."""
    yardstick = yardstick_of(schedules)
    where = {
        key: printable(value) if isinstance(value, str) else value
        for key, value in found.cell.items()
    }
    compared = set(found.schedules) if found.compared else set()
    pieces = [
        {
            "winner": piece.winner,
            "low": piece.low,
            "high": finite(piece.high),
            "interval": None
            if piece.high_interval is None
            else [finite(end) for end in piece.high_interval],
            "rivals": [_rival(one, piece) for one in piece.rivals],
            "equal": list(piece.equal),
        }
        for piece in found.pieces
    ]
    return {
        "where": where,
        "pieces": pieces,
        "excluded": {name: str(why) for name, why in found.excluded.items()},
        "compared": found.compared,
        "rows": [
            {
                **_row(name, moments, yardstick),
                "compared": _means(name, found) if name in compared else None,
            }
            for name in moments.schedules
            if moments.trials(name)
        ],
    }


def _rival(one: Rival, piece: Piece) -> str | list[Any]:
    """Return the name of a rival, with the ranges of C if they are not the whole piece."""
    if one.where == ((piece.low, piece.high),):
        return one.schedule
    return [one.schedule, [[low, finite(high)] for low, high in one.where]]


def _means(name: str, found: Envelope) -> list[float | None]:
    """Return the mean counts over the trials by which schedules are compared."""
    return [finite(one) for one in found.moments.described(name)[0]]


def _beside(name: str, moments: Moments, yardstick: str | None) -> list[Any] | None:
    """Return the mean counts of a schedule and those of FedElim0, over common trials.

    Common trials are those that both ended. The ratio at all prices follows. None if there is
    nothing to compare with.
    """
    if yardstick is None:
        return None
    pairs = [moments.pair(name, yardstick, Prices.of({count: 1.0})) for count in COUNTS]
    if not pairs[0].pairs:
        return None
    return [[finite(one.means[place]) for one in pairs] for place in (0, 1)]


def _row(name: str, moments: Moments, yardstick: str | None) -> dict[str, Any]:
    trials, wrong = moments.trials(name), moments.errors(name)
    low, high = clopper_pearson(wrong, trials)
    means, covariance = moments.described(name)
    return {
        "schedule": name,
        "trials": trials,
        "ended": moments.ended(name),
        "wrong": wrong,
        "error_low": low,
        "error_high": high,
        "means": [finite(one) for one in means],
        "covariance": [
            [finite(one) for one in some[: place + 1]] for place, some in enumerate(covariance)
        ],
        "beside": _beside(name, moments, yardstick),
    }


def rounded(number: float | None) -> float | None:
    """Round to more digits than are ever shown; None for infinity and NaN."""
    if number is None or not math.isfinite(number):
        return None
    return float(f"{number:.{_DIGITS}g}")
