"""The boundary of sums that carry Laplace noise: a mean of capitals.

Let S be a sum of independent centred terms. For each slope l a capital is

    exp(l S - c_l),

where c_l is at least the logarithm of the mean of exp(l S), term by term: l^2 s^2 / 2 for a term
that is s-sub-Gaussian, and -ln(1 - l^2 b^2) for a Laplace variate with the scale b, if l b < 1.
Then the capital is a supermartingale that begins at 1. So is the mean of the capitals of several
slopes, and by Ville's inequality that mean ever reaches 1 / a with probability at most a.

The mean grows with S. So it reaches 1 / a exactly where S reaches a boundary, which is `root`.

Slopes are halved from the largest to the smallest that is useful. With slopes twice as far apart as
these a boundary is up to 10 % larger, with slopes half as far apart hardly smaller.

The functions use only `math`, so that Numba can compile `root` as it stands.
"""

from __future__ import annotations

import math
from typing import Any

from fastfed.validation import MAX_STEPS

_NEAREST = 0.9  # the largest slope, over 1 / b: beyond, the noise of a round costs too much


def slopes(rate: float, noise: float, a: float) -> list[float]:
    """Return the slopes for a sum with the variance proxy ``rate`` a step, and the error budget a.

    ``noise`` is the largest scale of a Laplace variate in it. The best slope after n steps would be
    sqrt(2 ln(1 / a) / (rate n)) without noise.
    """
    first = math.sqrt(2.0 * math.log(1.0 / a) / rate)
    largest = min(first, _NEAREST / noise)
    count = 1 + max(0, math.ceil(math.log2(largest / first * math.sqrt(MAX_STEPS))))
    return [math.ldexp(largest, -j) for j in range(count)]


def laplace_cost(slope: float, scale: float) -> float:
    """Return the logarithm of the mean of exp(slope Z) for a Laplace variate Z with the scale."""
    return -math.log1p(-slope * slope * scale * scale)


def laplace(u: float) -> float:
    """Return the Laplace variate with scale 1 of a uniform in [-1/2, 1/2]."""
    tail = 1.0 - 2.0 * abs(u)
    size = -math.log(tail if tail > 2.0**-54 else 2.0**-54)
    return size if u > 0.0 else -size


def root(slopes: Any, costs: Any, a: float) -> float:
    """Return the S at which the mean over j of exp(slopes[j] S - costs[j]) is 1 / a.

    At the least of the S at which one capital alone makes the mean 1 / a, the mean is 1 / a or
    more. Its logarithm is convex, so Newton's method falls to the root from there.
    """
    count = slopes.shape[0]
    target = math.log(count / a)
    found = math.inf
    for j in range(count):
        alone = (target + costs[j]) / slopes[j]
        found = alone if alone < found else found
    for _ in range(60):
        top = -math.inf
        for j in range(count):
            log = slopes[j] * found - costs[j]
            top = log if log > top else top
        total = 0.0
        rise = 0.0
        for j in range(count):
            capital = math.exp(slopes[j] * found - costs[j] - top)
            total += capital
            rise += slopes[j] * capital
        step = (top + math.log(total) - target) * total / rise
        found -= step
        if step <= 1e-14 * found:
            break
    return found
