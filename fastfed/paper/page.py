"""Verdicts as claims.md and as one page: panels, studies, and every cell behind a verdict.

On the page each claim links to its figures and to its cells, each figure to the claims that are
about it. The figures are the charts of `fastfed.paper.panels`; the page is made by
`fastfed.display.report` and needs no network.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from fastfed.analysis.intervals import mean_tails
from fastfed.analysis.verdict_words import NOT_ENOUGH_TRIALS, NOT_REFUTED, UNDECIDED
from fastfed.analysis.verdicts import DOES_NOT_APPLY, HOLDS, LEVEL, VIOLATED, Cell, Claim
from fastfed.display.figures import chart_figure, svg
from fastfed.display.report.page import CLAIMS, page
from fastfed.display.series import Chart
from fastfed.display.table import Column, Table
from fastfed.files import replacing
from fastfed.paper.panels import PANELS, figure_stem
from fastfed.paper.rules import claims as all_claims
from fastfed.text import printable, tidy


class Look(NamedTuple):
    """The words, the colour and the sign of a verdict in the matrix."""

    words: str
    colour: str
    sign: str


LOOKS = {
    HOLDS: Look("hold", "#009e73", "✓"),
    NOT_REFUTED: Look("not refuted", "#9bd6c3", "○"),
    NOT_ENOUGH_TRIALS: Look("undecided", "#e8c558", "?"),
    VIOLATED: Look("do not hold", "#d55e00", "✗"),
    DOES_NOT_APPLY: Look("do not apply", "#d9d9d9", "–"),
}
"""Looks of the cells of a square, in the order of the stripes."""
_COLUMNS = {"instance": "data", "delta": "delta", "cost": "C", "sigma": "scale"} | {
    name: name for name in ("schedule", "radius", "what")
}
_TIMES = [2 ** (power / 2) for power in range(1, 41)]  # as many trials, tried in this order


def texts(name: str) -> list[str]:
    """Read the paragraphs, or the items of a list, of a Markdown file of this package."""
    content = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return [line.removeprefix("- ") for line in content.splitlines() if line]


def outlook(claims: Sequence[Claim], trials: int) -> str:
    """Say which claims have no verdict yet, and how many trials would decide half of their cells.

    A comparison is tested as if its trials had been repeated. Elsewhere the logarithm of a p-value
    goes about as the number of trials, and the present one tells when it is small enough.
    """
    parts, others = [], 0
    for one in claims:
        rest = [cell for cell in one.cells if cell["verdict"] in (NOT_ENOUGH_TRIALS, NOT_REFUTED)]
        if one.verdict not in (UNDECIDED, NOT_REFUTED):
            others += len(rest)
            continue
        needed = sorted(_trials_needed(cell, trials, len(one.cells)) for cell in rest)
        half = needed[(len(rest) - 1) // 2]
        words = f"half of its {len(rest)} open cells"
        about = f"about {float(f'{half:.1g}'):,.0f} trials for {words}"
        parts.append(f"{one.key} ({about if half < 1e9 else f'no sign of it yet in {words}'})")
    said = f"{len(claims) - len(parts)} of {len(claims)} claims have a verdict from {trials:,} "
    said += "trials of each cell."
    said += f" More trials would decide: {', '.join(parts)}." if parts else ""
    more = f" They would also decide some of {others:,} open cells of the other claims."
    return said + (more if others else "")


def _trials_needed(cell: Cell, trials: int, cells: int) -> float:
    """Estimate the trials that decide a cell, if ``cells`` cells are decided with it."""
    wanted = LEVEL / sum(1 / rank for rank in range(1, cells + 1)) / 2
    if "excess" in cell:
        count, mean, scatter, *limits = cell["excess"]
        for times in _TIMES:
            if min(mean_tails(round(times * count), mean, times * scatter, *limits)) <= wanted:
                return trials * times
        return math.inf
    single = float(min(cell["p_below"], cell["p_above"]))
    if not 0 < single < 0.5:
        return math.inf
    return max(trials * math.log(wanted) / math.log(single), trials + 1.0)


# ---- claims.md -----------------------------------------------------------------------------------


def claims_text(claims: Sequence[Claim], notes: Sequence[str], slips: Sequence[str]) -> str:
    """Return the text of claims.md, which unlike the page has no matrix of verdicts."""
    keys, sentences = [one.key for one in claims], [one.sentence for one in claims]
    short = Table([Column("claim", keys, left=True), Column("verdict", sentences, left=True)])
    parts = ["# The paper's claims", *notes, short.markdown()]
    for one in claims:
        lines = [
            f"- in the paper: {one.where}",
            f"- criterion: {one.criterion}",
            f"- verdict: **{one.verdict}**. {one.sentence}",
            "- closest to the limit, or furthest beyond it:",
            *(f"  - {text}" for text in one.measured),
        ]
        if one.doubt is not None:
            least = f"- the least certain decided cell has an adjusted p-value of {one.doubt:.2g}"
            lines.insert(3, least)
        parts += [f"## {one.key}", one.claim, "\n".join(lines)]
    parts += ["## Slips in the paper", "\n".join(f"- {slip}" for slip in slips)]
    return "\n\n".join(parts) + "\n"


# ---- the page ------------------------------------------------------------------------------------


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
    slips: Sequence[str] = (),
) -> Any:
    """Collect the content of the page, in types that JSON has.

    ``charts`` are by name, as in `fastfed.paper.panels.charts`. ``about`` describes the run, and
    ``notes`` explain the verdicts; the first one stands at the top.
    """
    figures: list[dict[str, Any]] = [
        {
            "name": name,
            "section": "panels" if name.rpartition("-")[2] in PANELS else "studies",
            "title": "; ".join(drawn.title),
        }
        for name, drawn in charts.items()
    ]
    names = list(charts)
    shown = {claim.key: list(_figures_of(claim, names)) for claim in claims}
    for figure in figures:
        figure["claims"] = [key for key, own in shown.items() if figure["name"] in own]
    first, *rest = (note.replace("*", "").replace("`", "") for note in notes)
    listed = [_claim(claim, shown[claim.key]) for claim in claims]
    instances = Counter(name for one in listed for name in one["squares"])
    content = _printable(
        {
            "about": about,
            "outlook": first,
            "notes": rest,
            "figures": figures,
            "slips": slips,
            "instances": [name for name, _ in instances.most_common()],
            "verdicts": [[name, *look] for name, look in LOOKS.items()],
            "claims": listed,
        }
    )
    return content | {"pictures": [svg(chart_figure(drawn)) for drawn in charts.values()]}


def _printable(content: Any) -> Any:
    """Escape every text of the page, because names come from files of other people."""
    if isinstance(content, str):
        return printable(content)
    if isinstance(content, Mapping):
        return {printable(key): _printable(value) for key, value in content.items()}
    return [_printable(one) for one in content] if isinstance(content, list | tuple) else content


def _figures_of(claim: Claim, names: Sequence[str]) -> Iterator[str]:
    """List the figures of a claim's data sets, as far as there are any."""
    instances = dict.fromkeys(figure_stem(cell["instance"]) for cell in claim.cells)
    row = next((row for row in all_claims() if row["key"] == claim.key), {})
    for end in row.get("figures", ()):
        for instance in instances:
            if (name := f"{instance}-{end}") in names:
                yield name


