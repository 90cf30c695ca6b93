"""The same trials as a user would run them without fastfed, in the same run, on one thread.

A baseline's time counts only if its mean pulls agree with fastfed's, within five standard errors.
"""

from __future__ import annotations

import math
from typing import Any

import baselines
import numpy as np
import pytest

from fastfed import Instance, simulate
from fastfed.simulate import Job

DELTA = 0.01


def _check(pulls: np.ndarray, instance: Instance) -> None:
    exact = simulate(instance, delta=DELTA, trials=4_000).frame["pulls"].to_numpy()
    error = math.sqrt(exact.var() / len(pulls) + exact.var() / len(exact))
    assert abs(pulls.mean() - exact.mean()) < 5 * error


@pytest.mark.benchmark(group="against baselines, synthetic, fedelim, delta 0.01")
@pytest.mark.parametrize(("name", "trials"), [
    ("literal", 20), ("numpy_batch", 100), ("numba_plain", 50), ("numba_stepper", 100)])
def test_baseline(benchmark: Any, name: str, trials: int) -> None:
    instance = Instance.load("synthetic")
    run = getattr(baselines, name)
    means = np.array(instance.means)
    if name.startswith("numba"):
        run(means, DELTA, 1)
    pulls = benchmark.pedantic(run, args=(means, DELTA, trials), rounds=5)
    _check(pulls, instance)
    best = benchmark.stats.stats.min
    benchmark.extra_info.update({
        "microseconds_a_trial": best / trials * 1e6, "trials_a_second": trials / best,
        "pulls_a_trial": float(pulls.mean())})


@pytest.mark.benchmark(group="against baselines, synthetic, fedelim, delta 0.01")
def test_fastfed(time_trials: Any) -> None:
    time_trials(Instance.load("synthetic"), ["fedelim"], 500)


@pytest.mark.benchmark(group="threads, synthetic, eight schedules")
@pytest.mark.parametrize("threads", [1, 2])
def test_threads(benchmark: Any, threads: int) -> None:
    from conftest import EIGHT

    instance = Instance.load("synthetic")
    Job(instance, EIGHT, delta=DELTA).run(0, 1)
    benchmark.pedantic(
        simulate, args=(instance, EIGHT), rounds=5,
        kwargs={"delta": DELTA, "trials": 10_000, "threads": threads})
    benchmark.extra_info["trials_a_second"] = 10_000 / benchmark.stats.stats.min
