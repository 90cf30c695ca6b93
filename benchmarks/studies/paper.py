"""The documentation's figures and numbers from a folder of `fastfed reproduce`: none is typed.

    fastfed reproduce --out paper
    python -m benchmarks.studies.paper paper

Writes docs/figures/contact-sheet.png, true-errors.png, radii.png and optimum.png, the README's
sentence on the radii, and tables and verdicts on pages of docs/explanation.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.report import table, write_between
from fastfed.display.figures import chart_figure, contact_sheet, save
from fastfed.display.table import Column, Table
from fastfed.paper import panels, true_errors
from fastfed.paper.evidence import COST, PAIRS, PAPER, RADII
from fastfed.paper.experiments import read
from fastfed.text import number

OTHERS = [name for name in RADII if name != PAPER]
ROOT = Path(__file__).resolve().parents[2]
_SHEET_DPI = 100
_DPI = 130
OF_OPTIMUM = (
    *("synthetic | 0.01", "synthetic | 1e-12", "bernoulli | 0.01", "random:5,8,1 | 0.01"),
    *("gaussian:movielens | 0.01", "gaussian:movielens | 1e-12"),
)
"""Rows of the table of factors."""


def savings(rows: list[dict[str, Any]]) -> str:
    """Write the cost with each radius over that with the paper's, as a Markdown table."""
    groups: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        if row["delta"] == 0.01:
            groups.setdefault(f"{row['instance']}, {row['schedule']}", {})[row["radius"]] = row
    lines = [
        [
            name,
            f"{some[PAPER]['trials']:,}",
            *(number(some[one]["ratio"], some[one]["ratio_sem"]) for one in OTHERS),
        ]
        for name, some in groups.items()
    ]
    heads = [f"`{name}`" for name in OTHERS]
    return table(["instance, schedule; delta 0.01", "trials", *heads], lines)


def saving(rows: list[dict[str, Any]], delta: float = 0.01) -> str:
    """Write the README's sentence: the share of FedElim's cost with the tightest radius."""
    wanted = {"radius": PAIRS, "schedule": "fedelim", "delta": delta}
    parts = [
        f"{100 * row['ratio']:.2f} ± {100 * row['ratio_sem']:.2f} % on {row['instance']}"
        for row in rows
        if all(row[key] == value for key, value in wanted.items())
    ]
    trials = min(row["trials"] for row in rows)
    return (
        f"With the radius `{PAIRS}` FedElim's error probability is also at most delta. Of its "
        f"total cost with the paper's radius there remain {', '.join(parts[:-1])} and {parts[-1]}. "
        f"(Ratio and standard error; delta = {delta:g}, C = {COST:g}, {trials:,} paired trials.)"
    )


def verdicts(content: dict[str, Any]) -> str:
    """Write the claims of a run in Markdown; other pages tell what is not in the paper."""
    own = [one for one in content["claims"] if not one["where"].startswith("not in the paper")]
    heads = {"claim": "claim", "in the paper": "where", "verdict": "sentence"}
    columns = [Column(head, [one[key] for one in own], left=True) for head, key in heads.items()]
    return f"{content['outlook']}\n\n{Table(columns).markdown()}"


def part(tables: str, title: str, *rows: str) -> str:
    """Return the rows of a table of tables.md that begin so, or else its text and all rows."""
    text, body = tables.split(f"## {title}\n\n")[1].split("\n\n## ")[0].strip().split("\n\n")
    starts = tuple(f"| {one} " for one in rows)
    kept = [line for line in body.splitlines() if line.startswith(starts)]
    return "\n".join([*body.splitlines()[:2], *kept]) if rows else f"{text}\n\n{body}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where `fastfed reproduce` wrote")
    folder = parser.parse_args().folder
    figures, pages = ROOT / "docs" / "figures", ROOT / "docs" / "explanation"
    shutil.copyfile(folder / "contact-sheet.png", figures / "contact-sheet.png")
    errors = true_errors.charts(pl.read_parquet(folder / true_errors.FILE)).values()
    contact_sheet([[chart_figure(one) for one in errors]], figures / "true-errors", _SHEET_DPI)
    every = panels.charts(*read(folder)[1:])
    for name in ("radii", "optimum"):
        save(chart_figure(every[f"synthetic-{name}"]), figures / name, ["png"], _DPI)
    radii = json.loads((folder / "tables.json").read_text())["radii"]
    tables = (folder / "tables.md").read_text()
    factors = part(tables, "Pulls over the least pulls of any algorithm", *OF_OPTIMUM)
    shown = part(tables, "All algorithms side by side", "synthetic", "bernoulli")
    write_between(ROOT / "README.md", "radii", saving(radii))
    claims = json.loads((folder / "claims.json").read_text())
    write_between(pages / "paper.md", "claims", verdicts(claims))
    write_between(pages / "radii.md", "savings", savings(radii))
    write_between(pages / "optimum.md", "factors", factors)
    write_between(pages / "algorithms.md", "algorithms", shown)
    write_between(pages / "error-probability.md", "errors", part(tables, "True errors of FedElim"))


if __name__ == "__main__":
    main()
