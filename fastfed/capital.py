"""Capitals: bets on rewards, and the boundary of sums that carry Laplace noise.

Let S be a sum of independent centred terms. For each slope l a capital is

    exp(l S - c_l),

where c_l is at least the logarithm of the mean of exp(l S), term by term: l^2 s^2 / 2 for a term
that is s-sub-Gaussian, and -ln(1 - l^2 b^2) for a Laplace variate with the scale b, if l b < 1.
Then the capital is a supermartingale that begins at 1. So is a weighted mean of the capitals of
several slopes, and by Ville's inequality that mean ever reaches 1 / a with probability at most a.

The mean grows with S. So it reaches 1 / a exactly where S reaches a boundary, which is `root`.

The weights are those of the radius `mixture-pairs`: a half-normal density of slopes, on a grid that
halves slopes. Without noise the boundary is within 2 % of the mixture's. With slopes a factor of
sqrt 2 apart it would be 5 % smaller at most. With noise the slopes below 1 / b share all weight.

*Bets* on rewards that are scaled to [0, 1] make other capitals (docs/explanation/betting.md). A
reward y multiplies a capital by 1 + bet (y - centre). An arm beats another when the mean of the
capitals of all bets reaches 1 / a.

The functions use only `math`, so that Numba can compile `root` as it stands.
"""

from __future__ import annotations

import math
from typing import Any

from fastfed.confidence import MIXTURE_ONE_SIDED, constants
from fastfed.validation import MAX_STEPS

BETS = 8
"""Number of bets, if nothing else is said."""
MOST_BETS = 64
LARGEST, SMALLEST, FINE = 0.95, 0.95 * 0.63**15, 16
"""The first bet; the last one, of up to 16 bets."""
MOST_STAKE = 0.98
"""Largest share of a capital that one reward may take: bets are cut down to it."""
_NEAREST = 0.7  # the largest slope, over 1 / b: beyond, the noise of a round costs too much
_WIDEST = 4.0  # the largest slope, over the spread of the slopes: beyond, there is no weight


def bets(count: int) -> list[float]:
    """List the bets, the largest first.

    Up to 16 bets cover the same range. More go further down, each 0.63 of the one before.
    """
    steps = min(max(count, 2), FINE) - 1
    return [LARGEST * (SMALLEST / LARGEST) ** (g / steps) for g in range(count)]


def log_capital(bet: float, centre: float, total: float, pulls: float) -> float:
    """Return a lower bound on the logarithm of the capital of one bet, from a sum of rewards.

    Each reward y, from 0 to 1, multiplies the capital by 1 + bet (y - centre). The logarithm of
    that is concave in y, so its chord from y = 0 to y = 1 lies below it. The bound is exact for
    rewards that are 0 or 1.

    Parameters
    ----------
    bet
        Above 0 to bet that rewards exceed the centre, below 0 for the opposite. Its size times the
        larger of the centre and 1 - centre must be below 1.
    centre
        A number that was fixed before the first of these rewards was seen.
    total
        The sum of the rewards, after scaling to [0, 1].
    pulls
        The number of the rewards.

    Returns
    -------
    float

    Examples
    --------
    >>> import math
    >>> import fastfed as ff
    >>> round(math.exp(ff.log_capital(0.5, 0.5, total=10, pulls=10)), 6)
    9.313226
    """
    return total * math.log1p(bet * (1.0 - centre)) + (pulls - total) * math.log1p(-bet * centre)


def slopes(rate: float, noise: float, a: float, tuned_at: float) -> tuple[list[float], list[float]]:
    """Return slopes, and the negative logarithms of their weights, for the error budget a.

    The sum has the variance proxy ``rate`` a step, and Laplace variates with scales up to
    ``noise``. The best slope after n steps would be sqrt(2 ln(1 / a) / (rate n)) without noise;
    the list goes down to that of the last step of a trial.
    """
    spread = 1.0 / math.sqrt(rate * constants(MIXTURE_ONE_SIDED, a, True, tuned_at)[1])
    largest = min(_WIDEST * spread, _NEAREST / noise)
    last = math.sqrt(2.0 * math.log(1.0 / a) / (rate * MAX_STEPS))
    count = 1 + max(0, math.ceil(math.log2(largest / last)))
    found = [math.ldexp(largest, -j) for j in range(count)]
    # the density of a slope times the length of its cell, which is in proportion to the slope
    logs = [math.log(one) - 0.5 * (one / spread) ** 2 for one in found]
    total = math.log(math.fsum(map(math.exp, logs)))
    return found, [total - log for log in logs]


def laplace_cost(slope: float, scale: float) -> float:
    """Return the logarithm of the mean of exp(slope Z) for a Laplace variate Z with the scale."""
    return -math.log1p(-slope * slope * scale * scale)


def laplace(u: float) -> float:
    """Return the Laplace variate with scale 1 of a uniform in [-1/2, 1/2]."""
    tail = 1.0 - 2.0 * abs(u)
    size = -math.log(tail if tail > 2.0**-54 else 2.0**-54)
    return size if u > 0.0 else -size


def root(slopes: Any, costs: Any, a: float) -> float:
    """Return the S at which the sum over j of exp(slopes[j] S - costs[j]) is 1 / a.

    ``costs`` contain the negative logarithms of weights. At the least of the S at which one term
    alone is 1 / a, the sum is 1 / a or more. Its logarithm is convex, so Newton's method falls to
    the root from there.
    """
    count = slopes.shape[0]
    target = -math.log(a)
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
