"""All algorithms side by side: pulls, uplinks, rounds and errors, on the same walks.

The radius is `mixture-pairs` by default: then eliminations and the algorithms that decide in rounds
use boundaries of the same kind, and the differences are those of the algorithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from fastfed.analysis.intervals import clopper_pearson
from fastfed.model.instance import Instance
from fastfed.model.schedules import Schedule
from fastfed.paper.markdown import table_row
from fastfed.simulation.job import Job, run_blocks
from fastfed.simulation.rows import Block
from fastfed.theory.bounds import bounds
from fastfed.validation import checked_threads

SCHEDULES = ("fedelim", "fedelim0", "adaptive", "rounds:2", "phases", "halving:20000", "oracle")


def compare_algorithms(
    instances: Sequence[str],
    schedules: Sequence[str] = SCHEDULES,
    *,
    delta: float = 0.01,
    trials: int = 1000,
    radius: str = "mixture-pairs",
    seed: int = 0,
    threads: int | None = None,
) -> pl.DataFrame:
    """Simulate every schedule on every instance; return one row for each.

    A budget that is too small for an instance is left out of its rows.
    """
    lines: list[dict[str, Any]] = []
    for name in instances:
        instance = Instance.load(name)
        least = bounds(instance, delta=delta).least_pulls
        fitting = [one for one in schedules if _fits(one, instance)]
        job = Job.of(instance, fitting, delta=delta, radius=radius, seed=seed)
        found = run_blocks(job, 0, trials, checked_threads(threads))
        block = Block.join(sorted(found, key=lambda one: one.first))
        for place, schedule in enumerate(job.schedules):
            pulls = block.column("pulls")[place]
            wrong = int(trials - block.column("correct")[place].sum())
            low, high = clopper_pearson(wrong, trials)
            lines.append(
                {
                    "instance": instance.name,
                    "schedule": schedule.in_words if not schedule.eliminates else str(schedule),
                    "pulls": float(pulls.mean()),
                    "pulls_sem": float(pulls.std(ddof=1) / np.sqrt(trials)),
                    "uplinks": float(block.column("uplinks")[place].mean()),
                    "rounds": float(block.column("rounds")[place].mean()),
                    "x_least": None if least is None else float(pulls.mean() / least),
                    "wrong": wrong,
                    "error_low": low,
                    "error_high": high,
                }
            )
    return pl.DataFrame(lines)


def _fits(schedule: str, instance: Instance) -> bool:
    """Tell whether a fixed budget is enough for the instance."""
    one, (arms, clients) = Schedule.parse(schedule), instance.shape
    if not one.fixed_budget:
        return True
    return (one.value or 0.0) >= arms * clients * max(1, (arms - 1).bit_length())


def markdown(table: pl.DataFrame) -> str:
    """Write the table of `compare_algorithms` in Markdown."""
    head = [
        "instance",
        "algorithm",
        "pulls ± sem",
        "x T\\*",
        "uplinks",
        "rounds",
        "wrong [95 % of the rate, in %]",
    ]
    lines = [table_row(head), table_row(["---"] * 2 + ["---:"] * 5)]
    trials_of = 100.0
    for row in table.iter_rows(named=True):
        ratio = "" if row["x_least"] is None else f"{row['x_least']:.2f}"
        low, high = (trials_of * row[name] for name in ("error_low", "error_high"))
        lines.append(
            table_row(
                [
                    row["instance"],
                    row["schedule"],
                    f"{row['pulls']:,.0f} ± {row['pulls_sem']:,.0f}",
                    ratio,
                    f"{row['uplinks']:,.0f}",
                    f"{row['rounds']:,.1f}",
                    f"{row['wrong']} [{low:.2g}, {high:.2g}]",
                ]
            )
        )
    return "\n".join(lines)
