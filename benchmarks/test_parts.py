"""Generator, normals, the sweep end to end, reading back, start-up, first compile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numba import uint64

from fastfed.kernels.compiling import kernel
from fastfed.kernels.normal import first_words, normal_from
from fastfed.sweep import sweep

DRAWS = 1_000_000


@kernel
def words(count):
    mixed = uint64(0)
    for i in range(count // 4):
        a, b, c, d = first_words(uint64(1), i, 0, 0, 8)
        mixed ^= a ^ b ^ c ^ d
    return mixed


@kernel
def normals(count):
    total = 0.0
    for i in range(count // 4):
        block = first_words(uint64(1), i, 0, 0, 8)
        for k in range(4):
            total += normal_from(block[k], uint64(1), i, 0, k, 8)
    return total


@pytest.mark.benchmark(group="generator, a million draws")
@pytest.mark.parametrize("draw", [words, normals], ids=["Philox words", "normals"])
def test_generator(benchmark: Any, draw: Any) -> None:
    draw(4)
    benchmark.pedantic(draw, args=(DRAWS,), rounds=10, warmup_rounds=1)
    benchmark.extra_info["draws_a_second"] = DRAWS / benchmark.stats.stats.min


@pytest.mark.benchmark(group="sweep, default grid, 10,000 trials")
def test_sweep(benchmark: Any, tmp_path: Path) -> None:
    """End to end, against the kernels' own time on the same threads."""
    import time

    from fastfed import executors

    spent: list[float] = []
    real = executors.compute

    def timed(task: Any, control: Any = None) -> Any:
        from fastfed.simulate import Job

        job = Job(task.instance, task.schedules, delta=task.cell.delta, seed=task.cell.seed)
        begin = time.perf_counter()
        job.run(task.first, task.count, control)
        spent.append(time.perf_counter() - begin)
        return real(task, control)

    sweep(out=tmp_path / "warm", trials=10)
    numbers = iter(range(1000))

    def run() -> None:
        sweep(out=tmp_path / str(next(numbers)), trials=10_000)

    benchmark.pedantic(run, rounds=3)
    executors.compute = timed
    try:
        sweep(out=tmp_path / "split", trials=10_000)
    finally:
        executors.compute = real
    threads = len(os.sched_getaffinity(0))
    benchmark.extra_info.update({
        "rows_a_second": 450_000 / benchmark.stats.stats.min,
        "wall_over_kernels": benchmark.stats.stats.min / (sum(spent) / threads)})


@pytest.mark.benchmark(group="reading back")
def test_reading_back(benchmark: Any, tmp_path: Path) -> None:
    sweep(out=tmp_path, trials=10_000, deltas=[0.01])
    total = pl.scan_parquet(tmp_path / "trials" / "*.parquet").group_by("schedule").agg(
        (pl.col("pulls") + 10 * pl.col("uplinks")).mean())
    frame = benchmark(total.collect)
    assert frame.height == 9


def _fresh(code: str, cache: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment,
                   stdout=subprocess.DEVNULL)


ONE_TRIAL = ("import fastfed as ff; "
             "ff.simulate(ff.Instance.load('synthetic'), delta=0.01, trials=1)")


@pytest.mark.benchmark(group="start-up")
def test_help(benchmark: Any, tmp_path: Path) -> None:
    benchmark.pedantic(_fresh, args=("from fastfed.cli import run; run(['--help'])", tmp_path),
                       rounds=5)


@pytest.mark.benchmark(group="start-up")
def test_first_call_empty_cache(benchmark: Any, tmp_path: Path) -> None:
    numbers = iter(range(100))
    benchmark.pedantic(lambda: _fresh(ONE_TRIAL, tmp_path / str(next(numbers))), rounds=2)


@pytest.mark.benchmark(group="start-up")
def test_first_call_warm_cache(benchmark: Any, tmp_path: Path) -> None:
    _fresh(ONE_TRIAL, tmp_path)
    benchmark.pedantic(_fresh, args=(ONE_TRIAL, tmp_path), rounds=5)


def test_draws_are_drawn() -> None:
    assert np.isfinite(normals(1000))
