"""The table of verdicts on the page about the paper, from what `fastfed reproduce` wrote.

    fastfed reproduce --out paper
    python docs/hooks/claims.py paper

No verdict is typed: they stand between two markers on the page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "explanation" / "paper.md"
BEGIN, END = "<!-- claims -->", "<!-- /claims -->"


def table(content: dict[str, Any]) -> str:
    """Write the claims of a run in Markdown: a sentence a claim; the report has the matrix."""
    from fastfed.paper.page import matrix_text

    _, head, sentences = matrix_text(content["claims"]).partition("| claim | in the paper")
    lines = f"{head}{sentences}".splitlines()  # other pages tell what is not in the paper
    kept = "\n".join(line for line in lines if "| not in the paper" not in line)
    return f"{content['outlook']}\n\n{kept}"


def main(folder: str) -> None:
    """Write the verdicts of a folder of `fastfed reproduce` between the markers of the page."""
    content = json.loads((Path(folder) / "claims.json").read_text(encoding="utf-8"))
    before, found, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise SystemExit(f"{PAGE}: no {BEGIN} ... {END} in it")
    PAGE.write_text(f"{before}{BEGIN}\n{table(content)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