def _claim(claim: Claim, figures: Sequence[str]) -> dict[str, Any]:
    keys = [key for key in _COLUMNS if any(key in cell for cell in claim.cells)]
    told = ("key", "claim", "where", "criterion", "verdict", "sentence", "measured")
    return {
        **{name: getattr(claim, name) for name in told},
        "squares": _squares(claim),
        "figures": figures,
        "columns": [*(_COLUMNS[key] for key in keys), "measured", "limit", "adjusted p", "verdict"],
        "cells": [
            [
                *(_text(cell.get(key)) for key in (*keys, "text", "limit")),
                _text(cell["adjusted_p"], ".2g"),
                ": ".join(filter(None, [cell["verdict"], cell.get("reason")])),
            ]
            for cell in claim.cells
        ],
    }


def _squares(claim: Claim) -> dict[str, Any]:
    """Make the entries of the matrix for a claim: one for each instance."""
    found = {}
    names = dict.fromkeys(cell["instance"] for cell in claim.cells)
    for name, closest in zip(names, claim.measured, strict=True):
        verdicts = [cell["verdict"] for cell in claim.cells if cell["instance"] == name]
        counts = {LOOKS[verdict]: verdicts.count(verdict) for verdict in LOOKS}
        seen = {look: count for look, count in counts.items() if count}
        parts = ", ".join(f"{count:,} {look.words}" for look, count in seen.items())
        found[name] = {
            "counts": list(counts.values()),
            "words": f"{len(verdicts):,} cell{'s' * (len(verdicts) > 1)}: {parts}",
            "closest": closest,
            "symbol": "".join(look.sign for look in seen),
        }
    return found


def _text(value: Any, form: str = ".6g") -> str:
    if isinstance(value, float):
        return tidy(format(value, form)) if math.isfinite(value) else ""
    return "" if value is None else str(value)
