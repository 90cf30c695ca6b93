"""Intervals and tail probabilities: of a share of trials, and of the mean of paired differences.

**Shares** (wrong answers, trials beyond a bound) have exact binomial (Clopper-Pearson) intervals.

**Paired differences** d = x - limit y of two schedules' costs have Student's interval, with one
precaution. Two schedules often do exactly the same in nearly all trials (on MovieLens FedElim and
FedElim0 pull equally in 99 of 100), and the few trials in which they differ carry the whole
difference. Over n trials the standard error then looks tiny, or is zero if no trial happened to
differ, which is no certainty. So the equal trials are set aside: mean(d) = P(differ) x mean(d
where they differ), and its sign is that of the second factor. That factor is tested with the k
trials that differ alone, with their standard deviation and k - 1 degrees of freedom. And no test
is surer than 2^-k: that is the least p-value of a test that turns signs at random (a permutation
test, the one that assumes no law), and it is what k equal differences, whose standard error is
zero, are worth. Fewer than two differing trials decide nothing.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from fastfed.statistics.moments import Paired, as_float, root


def clopper_pearson(errors: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """The exact confidence interval of a rate."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if errors == 0 else float(betaincinv(errors, trials - errors + 1, tail))
    high = 1.0 if errors == trials else float(betaincinv(errors + 1, trials - errors, 1 - tail))
    return low, high


def share_tails(errors: int, trials: int, limit: float) -> tuple[float, float]:
    """If the rate were ``limit``: the probabilities of so few errors, and of so many."""
    from scipy.special import betainc

    few = 1.0 if errors >= trials else float(betainc(trials - errors, errors + 1, 1 - limit))
    many = 1.0 if errors == 0 else float(betainc(errors, trials - errors + 1, limit))
    return few, many


@cache
def share_power(trials: int, limit: float, level: float = 0.95) -> float:
    """The probability that ``trials`` trials show that a rate is above ``limit``, in a single
    test, if it is twice as large."""
    low, high = 0, trials + 1  # the least number of errors that shows it lies in between
    while high - low > 1:
        middle = (low + high) // 2
        if share_tails(middle, trials, limit)[1] <= (1 - level) / 2:
            high = middle
        else:
            low = middle
    return share_tails(high, trials, min(1.0, 2 * limit))[1] if high <= trials else 0.0


def student(mean: float, sem: float | None, count: int, level: float = 0.95) -> tuple[float, float]:
    """Student's interval of a mean; everything, where one trial says nothing of the spread."""
    from scipy.special import stdtrit

    if sem is None or count < 2:
        return -math.inf, math.inf
    reach = float(stdtrit(count - 1, (1 + level) / 2)) * sem
    return mean - reach, mean + reach


def mean_tails(count: int, mean: float, variance: float) -> tuple[float, float]:
    """If the true mean were 0: the probabilities of so small, and of so large a mean of ``count``
    values, at least 2^-count (see above)."""
    from scipy.special import stdtr

    if count < 2 or (mean == 0 and variance == 0):
        return 1.0, 1.0
    t = math.copysign(math.inf, mean) if variance == 0 else mean / math.sqrt(variance / count)
    least = 2.0**-count
    if math.isinf(t):
        return (least, 1.0) if t < 0 else (1.0, least)
    return (max(float(stdtr(count - 1, t)), least), max(float(stdtr(count - 1, -t)), least))


def paired_tails(pairs: Paired, limit: Fraction = Fraction(1)) -> tuple[float, float]:
    """The evidence that mean(x) < limit mean(y), and that it is larger: the two p-values."""
    count, mean, variance = pairs.excess(limit)
    if variance == 0:
        return mean_tails(count, as_float(mean), 0.0)
    scale = root(variance)
    return mean_tails(count, as_float(mean / Fraction(scale)), 1.0)


def difference(pairs: Paired) -> tuple[float, float | None]:
    """mean(x) - mean(y) over all trials, and its standard error: from the trials that differ,
    and from how many they are. None below two of them."""
    if not pairs.count:
        return math.nan, None
    value = as_float((pairs.x - pairs.y) / pairs.count)
    if pairs.count < 2 or pairs.differ < 2:
        return value, None
    squares = pairs.xx - 2 * pairs.xy + pairs.yy
    total = pairs.x - pairs.y
    variance = (squares - total * total / pairs.count) / (pairs.count - 1)
    return value, root(variance / pairs.count)
