"""The table of verdicts on the page about the paper, from what `fastfed reproduce` wrote.

    fastfed reproduce --out paper
    python docs/hooks/claims.py paper

No verdict is typed: they stand between two markers on the page.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "explanation" / "paper.md"
BEGIN, END = "<!-- claims -->", "<!-- /claims -->"


def table(content: dict[str, Any]) -> str:
    """Write the claims of a run in Markdown: a matrix of verdicts, and a sentence a claim."""
    from fastfed.paper.matrix import SHORT, SYMBOLS, instances_of, square

    claims = content["claims"]
    names = instances_of(claims)
    trials = ", ".join(f"{count:,} of {name}" for name, count in content["trials"].items())
    signs = ", ".join(f"{SYMBOLS[name]} cells {words}" for name, words in SHORT.items())
    lines = [
        f"Trials of each cell: {trials}. Signs: {signs}.",
        "",
        f"| claim | {' | '.join(names)} |",
        f"|---|{':---:|' * len(names)}",
    ]
    for one in claims:
        squares = [square(one, name) for name in names]
        shown = ("" if found is None else found.symbol for found in squares)
        lines.append(f"| `{one['key']}` | {' | '.join(shown)} |")
    lines += ["", "| claim | in the paper | verdict |", "|---|---|---|"]
    for one in claims:
        cells = (one[name].replace("|", "\\|") for name in ("claim", "where", "sentence"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(folder: str) -> None:
    """Write the verdicts of a folder of `fastfed reproduce` between the markers of the page."""
    picture = Path(folder) / "claims.png"
    if picture.exists():
        shutil.copyfile(picture, PAGE.parents[1] / "figures" / "claims.png")
    content = json.loads((Path(folder) / "claims.json").read_text(encoding="utf-8"))
    before, found, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise SystemExit(f"{PAGE}: no {BEGIN} ... {END} in it")
    PAGE.write_text(f"{before}{BEGIN}\n{table(content)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
