"""Walks of rewards with finite support: the vector of how often each value has come, exactly.

Extended by multinomial draws, split by hypergeometric ones (`variates`), down to stretches of
STRETCH steps. Inside such a stretch the order of its known rewards is a uniformly random
permutation, and that is drawn as it is: a stretch in doubt is shuffled and walked. A shuffled
step costs a few nanoseconds, a hypergeometric split ten times as much.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from fastfed.kernels.compiling import kernel
from fastfed.kernels.random.discrete import extend_counts, split_counts, words_at
from fastfed.kernels.random.philox import multiply_wide

STRETCH = 32
_PICKS = 4  # from one word: the low half of a product serves as the next word, 2^-44 off at worst


@kernel
def weigh(counts, values):
    """The sum of the rewards, and of their squares."""
    total = 0.0
    squares = 0.0
    for v in range(values.shape[0]):
        term = values[v] * float(counts[v])
        total += term
        squares += values[v] * term
    return total, squares


@kernel
def next_value(left_over, pick):
    """Which value the ``pick``-th of the remaining rewards has."""
    v = 0
    while pick >= left_over[v]:
        pick -= left_over[v]
        v += 1
    return v


@kernel
def shuffle_steps(left, right, length, address, values, rest, first, steps):
    """steps[i] += the sum of the rewards up to i steps past the left end, i = 1 .. length - 1,
    where first is that sum at the left end itself; ``rest`` is scratch."""
    for v in range(values.shape[0]):
        rest[v] = right[v] - left[v]
    total = first
    words = (uint64(0), uint64(0), uint64(0), uint64(0))
    word = uint64(0)
    for i in range(length - 1):
        if i % (4 * _PICKS) == 0:
            words = words_at(address, np.int64(0), 1 + i // (4 * _PICKS))
        if i % _PICKS == 0:
            word = words[(i // _PICKS) & 3]
        high, word = multiply_wide(word, uint64(length - i))
        v = next_value(rest, np.int64(high))
        rest[v] -= 1
        total += values[v]
        steps[i + 1] += total


@kernel
def count_walk_value(address, values, shares, scratch, steps):
    """X(n), n >= 1, from nothing but its address (seed, trial, client, arm, n); scratch is (4, V)
    of int64, steps (STRETCH,)."""
    seed, trial, client, arm, n = address
    size = values.shape[0]
    for v in range(size):
        scratch[0, v] = 0
    left, right, middle_row = 0, 1, 2
    a, b = 0, 1
    extend_counts(scratch[0], shares, 1, (seed, trial, client, arm, 1), scratch[1])
    while b < n:
        left, right = right, left
        a, b = b, 2 * b
        extend_counts(scratch[left], shares, a, (seed, trial, client, arm, b), scratch[right])
    while b != n:
        middle = (a + b) // 2
        place = (seed, trial, client, arm, middle)
        if b - a <= STRETCH:
            first, _ = weigh(scratch[left], values)
            for i in range(b - a):
                steps[i] = 0.0
            shuffle_steps(scratch[left], scratch[right], b - a, place, values, scratch[3], first,
                          steps)
            return steps[n - a]
        split_counts(scratch[left], scratch[right], (b - a) // 2, place, scratch[middle_row])
        if middle <= n:
            left, middle_row, a = middle_row, left, middle
            if middle == n:
                return weigh(scratch[left], values)[0]
        else:
            right, middle_row, b = middle_row, right, middle
    return weigh(scratch[right], values)[0]
