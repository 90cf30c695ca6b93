"""Gaussian rewards: the draws of their walks, and the certificates of pairs.

The walk itself is in `gaussian_walk`, its normals in `kernels.random.normal`. The functions here
serve two classes: one noise for all cells (`GaussianRewards`, in this file) and a noise for each
arm and client (`gaussian_noises`); they draw alike but for `noise_at`.

Certificates. g is concave, so it lies above its chord, and the walk of a pair, S_j - S_k,
sits inside a Brownian motion of variance rate v = 2 (hi - lo) noise^2, because the squares of the
weights of all clients add up to their number (`model.weights`). Between its two known ends
that is a bridge, and it crosses a line that is d1 above it at a and d2 above it at b with
probability exactly exp(-2 d1 d2 / (v (b - a))) (see Karatzas and Shreve, Brownian Motion and
Stochastic Calculus, 4.3.40).

Summation. The means of a client are taken less a number of its own, half-way between the
smallest and the largest of them: it is the same for all arms and so drops out of every comparison,
at the client and at the server. Means c and c + 1 make the sums of -1/2 and 1/2, however large c
is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.extremes import larger
from fastfed.kernels.memory import (
    BAR,
    DEPTHS,
    DRAWN,
    IS_RIGHT,
    LEFT,
    MIDDLE,
    RIGHT,
    STEP,
    A,
    B,
    Floats,
    ints,
)
from fastfed.kernels.random.normal import (
    is_power_of_four,
    normal_from,
    quarter_words,
    spine_words,
)
from fastfed.kernels.rewards import hooks
from fastfed.kernels.rewards.gaussian_pairwise import settle_pairwise
from fastfed.kernels.rewards.gaussian_walk import extended, noise_at, split, value_at, value_between
from fastfed.kernels.sums import add_client

LEAF = 4  # as long as the shortest interval of a pairwise pass


class GaussianMemory(NamedTuple):
    """Scratch memory of Gaussian walks and of their pairwise passes."""

    words: Any  # (depths, K, M, 2) of the two quarter points beside a middle: see `normal`
    span: Any  # (2 depths, 2) the stack of intervals of a pairwise pass: a, b
    edge: Any  # (2 depths, 6) and there X of the two arms and g, at a and at b


def gaussian_memory(arms: int, clients: int) -> GaussianMemory:
    """Make the memory of a pass with Gaussian rewards."""
    return GaussianMemory(
        np.zeros((DEPTHS, arms, clients, 2), np.uint64),
        ints(2 * DEPTHS, 2),
        np.zeros((2 * DEPTHS, 6)),
    )


def centred(means: Floats) -> Floats:
    """Return the means less the origin of each client, and below them the origin, (K + 1, M).

    If some clients lack arms (NaN), two arms may have different clients. Then only an origin that
    all clients share drops out of their difference. Cells that are never drawn become 0.
    """
    lacking = np.isnan(means)
    if lacking.any():
        origin = np.full(means.shape[1], 0.5 * np.nanmin(means) + 0.5 * np.nanmax(means))
        return np.vstack([np.where(lacking, 0.0, means - origin), origin])
    origin = 0.5 * means.min(axis=0) + 0.5 * means.max(axis=0)
    return np.vstack([means - origin, origin])


class GaussianRewards(NamedTuple):
    """Gaussian rewards with the same standard deviation for every arm and client."""

    means: Any  # (K + 1, M), less the origin, which is the last row: see `origin`
    noise: Any

    @property
    def longest_walk(self) -> int:
        return LEAF

    @property
    def origin(self) -> Floats:
        """Return the last row of the means.

        An array of its own would be handed on at every call: trials were 5 to 12 % slower.
        """
        return np.asarray(self.means[-1])

    def draw_error(self, steps: Floats) -> Floats:
        """Return zeros: normals have 53 bits, as rewards of a step-by-step simulation have."""
        return np.zeros_like(steps)

    def memory(self, slots: int, arms: int, clients: int) -> GaussianMemory:
        return gaussian_memory(arms, clients)


@noise_at.of(GaussianRewards)
def _noise_at(rewards, k, m):
    return rewards.noise


@hooks.noise_floor.of(GaussianRewards)
def _noise_floor(rewards):
    return rewards.noise


@hooks.certificate_bound.of(GaussianRewards)
def _certificate_bound(rewards, memory, scope, walks, tree, depth):
    clients = float(scope.hi - scope.lo)
    length = float(tree.frame[depth, B] - tree.frame[depth, A])
    return clients * rewards.noise * rewards.noise * length * BAR, 0.0


@hooks.certified.of(GaussianRewards)
def _certified(rewards, d_a, d_b, least, slack, variance):
    if d_b <= 0.0 or d_a <= 0.0:
        return False
    return d_a * d_b >= least


@hooks.certified_alone.of(GaussianRewards)
def _certified_alone(rewards, d_a, d_b, least, slack, variance):
    """Certify that the walk of one arm stays below g; its variance is half that of a pair."""
    if d_b <= 0.0 or d_a <= 0.0:
        return False
    return d_a * d_b >= 0.5 * least


def draws_as_gaussian(cls: type) -> None:
    """Register the functions that all Gaussian rewards share."""
    hooks.leaf.of(cls)(_leaf)
    hooks.left_out.of(cls)(_left_out)
    hooks.extend_spine.of(cls)(_extend_spine)
    hooks.spine_is_known.of(cls)(_spine_is_known)
    hooks.split_interval.of(cls)(_split_interval)
    hooks.walk_interval.of(cls)(_walk_interval)
    hooks.settle_few.of(cls)(settle_pairwise)
    hooks.walk_value.of(cls)(_walk_value)
    hooks.value_inside.of(cls)(_value_inside)


def _leaf(rewards):
    return LEAF


def _left_out(rewards, m):
    return rewards.means[rewards.means.shape[0] - 1, m]


def _walk_value(rewards, memory, address):
    client, arm = address[2], address[3]
    return value_at(address, rewards.means[arm, client], noise_at(rewards, arm, client))


def _value_inside(rewards, memory, scope, walks, k, n, level):
    m, a = scope.lo, np.int64(1) << (level - 1)
    ends = walks.value[level - 1, k, m], walks.value[level, k, m]
    address = (scope.seed, scope.trial, m, k, n)
    return value_between(address, a, ends, noise_at(rewards, k, m))


def _spine_is_known(rewards, scope, walks, tree, level):
    known = True
    for i in range(tree.frame[0, DRAWN]):
        known &= walks.known[np.int64(tree.drawn[0, i]), scope.lo] > level
    return known


def _extend_spine(rewards, memory, scope, walks, tree, level):
    """Draw X(2^level), and the missing spine nodes below it, for the arms of depth 0."""
    drawn, count = tree.drawn[0], tree.frame[0, DRAWN]
    seed, trial, known = scope.seed, scope.trial, walks.known
    value, total, means, weights = walks.value, walks.total, rewards.means, scope.weights
    for i in range(count):
        total[level, drawn[i]] = 0.0
    for m in range(scope.lo, scope.hi):
        block = -1
        words = (np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0))
        for i in range(count):
            k = np.int64(drawn[i])
            if weights[k, m] == 0.0:
                continue
            mean, noise = means[k, m], noise_at(rewards, k, m)
            for t in range(known[k, m], level + 1):
                if t < level or k >> 2 != block:
                    words = spine_words(seed, trial, m, k >> 2, 1 << t)
                    block = k >> 2 if t == level else -1
                z = normal_from(words[k & 3], seed, trial, m, k, 1 << t)
                if t == 0:
                    value[0, k, m] = mean + noise * z
                else:
                    half = float(1 << (t - 1))
                    value[t, k, m] = extended(value[t - 1, k, m], mean, noise, half, z)
                walks.work[1] += 1
            known[k, m] = larger(known[k, m], level + 1)
            total[level, k] = add_client(weights[k], total[level, k], m, value[level, k, m])


def _split_interval(rewards, memory, scope, walks, tree, depth):
    """Draw X in the middle of the interval at `depth`, for the arms of depth + 1.

    The middle shares its block of words with the middles of the two halves (see `normal`): the
    first of them makes the block, and `words` keeps the rest.
    """
    frame, drawn, words = tree.frame, tree.drawn[depth + 1], memory.words
    seed, trial, lo, hi = scope.seed, scope.trial, scope.lo, scope.hi
    value, left, right = walks.value, frame[depth, LEFT], frame[depth, RIGHT]
    a, half = frame[depth, A], (frame[depth, B] - frame[depth, A]) >> 1
    root = math.sqrt(0.5 * float(half))
    comes_first = not is_power_of_four(half)
    side = np.uint64(frame[depth, IS_RIGHT])
    draws = np.int64(0)
    for j in range(frame[depth + 1, DRAWN]):
        k = np.int64(drawn[j])
        x_left, x_right, x_middle = value[left, k], value[right, k], value[MIDDLE + depth, k]
        kept = words[depth if comes_first or depth == 0 else depth - 1, k]
        weights, total = scope.weights[k], 0.0
        for i in range(np.uint64(lo), np.uint64(hi)):
            m = np.int64(i)
            if weights[i] == 0.0:
                continue
            draws += 1
            if comes_first:
                kept[i, 0], word, kept[i, 1], _ = quarter_words(seed, trial, m, k, a, half >> 1)
            elif depth == 0:  # a third quarter point: the first two are on the spine
                _, _, word, _ = quarter_words(seed, trial, m, k, np.int64(0), half)
            else:
                word = kept[i, side]
            z = normal_from(word, seed, trial, m, k, a + half)
            x = split(x_left[i], x_right[i], noise_at(rewards, k, m) * root, z)
            x_middle[i] = x
            total = add_client(weights, total, m, x)
        walks.total[MIDDLE + depth, k] = total
    walks.work[1] += draws


def _walk_interval(rewards, memory, scope, walks, tree, depth):
    """Draw X at every step of the interval at `depth`, for the arms of depth + 1.

    The interval is 4 long, or 2 at the foot of the spine, and its splits are written out.
    """
    frame, drawn = tree.frame, tree.drawn[depth + 1]
    seed, trial, lo, hi = scope.seed, scope.trial, scope.lo, scope.hi
    value, total, count = walks.value, walks.total, frame[depth + 1, DRAWN]
    a, length = frame[depth, A], frame[depth, B] - frame[depth, A]
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    cells = np.int64(0)
    for j in range(count):
        k = np.int64(drawn[j])
        weights = scope.weights[k]
        s1 = s2 = s3 = 0.0
        x_left, x_right = value[left, k], value[right, k]
        x_1, x_2, x_3 = value[STEP + 1, k], value[STEP + 2, k], value[STEP + 3, k]
        for i in range(np.uint64(lo), np.uint64(hi)):
            m = np.int64(i)
            if weights[i] == 0.0:
                continue
            cells += 1
            two = noise_at(rewards, k, m)
            one = two * math.sqrt(0.5)
            x0, x4 = x_left[i], x_right[i]
            w1, w2, w3, _ = quarter_words(seed, trial, m, k, a & -4, np.int64(1))
            if length == 2:  # (2, 4]
                x1 = split(x0, x4, one, normal_from(w3, seed, trial, m, k, a + 1))
                x_1[i] = x1
                s1 = add_client(weights, s1, m, x1)
                continue
            x2 = split(x0, x4, two, normal_from(w2, seed, trial, m, k, a + 2))
            x1 = split(x0, x2, one, normal_from(w1, seed, trial, m, k, a + 1))
            x3 = split(x2, x4, one, normal_from(w3, seed, trial, m, k, a + 3))
            x_1[i], x_2[i], x_3[i] = x1, x2, x3
            s1, s2 = add_client(weights, s1, m, x1), add_client(weights, s2, m, x2)
            s3 = add_client(weights, s3, m, x3)
        total[STEP + 1, k], total[STEP + 2, k], total[STEP + 3, k] = s1, s2, s3
    walks.work[1] += cells * (length - 1)


draws_as_gaussian(GaussianRewards)
