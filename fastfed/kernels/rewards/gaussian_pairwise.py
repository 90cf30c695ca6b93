"""Pairwise passes of Gaussian rewards, for a client's intervals with few unresolved pairs.

A pass keeps lists of schedules and of arms for every interval. A client has one schedule, every
step, and most of its intervals have one unresolved pair: there the lists cost more than the draws.
A pairwise pass follows one pair, on the same walks and by the same bound, in registers. It finds
the first step at which one arm leads the other by g or more. Several pairwise passes in one
interval do not disturb each other: an arm that is eliminated ends its other pairs, so the earliest
eliminations are carried out first, those of one step together.

A pairwise pass quarters its intervals, as one block of words does (see `normal`): it draws the
middle, and then the middle of each half that is still unresolved.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import smaller
from fastfed.kernels.memory import (
    ALIVE,
    BAR,
    CERTIFICATES,
    LAST,
    LEFT,
    MOST_PAIRS,
    NEVER,
    NEXT,
    RIGHT,
    A,
    B,
)
from fastfed.kernels.radii import CHORD, boundary_between, reaches
from fastfed.kernels.random.normal import is_power_of_four, normal_from, quarter_words
from fastfed.kernels.rewards.gaussian_walk import noise_at, split
from fastfed.kernels.schedules import communicate_through, conclude

SHORTEST = 4  # steps of an interval that a pairwise pass can take on


class Stack(NamedTuple):
    """The boundary of a pairwise pass, and the intervals that it has still to look at."""

    radius: Any
    span: Any  # (2 depths, 2)
    edge: Any  # (2 depths, 6)


class End(NamedTuple):
    """An end of an interval: the step, the two sums, g."""

    n: Any
    x: Any
    y: Any
    g: Any


class Pair(NamedTuple):
    """The addresses of two arms, and the noise of a step of each."""

    seed: Any
    trial: Any
    client: Any
    j: Any
    k: Any
    noise_j: Any
    noise_k: Any


@inlined
def _certified(left, right, least):
    """Certify that neither arm leads by g between two ends, by the bridge's bound of `gaussian`.

    It has no branches, because both outcomes are equally likely.
    """
    lead_a, lead_b = left.x - left.y, right.x - right.y
    up_a, up_b = left.g - lead_a, right.g - lead_b
    down_a, down_b = left.g + lead_a, right.g + lead_b
    inside = (smaller(up_a, up_b) > 0.0) & (smaller(down_a, down_b) > 0.0)
    return inside & (smaller(up_a * up_b, down_a * down_b) >= least)


@inlined
def _push(stack, top, left, right):
    """Put the interval between two ends on the stack."""
    stack.span[top, 0], stack.span[top, 1] = left.n, right.n
    edge = stack.edge[top]
    edge[0], edge[1], edge[2] = left.x, left.y, left.g
    edge[3], edge[4], edge[5] = right.x, right.y, right.g


@inlined
def _point(pair, words, n, left, right, root):
    """Return the two sums in the middle n of an interval, from the words of j and of k at n.

    ``root`` is the square root of a quarter of its length.
    """
    z_j = normal_from(words[0], pair.seed, pair.trial, pair.client, pair.j, n)
    z_k = normal_from(words[1], pair.seed, pair.trial, pair.client, pair.k, n)
    return (
        split(left.x, right.x, pair.noise_j * root, z_j),
        split(left.y, right.y, pair.noise_k * root, z_k),
    )


@inlined
def _middle(pair, words, left, right, root, radius, level):
    """Return the end in the middle of an interval."""
    n = (left.n + right.n) >> 1
    x, y = _point(pair, words, n, left, right, root)
    g = boundary_between(
        radius, left.n, right.n, left.g, right.g, level, smaller(pair.noise_j, pair.noise_k)
    )
    return End(n, x, y, g)


@inlined
def _words(pair, a, s):
    """Return the words of both arms at a + s, a + 2 s and a + 3 s."""
    v1, v2, v3, _ = quarter_words(pair.seed, pair.trial, pair.client, pair.j, a, s)
    w1, w2, w3, _ = quarter_words(pair.seed, pair.trial, pair.client, pair.k, a, s)
    return (v1, w1), (v2, w2), (v3, w3)


@inlined
def _first_crossing(pair, left, right, words, radius, level):
    """Return the first of four steps at which the lead reaches g, negative if k leads; or 0."""
    a, root = left.n, math.sqrt(0.5)
    x2, y2 = _point(pair, words[1], a + 2, left, right, 1.0)
    middle = End(a + 2, x2, y2, 0.0)
    x1, y1 = _point(pair, words[0], a + 1, left, middle, root)
    x3, y3 = _point(pair, words[2], a + 3, middle, right, root)
    rise = 0.25 * (right.g - left.g)
    lead1, lead2, lead3, lead4 = x1 - y1, x2 - y2, x3 - y3, right.x - right.y
    if (
        (abs(lead1) >= CHORD * (left.g + rise))
        | (abs(lead2) >= CHORD * (left.g + 2.0 * rise))
        | (abs(lead3) >= CHORD * (left.g + 3.0 * rise))
        | (abs(lead4) >= right.g)
    ):
        for i in range(1, 5):
            lead = lead1 if i == 1 else lead2 if i == 2 else lead3 if i == 3 else lead4
            octave = level + ((a + i) >> level)
            if reaches(radius, abs(lead), a + i, octave):
                return a + i if lead > 0.0 else -(a + i)
    return np.int64(0)


@inner
def pairwise_pass(pair, stack, left, right, level):
    """Return the first step in (a, b] at which one arm leads the other by g, or 0 if there is none.

    Arm j has the sum x, arm k the sum y. The step is negative if k leads. Return also the numbers
    of certificates, of looks and of draws.
    """
    radius = stack.radius
    # the bridge's bound for a pair of variance rate noise_j^2 + noise_k^2: see `gaussian`
    least = 0.5 * (pair.noise_j * pair.noise_j + pair.noise_k * pair.noise_k) * BAR
    looks, draws, certificates = 0, 0, 0
    top, one = np.uint64(0), np.uint64(1)
    crossing = np.int64(0)
    if not is_power_of_four(right.n - left.n):  # its middle is a first or third quarter point
        half = (right.n - left.n) >> 1
        n = left.n + half
        first, _, third = _words(pair, n & -(4 * half), half)
        words = third if n & (2 * half) != 0 else first
        middle = _middle(pair, words, left, right, math.sqrt(0.5 * float(half)), radius, level)
        _push(stack, top, middle, right)
        top += one
        draws += 2
        right = middle
    while True:
        s = (right.n - left.n) >> 2
        words1, words2, words3 = _words(pair, left.n, s)
        if s == 1:
            draws += 6
            crossing = _first_crossing(pair, left, right, (words1, words2, words3), radius, level)
            if crossing != 0:
                break
        else:
            middle = _middle(pair, words2, left, right, math.sqrt(float(s)), radius, level)
            bound, root = least * float(s), math.sqrt(0.5 * float(s))
            certified_left = _certified(left, middle, 2.0 * bound)
            certified_right = _certified(middle, right, 2.0 * bound)
            draws += 2
            looks += 2
            certificates += 2 * (np.int64(certified_left) + np.int64(certified_right))
            if not certified_right:
                third = _middle(pair, words3, middle, right, root, radius, level)
                certified3, certified4 = (
                    _certified(middle, third, bound),
                    _certified(third, right, bound),
                )
                draws += 2
                looks += 2
                certificates += 2 * (np.int64(certified3) + np.int64(certified4))
                _push(stack, top, third, right)
                top += np.uint64(not certified4)
                _push(stack, top, middle, third)
                top += np.uint64(not certified3)
            if not certified_left:
                first = _middle(pair, words1, left, middle, root, radius, level)
                certified1, certified2 = (
                    _certified(left, first, bound),
                    _certified(first, middle, bound),
                )
                draws += 2
                looks += 2
                certificates += 2 * (np.int64(certified1) + np.int64(certified2))
                _push(stack, top, first, middle)
                top += np.uint64(not certified2)
                if not certified1:
                    right = first
                    continue
        if top == 0:
            break
        top -= one
        edge = stack.edge[top]
        left = End(stack.span[top, 0], edge[0], edge[1], edge[2])
        right = End(stack.span[top, 1], edge[3], edge[4], edge[5])
    return crossing, certificates, looks, draws


def settle_pairwise(rewards, memory, scope, walks, tree, schedules, radius, found):
    """Carry the one schedule of a client through an interval with few `Unresolved` pairs."""
    count, depth, level = found.pairs, found.depth, found.level
    a, b = tree.frame[depth, A], tree.frame[depth, B]
    if count > MOST_PAIRS or b - a < SHORTEST or b > schedules.times[0, LAST]:
        return False
    stack = Stack(radius, memory.span, memory.edge)
    state, frame, g, value, pairs = schedules.state, tree.frame, tree.g, walks.value, tree.pairs
    s, m = np.uint32(0), scope.lo
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    for p in range(count):
        j, k = pairs[p, 0], pairs[p, 1]
        pair = Pair(
            scope.seed, scope.trial, m, j, k, noise_at(rewards, j, m), noise_at(rewards, k, m)
        )
        pairs[p, 2], certificates, looks, draws = pairwise_pass(
            pair,
            stack,
            End(a, value[left, j, m], value[left, k, m], g[depth, 0]),
            End(b, value[right, j, m], value[right, k, m], g[depth, 1]),
            level,
        )
        walks.work[0] += looks
        walks.work[1] += draws
        state[s, CERTIFICATES] += certificates
        if pairs[p, 2] < 0:
            pairs[p, 0], pairs[p, 1], pairs[p, 2] = k, j, -pairs[p, 2]
    carry_out(count, a, b, pairs, schedules)
    return True


@inner
def carry_out(count, a, b, pairs, schedules):
    """Carry out the eliminations of pairwise passes in (a, b], those of one step together."""
    s = np.int64(0)
    state, eliminated_at = schedules.state, schedules.eliminated_at
    n = a
    while n < b and state[s, NEXT] < NEVER:
        n = b  # or the next step at which an arm is eliminated
        for p in range(count):
            if (
                pairs[p, 2] > 0
                and eliminated_at[s, pairs[p, 0]] == eliminated_at[s, pairs[p, 1]] == NEVER
            ):
                n = smaller(n, pairs[p, 2])
        communicate_through(s, n, state[s, ALIVE], schedules)
        for p in range(count):
            if (
                pairs[p, 2] == n
                and eliminated_at[s, pairs[p, 0]] >= n
                and eliminated_at[s, pairs[p, 1]] == NEVER
            ):
                eliminated_at[s, pairs[p, 1]] = n
                state[s, ALIVE] -= 1
        conclude(s, n, schedules)
