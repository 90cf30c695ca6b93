"""`fastfed reproduce` as one page: panels, verdicts, studies, and every cell behind a verdict.

Each claim links to its figures and to its cells, each figure to the claims that are about it. The
figures are the charts of `fastfed.paper.panels`, drawn by Vega-Lite; the page is made by
`fastfed.display.report` and needs no network.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastfed.analysis.verdicts import DOES_NOT_APPLY, Cell, Claim
from fastfed.display.report.charts import vega_chart, vega_map
from fastfed.display.report.page import CLAIMS, page
from fastfed.display.series import Chart
from fastfed.files import replacing
from fastfed.paper.errata import SLIPS
from fastfed.paper.matrix import LOOKS, instances_of, square
from fastfed.paper.panels import PANELS, figure_stem
from fastfed.text import printable, tidy

FIGURES: dict[str, tuple[str, ...]] = {
    "delta-pac": ("errors",),
    "good-event": ("errors",),
    "total-three": ("a",),
    "total-three-any-cost": ("a",),
    "total-three-outside": ("a",),
    "pulls-two": ("a",),
    "fedelim0-cheaper": ("a",),
    "linear-in-log": ("a",),
    "pulls-T": ("a",),
    "lower-bound": ("a",),
    "pulls-2T": ("a",),
    "total-3T": ("a",),
    "communication": ("b",),
    "communication-falls": ("b",),
    "periodic-gap": ("c",),
    "almost-best": ("c",),
    "sweet-spot": ("c", "period"),
    "spot-at-100": ("c", "period"),
    "periodic-beats": ("c", "period"),
    "minimum-movielens": ("c", "minimum"),
    "minimum-bernoulli": ("c", "minimum"),
    "minimum-any-period": ("c",),
    "minimum-map": ("minimum",),
    "inverse-square": ("gap",),
    "talk-growth": ("talk",),
    "tight-in-clients": ("clients",),
    "trade-off": ("schemes",),
    "near-best-period": ("period",),
    "base-two": ("base",),
    "radii-delta-pac": ("radii",),
    "radii-saving": ("radii",),
    "radii-tightest": ("radii",),
    "adaptive-beats-fedelim": ("adaptive",),
    "adaptive-minimum": ("adaptive",),
    "theorem-3-improved": ("optimum",),
    "within-8-T*": ("optimum",),
    "mostly-the-radius": ("optimum",),
}
"""Figures of each claim: the ends of their names, which begin with the name of the data set."""
_COLUMNS = {
    "instance": "data",
    "delta": "delta",
    "cost": "C",
    "sigma": "scale",
    "schedule": "schedule",
    "radius": "radius",
    "what": "what",
}


def write_page(path: Path, *content: Any) -> Path:
    """Write the page of what `page_data` takes, and return its path."""
    written = page(page_data(*content), "The paper's experiments and claims", CLAIMS)
    with replacing(path) as file:
        file.write(written.encode())
    return path


def page_data(
    charts: Mapping[str, Chart],
    claims: Sequence[Claim],
    about: Mapping[str, object],
    notes: Sequence[str],
    slips: Sequence[str] = SLIPS,
) -> dict[str, Any]:
    """Collect the content of the page, in types that JSON has.

    ``charts`` are by name, as in `fastfed.paper.panels.charts`. ``about`` describes the run, and
    ``notes`` explain the verdicts.
    """
    figures: list[dict[str, Any]] = [
        {
            "name": printable(name),
            "section": "panels" if name.rpartition("-")[2] in PANELS else "studies",
            "title": printable(drawn.title[0]),
            "note": printable(" ".join(drawn.title[1:])),
            "specification": vega_chart(drawn),
        }
        for name, drawn in charts.items()
    ]
    for claim in claims:
        if claim.key == "minimum-map":
            figures += _maps(claim.cells)
    names = [str(figure["name"]) for figure in figures]
    shown = {claim.key: list(_figures_of(claim, names)) for claim in claims}
    for figure in figures:
        figure["claims"] = [key for key, own in shown.items() if figure["name"] in own]
    return {
        "about": {str(key): printable(str(value)) for key, value in about.items()},
        # the notes are Markdown, with one word in italics
        "notes": [printable(" ".join(note.replace("*", "").split())) for note in notes],
        "figures": figures,
        "slips": list(slips),
        "instances": [printable(name) for name in instances_of([vars(claim) for claim in claims])],
        "verdicts": [[name, *look] for name, look in LOOKS.items()],
        "claims": [_claim(claim, shown[claim.key]) for claim in claims],
    }


def _figures_of(claim: Claim, names: Sequence[str]) -> Iterator[str]:
    """List the figures of a claim's data sets, as far as there are any."""
    instances = dict.fromkeys(figure_stem(printable(cell["instance"])) for cell in claim.cells)
    for end in FIGURES.get(claim.key, ()):
        for instance in instances:
            yield from (
                name
                for name in names
                if name == f"{instance}-{end}" or name.startswith(f"{instance}-{end}-")
            )


def _maps(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Make maps of FedElim's cost over that of the best period, for each data set and scale."""
    found = []
    decided = [cell for cell in cells if cell["verdict"] != DOES_NOT_APPLY]
    for instance, sigma in dict.fromkeys((cell["instance"], cell["sigma"]) for cell in decided):
        some = [cell for cell in decided if (cell["instance"], cell["sigma"]) == (instance, sigma)]
        title = f"{instance}: FedElim's total cost over the best period's, scale {sigma:g}"
        found.append(
            {
                "name": printable(f"{instance}-minimum-{sigma:g}"),
                "section": "studies",
                "title": printable(title),
                "note": "blue: no period is cheaper; ?: undecided",
                "specification": vega_map(title, some),
            }
        )
    return found


def _claim(claim: Claim, figures: Sequence[str]) -> dict[str, Any]:
    keys = [key for key in _COLUMNS if any(key in cell for cell in claim.cells)]
    return {
        **{
            name: printable(getattr(claim, name))
            for name in ("key", "claim", "where", "criterion", "verdict", "sentence")
        },
        "measured": [printable(text) for text in claim.measured],
        "squares": {
            printable(name): {
                "counts": list(found.counts.values()),
                "words": found.words,
                "closest": printable(found.closest),
                "symbol": found.symbol,
            }
            for name in instances_of([vars(claim)])
            if (found := square(vars(claim), name)) is not None
        },
        "figures": list(figures),
        "columns": [*(_COLUMNS[key] for key in keys), "measured", "limit", "adjusted p", "verdict"],
        "cells": [
            [
                *(_text(cell.get(key)) for key in keys),
                printable(cell["text"]),
                _text(cell["limit"]),
                _p_value(cell["adjusted_p"]),
                cell["verdict"] + (f": {printable(cell['reason'])}" if cell.get("reason") else ""),
            ]
            for cell in claim.cells
        ],
    }


def _text(value: Any) -> str:
    if value is None:
        return ""
    return tidy(f"{value:.6g}") if isinstance(value, float) else printable(str(value))


def _p_value(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else tidy(f"{value:.2g}")
