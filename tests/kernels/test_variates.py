"""The laws of the variates against SciPy and against 60 digits.

Each statistical test has a fixed seed; chosen afresh, it would fail a correct program with
probability 1e-6 in all (the level of each test is 1e-6 over the number of comparisons it makes).
"""

from __future__ import annotations

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from goodness_of_fit import FALSE_ALARM, LARGE, SEED, law_fits, log_factorial, moments_fit, smirnov
from scipy import stats
from scipy.special import gammaln

from fastfed.kernels.compiling import from_python, kernel
from fastfed.kernels.random import discrete as variates
from fastfed.kernels.random.binomial import binomial_cells as compiled_cells
from fastfed.kernels.random.discrete import hypergeometric

binomial_cells, hypergeometric_cells, log_ratio, hat_width = map(
    from_python,
    (compiled_cells, variates.hypergeometric_cells, variates.log_ratio, variates.hat_width),
)


pytestmark = pytest.mark.statistical


@kernel
def draw_hypergeometric(good, bad, draws, seed, out):
    for trial in range(out.shape[0]):
        out[trial] = hypergeometric(good, bad, draws, (seed, trial, 2, 3, 8), 0)


@kernel
def draw_half(successes, total, seed, out):
    for trial in range(out.shape[0]):
        out[trial] = hypergeometric(
            successes, total - successes, total // 2, (seed, trial, 2, 3, 8), 0
        )


def hypergeometrics(good, bad, draws, size, seed=SEED):
    out = np.zeros(size, np.int64)
    draw_hypergeometric(good, bad, draws, seed, out)
    return out


HYPERGEOMETRICS = [
    (1, 1, 1), (2, 6, 4), (4, 60, 40), (5, 5, 5), (9, 3, 4), (20, 12, 16), (31, 31, 31),
    (32, 32, 32), (33, 31, 32), (64, 192, 128), (200, 56, 128), (300, 500, 90), (500, 300, 700),
    (90, 2**20, 2**19), (2**19, 60, 2**18), (3000, 2**20, 8000), (3000, 5000, 4000),
]  # fmt: skip


@pytest.mark.parametrize(("good", "bad", "draws"), HYPERGEOMETRICS)
def test_hypergeometric_against_scipy(good, bad, draws):
    sample = hypergeometrics(good, bad, draws, 400_000)
    law = stats.hypergeom(good + bad, good, draws)
    level = FALSE_ALARM / len(HYPERGEOMETRICS)
    assert law_fits(sample, law, max(0, draws - bad), min(good, draws)) > level


