"""Gaussian rewards: how a pass draws their walks, and when it may skip.

The walk itself is in `gaussian_walk`, its normals in `kernels.random.normal`. The functions here
serve two laws: one noise for all cells (`GaussianLaw`, in this file) and a noise for each arm and
client (`gaussian_cells`); `noise_at` is all in which they differ when they draw.

When a pair is safe. g is concave, so it lies above its chord, and the walk of a pair, S_j - S_k,
sits inside a Brownian motion of variance rate v = 2 (hi - lo) noise^2. Between its two known ends
that is a bridge, and it crosses a line that is d1 above it at a and d2 above it at b with
probability exactly exp(-2 d1 d2 / (v (b - a))) (see Karatzas and Shreve, Brownian Motion and
Stochastic Calculus, 4.3.40).

What is summed. The means of a client are taken less a number of its own, half-way between the
smallest and the largest of them: it is the same for all arms and so drops out of every comparison,
at the client and at the server. Means c and c + 1 make the sums of -1/2 and 1/2, however large c
is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.kernels.laws import hooks
from fastfed.kernels.laws.duel import settle_by_duels
from fastfed.kernels.laws.gaussian_walk import extended, noise_at, split, value_at
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
    ints,
)
from fastfed.kernels.random.normal import (
    is_power_of_four,
    normal_from,
    quarter_words,
    spine_words,
)

Floats = npt.NDArray[np.float64]

LEAF = 4  # as long as the shortest interval of a duel


class GaussianMemory(NamedTuple):
    """Scratch memory of Gaussian walks and of their duels."""

    words: Any  # (depths, K, M, 2) of the two quarter points beside a middle: see `normal`
    span: Any  # (2 depths, 2) the intervals that a duel has before it: a, b
    edge: Any  # (2 depths, 6) and there X of the two arms and g, at a and at b


def gaussian_memory(arms: int, clients: int) -> GaussianMemory:
    return GaussianMemory(
        np.zeros((DEPTHS, arms, clients, 2), np.uint64),
        ints(2 * DEPTHS, 2),
        np.zeros((2 * DEPTHS, 6)),
    )


def centred(means: Floats) -> Floats:
    """The means less what the sums of each client leave out, and below them that, (K + 1, M)."""
    origin = 0.5 * means.min(axis=0) + 0.5 * means.max(axis=0)
    return np.vstack([means - origin, origin])


class GaussianLaw(NamedTuple):
    """The same noise for every arm and client."""

    means: Any  # (K + 1, M), less the origin, which is the last row: see `origin`
    noise: Any

    @property
    def longest_walk(self) -> int:
        return LEAF

    @property
    def origin(self) -> Floats:
        """Kept below the means: an array more in a law makes a trial 5 to 12 % slower, because it
        is handed on at every call."""
        return np.asarray(self.means[-1])

    def draw_error(self, steps: Floats) -> Floats:
        """Normals have 53 bits, as rewards of a step-by-step simulation have."""
        return np.zeros_like(steps)

    def memory(self, slots: int, arms: int, clients: int) -> GaussianMemory:
        return gaussian_memory(arms, clients)


@noise_at.of(GaussianLaw)
def _noise_at(law, k, m):
    return law.noise


@hooks.noise_floor.of(GaussianLaw)
def _noise_floor(law):
    return law.noise


@hooks.judge_by.of(GaussianLaw)
def _judge_by(law, memory, who, walks, tree, depth):
    clients = float(who.hi - who.lo)
    length = float(tree.frame[depth, B] - tree.frame[depth, A])
    return clients * law.noise * law.noise * length * BAR, 0.0


@hooks.safe.of(GaussianLaw)
def _safe(law, d_a, d_b, least, slack, variance):
    if d_b <= 0.0 or d_a <= 0.0:
        return False
    return d_a * d_b >= least


@hooks.safe_alone.of(GaussianLaw)
def _safe_alone(law, d_a, d_b, least, slack, variance):
    """One arm has half a pair's variance rate."""
    if d_b <= 0.0 or d_a <= 0.0:
        return False
    return d_a * d_b >= 0.5 * least


def draws_as_gaussian(cls: type) -> None:
    """Register what all Gaussian laws have in common: leaves, draws, duels, single values."""
    hooks.leaf.of(cls)(_leaf)
    hooks.left_out.of(cls)(_left_out)
    hooks.extend_spine.of(cls)(_extend_spine)
    hooks.split_interval.of(cls)(_split_interval)
    hooks.walk_interval.of(cls)(_walk_interval)
    hooks.settle_few.of(cls)(settle_by_duels)
    hooks.walk_value.of(cls)(_walk_value)


