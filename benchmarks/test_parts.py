"""Generator, normals, start-up, first compile."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numba import uint64

from fastfed.kernels.compiling import kernel
from fastfed.kernels.random.normal import normal_from
from fastfed.kernels.random.philox import philox

DRAWS = 1_000_000
HERE = Path(__file__).parent


@kernel
def words(count):
    """As many words of the generator, mixed into one."""
    mixed = uint64(0)
    for i in range(count // 4):
        a, b, c, d = philox(uint64(1), uint64(0), uint64(i), uint64(0), uint64(0), uint64(0))
        mixed ^= a ^ b ^ c ^ d
    return mixed


@kernel
def normals(count):
    """Add up standard normals."""
    total = 0.0
    for i in range(count // 4):
        block = philox(uint64(1), uint64(0), uint64(i), uint64(0), uint64(0), uint64(0))
        for k in range(4):
            total += normal_from(block[k], uint64(1), 0, 0, k, i)
    return total


@pytest.mark.benchmark(group="generator, a million draws")
@pytest.mark.parametrize("draw", [words, normals], ids=["Philox words", "normals"])
def test_generator(benchmark: Any, measure: Any, draw: Callable[[int], float]) -> None:
    draw(4)
    total, seconds = measure(lambda: draw(DRAWS))
    benchmark.extra_info["draws_a_second"] = DRAWS / seconds
    assert draw is words or abs(total) < 5 * DRAWS**0.5


def fresh(code: str, cache: Path) -> dict[str, float]:
    """Run code in a Python of its own, with its own cache of kernels; its peak memory."""
    tell = (
        "import atexit, json, sys, memory; peak = memory.watch(); "
        "atexit.register(lambda: print(json.dumps(peak()), file=sys.stderr)); "
    )
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", tell + code],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stderr.splitlines()[-1])


HELP = "from fastfed.cli.app import run; run(['--help'])"
ONE_TRIAL = "import fastfed as ff; ff.simulate(ff.Instance.load('synthetic'), delta=0.01, trials=1)"


@pytest.mark.benchmark(group="start-up")
def test_help(benchmark: Any, tmp_path: Path) -> None:
    """The command line, from nothing to its help."""
    peak = benchmark.pedantic(fresh, args=(HELP, tmp_path), rounds=5, warmup_rounds=1)
    benchmark.extra_info.update(peak)


@pytest.mark.benchmark(group="start-up")
def test_first_call_empty_cache(benchmark: Any, tmp_path: Path) -> None:
    """The first compile."""
    numbers = itertools.count()
    peak = benchmark.pedantic(lambda: fresh(ONE_TRIAL, tmp_path / str(next(numbers))), rounds=2)
    benchmark.extra_info.update(peak)


@pytest.mark.benchmark(group="start-up")
def test_first_call_warm_cache(benchmark: Any, tmp_path: Path) -> None:
    peak = benchmark.pedantic(fresh, args=(ONE_TRIAL, tmp_path), rounds=5, warmup_rounds=1)
    benchmark.extra_info.update(peak)
