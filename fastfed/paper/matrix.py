"""Matrix of verdicts: a row for each claim, a column for each instance, a square for each cell.

A square is cut into stripes, one for each verdict, as wide as its share of the cells. So one look
shows where a claim holds, where it fails and where trials are missing.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from fastfed.analysis.verdict_words import (
    DOES_NOT_APPLY,
    HOLDS,
    NOT_ENOUGH_TRIALS,
    NOT_REFUTED,
    VERDICTS,
    VIOLATED,
)
from fastfed.analysis.verdicts import Claim
from fastfed.display.figures import save, style


class Look(NamedTuple):
    """The words, the colour and the sign of a verdict in the matrix."""

    words: str
    colour: str
    sign: str


LOOKS = {
    HOLDS: Look("hold", "#009e73", "✓"),
    NOT_REFUTED: Look("not refuted", "#9bd6c3", "(✓)"),
    NOT_ENOUGH_TRIALS: Look("undecided", "#e8c558", "?"),
    VIOLATED: Look("do not hold", "#d55e00", "✗"),
    DOES_NOT_APPLY: Look("do not apply", "#d9d9d9", "–"),
}
"""Looks of the cells of a square, in the order of the stripes."""
SHORT = {name: look.words for name, look in LOOKS.items()}
SYMBOLS = {name: look.sign for name, look in LOOKS.items()}
_DPI = 110
_WRAP = 92  # characters of a sentence beside the squares


@dataclass(frozen=True)
class Square:
    """The cells of one claim on one instance."""

    counts: dict[str, int]
    """Cells of each verdict, in the order of `SHORT`."""
    closest: str
    """The cell that comes closest to its limit, with its numbers."""

    @property
    def words(self) -> str:
        """Say how many cells have which verdict."""
        total = sum(self.counts.values())
        parts = [f"{count:,} {SHORT[name]}" for name, count in self.counts.items() if count]
        return f"{total:,} cell{'s' * (total > 1)}: {', '.join(parts)}"

    @property
    def symbol(self) -> str:
        """Return one sign, or two where some cells hold and others do not."""
        return "/".join(SYMBOLS[name] for name, count in self.counts.items() if count)


def instances_of(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the instances of all claims (the fields of each), those of the most claims first."""
    named = (dict.fromkeys(cell["instance"] for cell in claim["cells"]) for claim in claims)
    return [name for name, _ in Counter(chain.from_iterable(named)).most_common()]


def square(claim: Mapping[str, Any], instance: str) -> Square | None:
    """Make the matrix's entry for the fields of a claim and an instance.

    It is None if nothing was judged there.
    """
    cells = [cell for cell in claim["cells"] if cell["instance"] == instance]
    if not cells:
        return None
    counts = {name: sum(cell["verdict"] == name for cell in cells) for name in LOOKS}
    assert set(LOOKS) == set(VERDICTS)
    closest = next((text for text in claim["measured"] if text.startswith(instance)), "")
    return Square(counts, closest)


def write_matrix(claims: Sequence[Claim], stem: Path) -> list[Path]:
    """Write the matrix as a PNG, with the sentence of each claim beside its squares."""
    names = instances_of([vars(claim) for claim in claims])
    texts = [textwrap.wrap(claim.sentence, _WRAP) for claim in claims]
    heights = [max(1.0, 0.62 * len(lines)) for lines in texts]
    with style() as plt:
        figure = plt.figure(figsize=(2.2 + 0.42 * len(names) + 5.4, 0.23 * sum(heights) + 1.3))
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set_axis_off()
        width, top = figure.get_size_inches()
        ax.set_xlim(0, width)
        ax.set_ylim(0, top)
        left, y = 1.75, top - 1.0
        for column, name in enumerate(names):
            x = left + 0.42 * column + 0.15
            ax.text(x, y + 0.18, name, rotation=40, fontsize=6.5, parse_math=False)
        for claim, lines, height in zip(claims, texts, heights, strict=True):
            y -= 0.23 * height
            middle = y + 0.115 * height
            ax.text(left - 0.08, middle, claim.key, fontsize=6.5, ha="right", va="center")
            for column, name in enumerate(names):
                found = square(vars(claim), name)
                if found is not None:
                    _draw_square(plt, ax, left + 0.42 * column + 0.04, middle - 0.085, found)
            ax.text(
                left + 0.42 * len(names) + 0.08,
                middle,
                "\n".join(lines),
                fontsize=6.2,
                va="center",
                linespacing=1.05,
                parse_math=False,
            )
        _draw_legend(plt, ax, 0.1, 0.1)
        return save(figure, stem, ["png"], _DPI)


def _draw_square(plt: Any, ax: Any, x: float, y: float, found: Square) -> None:
    total, at, size = sum(found.counts.values()), 0.0, (0.34, 0.17)
    for name, count in found.counts.items():
        if count:
            share = count / total
            place, colour = (x + size[0] * at, y), LOOKS[name].colour
            ax.add_patch(plt.Rectangle(place, size[0] * share, size[1], color=colour, lw=0))
            at += share
    ax.add_patch(plt.Rectangle((x, y), *size, fill=False, edgecolor="#555555", linewidth=0.4))


def _draw_legend(plt: Any, ax: Any, x: float, y: float) -> None:
    for look in LOOKS.values():
        ax.add_patch(plt.Rectangle((x, y), 0.17, 0.13, color=look.colour, lw=0))
        ax.text(x + 0.22, y + 0.06, look.words, fontsize=6.5, va="center")
        x += 1.0
