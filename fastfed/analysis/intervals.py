"""Intervals and tail probabilities: of a share of trials, and of the mean of paired differences.

**Shares** (wrong answers, trials beyond a bound) have exact binomial (Clopper-Pearson) intervals.

**Paired differences** d = x - limit y of two schedules' costs are tested by Student's test with two
precautions. Two schedules often do exactly the same in nearly all trials (on MovieLens FedElim and
FedElim0 pull equally in 99 of 100), and the few trials in which they differ carry the whole
difference. The equal trials are set aside: mean(d) = P(differ) x mean(d where they differ), and
its sign is that of the second factor, which the k trials that differ estimate alone.

No test of a mean is right for every distribution (Bahadur and Savage 1956): a rare trial with a
large difference of the other sign, which happened not to occur, may outweigh all that did. Of
1,000 trials let 50 differ, by +100 with probability 0.98 and by -4,900 with probability 0.02. The
mean is 0, and in 36 % of samples all 50 differences are +100. So two rules say what is assumed of
trials that were not seen:

1. Below `LEAST_DIFFERING` = 59 differing trials nothing is decided. With 59 an outcome that has a
   share of 5 % of them is missed with a probability of 5 % (Wilks's number).
2. A verdict must survive one further trial, the worst that costs allow. Costs are not negative, so
   x - limit y lies between -limit max(y) and max(x), with the dearest trials that were seen. That
   mean(d) > 0 is tested with -limit max(y) as a further difference, that mean(d) < 0 with max(x).

For differences of two values like those above, of equal mean, the probability of a false winner was
added up exactly on a grid: 8 shares q of the rare value, up to 20,000 trials, and costs of 4
levels, all at least as large as the differences. It was 5.13 % at most (nominal 5 %); that is no
proof for all q and all numbers of trials. Student's test alone names a false winner with a
probability of up to 37 %. The price is power where differences are small beside the costs: n trials
cannot show a mean difference below about 3 / n of the largest cost.

*What is assumed.* The share of trials that are dearer than the dearest of n is above q with a
probability of (1 - q)^n, so with a probability of 95 % it is at most 3 / n (Clopper-Pearson), for
every distribution. That these few trials are not much dearer in the mean is the assumption, and
without one no test of a mean exists.

*Why the assumption holds for trials with right answers*, to which `fastfed.analysis.comparable`
restricts comparisons. Let D be the gap of arm k to the best arm of a scope, s the scale of the
difference of their means (its variance proxy after n steps is s^2 / n), and let 4 alpha(n) <= D,
which holds from some step n_k on. If the answer is right, the best arm is still there when the
schedule looks after n >= n_k steps. If arm k is still there, too, the best arm does not lead by
2 alpha(n) <= D / 2. So the difference of the two means is at least D / 2 below its expectation,
which has a probability of at most exp(-n D^2 / (8 s^2)) (Chernoff). The constant 8 s^2 / D^2 is of
the order of n_k or below: a delta-PAC radius is not smaller than a quantile of the difference, so
n_k >= 4 z^2 s^2 / D^2 with the normal quantile z of 1 - delta, for Gaussian rewards of scale s. So
the cost beyond n_k is exponentially rare, and a trial
dearer than the dearest of many is dearer by little; a schedule whose times grow by the factor b
adds at most the factor b. QED. A trial that loses the best arm goes on with the gaps between the
others, which may be arbitrarily small: that is why such trials are left out, and their share
is held to delta instead. The argument says nothing about schedules whose times grow faster, such as
`superexponential`: a trial that misses a round at n costs n^2. Nor does it about algorithms that do
not eliminate by leads of 2 alpha(n), such as `phases`.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

LEAST_DIFFERING = 59
"""Fewer differing trials decide nothing: 0.95^59 < 5 % (Wilks)."""


def finite(number: float) -> float | None:
    """Return None for an end of an interval that is infinite or not known, for frames and JSON."""
    return number if math.isfinite(number) else None


@lru_cache(maxsize=4096)
def clopper_pearson(errors: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact confidence interval of a rate."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if errors == 0 else float(betaincinv(errors, trials - errors + 1, tail))
    high = 1.0 if errors == trials else float(betaincinv(errors + 1, trials - errors, 1 - tail))
    return low, high


def share_tails(errors: int, trials: int, limit: float) -> tuple[float, float]:
    """Return the probabilities of so few errors, and of so many, if the rate is ``limit``."""
    from scipy.special import betainc

    few = 1.0 if errors >= trials else float(betainc(trials - errors, errors + 1, 1 - limit))
    many = 1.0 if errors == 0 else float(betainc(errors, trials - errors + 1, limit))
    return few, many


@cache
def share_power(trials: int, limit: float, level: float = 0.95) -> float:
    """Return the power of a single test of ``rate <= limit`` if the rate is twice the limit."""
    low, high = 0, trials + 1  # the least number of errors that shows it lies in between
    while high - low > 1:
        middle = (low + high) // 2
        if share_tails(middle, trials, limit)[1] <= (1 - level) / 2:
            high = middle
        else:
            low = middle
    return share_tails(high, trials, min(1.0, 2 * limit))[1] if high <= trials else 0.0


def student(mean: float, sem: float | None, count: int, level: float = 0.95) -> tuple[float, float]:
    """Return Student's interval of a mean; from a single trial it is unbounded."""
    if sem is None or count < 2:
        return -math.inf, math.inf
    reach = student_quantile(count - 1, level) * sem
    return mean - reach, mean + reach


@lru_cache(maxsize=1024)
def student_quantile(freedom: int, level: float) -> float:
    """Return the number of standard errors in half of Student's interval."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def mean_tails(
    count: int, mean: float, scatter: float, least: float, most: float
) -> tuple[float, float]:
    """Return the evidence that a mean is below 0, and that it is above: the two p-values.

    Parameters
    ----------
    count, mean, scatter
        Number and mean of the values that were seen, and the sum of squares of their deviations.
    least, most
        The limits of one further value (see the module); ``least`` <= 0 <= ``most``.
    """
    if count < LEAST_DIFFERING:
        return 1.0, 1.0
    return _tail(count, -mean, scatter, -most), _tail(count, mean, scatter, least)


def with_further(count: int, mean: float, scatter: float, value: float) -> tuple[float, float]:
    """Return the mean of count + 1 values and the scatter about it, with a further value."""
    step = value - mean
    return mean + step / (count + 1), scatter + step * step * count / (count + 1)


def _tail(count: int, mean: float, scatter: float, further: float) -> float:
    """Return Student's probability of so large a mean with a further value, if the truth is 0."""
    from scipy.special import stdtr

    mean, scatter = with_further(count, mean, scatter, further)
    if scatter == 0:
        return 1.0  # all values are the worst one
    return float(stdtr(count, -mean / math.sqrt(scatter) * math.sqrt((count + 1) * count)))
