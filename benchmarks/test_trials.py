"""Times of a trial on one thread, by schedule, instance, hardness and goal; and on more threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from work import CORES, EIGHT, Work

from fastfed import Gaussian, Instance, simulate

Timer = Callable[..., None]


@pytest.mark.benchmark(group="a trial")
@pytest.mark.parametrize(
    "schedules", [["fedelim"], ["fedelim0"], EIGHT], ids=["fedelim", "fedelim0", "eight schedules"]
)
@pytest.mark.parametrize(
    ("instance", "count"),
    [
        pytest.param("synthetic", 200, id="synthetic"),
        pytest.param("bernoulli", 50, id="bernoulli"),
        pytest.param("movielens", 5, id="movielens"),
        pytest.param("random:20,38,1", 5, id="random:20,38"),
        pytest.param("random:100,100,1", 2, id="random:100,100"),
    ],
)
def test_trial(time_trials: Timer, instance: str, count: int, schedules: list[str]) -> None:
    time_trials(Instance.load(instance), schedules, count)


@pytest.mark.benchmark(group="a trial")
@pytest.mark.parametrize(
    "schedules", [["fedelim"], ["fedelim0"], EIGHT], ids=["fedelim", "fedelim0", "eight schedules"]
)
@pytest.mark.parametrize(
    ("instance", "noise", "count"),
    [
        pytest.param("bernoulli", 0.5, 100, id="bernoulli"),
        pytest.param("movielens", 1.0, 5, id="movielens"),
    ],
)
def test_twin(
    time_trials: Timer, instance: str, noise: float, count: int, schedules: list[str]
) -> None:
    """Time Gaussian rewards of the same means, confidence scale and about the same noise.

    The difference to the discrete rewards is the price of these.
    """
    means = Instance.load(instance).means
    twin = Instance(means, Gaussian(sigma=noise), name=f"{instance}, Gaussian twin")
    time_trials(twin, schedules, count, sigma=Instance.load(instance).default_sigma)


@pytest.mark.benchmark(group="hardness, synthetic, fedelim: means times")
@pytest.mark.parametrize("factor", ["1", "0.1", "0.01", "0.001"])
def test_hardness(time_trials: Timer, factor: str) -> None:
    time_trials(Instance.load(f"scaled:synthetic,{factor}"), ["fedelim"], 200)


@pytest.mark.benchmark(group="goals, four arms at two clients, fedelim")
@pytest.mark.parametrize("factor", [1.0, 0.1, 0.01], ids=lambda one: f"means x {one:g}")
@pytest.mark.parametrize(
    "goal",
    ["best", "top:1", "top:2", "eps:{:g}", "threshold:{:g}"],
    ids=["best", "top 1", "top 2", "eps", "threshold"],
)
def test_goals(time_trials: Timer, goal: str, factor: float) -> None:
    means = factor * np.array([[0.9, 0.5], [0.4, 0.7], [0.2, -0.3], [-0.4, 0.1]])
    time_trials(
        Instance(means, name=f"four arms x {factor:g}"),
        ["fedelim"],
        100,
        goal=goal.format(0.31 * factor),
    )


@pytest.mark.benchmark(group="scaling in threads, synthetic, eight schedules")
@pytest.mark.parametrize("threads", sorted({2**p for p in range(7) if 2**p <= CORES} | {CORES}))
def test_threads(benchmark: Any, measure: Any, threads: int) -> None:
    """With the frame of the rows, as a user calls it."""
    instance = Instance.load("synthetic")
    result, seconds = measure(
        lambda: simulate(instance, EIGHT, delta=0.01, trials=10_000, threads=threads), rounds=7
    )
    work = Work()
    work.add(result.block)
    benchmark.extra_info.update({"threads": threads, **work.told(seconds)})
