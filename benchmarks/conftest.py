"""Fixtures of the benchmarks.

Everything but first calls is warmed up before it is timed. `extra_info` records the work that a
time was for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import memory
import pytest
from work import Work

from fastfed import Instance
from fastfed.simulation.job import Job


@pytest.fixture
def measure(benchmark: Any) -> Callable[..., tuple[Any, float]]:
    """Time a call and watch its memory; what it returns, and the seconds of its best round.

    Without a number of rounds they fill a second and a half: on a busy machine the best of many
    short rounds says what the best of a few does not.
    """

    def run(call: Callable[[], Any], *, rounds: int | None = None) -> tuple[Any, float]:
        peak = memory.watch()
        if rounds is None:
            begin = time.perf_counter()
            call()
            rounds = max(3, min(500, int(1.5 / (time.perf_counter() - begin))))
        result = benchmark.pedantic(call, rounds=rounds)
        benchmark.extra_info.update(peak())
        return result, benchmark.stats.stats.min

    return run


@pytest.fixture
def time_trials(benchmark: Any, measure: Callable[..., tuple[Any, float]]) -> Callable[..., None]:
    """Time ``count`` trials of a job on this thread, best of several rounds."""

    def run(
        instance: Instance,
        schedules: list[str],
        count: int,
        *,
        delta: float = 0.01,
        sigma: float | None = None,
        goal: str = "best",
    ) -> None:
        job = Job.of(instance, schedules, delta=delta, sigma=sigma, goal=goal)
        job.run(0, 1)  # compiles
        block, seconds = measure(lambda: job.run(0, count))
        work = Work()
        work.add(block)
        arms, clients = instance.shape
        benchmark.extra_info.update(
            {
                "instance": instance.name,
                "arms": arms,
                "clients": clients,
                "engine": job.engine,
                **work.told(seconds),
            }
        )

    return run
