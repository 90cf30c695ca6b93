"""Trial rows to summary rows: means with their errors, quantiles, error rates, paired ratios.

The cost of an uplink, C, enters here and nowhere before: communication cost = C x uplinks, total
cost = pulls + C x uplinks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fastfed.validation import checked_costs as checked_costs

if TYPE_CHECKING:
    import polars as pl

EVERY_STEP = ("fedelim0", "periodic:1")
"""Names under which talking at every step, the yardstick of the ratios, may be in a run."""

COLUMNS = (
    "instance", "schedule", "delta", "sigma", "cost", "trials",
    *(f"{what}_{how}" for what in ("pulls", "communication", "total")
      for how in ("mean", "std", "sem", "q05", "q50", "q95")),
    "error_rate", "error_low", "error_high", "ratio_to_fedelim0", "ratio_sem", "truncated",
)

Floats = npt.NDArray[np.float64]


class Sample:
    """What a summary needs of the trials of one schedule, in order of trial."""

    def __init__(self, trial: npt.ArrayLike, pulls: npt.ArrayLike, uplinks: npt.ArrayLike,
                 correct: npt.ArrayLike, truncated: npt.ArrayLike) -> None:
        self.trial = np.asarray(trial, dtype=np.int64)
        self.pulls = np.asarray(pulls, dtype=np.float64)
        self.uplinks = np.asarray(uplinks, dtype=np.float64)
        self.errors = int(np.count_nonzero(~np.asarray(correct, dtype=bool)))
        self.truncated = int(np.count_nonzero(truncated))

    def total(self, cost: float) -> Floats:
        return self.pulls + cost * self.uplinks


def clopper_pearson(errors: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """The exact confidence interval of an error rate."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if errors == 0 else float(betaincinv(errors, trials - errors + 1, tail))
    high = 1.0 if errors == trials else float(betaincinv(errors + 1, trials - errors, 1 - tail))
    return low, high


def paired(one: Sample, other: Sample, cost: float) -> tuple[Floats, Floats]:
    """The total costs of the trials that both have."""
    if np.array_equal(one.trial, other.trial):
        return one.total(cost), other.total(cost)
    _, here, there = np.intersect1d(one.trial, other.trial, assume_unique=True,
                                    return_indices=True)
    return one.total(cost)[here], other.total(cost)[there]


def ratio_of_means(x: Floats, y: Floats) -> tuple[float, float]:
    """mean(x) / mean(y) of paired samples and its standard error (delta method)."""
    if len(x) == 0:
        return math.nan, math.nan
    below = float(y.mean())
    if below == 0:
        return math.nan, math.nan
    ratio = float(x.mean()) / below
    if len(x) < 2:
        return ratio, math.nan
    return ratio, float((x - ratio * y).std(ddof=1)) / math.sqrt(len(x)) / abs(below)


def describe(name: str, values: Floats) -> dict[str, float | None]:
    """mean, std, sem and three quantiles of a sample; no std of a single trial."""
    std = float(values.std(ddof=1)) if len(values) > 1 else None
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return {
        f"{name}_mean": float(values.mean()),
        f"{name}_std": std,
        f"{name}_sem": None if std is None else std / math.sqrt(len(values)),
        f"{name}_q05": float(low),
        f"{name}_q50": float(middle),
        f"{name}_q95": float(high),
    }


def summary_rows(
    sample: Sample, yardstick: Sample | None, costs: Sequence[float]
) -> list[dict[str, object]]:
    """One row per cost; ``yardstick`` is talking at every step, paired trial by trial."""
    trials = len(sample.pulls)
    low, high = clopper_pearson(sample.errors, trials)
    rows: list[dict[str, object]] = []
    for cost in costs:
        ratio, ratio_sem = (None, None) if yardstick is None else ratio_of_means(
            *paired(sample, yardstick, cost))
        rows.append({
            "cost": cost,
            "trials": trials,
            **describe("pulls", sample.pulls),
            **describe("communication", cost * sample.uplinks),
            **describe("total", sample.total(cost)),
            "error_rate": sample.errors / trials,
            "error_low": low,
            "error_high": high,
            "ratio_to_fedelim0": ratio,
            "ratio_sem": ratio_sem,
            "truncated": sample.truncated,
        })
    return rows


def to_frame(rows: list[dict[str, object]]) -> pl.DataFrame:
    import polars as pl

    texts = {"instance": pl.String, "schedule": pl.String}
    counts = {"trials": pl.Int64, "truncated": pl.Int64}
    types = {name: {**texts, **counts}.get(name, pl.Float64) for name in COLUMNS}
    return pl.DataFrame(rows, schema=types)


def summarise(frame: pl.DataFrame, costs: Sequence[float]) -> pl.DataFrame:
    """The summary of trial rows held in memory: one row per instance, delta, schedule, cost."""
    import polars as pl

    wanted = checked_costs(costs)
    rows: list[dict[str, object]] = []
    for cell, part in frame.group_by(["instance", "delta", "sigma"], maintain_order=True):
        samples = {
            str(schedule): Sample(*(trials[name] for name in
                                    ("trial", "pulls", "uplinks", "correct", "truncated")))
            for (schedule,), trials in part.sort(pl.col("trial"), maintain_order=True).group_by(
                ["schedule"], maintain_order=True)
        }
        instance, delta, sigma = cell
        for schedule in part["schedule"].unique(maintain_order=True):
            rows += [
                {"instance": instance, "schedule": schedule, "delta": delta, "sigma": sigma, **row}
                for row in summary_rows(samples[schedule], yardstick_of(samples), wanted)
            ]
    return to_frame(rows)


def yardstick_of(samples: dict[str, Sample]) -> Sample | None:
    return next((samples[name] for name in EVERY_STEP if name in samples), None)
