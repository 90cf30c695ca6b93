"""The Gaussian walk X(n), the sum of an arm's first n rewards, as a pure function of its address.

Levy's construction on whole numbers. With Z(n) the standard normal of (seed, trial, arm, client,
n), mu the arm's mean, sigma the noise,

    X(1)   = mu + sigma Z(1)
    X(2^t) = X(2^(t-1)) + mu 2^(t-1) + sigma sqrt(2^(t-1)) Z(2^t)                      (extend)
    X(n)   = (X(n - s) + X(n + s)) / 2 + sigma sqrt(s / 2) Z(n)                        (split)

where s is the largest power of two that divides n, n itself no power of two. The increments over
disjoint intervals are independent normals with the right means and variances: given the sum of
2s of them, half of it plus a normal of variance s / 2 is what the first s sum to. So X is exactly
the walk of i.i.d. rewards, and X(n) costs log2(n) draws wherever n is.
"""

from __future__ import annotations

import math

import numpy as np
from numba import uint64

from fastfed.kernels.compiling import inner
from fastfed.kernels.dispatch import generic
from fastfed.kernels.random.normal import (
    is_power_of_four,
    normal_from,
    quarter_words,
    standard_normal,
)


@generic
def noise_at(rewards, k, m):
    """Return the standard deviation of a reward of arm k at client m, of Gaussian rewards."""


@inner
def extended(before, mu, sigma, half, z):
    """Return X(2 half) from X(half)."""
    return before + (mu * half + sigma * math.sqrt(half) * z)


@inner
def split(left, right, spread, z):
    """Return X in the middle of an interval; spread = sigma sqrt(length / 4)."""
    return 0.5 * (left + right) + spread * z


@inner
def value_at(address, mu, sigma):
    """Return X(n), n >= 1, from nothing but its address (seed, trial, client, arm, n)."""
    seed, trial, client, arm, n = address
    right = mu + sigma * standard_normal(seed, trial, client, arm, 1)
    left = right
    a, b = 1, 1
    while b < n:
        left, a = right, b
        b = 2 * a
        z = standard_normal(seed, trial, client, arm, b)
        right = extended(left, mu, sigma, float(a), z)
    while b != n:
        middle = (a + b) // 2
        z = standard_normal(seed, trial, client, arm, middle)
        value = split(left, right, sigma * math.sqrt(0.25 * (b - a)), z)
        if middle <= n:
            left, a = value, middle
            if middle == n:
                return value
        else:
            right, b = value, middle
    return right


@inner
def value_between(address, a, ends, sigma):
    """Return X(n), a < n < 2 a, from the values at the spine nodes a and 2 a.

    A block of words serves two halvings: see `normal`.
    """
    seed, trial, client, arm, n = address
    left, right = ends
    half = a >> 1
    word = first = third = uint64(0)
    if is_power_of_four(half):  # a third quarter point: the first two are on the spine
        word = quarter_words(seed, trial, client, arm, np.int64(0), half)[2]
    while True:
        middle = a + half
        if not is_power_of_four(half):
            first, word, third, _ = quarter_words(seed, trial, client, arm, a, half >> 1)
        z = normal_from(word, seed, trial, client, arm, middle)
        x = split(left, right, sigma * math.sqrt(0.5 * float(half)), z)
        if middle == n:
            return x
        if middle < n:
            left, a, word = x, middle, third
        else:
            right, word = x, first
        half >>= 1
