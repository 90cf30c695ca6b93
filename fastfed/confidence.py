"""The confidence radius as a choice: what a radius is, all that are built in, and a user's own.

A radius is a function L(n), the exponent, with this guarantee for an error budget a: a walk S_n
whose steps are centred, independent and sigma-sub-Gaussian keeps to

    S_n <= sigma sqrt(2 n L(n))   for all n >= 1 together, with probability at least 1 - a.

*Per arm* (the paper's shape) it bounds |S_n|, for every arm: alpha(n) = sigma sqrt(2 L / (walks
n)) around a mean over n rewards of each of ``walks`` walks (1 at a client, M at the server). The
budget is a = delta / (2 K M) for an arm at a client and delta / (2 K) at the server: delta / 2 for
all clients together, delta / 2 for the server.

*Per pair* (half the samples) only one thing is an error: that some arm overtakes the best one by
2 alpha. S_j - S_best has the variance proxy 2 sigma^2 walks n and one side is enough, so alpha(n) =
sigma sqrt(L / (walks n)), with a = delta / (2 (K - 1) M) and delta / (2 (K - 1)) for the K - 1
pairs. If the best arm is never eliminated, it is what is declared: delta-PAC by the union over
pairs. (What a trial costs at most needs the other side of the same walks as well: 1 - 2 delta.)

An arm is eliminated when the leader's empirical mean is 2 alpha ahead (Algorithm 1 says >=, the
running text says >; this package follows Algorithm 1). The kernels compare sums instead of means:
with S the sum of the n rewards of all walks the same rule reads S_leader - S_arm >= g(n),

    g(n) = 2 walks n alpha(n) = sqrt(unit n L(n)),   unit = 8 walks sigma^2 (4 per pair).

Skipping rests on g being concave. With f = n L that is 2 f f'' <= f'^2; it is proved beside each
formula, and checked on a dense grid for a user's own.

Sources. `paper`: the paper's "Algorithm-Specific Notations", a union bound over n: L = ln(4 / a) +
2 ln n. `stitched`: Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric,
nonasymptotic confidence sequences", Annals of Statistics 49 (2021), eq. (2). `mixture`: Robbins'
normal mixture (Annals of Mathematical Statistics 41, 1970), in the closed forms of the same paper.

Everything that needs a radius or a boundary (kernels, reference, bounds) takes it from here. The
functions in scalars use only `math`, so that Numba can compile them as they stand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from fastfed.errors import InputError
from fastfed.validation import MAX_STEPS as MAX_STEPS

Exponent = Callable[[float, float], float]
"""A user's L: (n, a) -> L(n) for the error budget a."""

PAPER, STITCHED, MIXTURE, MIXTURE_ONE_SIDED, OWN, BETTING = range(6)
"""The formulas, as the kernels know them."""

GRID_BITS = 6
GRID = 1 << GRID_BITS
"""Nodes in an octave, from 2^t to 2^(t+1): of the kernels' table, and of the check of an own L."""

TUNED_AT = 1000
"""The step at which a mixture is tightest, if nothing else is said."""

_OCTAVES = 53


# ---- the formulas ------------------------------------------------------------------------------


def exponent(kind: int, n: float, constant: float, shift: float) -> float:
    """Return L(n) of a built-in radius; `constants` explains ``constant`` and ``shift``.

    Each makes sqrt(f), f = n L, concave, that is 2 f f'' <= f'^2 (m = n + r, r is the shift):

    paper: 4 L <= (L + 2)^2, which is (L - 2)^2 >= 0.
    stitched, x = ln 2n, l = ln x + c >= 0: 2 l (1/x - 1/x^2) <= (l + 1/x)^2, because
        -2 l / x^2 <= 0 <= l^2 + 1 / x^2.
    mixture, f = m l, l = c + ln(m / r) / 2: l <= (l + 1/2)^2.
    one-sided, f = m l, l = ln(1 + q), q = e^c sqrt(m / r), p = q / (1 + q):
        l p / (2 (1 + q)) <= l^2 + p^2 / 4, as l p <= l^2 + p^2 / 4.
    """
    if kind == STITCHED:
        return 1.445 * (math.log(math.log(2.0 * n)) + constant)  # 1.445 is 1.7^2 / 2
    if kind == MIXTURE:
        # sqrt(r / m) exp(S^2 / (2 m)) is the average of exp(t S - t^2 n / 2) over t ~ N(0, 1 / r),
        # a supermartingale: by Ville's inequality it reaches 1 / a with probability at most a.
        m = n + shift
        return m / n * (constant + 0.5 * math.log(m / shift))
    if kind == MIXTURE_ONE_SIDED:
        # The average over t > 0 only: 2 sqrt(r / m) exp(z^2 / 2) Phi(z), z = S / sqrt(m). Where
        # z^2 / 2 = ln(1 + q), q = sqrt(m / r) / (2 a), it is at least 2 sqrt(r / m) (1 + q - 1/2),
        # because 1 - Phi(z) <= exp(-z^2 / 2) / 2, and so above 1 / a. Written without overflow.
        m = n + shift
        log_q = constant + 0.5 * math.log(m / shift)
        return m / n * (log_q + math.log1p(math.exp(-log_q)))
    return constant + 2.0 * math.log(n)


