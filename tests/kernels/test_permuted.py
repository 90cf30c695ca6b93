"""Bound on crossings of sums without replacement.

The tests compare the bound with exact probabilities for coins, and with shuffles of other values.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fastfed.kernels.compiling import from_python
from fastfed.kernels.memory import BAR
from fastfed.kernels.rewards import permuted
from fastfed.kernels.rewards.permuted import DISTANCES, RANGES, SQUARES

FALSE_ALARM = 1e-6

choose_bound = from_python(permuted.choose_bound)


def bounds(cells, d1, d2):
    """Both forms of the claim, written out; cells (cells of the pair, N)."""
    length = cells.shape[1]
    c = 1 + 2 / length
    variance = cells.var(axis=1).sum()
    ranges = np.ptp(cells, axis=1)
    first = sum(
        math.exp(-d1 * d2 / (0.75 * c * length * variance + 2 / 3 * ranges.max() * d))
        for d in (d1, d2)
    )
    second = 2 * math.exp(-2 * d1 * d2 / (c * length * (ranges**2).sum() / 4))
    return first, second


def sums_of(cells):
    centred = cells - cells.mean(axis=1, keepdims=True)
    ranges = np.ptp(cells, axis=1)
    return ((centred**2).sum(), ranges.max(), (ranges**2).sum() / 4, np.maximum(centred, 0).sum())


@pytest.mark.parametrize("kind", ["coins", "ratings", "outliers"])
@pytest.mark.parametrize("clients", [1, 40])
def test_the_form_that_is_chosen(kind, clients):
    """It asks for the smallest distance, and where it is met the bound is the tolerance."""
    rng = np.random.default_rng(2)
    seen = set()
    for length in (2, 8, 32, 128, 1024, 2**14):
        cells = values(kind, 2 * clients, length, rng)
        squares, reach, ranges, distances = sums_of(cells)
        form, least, slack = choose_bound(length, squares, reach, ranges, distances)
        seen.add(form)
        if form == DISTANCES:
            assert distances < least * distances < distances * (1 + 1e-6)
        else:
            spread = squares if form == SQUARES else ranges
            d = slack / 2 + math.sqrt(slack**2 / 4 + least * spread)
            claimed = bounds(cells, d, d)[0 if form == SQUARES else 1]
            assert math.log(claimed) == pytest.approx(-BAR, rel=1e-9)
            assert d <= distances
    assert seen >= ({RANGES} if kind == "coins" else {SQUARES}) or clients == 1
    assert DISTANCES in seen


def exact_crossing(length, ones, rival, d1, d2):
    """P(a coin's walk, with so many ones in the interval, crosses the line above its rival's)."""
    p = np.zeros((ones + 1, rival + 1))
    p[0, 0] = 1.0
    crossed = 0.0
    i, j = np.arange(ones + 1)[:, None], np.arange(rival + 1)[None, :]
    for n in range(1, length):
        left = length - n + 1
        up_i, up_j = (ones - i) / left, (rival - j) / left
        after = np.zeros_like(p)
        for a, share_a in ((0, 1 - up_i), (1, up_i)):
            for b, share_b in ((0, 1 - up_j), (1, up_j)):
                moved = p * share_a * share_b
                after[a:, b:] += moved[: ones + 1 - a, : rival + 1 - b]
        w = i - j - (ones - rival) * n / length
        over = w >= d1 + (d2 - d1) * n / length - 1e-12
        crossed += after[over].sum()
        after[over] = 0.0
        p = after
    return crossed


@pytest.mark.parametrize("length", [2, 4, 8, 16, 32, 64])
def test_coins_exactly(length):
    """For all sorts of counts and distances, down to probabilities of 1e-12."""
    tightest = 0.0
    for ones in sorted({0, 1, 2, length // 4, length // 2, length - 1}):
        for rival in sorted({0, 1, length // 2, length - 2, length}):
            if ones in (0, length) and rival in (0, length):
                continue
            cells = np.array([np.arange(length) < ones, np.arange(length) < rival], float)
            for d1 in (0.3, 1.0, 0.3 * length**0.5, length**0.5, 2 * length**0.5):
                for ratio in (0.2, 1.0, 3.0):
                    exact = exact_crossing(length, ones, rival, d1, d1 * ratio)
                    first, second = bounds(cells, d1, d1 * ratio)
                    assert exact <= first
                    assert exact <= second
                    if min(1.0, ratio) * d1 > sums_of(cells)[3]:
                        assert exact == 0
                    tightest = max(tightest, exact / min(first, second, 1.0))
    assert tightest > 0.02  # the cases are hard enough to say something


def values(kind, size, length, rng):
    if kind == "coins":
        return (rng.random((size, length)) < rng.uniform(0.05, 0.95, (size, 1))).astype(float)
    if kind == "ratings":
        return rng.choice(np.arange(0.5, 5.5, 0.5), (size, length), p=np.arange(1, 11) / 55)
    drawn = np.zeros((size, length))
    drawn[:, 0], drawn[:, 1] = 10.0, -7.0
    return drawn + 0.1 * rng.integers(0, 3, (size, length))


@pytest.mark.parametrize("kind", ["coins", "ratings", "outliers"])
@pytest.mark.parametrize("length", [16, 128, 1024])
@pytest.mark.parametrize("clients", [1, 5])
def test_shuffles(kind, length, clients):
    """Frequencies of crossings, one-sided exact tests: 18 x 6 of them, 1e-6 in all."""
    rng = np.random.default_rng([length, clients, len(kind)])
    cells = values(kind, 2 * clients, length, rng)
    sign = np.repeat([1.0, -1.0], clients)[:, None]
    size = 1500
    walks = np.zeros((size, length - 1))
    for trial in range(size):
        walk = np.cumsum((rng.permuted(cells, axis=1) * sign).sum(axis=0))
        walks[trial] = (walk - walk[-1] * np.arange(1, length + 1) / length)[:-1]
    n = np.arange(1, length) / length
    sigma = math.sqrt(length * cells.var(axis=1).sum())
    for d1, d2 in ((0.2, 0.2), (0.5, 0.5), (0.1, 1.0), (1.0, 0.1), (0.3, 1.5), (0.8, 0.8)):
        line = sigma * (d1 + (d2 - d1) * n)
        crossings = int((walks >= line).any(axis=1).sum())
        claimed = min(*bounds(cells, sigma * d1, sigma * d2), 1.0)
        assert stats.binom.sf(crossings - 1, size, claimed) > FALSE_ALARM / 108
