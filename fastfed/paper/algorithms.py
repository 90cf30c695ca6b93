"""All algorithms side by side: pulls, uplinks, rounds and errors, on the same walks.

The radius is `mixture-pairs`: then eliminations and the algorithms that decide in rounds use
boundaries of the same kind, and the differences are those of the algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fastfed.analysis.intervals import clopper_pearson
from fastfed.analysis.trials import Trials, samples
from fastfed.model.instance import Instance
from fastfed.model.schedules import Schedule
from fastfed.paper.markdown import document, measured, table
from fastfed.theory.bounds import bounds

SCHEDULES = ("fedelim", "fedelim0", "adaptive", "rounds:2", "phases", "halving:20000", "oracle")
RANDOM = ("random:5,4,1", "random:10,10,2")
DELTA = 0.01
RADIUS = "mixture-pairs"
_COLUMNS = ("pulls", "uplinks", "rounds", "correct", "truncated")


def compile_all(check: Callable[[], object] = lambda: None) -> None:
    """Compile the algorithms that decide in rounds, by one trial of each.

    Numba keeps nothing of them for the next process, and takes 11 s. ``check`` is called before
    each and may raise.
    """
    from fastfed.simulation.job import Job

    for schedule in map(Schedule.parse, SCHEDULES):
        check()
        if not schedule.eliminates:
            Job.of(Instance.load("synthetic"), schedule, delta=DELTA, radius=RADIUS).run(0, 1)


def algorithms_table(trials: Trials) -> list[dict[str, Any]]:
    """Tabulate every schedule of every cell: a row for each.

    Means are over the trials that ended. A trial that did not end has no right answer.
    """
    rows = []
    for cell, schedules in trials.held().items():
        least = bounds(trials.instances[cell.instance], delta=cell.delta).least_pulls
        for schedule in schedules:
            name = str(schedule)
            found = samples(trials.batches(cell, [name], _COLUMNS), name, _COLUMNS)
            count, ended = len(found["pulls"]), ~found["truncated"]
            wrong = int(count - found["correct"].sum())
            low, high = clopper_pearson(wrong, count)
            row: dict[str, Any] = {
                "instance": cell.instance,
                "delta": cell.delta,
                "schedule": name,
                "algorithm": schedule.label,
                "trials": count,
                "wrong": wrong,
                "error_low": low,
                "error_high": high,
            }
            for column in ("pulls", "uplinks", "rounds"):
                row |= _mean(column, found[column][ended].astype(float))
            row["x_least"] = None
            if least is not None and row["pulls_mean"] is not None and not schedule.fixed_budget:
                row["x_least"] = row["pulls_mean"] / float(least)
            rows.append(row)
    return rows


def _mean(column: str, values: Any) -> dict[str, float | None]:
    """Return the mean of a column, and its standard error."""
    sem = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    mean = float(values.mean()) if len(values) else None
    return {f"{column}_mean": mean, f"{column}_sem": sem}


def algorithms_text(found: Sequence[dict[str, Any]]) -> str:
    """Write algorithms.md."""
    return document(
        "All algorithms side by side",
        f"Means ± one standard error, with the radius {RADIUS}. Within an instance all algorithms "
        "run on the same walks. The column x T* has the mean pulls over the least pulls of any "
        "delta-PAC algorithm. Rewards with many values have no such number, and an algorithm with "
        "a fixed budget promises no delta. The last two columns have the trials without a right "
        "answer, and the 95 % interval of their share in per cent.",
        markdown(found),
    )


def markdown(found: Sequence[dict[str, Any]]) -> str:
    """Write the table of `algorithms_table` in Markdown."""
    head = ["instance", "delta", "algorithm", "trials", "pulls", "x T\\*", "uplinks", "rounds"]
    rows = []
    for row in found:
        uplinks, rounds = (
            "" if row[f"{name}_mean"] is None else f"{row[f'{name}_mean']:,.{digits}f}"
            for name, digits in (("uplinks", 0), ("rounds", 1))
        )
        rows.append(
            [
                row["instance"],
                f"{row['delta']:g}",
                row["algorithm"],
                f"{row['trials']:,}",
                measured(row["pulls_mean"], row["pulls_sem"]),
                "" if row["x_least"] is None else f"{row['x_least']:.2f}",
                uplinks,
                rounds,
                f"{row['wrong']:,}",
                " to ".join(f"{100 * row[f'error_{end}']:.3g}" for end in ("low", "high")),
            ]
        )
    return table([*head, "wrong", "error %"], "lrlrrrrrrr", rows)
