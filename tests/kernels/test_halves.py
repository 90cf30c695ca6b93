"""Halves: every branch and every border between branches against exact probabilities.

Each statistical test has a fixed seed; chosen afresh, all of them together would fail a correct
program with probability 1e-6. What decides is also tested without chance: probabilities of
acceptance against exact ones, and where a draw begins to be rejected.
"""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from goodness_of_fit import FALSE_ALARM, chi_square, log_factorial
from numba import uint64
from scipy import stats

from fastfed.kernels.compiling import from_python, kernel
from fastfed.kernels.random import halves, normal
from fastfed.kernels.random.halves import half, near_half
from fastfed.kernels.random.philox import philox
from fastfed.kernels.random.words import spare_bits

pytestmark = pytest.mark.statistical

SEED = np.uint64(20261116)
SPARE = 2**21
FIRST = 16 << 53  # what the first attempt adds to the step of its address

log_share_of, near_log_share, shortfall, near_shortfall, normal_from = map(
    from_python,
    (
        halves.log_share_of,
        halves.near_log_share,
        halves.shortfall,
        halves.near_shortfall,
        normal.normal_from,
    ),
)


@kernel
def draw(marked, length, seed, out):
    """Three draws share a block, as in the walks."""
    for i in range(out.shape[0] // 3):
        w1, w2, w3, rest = philox(seed, uint64(0), uint64(length), uint64(i), uint64(7), uint64(0))
        out[3 * i] = half(marked, length, w1, spare_bits(rest, 0), (seed, i, 0, 1, length))
        out[3 * i + 1] = half(marked, length, w2, spare_bits(rest, 1), (seed, i, 0, 2, length))
        out[3 * i + 2] = half(marked, length, w3, spare_bits(rest, 2), (seed, i, 0, 3, length))


@kernel
def one(marked, length, word, spare, trial):
    return half(marked, length, uint64(word), uint64(spare), (uint64(5), trial, 0, 1, length))


@kernel
def draw_near(marked, total, draws, seed, out):
    for i in range(out.shape[0] // 3):
        words = philox(seed, uint64(0), uint64(total), uint64(i), uint64(7), uint64(0))
        for v in range(3):
            out[3 * i + v] = near_half(
                marked, total, draws, words[v], spare_bits(words[3], v), (seed, i, 0, 1, total), v
            )


@kernel
def one_near(marked, total, draws, word, spare, trial):
    return near_half(
        marked, total, draws, uint64(word), uint64(spare), (uint64(5), trial, 0, 1, total), 0
    )


def sample(marked, length, size):
    out = np.zeros(size, np.int64)
    draw(marked, length, SEED, out)
    return out


def law(marked, total, draws):
    """Return the outcomes within 12 standard deviations of the mean, and their probabilities.

    The probabilities are exact fractions for few items, and products of neighbours' ratios (12
    digits) for many.
    """
    reach = int(12 * math.sqrt(min(marked, total - marked) / 4)) + 12
    mean = round(marked * draws / total)
    k = np.arange(
        max(0, draws + marked - total, mean - reach), min(marked, draws, mean + reach) + 1
    )
    if total <= 512:
        ways = [math.comb(marked, j) * math.comb(total - marked, draws - j) for j in k.tolist()]
        return k, np.array([float(Fraction(way, math.comb(total, draws))) for way in ways])
    before = k[:-1].astype(float)
    rise = (marked - before) * (draws - before)
    rise /= (before + 1) * (total - marked - draws + before + 1)
    log_p = np.concatenate([[0.0], np.cumsum(np.log(rise))])
    p = np.exp(log_p - log_p.max())
    return k, p / p.sum()


def fit(found, marked, total, draws):
    """Compare a sample with the law; return the p-value."""
    k, p = law(marked, total, draws)
    assert found.min() >= k[0]
    assert found.max() <= k[-1]
    return chi_square(np.bincount(found - k[0], minlength=len(k)), p)


# (marked, N) in every branch and on both sides of every border: 2 N <= 128 has a table; up to 64
# marked items are bits; the others are normal, with ln Gamma from the table or from the series, for
# the marked items and for the others. Odd and even, mirrored ones, and those that never vary.
GRID = sorted(
    {
        *((s, n) for n in (1, 2, 4, 8) for s in range(1, 2 * n)),
        *((s, n) for n in (16, 32, 64) for s in (1, 2, 3, 5, n // 2, n - 1, n, n + 1, 2 * n - 3)),
        *((s, n) for n in (128, 512) for s in (1, 2, 7, 31, 32, 63, 64, 65, 66, 67, 100, n // 2)),
        *((s, n) for n in (128, 512) for s in (n - 1, n, n + 1, 2 * n - 64, 2 * n - 65)),
        *((s, n) for n in (65, 77, 100) for s in (2, 33, 64, 65, 66, n)),
        *((s, n) for n in (1024, 2**16) for s in (2, 63, 64, 65, 66, 500, 1023, 1024, 1100, n)),
        *((2**14, 2**14), (2**14 + 1, 2**15), (64, 2**30), (65, 2**30), (1000, 2**40)),
        (1201, 2**51),
    }
    - {(1100, 1024)}
)


@pytest.mark.parametrize("length", sorted({length for _, length in GRID}))
def test_the_law(length):
    cases = [marked for marked, n in GRID if n == length]
    for marked in cases:
        near_border = length >= 64 and 60 <= min(marked, 2 * length - marked) <= 100
        found = sample(marked, length, 3_000_000 if near_border else 600_000)
        assert fit(found, marked, 2 * length, length) > 0.25 * FALSE_ALARM / len(GRID), marked


LARGE = [
    *((2**20, 2**20), (2**20 - 1, 2**25), (2**29, 2**30), (2**39, 2**40)),
    *((2**51, 2**51), (2**50 + 1, 2**51), (2**45 - 1, 2**51)),
]


@pytest.mark.parametrize(("marked", "length"), LARGE)
def test_the_law_of_very_many(marked, length):
    """Compare the mean, the variance and the distribution with the normal.

    These distributions differ from the normal by less than 2e-4.
    """
    found = sample(marked, length, 900_000)
    offset = (found - marked // 2).astype(float) - (marked / 2 - marked // 2)
    sigma = math.sqrt(marked / 4 * (1 - marked / (2 * length)) / (1 - 1 / (2 * length)))
    level = 0.25 * FALSE_ALARM / (3 * len(LARGE))
    limit = stats.norm.isf(level / 2)
    assert abs(offset.mean()) < limit * sigma / math.sqrt(len(found))
    assert abs((offset**2).mean() / sigma**2 - 1) < limit * math.sqrt(2 / len(found))
    distance = stats.kstest(offset / sigma, "norm").statistic - 2e-4
    assert stats.kstwobign.sf(max(distance, 0) * math.sqrt(len(found))) > level


def first_rejected(draw):
    """Return the outcome of a word, and the first value of the spare bits that rejects it."""
    outcome = draw(0)
    low, high = 0, SPARE  # accepted at low, not at high
    if draw(SPARE - 1) == outcome:
        return outcome, None  # always accepted, or replaced by its like
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if draw(middle) == outcome else (low, middle)
    return outcome, high


def accepted_bits(marked, length, k):
    rest = 2 * length - marked
    return math.comb(rest, length - k) / math.comb(rest, length - marked // 2)


def scaled_log_share(marked, length, k):
    rest = 2 * length - marked
    cells = (k, marked - k, length - k, rest - length + k)
    middle = 2 * math.lgamma(marked / 2 + 1) + 2 * math.lgamma(rest / 2 + 1)
    return middle - sum(math.lgamma(c + 1) for c in cells)


@pytest.mark.parametrize(
    ("marked", "length"),
    [
        *((64, 128), (63, 128), (33, 70), (2, 65), (64, 1024), (65, 65), (66, 66), (65, 128)),
        *((128, 128), (201, 256), (512, 512), (500, 2048), (1023, 1024), (1500, 2048)),
        *((65, 2**20), (4096, 4096)),
    ],
)
def test_what_is_rejected_begins_where_it_must(marked, length):
    """The probability with which an outcome is accepted, to 2^-20, without any chance."""
    bits = marked <= 64
    rng = np.random.default_rng(marked)
    found = 0
    for trial in range(400):
        word = rng.integers(0, 2**64, dtype=np.uint64)
        k, rejected = first_rejected(
            lambda spare, at=(marked, length, word), trial=trial: one(*at, spare, trial)
        )
        if bits:
            assert k == (int(word) >> (64 - marked)).bit_count()
            share = accepted_bits(marked, length, k)
        else:
            z = normal_from(np.uint64(word), np.uint64(5), trial, 0, 1, length + FIRST)
            a, b = marked / 2 + 0.6, length - marked / 2 + 0.6
            sigma = math.sqrt(a * b / (2 * (a + b)))
            x = (sigma + 0.25) * z
            assert abs(k - marked / 2 - x) <= 0.5 + 1e-9
            share = math.exp(
                scaled_log_share(marked, length, k) + z * z / 2 - 1 / (4 * sigma + 0.5)
            )
        assert share < 1 + 1e-9
        if rejected is not None:
            found += 1
            assert abs(rejected - share * SPARE) < 2
    assert found > (100 if share < 0.999 else 0)


def test_log_share_keeps_its_digits():
    """Differences of ln p between an outcome and the middle, within five standard deviations."""
    getcontext().prec = 60
    rng = np.random.default_rng(3)
    worst = worst_far = 0.0
    for _ in range(3000):
        length = int(2 ** rng.uniform(6.1, 51))
        marked = int(max(65, length * 2 ** rng.uniform(-12, 0)))
        if marked > length:
            continue
        rest = 2 * length - marked
        sigma = math.sqrt(marked / 4 * rest / (2 * length))
        z = rng.uniform(-8, 8)
        middle, k = marked // 2, round(marked / 2 + z * sigma)
        if not 0 <= k <= marked:
            continue
        exact = sum(
            log_factorial(c) - log_factorial(d)
            for c, d in (
                (middle, k),
                (marked - middle, marked - k),
                (length - middle, length - k),
                (rest - length + middle, rest - length + k),
            )
        )
        got = Decimal(log_share_of(marked, length, k)) - Decimal(
            log_share_of(marked, length, middle)
        )
        if abs(z) < 5:
            worst = max(worst, abs(float(got - exact)))
        else:
            worst_far = max(worst_far, abs(float(got - exact)))
    assert worst < 3e-13
    assert worst_far < 1e-11


def test_shortfall_is_an_upper_bound():
    """The shortfall bounds sigma (1 - P(acceptance)) at the farthest places of an outcome."""
    for length in (65, 66, 80, 100, 128, 256, 1000, 1024, 5000, 2**20, 2**40):
        for marked in sorted({65, 66, 67, 80, 101, 128, 200, 1000, 1025, length - 1, length}):
            if not 65 <= marked <= length:
                continue
            a, b = marked / 2 + 0.6, length - marked / 2 + 0.6
            sigma = math.sqrt(a * b / (2 * (a + b)))
            middle = marked / 2
            places = np.linspace(-1.999, 1.999, 400)
            for z in places:
                x = (sigma + 0.25) * z
                k = math.floor(x + (0.5 if marked % 2 == 0 else 1.0)) + marked // 2
                for edge in (x, k - middle - 0.5, k - middle + 0.5):
                    at = edge / (sigma + 0.25)
                    if abs(at) < 2:
                        accepted = math.exp(
                            log_share_of(marked, length, k) + at * at / 2 - 1 / (4 * sigma + 0.5)
                        )
                        assert accepted <= 1 + 1e-12
                        assert sigma * (1 - accepted) <= shortfall(abs(at))


def test_thresholds_are_exact_to_the_last_bit():
    for length in (1, 2, 8, 64):
        for marked in range(1, length + 1):
            begin = halves._BEGIN[length + marked]
            reached, before = Fraction(0), 0
            for i in range(marked):
                k = marked // 2 + ((i + 1) // 2 if i % 2 else -(i // 2))
                reached += Fraction(
                    math.comb(marked, k) * math.comb(2 * length - marked, length - k),
                    math.comb(2 * length, length),
                )
                threshold = int(halves._THRESHOLD[begin + i])
                assert abs(threshold - reached * 2**64) <= 1
                if threshold > before + 1:  # not so for outcomes rarer than 2^-64
                    assert one(marked, length, np.uint64(threshold - 1), 0, 0) == k
                before = threshold


# on both sides of the borders: few marked items, how far from a half, odd and even, mirrored
NEAR = [
    *((1, 3, 1), (2, 7, 3), (20, 60, 31), (30, 61, 29), (40, 61, 33), (3, 100, 43)),
    *((64, 128, 64), (64, 129, 60), (64, 130, 72), (64, 130, 73), (64, 1001, 489), (63, 1001, 478)),
    *((65, 131, 65), (65, 131, 59), (65, 131, 73), (66, 140, 63), (66, 140, 77), (66, 140, 78)),
    *((66, 140, 62), (100, 250, 120), (150, 250, 130), (185, 250, 130), (186, 250, 131)),
    *((300, 1001, 480), (300, 1001, 551), (300, 1001, 552), (500, 1000, 450), (500, 1000, 549)),
    *((1000, 3000, 1480), (1500, 3000, 1520), (3000, 10**4, 5100), (65, 10**6, 500_300)),
    *((2000, 10**6, 499_000), (10**5, 10**6, 500_777)),
]


@pytest.mark.parametrize(("marked", "total", "draws"), NEAR)
def test_the_law_near_a_half(marked, total, draws):
    out = np.zeros(1_500_000, np.int64)
    draw_near(marked, total, draws, SEED, out)
    assert fit(out, marked, total, draws) > 0.5 * FALSE_ALARM / len(NEAR)


def near_hat(marked, total, draws):
    """sigma, mu and how much the logarithm of the hat is above that of p at mu."""
    a, b = marked / 2 + 0.6, (total - marked) / 2 + 0.6
    v = a * b / (2 * (a + b))
    mu = (marked + 1) * (draws + 1) / (total + 2) - 0.5
    return math.sqrt(v), mu, 0.15 / v + 1.0404 / (4 * math.sqrt(v) + 0.5)


def test_what_is_rejected_near_a_half_begins_where_it_must():
    rng = np.random.default_rng(8)
    found = 0
    for marked, total, draws in ((66, 140, 63), (66, 140, 77), (100, 250, 120), (300, 1001, 460)):
        sigma, mu, above = near_hat(marked, total, min(draws, total - draws))
        for trial in range(300):
            word = rng.integers(0, 2**64, dtype=np.uint64)
            outcome, rejected = first_rejected(
                lambda spare, at=(marked, total, draws, word), trial=trial: one_near(
                    *at, spare, trial
                )
            )
            z = normal_from(word, np.uint64(5), trial, 0, 1, total + FIRST)
            k = outcome if 2 * draws <= total else marked - outcome
            assert abs(k - mu - (sigma + 0.25) * z) <= 0.5 + 1e-9
            log_share = near_log_share(
                marked, total, min(draws, total - draws), float(k - math.floor(mu + 0.5))
            )
            if rejected is not None:
                found += 1
                assert abs(rejected - math.exp(log_share + z * z / 2 - above) * SPARE) < 2
    assert found > 200


def test_the_hat_near_a_half():
    """It is above the law at both edges of every cell, and `near_shortfall` is an upper bound."""
    for total in (131, 140, 200, 300, 1000, 2049, 10**5, 2**40):
        for marked in sorted({65, 66, 90, 128, 1000, total // 3, total // 2}):
            for lean in (0.0, 0.02, 0.06, 0.1):
                draws = math.ceil(total * (1 - lean) / 2)
                if not 65 <= marked <= total // 2 or 2 * draws > total:
                    continue
                sigma, mu, above = near_hat(marked, total, draws)
                for z in np.linspace(-6, 6, 121):
                    k = math.floor(mu + (sigma + 0.25) * z + 0.5)
                    t = float(k - math.floor(mu + 0.5))
                    if not 0 <= k <= min(marked, draws):
                        continue
                    for edge in (k - 0.5, k + 0.5):
                        at = (edge - mu) / (sigma + 0.25)
                        log_share = near_log_share(marked, total, draws, t) + at * at / 2 - above
                        assert log_share <= 1e-9
                        if abs(at) < 2:
                            short = near_shortfall(abs(at), sigma, (total - 2 * draws) / total)
                            assert sigma * (1 - math.exp(log_share)) <= short


def test_the_middle_of_few_marked_items_far_from_a_half():
    """Nothing outside what is possible is ever drawn."""
    rng = np.random.default_rng(9)
    for trial in range(20_000):
        total = int(rng.integers(2, 300))
        marked, draws = int(rng.integers(0, total + 1)), int(rng.integers(0, total + 1))
        k = one_near(
            marked,
            total,
            draws,
            rng.integers(0, 2**64, dtype=np.uint64),
            int(rng.integers(0, SPARE)),
            trial,
        )
        assert max(0, marked + draws - total) <= k <= min(marked, draws)
