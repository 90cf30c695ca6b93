"""Table of the three schemes of communication: measured means beside the bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from fastfed.model.instance import Instance
from fastfed.paper.claims.criteria import COST
from fastfed.paper.markdown import document, table
from fastfed.text import number
from fastfed.theory.bounds import Bounds, bounds
from fastfed.theory.bounds_table import VARIANTS

STUDY_DELTA = 0.01  # that of the studies, the table, and the panels against H


def study_bounds(name: str) -> Bounds:
    """Compute the bounds of a data set at the delta and the cost of the studies."""
    return bounds(Instance.load(name), STUDY_DELTA, COST)


def whole_period(b: Bounds) -> int:
    """Return the whole H whose bound is least."""
    assert b.periodic.parameter is not None
    return int(b.periodic.parameter)


def scheme_table(studies: pl.DataFrame) -> list[dict[str, Any]]:
    """Tabulate the three schemes, measured and bounded: a row for each data set and scheme."""
    rows: list[dict[str, Any]] = []
    if not len(studies):
        return rows
    here = studies.filter(pl.col("cost") == COST)
    for (instance, delta), frame in here.group_by(["instance", "delta"], maintain_order=True):
        b = study_bounds(str(instance))
        for scheme, name in (
            (b.periodic, f"periodic:{whole_period(b)}"),
            (b.fedelim, "fedelim"),
            (b.superexponential, "superexponential"),
        ):
            found = frame.filter(pl.col("schedule") == name).row(0, named=True)
            rows.append(
                {
                    "instance": instance,
                    "delta": delta,
                    "cost": COST,
                    "scheme": name,
                    "trials": found["trials"],
                    **{
                        f"{short}_{kind}": found[f"{long}_{kind}"]
                        for short, long in (
                            ("pulls", "pulls"),
                            ("comm", "communication"),
                            ("total", "total"),
                        )
                        for kind in ("mean", "sem")
                    },
                    **{
                        f"{quantity}_{variant}": float(getattr(getattr(scheme, variant), quantity))
                        for quantity in ("pulls", "comm", "total")
                        for variant in VARIANTS
                    },
                }
            )
    return rows


def scheme_text(found: Sequence[dict[str, Any]]) -> str:
    """Write table.md."""
    rows = [
        [
            row["instance"],
            f"{row['delta']:g}",
            row["scheme"],
            f"{row['trials']:,}",
            words,
            number(row[f"{quantity}_mean"], row[f"{quantity}_sem"]),
            *(_large(row[f"{quantity}_{variant}"]) for variant in reversed(VARIANTS)),
        ]
        for row in found
        for quantity, words in (
            ("pulls", "pulls"),
            ("comm", "communication cost"),
            ("total", "total cost"),
        )
    ]
    head = ["data", "delta", "scheme", "trials", "quantity", "measured"]
    return document(
        "Periodic, exponential and super-exponential communication",
        f"Means ± one standard error beside the bounds; C = {COST:g}. The periodic scheme has "
        "the whole H nearest H_opt. *Stated*: the paper's closed form, its O() worked out; "
        "*summed*: summed over arms, with the paper's slips corrected; *sharp*: from the "
        "steps at which the radii settle each arm.",
        table([*head, "sharp", "summed", "stated"], "lllrlrrrr", rows),
    )


def _large(value: float) -> str:
    return f"{value:,.0f}" if value < 1e9 else f"{value:.3g}"
