"""The goal `eps`: an arm at most E below the best one.

Arms fall as for `best`. Beside that a pass stops, and declares the leader, as soon as the leader is
2 alpha - E ahead of the second: in sums whose weights add up to W, at h(n) = g(n) - n W E, which is
concave as g is, and below g.

When nothing can happen in an interval. No arm falls if all pairs are certified below g. The pass
cannot stop if every arm l has a rival r that l provably does not lead by h and that provably stays.
Where a stop is possible, it depends on all arms that are left, so all of them are unresolved; where
it is not, only the arms of pairs that might cross g are. A list of unresolved arms that lacks one
of those that are left therefore says that no stop is possible, and `decide` and `unresolved_count`
read it so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.client_brackets import (
    certified,
    depend_on_undecided,
    drop_out,
    extremes,
    find_pairs,
    least_lead_of_sides,
    spread,
)
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.decisions import EPS, Rule
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.goals import hooks
from fastfed.kernels.goals.best import NoNotes, count_led, may_be_gone, note_eliminator
from fastfed.kernels.memory import (
    ABANDONED,
    ACCEPT,
    ALIVE,
    CERTIFICATES,
    FAILED,
    NEVER,
    NEXT,
    NOBODY,
    WINNER,
    A,
    B,
    Looked,
)
from fastfed.kernels.radii import octave, reaches
from fastfed.kernels.rewards import hooks as reward_hooks
from fastfed.kernels.unresolved_pairs import all_unresolved, compare_pairs, ends_of, list_unresolved


class EpsGoal(NamedTuple):
    """The goal `eps`, with the arms that are no right answers."""

    local_must_not: Any  # (M, K)
    server_must_not: Any  # (Q, K)
    slack: Any  # E
    server_slack: Any  # (Q,) E times the sum of the weights

    def notes(self, arms: int, schedules: int) -> NoNotes:
        return NoNotes(0)


class EpsRule(NamedTuple):
    """The goal as one client, or the server, follows it: E times the weight of all walks."""

    slack: Any


@hooks.at_client.of(EpsGoal)
def _at_client(goal, notes, m):
    return EpsRule(goal.slack)


@hooks.at_server.of(EpsGoal)
def _at_server(goal, notes, q):
    return EpsRule(goal.server_slack[q])


@hooks.server_rule.of(EpsGoal)
def _server_rule(goal, questions, q):
    return Rule(EPS, np.int64(1), questions.no_ties, questions.zeros, goal.server_slack[q])


@hooks.client_rule.of(EpsGoal)
def _client_rule(goal, questions, m):
    return Rule(EPS, np.int64(1), questions.no_ties, questions.zeros, goal.slack)


@hooks.client_errs.of(EpsGoal)
def _client_errs(goal, m, state):
    winner = state[0, WINNER]
    return winner < 0 or goal.local_must_not[m, winner]


@hooks.server_errs.of(EpsGoal)
def _server_errs(goal, q, s, state):
    winner = state[s, WINNER]
    return winner < 0 or goal.server_must_not[q, winner]


@hooks.most_certificates.of(EpsGoal)
def _most_certificates(goal, arms):
    return arms * (2 * arms - 1)  # pairs below g, and rivals that hold a leader back or all below h


@hooks.is_open.of(EpsRule)
def _is_open(rule, arms):
    return arms > 1


@hooks.decide.of(EpsRule)
def _decide(rule, schedules, tree, radius, total, at_n):
    s, n, g_below = at_n.s, at_n.n, at_n.g_below
    arms, eliminated_at = tree.arms[at_n.depth, at_n.place], schedules.eliminated_at
    best = second = -np.inf
    worst = np.inf
    leader = np.int64(-1)
    listed = np.int64(0)
    for j in range(arms[eliminated_at.shape[1]]):
        k = np.int64(arms[j])
        if eliminated_at[s, k] == NEVER:
            listed += 1
            worst = smaller(worst, total[k])
            if total[k] > best:
                best, second, leader = total[k], best, k
            else:
                second = larger(second, total[k])
    slack = float(n) * rule.slack
    if best - worst + slack >= g_below:
        if (
            listed == schedules.state[s, ALIVE]
            and best - second + slack >= g_below
            and _stops(radius, best - second + slack, n)
        ):
            _stop(s, n, leader, schedules)
        elif best - worst >= g_below:
            _eliminate(s, n, best, radius, schedules, arms, total)


@inner
def _stops(radius, lead, n):
    return reaches(radius, lead, n, octave(n))


@inner
def _stop(s, n, leader, schedules):
    """Declare the leader; no arm is pulled any more."""
    state, eliminated_at = schedules.state, schedules.eliminated_at
    for k in range(eliminated_at.shape[1]):
        if eliminated_at[s, k] == NEVER:
            eliminated_at[s, k] = n
    state[s, ALIVE] = 1
    state[s, WINNER] = leader
    state[s, NEXT] = NEVER


@inner
def _eliminate(s, n, best, radius, schedules, arms, total):
    """Eliminate every arm whose distance from the leader is g or more.

    Two arms or more are left: if not, the leader would have led the second by h.
    """
    state, eliminated_at = schedules.state, schedules.eliminated_at
    level = octave(n)
    for j in range(arms[eliminated_at.shape[1]]):
        k = arms[j]
        if eliminated_at[s, k] == NEVER and reaches(radius, best - total[k], n, level):
            eliminated_at[s, k] = n
            state[s, ALIVE] -= 1


@hooks.decided_count.of(EpsRule)
def _decided_count(rule, schedules, tree, total, at_n, bar):
    count, lead = count_led(schedules, tree, total, at_n, bar)
    if lead + float(at_n.n) * rule.slack >= bar:
        return schedules.state[at_n.s, ALIVE]
    return count


@hooks.unresolved_count.of(EpsRule)
def _unresolved_count(rule, test, schedules, tree, total, look):
    s, depth = look.s, look.depth
    frame, arms = tree.frame, tree.arms[depth, look.place]
    ends = ends_of(test, tree, total, depth)
    if not test.skip:
        found = all_unresolved(schedules, tree, s, arms)
    else:
        found = compare_pairs(test, schedules, tree, ends, s, arms)
        slack = (float(frame[depth, A]) * rule.slack, float(frame[depth, B]) * rule.slack)
        if _may_stop(test, schedules, tree, ends, slack, s, arms):
            found = 1 + all_unresolved(schedules, tree, s, arms)
    if found > 0:
        list_unresolved(tree.unresolved, arms, tree.arms[depth + 1, look.below])
    return found


@inlined
def _may_stop(test, schedules, tree, ends, slack, s, arms):
    """Tell whether some arm might lead all the others by h inside the interval."""
    g_a, g_b, total_a, total_b = ends
    eliminated_at, variance = schedules.eliminated_at, tree.variance
    count = arms[eliminated_at.shape[1]]
    listed = np.int64(0)
    best_a = best_b = -np.inf
    worst_a = worst_b = np.inf
    widest = 0.0
    for j in range(count):
        k = arms[j]
        if eliminated_at[s, k] == NEVER:
            listed += 1
            best_a, worst_a = larger(best_a, total_a[k]), smaller(worst_a, total_a[k])
            best_b, worst_b = larger(best_b, total_b[k]), smaller(worst_b, total_b[k])
            widest = larger(widest, variance[k])
    if listed < schedules.state[s, ALIVE]:
        return False
    if reward_hooks.certified(
        test.rewards,
        g_a - slack[0] - (best_a - worst_a),
        g_b - slack[1] - (best_b - worst_b),
        test.least,
        test.slack,
        2.0 * widest,
    ):  # no pair comes as far as h
        schedules.state[s, CERTIFICATES] += listed * (listed - 1)
        return False
    for j in range(count):
        leader = arms[j]
        if eliminated_at[s, leader] < NEVER:
            continue
        held_back = False
        for r in range(count):
            rival = arms[r]
            if rival == leader or eliminated_at[s, rival] < NEVER:
                continue
            up_a, up_b = g_a + total_a[rival], g_b + total_b[rival]
            # first that the leader does not lead by h, then that the rival provably stays
            if reward_hooks.certified(
                test.rewards,
                up_a - slack[0] - total_a[leader],
                up_b - slack[1] - total_b[leader],
                test.least,
                test.slack,
                variance[leader] + variance[rival],
            ) and reward_hooks.certified(
                test.rewards,
                up_a - best_a,
                up_b - best_b,
                test.least,
                test.slack,
                variance[rival] + widest,
            ):
                # the second certificate is one for each of the rival's pairs
                schedules.state[s, CERTIFICATES] += listed
                held_back = True
                break
        if not held_back:
            return True
    return False


# ---- the bracket of a client -------------------------------------------------------------------


@hooks.look_at_octave.of(EpsRule)
def _look_at_octave(rule, rewards, radius, held, octave, lazy):
    """Look for eliminations as `best` does, and for a stop; it fails if two arms may stop.

    What is said of eliminations holds as long as the pass has not stopped. A stop takes all arms.
    """
    tree, value, m, count = held.tree, held.walks.value, octave.m, octave.arms
    drawn, issued = tree.drawn[0], count * (count - 1)
    n = np.int64(1) << octave.level
    slack = (float(n >> 1) * rule.slack, float(n) * rule.slack)
    d_a, d_b, high, low, widest = spread(held, octave)
    if certified(rewards, octave, d_a - slack[0], d_b - slack[1], 2.0 * widest):
        return Looked(count, np.int64(0), issued, high, low)
    found = np.int64(0)
    if not certified(rewards, octave, d_a, d_b, 2.0 * widest):
        found = find_pairs(rule, rewards, radius, held, octave, (high, widest), lazy)
        issued -= found
        if found > 0 and may_be_gone(lazy, m, drawn, count):
            return Looked(np.int64(FAILED), found, issued, high, low)
    held_back = _held_back(rewards, value, tree, octave, slack, lazy)
    if held_back < 0:
        return Looked(np.int64(FAILED), found, issued, high, low)
    if held_back < count:  # the arm lazy.winner[m] may have stopped the pass
        found += 1
        for p in range(count):
            k = drawn[p]
            lazy.lo[k, m] = smaller(lazy.lo[k, m], np.int64(octave.level) - 1)
        if _has_stopped(radius, value[octave.level], drawn, octave, slack[1], lazy):
            _declare(held.schedules.state, drawn, count, lazy, m, n)
            return Looked(np.int64(0), found, issued + held_back, high, low)
    if found > 0:
        count = drop_out(lazy, m, drawn, count)
        high, low, _ = extremes(value[octave.level], tree.variance, drawn, count, m)
    return Looked(count, found, issued + held_back, high, low)


@hooks.note_pair.of(EpsRule)
def _note_pair(rule, radius, value, cell, level, may_be_out, lazy):
    note_eliminator(radius, value, cell, level, may_be_out, lazy)


@inner
def _held_back(rewards, value, tree, octave, slack, lazy):
    """Count the arms in play that some rival, which is certainly in, keeps from leading all by h.

    Any other arm may stop the pass: it goes to ``lazy.winner``. Return -1 if two may.
    """
    m, level, left = octave.m, octave.level, octave.left
    drawn, variance = tree.drawn[0], tree.variance
    count = np.int64(0)
    for p in range(octave.arms):
        leader = np.int64(drawn[p])
        held_back = False
        for r in range(octave.arms):
            rival = np.int64(drawn[r])
            if rival != leader and not lazy.victim[rival] and not held_back:
                held_back = certified(
                    rewards,
                    octave,
                    octave.g_a - slack[0] + value[left, rival, m] - value[left, leader, m],
                    octave.g_b - slack[1] + value[level, rival, m] - value[level, leader, m],
                    variance[rival] + variance[leader],
                )
        if held_back:
            count += 1
        elif lazy.winner[m] != NOBODY and lazy.winner[m] != leader:
            return np.int64(-1)
        else:
            lazy.winner[m] = leader
    return count


@inner
def _has_stopped(radius, x, drawn, octave, slack, lazy):
    """Tell whether the pass has certainly stopped at the end of the octave: h is reached there."""
    m, n = octave.m, np.int64(1) << octave.level
    winner = lazy.winner[m]
    if lazy.victim[winner]:
        return False
    for p in range(octave.arms):
        k = drawn[p]
        if k != winner and lazy.hi[k, m] == 0:
            lead = x[winner, m] - x[k, m] + slack
            if not reaches(radius, lead, n, octave.level + 1):
                return False
    return True


@inner
def _declare(state, drawn, count, lazy, m, n):
    """Note that the pass has stopped by step n."""
    winner = lazy.winner[m]
    for p in range(count):
        k = drawn[p]
        if lazy.hi[k, m] == 0:
            lazy.hi[k, m] = n
    lazy.side[winner, m] = ACCEPT
    depend_on_undecided(lazy, m)
    state[0, WINNER], state[0, ABANDONED] = winner, 0


@hooks.least_lead.of(EpsRule)
def _least_lead(rule, x, lazy, m, n, after):
    return least_lead_of_sides(x, lazy, m, after) + float(n) * rule.slack