def radius(n: float, walks: float, log_c: float, sigma: float) -> float:
    """Return the paper's alpha(n), the radius of a mean over n rewards of ``walks`` walks."""
    return sigma * math.sqrt(2.0 * (log_c + 2.0 * math.log(n)) / (walks * n))


def boundary(n: float, walks: float, log_c: float, sigma: float) -> float:
    """Return the paper's g(n) = 2 walks n alpha(n), which is concave in n >= 1."""
    return 2.0 * sigma * math.sqrt(2.0 * walks * n * (log_c + 2.0 * math.log(n)))


def constants(kind: int, a: float, one_sided: bool, tuned_at: float) -> tuple[float, float]:
    """Return the ``constant`` and ``shift`` of `exponent` for the error budget a."""
    if kind == STITCHED:
        return 0.72 * math.log((5.2 if one_sided else 10.4) / a), 0.0
    if kind in (MIXTURE, MIXTURE_ONE_SIDED):
        # the guarantee holds for any r > 0; this one is nearly the tightest at n = tuned_at
        log = math.log(1.0 / a)
        shift = tuned_at / (2.0 * log + math.log(1.0 + 2.0 * log))
        return (log if kind == MIXTURE else -math.log(2.0 * a)), shift
    if kind == BETTING:
        return math.log(1.0 / a), 0.0
    return math.log(4.0 / a), 0.0


def local_log(arms: int, clients: int, delta: float) -> float:
    """Return ln(8 K M / delta), the constant of alpha_l."""
    return math.log(8.0 * arms * clients / delta)


def global_log(arms: int, delta: float) -> float:
    """Return ln(8 K / delta), the constant of alpha_g."""
    return math.log(8.0 * arms / delta)


def alpha_local(n: float, arms: int, clients: int, delta: float, sigma: float = 1.0) -> float:
    """Return the paper's alpha_l(n), times sigma."""
    return radius(n, 1.0, local_log(arms, clients, delta), sigma)


def alpha_global(n: float, arms: int, clients: int, delta: float, sigma: float = 1.0) -> float:
    """Return the paper's alpha_g(n), times sigma."""
    return radius(n, clients, global_log(arms, delta), sigma)


def common_steps(weights: Any, steps: Any) -> int:
    """Return N so that clients with these weights, heard after ``steps``, tell as much as after N.

    The value sum p_m mean_m has the variance proxy sigma^2 sum p_m^2 / n_m. N is the weighted
    harmonic mean of the n_m, rounded down: sum p_m^2 / sum (p_m^2 / n_m). Clients without a weight
    do not count.
    """
    squares = 0.0
    shares = 0.0
    least = 0
    most = 0
    for m in range(weights.shape[0]):
        if weights[m] > 0.0:
            least = steps[m] if least == 0 or steps[m] < least else least
            most = steps[m] if steps[m] > most else most
            squares += weights[m] * weights[m]
            shares += weights[m] * weights[m] / steps[m]
    if least == most:
        return least
    return min(max(int(squares / shares), least), most)


# ---- one answer's radius -----------------------------------------------------------------------