@pytest.mark.parametrize("part", [2, 4, 100])
@pytest.mark.parametrize("total", LARGE)
def test_large_half_moments(total, part):
    good = total // part
    sample = np.zeros(400_000, np.int64)
    draw_half(good, total, SEED, sample)
    z = moments_fit(
        sample, good / 2, good * (1 - good / total) * 0.25 / (1 - 1 / total), comparisons=3 * 12
    )
    law = stats.hypergeom(total, good, total // 2).cdf if total == 2**20 else None
    assert smirnov(sample, z, law) > FALSE_ALARM / (3 * 12)


def test_large_hypergeometric_moments():
    """Any draws, not only half of the items; and a kind that is rare among very many."""
    cases = [(2**40, 2**39, 2**38), (2**30, 2**41, 2**20), (3 * 2**38, 2**38, 2**39 + 12345)]
    for good, bad, draws in cases:
        total = good + bad
        share = good / total
        variance = draws * share * (1 - share) * (total - draws) / (total - 1)
        sample = hypergeometrics(good, bad, draws, 400_000)
        z = moments_fit(sample, draws * share, variance, 9)
        law = stats.hypergeom(total, good, draws).cdf if variance < 1e6 else None
        assert smirnov(sample, z, law) > FALSE_ALARM / 9


@pytest.mark.parametrize("size", [0, 1, 2, 3, 100, 2**39, 2**51])
def test_hypergeometric_edges(size):
    assert (hypergeometrics(0, size, size // 2, 100) == 0).all()
    assert (hypergeometrics(size, 0, size // 2, 100) == size // 2).all()
    assert (hypergeometrics(size, size, 0, 100) == 0).all()
    assert (hypergeometrics(size, size, 2 * size, 100) == size).all()
    if size:
        one = hypergeometrics(1, 2 * size - 1, size, 100)
        assert set(one) == {0, 1}
        but_one = hypergeometrics(2 * size - 1, 1, size, 100)
        assert set(but_one) == {size - 1, size}


def test_log_ratio_keeps_its_digits():
    getcontext().prec = 80
    rng = np.random.default_rng(3)
    worst = 0.0
    for i in range(600):
        total = int(2 ** rng.uniform(6, 52))
        z = rng.uniform(-8, 8)
        if i % 2:
            p = float(min(0.5, max(20 / total, 2 ** rng.uniform(-20, -1))))
            cells = binomial_cells(total, p)
            variance = total * p * (1 - p)
            linear = Decimal(p).ln() - (1 - Decimal(p)).ln()
        else:
            draws = int(rng.integers(total // 3, total // 2 + 1))
            good = int(min(draws, max(60, draws * 2 ** rng.uniform(-20, 0))))
            if good * draws / total < 16:
                continue
            cells = hypergeometric_cells(good, draws, total)
            variance = good * (draws / total) * (1 - good / total) * (1 - draws / total)
            linear = Decimal(0)
        *cells, tilt = cells[:5]
        t = int(z * math.sqrt(variance))
        whole = [(int(c), s) for c, s in zip(cells, (1, -1, -1, 1), strict=True) if c < math.inf]
        if any(c + s * t < 0 for c, s in whole):
            continue
        exact = t * linear + sum(log_factorial(c) - log_factorial(c + s * t) for c, s in whole)
        if exact > -40:
            got = log_ratio(*cells, tilt, float(t))
            worst = max(worst, abs(float(Decimal(got) - exact)))
    assert worst < 4e-13


def excess_of_hat(log_p, k, mean, variance):
    """Return by how many cells the hat is too narrow."""
    reach = np.maximum(abs(k - mean - 0.5), abs(k + 0.5 - mean))
    return (np.exp((log_p - log_p.max()) / 2) * reach).max() - hat_width(variance) / 2


def test_the_hat_covers_its_law():
    """At all small parameters that are rejected from it, and at a sample of larger ones."""
    log_factorials = gammaln(np.arange(200_001) + 1.0)

    def of_hypergeometric(good, draws, total):
        k = np.arange(good + 1)
        log_p = -sum(log_factorials[c] for c in (k, good - k, draws - k, total - good - draws + k))
        mean = good * draws / total
        return excess_of_hat(log_p, k, mean, mean * (1 - good / total) * (1 - draws / total))

    least = variates._INVERTED
    for total in range(64, 120):
        for draws in range(32, total // 2 + 1):
            for good in range(math.ceil(least * total / draws), draws + 1):
                assert of_hypergeometric(good, draws, total) < -0.039
    rng = np.random.default_rng(4)
    for _ in range(2000):
        total = int(2 ** rng.uniform(7, 17))
        draws = int(total * rng.uniform(0.05, 0.5))
        good = int(draws * 2 ** rng.uniform(-8, 0))
        if good * draws >= least * total:
            assert of_hypergeometric(good, draws, total) < -0.039


@kernel
def count_near_the_middle(good, bad, draws, low, high, seed, size):
    """Count the variates that lie in low .. high."""
    found = 0
    for trial in range(size):
        k = hypergeometric(good, bad, draws, (seed, trial, 2, 3, 8), 0)
        found += 1 if low <= k <= high else 0
    return found


@pytest.mark.slow
def test_acceptance_at_the_top_of_the_law():
    """Compare the share of 60 million variates near the mode with SciPy.

    An acceptance that is wrong by a hundredth of p(k) / p(mode) moves the share by a thousandth of
    itself, or more.
    """
    law, size = stats.hypergeom(4000, 1500, 1200), 60_000_000
    low, high = 446, 454  # the mean is 450, sigma 14
    share = law.cdf(high) - law.cdf(low - 1)
    found = count_near_the_middle(1500, 2500, 1200, low, high, SEED, size)
    z = (found - size * share) / math.sqrt(size * share * (1 - share))
    assert 2 * stats.norm.sf(abs(z)) > FALSE_ALARM
