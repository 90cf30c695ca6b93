"""The numbers of a report, from moments: what the page needs, and never a trial's row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastfed.errors import printable
from fastfed.problem.schedule import parse
from fastfed.results.style import Style, in_words, styles
from fastfed.statistics.best import envelope
from fastfed.statistics.intervals import clopper_pearson
from fastfed.statistics.moments import PULLS, UPLINKS, Moments, as_float
from fastfed.statistics.summary import yardstick_of

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
    "h": "M0,-1L0.87,-0.5L0.87,0.5L0,1L-0.87,0.5L-0.87,-0.5Z",
}
"""matplotlib's markers as Vega's shapes."""


def report_data(
    cells: Iterable[tuple[Mapping[str, Any], Moments]],
    about: Mapping[str, object],
    costs: Sequence[float] = (0.0, 10.0, 100.0),
) -> dict[str, Any]:
    """Everything that the page shows, as JSON's types.

    Parameters
    ----------
    cells
        For each cell what names it (``instance``, ``delta``, ``sigma`` and whatever else) and
        its moments, whose partners are all schedules.
    about
        What was run, in order: shown as it is.
    costs
        The costs that the sweep asked for; the page begins with the middle one.
    """
    found = [(dict(cell), moments) for cell, moments in cells]
    names = list(dict.fromkeys(name for _, moments in found for name in moments.schedules))
    looks = styles(names)
    order = sorted(names, key=lambda name: parse(name).sort_key)
    return {
        "about": {str(key): printable(str(value)) for key, value in about.items()},
        "costs": sorted(costs),
        "schedules": [
            {
                "name": name,
                "words": in_words(name),
                "period": _period(name),
                **vega_look(looks[name]),
            }
            for name in order
        ],
        "cells": [_cell(cell, moments) for cell, moments in found],
    }


def _period(name: str) -> int | None:
    return parse(name).period


def vega_look(style: Style) -> dict[str, Any]:
    """A style of a line in the words of Vega."""
    dash = [1, 0] if isinstance(style.dash, str) else [2 * length for length in style.dash[1]]
    return {
        "colour": style.colour,
        "shape": _SHAPES[style.marker],
        "dash": dash,
        "filled": style.filled,
    }


def _cell(cell: Mapping[str, Any], moments: Moments) -> dict[str, Any]:
    where = {
        key: printable(value) if isinstance(value, str) else value for key, value in cell.items()
    }
    pieces = [
        {
            "winner": piece.winner,
            "low": piece.low,
            "high": _finite(piece.high),
            "interval": None
            if piece.high_interval is None
            else [_finite(end) for end in piece.high_interval],
            "rivals": [
                {
                    "schedule": one.schedule,
                    "where": [[low, _finite(high)] for low, high in one.where],
                }
                for one in piece.rivals
            ],
            "equal": list(piece.equal),
        }
        for piece in envelope(moments, cell).pieces
    ]
    return {
        "where": where,
        "pieces": pieces,
        "rows": [_row(name, moments) for name in moments.schedules if moments.trials(name)],
    }


def _beside(name: str, moments: Moments) -> list[float] | None:
    """Mean pulls and uplinks of a schedule, then those of FedElim0, over the trials that both
    ended: their ratio at every C follows. None where there is nothing to compare with."""
    yardstick = yardstick_of(moments.schedules)
    if yardstick is None:
        return None
    pulls, uplinks = (moments.pair(name, yardstick, prices) for prices in (PULLS, UPLINKS))
    if not pulls.count:
        return None
    return [as_float(total / pulls.count) for total in (pulls.x, uplinks.x, pulls.y, uplinks.y)]


def _row(name: str, moments: Moments) -> dict[str, Any]:
    trials, wrong = moments.trials(name), moments.errors(name)
    low, high = clopper_pearson(wrong, trials)
    return {
        "schedule": name,
        "trials": trials,
        "ended": moments.ended(name),
        "wrong": wrong,
        "error_low": low,
        "error_high": high,
        "pulls": moments.mean(name, PULLS),
        "uplinks": moments.mean(name, UPLINKS),
        "var_pulls": moments.covariance(name, PULLS, PULLS),
        "covariance": moments.covariance(name, PULLS, UPLINKS),
        "var_uplinks": moments.covariance(name, UPLINKS, UPLINKS),
        "beside": _beside(name, moments),
    }


def _finite(number: float) -> float | None:
    """JSON has no infinity."""
    return number if math.isfinite(number) else None
