"""Poisson rewards: X(n) is the number of events in the first n pulls.

    X(2^t) = X(2^(t-1)) + a Poisson number of mean mu 2^(t-1)                          (extend)
    X(middle) = X(left) + a fair binomial half of the events between the ends          (split)

Events of a Poisson process are spread independently and evenly, given their number: so each event
of an interval lies in its first half with probability 1/2, and X is exactly the walk of i.i.d.
Poisson rewards.

Certificates. Let an interval have N steps, E the number of events in it, of both arms and
all clients, W_n the pair's difference n steps in, less its chord, and let it be d1 and d2 below g
at the ends. g is concave, so a crossing inside needs W_n >= d1 + (d2 - d1) n / N for some n.

First n <= N / 2. One event at a random step U contributes w_n = 1{U <= n} - n / N, and
z_n = w_n N / (N - n) is a martingale. In terms of Z, the sum of the z, the line reads d1 + d2 s,
s = n / (N - n) <= 1. A jump of z is at most N / (N - n) <= 2, and its conditional variance at step
i at most N^2 / ((N - i)^2 (N - i + 1)), which sums to at most c (s + s^2 / 2) <= 1.5 c s with
c = 1 + 2 / N: 1 / (y^2 (y + 1)) is (y + 1) / (y + 1/2) times the integral of x^-3 from y to y + 1.
Events are independent, whatever their arm and so their sign. By Bernstein's bound on the moment
generating function exp(l Z_n - l^2 1.5 c E s_n / (2 (1 - 2 l / 3))) is a supermartingale for
0 < l < 3/2; with l = d2 / (0.75 c E + (2/3) d2) it grows as exp(l (Z_n - d2 s_n)), and by Ville's
inequality the line is ever met with probability at most exp(-l d1). For n > N / 2 read the interval
backwards: the events' law is the same, and d1 and d2 exchange their roles. So the pair is certified
if

    d1 d2 >= (BAR + ln 2) (0.75 c E + (2/3) max(d1, d2)).

If clients have weights, an event of client m counts w_m. With w the largest weight, jumps are at
most w times as large, and the sum of w_m^2 over events is at most w E, where E now adds up weights.
So the pair is certified if d1 d2 >= (BAR + ln 2) w (0.75 c E + (2/3) max(d1, d2)).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.kernels.compiling import inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.memory import BAR, DRAWN, LEFT, MIDDLE, RIGHT, STEP, A, B
from fastfed.kernels.random.binomial import binomial
from fastfed.kernels.random.discrete import (
    VARIATE_ERROR,
    VARIATE_ERROR_A_SIGMA,
    hat_width,
    log_rise,
)
from fastfed.kernels.random.normal import unit
from fastfed.kernels.random.words import words_at
from fastfed.kernels.rewards import hooks
from fastfed.kernels.sums import add_client

_LEAF = 2
_INVERTED = 16.0  # below this mean inversion from 0 is quicker
_LONGEST = 200  # steps of an inversion: at a mean of 16 more have a probability below 1e-100
_BAR = BAR + math.log(2.0)


class PoissonMemory(NamedTuple):
    """The empty memory of Poisson walks, which need none of their own."""

    nothing: Any


class PoissonRewards(NamedTuple):
    """Poisson rewards with a mean for each arm and client."""

    means: Any  # (K, M)

    @property
    def longest_walk(self) -> int:
        return _LEAF

    @property
    def origin(self) -> npt.NDArray[np.float64]:
        """Return zeros: all of a reward is summed."""
        return np.zeros(self.means.shape[1])

    def draw_error(self, steps: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Bound the error of one Poisson variate; a half has a smaller sigma."""
        sigma = np.sqrt(np.max(self.means, initial=0.0) * steps)
        return np.asarray(VARIATE_ERROR + VARIATE_ERROR_A_SIGMA * sigma)

    def memory(self, slots: int, arms: int, clients: int) -> PoissonMemory:
        return PoissonMemory(0)


@inner
def poisson(mean, address):
    """Draw a Poisson variate as a float, exact up to 2^53.

    By inversion, or by the ratio of uniforms around the mode (see `discrete`: the same hat covers a
    Poisson distribution of that variance).
    """
    if mean < _INVERTED:
        u, share, k = unit(words_at(address, np.int64(0), np.int64(1))[0]), math.exp(-mean), 0
        while u > share and k < _LONGEST:
            u -= share
            k += 1
            share *= mean / k
        return float(k)
    mode = float(math.floor(mean))
    width = hat_width(mean)
    tilt = math.log1p((mean - mode) / mode)
    position = np.int64(0)
    while True:
        position += 1
        words = words_at(address, np.int64(0), position)
        for i in range(0, 4, 2):
            u = unit(words[i])
            t = float(math.floor(mean - mode + 0.5 + width * (unit(words[i + 1]) - 0.5) / u))
            if t < -mode:
                continue
            height = t * tilt - log_rise(mode, t)
            # u - 1 / u <= 2 ln u <= u (4 - u) - 3 settles most without a logarithm
            if u * (4.0 - u) - 3.0 <= height:
                return mode + t
            if u * (u - height) < 1.0 and 2.0 * math.log(u) <= height:
                return mode + t


