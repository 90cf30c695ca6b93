"""The certificate of Poisson walks: its constants follow from the proof, and its promise is kept.

The proof is in `fastfed.kernels.rewards.poisson`. One test goes through it with numbers: sums of
conditional variances are added up, Bernstein's and Ville's bounds are written out. The other adds
up the probability of a crossing exactly, at a tolerance large enough to be seen.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from fastfed.kernels.memory import DRAWN, SKIP_TOLERANCE, A, B
from fastfed.kernels.rewards import poisson


@pytest.fixture
def least_product(monkeypatch: pytest.MonkeyPatch):
    """Return a function: the least d1 d2 that is certified, by N, E and max(d1, d2)."""
    monkeypatch.setattr(poisson, "_count_events", lambda *anything: None)

    def of(steps: int, events: float, larger: float, tolerance: float = SKIP_TOLERANCE) -> float:
        frame = {(0, A): steps, (0, B): 2 * steps, (0, DRAWN): 1}
        tree = SimpleNamespace(frame=frame, drawn=np.zeros((1, 1), np.int64), variance=None)
        client = SimpleNamespace(lo=0, hi=1, weights=np.ones((1, 1)))
        least, slack = poisson._certificate_bound(None, None, client, None, tree, 0)
        share = math.log(2 / tolerance) / math.log(2 / SKIP_TOLERANCE)
        return share * (least * events + slack * larger)

    return of


def variance_of_a_half(steps: int) -> float:
    """Return the largest ratio of summed conditional variances of z to s, over n <= N / 2."""
    i = np.arange(1, steps // 2 + 1, dtype=float)
    summed = np.cumsum(steps**2 / ((steps - i) ** 2 * (steps - i + 1)))
    return float((summed / (i / (steps - i))).max())


def half_bound(variance: float, before: float, after: float) -> float:
    """Bound the probability that Z meets the line before + after s, for s <= 1.

    exp(l Z - l^2 variance s / (2 (1 - 2 l / 3))) is a supermartingale (Bernstein, jumps up to 2).
    The best l is the largest with l variance / (2 (1 - 2 l / 3)) <= after.
    """
    slope = after / (variance / 2 + 2 * after / 3)
    return math.exp(-slope * before)


@pytest.mark.parametrize("steps", [4, 8, 64, 1024, 2**20])
@pytest.mark.parametrize("events", [1, 20, 1000, 10**6])
@pytest.mark.parametrize("skew", [1.0, 3.0, 0.1])
def test_what_is_certified_follows_from_the_proof(least_product, steps, events, skew) -> None:
    """At the least distances d1 = skew d2 the two halves' bounds add up to the tolerance."""
    root = math.sqrt(max(skew, 1 / skew))
    larger = 1.0
    for _ in range(200):  # larger = root sqrt(d1 d2), by iteration
        larger = root * math.sqrt(least_product(steps, events, larger))
    d1, d2 = (larger, larger / skew) if skew >= 1 else (larger * skew, larger)
    variance = events * variance_of_a_half(steps)
    bound = half_bound(variance, d1, d2) + half_bound(variance, d2, d1)
    assert bound <= SKIP_TOLERANCE * (1 + 1e-9)
    if steps >= 1024 and skew == 1.0:  # and the constants are not larger than the proof needs
        assert bound > SKIP_TOLERANCE * 0.8


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("events", [3, 12, 60])
@pytest.mark.parametrize("skew", [1.0, 4.0, 0.25])
def test_crossings_are_as_rare_as_promised(least_product, tolerance, events, skew) -> None:
    """Add up exactly, for events of one sign, which are the most likely to cross."""
    steps = 64
    root = math.sqrt(max(skew, 1 / skew))
    larger = 1.0
    for _ in range(200):
        larger = root * math.sqrt(least_product(steps, events, larger, tolerance))
    d1, d2 = (larger, larger / skew) if skew >= 1 else (larger * skew, larger)
    counts = np.arange(events + 1)
    alive, crossed = np.zeros(events + 1), 0.0
    alive[0] = 1.0
    for n in range(1, steps):
        step = 1.0 / (steps - n + 1)  # an event that is still to come comes now
        alive = sum(
            alive[j] * stats.binom.pmf(counts - j, events - j, step) for j in range(events + 1)
        )
        beyond = counts - events * n / steps >= d1 + (d2 - d1) * n / steps
        crossed += float(alive[beyond].sum())
        alive[beyond] = 0.0
    assert crossed <= tolerance
