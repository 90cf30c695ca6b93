"""The documentation's figures and numbers from a folder of `fastfed reproduce`: none is typed.

    fastfed reproduce --out paper
    python -m benchmarks.studies.paper paper

Writes docs/figures/contact-sheet.png, true-errors.png and radii.png, the README's sentence on the
radii, and in docs/explanation the verdicts of paper.md, the savings of radii.md and the true errors
of error-probability.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.report import write_between
from fastfed.display.figures import chart_figure, contact_sheet, save
from fastfed.display.series import chart
from fastfed.display.table import Column, Table
from fastfed.paper import true_errors
from fastfed.paper.evidence import COST, PAIRS, PAPER, RADII
from fastfed.paper.experiments import read
from fastfed.text import number

OTHERS = [name for name in RADII if name != PAPER]
ROOT = Path(__file__).resolve().parents[2]
_SHEET_DPI = 100
_DPI = 130  # of the README's figure, which stays small


def savings(rows: list[dict[str, Any]]) -> str:
    """Write the cost with each radius over that with the paper's, as a Markdown table."""
    lines = [
        f"| instance, schedule, δ | trials | {' | '.join(f'`{name}`' for name in OTHERS)} |",
        f"|---|---:|{'---:|' * len(OTHERS)}",
    ]
    names = {"fedelim": "FedElim", "fedelim0": "FedElim0"}
    for instance, schedule, delta in dict.fromkeys(
        (row["instance"], row["schedule"], row["delta"]) for row in rows if row["delta"] == 0.01
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


def saving(rows: list[dict[str, Any]], delta: float = 0.01) -> str:
    """Write the README's sentence: the share of FedElim's cost with the tightest radius."""
    wanted = {"radius": PAIRS, "schedule": "fedelim", "delta": delta}
    parts = [
        f"{100 * row['ratio']:.2f} ± {100 * row['ratio_sem']:.2f} % on {row['instance']}"
        for row in rows
        if all(row[key] == value for key, value in wanted.items())
    ]
    parts[0] = parts[0].replace(" on ", " of the cost with the paper's radius on ")
    trials = min(row["trials"] for row in rows)
    return (
        f"With the radius `{PAIRS}` FedElim's error probability is also at most delta. Its "
        f"total cost is {', '.join(parts[:-1])} and {parts[-1]}. (Ratio and standard error; "
        f"delta = {delta:g}, C = {COST:g}, at least {trials:,} paired trials.)"
    )


def verdicts(content: dict[str, Any]) -> str:
    """Write the claims of a run in Markdown; other pages tell what is not in the paper."""
    own = [one for one in content["claims"] if not one["where"].startswith("not in the paper")]
    heads = {"claim": "claim", "in the paper": "where", "verdict": "sentence"}
    columns = [Column(head, [one[key] for one in own], left=True) for head, key in heads.items()]
    return f"{content['outlook']}\n\n{Table(columns).markdown()}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where `fastfed reproduce` wrote")
    folder = parser.parse_args().folder
    figures = ROOT / "docs" / "figures"
    shutil.copyfile(folder / "contact-sheet.png", figures / "contact-sheet.png")
    errors = pl.read_parquet(folder / true_errors.FILE)
    drawn = [chart_figure(one) for one in true_errors.charts(errors).values()]
    contact_sheet([drawn], figures / "true-errors", _SHEET_DPI)
    rows = read(folder)[0].radii
    chosen = (pl.col("instance") == "synthetic") & (pl.col("schedule") == "fedelim")
    radii = chart(rows.filter(chosen), x="delta", y="total", group="radius", errors="sem")
    save(chart_figure(radii), figures / "radii", ["png"], _DPI)
    tables = json.loads((folder / "tables.json").read_text())
    pages = ROOT / "docs" / "explanation"
    write_between(ROOT / "README.md", "radii", saving(tables["radii"]))
    claims = json.loads((folder / "claims.json").read_text())
    write_between(pages / "paper.md", "claims", verdicts(claims))
    write_between(pages / "radii.md", "savings", savings(tables["radii"]))
    text = true_errors.table(errors).markdown.partition("\n\n")[2]
    write_between(pages / "error-probability.md", "errors", text.strip())


if __name__ == "__main__":
    main()
