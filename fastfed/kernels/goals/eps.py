"""The goal `eps`: an arm at most E below the best one.

Arms fall as for `best`. Beside that a pass stops, and declares the leader, as soon as the leader is
2 alpha - E ahead of the second: in sums over `walks` clients, at h(n) = g(n) - n walks E, which is
concave as g is, and below g.

When nothing can happen in an interval. No arm falls if all pairs are surely below g. And nobody
stops the pass if each arm l has an arm r that it surely does not lead by h, and that stays: if r
itself might fall inside the interval, it could hold l back no longer. Where a stop is possible,
it hangs on all arms that are left, so all of them are in doubt; where it is not, only the arms of
pairs that might cross g. A list of arms in doubt that lacks one of those that are left therefore
says that no stop is possible, and `decide` and `doubts` read it so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.boundary import octave, reaches
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.doubt import all_in_doubt, compare_pairs, list_doubts
from fastfed.kernels.goals import hooks
from fastfed.kernels.goals.best import NoNotes
from fastfed.kernels.laws import hooks as laws
from fastfed.kernels.memory import (
    ALIVE,
    LEFT,
    NEVER,
    NEXT,
    RIGHT,
    SAFE_PAIRS,
    WINNER,
    A,
    B,
)


class EpsGoal(NamedTuple):
    """Which arms are no right answers."""

    local_must_not: Any  # (M, K)
    global_must_not: Any  # (K,)
    slack: Any  # E

    def notes(self, arms: int, schedules: int) -> NoNotes:
        return NoNotes(0)


class EpsRule(NamedTuple):
    """One client's, or the server's: E times the number of walks."""

    slack: Any


@hooks.at_client.of(EpsGoal)
def _at_client(goal, m):
    return EpsRule(goal.slack)


@hooks.at_server.of(EpsGoal)
def _at_server(goal):
    return EpsRule(float(goal.local_must_not.shape[0]) * goal.slack)


@hooks.client_errs.of(EpsGoal)
def _client_errs(goal, m, state):
    winner = state[0, WINNER]
    return winner < 0 or goal.local_must_not[m, winner]


@hooks.server_errs.of(EpsGoal)
def _server_errs(goal, s, state):
    winner = state[s, WINNER]
    return winner < 0 or goal.global_must_not[winner]


@hooks.is_open.of(EpsRule)
def _is_open(rule, arms):
    return arms > 1


@hooks.decide.of(EpsRule)
def _decide(rule, talks, tree, curve, total, here):
    s, n, g_below, depth, i = here
    arms, out_at = tree.arms[depth, i], talks.out_at
    best = second = -np.inf
    worst = np.inf
    leader = np.int64(-1)
    listed = np.int64(0)
    for j in range(arms[out_at.shape[1]]):
        k = np.int64(arms[j])
        if out_at[s, k] == NEVER:
            listed += 1
            worst = min(worst, total[k])
            if total[k] > best:
                best, second, leader = total[k], best, k
            else:
                second = max(second, total[k])
    slack = float(n) * rule.slack
    if best - worst + slack >= g_below:
        if (
            listed == talks.state[s, ALIVE]
            and best - second + slack >= g_below
            and _stops(curve, best - second + slack, n)
        ):
            _stop(s, n, leader, talks)
        elif best - worst >= g_below:
            _eliminate(s, n, best, curve, talks, arms, total)


@inner
def _stops(curve, lead, n):
    return reaches(curve, lead, n, octave(n))


@inner
def _stop(s, n, leader, talks):
    """The leader is declared; nobody is pulled any more."""
    state, out_at = talks.state, talks.out_at
    for k in range(out_at.shape[1]):
        if out_at[s, k] == NEVER:
            out_at[s, k] = n
    state[s, ALIVE] = 1
    state[s, WINNER] = leader
    state[s, NEXT] = NEVER


@inner
def _eliminate(s, n, best, curve, talks, arms, total):
    """Every arm whose distance from the leader is g or more is eliminated. Two arms or more are
    left: if not, the leader would have led the second by h."""
    state, out_at = talks.state, talks.out_at
    level = octave(n)
    for j in range(arms[out_at.shape[1]]):
        k = arms[j]
        if out_at[s, k] == NEVER and reaches(curve, best - total[k], n, level):
            out_at[s, k] = n
            state[s, ALIVE] -= 1


@hooks.doubts.of(EpsRule)
def _doubts(rule, test, talks, tree, total, here):
    s, i, depth, slot = here
    frame, arms = tree.frame, tree.arms[depth, i]
    ends = (
        tree.g[depth, 0] - test.strays[0],
        tree.g[depth, 1] - test.strays[1],
        total[frame[depth, LEFT]],
        total[frame[depth, RIGHT]],
    )
    if not test.skip:
        found = all_in_doubt(talks, tree, s, arms)
    else:
        found = compare_pairs(test, talks, tree, ends, s, arms)
        slack = (float(frame[depth, A]) * rule.slack, float(frame[depth, B]) * rule.slack)
        if _may_stop(test, talks, tree, ends, slack, s, arms):
            found = 1 + all_in_doubt(talks, tree, s, arms)
    if found > 0:
        list_doubts(tree.doubt, arms, tree.arms[depth + 1, slot])
    return found


@inlined
def _may_stop(test, talks, tree, ends, slack, s, arms):
    """Whether some arm might lead all the others by h inside the interval."""
    g_a, g_b, total_a, total_b = ends
    out_at, variance = talks.out_at, tree.variance
    count = arms[out_at.shape[1]]
    listed = np.int64(0)
    best_a = best_b = -np.inf
    worst_a = worst_b = np.inf
    widest = 0.0
    for j in range(count):
        k = arms[j]
        if out_at[s, k] == NEVER:
            listed += 1
            best_a, worst_a = max(best_a, total_a[k]), min(worst_a, total_a[k])
            best_b, worst_b = max(best_b, total_b[k]), min(worst_b, total_b[k])
            widest = max(widest, variance[k])
    if listed < talks.state[s, ALIVE]:
        return False
    if laws.safe(
        test.law,
        g_a - slack[0] - (best_a - worst_a),
        g_b - slack[1] - (best_b - worst_b),
        test.least,
        test.slack,
        2.0 * widest,
    ):  # no pair comes as far as h
        talks.state[s, SAFE_PAIRS] += listed * (listed - 1)
        return False
    for j in range(count):
        leader = arms[j]
        if out_at[s, leader] < NEVER:
            continue
        held_back = False
        for r in range(count):
            rival = arms[r]
            if rival == leader or out_at[s, rival] < NEVER:
                continue
            up_a, up_b = g_a + total_a[rival], g_b + total_b[rival]
            # first that the leader does not lead by h, then that the rival surely stays
            if laws.safe(
                test.law,
                up_a - slack[0] - total_a[leader],
                up_b - slack[1] - total_b[leader],
                test.least,
                test.slack,
                variance[leader] + variance[rival],
            ) and laws.safe(
                test.law,
                up_a - best_a,
                up_b - best_b,
                test.least,
                test.slack,
                variance[rival] + widest,
            ):
                # the second verdict is one on each of the rival's pairs
                talks.state[s, SAFE_PAIRS] += listed
                held_back = True
                break
        if not held_back:
            return True
    return False


@hooks.settle_few.of(EpsRule)
def _settle_few(rule, law, memory, who, spaces, curve, here):
    return False
