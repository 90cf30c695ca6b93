"""Successive elimination on skipping walks: one pass for a client, the same pass for the server.

A pass follows the sums S_k(n) of K arms over the clients lo .. hi - 1 (one client for a local
pass, all of them for the server's) and, for each of several schedules at once, eliminates arm k at
a communication time n where max_j S_j(n) - S_k(n) >= g(n) (Algorithm 1, lines 11 and 21, in sums).
A client "talks to itself" at every step: its pass is the server's with one client and period 1.

How it gets by with a logarithm of the steps. The spine visits n = 1, 2, 4, ...; between two of
its nodes lies a dyadic tree of intervals (a, b], whose middles the law can draw at any time and in
any order. In each interval, for each schedule:

* no communication time in (a, b]: nothing can happen;
* b is the only one: Algorithm 1's own check at b, nothing in between matters;
* others inside: if it is (nearly) certain that no pair of arms crosses g, the interval is
  skipped, otherwise it is split and both halves are looked at, in order.

What "nearly certain" means is the law's to say (`laws`): the probability of a crossing is at most
SKIP_TOLERANCE for each pair that is called safe in (a, b]; the other pairs are in doubt (`doubt`).
Only the arms of pairs in doubt are drawn and compared further down: a safe pair needs no second
look anywhere inside (a, b], and whom else an arm might still lose to is safe, too. Every safe
verdict is counted, and count x tolerance bounds the total variation between these trials and
step-by-step ones (union bound): it is carried to each row as `skip_error`.

A client's interval with few pairs in doubt may be settled by the law itself (`laws.duel`).

With skipping off every pair is in doubt until nothing is left to split: each step is visited, on
the same walk, by this code alone.

Glossary: S sums over clients, X single walks, g boundary, d distance to it; depth 0 is the spine
interval, depth i + 1 a half of depth i. Slots hold the values at a node: 0 .. 52 the spine nodes
2^0 .. 2^52, ORIGIN the start n = 0, MIDDLE + i the middle that made depth i + 1, STEP + i the i-th
step of an interval that is walked.
"""

from __future__ import annotations

import numpy as np

from fastfed.kernels.boundary import CHORD, boundary_below, boundary_between
from fastfed.kernels.communication import begin, talk_once, talk_through
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.doubt import collect_arms, list_arms
from fastfed.kernels.goals import hooks as goals
from fastfed.kernels.laws import hooks
from fastfed.kernels.memory import (
    ALIVE,
    BITS,
    DRAWS,
    GAVE_UP,
    IS_RIGHT,
    LEFT,
    MIDDLE,
    NEVER,
    NEXT,
    NOBODY,
    ORIGIN,
    PERIOD,
    RIGHT,
    SAFE_PAIRS,
    SENT,
    SPINE,
    STEP,
    TALKERS,
    TALKS,
    WINNER,
    A,
    B,
    Test,
)
from fastfed.kernels.uplinks import hooks as uplinks


@inner
def run_pass(law, memory, who, curve, talks, walks, tree, skip):
    """Eliminate arms by the sums over clients lo .. hi - 1 until each schedule has one left or
    has talked for the last time. The result is in ``talks.state`` and ``talks.out_at``."""
    frame, g = tree.frame, tree.g
    _begin(talks)
    frame[0, B], frame[0, RIGHT] = 0, ORIGIN
    listed_arms = np.int64(0)
    for level in range(SPINE):
        running_arms = _running_arms(talks.state, who.hi - who.lo)
        if running_arms == 0:
            return
        if running_arms != listed_arms:  # on most levels nobody has been eliminated
            list_arms(talks, tree)
            listed_arms = running_arms
        frame[0, A], frame[0, LEFT] = frame[0, B], frame[0, RIGHT]
        frame[0, B], frame[0, RIGHT] = 1 << level, level
        hooks.extend_spine(law, memory, who, walks, tree, level)
        g[0, 0] = g[0, 1]
        g[0, 1] = boundary_below(curve, 1 << level, level + 1)
        depth = np.int64(0)
        while depth >= 0:
            # settle the interval for every schedule that can be settled, split it for the others
            left_over = _settle(law, memory, who, curve, talks, walks, tree, (skip, depth, level))
            frame[depth + 1, TALKERS] = left_over
            if left_over > 0:
                collect_arms(tree, depth)
                if frame[depth, B] - frame[depth, A] > hooks.leaf(law):
                    hooks.split_interval(law, memory, who, walks, tree, depth)
                    _open_left(tree, depth, level, curve, hooks.noise_floor(law))
                    depth += 1
                    continue
                uplinks.walk_steps(talks.uplink, law, memory, who, walks, tree, depth)
                _talk_step_by_step(law, who, curve, talks, walks, tree, depth)
            depth = _next_interval(frame, g, depth)


@inner
def _begin(talks):
    """Put every schedule before its first time, with all arms alive."""
    state, out_at = talks.state, talks.out_at
    schedules, arms = out_at.shape
    for s in range(schedules):
        for k in range(arms):
            out_at[s, k] = NEVER
        begin(s, talks)
        uplinks.begin_hearing(talks.uplink, talks, s)
        state[s, ALIVE] = arms
        state[s, WINNER] = NOBODY
        state[s, SENT] = 0
        state[s, TALKS] = 0
        state[s, SAFE_PAIRS] = 0
        state[s, GAVE_UP] = 0
        state[s, BITS] = 0
        state[s, DRAWS] = 0
        if not goals.is_open(talks.rule, arms):  # a lone arm is declared without a pull
            out_at[s, 0] = state[s, WINNER] = 0
            state[s, NEXT] = NEVER


