"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastfed.text import number

WORDS = {"fedelim": "FedElim", "fedelim0": "FedElim0"}
"""Names of the paper's algorithms, as it writes them."""


def table_row(cells: Sequence[str]) -> str:
    """Format a row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(heads: Sequence[str], sides: str, rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table; ``sides`` has an l (left) or an r (right) for each column."""
    lines = [heads, ["---:" if side == "r" else "---" for side in sides], *rows]
    return "\n".join(map(table_row, lines))


def document(title: str, text: str, body: str) -> str:
    """Write a page of Markdown: a title, some words and a table."""
    return f"# {title}\n\n{text}\n\n{body}\n"


def measured(value: float | None, sem: float | None, missing: str = "none ended") -> str:
    """Write a mean with its standard error, or ``missing`` in place of None."""
    return missing if value is None else number(value, sem)
