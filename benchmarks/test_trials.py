"""What a trial costs, on one thread: schedules, instances, hardness, size."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import EIGHT

from fastfed import Instance

Timer = Callable[..., None]


@pytest.mark.benchmark(group="schedules")
@pytest.mark.parametrize("schedules", [["fedelim"], ["fedelim0"], EIGHT],
                         ids=["fedelim", "fedelim0", "eight at once"])
def test_schedules(time_trials: Timer, schedules: list[str]) -> None:
    time_trials(Instance.load("synthetic"), schedules, 500)


@pytest.mark.benchmark(group="instances, fedelim")
@pytest.mark.parametrize(("name", "count"), [
    ("synthetic", 500), ("bernoulli", 100), ("movielens", 3), ("random:20,38,1", 5),
    ("random:100,100,1", 1),
])
def test_instances(time_trials: Timer, name: str, count: int) -> None:
    time_trials(Instance.load(name), ["fedelim"], count, rounds=5)


@pytest.mark.benchmark(group="hardness: means times")
@pytest.mark.parametrize("factor", ["1", "0.1", "0.01", "0.001"])
def test_hardness(time_trials: Timer, factor: str) -> None:
    time_trials(Instance.load(f"scaled:synthetic,{factor}"), ["fedelim"], 100)


@pytest.mark.benchmark(group="scaling in arms")
@pytest.mark.parametrize("arms", [2, 4, 8, 16, 32])
def test_arms(time_trials: Timer, arms: int) -> None:
    time_trials(Instance.load(f"random:{arms},4,7"), ["fedelim"], 20, rounds=5)


@pytest.mark.benchmark(group="scaling in clients")
@pytest.mark.parametrize("clients", [1, 2, 4, 8, 16, 32])
def test_clients(time_trials: Timer, clients: int) -> None:
    time_trials(Instance.load(f"random:4,{clients},7"), ["fedelim"], 20, rounds=5)


@pytest.mark.benchmark(group="engines, bernoulli, fedelim")
@pytest.mark.parametrize("engine", ["skip", "dense"])
@pytest.mark.parametrize("factor", [1.0, 0.1], ids=["gaps x 1", "gaps x 0.1"])
def test_engines(time_trials: Timer, engine: str, factor: float) -> None:
    from fastfed import Bernoulli

    if engine == "dense" and factor < 1:
        count = 1
    else:
        count = 20
    means = 0.5 + factor * (Instance.load("bernoulli").means - 0.5)
    time_trials(Instance(means, Bernoulli(), name=f"bernoulli, gaps x {factor:g}"), ["fedelim"],
                count, engine=engine, rounds=3)
