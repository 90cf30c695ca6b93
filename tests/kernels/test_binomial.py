"""The binomial variates: their laws against SciPy, and what their rejection rests on.

Each statistical test has a fixed seed; chosen afresh, it would fail a correct program with
probability 1e-6 in all (the level of each test is 1e-6 over the number of comparisons it makes).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from goodness_of_fit import FALSE_ALARM, LARGE, SEED, law_fits, moments_fit, smirnov
from scipy import stats

from fastfed.kernels.compiling import from_python, kernel
from fastfed.kernels.random import binomial as module
from fastfed.kernels.random.binomial import INVERTED, binomial

hat, box, guess, exact_share = map(
    from_python, (module.hat, module.box, module.guess, module.exact_share)
)


pytestmark = pytest.mark.statistical


@kernel
def draw(count, p, seed, out):
    for trial in range(out.shape[0]):
        out[trial] = binomial(count, p, (seed, trial, 2, 3, 8), 0)


def binomials(count, p, size, seed=SEED):
    out = np.zeros(size, np.int64)
    draw(count, p, seed, out)
    return out


CASES = [
    (1, 0.3),
    (2, 0.5),
    (5, 0.9),
    (30, 0.07),
    (39, 0.5),
    (40, 0.5),
    (41, 0.5),
    (50, 0.6),
    (100, 0.19),
    (100, 0.2),
    (100, 0.21),
    (100, 0.81),
    (130, 0.15),
    (1000, 0.0199),
    (1000, 0.0201),
    (1000, 0.99),
    (1000, 0.4),
    (5000, 0.3),
    (10**5, 0.01),
    (10**6, 2.1e-5),
    (2**40, 30 / 2**40),
]


@pytest.mark.parametrize(("count", "p"), CASES)
def test_law_against_scipy(count, p):
    """Inversion and rejection, on both sides of the border between them, and either kind of p."""
    sample = binomials(count, p, 400_000)
    highest = min(count, int(count * p + 40 * math.sqrt(count * p) + 40))
    assert law_fits(sample, stats.binom(count, p), 0, highest) > FALSE_ALARM / len(CASES)


@pytest.mark.parametrize("p", [0.5, 0.25, 0.9, 0.01])
@pytest.mark.parametrize("count", LARGE)
def test_moments_of_large_ones(count, p):
    sample = binomials(count, p, 400_000)
    z = moments_fit(sample, count * p, count * p * (1 - p), comparisons=3 * 16)
    law = stats.binom(count, p).cdf if count == 2**20 else None
    assert smirnov(sample, z, law) > FALSE_ALARM / (3 * 16)


@pytest.mark.parametrize("count", [0, 1, 5, 1000, 2**40, 2**52])
def test_edges(count):
    assert (binomials(count, 0.0, 100) == 0).all()
    assert (binomials(count, 1.0, 100) == count).all()
    assert (binomials(count, 1e-300, 100) == 0).all()


def law_around(count, p, sigmas):
    """Return t and ln p(m + t) / p(m) for |t| <= sigmas, and (n + 1) p - m.

    Each logarithm is computed from its neighbour.
    """
    q, top = 1 - p, (count + 1) * p
    mode = math.floor(top)
    excess = top - mode
    far = int(sigmas * math.sqrt(count * p * q)) + 3
    up = np.arange(1, min(count - mode, far) + 1)
    down = np.arange(min(mode, far))
    rising = np.cumsum(np.log1p(-(up - excess) / ((mode + up) * q)))
    falling = np.cumsum(-np.log1p((down + excess) / ((mode - down) * q)))
    t = np.concatenate([-(down[::-1] + 1), [0], up]).astype(float)
    return t, np.concatenate([falling[::-1], [0.0], rising]), excess


def parameters():
    """List means from the least mean that uses rejection, and p from 1/2 downwards.

    The hat is tightest at the least mean. At the smallest p the distribution is nearly Poisson's.
    """
    rng = np.random.default_rng(5)
    for mean in np.concatenate([np.linspace(INVERTED, 60, 81), np.geomspace(60, 1e5, 25)]):
        for p in (0.5, 0.4, 0.2, 0.05, 1e-3):
            yield math.ceil(mean / p), p
    for _ in range(300):
        p = float(min(0.5, 2 ** rng.uniform(-14, -0.8)))
        yield math.ceil(2 ** rng.uniform(math.log2(INVERTED), 14) / p), p


def test_hat_covers_the_law_and_box_lies_below_it():
    """The acceptance is extreme at the ends of the u that make one k, because G' grows with |u|."""
    highest, room = 0.0, 1.0
    for count, p in parameters():
        a, b, alpha = hat(count * p * (1 - p), p)
        t, log_share, _ = law_around(count, p, 30)
        x = t + math.floor((count + 1) * p) - (count * p + 0.5)

        def inverse(x, a=a, b=b):
            away = 2 * a + 0.5 * b + abs(x)
            return abs(x) / (away + np.sqrt(away * away - 2 * b * abs(x)))

        ends = inverse(x), inverse(x + 1)
        far, near = np.maximum(*ends), np.where(x * (x + 1) < 0, 0.0, np.minimum(*ends))
        share = np.exp(log_share) / alpha
        highest = max(highest, (share * (a / (0.5 - far) ** 2 + b)).max())
        inside = (share * (a / (0.5 - near) ** 2 + b))[near <= 0.5 - module._BOX]
        room = min(room, inside.min() - box(b) / b)
    assert 0.99 < highest < 0.9955
    assert room > 0.007


