"""The goal `threshold`: each arm by itself, above or below TAU.

In sums over `walks` clients, with D_k(n) = S_k(n) - n walks TAU, the rule |mean - TAU| >= alpha - E
reads 2 (|D_k(n)| + n walks E) >= g(n), because g(n) = 2 walks n alpha(n). So arm k is followed
until its one walk D_k leaves the strip between -h and h, where h(n) = g(n) / 2 - n walks E is
concave as g is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.boundary import octave, reaches
from fastfed.kernels.compiling import inner
from fastfed.kernels.doubt import list_doubts
from fastfed.kernels.goals import hooks
from fastfed.kernels.goals.best import NoNotes
from fastfed.kernels.goals.sets import set_errs
from fastfed.kernels.laws import hooks as laws
from fastfed.kernels.memory import (
    A_SET,
    ALIVE,
    CALLED,
    LEFT,
    NEVER,
    NEXT,
    RIGHT,
    SAFE_PAIRS,
    WINNER,
    A,
    B,
)
from fastfed.kernels.uplinks import hooks as uplinks


class ThresholdGoal(NamedTuple):
    """Which arms must and must not be called above the threshold."""

    local_must: Any  # (M, K)
    local_must_not: Any  # (M, K)
    global_must: Any  # (K,)
    global_must_not: Any  # (K,)
    tau: Any  # (M,) of the rewards as the law counts them: see `laws.hooks`
    slack: Any  # E

    def notes(self, arms: int, schedules: int) -> NoNotes:
        return NoNotes(0)


class ThresholdRule(NamedTuple):
    """One client's, or the server's: TAU and E, times the number of walks."""

    tau: Any
    slack: Any


@hooks.at_client.of(ThresholdGoal)
def _at_client(goal, m):
    return ThresholdRule(goal.tau[m], goal.slack)


@hooks.at_server.of(ThresholdGoal)
def _at_server(goal):
    return ThresholdRule(goal.tau.sum(), float(goal.tau.shape[0]) * goal.slack)


@hooks.client_errs.of(ThresholdGoal)
def _client_errs(goal, m, state):
    return set_errs(state[0], goal.local_must[m], goal.local_must_not[m])


@hooks.server_errs.of(ThresholdGoal)
def _server_errs(goal, s, state):
    return set_errs(state[s], goal.global_must, goal.global_must_not)


@hooks.is_open.of(ThresholdRule)
def _is_open(rule, arms):
    return True


@hooks.decide.of(ThresholdRule)
def _decide(rule, talks, tree, curve, total, here):
    s, n, g_below, depth, i = here
    arms, out_at = tree.arms[depth, i], talks.out_at
    for j in range(arms[out_at.shape[1]]):
        k = arms[j]
        if out_at[s, k] == NEVER:
            beyond = total[k] - float(n) * rule.tau
            if 2.0 * (abs(beyond) + float(n) * rule.slack) >= g_below:
                _call(rule, talks, curve, s, n, k, beyond)


@inner
def _call(rule, talks, curve, s, n, k, beyond):
    """Call arm k above or below, if the formula says so."""
    state, out_at = talks.state, talks.out_at
    if not reaches(curve, 2.0 * (abs(beyond) + float(n) * rule.slack), n, octave(n)):
        return
    out_at[s, k] = n
    state[s, CALLED + k] = 1 if beyond >= 0.0 else 0
    state[s, ALIVE] -= 1
    if state[s, ALIVE] == 0:
        state[s, WINNER] = A_SET
        state[s, NEXT] = NEVER


@hooks.doubts.of(ThresholdRule)
def _doubts(rule, test, talks, tree, total, here):
    s, i, depth, slot = here
    frame, out_at, doubt = tree.frame, talks.out_at, tree.doubt
    arms = tree.arms[depth, i]
    a, b = float(frame[depth, A]), float(frame[depth, B])
    total_a, total_b = total[frame[depth, LEFT]], total[frame[depth, RIGHT]]
    strays_a, strays_b = uplinks.strays_alone(talks.uplink, tree, depth)
    h_a = 0.5 * tree.g[depth, 0] - strays_a - a * rule.slack
    h_b = 0.5 * tree.g[depth, 1] - strays_b - b * rule.slack
    found = np.int64(0)
    for j in range(arms[out_at.shape[1]]):
        k = arms[j]
        doubt[k] = out_at[s, k] == NEVER
        if doubt[k] and test.skip:
            beyond_a, beyond_b = total_a[k] - a * rule.tau, total_b[k] - b * rule.tau
            variance = tree.variance[k]
            if laws.safe_alone(
                test.law, h_a - beyond_a, h_b - beyond_b, test.least, test.slack, variance
            ) and laws.safe_alone(
                test.law, h_a + beyond_a, h_b + beyond_b, test.least, test.slack, variance
            ):
                talks.state[s, SAFE_PAIRS] += 2
                doubt[k] = False
        found += np.int64(doubt[k])
    if found > 0:
        list_doubts(doubt, arms, tree.arms[depth + 1, slot])
    return found


@hooks.settle_few.of(ThresholdRule)
def _settle_few(rule, law, memory, who, spaces, curve, here):
    return False
