"""Instances and goals for the tests of goals: sixteen of each law, with goals that fit them."""

from __future__ import annotations

import numpy as np

import fastfed as ff

SCHEDULES = [
    "fedelim",
    "fedelim0",
    "periodic:7",
    "exponential:1.5",
    "superexponential",
    "at:1,5,25,125,3125",
]
FAMILIES = ("top", "eps", "threshold")
LAWS = ("gaussian", "cells", "finite", "poisson")


def _make(law: str, rng: np.random.Generator) -> ff.Instance:
    arms, clients = int(rng.integers(2, 8)), int(rng.integers(1, 5))
    means = rng.uniform(-1, 1, (arms, clients))
    if law == "gaussian":
        return ff.Instance(means)
    if law == "cells":
        return ff.Instance(means, ff.Gaussian(10 ** rng.uniform(-1, 0.3, (arms, clients))))
    if law == "poisson":
        return ff.Instance(1 + means, ff.Poisson(sigma=1.2))
    weights = rng.integers(1, 9, (arms, clients, 3)) + rng.random((arms, clients, 3))
    return ff.Instance(rewards=ff.Finite([-1.0, 0.25, 1.0], weights))


def _goal(family: str, instance: ff.Instance, rng: np.random.Generator) -> str:
    low, high = float(instance.means.min()), float(instance.means.max())
    if family == "top":
        return f"top:{int(rng.integers(1, instance.shape[0]))}"
    if family == "eps":
        return f"eps:{float(rng.uniform(0.01, high - low)):.3g}"
    slack = "" if rng.random() < 0.5 else f",{float(rng.uniform(0.01, 0.3)):.3g}"
    return f"threshold:{float(rng.uniform(low, high)):.3g}{slack}"


def cases(family: str, law: str, count: int = 16) -> list[tuple[ff.Instance, str]]:
    """So many random instances of 2 to 7 arms at 1 to 4 clients, each with a goal."""
    rng = np.random.default_rng([FAMILIES.index(family), LAWS.index(law)])
    made = (_make(law, rng) for _ in range(count))
    return [(instance, _goal(family, instance, rng)) for instance in made]
