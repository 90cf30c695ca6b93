"""What the confidence radius costs: a study of our own, which the paper does not have.

FedElim and FedElim0 run with each of the built-in radii on the three data sets, over several
deltas. All radii meet the same rewards (the seed decides the walks, and a radius only decides when
they are looked at), so costs are compared trial by trial, and the standard errors are those of
paired trials. The cost is the one of the paper's panels (a): for FedElim pulls plus C = 10 for
each uplink, for FedElim0 its pulls alone.

The rows of the paper's own radius are those of the panels; the folders ``radii/NAME`` have the
four others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fastfed.paper.markdown import table_row
from fastfed.radius import NAMES
from fastfed.statistics.moments import COLUMNS, PULLS, Moments, Prices, Trials
from fastfed.statistics.numbers import number
from fastfed.statistics.verdicts import Cell, Claim, conclude, error_share, ratio
from fastfed.sweeps.store import Store

COST = 10.0
PAPER, OTHERS, TIGHTEST = NAMES[0], NAMES[1:], "mixture-pairs"
DELTAS = (0.1, 0.01, 1e-3)
"""Some of the panels': a study with all of theirs would cost more than the panels themselves."""
SCHEDULES = {"fedelim": Prices.total(COST), "fedelim0": PULLS}
"""What the cost of each is."""
_NAMES = {"fedelim": "FedElim", "fedelim0": "FedElim0"}


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
        """The mean cost with one radius over that with another, which should be below 1."""
        return {
            **self.head,
            "radius": one,
            **ratio(self.moments.pair(one, other, self.prices), 1.0),
        }


def radius_places(panels: Path, others: Path) -> list[RadiusPlace]:
    """The places of one data set: the paper's radius from one folder, the others from another."""
    cells: dict[float, dict[str, tuple[Store, Any]]] = {}
    for folder in (others, panels):
        store = Store(folder)
        for cell in store.held():
            if folder == others or (cell.delta in cells and cell.radius == PAPER):
                # cells stand in the spec's order, the paper's scale first: the first one counts
                cells.setdefault(cell.delta, {}).setdefault(cell.radius, (store, cell))
    found = []
    for delta, by_radius in cells.items():
        for schedule in SCHEDULES:
            batch = {
                radius: store.samples(cell, schedule) for radius, (store, cell) in by_radius.items()
            }
            moments = Moments(NAMES, NAMES)
            moments.add(
                Trials.of(
                    {
                        name: {column: some[column] for column in COLUMNS}
                        for name, some in batch.items()
                    },
                    NAMES,
                )
            )
            instance = next(iter(by_radius.values()))[1].instance
            found.append(RadiusPlace(instance, delta, schedule, moments))
    return found


# ---- claims ------------------------------------------------------------------------------------


def judge_radii(places: Sequence[RadiusPlace]) -> list[Claim]:
    """The claims of this study, for which there are cells."""
    found = [delta_pac(places), saving(places), tightest(places)]
    return [claim for claim in found if claim is not None]


def delta_pac(places: Sequence[RadiusPlace]) -> Claim | None:
    return conclude(
        "radii-delta-pac",
        "With every other radius, too, all answers are right with probability at least 1 - delta.",
        "not in the paper: fastfed's radii, docs/explanation/radii.md",
        "the share of trials with a wrong answer is at most delta",
        [
            {**place.head, "radius": radius, **error_share(place.moments, radius, place.delta)}
            for place in places
            for radius in OTHERS
        ],
    )


def saving(places: Sequence[RadiusPlace]) -> Claim | None:
    return conclude(
        "radii-saving",
        "Every other radius makes FedElim and FedElim0 cheaper, at every delta.",
        "not in the paper: fastfed's radii, docs/explanation/radii.md",
        f"mean cost (FedElim: total at C = {COST:g}; FedElim0: pulls) over that with the paper's "
        "radius below 1",
        [place.over(radius, PAPER) for place in places for radius in OTHERS],
    )


def tightest(places: Sequence[RadiusPlace]) -> Claim | None:
    cells = []
    for place in places:
        cells += [
            {**place.over(TIGHTEST, other), "radius": f"against {other}"}
            for other in OTHERS
            if other != TIGHTEST
        ]
    return conclude(
        "radii-tightest",
        f"Of all radii, {TIGHTEST} is the cheapest.",
        "not in the paper: fastfed's radii, docs/explanation/radii.md",
        "its mean cost over that of each of the others below 1",
        cells,
    )


# ---- table -------------------------------------------------------------------------------------


def radii_table(places: Sequence[RadiusPlace]) -> list[dict[str, Any]]:
    """A row for each data set, delta, schedule and radius."""
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


def radii_text(table: Sequence[dict[str, Any]]) -> str:
    """radii.md."""
    lines = [
        "# What the confidence radius costs",
        "",
        in_a_sentence(table),
        "",
        f"Cost: for FedElim pulls + {COST:g} x uplinks, for FedElim0 pulls alone. The ratio "
        "is to the paper's radius on the same trials, ± its standard error from the paired "
        "trials. Wrong: trials that ended with a wrong answer.",
        "",
        table_row(
            [
                "data",
                "delta",
                "schedule",
                "radius",
                "trials",
                "mean cost",
                "ratio to the paper's",
                "wrong",
            ]
        ),
        table_row(["---", "---:", "---", "---", "---:", "---:", "---:", "---:"]),
    ]
    for row in table:
        shown = (
            "1"
            if row["radius"] == PAPER or row["ratio"] is None
            else number(row["ratio"], row["ratio_sem"])
        )
        cost = (
            "none ended" if row["cost_mean"] is None else number(row["cost_mean"], row["cost_sem"])
        )
        lines.append(
            table_row(
                [
                    row["instance"],
                    f"{row['delta']:g}",
                    _NAMES[row["schedule"]],
                    row["radius"],
                    f"{row['trials']:,}",
                    cost,
                    shown,
                    f"{row['wrong']:,}",
                ]
            )
        )
    return "\n".join(lines) + "\n"


def in_a_sentence(table: Sequence[dict[str, Any]], delta: float = 0.01) -> str:
    """What the tightest radius leaves of FedElim's cost, for a README."""
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
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    trials = min(row["trials"] for row in table)
    return (
        f"With the radius `{TIGHTEST}` FedElim keeps the same promise at {listed} of the cost "
        f"that the paper's radius takes (delta = {delta:g}, C = {COST:g}, at least "
        f"{trials:,} paired trials)."
    )


def radii_frame(panels: pl.DataFrame, others: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The summary rows of the study, of all data sets: what its figures are drawn from."""
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
