"""Rewards with finite support: how a pass draws their walks on counts, and when it may skip.

The counts are in `counts`, their variates in `kernels.random.discrete`.

When a pair is safe. Inside (a, b], N = b - a long, the order of each arm's known rewards is a
uniformly random permutation. By Hoeffding (1963, Theorem 4) sums without replacement have no
larger moments than sums with it, so Bernstein's inequality holds for them: n steps in,
q = min(n, N - n), the pair is d above its own chord with probability at most
exp(-d^2 / (2 (q V + d R / 3))), V the sum of the variances of its arms' rewards in the interval
(over clients, too), R the range of a reward. The distance to g is nowhere below the smaller of d1
and d2, q nowhere above N / 2, and the N - 1 steps inside cost ln N in the exponent.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.compiling import inner
from fastfed.kernels.laws import hooks
from fastfed.kernels.laws.counts import STRETCH, count_walk_value, shuffle_steps, weigh
from fastfed.kernels.memory import (
    BAR,
    DRAWN,
    LEFT,
    MIDDLE,
    ORIGIN,
    RIGHT,
    STEP,
    A,
    B,
    ints,
)
from fastfed.kernels.random.discrete import extend_counts, split_counts


class FiniteMemory(NamedTuple):
    """Scratch memory of walks on counts."""

    counts: Any  # (slots, K, M, V) how often each value came
    squares: Any  # (slots, K, M) sum of the squared rewards
    steps: Any  # (STRETCH,) scratch of a shuffle
    rest: Any  # (V,)
    single: Any  # (4, V) scratch of a single value


class FiniteLaw(NamedTuple):
    """Each arm and client pays one of V values."""

    values: Any  # (V,) ascending
    shares: Any  # (K, M, V) see `discrete.shares`

    @property
    def longest_walk(self) -> int:
        return STRETCH

    def memory(self, slots: int, arms: int, clients: int) -> FiniteMemory:
        support = len(self.values)
        return FiniteMemory(ints(slots, arms, clients, support), np.zeros((slots, arms, clients)),
                            np.zeros(STRETCH), ints(support), ints(4, support))


@hooks.leaf.of(FiniteLaw)
def _leaf(law):
    return STRETCH


@hooks.noise_floor.of(FiniteLaw)
def _noise_floor(law):
    return 1.0


@hooks.judge_by.of(FiniteLaw)
def _judge_by(law, memory, who, walks, tree, depth):
    values = law.values
    length = float(tree.frame[depth, B] - tree.frame[depth, A])
    bar = BAR + math.log(length)
    _measure_variance(memory, who, walks, tree.frame, tree.drawn[depth], tree.variance, depth)
    return length * bar, 2.0 / 3.0 * bar * (values[values.shape[0] - 1] - values[0])


@hooks.safe.of(FiniteLaw)
def _safe(law, d_a, d_b, least, slack, variance):
    if d_b <= 0.0 or d_a <= 0.0:
        return False
    d = min(d_a, d_b)
    return d * d >= least * variance + slack * d


@hooks.settle_few.of(FiniteLaw)
def _settle_few(law, memory, who, walks, tree, talks, curve, here):
    return False


@hooks.walk_value.of(FiniteLaw)
def _walk_value(law, memory, address):
    client, arm = address[2], address[3]
    return count_walk_value(address, law.values, law.shares[arm, client], memory.single,
                            memory.steps)


@hooks.extend_spine.of(FiniteLaw)
def _extend_spine(law, memory, who, walks, tree, level):
    """Draw the counts of a pass's next spine node, and what is missing below it."""
    drawn, count = tree.drawn[0], tree.frame[0, DRAWN]
    counts, value, known = memory.counts, walks.value, walks.known
    for i in range(count):
        k = drawn[i]
        sum_over_clients = 0.0
        for m in range(who.lo, who.hi):
            for t in range(known[k, m], level + 1):
                # slot ORIGIN holds no rewards, ever
                before, half = (ORIGIN, 1) if t == 0 else (t - 1, 1 << (t - 1))
                address = (who.seed, who.trial, m, np.int64(k), np.int64(1) << t)
                extend_counts(counts[before, k, m], law.shares[k, m], half, address,
                              counts[t, k, m])
                value[t, k, m], memory.squares[t, k, m] = weigh(counts[t, k, m], law.values)
                walks.work[1] += 1
            known[k, m] = max(known[k, m], level + 1)
            sum_over_clients += value[level, k, m]
        walks.total[level, k] = sum_over_clients


@hooks.split_interval.of(FiniteLaw)
def _split_interval(law, memory, who, walks, tree, depth):
    """Draw the counts in the middle of the interval at `depth`."""
    frame, drawn = tree.frame, tree.drawn[depth + 1]
    counts, value = memory.counts, walks.value
    slot, left, right = MIDDLE + depth, frame[depth, LEFT], frame[depth, RIGHT]
    middle = (frame[depth, A] + frame[depth, B]) // 2
    half = (frame[depth, B] - frame[depth, A]) // 2
    count = frame[depth + 1, DRAWN]
    for j in range(count):
        k = drawn[j]
        sum_over_clients = 0.0
        for m in range(who.lo, who.hi):
            address = (who.seed, who.trial, m, np.int64(k), middle)
            split_counts(counts[left, k, m], counts[right, k, m], half, address,
                         counts[slot, k, m])
            value[slot, k, m], memory.squares[slot, k, m] = weigh(counts[slot, k, m], law.values)
            sum_over_clients += value[slot, k, m]
        walks.total[slot, k] = sum_over_clients
    walks.work[1] += count * (who.hi - who.lo)


@hooks.walk_interval.of(FiniteLaw)
def _walk_interval(law, memory, who, walks, tree, depth):
    """Shuffle the interval at `depth` and walk it: S at each step n in slot STEP + n - a."""
    frame, drawn = tree.frame, tree.drawn[depth + 1]
    counts, total, steps = memory.counts, walks.total, memory.steps
    a, length = frame[depth, A], frame[depth, B] - frame[depth, A]
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    count = frame[depth + 1, DRAWN]
    for j in range(count):
        k = drawn[j]
        for i in range(length):
            steps[i] = 0.0
        for m in range(who.lo, who.hi):
            address = (who.seed, who.trial, m, np.int64(k), a + length // 2)
            shuffle_steps(counts[left, k, m], counts[right, k, m], length, address, law.values,
                          memory.rest, walks.value[left, k, m], steps)
        for i in range(1, length):
            total[STEP + i, k] = steps[i]
        total[STEP + length, k] = total[right, k]
    walks.work[1] += count * (who.hi - who.lo) * (length - 1)


@inner
def _measure_variance(memory, who, walks, frame, drawn, variance, depth):
    """Per arm, the variance of its rewards in the interval, summed over clients."""
    value, squares = walks.value, memory.squares
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    share = 1.0 / float(frame[depth, B] - frame[depth, A])
    for j in range(frame[depth, DRAWN]):
        k = drawn[j]
        sum_over_clients = 0.0
        for m in range(who.lo, who.hi):
            mean = (value[right, k, m] - value[left, k, m]) * share
            square = (squares[right, k, m] - squares[left, k, m]) * share
            sum_over_clients += max(0.0, square - mean * mean)
        # rounding may have eaten a little; a variance too large is only a look too many
        variance[k] = sum_over_clients * (1.0 + 1e-6) + 1e-9 * (who.hi - who.lo)