@inlined
def _running_arms(state, clients):
    """The number of arms alive, summed over the schedules that still run, each of which needs one
    more node of their spines."""
    count = 0
    for s in range(state.shape[0]):
        if state[s, NEXT] < NEVER:
            count += state[s, ALIVE]
            state[s, DRAWS] += clients * state[s, ALIVE]
    return count


@inlined
def _settle(law, memory, who, curve, talks, walks, tree, here):
    """Carry every schedule through the interval at ``depth`` for which that can be done without
    splitting it; how many are left over, listed at depth + 1. ``here`` is (skip, depth, level)."""
    skip, depth, level = here
    frame, state = tree.frame, talks.state
    clients = who.hi - who.lo
    every_step = talks.plan.shape[0] == 1 and clients == 1 and talks.plan[0, PERIOD] == 1
    b = frame[depth, B]
    least = slack = 0.0
    if skip and _someone_talks_inside(talks, tree, depth):
        least, slack = hooks.judge_by(law, memory, who, walks, tree, depth)
    strays = uplinks.strays(talks.uplink, tree, depth, level)
    left_over = np.int64(0)
    for i in range(frame[depth, TALKERS]):
        s = tree.talkers[depth, i]
        if state[s, NEXT] > b:
            continue
        walks.work[0] += 1
        if state[s, NEXT] == b:
            # b anew from memory: with b itself LLVM computes the logarithm of an elimination at b
            # ahead of the loop, for every interval: FedElim0 is 5 to 10 % slower
            n = frame[depth, B]
            heard = uplinks.hear(
                talks.uplink,
                law,
                who,
                walks,
                curve,
                talks,
                (s, n, frame[depth, RIGHT], tree.arms[depth, i]),
            )
            _talk(
                clients, curve, talks, tree, walks.total[heard], (s, n, tree.g[depth, 1], depth, i)
            )
            continue
        test = Test(
            skip and not uplinks.visits_all(talks.uplink, talks, s),
            law,
            least,
            slack,
            curve,
            strays,
        )
        doubts = goals.doubts(talks.rule, test, talks, tree, walks.total, (s, i, depth, left_over))
        if doubts == 0:
            talk_through(s, b, clients, talks)
        elif not (
            skip
            and every_step
            and uplinks.arrives_as_sent(talks.uplink)
            and goals.settle_few(
                talks.rule, law, memory, who, (walks, tree, talks), curve, (doubts, depth, level)
            )
        ):
            tree.talkers[depth + 1, left_over] = s
            # one draw splits a walk, one for each step walks it: as if no other schedule ran
            length = b - frame[depth, A]
            draws = length if length <= hooks.leaf(law) else np.int64(1)
            in_doubt = np.int64(tree.arms[depth + 1, left_over, talks.out_at.shape[1]])
            state[s, DRAWS] += draws * clients * in_doubt
            left_over += 1
    return left_over


@inlined
def _someone_talks_inside(talks, tree, depth):
    """Whether any schedule has a communication time in the interval before its end: if not, there
    is nothing to judge, as on the whole spine of the paper's schedule."""
    for i in range(tree.frame[depth, TALKERS]):
        if talks.state[tree.talkers[depth, i], NEXT] < tree.frame[depth, B]:
            return True
    return False


@inlined
def _talk_step_by_step(law, who, curve, talks, walks, tree, depth):
    """Talk at every communication time of the interval at ``depth``, whose steps were walked."""
    frame, state = tree.frame, talks.state
    a, b = frame[depth, A], frame[depth, B]
    g_a = tree.g[depth, 0]
    rise = (tree.g[depth, 1] - g_a) / float(b - a)
    for i in range(frame[depth + 1, TALKERS]):
        s = tree.talkers[depth + 1, i]
        while state[s, NEXT] <= b:
            n = state[s, NEXT]
            chord = (g_a + rise * float(n - a)) * CHORD
            heard = uplinks.hear(
                talks.uplink,
                law,
                who,
                walks,
                curve,
                talks,
                (s, n, STEP + n - a, tree.arms[depth + 1, i]),
            )
            _talk(
                who.hi - who.lo, curve, talks, tree, walks.total[heard], (s, n, chord, depth + 1, i)
            )


@inlined
def _talk(clients, curve, talks, tree, total, here):
    """A communication time, with the sums ``total`` as they are heard; ``here`` as for
    `goals.hooks.decide`."""
    s, n = here[0], here[1]
    talk_once(s, n, clients, talks)
    goals.decide(talks.rule, talks, tree, curve, total, here)


@inlined
def _open_left(tree, depth, level, curve, noise):
    """The left half of the interval at ``depth``, at depth + 1."""
    frame, g, below = tree.frame, tree.g, depth + 1
    a, b = frame[depth, A], frame[depth, B]
    frame[below, A] = a
    frame[below, B] = (a + b) // 2
    frame[below, LEFT] = frame[depth, LEFT]
    frame[below, RIGHT] = MIDDLE + depth
    frame[below, IS_RIGHT] = 0
    g[below, 0] = g[depth, 0]
    g[below, 1] = boundary_between(curve, a, b, g[depth, 0], g[depth, 1], level, noise)


@inlined
def _next_interval(frame, g, depth):
    """Open the interval that follows the one at ``depth``, and return its depth; -1 if the whole
    interval of the spine is done."""
    b = frame[depth, B]
    while depth > 0 and frame[depth, IS_RIGHT] == 1:
        depth -= 1
    if depth == 0:
        return np.int64(-1)
    frame[depth, A] = b
    frame[depth, B] = frame[depth - 1, B]
    frame[depth, LEFT] = frame[depth, RIGHT]
    frame[depth, RIGHT] = frame[depth - 1, RIGHT]
    frame[depth, IS_RIGHT] = 1
    g[depth, 0] = g[depth, 1]
    g[depth, 1] = g[depth - 1, 1]
    return depth
