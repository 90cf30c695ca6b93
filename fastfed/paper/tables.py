"""Tables of `fastfed reproduce`: rows for JSON, and their columns for Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fastfed.display import table
from fastfed.model.instance import Instance
from fastfed.model.schedules import Schedule
from fastfed.paper.evidence import COST, PAIRS, PAPER, RADII, RUNS, Place
from fastfed.text import number
from fastfed.theory.bounds import Bounds, bounds
from fastfed.theory.bounds_table import VARIANTS
from fastfed.theory.lower_bounds import over_least_pulls

STUDY_DELTA = 0.01  # that of the studies of periods and bases, and of the panels against H
WORDS = {"fedelim": "FedElim", "fedelim0": "FedElim0"}
"""Names of the paper's algorithms, as it writes them."""

Row = dict[str, Any]
Show = Callable[[Row], str]


@dataclass(frozen=True)
class Table:
    """Rows of numbers, and the columns that show them: a head, and the text of a row."""

    title: str
    text: str
    columns: Mapping[str, Show]
    rows: Sequence[Row]

    @property
    def markdown(self) -> str:
        columns = [
            table.Column(head, [show(row) for row in self.rows], left=head == "instance")
            for head, show in self.columns.items()
        ]
        shown = table.Table(columns).markdown()
        return f"## {self.title}\n\n{self.text}\n\n{shown}\n"


def text(key: str) -> Show:
    """Show a value as it is."""
    return lambda row: str(row[key])


def count(key: str, form: str = ",") -> Show:
    """Show a number in a format."""
    return lambda row: "" if row[key] is None else format(row[key], form)


def _mean(key: str, sem: str, missing: str = "none ended") -> Show:
    return lambda row: missing if row[key] is None else number(row[key], row[sem])


_OF_ALGORITHMS = (
    *("instance", "delta", "schedule", "trials", "error_low", "error_high"),
    *(f"{column}_{how}" for column in ("pulls", "uplinks", "rounds") for how in ("mean", "sem")),
)
DELTA = {"instance": text("instance"), "delta": count("delta", "g")}


def study_bounds(name: str) -> Bounds:
    """Compute the bounds of a data set at the delta and the cost of the studies."""
    return bounds(Instance.load(name), STUDY_DELTA, COST)


def schemes(studies: pl.DataFrame) -> Table:
    """Tabulate the three schemes of communication, measured and bounded."""
    rows: list[Row] = []
    here = studies.filter(pl.col("cost") == COST) if len(studies) else studies
    for name in here["instance"].unique(maintain_order=True) if len(here) else ():
        b = study_bounds(str(name))
        assert b.periodic.parameter is not None
        for bound, scheme in (
            (b.periodic, f"periodic:{int(b.periodic.parameter)}"),
            (b.fedelim, "fedelim"),
            (b.superexponential, "superexponential"),
        ):
            chosen = (pl.col("instance") == name) & (pl.col("schedule") == scheme)
            found = here.filter(chosen).row(0, named=True)
            for short, long in (("pulls", "pulls"), ("comm", "communication"), ("total", "total")):
                limits = {one: float(getattr(getattr(bound, one), short)) for one in VARIANTS}
                rows.append(
                    {
                        **{key: found[key] for key in ("instance", "delta", "schedule", "trials")},
                        "quantity": long if long == "pulls" else f"{long} cost",
                        "mean": found[f"{long}_mean"],
                        "sem": found[f"{long}_sem"],
                        **limits,
                    }
                )
    return Table(
        "Periodic, exponential and super-exponential communication",
        f"Means ± one standard error beside the bounds; C = {COST:g}. The periodic scheme has the "
        "whole H nearest H_opt. *Stated*: the paper's closed form, its O() worked out; *summed*: "
        "summed over arms, with the paper's slips corrected; *sharp*: from the steps at which the "
        "radii settle each arm.",
        {
            **DELTA,
            "schedule": text("schedule"),
            "trials": count("trials"),
            "quantity": text("quantity"),
            "measured": _mean("mean", "sem"),
            **{one: count(one, ",.4g") for one in reversed(VARIANTS)},
        },
        rows,
    )


