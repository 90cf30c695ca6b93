"""The jobs whose rows are kept in `tests/golden/rows.parquet`, and how to make that file anew.

    python tests/golden_jobs.py

writes it. Do that only together with a new version of the rows: the file says what the rows of a
version are, down to the last bit of `skip_error` and to the work that each trial took.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import fastfed as ff

FILE = Path(__file__).parent / "golden" / "rows.parquet"
SCHEDULES = [
    "fedelim",
    "fedelim0",
    "periodic:7",
    "periodic:1000",
    "exponential:1.5",
    "superexponential",
    "at:1,5,25,125,3125,78125,1953125",
]


def _weights(seed: int, arms: int, clients: int, support: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 9, (arms, clients, support)) + 0.25


def _instances() -> dict[str, ff.Instance]:
    lone = ff.Instance([[0.3, 0.4]], name="lone arm")
    two = ff.Instance([[1.0], [0.0]], name="two arms")
    noisy = ff.Instance([[3.0, -1.0], [1.0, 2.5], [-2.0, 0.1]], ff.Gaussian(2.5), name="noisy")
    coins = ff.Instance([[0.0, 0.7], [1.0, 0.2], [0.6, 0.9]], ff.Bernoulli(), name="coins")
    three = ff.Instance(
        rewards=ff.Finite([-1.5, 0.25, 2**0.5], _weights(1, 3, 2, 3)), name="three values"
    )
    ten = ff.Instance(
        rewards=ff.Finite(np.arange(10) / 3, _weights(2, 4, 3, 10)), name="ten values"
    )
    gap = np.zeros((2, 2, 2))
    gap[0, :, 1], gap[1, :, 0], gap[1, 0, 1] = 1.0, 1.0, 1e-6
    events = ff.Instance([[3.0, 1.0], [2.0, 0.5], [0.5, 0.7]], ff.Poisson(sigma=1.5), name="events")
    uneven = ff.Instance(
        [[0.9, 0.3], [0.2, 0.8], [0.1, 0.2]],
        ff.Gaussian([[0.5, 1.0], [1.5, 0.7], [0.4, 2.0]]),
        name="uneven",
    )
    sure = ff.Instance(rewards=ff.Finite([0.0, 1.0], gap), name="nearly sure")
    made = [lone, two, noisy, coins, three, ten, sure, events, uneven]
    names = [
        "synthetic",
        "scaled:synthetic,0.01",
        "random:2,1,3",
        "random:5,4,2",
        "random:9,7,5",
        "random:20,38,1",
        "bernoulli",
        "movielens",
    ]
    return {one.name: one for one in [*(ff.Instance.load(name) for name in names), *made]}


INSTANCES = _instances()

JOBS: list[dict[str, Any]] = [
    {
        "instance": name,
        "trials": trials,
        "delta": delta,
        "seed": seed,
        "engine": engine,
        "sigma": sigma,
    }
    for name, trials, delta, seed, engine, sigma in [
        ("synthetic", 40, 0.01, 0, "skip", None),
        ("synthetic", 6, 0.1, 7, "dense", None),
        ("synthetic", 40, 0.3, 2**63 + 5, "skip", 0.3),
        ("scaled:synthetic,0.01", 8, 0.01, 1, "skip", None),
        ("random:2,1,3", 40, 0.05, 3, "skip", None),
        ("random:5,4,2", 20, 0.05, 4, "skip", None),
        ("random:9,7,5", 6, 0.2, 5, "skip", 0.7),
        ("random:20,38,1", 1, 0.1, 6, "skip", 0.5),
        ("lone arm", 3, 0.1, 0, "skip", None),
        ("two arms", 40, 0.01, 8, "skip", None),
        ("noisy", 30, 0.01, 9, "skip", None),
        ("noisy", 20, 0.5, 9, "skip", 0.6),
        ("bernoulli", 12, 0.01, 10, "skip", None),
        ("bernoulli", 4, 0.1, 11, "dense", 0.5),
        ("movielens", 1, 0.1, 12, "skip", None),
        ("coins", 20, 0.05, 13, "skip", 0.5),
        ("three values", 20, 0.05, 14, "skip", None),
        ("ten values", 10, 0.2, 15, "skip", 1.5),
        ("nearly sure", 20, 0.05, 16, "skip", 0.5),
        ("events", 10, 0.05, 17, "skip", None),
        ("uneven", 20, 0.05, 18, "skip", 1.0),
    ]
]

# other radii, goals and uplinks, each of which has a kernel of its own to compile
CHOICES = [
    *({"radius": name} for name in ("stitched", "mixture", "stitched-pairs", "mixture-pairs")),
    *({"goal": name} for name in ("top:2", "eps:0.3", "threshold:0.6", "threshold:0.6,0.1")),
    *({"uplink": name} for name in ("dither:0.5", "round:0.2")),
]
JOBS += [
    {
        "instance": name,
        "trials": 5,
        "delta": 0.1,
        "seed": 19 + i,
        "engine": "skip",
        "sigma": None,
        **choice,
    }
    for i, choice in enumerate(CHOICES)
    for name in ("random:5,4,2", "three values")
]
JOBS += [{**JOBS[16], "trials": 5, "seed": 40, "uplink": "laplace:0.5"}]  # bounded rewards alone
BETTING = {"instance": "three values", "trials": 3, "delta": 0.1, "seed": 41, "sigma": None}
JOBS += [{**BETTING, "engine": engine, "radius": "betting"} for engine in ("skip", "dense")]


def rows(job: dict[str, Any]) -> pl.DataFrame:
    """Run a job and return its rows, with the looks and draws of each trial."""
    options = {key: value for key, value in job.items() if key != "instance"}
    most = 2**22 if job["engine"] == "dense" else 2**40
    result = ff.simulate(
        INSTANCES[job["instance"]], SCHEDULES, threads=1, max_steps=most, **options
    )
    looks, draws = np.tile(result.block.work, (len(SCHEDULES), 1)).T
    return result.frame.with_columns(engine=pl.lit(job["engine"]), looks=looks, draws=draws)


def main() -> None:
    FILE.parent.mkdir(exist_ok=True)
    pl.concat([rows(job) for job in JOBS]).write_parquet(FILE, compression="zstd")


if __name__ == "__main__":
    main()
