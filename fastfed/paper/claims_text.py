"""Claims as Markdown: every verdict, the cells closest to their limits, and the method."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from fastfed.analysis.verdicts import DOES_NOT_APPLY, LEVEL, Claim
from fastfed.paper.errata import SLIPS
from fastfed.paper.markdown import table

METHOD = f"""Schedules are compared trial by trial, on the same rewards, over the trials that both
ended. Where a claim speaks of the best of several schedules, the trials with even numbers choose it
and those with odd numbers judge it. A claim's cells are decided together: among those that are
decided, the expected share of wrong decisions is at most {LEVEL:.0%}, whatever their dependence
(Benjamini and Yekutieli on two-sided p-values). Trials in which two schedules cost the same say
nothing of which is cheaper, so only those that differ are tested (Student, and never surer than
2^-k from k of them). *Not refuted* is said of a claim of probability that too few trials confirm
and nothing speaks against; its power is the probability that so many trials would refute it if
the true rate were twice the limit. ± is one standard error."""

OURS = """What is ours and not the paper's: the grid of deltas (the text of the paper lists none),
the uplink costs beyond 0, 10 and 100, and the number of trials. On MovieLens, counts and means are
those of the data set, but how a cell's ratings spread over the ten values is partly reconstructed,
and that a genre nobody has rated in a country pays 0 there is our choice (data/README.md). Its
Gaussian twin is added to see what the discrete rewards change."""

_BY_VERDICT = {True: "**{:.4f}**", False: "{:.4f}", None: "{:.4f} ?"}


def claims_text(
    claims: Sequence[Claim], trials: dict[str, int], warning: str = "", slips: Sequence[str] = SLIPS
) -> str:
    """Write claims.md.

    ``trials`` is by data set. ``warning`` is about trials that did not end.
    """
    counts = ", ".join(f"{name} {count:,}" for name, count in trials.items())
    notes = [
        f"Trials of each cell: {counts}.",
        *([warning.replace(chr(10), " ")] if warning else []),
        METHOD,
        OURS,
    ]
    lines = ["# The paper's claims", ""]
    for note in notes:
        lines += [" ".join(note.split()), ""]
    rows = [[one.claim, one.where, one.sentence] for one in claims if one.key != "minimum-map"]
    lines.append(table(["claim", "in the paper", "verdict"], "lll", rows))
    for one in claims:
        lines += [
            "",
            f"## {one.key}",
            "",
            one.claim,
            "",
            f"- in the paper: {one.where}",
            f"- criterion: {one.criterion}",
            f"- verdict: **{one.verdict}**. {one.sentence}",
        ]
        if one.doubt is not None:
            lines.append(
                f"- the least certain decided cell has an adjusted p-value of {one.doubt:.2g}"
            )
        lines += [
            "- closest to the limit, or furthest beyond it:",
            *(f"  - {text}" for text in one.measured),
        ]
        if one.key == "minimum-map":
            lines += ["", *_map_text(one)]
    lines += ["", "## Slips in the paper", "", *(f"- {slip}" for slip in slips)]
    return "\n".join(lines) + "\n"


def _map_text(claim: Claim) -> list[str]:
    """Write FedElim's cost over that of the best period, by delta (rows) and C (columns)."""
    lines = [
        "FedElim's mean total cost over that of the best period, in bold where no period "
        "is cheaper, with ? where that is undecided."
    ]
    frame = pl.DataFrame(
        [
            {key: cell[key] for key in ("instance", "sigma", "delta", "cost", "value", "holds")}
            for cell in claim.cells
            if cell["verdict"] != DOES_NOT_APPLY
        ]
    )
    for (instance, sigma), rows in frame.group_by(["instance", "sigma"], maintain_order=True):
        costs = rows["cost"].unique().sort().to_list()
        shown = [
            [
                f"{delta:g}",
                *(
                    _BY_VERDICT[one["holds"]].format(one["value"])
                    for one in some.sort("cost").iter_rows(named=True)
                ),
            ]
            for (delta,), some in rows.group_by(["delta"], maintain_order=True)
        ]
        heads = ["delta", *(f"C = {cost:g}" for cost in costs)]
        written = table(heads, "r" * len(heads), shown)
        lines += ["", f"{instance}, confidence scale {sigma:g}", "", written]
    return lines
