"""Single values of the walks that the kernels follow, for those who go step by step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fastfed.engine.job import law_of, noise_of
from fastfed.kernels.laws.counts import STRETCH
from fastfed.kernels.trials import count_value, value
from fastfed.problem.instance import Instance


def walk(instance: Instance, seed: int, trial: int) -> Callable[[int, int, int], float]:
    """(arm, client, n) -> the sum of that arm's first n rewards in this trial."""
    key = np.uint64(seed)
    if instance.law is None:
        noise = noise_of(instance)
        return lambda k, m, n: float(
            value(key, trial, k, m, n, float(instance.means[k, m]), noise))
    values, shares = law_of(instance)
    scratch, steps = np.zeros((4, len(values)), np.int64), np.zeros(STRETCH)
    return lambda k, m, n: float(
        count_value(key, trial, k, m, n, values, shares[k, m], scratch, steps))
