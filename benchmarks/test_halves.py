"""Nanoseconds of one half and of one binomial draw.

Halves are timed by the number of items and of marked items, binomial draws by count and mean. A
time includes a third of a block of words.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from numba import uint64

from fastfed.kernels.compiling import kernel
from fastfed.kernels.random.binomial import binomial_from
from fastfed.kernels.random.halves import half
from fastfed.kernels.random.philox import philox
from fastfed.kernels.random.words import spare_bits

DRAWS = 300_000


@kernel
def add_up(marked, length, count):
    """Add up halves; three draws share a block, as in the walks."""
    total = 0
    seed = uint64(1)
    for i in range(count // 3):
        words = philox(seed, uint64(0), uint64(length), uint64(i), uint64(0), uint64(0))
        for place in range(3):
            total += half(
                marked,
                length,
                words[place],
                spare_bits(words[3], place),
                (seed, i, 0, place, length),
            )
    return total


@pytest.mark.benchmark(group="halves, by number of items and of marked ones")
@pytest.mark.parametrize(
    ("length", "marked"),
    [
        (2, 2),
        (8, 4),
        (8, 8),
        (32, 8),
        (32, 32),
        (64, 16),
        (64, 64),
        (128, 16),
        (128, 64),
        (128, 128),
        (512, 64),
        (512, 128),
        (512, 512),
        (2**14, 64),
        (2**14, 2**10),
        (2**14, 2**14),
        (2**20, 2**18),
        (2**30, 2**30),
        (2**40, 2**36),
    ],
    ids=lambda number: str(number),
)
def test_half(benchmark: Any, measure: Any, length: int, marked: int) -> None:
    add_up(2, 2, 3)
    total, seconds = measure(lambda: add_up(marked, length, DRAWS))
    benchmark.extra_info.update(
        {"items": 2 * length, "marked": marked, "nanoseconds_each": seconds / DRAWS * 1e9}
    )
    assert abs(total / DRAWS - marked / 2) < max(marked, 4) ** 0.5 / 50


@kernel
def add_binomials(length, p, log_rest, count):
    """Add up binomial draws; three draws share a block, as in the walks."""
    total = 0
    seed = uint64(1)
    for i in range(count // 3):
        words = philox(seed, uint64(0), uint64(length), uint64(i), uint64(0), uint64(0))
        for place in range(3):
            total += binomial_from(
                length,
                p,
                log_rest,
                (words[place], spare_bits(words[3], place)),
                (seed, i, 0, place, length),
                0,
            )
    return total


@pytest.mark.benchmark(group="binomial draws, by count and mean")
@pytest.mark.parametrize(
    ("length", "mean"),
    [
        (16, 1),
        (64, 4),
        (64, 16),
        (256, 19),
        (256, 21),
        (1024, 30),
        (1024, 300),
        (2**14, 30),
        (2**14, 2**12),
        (2**20, 2**16),
        (2**40, 2**36),
    ],
    ids=lambda number: str(number),
)
def test_binomial(benchmark: Any, measure: Any, length: int, mean: int) -> None:
    p = mean / length
    add_binomials(16, 0.5, math.log(0.5), 3)
    total, seconds = measure(lambda: add_binomials(length, p, math.log1p(-p), DRAWS))
    benchmark.extra_info.update(
        {"count": length, "mean": mean, "nanoseconds_each": seconds / DRAWS * 1e9}
    )
    assert abs(total / DRAWS - mean) < 10 * (mean / DRAWS) ** 0.5