@inner
def fair_half(left, right, address):
    """Return X in the middle of an interval, from its ends."""
    return left + float(binomial(np.int64(right - left), 0.5, address, np.int64(0)))


@inner
def value_at(address, mean):
    """Return X(n), n >= 1, from nothing but its address (seed, trial, client, arm, n)."""
    seed, trial, client, arm, n = address
    a, b, left = np.int64(0), np.int64(1), 0.0
    right = poisson(mean, (seed, trial, client, arm, b))
    while b < n:
        a, b, left = b, 2 * b, right
        right = left + poisson(mean * float(a), (seed, trial, client, arm, b))
    while b != n:
        middle = (a + b) // 2
        value = fair_half(left, right, (seed, trial, client, arm, middle))
        if middle <= n:
            a, left = middle, value
            if middle == n:
                return value
        else:
            b, right = middle, value
    return right


@hooks.leaf.of(PoissonRewards)
def _leaf(rewards):
    return _LEAF


@hooks.noise_floor.of(PoissonRewards)
def _noise_floor(rewards):
    return 1.0


@hooks.certificate_bound.of(PoissonRewards)
def _certificate_bound(rewards, memory, scope, walks, tree, depth):
    _count_events(scope, walks, tree.frame, tree.drawn[depth], tree.variance, depth)
    length = float(tree.frame[depth, B] - tree.frame[depth, A])
    largest = 0.0
    for j in range(tree.frame[depth, DRAWN]):
        for m in range(scope.lo, scope.hi):
            largest = larger(largest, scope.weights[tree.drawn[depth, j], m])
    return _BAR * 0.75 * (1.0 + 2.0 / length) * largest, _BAR * (2.0 / 3.0) * largest


@hooks.certified.of(PoissonRewards)
def _certified(rewards, d_a, d_b, least, slack, variance):
    if d_b <= 0.0 or d_a <= 0.0:
        return False
    if smaller(d_a, d_b) >= variance:
        return True
    return d_a * d_b >= least * variance + slack * larger(d_a, d_b)


@hooks.walk_value.of(PoissonRewards)
def _walk_value(rewards, memory, address):
    return value_at(address, rewards.means[address[3], address[2]])


@hooks.extend_spine.of(PoissonRewards)
def _extend_spine(rewards, memory, scope, walks, tree, level):
    """Draw X(2^level), and the missing spine nodes below it, for the arms of depth 0."""
    drawn, count = tree.drawn[0], tree.frame[0, DRAWN]
    value, known, weights = walks.value, walks.known, scope.weights
    for i in range(count):
        k = np.int64(drawn[i])
        total = 0.0
        for m in range(scope.lo, scope.hi):
            if weights[k, m] == 0.0:
                continue
            for t in range(known[k, m], level + 1):
                before, half = (0.0, 1.0) if t == 0 else (value[t - 1, k, m], float(1 << (t - 1)))
                address = (scope.seed, scope.trial, m, k, np.int64(1) << t)
                value[t, k, m] = before + poisson(half * rewards.means[k, m], address)
                walks.work[1] += 1
            known[k, m] = larger(known[k, m], level + 1)
            total = add_client(weights[k], total, m, value[level, k, m])
        walks.total[level, k] = total


@hooks.split_interval.of(PoissonRewards)
def _split_interval(rewards, memory, scope, walks, tree, depth):
    _halve(scope, walks, tree, depth, MIDDLE + depth)


@hooks.walk_interval.of(PoissonRewards)
def _walk_interval(rewards, memory, scope, walks, tree, depth):
    """Draw X at the first step of the interval at `depth`, which is 2 long: its middle."""
    _halve(scope, walks, tree, depth, np.int64(STEP + 1))


@inner
def _halve(scope, walks, tree, depth, slot):
    """Draw X in the middle of the interval at `depth`, into a slot."""
    frame, drawn, value = tree.frame, tree.drawn[depth + 1], walks.value
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    middle = (frame[depth, A] + frame[depth, B]) >> 1
    count, weights, draws = frame[depth + 1, DRAWN], scope.weights, np.int64(0)
    for j in range(count):
        k = np.int64(drawn[j])
        total = 0.0
        for m in range(scope.lo, scope.hi):
            if weights[k, m] == 0.0:
                continue
            draws += 1
            address = (scope.seed, scope.trial, m, k, middle)
            x = fair_half(value[left, k, m], value[right, k, m], address)
            value[slot, k, m] = x
            total = add_client(weights[k], total, m, x)
        walks.total[slot, k] = total
    walks.work[1] += draws


@inner
def _count_events(scope, walks, frame, drawn, events, depth):
    """Count the events of each arm in the interval, times their weights, over all clients."""
    value = walks.value
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    for j in range(frame[depth, DRAWN]):
        k = drawn[j]
        count = 0.0
        for m in range(scope.lo, scope.hi):
            if scope.weights[k, m] > 0.0:
                count += scope.weights[k, m] * (value[right, k, m] - value[left, k, m])
        events[k] = count
