"""The documentation's figures and numbers from a folder of `fastfed reproduce`: none is typed.

    fastfed reproduce --out paper
    python -m benchmarks.studies.paper paper

Writes docs/figures/contact-sheet.png, true-errors.png and radii.png, the README's sentence on the
radii, the table of savings in docs/explanation/radii.md and that of true errors in
docs/explanation/error-probability.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from benchmarks.report import write_between
from fastfed.display.figures import chart_figure, save
from fastfed.paper.experiments import read
from fastfed.paper.panels import radii_of_fedelim
from fastfed.paper.radii import OTHERS, in_a_sentence
from fastfed.text import number

ROOT = Path(__file__).resolve().parents[2]
_DPI = 130  # of the README's figure, which stays small


def savings(rows: list[dict[str, Any]]) -> str:
    """Write the cost with each radius over that with the paper's, as a Markdown table."""
    lines = [
        f"| instance, schedule, δ | trials | {' | '.join(f'`{name}`' for name in OTHERS)} |",
        f"|---|---:|{'---:|' * len(OTHERS)}",
    ]
    names = {"fedelim": "FedElim", "fedelim0": "FedElim0"}
    for instance, schedule, delta in dict.fromkeys(
        (row["instance"], row["schedule"], row["delta"]) for row in rows
    ):
        some = {
            row["radius"]: row
            for row in rows
            if (row["instance"], row["schedule"], row["delta"]) == (instance, schedule, delta)
        }
        shown = (number(some[name]["ratio"], some[name]["ratio_sem"]) for name in OTHERS)
        lines.append(
            f"| {instance}, {names[schedule]}, {delta:g} | "
            f"{min(row['trials'] for row in some.values()):,} | {' | '.join(shown)} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where `fastfed reproduce` wrote")
    folder = parser.parse_args().folder
    figures = ROOT / "docs" / "figures"
    for name in ("contact-sheet.png", "true-errors.png"):
        if (folder / name).exists():
            shutil.copyfile(folder / name, figures / name)
    rows = read(folder)[0].radii
    synthetic = rows.filter(rows["instance"] == "synthetic")
    save(chart_figure(radii_of_fedelim(synthetic)), figures / "radii", ["png"], _DPI)
    table = json.loads((folder / "radii.json").read_text())
    write_between(ROOT / "README.md", "radii", in_a_sentence(table))
    write_between(ROOT / "docs" / "explanation" / "radii.md", "savings", savings(table))
    _, _, errors = (folder / "true-errors.md").read_text().partition("\n\n")
    write_between(ROOT / "docs" / "explanation" / "error-probability.md", "errors", errors.strip())


if __name__ == "__main__":
    main()
