"""The goal `threshold`: each arm by itself, above or below TAU.

In sums whose weights add up to W (the number of clients, if they count alike), with
D_k(n) = S_k(n) - n W TAU, the rule |mean - TAU| >= alpha - E reads 2 (|D_k(n)| + n W E) >= g(n),
because g(n) = 2 W n alpha(n). So arm k is followed until its one walk D_k leaves the strip between
-h and h, where h(n) = g(n) / 2 - n W E is concave as g is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.client_brackets import drop_out
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.decisions import THRESHOLD, Rule
from fastfed.kernels.extremes import smaller
from fastfed.kernels.goals import hooks
from fastfed.kernels.goals.best import NoNotes
from fastfed.kernels.goals.sets import set_errs
from fastfed.kernels.memory import (
    A_SET,
    ABANDONED,
    ACCEPT,
    ACCEPTED,
    ALIVE,
    CERTIFICATES,
    LEFT,
    NEVER,
    NEXT,
    REJECT,
    RIGHT,
    WINNER,
    A,
    B,
    Looked,
)
from fastfed.kernels.radii import octave, reaches
from fastfed.kernels.rewards import hooks as reward_hooks
from fastfed.kernels.unresolved_pairs import list_unresolved


class ThresholdGoal(NamedTuple):
    """The arms that must and must not be accepted as above the threshold."""

    local_must: Any  # (M, K)
    local_must_not: Any  # (M, K)
    server_must: Any  # (Q, K)
    server_must_not: Any  # (Q, K)
    tau: Any  # (M,) less the origin of the rewards: see `rewards.hooks`
    client_tau: Any  # (M, K) the same for each arm
    server_tau: Any  # (Q, K) the same, times the weights of the arm, summed over clients
    slack: Any  # E
    server_slack: Any  # (Q,) E times the sum of the weights

    def notes(self, arms: int, schedules: int) -> NoNotes:
        return NoNotes(0)


class ThresholdRule(NamedTuple):
    """The goal as one client, or the server, follows it: TAU and E, times the weight of walks."""

    tau: Any
    slack: Any


@hooks.at_client.of(ThresholdGoal)
def _at_client(goal, notes, m):
    return ThresholdRule(goal.tau[m], goal.slack)


@hooks.at_server.of(ThresholdGoal)
def _at_server(goal, notes, q):
    return ThresholdRule(goal.server_tau[q, 0], goal.server_slack[q])


@hooks.server_rule.of(ThresholdGoal)
def _server_rule(goal, questions, q):
    return Rule(
        THRESHOLD,
        np.int64(0),
        questions.no_ties,
        goal.server_tau[q],
        goal.server_slack[q],
    )


@hooks.client_rule.of(ThresholdGoal)
def _client_rule(goal, questions, m):
    return Rule(THRESHOLD, np.int64(0), questions.no_ties, goal.client_tau[m], goal.slack)


@hooks.client_errs.of(ThresholdGoal)
def _client_errs(goal, m, state):
    return set_errs(state[0], goal.local_must[m], goal.local_must_not[m])


@hooks.server_errs.of(ThresholdGoal)
def _server_errs(goal, q, s, state):
    return set_errs(state[s], goal.server_must[q], goal.server_must_not[q])


@hooks.most_certificates.of(ThresholdGoal)
def _most_certificates(goal, arms):
    return 2 * arms


@hooks.decide.of(ThresholdRule)
def _decide(rule, schedules, tree, radius, total, at_n):
    s, n, g_below = at_n.s, at_n.n, at_n.g_below
    arms, eliminated_at = tree.arms[at_n.depth, at_n.place], schedules.eliminated_at
    for j in range(arms[eliminated_at.shape[1]]):
        k = arms[j]
        if eliminated_at[s, k] == NEVER:
            beyond = total[k] - float(n) * rule.tau
            if 2.0 * (abs(beyond) + float(n) * rule.slack) >= g_below:
                _call(rule, schedules, radius, s, n, k, beyond)


@inner
def _call(rule, schedules, radius, s, n, k, beyond):
    """Decide that arm k is above or below, if the formula says so."""
    state, eliminated_at = schedules.state, schedules.eliminated_at
    if not reaches(radius, 2.0 * (abs(beyond) + float(n) * rule.slack), n, octave(n)):
        return
    eliminated_at[s, k] = n
    state[s, ACCEPTED + k] = 1 if beyond >= 0.0 else 0
    state[s, ALIVE] -= 1
    if state[s, ALIVE] == 0:
        state[s, WINNER] = A_SET
        state[s, NEXT] = NEVER


@hooks.decided_count.of(ThresholdRule)
def _decided_count(rule, schedules, tree, total, at_n, bar):
    arms, eliminated_at = tree.arms[at_n.depth, at_n.place], schedules.eliminated_at
    n = float(at_n.n)
    count = np.int64(0)
    for j in range(arms[eliminated_at.shape[1]]):
        k = arms[j]
        if eliminated_at[at_n.s, k] == NEVER:
            count += np.int64(2.0 * (abs(total[k] - n * rule.tau) + n * rule.slack) >= bar)
    return count


@hooks.unresolved_count.of(ThresholdRule)
def _unresolved_count(rule, test, schedules, tree, total, look):
    s, depth = look.s, look.depth
    frame, eliminated_at, unresolved = tree.frame, schedules.eliminated_at, tree.unresolved
    arms = tree.arms[depth, look.place]
    a, b = float(frame[depth, A]), float(frame[depth, B])
    total_a, total_b = total[frame[depth, LEFT]], total[frame[depth, RIGHT]]
    errors_a, errors_b = test.message_errors_alone
    h_a = 0.5 * tree.g[depth, 0] - errors_a - a * rule.slack
    h_b = 0.5 * tree.g[depth, 1] - errors_b - b * rule.slack
    found = np.int64(0)
    for j in range(arms[eliminated_at.shape[1]]):
        k = arms[j]
        unresolved[k] = eliminated_at[s, k] == NEVER
        if unresolved[k] and test.skip:
            beyond_a, beyond_b = total_a[k] - a * rule.tau, total_b[k] - b * rule.tau
            variance = tree.variance[k]
            if reward_hooks.certified_alone(
                test.rewards, h_a - beyond_a, h_b - beyond_b, test.least, test.slack, variance
            ) and reward_hooks.certified_alone(
                test.rewards, h_a + beyond_a, h_b + beyond_b, test.least, test.slack, variance
            ):
                schedules.state[s, CERTIFICATES] += 2
                unresolved[k] = False
        found += np.int64(unresolved[k])
    if found > 0:
        list_unresolved(unresolved, arms, tree.arms[depth + 1, look.below])
    return found


# ---- the bracket of a client -------------------------------------------------------------------


@hooks.look_at_octave.of(ThresholdRule)
def _look_at_octave(rule, rewards, radius, held, octave, lazy):
    """Look at each arm by itself. An arm that may leave on either side has to be located."""
    tree, value, state, m = held.tree, held.walks.value, held.schedules.state, octave.m
    level, drawn = octave.level, tree.drawn[0]
    n = np.int64(1) << level
    a, b = float(n >> 1), float(n)
    h_a, h_b = 0.5 * octave.g_a - a * rule.slack, 0.5 * octave.g_b - b * rule.slack
    found, issued = np.int64(0), np.int64(0)
    for p in range(octave.arms):
        k = np.int64(drawn[p])
        beyond_a = value[octave.left, k, m] - a * rule.tau
        beyond_b = value[level, k, m] - b * rule.tau
        above = _may_leave(rewards, octave, h_a - beyond_a, h_b - beyond_b, tree.variance[k])
        below = _may_leave(rewards, octave, h_a + beyond_a, h_b + beyond_b, tree.variance[k])
        issued += 2 - np.int64(above) - np.int64(below)
        if not (above or below):
            continue
        found += 1
        lazy.side[k, m] |= (ACCEPT if above else 0) | (REJECT if below else 0)
        lazy.lo[k, m] = smaller(lazy.lo[k, m], np.int64(level) - 1)
        if lazy.side[k, m] == ACCEPT | REJECT:
            lazy.hi[k, m] = NEVER
        elif reaches(radius, 2.0 * (abs(beyond_b) + b * rule.slack), n, level + 1):
            lazy.hi[k, m] = n
            state[0, ACCEPTED + k] = 1 if above else 0
    count = octave.arms
    if found > 0:
        count = drop_out(lazy, m, drawn, count)
        state[0, WINNER], state[0, ABANDONED] = A_SET, 0
    return Looked(count, found, issued, 0.0, 0.0)


@hooks.arms_are_apart.of(ThresholdRule)
def _arms_are_apart(rule):
    return True


@inlined
def _may_leave(rewards, octave, d_a, d_b, variance):
    """Tell whether a walk may come as far as h inside the octave or at its end."""
    if d_b <= 0.0:
        return True
    return octave.level > 0 and not reward_hooks.certified_alone(
        rewards, d_a, d_b, octave.least, octave.slack, variance
    )


@hooks.least_lead.of(ThresholdRule)
def _least_lead(rule, x, lazy, m, n, after):
    least = np.inf
    for k in range(lazy.hi.shape[0]):
        if lazy.hi[k, m] > after:
            least = smaller(least, abs(x[k] - float(n) * rule.tau))
    return 2.0 * (least + float(n) * rule.slack)
