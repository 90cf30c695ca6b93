"""What a pass draws where rewards have finite support: counts in place of normals."""

from __future__ import annotations

import numpy as np

from fastfed.kernels.compiling import inner
from fastfed.kernels.laws.counts import shuffle_steps, weigh
from fastfed.kernels.memory import DRAWN, LEFT, MIDDLE, ORIGIN, RIGHT, STEP, A, B
from fastfed.kernels.random.discrete import extend_counts, split_counts


@inner
def extend_spine_counts(
    seed, trial, values, shares, lo, hi, level, frame, drawn, known, counts, value, squares, total,
    work,
):
    """Draw the counts of a pass's next spine node, and what is missing below it."""
    for i in range(frame[0, DRAWN]):
        k = drawn[0, i]
        sum_over_clients = 0.0
        for m in range(lo, hi):
            for t in range(known[k, m], level + 1):
                # slot ORIGIN holds no rewards, ever
                before, half = (ORIGIN, 1) if t == 0 else (t - 1, 1 << (t - 1))
                extend_counts(counts[before, k, m], shares[k, m], half,
                              (seed, trial, m, np.int64(k), np.int64(1) << t), counts[t, k, m])
                value[t, k, m], squares[t, k, m] = weigh(counts[t, k, m], values)
                work[1] += 1
            known[k, m] = max(known[k, m], level + 1)
            sum_over_clients += value[level, k, m]
        total[level, k] = sum_over_clients


@inner
def split_interval_counts(
    seed, trial, values, lo, hi, depth, frame, drawn, counts, value, squares, total, work
):
    """Draw the counts in the middle of the interval at `depth`."""
    slot, left, right = MIDDLE + depth, frame[depth, LEFT], frame[depth, RIGHT]
    middle = (frame[depth, A] + frame[depth, B]) // 2
    half = (frame[depth, B] - frame[depth, A]) // 2
    count = frame[depth + 1, DRAWN]
    for j in range(count):
        k = drawn[depth + 1, j]
        sum_over_clients = 0.0
        for m in range(lo, hi):
            split_counts(counts[left, k, m], counts[right, k, m], half,
                         (seed, trial, m, np.int64(k), middle), counts[slot, k, m])
            value[slot, k, m], squares[slot, k, m] = weigh(counts[slot, k, m], values)
            sum_over_clients += value[slot, k, m]
        total[slot, k] = sum_over_clients
    work[1] += count * (hi - lo)


@inner
def shuffle_interval(
    seed, trial, values, lo, hi, depth, frame, drawn, counts, value, total, steps, rest, work
):
    """Shuffle the interval at `depth` and walk it: S at each step n in slot STEP + n - a."""
    a, length = frame[depth, A], frame[depth, B] - frame[depth, A]
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    count = frame[depth + 1, DRAWN]
    for j in range(count):
        k = drawn[depth + 1, j]
        for i in range(length):
            steps[i] = 0.0
        for m in range(lo, hi):
            shuffle_steps(counts[left, k, m], counts[right, k, m], length,
                          (seed, trial, m, np.int64(k), a + length // 2), values, rest,
                          value[left, k, m], steps)
        for i in range(1, length):
            total[STEP + i, k] = steps[i]
        total[STEP + length, k] = total[right, k]
    work[1] += count * (hi - lo) * (length - 1)


@inner
def measure_variance(lo, hi, depth, frame, drawn, value, squares, variance):
    """Per arm, the variance of its rewards in the interval, summed over clients."""
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    share = 1.0 / float(frame[depth, B] - frame[depth, A])
    for j in range(frame[depth, DRAWN]):
        k = drawn[depth, j]
        sum_over_clients = 0.0
        for m in range(lo, hi):
            mean = (value[right, k, m] - value[left, k, m]) * share
            square = (squares[right, k, m] - squares[left, k, m]) * share
            sum_over_clients += max(0.0, square - mean * mean)
        # rounding may have eaten a little; a variance too large is only a look too many
        variance[k] = sum_over_clients * (1.0 + 1e-6) + 1e-9 * (hi - lo)