@dataclass(frozen=True)
class Confidence:
    """The confidence radius of one kind of answers, a client's or the server's.

    `Radius.at_client` and `Radius.at_server` make it.
    """

    kind: int
    walks: float
    """How many clients' walks are summed: 1, or M."""
    sigma: float
    pairs: bool
    budget: float
    """The error probability a that one arm, or pair, may use up."""
    constant: float
    shift: float
    function: Exponent | None = None
    lift: float = 0.0
    """Added to sqrt(L(n)), not with the paper's radius: see `raised`."""

    @property
    def unit(self) -> float:
        """The constant g(n)^2 / (n L(n))."""
        return (4.0 if self.pairs else 8.0) * self.walks * self.sigma * self.sigma

    def exponent(self, n: float) -> float:
        """Return L(n), the logarithm in the formula of the radius."""
        if self.kind == BETTING:
            raise InputError(
                "radius betting: compares capitals, and no theorem gives it a radius alpha(n); use "
                "mixture-pairs with sigma proxy for what needs one"
            )
        if self.function is not None:
            found = float(self.function(n, self.budget))
        else:
            found = exponent(self.kind, n, self.constant, self.shift)
        return (math.sqrt(found) + self.lift) ** 2 if self.lift else found

    def scaled(self, factor: float) -> Confidence:
        """Return the radius times a factor."""
        return replace(self, sigma=factor * self.sigma)

    def raised(self, error: float) -> Confidence:
        """Return alpha(n) + error / sqrt(n), for means that are known up to error / sqrt(n) only.

        In sums that is g(n) + 2 walks error sqrt(n), which is concave as well.
        """
        return replace(self, lift=2.0 * self.walks * error / math.sqrt(self.unit))

    def alpha(self, n: float) -> float:
        """Return the confidence radius.

        An arm is eliminated when a mean is 2 alpha ahead of its own.
        """
        if self.kind == PAPER:
            return radius(n, self.walks, self.constant, self.sigma)
        return self.sigma * math.sqrt(
            (1.0 if self.pairs else 2.0) * self.exponent(n) / (self.walks * n)
        )

    def boundary(self, n: float) -> float:
        """Return g(n) = 2 walks n alpha(n), the lead in sums at which an arm is eliminated."""
        if self.kind == PAPER:
            return boundary(n, self.walks, self.constant, self.sigma)
        return math.sqrt(self.unit * n * self.exponent(n))

    def resolved_by(self, gap: float) -> float:
        """Return the least whole n from which on alpha <= gap / 4: the paper's n_km and n_k.

        A float, because a small gap needs more than an int64 of steps.
        """
        if self.kind == PAPER:
            return resolved_by(gap, self.walks, self.constant, self.sigma)
        return _last_above(lambda n: self.alpha(n) - gap / 4.0)


def resolved_by(gap: float, walks: float, log_c: float, sigma: float) -> float:
    """Return the step from which on the paper's radius is at most gap / 4, in closed form.

    ``walks`` is the number of walks in the average (1 at a client, M at the server) and ``log_c``
    the constant of the radius, alpha(n) = sigma sqrt(2 (log_c + 2 ln n) / (walks n)).

    The larger root of alpha(x) = gap / 4 is x = -W_-1(-a e^-b) / a with a = walks gap^2 /
    (64 sigma^2) and b = log_c / 2 (proof of Theorem 2; the main text's Delta^2 / 4 is a slip for
    Delta / 4). It is rounded up to a whole number, and returned as a float, because a
    small gap needs more steps than an int64 holds.
    """
    if math.isinf(gap):  # a lone arm has no rival
        return 1.0
    a = walks * min(gap / sigma, 1e150) ** 2 / 64.0  # the square must not overflow
    b = log_c / 2.0
    if a == 0.0:
        return math.inf
    log_y = math.log(a) - b  # y = a e^-b
    if log_y >= -1.0:  # alpha lies below gap / 4 everywhere
        return 1.0
    if log_y < -700.0:  # a e^-b leaves the range of doubles: no gap that small can be resolved
        return math.inf
    n = max(1.0, math.ceil(_minus_lambert(log_y) / a))
    if n < 2.0**52:  # the root is right to a few ulps: settle the last step by the definition
        while n > 1.0 and radius(n - 1.0, walks, log_c, sigma) <= gap / 4.0:
            n -= 1.0
        while radius(n, walks, log_c, sigma) > gap / 4.0:
            n += 1.0
    return n


def _minus_lambert(log_y: float) -> float:
    """Return v = -W_-1(-y), which solves v - ln v = -ln y with v > 1.

    By Newton's method, as v - ln v is convex, from a larger v on: Chatzigeorgiou (2013) proves that
    1 + sqrt(2 u) + u with u = -ln y - 1 is one. SciPy's function takes 0.1 seconds to import.
    """
    excess = -log_y - 1.0
    v, smaller = math.inf, 1.0 + math.sqrt(2.0 * excess) + excess
    while 1.0 < smaller < v:
        v = smaller
        smaller = v - (v - math.log(v) + log_y) / (1.0 - 1.0 / v)
    return v


def _last_above(excess: Callable[[float], float]) -> float:
    """Return the least whole n >= 1 from which on ``excess`` is not positive.

    n times the excess must be concave, as g(n) - c n is: then the steps at which the excess is
    positive are an interval. Its right end is bracketed by doubling, then bisected.
    """
    low, high = 0.0, 1.0
    while high < 2.0**1000:
        if excess(high) > 0.0:
            low = high
        elif 2.0 * high * excess(2.0 * high) <= high * excess(high):  # falling: for ever negative
            break
        high *= 2.0
    else:
        return math.inf
    if low == 0.0:
        return 1.0
    while high - low > 1.0 and (middle := math.floor(0.5 * (low + high))) not in (low, high):
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return high


def grid() -> list[float]:
    """Return the nodes, GRID in an octave, from 1 to 2^53."""
    return [2.0**t * (1.0 + i / GRID) for t in range(_OCTAVES) for i in range(GRID)] + [
        2.0**_OCTAVES
    ]
