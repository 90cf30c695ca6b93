"""A made-up summary of many schedules and deltas, for tests of figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

LONG = "an instance of my own with $a name$ of sixty_characters & \\one"
SCHEDULES = [
    "fedelim",
    "fedelim0",
    "superexponential",
    "exponential:1.5",
    "exponential:3",
    "at:1,5,25,125,625,3125,15625,78125,390625,1953125",
    "at:1,5,25,125,625,3125,15625,78125,390625,1953126",
    *(f"periodic:{period}" for period in (2, 5, 10, 50, 100, 500, 1000, 10_000, 100_000)),
]
DELTAS = [0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.003, 0.002, 0.001, 0.0005, 0.0002, 0.0001]


def made_up(
    names: list[str] | None = None,
    schedules: list[str] = SCHEDULES,
    deltas: list[float] = DELTAS,
    costs: tuple[float, ...] = (10.0,),
    sigmas: tuple[float, ...] = (1.0,),
    spread: float = 1.2,
) -> pl.DataFrame:
    """Make a summary of all combinations, with standard deviations as large as the means."""
    rng = np.random.default_rng(0)
    rows = []
    for name in names or [LONG]:
        for delta in deltas:
            for sigma in sigmas:
                for place, schedule in enumerate(schedules):
                    for cost in costs:
                        pulls, uplinks = (
                            -5e4 * np.log(delta) * (1 + 0.05 * (place % 5)),
                            (3e4 / (1 + place) ** 2),
                        )
                        wrong = rng.binomial(10_000, delta / 20) / 10_000
                        row: dict[str, Any] = {
                            "instance": name,
                            "schedule": schedule,
                            "delta": delta,
                            "sigma": sigma,
                            "cost": cost,
                            "trials": 10_000,
                            "truncated": 0,
                            "error_rate": wrong,
                            "error_low": wrong / 2,
                            "error_high": 1.5 * wrong + 0.0004,
                        }
                        for what, mean in (
                            ("pulls", pulls),
                            ("communication", cost * uplinks),
                            ("total", pulls + cost * uplinks),
                            ("steps", pulls),
                        ):
                            row |= {
                                f"{what}_mean": mean,
                                f"{what}_sem": 0.01 * mean,
                                f"{what}_std": spread * mean,
                                f"{what}_q05": 0.6 * mean,
                                f"{what}_q50": 0.95 * mean,
                                f"{what}_q95": 1.7 * mean,
                            }
                        rows.append(row)
    return pl.DataFrame(rows)
