"""A walk is a pure function of its address, and its increments are those of i.i.d. rewards.

Statistical tests: fixed seeds, false-alarm probability 1e-6 for each test, split evenly over
what it compares.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fastfed.kernels.compiling import from_python, kernel
from fastfed.kernels.random import normal
from fastfed.kernels.rewards import gaussian_walk

ALARM = 1e-6
TRIALS = 20_000

value_at = from_python(gaussian_walk.value_at)
value_between = from_python(gaussian_walk.value_between)
standard_normal = from_python(normal.standard_normal)


@kernel
def _sums(out, seed, arm, client, steps, mu, sigma):
    for trial in range(out.shape[0]):
        for i in range(steps.size):
            out[trial, i] = value_at((seed, trial, client, arm, steps[i]), mu, sigma)


def increments(steps, *, seed=5, arm=0, client=0, mu=0.0, sigma=1.0, trials=TRIALS) -> np.ndarray:
    """X(n) - X(n') between consecutive steps (from 0), standardised: i.i.d. N(0, 1) if right."""
    steps = np.array(steps, dtype=np.int64)
    sums = np.empty((trials, len(steps)))
    _sums(sums, np.uint64(seed), arm, client, steps, mu, sigma)
    length = np.diff(steps, prepend=0).astype(float)
    return (np.diff(sums, prepend=0.0) - mu * length) / (sigma * np.sqrt(length))


def assert_standard(z: np.ndarray) -> None:
    """Columns of mean 0, variance 1 and correlation 0: ALARM / 3 for each of the three."""
    count, width = z.shape
    share = ALARM / 3 / 2
    means = z.mean(axis=0) * math.sqrt(count)
    assert np.abs(means).max() < stats.norm.isf(share / width)
    squares = (z**2).sum(axis=0)
    assert squares.max() < stats.chi2.isf(share / width, count)
    assert squares.min() > stats.chi2.ppf(share / width, count)
    products = (z.T @ z)[np.triu_indices(width, 1)] / math.sqrt(count)
    if len(products):
        assert np.abs(products).max() < stats.norm.isf(share / len(products))


STEPS = {
    "every step of 20": range(1, 21),
    "interior": [3, 5, 6, 7, 11, 13, 22, 23, 27, 50, 99, 100, 101, 777, 1000, 1001],
    "powers of two": [2**t for t in range(0, 53, 2)],
    "around a power of two": [2**20 - 3, 2**20 - 2, 2**20 - 1, 2**20, 2**20 + 1, 2**20 + 2],
    "huge": [
        2**40,
        2**40 + 1,
        3 * 2**39,
        2**41 - 5,
        2**50 + 12345,
        2**51 + 2**13,
        2**52 - 2**20,
        2**52 - 1,
        2**52,
    ],
    "all over": [1, 2, 3, 10, 64, 65, 4095, 4097, 10**6, 10**9, 10**12, 10**15, 4 * 10**15],
}


@pytest.mark.statistical
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_increments_over_disjoint_intervals(steps):
    assert_standard(increments(steps))


@pytest.mark.statistical
def test_a_mean_and_a_noise():
    assert_standard(increments([1, 2, 3, 100, 1000, 1024, 10_000], mu=-0.7, sigma=2.5, arm=5))


@pytest.mark.statistical
def test_increments_are_normal_not_only_uncorrelated():
    z = increments(STEPS["interior"], seed=6, trials=10_000)
    assert stats.kstest(z.ravel(), "norm").pvalue > ALARM / 2
    # squares of different increments are uncorrelated too
    square = (z**2 - 1) / math.sqrt(2)
    products = (square.T @ square)[np.triu_indices(z.shape[1], 1)] / math.sqrt(len(z))
    # products of such squares have heavy tails: normal at 20 % more than the nominal limit
    assert np.abs(products).max() < 1.2 * stats.norm.isf(ALARM / 4 / len(products))


@pytest.mark.statistical
def test_walks_of_different_addresses_are_independent():
    steps = [1, 7, 64, 1000]
    assert_standard(
        np.hstack(
            [
                increments(steps, seed=5, arm=0, client=0),
                increments(steps, seed=5, arm=1, client=0),
                increments(steps, seed=5, arm=4, client=0),
                increments(steps, seed=5, arm=0, client=1),
                increments(steps, seed=6, arm=0, client=0),
                np.roll(increments(steps, seed=5), 1, axis=0),
            ]
        )
    )


def definition(n: int, address: tuple[int, int, int, int], mu: float, sigma: float) -> float:
    """X(n) as the construction is written, recursively."""
    seed, trial, arm, client = address
    z = standard_normal(np.uint64(seed), trial, client, arm, n)
    s = n & -n
    if n == 1:
        return mu + sigma * z
    if s == n:
        half = n // 2
        return definition(half, address, mu, sigma) + (mu * half + sigma * math.sqrt(half) * z)
    ends = definition(n - s, address, mu, sigma) + definition(n + s, address, mu, sigma)
    return ends / 2 + sigma * math.sqrt(s / 2) * z


def value(seed, trial, arm, client, n, mu, sigma):
    return value_at((np.uint64(seed), trial, client, arm, n), mu, sigma)


@pytest.mark.parametrize("n", [*range(1, 8), 12, 100, 255, 256, 257, 1000, 4096, 5000, 2**20])
def test_the_construction_as_written(n):
    for address in [(1, 0, 0, 0), (2**64 - 1, 10**6, 6, 3)]:
        for mu, sigma in [(0.0, 1.0), (-0.3, 2.0)]:
            expected = definition(n, address, mu, sigma)
            seed, trial, arm, client = address
            found = value(np.uint64(seed), trial, arm, client, n, mu, sigma)
            assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("a", [2, 4, 8, 16, 64, 2**21, 2**22])
def test_between_spine_nodes_the_walk_is_the_same(a: int) -> None:
    """Every step of a short octave, and steps of all depths of a long one."""
    seed, trial, client, arm, mu, sigma = np.uint64(7), 3, 2, 5, 0.3, 0.9
    steps = np.arange(a + 1, 2 * a) if a <= 64 else a + (a >> np.arange(1, 21))
    ends = [value_at((seed, trial, client, arm, n), mu, sigma) for n in (a, 2 * a)]
    for n in steps:
        address = (seed, trial, client, arm, int(n))
        assert value_between(address, a, (ends[0], ends[1]), sigma) == value_at(address, mu, sigma)
