"""Everything is warmed up before it is timed; `extra_info` says what a time was for."""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Any

import pytest

from fastfed import Instance
from fastfed.simulate import Job

EIGHT = ["fedelim", *(f"periodic:{10**p}" for p in range(6)), "superexponential"]


@pytest.fixture
def time_trials(benchmark: Any) -> Callable[..., None]:
    """Time ``count`` trials of a job on this thread, best of several rounds."""

    def run(instance: Instance, schedules: list[str], count: int, *, delta: float = 0.01,
            engine: str = "auto", rounds: int = 15) -> None:
        job = Job(instance, schedules, delta=delta, engine=engine)
        block = job.run(0, count)  # compiles, and tells how much work it is
        benchmark.pedantic(job.run, args=(0, count), rounds=rounds, warmup_rounds=1)
        pulls = float(block.ints[:, :, 0].sum()) / count
        best = benchmark.stats.stats.min
        benchmark.extra_info.update({
            "instance": instance.name, "engine": job.engine, "trials": count,
            "microseconds_a_trial": best / count * 1e6, "trials_a_second": count / best,
            "pulls_a_trial": pulls, "pulls_a_second": pulls * count / best,
            "intervals_a_trial": float(block.work[:, 0].mean()),
            "draws_a_trial": float(block.work[:, 1].mean()),
            "peak_memory_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        })

    return run
