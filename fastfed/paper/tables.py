"""Tables of `fastfed reproduce`: columns for Markdown, and rows for JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from fastfed.display.table import Column, Table
from fastfed.display.tables import summary_cells
from fastfed.model.instance import Instance
from fastfed.paper.evidence import COST, PAIRS, PAPER, PRICES, RADII, RUNS, Place
from fastfed.text import number
from fastfed.theory.bounds import Bounds, bounds
from fastfed.theory.bounds_table import VARIANTS, plain

STUDY_DELTA = 0.01  # that of the studies of periods and bases, and of the panels against H

Row = dict[str, Any]
Show = Callable[[Row], str]


def table(title: str, text: str, columns: Mapping[str, Show], rows: Sequence[Row]) -> Table:
    """Make a table whose columns show the instance and delta of the rows, and what is given."""
    every = {"instance": shown("instance"), "delta": count("delta", "g"), **columns}
    return Table(
        [
            Column(head, [show(row) for row in rows], left=head == "instance")
            for head, show in every.items()
        ],
        [f"## {title}", text],
        frame=pl.DataFrame(plain(list(rows)), infer_schema_length=None),
    )


def shown(key: str) -> Show:
    """Show a value as it is."""
    return lambda row: str(row[key])


def count(key: str, form: str = ",") -> Show:
    """Show a number in a format."""
    return lambda row: "" if row[key] is None else format(row[key], form)


def _mean(key: str, sem: str, missing: str = "none ended") -> Show:
    return lambda row: missing if row[key] is None else number(row[key], row[sem])


def study_bounds(name: str) -> Bounds:
    """Compute the bounds of a data set at the delta and the cost of the studies."""
    return bounds(Instance.load(name), STUDY_DELTA, COST)


def schemes(studies: pl.DataFrame) -> Table:
    """Tabulate the three schemes of communication, measured and bounded."""
    rows: list[Row] = []
    for (name,), here in studies.group_by(["instance"], maintain_order=True):
        b = study_bounds(str(name))
        assert b.periodic.parameter is not None
        for bound, scheme in (
            (b.periodic, f"periodic:{int(b.periodic.parameter)}"),
            (b.fedelim, "fedelim"),
            (b.superexponential, "superexponential"),
        ):
            chosen = (pl.col("cost") == COST) & (pl.col("schedule") == scheme)
            found = here.filter(chosen).row(0, named=True)
            for short, long in (("pulls", "pulls"), ("comm", "communication"), ("total", "total")):
                rows.append(
                    {
                        **{key: found[key] for key in ("instance", "delta", "schedule", "trials")},
                        "quantity": long if long == "pulls" else f"{long} cost",
                        "mean": found[f"{long}_mean"],
                        "sem": found[f"{long}_sem"],
                        **{one: getattr(getattr(bound, one), short) for one in VARIANTS},
                    }
                )
    return table(
        "Periodic, exponential and super-exponential communication",
        f"Means ± one standard error beside the bounds; C = {COST:g}. The periodic scheme has the "
        "whole H nearest H_opt. Stated: the paper's closed form, its O() worked out; summed: "
        "summed over arms, with the paper's slips corrected; sharp: from the steps at which the "
        "radii settle each arm.",
        {
            "schedule": shown("schedule"),
            "trials": count("trials"),
            "quantity": shown("quantity"),
            "measured": _mean("mean", "sem"),
            **{one: count(one, ",.4g") for one in reversed(VARIANTS)},
        },
        rows,
    )


def radii(places: Sequence[Place]) -> Table:
    """Tabulate the study of radii: a row for each data set, delta, schedule and radius."""
    rows = []
    for place in places:
        sums = place.whole
        for schedule, prices in PRICES.items():
            for radius in RADII:
                run = f"{schedule} {radius}"
                pair = sums.pair(run, f"{schedule} {PAPER}", prices)
                rows.append(
                    {
                        **place.head,
                        "schedule": schedule,
                        "radius": radius,
                        "trials": sums.trials(run),
                        "wrong": sums.errors(run) - (sums.trials(run) - sums.ended(run)),
                        "cost_mean": sums.mean(run, prices),
                        "cost_sem": sums.sem(run, prices),
                        "ratio": pair.ratio,
                        "ratio_sem": None if radius == PAPER else pair.ratio_sem,
                    }
                )
    return table(
        "What the confidence radius costs",
        f"Cost: for fedelim pulls + {COST:g} x uplinks, for fedelim0 "
        "pulls alone. The ratio is to the paper's radius on the same trials, ± its standard error "
        "from the paired trials. Wrong: trials that ended with a wrong answer.",
        {
            "schedule": shown("schedule"),
            "radius": shown("radius"),
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
        for run in RUNS:
            row[run], row[f"{run} sem"] = place.factor(run) or (None, None)
        rows.append(row | (place.split() or dict.fromkeys(factors)))
    return table(
        "Pulls over the least pulls of any algorithm",
        "Mean pulls over T* kl(delta, 1 - delta), ± one standard error. FedElim's factor with the "
        f"paper's radius is the product of the last four columns: the radius against {PAIRS}, "
        "communicating at powers of two and not at every step, pulling all active arms alike, and "
        "thresholds that are wider than in the limit of small delta.",
        {
            **{run.replace(" ", ", "): _mean(run, f"{run} sem") for run in RUNS},
            **{name: count(name, ".2f") for name in factors},
        },
        rows,
    )


def algorithms(summary: pl.DataFrame, instances: Mapping[str, Instance]) -> Table:
    """Tabulate every schedule of every cell as `fastfed summary` does, at C = 0."""
    frame = summary.filter(pl.col("cost") == 0)
    shared, columns = summary_cells(frame, instances)
    text = (
        "Means ± one standard error. Within an instance all algorithms run on the same walks. The "
        "column x T* has the mean pulls over the least pulls of any delta-PAC algorithm. Rewards "
        "with many values have no such number, and an algorithm with a fixed budget promises no "
        f"delta. {shared[0].upper()}{shared[1:]}."
    )
    return Table(columns, ["## All algorithms side by side", text], frame=frame)
