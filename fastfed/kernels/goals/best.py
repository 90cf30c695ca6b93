"""The goal `best`: Algorithm 1's rule, which eliminates an arm g or more behind the leader."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.client_brackets import (
    all_tie,
    certified,
    drop_out,
    extremes,
    find_pairs,
    least_lead_of_sides,
    spread,
)
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.decisions import BEST, Rule
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.goals import hooks
from fastfed.kernels.memory import (
    ABANDONED,
    ACCEPT,
    ALIVE,
    FAILED,
    NEVER,
    NEXT,
    WINNER,
    A,
    B,
    Looked,
)
from fastfed.kernels.pair import follow_pair, is_one_pair
from fastfed.kernels.radii import octave, reaches
from fastfed.kernels.rewards import hooks as reward_hooks
from fastfed.kernels.schedules import communicate_through, conclude
from fastfed.kernels.unresolved_pairs import eliminate_led, unresolved_pairs


class NoNotes(NamedTuple):
    """The empty memory of a goal that needs none."""

    nothing: Any


class BestGoal(NamedTuple):
    """The best arm of each client and of the server."""

    local_best: Any  # (M,)
    server_best: Any  # (Q,)
    local_ties: Any  # (M, K) arms of equal number tie at a client,
    server_ties: Any  # (Q, K) and in a question of the server

    def notes(self, arms: int, schedules: int) -> NoNotes:
        return NoNotes(0)


class BestRule(NamedTuple):
    """The goal as one client, or the server, follows it."""

    ties: Any  # (K,) arms of equal number tie: see `schedules.conclude`


@hooks.at_client.of(BestGoal)
def _at_client(goal, notes, m):
    return BestRule(goal.local_ties[m])


@hooks.at_server.of(BestGoal)
def _at_server(goal, notes, q):
    return BestRule(goal.server_ties[q])


@hooks.server_rule.of(BestGoal)
def _server_rule(goal, questions, q):
    return Rule(BEST, np.int64(1), goal.server_ties[q], questions.zeros, 0.0)


@hooks.client_rule.of(BestGoal)
def _client_rule(goal, questions, m):
    return Rule(BEST, np.int64(1), goal.local_ties[m], questions.zeros, 0.0)


@hooks.client_errs.of(BestGoal)
def _client_errs(goal, m, state):
    return state[0, WINNER] != goal.local_best[m]


@hooks.server_errs.of(BestGoal)
def _server_errs(goal, q, s, state):
    return state[s, WINNER] != goal.server_best[q]


@hooks.is_open.of(BestRule)
def _is_open(rule, arms):
    return arms > 1


@hooks.decide.of(BestRule)
def _decide(rule, schedules, tree, radius, total, at_n):
    """Eliminate arms: Algorithm 1, lines 8-15 and 17-25."""
    s = at_n.s
    arms, eliminated_at = tree.arms[at_n.depth, at_n.place], schedules.eliminated_at
    best = -np.inf
    worst = np.inf
    for j in range(arms[eliminated_at.shape[1]]):
        k = arms[j]
        if eliminated_at[s, k] == NEVER:
            best = larger(best, total[k])
            worst = smaller(worst, total[k])
    if best - worst >= at_n.g_below:
        _eliminate(s, at_n.n, best, radius, schedules, arms, total)


@inner
def _eliminate(s, n, best, radius, schedules, arms, total):
    """Eliminate every arm whose distance from the leader is g or more, all at once."""
    state, eliminated_at = schedules.state, schedules.eliminated_at
    level = octave(n)
    for j in range(arms[eliminated_at.shape[1]]):
        k = arms[j]
        if eliminated_at[s, k] == NEVER and reaches(radius, best - total[k], n, level):
            eliminated_at[s, k] = n
            state[s, ALIVE] -= 1
    conclude(s, n, schedules)


@hooks.decided_count.of(BestRule)
def _decided_count(rule, schedules, tree, total, at_n, bar):
    return count_led(schedules, tree, total, at_n, bar)[0]


@inlined
def count_led(schedules, tree, total, at_n, bar):
    """Count the undecided arms that the leader leads by ``bar``, and return its lead as well."""
    arms, eliminated_at = tree.arms[at_n.depth, at_n.place], schedules.eliminated_at
    best = second = -np.inf
    for j in range(arms[eliminated_at.shape[1]]):
        k = arms[j]
        if eliminated_at[at_n.s, k] == NEVER:
            second = larger(second, smaller(best, total[k]))
            best = larger(best, total[k])
    count = np.int64(0)
    for j in range(arms[eliminated_at.shape[1]]):
        k = arms[j]
        if eliminated_at[at_n.s, k] == NEVER and best - total[k] >= bar:
            count += 1
    return count, best - second


@hooks.unresolved_count.of(BestRule)
def _unresolved_count(rule, test, schedules, tree, total, look):
    return unresolved_pairs(test, schedules, tree, total, look)


# ---- the bracket of a client -------------------------------------------------------------------


@hooks.look_at_octave.of(BestRule)
def _look_at_octave(rule, rewards, radius, held, octave, lazy):
    """Find the arms that may eliminate others. It fails if one of them may itself be out."""
    tree, value, m, count = held.tree, held.walks.value, octave.m, octave.arms
    drawn, nothing, issued = tree.drawn[0], np.int64(0), count * (count - 1)
    d_a, d_b, high, low, widest = spread(held, octave)
    if certified(rewards, octave, d_a, d_b, 2.0 * widest):
        return Looked(count, nothing, issued, high, low)
    found = find_pairs(rule, rewards, radius, held, octave, (high, widest), lazy)
    if found > 0:
        if may_be_gone(lazy, m, drawn, count):
            return Looked(np.int64(FAILED), found, nothing, high, low)
        count = drop_out(lazy, m, drawn, count)
        if count == 1:
            declared = _declare(rule, held.schedules.state, lazy, m, np.int64(drawn[0]))
            return Looked(nothing if declared else FAILED, found, issued - found, high, low)
        if all_tie(rule.ties, drawn, count):
            return Looked(np.int64(FAILED), found, nothing, high, low)
        high, low, _ = extremes(value[octave.level], tree.variance, drawn, count, m)
    return Looked(count, found, issued - found, high, low)


@hooks.note_pair.of(BestRule)
def _note_pair(rule, radius, value, cell, level, may_be_out, lazy):
    note_eliminator(radius, value, cell, level, may_be_out, lazy)


@inlined
def note_eliminator(radius, value, cell, level, may_be_out, lazy):
    """Note that arm i may eliminate arm k of client m in an octave, and perhaps has at its end."""
    k, i, m = cell
    n = np.int64(1) << level
    if not lazy.victim[k]:
        lazy.victim[k] = True
        lazy.lo[k, m] = smaller(lazy.lo[k, m], np.int64(level) - 1)  # a stop may have come before
    if lazy.hi[k, m] == 0 and may_be_out:
        lead = value[level, i, m] - value[level, k, m]
        if reaches(radius, lead, n, level + 1):
            lazy.hi[k, m] = n


@inner
def may_be_gone(lazy, m, drawn, count):
    """Tell whether an arm that may eliminate another may itself have been eliminated before."""
    for p in range(count):
        if lazy.victim[drawn[p]]:
            for q in range(count):
                if lazy.by[m, drawn[q], drawn[p]]:
                    return True
    return False


@inner
def _declare(rule, state, lazy, m, winner):
    """Note the winner; return False if it ties with another arm: the pass might be abandoned.

    The winner leaves with the last of the others.
    """
    for k in range(rule.ties.shape[0]):
        if k != winner and rule.ties[k] == rule.ties[winner]:
            return False
    lazy.lo[winner, m] = -1
    for k in range(rule.ties.shape[0]):
        if k != winner:
            lazy.lo[winner, m] = larger(lazy.lo[winner, m], lazy.lo[k, m])
            lazy.hi[winner, m] = larger(lazy.hi[winner, m], lazy.hi[k, m])
    lazy.side[winner, m] = ACCEPT
    state[0, WINNER], state[0, ABANDONED] = winner, 0
    return True


@hooks.least_lead.of(BestRule)
def _least_lead(rule, x, lazy, m, n, after):
    return least_lead_of_sides(x, lazy, m, after)


# ---- quick ways through an interval ------------------------------------------------------------


@hooks.settle_few.of(BestRule)
def _settle_few(rule, rewards, memory, scope, held, radius, found):
    return reward_hooks.settle_few(
        rewards, memory, scope, held.walks, held.tree, held.schedules, radius, found
    )


@hooks.follow_pair.of(BestRule)
def _follow_pair(rule, rewards, memory, scope, held, radius, interval):
    if not is_one_pair(rewards, held.schedules, held.tree, interval.depth):
        return False
    follow_pair(rewards, memory, scope, radius, held, interval)
    return True


@hooks.settle_next.of(BestRule)
def _settle_next(rule, test, scope, schedules, tree, total, look):
    s, n, b = look.s, schedules.state[look.s, NEXT], tree.frame[look.depth, B]
    # who communicates at every step has compared at a, where nobody leads by g; besides, the pairs
    # that were found are still needed by `settle_few`
    if tree.apart[0] == 0 or n - tree.frame[look.depth, A] == 1:
        return False
    left = eliminate_led(test, schedules, tree, total, look)
    if left == 0:
        return False
    communicate_through(s, n, scope.senders * schedules.state[s, ALIVE], schedules)
    schedules.state[s, ALIVE] -= left
    conclude(s, n, schedules)
    if schedules.state[s, NEXT] <= b:
        communicate_through(s, b, scope.senders * schedules.state[s, ALIVE], schedules)
    return True
