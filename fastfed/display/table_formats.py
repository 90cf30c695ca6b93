"""Tables in other notations: Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastfed.display.tables import Column
from fastfed.text import printable, short

if TYPE_CHECKING:
    import polars as pl

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "…": r"\dots{}",
    "<": r"$<$",
    ">": r"$>$",
    **{sign: f"\\{sign}" for sign in "&%$#_"},
}


def markdown(lines: Sequence[str], columns: Sequence[Column]) -> str:
    """Write lines of text and a table in Markdown."""

    def row(cells: Sequence[str]) -> str:
        escaped = (re.sub(r"([|\\])", r"\\\1", cell) for cell in cells)
        return f"| {' | '.join(escaped)} |"

    table = [
        row([column.head for column in columns]),
        row(["---" if column.left else "---:" for column in columns]),
        *(row(cells) for cells in zip(*(column.cells for column in columns), strict=True)),
    ]
    return "\n".join([*lines, "", *table] if lines else table)


def latex(lines: Sequence[str], columns: Sequence[Column]) -> str:
    """Write a table in LaTeX, for the package booktabs; lines of text stand above as comments."""

    def row(cells: Sequence[str]) -> str:
        escaped = ("".join(_LATEX.get(sign, sign) for sign in cell) for cell in cells)
        return f"{' & '.join(escaped)} \\\\"

    return "\n".join(
        [
            *(f"% {line}" for text in lines for line in text.splitlines()),
            f"\\begin{{tabular}}{{{''.join('l' if one.left else 'r' for one in columns)}}}",
            r"\toprule",
            row([column.head for column in columns]),
            r"\midrule",
            *(row(cells) for cells in zip(*(column.cells for column in columns), strict=True)),
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def frame_columns(frame: pl.DataFrame) -> list[Column]:
    """Show every column of a frame, numbers in at most nine characters."""
    return [
        Column(
            name,
            [_cell(value) for value in frame[name].to_list()],
            left=not frame[name].dtype.is_numeric(),
        )
        for name in frame.columns
    ]


FORMATS: Mapping[str, Any] = {"markdown": markdown, "latex": latex}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(printable(str(one)) for one in value)
    return short(value) if isinstance(value, float) else printable(str(value))
