"""Lost and noisy reports, whatever is combined: skip = dense = Algorithm 1 on random trials.

For each goal 125 settings have clients that take part at random, and 125 have the private uplink.
Nothing is statistical: rows and pulls must be equal. Seeds are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest
from as_printed import assert_as_printed
from helpers import BOUNDS
from polars.testing import assert_frame_equal

import fastfed as ff
from fastfed.simulation.job import Job

pytestmark = pytest.mark.fuzz

GOALS = ("best", "top", "eps", "threshold")
SETTINGS, TRIALS, LONGEST = 125, 2, 2**10
SCHEDULES = ["fedelim", "periodic:7", "exponential:1.3"]


def _options(kind: str, goal: str, seed: int) -> tuple[ff.Instance, dict[str, object]]:
    rng = np.random.default_rng([GOALS.index(goal), len(kind), seed])
    arms, clients = int(rng.integers(2, 6)), int(rng.integers(1, 7))
    means = rng.uniform(0, 1, (arms, clients))
    weights = None if rng.random() < 0.6 else rng.integers(0, 3, (2, clients)) + np.eye(2, clients)
    if weights is not None and clients == 1:
        weights = None
    rewards = ff.Gaussian() if kind == "participation" else ff.Bernoulli()
    instance = ff.Instance(means, rewards, weights=weights)
    radii = ["stitched", "mixture", "mixture:50"]
    if goal != "threshold":
        radii += ["stitched-pairs", "mixture-pairs"]
    low, high = 0.05, float(np.ptp(means)) + 0.1
    name = {
        "best": "best",
        "top": f"top:{int(rng.integers(1, arms))}",
        "eps": f"eps:{rng.uniform(low, high):.3g}",
        "threshold": f"threshold:{rng.uniform(0.2, 0.8):.3g},0.05",
    }[goal]
    options: dict[str, object] = {
        "delta": float(10 ** rng.uniform(-3, -0.3)),
        "sigma": float(rng.choice([1.0, 0.4, 0.15])),
        "radius": str(rng.choice(radii)),
        "goal": name,
    }
    rules = ["wait", "random"] if kind == "participation" else ["wait"]
    options["participation"] = f"{rng.choice(rules)}:{rng.choice([0.3, 0.7, 1.0])}"
    if kind == "uplink":
        options["uplink"] = f"laplace:{10 ** rng.uniform(-1, 1):.3g}"
    return instance, options


@pytest.mark.parametrize("kind", ["participation", "uplink"])
@pytest.mark.parametrize("goal", GOALS)
def test_skip_equals_dense_and_algorithm_1(kind: str, goal: str) -> None:
    ended = 0
    for seed in range(SETTINGS):
        instance, options = _options(kind, goal, seed)
        skip, dense = (
            ff.simulate(
                instance,
                SCHEDULES,
                trials=TRIALS,
                seed=seed,
                max_steps=LONGEST,
                engine=engine,
                threads=1,
                keep_pulls=True,
                **options,  # type: ignore[arg-type]
            )
            for engine in ("skip", "dense")
        )
        assert_frame_equal(skip.frame.drop(BOUNDS), dense.frame.drop(BOUNDS))
        assert np.array_equal(skip.pulls, dense.pulls), options
        assert (dense.frame["skip_error"] == 0).all()
        ended += int((skip.frame["global_steps"] < LONGEST).sum())
        if seed < 6:
            more = {"max_steps": 300, "seed": seed, "keep_pulls": True, **options}
            assert_as_printed(Job.of(instance, [SCHEDULES[seed % 3]], **more), 0)  # type: ignore[arg-type]
    assert ended > SETTINGS, "hardly any server decided: equality would show little"
