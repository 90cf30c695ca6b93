"""The confidence radii of the paper and the boundaries that they draw around the walks.

The paper ("Algorithm-Specific Notations") sets, for rewards of variance 1,

    alpha_l(n) = sqrt(2 ln(8 K M n^2 / delta) / n)            one arm at one client,
    alpha_g(n) = sqrt(2 ln(8 K n^2 / delta) / (M n))          one arm averaged over M clients.

Both are one formula in (n, walks, log_c), with ``walks`` the number of reward walks that are
averaged (1, or M) and ``log_c`` the logarithm of what stands before n^2 (8KM/delta, or
8K/delta); the scale sigma multiplies it, as in the paper's concentration lemma.

An arm falls when the leader's empirical mean is 2 alpha ahead (Algorithm 1 says >=, the running
text says >; this package follows Algorithm 1). The kernels compare sums instead of means: with
S the sum of the n rewards of all ``walks`` walks, the same rule reads S_leader - S_arm >= g(n),

    g(n) = 2 walks n alpha(n) = 2 sigma sqrt(2 walks n (log_c + 2 ln n)).

Everything that needs a radius or a boundary (kernels, reference, bounds) takes it from here. The
functions in scalars use only `math`, so that Numba can compile them as they stand.
"""

from __future__ import annotations

import math

MAX_STEPS = 2**52
"""No trial is followed past this step: beyond it, doubles no longer count every step."""


def local_log(arms: int, clients: int, delta: float) -> float:
    """ln(8 K M / delta), the constant of alpha_l."""
    return math.log(8.0 * arms * clients / delta)


def global_log(arms: int, delta: float) -> float:
    """ln(8 K / delta), the constant of alpha_g."""
    return math.log(8.0 * arms / delta)


def radius(n: float, walks: float, log_c: float, sigma: float) -> float:
    """alpha(n): the confidence radius of a mean over n rewards of each of ``walks`` walks."""
    return sigma * math.sqrt(2.0 * (log_c + 2.0 * math.log(n)) / (walks * n))


def boundary(n: float, walks: float, log_c: float, sigma: float) -> float:
    """g(n) = 2 walks n alpha(n): the lead, in sums, at which an arm falls. Concave in n >= 1.

    Concave because, with f(n) = n L and L = log_c + 2 ln n, sqrt(f) is concave exactly where
    2 f f'' <= f'^2, that is 4 L <= (L + 2)^2, which is (L - 2)^2 >= 0.
    """
    return 2.0 * sigma * math.sqrt(2.0 * walks * n * (log_c + 2.0 * math.log(n)))


def alpha_local(n: float, arms: int, clients: int, delta: float, sigma: float = 1.0) -> float:
    """alpha_l(n) of the paper, times sigma."""
    return radius(n, 1.0, local_log(arms, clients, delta), sigma)


def alpha_global(n: float, arms: int, clients: int, delta: float, sigma: float = 1.0) -> float:
    """alpha_g(n) of the paper, times sigma."""
    return radius(n, clients, global_log(arms, delta), sigma)


def resolved_by(gap: float, walks: float, log_c: float, sigma: float) -> float:
    """The smallest whole n from which on alpha <= gap / 4: the paper's n_km and n_k.

    The larger root of alpha(x) = gap / 4 is x = -W_-1(-a e^-b) / a with a = walks gap^2 /
    (64 sigma^2) and b = log_c / 2 (proof of Theorem 2; the main text's Delta^2 / 4 is a slip for
    Delta / 4). Returned as a float, because a small gap needs more than an int64 of steps; it is
    exact wherever whole numbers are (below 2^53).
    """
    from scipy.special import lambertw

    if math.isinf(gap):  # a lone arm has no rival
        return 1.0
    a = walks * min(gap / sigma, 1e150) ** 2 / 64.0  # the square must not overflow
    b = log_c / 2.0
    if a == 0.0:
        return math.inf
    log_y = math.log(a) - b  # y = a e^-b
    if log_y >= -1.0:  # alpha lies below gap / 4 everywhere
        return 1.0
    if log_y < -700.0:  # a e^-b leaves the range of lambertw: no gap that small can be resolved
        return math.inf
    root = -float(lambertw(-math.exp(log_y), k=-1).real) / a
    n = max(1.0, math.ceil(root))
    if n < 2.0**52:  # the root is right to a few ulps: settle the last step by the definition
        while n > 1.0 and radius(n - 1.0, walks, log_c, sigma) <= gap / 4.0:
            n -= 1.0
        while radius(n, walks, log_c, sigma) > gap / 4.0:
            n += 1.0
    return n