def test_guess_is_as_near_as_it_says():
    worst = 0.0
    for count, p in parameters():
        variance = count * p * (1 - p)
        t, log_share, excess = law_around(count, p, math.sqrt(module._GUESSED))
        value, off = np.vectorize(guess)(t, 1 / variance, excess, p)
        inside = (t != 0) & (t * t <= module._GUESSED * variance)
        worst = max(worst, (abs(value - log_share) / np.where(inside, off, np.inf)).max())
    assert 0.5 < worst < 0.95


@pytest.mark.parametrize("count", [2**30, 2**40, 2**52])
def test_guess_and_exact_share_agree_for_large_counts(count):
    """Up to the rounding of n p, which the error of a variate allows for."""
    for p in (0.5, 0.3, 0.01):
        variance = count * p * (1 - p)
        mode = math.floor(count * p + p)
        for z in (-3.0, -1.0, 0.3, 2.0):
            t = float(math.floor(z * math.sqrt(variance)))
            value, off = guess(t, 1 / variance, count * p + p - mode, p)
            exact = math.log(exact_share(count, p, t))
            assert abs(value - exact) < off + 1e-12 + 2.0**-50 * math.sqrt(variance)


@kernel
def count_between(count, p, low, high, seed, size):
    """Count the variates that lie in low .. high."""
    found = 0
    for trial in range(size):
        k = binomial(count, p, (seed, trial, 2, 3, 8), 0)
        found += 1 if low <= k <= high else 0
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "p", "low", "high"),
    [(4000, 0.1, 396, 404), (100, 0.3, 25, 27), (10**6, 0.4, 401_000, 10**6)],
)
def test_acceptance(count, p, low, high):
    """Compare shares of 60 million variates with SciPy: near the mode, on one side, in a tail.

    An acceptance that is wrong by a hundredth moves the shares by a thousandth of themselves, or
    more.
    """
    law, size = stats.binom(count, p), 60_000_000
    share = law.cdf(high) - law.cdf(low - 1)
    found = count_between(count, p, low, high, SEED, size)
    z = (found - size * share) / math.sqrt(size * share * (1 - share))
    assert 2 * stats.norm.sf(abs(z)) > FALSE_ALARM / 3