def radii(places: Sequence[Place]) -> Table:
    """Tabulate the study of radii: a row for each data set, delta, schedule and radius."""
    rows = []
    for place in places:
        sums, prices = place.whole, place.price
        for radius in RADII:
            pair = sums.pair(radius, PAPER, prices)
            unended = sums.trials(radius) - sums.ended(radius)
            rows.append(
                {
                    **place.head,
                    "radius": radius,
                    "trials": sums.trials(radius),
                    "wrong": sums.errors(radius) - unended,
                    "cost_mean": sums.mean(radius, prices),
                    "cost_sem": sums.sem(radius, prices),
                    "ratio": pair.ratio,
                    "ratio_sem": None if radius == PAPER else pair.ratio_sem,
                }
            )
    return Table(
        "What the confidence radius costs",
        f"Cost: for FedElim pulls + {COST:g} x uplinks, for FedElim0 "
        "pulls alone. The ratio is to the paper's radius on the same trials, ± its standard error "
        "from the paired trials. Wrong: trials that ended with a wrong answer.",
        {
            **DELTA,
            "schedule": lambda row: WORDS[row["schedule"]],
            "radius": text("radius"),
            "trials": count("trials"),
            "mean cost": _mean("cost_mean", "cost_sem"),
            "ratio to the paper's": _mean("ratio", "ratio_sem", ""),
            "wrong": count("wrong"),
        },
        rows,
    )


def optimum(places: Sequence[Place]) -> Table:
    """Tabulate pulls over the least pulls: a row for each instance and delta."""
    rows = []
    factors = ("radius", "doubling", "proportions", "thresholds")
    for place in places:
        row: Row = {**place.head, "least_pulls": place.least}
        for run in RUNS.values():
            row[run], row[f"{run} sem"] = place.factor(run) or (None, None)
        rows.append(row | (place.split() or dict.fromkeys(factors)))
    return Table(
        "Pulls over the least pulls of any algorithm",
        "Mean pulls over T* kl(delta, 1 - delta), ± one standard error. FedElim's factor with the "
        f"paper's radius is the product of the last four columns: the radius against {PAIRS}, "
        "communicating at powers of two and not at every step, pulling all active arms alike, and "
        "thresholds that are wider than in the limit of small delta.",
        {
            **DELTA,
            **{f"{WORDS[one]}, {of}": _mean(run, f"{run} sem") for (one, of), run in RUNS.items()},
            **{name: count(name, ".2f") for name in factors},
        },
        rows,
    )


def algorithms(summary: pl.DataFrame, instances: Mapping[str, Instance]) -> Table:
    """Tabulate every schedule of every cell, by means over the trials that ended."""
    rows: list[Row] = []
    for found in summary.filter(pl.col("cost") == 0).iter_rows(named=True):
        row = {key: found[key] for key in _OF_ALGORITHMS}
        schedule = Schedule.parse(row["schedule"])
        row["algorithm"], row["x_least"] = schedule.label, None
        if row["pulls_mean"] and not schedule.fixed_budget:
            instance = instances[row["instance"]]
            row["x_least"] = over_least_pulls(instance, row["pulls_mean"], found)
        row["wrong"] = round(found["error_rate"] * row["trials"])
        rows.append(row)
    return Table(
        "All algorithms side by side",
        f"Means ± one standard error, with the radius {PAIRS}. Within an instance all algorithms "
        "run on the same walks. The column x T* has the mean pulls over the least pulls of any "
        "delta-PAC algorithm. Rewards with many values have no such number, and an algorithm with "
        "a fixed budget promises no delta. The last two columns have the trials without a right "
        "answer, and the 95 % interval of their share in per cent.",
        {
            **DELTA,
            "algorithm": text("algorithm"),
            "trials": count("trials"),
            "pulls": _mean("pulls_mean", "pulls_sem"),
            "x T*": count("x_least", ".2f"),
            "uplinks": count("uplinks_mean", ",.0f"),
            "rounds": count("rounds_mean", ",.1f"),
            "wrong": count("wrong"),
            "error %": lambda row: " to ".join(
                f"{100 * row[f'error_{end}']:.3g}" for end in ("low", "high")
            ),
        },
        rows,
    )
