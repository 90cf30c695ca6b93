"""Skipping changes nothing, whatever is combined: skip = dense = Algorithm 1 on random trials.

Four reward distributions, four goals, two kinds of uplink and two kinds of boundary make 64
kernels, and each takes 10 to 20 seconds to compile. Sixteen are run by default, so that every two
values of two dimensions meet. With ``FASTFED_FUZZ=all`` all 64 are run.

Nothing is statistical: rows and pulls must be equal. Seeds are fixed.
"""

from __future__ import annotations

import os
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pytest
from as_printed import assert_as_printed
from helpers import BOUNDS
from polars.testing import assert_frame_equal

import fastfed as ff
from fastfed.simulation.job import Job

pytestmark = pytest.mark.fuzz

LAWS = ("gaussian", "cells", "finite", "poisson")
GOALS = ("best", "top", "eps", "threshold")
UPLINKS = ("exact", "lattice")
BOUNDARIES = ("paper", "concave")
SCHEDULES = ["fedelim", "fedelim0", "periodic:7", "exponential:1.5", "superexponential"]
INSTANCES, TRIALS, LONGEST = 8, 3, 2**13


class Kernel(NamedTuple):
    """One of the 64 combinations."""

    law: str
    goal: str
    uplink: str
    boundary: str

    def __str__(self) -> str:
        return "-".join(self)


ALL = [Kernel(*one) for one in product(LAWS, GOALS, UPLINKS, BOUNDARIES)]
OTHERS = {
    ("gaussian", "best"): ("lattice", "paper"),
    ("gaussian", "eps"): ("exact", "concave"),
    ("cells", "best"): ("lattice", "paper"),
    ("cells", "top"): ("lattice", "concave"),
    ("cells", "eps"): ("lattice", "paper"),
    ("cells", "threshold"): ("exact", "concave"),
    ("finite", "best"): ("exact", "concave"),
    ("finite", "threshold"): ("lattice", "paper"),
    ("poisson", "best"): ("lattice", "paper"),
    ("poisson", "top"): ("exact", "concave"),
}
"""Uplinks and boundaries that are not the paper's; other tests need these kernels as well."""
COVERING = [Kernel(*one, *OTHERS.get(one, ("exact", "paper"))) for one in product(LAWS, GOALS)]
CHOSEN = ALL if os.environ.get("FASTFED_FUZZ") == "all" else COVERING


def _instance(law: str, rng: np.random.Generator) -> ff.Instance:
    arms, clients = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    means = rng.uniform(-1, 1, (arms, clients))
    if law == "gaussian":
        return ff.Instance(means)
    if law == "cells":
        return ff.Instance(means, ff.Gaussian(10 ** rng.uniform(-1, 0.3, (arms, clients))))
    if law == "poisson":
        return ff.Instance(1 + means, ff.Poisson(sigma=1.2))
    if rng.random() < 0.5:
        return ff.Instance((1 + means) / 2, ff.Bernoulli())
    weights = rng.integers(1, 9, (arms, clients, 3)) + rng.random((arms, clients, 3))
    return ff.Instance(rewards=ff.Finite([-1.0, 0.25, 1.0], weights))


def _goal(family: str, instance: ff.Instance, rng: np.random.Generator) -> str:
    low, high = float(instance.means.min()), float(instance.means.max())
    if family == "best":
        return "best"
    if family == "top":
        return f"top:{int(rng.integers(1, instance.shape[0]))}"
    if family == "eps":
        return f"eps:{float(rng.uniform(0.01, high - low)):.3g}"
    slack = "" if rng.random() < 0.5 else f",{float(rng.uniform(0.01, 0.3)):.3g}"
    return f"threshold:{float(rng.uniform(low, high)):.3g}{slack}"


def _options(kernel: Kernel, seed: int) -> tuple[ff.Instance, dict[str, object]]:
    """Draw an instance, and options that lead to this kernel."""
    places = (LAWS.index(kernel.law), GOALS.index(kernel.goal))
    rng = np.random.default_rng(
        [*places, UPLINKS.index(kernel.uplink), BOUNDARIES.index(kernel.boundary), seed]
    )
    instance = _instance(kernel.law, rng)
    radii = ["stitched", "mixture", "mixture:50"]
    if kernel.goal != "threshold":  # thresholds have no pairs of arms
        radii += ["stitched-pairs", "mixture-pairs"]
    lattices = [f"dither:{rng.uniform(0.2, 3):.3g}", f"round:{rng.uniform(0.05, 0.5):.3g}"]
    return instance, {
        "delta": float(10 ** rng.uniform(-3, -0.3)),
        "sigma": float(instance.default_sigma * rng.choice([1.0, 0.4, 0.15])),
        "radius": "paper" if kernel.boundary == "paper" else str(rng.choice(radii)),
        "uplink": "exact" if kernel.uplink == "exact" else str(rng.choice(lattices)),
        "goal": _goal(kernel.goal, instance, rng),
    }


@pytest.mark.parametrize("kernel", CHOSEN, ids=str)
def test_skip_equals_dense_and_algorithm_1(kernel: Kernel) -> None:
    skipped = 0
    for seed in range(INSTANCES):
        instance, options = _options(kernel, seed)
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
        skipped += int((skip.frame["skip_error"] > 0).sum())
        if seed < 2:
            more = {"max_steps": 1000, "seed": seed, "keep_pulls": True, **options}
            assert_as_printed(Job.of(instance, [SCHEDULES[seed]], **more), 0)  # type: ignore[arg-type]
    assert skipped, "no trial skipped a step: equality would show nothing"


def test_every_two_values_meet_in_the_default_set() -> None:
    """The default set is no sample that happens to leave a pair of values out."""
    for one, other in combinations(range(4), 2):
        wanted = {(kernel[one], kernel[other]) for kernel in ALL}
        assert {(kernel[one], kernel[other]) for kernel in COVERING} == wanted
    assert len(ALL) == 64
    assert len(COVERING) == 16
