"""Goodness-of-fit tests for variates, with a false-alarm probability of 1e-6."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-6


SEED = np.uint64(20240611)


def chi_square(observed, probabilities):
    """P value; cells with fewer than 10 expected are joined to their neighbours."""
    expected = np.asarray(probabilities) * observed.sum()
    group = np.zeros(len(expected), int)
    held, label = 0.0, 0
    for i, e in enumerate(expected):
        group[i] = label
        held += e
        if held >= 10:
            held, label = 0.0, label + 1
    group[group == label] = max(label - 1, 0)
    seen, due = (np.bincount(group, weights=x) for x in (observed, expected))
    assert len(due) > 1
    return stats.chisquare(seen, due, sum_check=False).pvalue


def law_fits(sample, law, lowest, highest):
    assert lowest <= sample.min()
    assert sample.max() <= highest
    k = np.arange(lowest, highest + 1)
    return chi_square(np.bincount(sample - lowest, minlength=len(k)), law.pmf(k))


def moments_fit(sample, mean, variance, comparisons):
    """Two-sided z tests; at large counts the laws are as good as normal."""
    limit = stats.norm.isf(FALSE_ALARM / (2 * comparisons))
    size = len(sample)
    offset = sample - int(mean)  # whole numbers, so that nothing is lost at 2^51
    shift = offset.mean() - (mean - int(mean))
    assert abs(shift) < limit * math.sqrt(variance / size)
    spread = ((offset - offset.mean()) ** 2).mean() / variance - 1
    assert abs(spread) < limit * math.sqrt(2 / size)
    return (offset - (mean - int(mean))) / math.sqrt(variance)


def smirnov(sample, z, law=None):
    """Return the p-value of the Kolmogorov-Smirnov test at the atoms of the distribution.

    Where the normal limit is used, its error is skewness / 15 + 0.2 / sigma, which is below 2e-4
    here.
    """
    value, count = np.unique(sample, return_counts=True)
    reached = stats.norm.cdf(np.unique(z)) if law is None else law(value)
    distance = abs(np.cumsum(count) / len(sample) - reached).max()
    return stats.kstwobign.sf(distance * math.sqrt(len(sample)))


LARGE = [2**20, 2**30, 2**40, 2**52]


def log_factorial(n):
    """60 digits, of any whole n."""
    if n < 200:
        return Decimal(math.factorial(n)).ln()
    x = Decimal(n)
    series = [
        (1, 12),
        (-1, 360),
        (1, 1260),
        (-1, 1680),
        (1, 1188),
        (-691, 360360),
        (1, 156),
        (-3617, 122400),
        (43867, 244188),
        (-174611, 125400),
    ]
    tail = sum(Decimal(a) / (Decimal(b) * x ** (2 * i + 1)) for i, (a, b) in enumerate(series))
    two_pi = Decimal("6.28318530717958647692528676655900576839433879875021164194989")
    return x * x.ln() - x + (two_pi * x).ln() / 2 + tail