def _leaf(law):
    return LEAF


def _left_out(law, m):
    return law.means[law.means.shape[0] - 1, m]


def _walk_value(law, memory, address):
    client, arm = address[2], address[3]
    x = value_at(address, law.means[arm, client], noise_at(law, arm, client))
    return x + hooks.left_out(law, client) * float(address[4])


def _extend_spine(law, memory, who, walks, tree, level):
    """Draw X(2^level), and whatever spine node below is missing, for the arms of depth 0."""
    drawn, count = tree.drawn[0], tree.frame[0, DRAWN]
    seed, trial, value, total, known = who.seed, who.trial, walks.value, walks.total, walks.known
    for i in range(count):
        total[level, drawn[i]] = 0.0
    for m in range(who.lo, who.hi):
        block = -1
        words = (np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0))
        for i in range(count):
            k = np.int64(drawn[i])
            mean, noise = law.means[k, m], noise_at(law, k, m)
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
            known[k, m] = max(known[k, m], level + 1)
            total[level, k] += value[level, k, m]


def _split_interval(law, memory, who, walks, tree, depth):
    """X and S in the middle of the interval at `depth`, for the arms that depth + 1 needs.

    The middle shares its block of words with the middles of the two halves (see `normal`): whoever
    comes first makes the block, and `words` keeps the rest.
    """
    frame, drawn, words = tree.frame, tree.drawn[depth + 1], memory.words
    seed, trial, lo, hi, value = who.seed, who.trial, who.lo, who.hi, walks.value
    slot, left, right = MIDDLE + depth, frame[depth, LEFT], frame[depth, RIGHT]
    a, half = frame[depth, A], (frame[depth, B] - frame[depth, A]) >> 1
    root = math.sqrt(0.5 * float(half))
    comes_first = not is_power_of_four(half)
    for j in range(frame[depth + 1, DRAWN]):
        k = np.int64(drawn[j])
        sum_over_clients = 0.0
        for m in range(lo, hi):
            if comes_first:
                w1, word, w3, _ = quarter_words(seed, trial, m, k, a, half >> 1)
                words[depth, k, m, 0], words[depth, k, m, 1] = w1, w3
            elif depth == 0:  # a third quarter point: the first two are on the spine
                _, _, word, _ = quarter_words(seed, trial, m, k, np.int64(0), half)
            else:
                word = words[depth - 1, k, m, frame[depth, IS_RIGHT]]
            z = normal_from(word, seed, trial, m, k, a + half)
            x = split(value[left, k, m], value[right, k, m], noise_at(law, k, m) * root, z)
            value[slot, k, m] = x
            sum_over_clients += x
        walks.total[slot, k] = sum_over_clients
    walks.work[1] += frame[depth + 1, DRAWN] * (hi - lo)


def _walk_interval(law, memory, who, walks, tree, depth):
    """S at every step of the interval at `depth`, step n in slot STEP + n - a.

    The interval is 4 long, or 2 at the foot of the spine, and its splits are written out.
    """
    frame, drawn = tree.frame, tree.drawn[depth + 1]
    seed, trial, lo, hi, value = who.seed, who.trial, who.lo, who.hi, walks.value
    total, count = walks.total, frame[depth + 1, DRAWN]
    a, length = frame[depth, A], frame[depth, B] - frame[depth, A]
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    for j in range(count):
        k = np.int64(drawn[j])
        s1 = s2 = s3 = 0.0
        for m in range(lo, hi):
            two = noise_at(law, k, m)
            one = two * math.sqrt(0.5)
            x0, x4 = value[left, k, m], value[right, k, m]
            w1, w2, w3, _ = quarter_words(seed, trial, m, k, a & -4, np.int64(1))
            if length == 2:  # (2, 4]
                s1 += split(x0, x4, one, normal_from(w3, seed, trial, m, k, a + 1))
                continue
            x2 = split(x0, x4, two, normal_from(w2, seed, trial, m, k, a + 2))
            s1 += split(x0, x2, one, normal_from(w1, seed, trial, m, k, a + 1))
            s2 += x2
            s3 += split(x2, x4, one, normal_from(w3, seed, trial, m, k, a + 3))
        total[STEP + 1, k], total[STEP + 2, k], total[STEP + 3, k] = s1, s2, s3
        total[STEP + length, k] = total[right, k]
    walks.work[1] += count * (hi - lo) * (length - 1)


draws_as_gaussian(GaussianLaw)
