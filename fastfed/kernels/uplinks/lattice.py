"""Messages of a few bits: a client rounds its sums to a lattice, and sends a whole number.

At communication time n the sum X of an arm at a client is received as

    Y = d (Q - U),   Q = round(X / d + U),

where d is the step of the lattice at n, in sums (n times that of the means), and U the dither, or 0
(see `fastfed.model.uplinks` for the scheme, its message and why it keeps delta). So Y follows from
X, n and U alone, and not from what was sent before: a pass that skips from one time to another
needs nothing in between. The sum Y' received before, at n', matters only for the message,

    q = Q - round((Y' n / n') / d + U),

which both ends can turn into Q and back, and costs 2 b + 1 bits where |q| has b binary digits: the
Elias gamma code of the zig-zagged q, whose numbers are 1 for q = 0, and 2 |q| or 2 |q| + 1.

Message errors. Each of a pair's 2 M messages is off by d / 2 at most, times the weight of its
client (`model.weights`). With W the largest sum of weights of a question, which is M if clients
count alike and never more, a received lead differs from the true lead

    dithered, d = u sqrt(n):                 by at most W u sqrt(n),
    not dithered, d = share g(n) / W:        by at most share g(n).

In the first case the errors are also independent, of each other and of all rewards, and uniform,
and so sub-Gaussian with the variance d^2 / 12. Squares of weights add up to M in every question, so
the weighted sum of 2 M errors reaches t with probability at most exp(-3 t^2 / (M d^2)), and so
c sqrt(n), with c^2 = M u^2 (BAR + ln N) / 3, at any of N communication times with at most
SKIP_TOLERANCE. For many clients that is much less than W u sqrt(n). An interval of N steps has no
more than N communication times, so `LatticeUplink` lists the smaller of the two for N = 1, 2, 4,
...

g - c sqrt(n) is concave wherever it matters. g(n) = sqrt(n) h(n), with h^2 = unit L for the paper's
radius: there (g - c sqrt(n))'' = -(h (1 + 4 / L^2) - c) / (4 n^(3/2)), which is not positive where
h >= c; and h grows, so that this holds in all of (a, b] if g - c sqrt(n) >= 0 at a. Where it is
not, no pair is certified. For the other radii the uplink widens g itself by W u sqrt(n), which is
never less than c sqrt(n), so that what remains is a sum of concave functions. Without dither
g - share g is g times a constant.

A client that has no weight in a question sends nothing for it. A message that several questions
ask for is sent once, and its bits are counted in the pass of the first of them.

Counting bits takes a look at every communication time. Up to MOST_COUNTED of them are counted, as
if nothing could be skipped; a schedule with more communication rounds in a trial has no bits there.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.compiling import inner
from fastfed.kernels.extremes import larger
from fastfed.kernels.kernel_arrays import fill
from fastfed.kernels.memory import (
    BAR,
    BITS,
    DRAWN,
    NEVER,
    RECEIVED,
    SPINE,
    TIMES_USED,
    A,
    B,
)
from fastfed.kernels.radii import exact, octave
from fastfed.kernels.random.dither import dither_from, dither_words
from fastfed.kernels.rewards import hooks as reward_hooks
from fastfed.kernels.schedules import decided_at
from fastfed.kernels.sums import add_client
from fastfed.kernels.uplinks import hooks

MOST_COUNTED = 2**17
"""A look at every time takes 0.3 us for the paper's 12 arms and clients: 40 ms for a trial with
so many rounds. FedElim0 needs some 80,000 times on the Bernoulli instance."""

_ROUNDED_UP = 1.0 + 1e-9  # past the rounding errors of received sums


class LatticeMemory(NamedTuple):
    """The means that the server received."""

    means: Any  # (S, K, M) the last of each client, under each schedule
    ahead: Any  # (M,) the origin of each client's sums, times n
    counted_to: Any  # (S, K, M) the step up to which passes of earlier questions counted the bits


class LatticeUplink(NamedTuple):
    """An uplink whose messages are whole numbers of lattice steps."""

    dithered: Any
    unit: Any  # of dithered messages: u, the step over sqrt(n)
    share: Any  # of others: ``mass`` times the step, over g(n)
    mass: Any  # W, the largest sum of weights of a question
    # (SPINE,) bounds on the error of dithered messages, for intervals of 1, 2, 4 ... steps, over
    # sqrt(n): of a pair's lead, and of the sum of one arm
    errors_of_pair: Any
    errors_of_arm: Any
    errors: Any  # `errors_per_certificate`
    most: Any  # communication times of a trial whose bits are counted

    def memory(self, schedules: int, arms: int, clients: int) -> LatticeMemory:
        shape = schedules, arms, clients
        return LatticeMemory(np.zeros(shape), np.zeros(clients), np.zeros(shape, np.int64))


def dithered_uplink(unit: float, clients: float, mass: float | None = None) -> LatticeUplink:
    """Make an uplink with messages on a dithered lattice with the step unit x sqrt(n), in sums.

    Without ``mass`` clients count alike.
    """
    mass = float(clients) if mass is None else mass
    sure = mass * unit
    lengths = np.arange(SPINE) * math.log(2.0)
    likely = unit * np.sqrt(clients * (BAR + lengths) / 3.0)
    errors = 2 if (likely < sure).any() else 1
    # one arm has half as many messages as a pair
    alone = np.minimum(0.5 * sure, math.sqrt(0.5) * likely)
    return LatticeUplink(
        True,
        unit,
        0.0,
        mass,
        _ROUNDED_UP * np.minimum(sure, likely),
        _ROUNDED_UP * alone,
        np.int64(errors),
        np.int64(MOST_COUNTED),
    )


def rounded_uplink(share: float, mass: float) -> LatticeUplink:
    """Make an uplink with messages on a lattice with the step share x g(n) / W, without dither."""
    none = np.zeros(SPINE)
    return LatticeUplink(False, 0.0, share, mass, none, none, np.int64(1), np.int64(MOST_COUNTED))


@hooks.begin_receiving.of(LatticeUplink)
def _begin_receiving(uplink, received, s):
    fill(received.means[s], 0.0)


@hooks.arrives_as_sent.of(LatticeUplink)
def _arrives_as_sent(uplink):
    return False


@hooks.visits_all.of(LatticeUplink)
def _visits_all(uplink, schedules, s):
    return schedules.state[s, TIMES_USED] < uplink.most


@hooks.receive.of(LatticeUplink)
def _receive(uplink, received, rewards, scope, radius, held, at_n):
    arms = held.tree.drawn[at_n.depth]
    count = held.tree.frame[at_n.depth, DRAWN]
    n = at_n.n
    if uplink.dithered:
        step = uplink.unit * math.sqrt(float(n))
    else:
        step = uplink.share * exact(radius, float(n)) / uplink.mass
    for m in range(scope.lo, scope.hi):
        received.ahead[m] = reward_hooks.left_out(rewards, m) * float(n)
    _receive_all(uplink, received, scope, held.walks, held.schedules, at_n, (arms, count), step)
    return RECEIVED


@inner
def _receive_all(uplink, received, scope, walks, schedules, at_n, listed, step):
    """Receive a message of every client with a weight, for every arm of the list that is alive.

    Writes ``walks.total[RECEIVED]`` and, if bits are counted, ``means`` and the BITS of the state.
    """
    s, n = at_n.s, at_n.n
    arms, count = listed
    state, eliminated_at, means = schedules.state, schedules.eliminated_at, received.means
    counting, weights = state[s, TIMES_USED] < uplink.most, scope.weights
    sums = walks.total[RECEIVED]
    bits = np.int64(0)
    for j in range(count):
        sums[arms[j]] = 0.0
    for m in range(scope.lo, scope.hi):
        ahead = received.ahead[m]
        block = np.int64(-1)
        words = (np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0))
        for j in range(count):
            k = np.int64(arms[j])
            if eliminated_at[s, k] < NEVER or weights[k, m] == 0.0:
                continue
            dither = 0.0
            if uplink.dithered:
                if k >> 2 != block:
                    block = k >> 2
                    words = dither_words(scope.seed, scope.trial, m, block, n)
                dither = dither_from(words[k & 3])
            place = np.floor((walks.value[at_n.slot, k, m] + ahead) / step + dither + 0.5)
            sent = step * (place - dither)
            sums[k] = add_client(weights[k], sums[k], m, sent - ahead)
            if counting:
                if n > received.counted_to[s, k, m]:
                    before = np.floor(means[s, k, m] * float(n) / step + dither + 0.5)
                    bits += 1 + 2 * math.frexp(place - before)[1]
                means[s, k, m] = sent / float(n)
    state[s, BITS] += bits


@hooks.message_errors.of(LatticeUplink)
def _message_errors(uplink, tree, depth, level):
    g_a, g_b = tree.g[depth, 0], tree.g[depth, 1]
    if not uplink.dithered:
        return uplink.share * g_a, uplink.share * g_b
    longest = larger(level - 1 - depth, 0)
    a, b = tree.frame[depth, A], tree.frame[depth, B]
    e_a = uplink.errors_of_pair[longest] * math.sqrt(float(a))
    if g_a < e_a:
        return np.inf, np.inf
    return e_a, uplink.errors_of_pair[longest] * math.sqrt(float(b))


@hooks.largest_message_error.of(LatticeUplink)
def _largest_message_error(uplink, e_b):
    return (e_b, 0.0) if uplink.dithered else (0.0, uplink.share)


@hooks.message_errors_alone.of(LatticeUplink)
def _message_errors_alone(uplink, tree, depth):
    h_a, h_b = 0.5 * tree.g[depth, 0], 0.5 * tree.g[depth, 1]
    if not uplink.dithered:
        return uplink.share * h_a, uplink.share * h_b
    a, b = tree.frame[depth, A], tree.frame[depth, B]
    alone = uplink.errors_of_arm[octave(b - a) - 1]
    e_a = alone * math.sqrt(float(a))
    if h_a < e_a:
        return np.inf, np.inf
    return e_a, alone * math.sqrt(float(b))


@hooks.errors_per_certificate.of(LatticeUplink)
def _errors_per_certificate(uplink):
    return uplink.errors


@hooks.begin_trial.of(LatticeUplink)
def _begin_trial(uplink, received):
    fill(received.counted_to, 0)


@hooks.end_question.of(LatticeUplink)
def _end_question(uplink, received, schedules, weights):
    _count_no_more(schedules, received.counted_to, weights)


@inner
def _count_no_more(schedules, counted_to, weights):
    """Take note of the messages of a question: their bits are counted."""
    for s in range(counted_to.shape[0]):
        for k in range(counted_to.shape[1]):
            until = decided_at(schedules.state, schedules.eliminated_at, s, k)
            for m in range(counted_to.shape[2]):
                if weights[k, m] > 0.0:
                    counted_to[s, k, m] = larger(counted_to[s, k, m], until)


@hooks.bits_sent.of(LatticeUplink)
def _bits_sent(uplink, schedules, s):
    return (
        schedules.state[s, BITS] if schedules.state[s, TIMES_USED] <= uplink.most else np.int64(-1)
    )
