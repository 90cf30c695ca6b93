"""Pairwise passes of rewards with finite support, for intervals with few unresolved pairs.

As in `gaussian_pairwise`, each pair is followed by itself, on the same walks as everywhere
(`counts`) and by any of the three bounds of `permuted`. Each bound by itself holds for all ends,
and the choice between them depends on the ends alone.

The interval that is looked at is at some depth of its own tree. Its middle has a slot of its own,
depth + 2, and so have the words that its middle shares with those of its halves. The left half is
done before the right one, so a slot is not needed by two at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.memory import CERTIFICATES, DEPTHS, LEFT, RIGHT, A, B, ints
from fastfed.kernels.radii import CHORD, boundary_between, reaches
from fastfed.kernels.random.halves import half as random_half
from fastfed.kernels.random.normal import is_power_of_four, quarter_words
from fastfed.kernels.random.words import spare_bits
from fastfed.kernels.rewards.counts import (
    LEAF,
    deviations,
    quarter_word,
    shuffle_steps,
    split_cell,
    weigh,
)
from fastfed.kernels.rewards.gaussian_pairwise import End, carry_out
from fastfed.kernels.rewards.permuted import both_stay_below

_FIRST, _SECOND = np.int64(0), np.int64(1)  # of the two arms


class PairwiseMemory(NamedTuple):
    """Scratch memory of one pairwise pass: its two arms, its middles, its stack of intervals."""

    kinds: Any  # (2,) of the two cells, and what follows: see `finite`
    base: Any  # (2,)
    rise: Any  # (2, V - 1)
    reach: Any  # (2,)
    counts: Any  # (depths + 2, 2, V - 1) of the two arms, in slots
    words: Any  # (depths, 2, 3) of the quarter points beside a middle, and spare bits
    steps: Any  # (2, LEAF)
    rest: Any  # (V,)
    span: Any  # (depths, 5) a, b, the slots of the two ends, the depth
    edge: Any  # (depths, 6) the two sums and g, at a and at b


def pairwise_memory(most: int) -> PairwiseMemory:
    """Make the memory of pairwise passes; ``most`` is the largest number of counts of a cell."""
    return PairwiseMemory(
        ints(2),
        np.zeros(2),
        np.zeros((2, most)),
        np.zeros(2),
        ints(DEPTHS + 2, 2, most),
        np.zeros((DEPTHS, 2, 3), np.uint64),
        np.zeros((2, LEAF)),
        ints(most + 1),
        ints(DEPTHS, 5),
        np.zeros((DEPTHS, 6)),
    )


class Pair(NamedTuple):
    """The addresses of two arms, and the noise of a step."""

    seed: Any
    trial: Any
    client: Any
    j: Any
    k: Any
    noise: Any


class Place(NamedTuple):
    """An interval: the slots of its ends, its depth, whether it is a right half."""

    left: Any
    right: Any
    depth: Any
    is_right: Any


@inlined
def _address(pair, arm, n):
    return pair.seed, pair.trial, pair.client, arm, n


@inlined
def _middle_sum(memory, which, address, half, place):
    """Return the sum of an arm in the middle of an interval.

    Its counts go to slot depth + 2, and words for the middles of its halves may go to
    ``memory.words[depth]``.
    """
    seed, trial, client, arm, n = address
    slot, depth, kinds = place.depth + 2, place.depth, memory.kinds[which]
    counts, words = memory.counts, memory.words
    if kinds == 1:
        if not is_power_of_four(half):
            w1, word, w3, rest = quarter_words(seed, trial, client, arm, n - half, half >> 1)
            words[depth, which, 0], words[depth, which, 1], words[depth, which, 2] = w1, w3, rest
            spare = spare_bits(rest, np.int64(1))
        elif depth == 0:
            word, spare = quarter_word(address, n - half, half)
        else:
            word = words[depth - 1, which, place.is_right]
            spare = spare_bits(words[depth - 1, which, 2], 2 * place.is_right)
        before = counts[place.left, which, 0]
        counts[slot, which, 0] = before + random_half(
            counts[place.right, which, 0] - before, half, word, spare, address
        )
    elif kinds > 1:
        split_cell(
            counts[place.left, which],
            counts[place.right, which],
            kinds,
            half,
            address,
            counts[slot, which],
        )
    return weigh(counts[slot, which], kinds, memory.rise[which], memory.base[which], n)


@inlined
def _spread(memory, which, slots, length):
    """Return the squares, reach, ranges and distances of one cell, for `permuted`."""
    kinds = memory.kinds[which]
    if kinds == 0:
        return 0.0, 0.0, 0.0, 0.0
    squares, distances = deviations(
        memory.counts[slots[0], which],
        memory.counts[slots[1], which],
        kinds,
        memory.rise[which],
        length,
    )
    reach = memory.reach[which] if distances > 0.0 else 0.0
    return squares, reach, 0.25 * reach * reach, distances


@inlined
def _certified(memory, left, right, slots):
    """Certify that neither arm leads by g between two ends."""
    length = right.n - left.n
    lead_a, lead_b = left.x - left.y, right.x - right.y
    up, down = (left.g - lead_a, right.g - lead_b), (left.g + lead_a, right.g + lead_b)
    if smaller(smaller(up[0], up[1]), smaller(down[0], down[1])) <= 0.0:  # nothing to be counted
        return False
    j, k = _spread(memory, _FIRST, slots, length), _spread(memory, _SECOND, slots, length)
    return both_stay_below(
        up, down, length, (j[0] + k[0], larger(j[1], k[1]), j[2] + k[2], j[3] + k[3])
    )


@inlined
def _shuffle(memory, which, address, place, a, length):
    shuffle_steps(
        (memory.counts[place.left, which], memory.counts[place.right, which]),
        memory.kinds[which],
        memory.rise[which],
        memory.base[which],
        memory.rest,
        (a, length),
        address,
        memory.steps[which],
    )


@inlined
def _first_crossing(memory, pair, left, right, place, radius_and_level):
    """Return the first step of a leaf at which the lead reaches g, negative if k leads; or 0."""
    radius, level = radius_and_level
    a, length, steps = left.n, right.n - left.n, memory.steps
    middle = a + length // 2
    _shuffle(memory, _FIRST, _address(pair, pair.j, middle), place, a, length)
    _shuffle(memory, _SECOND, _address(pair, pair.k, middle), place, a, length)
    rise = (right.g - left.g) / float(length)
    for i in range(1, length + 1):
        lead = steps[0, i] - steps[1, i] if i < length else right.x - right.y
        if abs(lead) >= CHORD * (left.g + float(i) * rise):
            octave = level + ((a + i) >> level)
            if reaches(radius, abs(lead), a + i, octave):
                return a + i if lead > 0.0 else -(a + i)
    return np.int64(0)


@inner
def pairwise_pass(memory, pair, left, right, radius, level):
    """Return the first step in (a, b] at which one arm leads the other by g, or 0 if there is none.

    Arm j has the sum x, arm k the sum y. The step is negative if k leads. Return also the numbers
    of certificates, of looks and of draws. The memory knows the two cells, and in slots 0 and 1
    their counts at the two ends.
    """
    span, edge = memory.span, memory.edge
    looks, draws, certificates = 0, 0, 0
    crossing, top = np.int64(0), np.int64(0)
    place = Place(np.int64(0), np.int64(1), np.int64(0), np.int64(0))
    varying = np.int64(memory.kinds[0] > 0) + np.int64(memory.kinds[1] > 0)
    while True:
        length = right.n - left.n
        if length <= LEAF:
            draws += varying * (length - 1)
            crossing = _first_crossing(memory, pair, left, right, place, (radius, level))
            if crossing != 0:
                break
        else:
            half, slot, below = length >> 1, place.depth + 2, place.depth + 1
            n = left.n + half
            x = _middle_sum(memory, _FIRST, _address(pair, pair.j, n), half, place)
            y = _middle_sum(memory, _SECOND, _address(pair, pair.k, n), half, place)
            g = boundary_between(radius, left.n, right.n, left.g, right.g, level, pair.noise)
            middle = End(n, x, y, g)
            certified_left = _certified(memory, left, middle, (place.left, slot))
            certified_right = _certified(memory, middle, right, (slot, place.right))
            draws += varying
            looks += 2
            certificates += 2 * (np.int64(certified_left) + np.int64(certified_right))
            if not certified_right:
                span[top, 0], span[top, 1], span[top, 2] = n, right.n, slot
                span[top, 3], span[top, 4] = place.right, below
                edge[top, 0], edge[top, 1], edge[top, 2] = x, y, g
                edge[top, 3], edge[top, 4], edge[top, 5] = right.x, right.y, right.g
                top += 1
            if not certified_left:
                right, place = middle, Place(place.left, slot, below, np.int64(0))
                continue
        if top == 0:
            break
        top -= 1
        left = End(span[top, 0], edge[top, 0], edge[top, 1], edge[top, 2])
        right = End(span[top, 1], edge[top, 3], edge[top, 4], edge[top, 5])
        place = Place(span[top, 2], span[top, 3], span[top, 4], np.int64(1))
    return crossing, certificates, looks, draws


@inner
def _enter(rewards, memory, counts, which, arm, m, ends):
    """Enter one cell into the memory of a pairwise pass."""
    left, right = ends
    memory.kinds[which], memory.base[which] = rewards.kinds[arm, m], rewards.base[arm, m]
    memory.reach[which] = rewards.reach[arm, m]
    for v in range(rewards.kinds[arm, m]):
        memory.rise[which, v] = rewards.rise[arm, m, v]
        memory.counts[0, which, v] = counts[left, m, arm, v]
        memory.counts[1, which, v] = counts[right, m, arm, v]


@inlined
def settle_pairs(rewards, memory, scope, walks, tree, schedules, radius, found):
    """Carry the one schedule of a client through an interval with few `Unresolved` pairs."""
    depth, pairwise, counts = found.depth, memory.pairwise, memory.counts
    state, frame, g, value, pairs = schedules.state, tree.frame, tree.g, walks.value, tree.pairs
    s, m = np.uint32(0), scope.lo
    a, b = frame[depth, A], frame[depth, B]
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    for p in range(found.pairs):
        j, k = pairs[p, 0], pairs[p, 1]
        _enter(rewards, pairwise, counts, _FIRST, j, m, (left, right))
        _enter(rewards, pairwise, counts, _SECOND, k, m, (left, right))
        pairs[p, 2], certificates, looks, draws = pairwise_pass(
            pairwise,
            Pair(scope.seed, scope.trial, m, j, k, rewards.noise),
            End(a, value[left, j, m], value[left, k, m], g[depth, 0]),
            End(b, value[right, j, m], value[right, k, m], g[depth, 1]),
            radius,
            found.level,
        )
        walks.work[0] += looks
        walks.work[1] += draws
        state[s, CERTIFICATES] += certificates
        if pairs[p, 2] < 0:
            pairs[p, 0], pairs[p, 1], pairs[p, 2] = k, j, -pairs[p, 2]
    carry_out(found.pairs, a, b, pairs, schedules)
