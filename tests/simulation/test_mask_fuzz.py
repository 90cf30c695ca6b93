"""Ragged masks, whatever is combined: skip = dense = Algorithm 1 on random trials.

For each goal and kind of uplink 250 settings have random masks, weights and radii, per arm or per
pair; half of them ask the clients' own questions. Nothing is statistical: rows and pulls must be
equal. Seeds are fixed.
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
UPLINKS = ("exact", "lattice")
SETTINGS, TRIALS, LONGEST = 250, 2, 2**10
SCHEDULES = ["fedelim", "periodic:7"]


def _mask(rng: np.random.Generator, arms: int, clients: int) -> np.ndarray:
    """Draw a mask in which some cell is empty, no arm without clients, no client without arms."""
    while True:
        mask = rng.random((arms, clients)) < rng.uniform(0.3, 0.9)
        if mask.any(axis=0).all() and mask.any(axis=1).all() and not mask.all():
            return mask


def _options(goal: str, uplink: str, seed: int) -> tuple[ff.Instance, dict[str, object]]:
    rng = np.random.default_rng([GOALS.index(goal), UPLINKS.index(uplink), seed])
    arms, clients = int(rng.integers(2, 6)), int(rng.integers(2, 6))
    mask = _mask(rng, arms, clients)
    means = np.where(mask, rng.uniform(0, 1, (arms, clients)), np.nan)
    weights = rng.integers(1, 4, clients) if rng.random() < 0.3 else None
    instance = ff.Instance(means, weights=weights)
    own = bool(rng.random() < 0.5)
    instance = instance.own() if own else instance
    sizes = instance.questions.candidates.sum(axis=1)
    radii = ["paper", "stitched", "mixture", "mixture:50"]
    if goal != "threshold":  # thresholds have no pairs of arms
        radii += ["stitched-pairs", "mixture-pairs"]
    lattices = [f"dither:{rng.uniform(0.2, 3):.3g}"]
    if sizes.min() == sizes.max():
        lattices.append(f"round:{rng.uniform(0.05, 0.5):.3g}")
    return instance, {
        "delta": float(10 ** rng.uniform(-3, -0.3)),
        "sigma": float(rng.choice([1.0, 0.4, 0.15])),
        "radius": str(rng.choice(radii)),
        "uplink": "exact" if uplink == "exact" else str(rng.choice(lattices)),
        "goal": {
            "best": "best",
            "top": f"top:{int(rng.integers(1, arms))}",
            "eps": f"eps:{rng.uniform(0.05, 1):.3g}",
            "threshold": f"threshold:{rng.uniform(0.2, 0.8):.3g},0.05",
        }[goal],
    }


@pytest.mark.parametrize("uplink", UPLINKS)
@pytest.mark.parametrize("goal", GOALS)
def test_skip_equals_dense_and_algorithm_1(goal: str, uplink: str) -> None:
    ended, skipped, rounded = 0, 0, 0
    for seed in range(SETTINGS):
        instance, options = _options(goal, uplink, seed)
        # adaptive schedules choose the rounds of one question
        more = "exponential:1.3" if len(instance.questions) > 1 else "adaptive"
        schedules = [*SCHEDULES, more]
        skip, dense = (
            ff.simulate(
                instance,
                schedules,
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
        assert (skip.pulls[..., ~instance.available] == 0).all()
        ended += int((~skip.frame["truncated"]).sum())
        skipped += int((skip.frame["skip_error"] > 0).sum())
        rounded += str(options["uplink"]).startswith("round")
        if seed < 12:
            short = {"max_steps": 300, "seed": seed, "keep_pulls": True, **options}
            assert_as_printed(Job.of(instance, [schedules[seed % 3]], **short), 0)  # type: ignore[arg-type]
    assert ended > SETTINGS, "hardly any trial ended: equality would show little"
    assert skipped, "no trial skipped a step: equality would show nothing"
    assert (rounded > SETTINGS // 10) == (uplink == "lattice")
