"""Messages of a few bits: a client rounds its sums to a lattice, and sends a whole number.

At communication time n the sum X of an arm at a client is heard as

    Y = d (Q - U),   Q = round(X / d + U),

where d is the step of the lattice at n, in sums (n times that of the means), and U the dither, or 0
(see `fastfed.uplinks` for the scheme, its message and why it keeps delta). So Y follows from X, n
and U alone, and not from what was sent before: whoever skips from one time to another needs nothing
in between. What was heard before, Y' at n', matters only for the message,

    q = Q - round((Y' n / n') / d + U),

which both ends can turn into Q and back, and costs 2 b + 1 bits where |q| has b binary digits: the
Elias gamma code of the zig-zagged q, whose numbers are 1 for q = 0, and 2 |q| or 2 |q| + 1.

How far a pair's heard lead may stray from its true one. Each of its 2 M messages is off by d / 2 at
most, so

    dithered, d = u sqrt(n):                 by at most M u sqrt(n),
    not dithered, d = share g(n) / M:        by at most share g(n).

In the first case the errors are also independent, of each other and of all rewards, and uniform,
and so sub-Gaussian with the variance d^2 / 12. The sum of 2 M of them reaches t with probability at
most exp(-3 t^2 / (M d^2)), and so c sqrt(n), with c^2 = M u^2 (BAR + ln N) / 3, at any of N
communication times with at most SKIP_TOLERANCE. For many clients that is much less than M u
sqrt(n). An interval of N steps has no more than N communication times, so `strays` lists the
smaller of the two for N = 1, 2, 4, ...

g - c sqrt(n) is concave wherever it matters. g(n) = sqrt(n) h(n), with h^2 = unit L for the paper's
radius: there (g - c sqrt(n))'' = -(h (1 + 4 / L^2) - c) / (4 n^(3/2)), which is not positive where
h >= c; and h grows, so that this holds in all of (a, b] if g - c sqrt(n) >= 0 at a. Where it is
not, no pair is called safe. For the other radii the uplink widens g itself by M u sqrt(n), which is
never less than c sqrt(n), so that what remains is a sum of concave functions. Without dither
g - share g is g times a constant.

Counting bits takes a look at every communication time. Up to MOST_COUNTED of them are counted, as
if nothing could be skipped; a schedule that talks more often in a trial has no bits there.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.boundary import exact, octave
from fastfed.kernels.compiling import inner
from fastfed.kernels.laws import hooks as laws
from fastfed.kernels.memory import (
    BAR,
    BITS,
    DRAWN,
    HEARD,
    NEVER,
    RIGHT,
    SPINE,
    STEP,
    TALKS,
    A,
    B,
    Who,
)
from fastfed.kernels.random.dither import dither_from, dither_words
from fastfed.kernels.uplinks import hooks

MOST_COUNTED = 2**17
"""A look at every time takes 0.3 us for the paper's 12 arms and clients: 40 ms for a trial that
talks so often. FedElim0 needs some 80,000 times on the Bernoulli instance."""

_ROUNDED_UP = 1.0 + 1e-9  # past the rounding errors of what is heard


class LatticeMemory(NamedTuple):
    """What was heard."""

    means: Any  # (S, K, M) the last of each client, under each schedule
    ahead: Any  # (M,) what the sums of each client leave out


class LatticeUplink(NamedTuple):
    """A message is a whole number."""

    dithered: Any
    unit: Any  # of dithered messages: u, the step over sqrt(n)
    share: Any  # of others: M times the step, over g(n)
    strays: Any  # (SPINE,) of dithered messages, for intervals of 1, 2, 4 ... steps, over sqrt(n)
    alone: Any  # (SPINE,) the same for the sum of one arm
    errors: Any  # `verdict_errors`
    most: Any  # communication times of a trial whose bits are counted

    def memory(self, schedules: int, arms: int, clients: int) -> LatticeMemory:
        return LatticeMemory(np.zeros((schedules, arms, clients)), np.zeros(clients))


def dithered_uplink(unit: float, clients: int) -> LatticeUplink:
    """Messages on a dithered lattice with the step unit x sqrt(n), in sums."""
    sure = clients * unit
    lengths = np.arange(SPINE) * math.log(2.0)
    likely = unit * np.sqrt(clients * (BAR + lengths) / 3.0)
    errors = 2 if (likely < sure).any() else 1
    # one arm has half as many messages as a pair
    alone = np.minimum(0.5 * sure, math.sqrt(0.5) * likely)
    return LatticeUplink(
        True,
        unit,
        0.0,
        _ROUNDED_UP * np.minimum(sure, likely),
        _ROUNDED_UP * alone,
        np.int64(errors),
        np.int64(MOST_COUNTED),
    )


def rounded_uplink(share: float) -> LatticeUplink:
    """Messages on a lattice with the step share x g(n) / M, in sums, without dither."""
    return LatticeUplink(
        False, 0.0, share, np.zeros(SPINE), np.zeros(SPINE), np.int64(1), np.int64(MOST_COUNTED)
    )


@hooks.begin_hearing.of(LatticeUplink)
def _begin_hearing(uplink, talks, s):
    talks.heard.means[s] = 0.0


@hooks.arrives_as_sent.of(LatticeUplink)
def _arrives_as_sent(uplink):
    return False


@hooks.visits_all.of(LatticeUplink)
def _visits_all(uplink, talks, s):
    return talks.state[s, TALKS] < uplink.most


@hooks.walk_steps.of(LatticeUplink)
def _walk_steps(uplink, law, memory, who, walks, tree, depth):
    """Client by client, so that the sums over clients are the values of one."""
    length = tree.frame[depth, B] - tree.frame[depth, A]
    right = tree.frame[depth, RIGHT]
    for m in range(who.lo, who.hi):
        laws.walk_interval(law, memory, Who(who.seed, who.trial, m, m + 1), walks, tree, depth)
        for j in range(tree.frame[depth + 1, DRAWN]):
            k = tree.drawn[depth + 1, j]
            for i in range(1, length):
                walks.value[STEP + i, k, m] = walks.total[STEP + i, k]
            walks.value[STEP + length, k, m] = walks.value[right, k, m]


@hooks.hear.of(LatticeUplink)
def _hear(uplink, law, who, walks, curve, talks, here):
    s, n, slot, arms = here
    if uplink.dithered:
        step = uplink.unit * math.sqrt(float(n))
    else:
        step = uplink.share * exact(curve, float(n)) / float(who.hi - who.lo)
    for m in range(who.lo, who.hi):
        talks.heard.ahead[m] = laws.left_out(law, m) * float(n)
    _listen(uplink, who, walks, talks, (s, n, slot, arms), step)
    return HEARD


@inner
def _listen(uplink, who, walks, talks, here, step):
    """Every client sends every arm of the list that is alive; what is heard is summed up."""
    s, n, slot, arms = here
    state, out_at, means = talks.state, talks.out_at, talks.heard.means
    value, sums = walks.value[slot], walks.total[HEARD]
    counting = state[s, TALKS] < uplink.most
    bits = np.int64(0)
    for j in range(arms[out_at.shape[1]]):
        sums[arms[j]] = 0.0
    for m in range(who.lo, who.hi):
        ahead = talks.heard.ahead[m]
        block = np.int64(-1)
        words = (np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0))
        for j in range(arms[out_at.shape[1]]):
            k = np.int64(arms[j])
            if out_at[s, k] < NEVER:
                continue
            dither = 0.0
            if uplink.dithered:
                if k >> 2 != block:
                    block = k >> 2
                    words = dither_words(who.seed, who.trial, m, block, n)
                dither = dither_from(words[k & 3])
            place = np.floor((value[k, m] + ahead) / step + dither + 0.5)
            sent = step * (place - dither)
            sums[k] += sent - ahead
            if counting:
                before = np.floor(means[s, k, m] * float(n) / step + dither + 0.5)
                bits += 1 + 2 * math.frexp(place - before)[1]
                means[s, k, m] = sent / float(n)
    state[s, BITS] += bits


@hooks.strays.of(LatticeUplink)
def _strays(uplink, tree, depth, level):
    g_a, g_b = tree.g[depth, 0], tree.g[depth, 1]
    if not uplink.dithered:
        return uplink.share * g_a, uplink.share * g_b
    longest = max(level - 1 - depth, 0)
    a, b = tree.frame[depth, A], tree.frame[depth, B]
    s_a = uplink.strays[longest] * math.sqrt(float(a))
    if g_a < s_a:
        return np.inf, np.inf
    return s_a, uplink.strays[longest] * math.sqrt(float(b))


@hooks.strays_from_above.of(LatticeUplink)
def _strays_from_above(uplink, most, s_b):
    return s_b if uplink.dithered else uplink.share * most


@hooks.strays_alone.of(LatticeUplink)
def _strays_alone(uplink, tree, depth):
    h_a, h_b = 0.5 * tree.g[depth, 0], 0.5 * tree.g[depth, 1]
    if not uplink.dithered:
        return uplink.share * h_a, uplink.share * h_b
    a, b = tree.frame[depth, A], tree.frame[depth, B]
    alone = uplink.alone[octave(b - a) - 1]
    s_a = alone * math.sqrt(float(a))
    if h_a < s_a:
        return np.inf, np.inf
    return s_a, alone * math.sqrt(float(b))


@hooks.verdict_errors.of(LatticeUplink)
def _verdict_errors(uplink):
    return uplink.errors


@hooks.bits_sent.of(LatticeUplink)
def _bits_sent(uplink, talks, s):
    return talks.state[s, BITS] if talks.state[s, TALKS] <= uplink.most else np.int64(-1)
