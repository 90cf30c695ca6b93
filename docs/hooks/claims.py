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
_MAP = "minimum-map"  # a table of its own in claims.md


def table(content: dict[str, Any]) -> str:
    """The claims of a run with their verdicts, in Markdown."""
    trials = ", ".join(f"{count:,} of {name}" for name, count in content["trials"].items())
    lines = [
        f"Trials of each cell: {trials}.",
        "",
        "| claim | in the paper | verdict |",
        "|---|---|---|",
    ]
    for one in content["claims"]:
        if one["key"] != _MAP:
            cells = (one[name].replace("|", "\\|") for name in ("claim", "where", "verdict"))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(folder: str) -> None:
    content = json.loads((Path(folder) / "claims.json").read_text(encoding="utf-8"))
    before, found, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise SystemExit(f"{PAGE}: no {BEGIN} ... {END} in it")
    PAGE.write_text(f"{before}{BEGIN}\n{table(content)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
