"""Cost of the confidence radius: a study that the paper does not have.

FedElim and FedElim0 run with each of the built-in radii on the three data sets, over several
deltas. All radii meet the same rewards, because the seed alone decides the walks. So costs are
compared trial by trial, and the standard errors are those of paired trials. The cost is that of the
paper's panels (a): pulls plus C = 10 for each uplink for FedElim, and pulls alone for FedElim0.

The rows of the paper's own radius are those of the panels. The folders ``radii/NAME`` have the four
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fastfed.analysis.moments import PULLS, Moments, Prices
from fastfed.analysis.trials import Trials, collect, samples
from fastfed.analysis.verdicts import Cell, comparison
from fastfed.paper.markdown import WORDS, document, measured, table

COST = 10.0
PAPER, TIGHTEST = "paper", "mixture-pairs"
OTHERS = ("stitched", "mixture", "stitched-pairs", TIGHTEST)
NAMES = (PAPER, *OTHERS)
DELTAS = (0.1, 0.01, 1e-3)
"""Some of the panels': a study with all of theirs would cost more than the panels themselves."""
SCHEDULES = {"fedelim": Prices.total(COST), "fedelim0": PULLS}
"""What the cost of each is."""


@dataclass(frozen=True, eq=False)
class RadiusPlace:
    """The trials of one schedule under every radius, on the same rewards."""

    instance: str
    delta: float
    schedule: str
    moments: Moments
    """Its names are those of the radii; each is paired with each."""

    @property
    def head(self) -> Cell:
        return {"instance": self.instance, "delta": self.delta, "schedule": self.schedule}

    @property
    def prices(self) -> Prices:
        return SCHEDULES[self.schedule]

    def over(self, one: str, other: str) -> Cell:
        """Compare the mean costs with two radii; the ratio of the costs should be below 1."""
        return {
            **self.head,
            "radius": one,
            **comparison(self.moments, (one, other), (self.prices, self.prices), self.delta),
        }


def radius_places(panels: Trials, others: Trials) -> list[RadiusPlace]:
    """Make the places of one data set, from two sweeps.

    One sweep has the paper's radius, the other sweep has the other radii.
    """
    cells: dict[float, dict[str, tuple[Trials, Any]]] = {}
    for trials in (others, panels):
        for cell in trials.held():
            if trials is others or (cell.delta in cells and cell.radius == PAPER):
                # cells stand in the spec's order, the paper's scale first: the first one counts
                cells.setdefault(cell.delta, {}).setdefault(cell.radius, (trials, cell))
    found = []
    for delta, by_radius in cells.items():
        for schedule in SCHEDULES:
            moments = Moments(NAMES, NAMES)
            batch = {
                radius: samples(trials.batches(cell, [schedule]), schedule)
                for radius, (trials, cell) in by_radius.items()
            }
            collect([batch], NAMES, moments)
            instance = next(iter(by_radius.values()))[1].instance
            found.append(RadiusPlace(instance, delta, schedule, moments))
    return found


# ---- table -------------------------------------------------------------------------------------


def radii_table(places: Sequence[RadiusPlace]) -> list[dict[str, Any]]:
    """Tabulate the study: a row for each data set, delta, schedule and radius."""
    rows = []
    for place in places:
        for radius in NAMES:
            moments, prices = place.moments, place.prices
            pair = moments.pair(radius, PAPER, prices)
            rows.append(
                {
                    **place.head,
                    "radius": radius,
                    "trials": moments.trials(radius),
                    "ended": moments.ended(radius),
                    "wrong": moments.errors(radius)
                    - moments.trials(radius)
                    + moments.ended(radius),
                    "cost_mean": moments.mean(radius, prices),
                    "cost_sem": moments.sem(radius, prices),
                    "ratio": pair.ratio,
                    "ratio_sem": pair.ratio_sem,
                }
            )
    return rows


def radii_text(found: Sequence[dict[str, Any]]) -> str:
    """Write the study of radii as Markdown."""
    rows = []
    for row in found:
        paper = row["radius"] == PAPER
        rows.append(
            [
                row["instance"],
                f"{row['delta']:g}",
                WORDS[row["schedule"]],
                row["radius"],
                f"{row['trials']:,}",
                measured(row["cost_mean"], row["cost_sem"]),
                "1" if paper else measured(row["ratio"], row["ratio_sem"], "1"),
                f"{row['wrong']:,}",
            ]
        )
    head = ["data", "delta", "schedule", "radius", "trials", "mean cost", "ratio to the paper's"]
    return document(
        "What the confidence radius costs",
        f"{in_a_sentence(found)}\n\n"
        f"Cost: for FedElim pulls + {COST:g} x uplinks, for FedElim0 pulls alone. The ratio "
        "is to the paper's radius on the same trials, ± its standard error from the paired "
        "trials. Wrong: trials that ended with a wrong answer.",
        table([*head, "wrong"], "lrllrrrr", rows),
    )


def in_a_sentence(table: Sequence[dict[str, Any]], delta: float = 0.01) -> str:
    """Write a sentence for the README: the share of FedElim's cost with the tightest radius."""
    parts = [
        f"{100 * row['ratio']:.2f} ± {100 * row['ratio_sem']:.2f} % on {row['instance']}"
        for row in table
        if row["radius"] == TIGHTEST
        and row["schedule"] == "fedelim"
        and row["delta"] == delta
        and row["ratio"] is not None
        and row["ratio_sem"] is not None
    ]
    if not parts:
        return "Too few trials to say what a radius saves."
    parts[0] = parts[0].replace(" on ", " of the cost with the paper's radius on ")
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    trials = min(row["trials"] for row in table)
    return (
        f"With the radius `{TIGHTEST}` FedElim's error probability is also at most delta. Its "
        f"total cost is {listed}. (Ratio and standard error; delta = {delta:g}, C = {COST:g}, at "
        f"least {trials:,} paired trials.)"
    )


def radii_frame(panels: pl.DataFrame, others: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Join the summary rows of all data sets, from which the figures of the study are drawn."""
    if not others:
        return pl.DataFrame()
    study = pl.concat(others)
    own = panels.filter(
        pl.col("delta").is_in(study["delta"].unique().to_list()),
        pl.col("instance").is_in(study["instance"].unique().to_list()),
    )
    chosen = ((pl.col("schedule") == "fedelim") & (pl.col("cost") == COST)) | (
        (pl.col("schedule") == "fedelim0") & (pl.col("cost") == 0.0)
    )
    return pl.concat([own, study.select(own.columns)]).filter(chosen)
