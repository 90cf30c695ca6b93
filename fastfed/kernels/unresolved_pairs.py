"""The unresolved pairs of an interval, which might cross the boundary inside it, and their arms.

An interval has lists: the schedules that must look into it, for each of them its unresolved arms,
and the union of those arms, which has to be drawn.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.memory import (
    ALIVE,
    CERTIFICATES,
    DRAWN,
    IS_RIGHT,
    LEFT,
    MOST_PAIRS,
    NEVER,
    NEXT,
    RIGHT,
    UNSETTLED,
    B,
)
from fastfed.kernels.radii import boundary_above
from fastfed.kernels.rewards import hooks


class Ends(NamedTuple):
    """The boundary g and the sums of all arms at the two ends a and b of an interval."""

    g_a: Any
    g_b: Any
    total_a: Any  # (K,)
    total_b: Any  # (K,)


@inner
def list_arms(schedules, tree):
    """List at depth 0 the schedules that still run, and the arms of each."""
    frame, arms, unresolved = tree.frame, tree.arms, tree.unresolved
    state, eliminated_at = schedules.state, schedules.eliminated_at
    schedule_count, arm_count = eliminated_at.shape
    for k in range(arm_count):
        unresolved[k] = False
    running = 0
    for s in range(schedule_count):
        if state[s, NEXT] == NEVER:
            continue
        count = 0
        for k in range(arm_count):
            if eliminated_at[s, k] == NEVER:
                arms[0, running, count] = k
                unresolved[k] = True
                count += 1
        arms[0, running, arm_count] = count
        tree.unsettled[0, running] = s
        running += 1
    count = 0
    for k in range(arm_count):
        if unresolved[k]:
            tree.drawn[0, count] = k
            count += 1
    frame[0, IS_RIGHT] = 0
    frame[0, UNSETTLED] = running
    frame[0, DRAWN] = count


@inlined
def collect_arms(tree, depth):
    """List at depth + 1 the union of the unresolved arms of the unsettled schedules."""
    frame, arms, drawn, unresolved = tree.frame, tree.arms, tree.drawn, tree.unresolved
    below = depth + 1
    arm_count = unresolved.shape[0]
    if frame[below, UNSETTLED] == 1:
        count = np.int64(arms[below, 0, arm_count])
        for j in range(count):
            drawn[below, j] = arms[below, 0, j]
        frame[below, DRAWN] = count
        return
    for j in range(frame[depth, DRAWN]):
        unresolved[drawn[depth, j]] = False
    for i in range(frame[below, UNSETTLED]):
        for j in range(arms[below, i, arm_count]):
            unresolved[arms[below, i, j]] = True
    count = 0
    for j in range(frame[depth, DRAWN]):
        if unresolved[drawn[depth, j]]:
            drawn[below, count] = drawn[depth, j]
            count += 1
    frame[below, DRAWN] = count


@inlined
def ends_of(test, tree, total, depth):
    """Return the `Ends` of the interval at ``depth``: g less the message errors, and the sums."""
    return Ends(
        tree.g[depth, 0] - test.message_errors[0],
        tree.g[depth, 1] - test.message_errors[1],
        total[tree.frame[depth, LEFT]],
        total[tree.frame[depth, RIGHT]],
    )


@inlined
def unresolved_pairs(test, schedules, tree, total, look):
    """Count the pairs that might cross g in the interval, and list their arms.

    The first MOST_PAIRS of them are listed in ``tree.pairs``.
    """
    s, depth = look.s, look.depth
    arms, listed = tree.arms[depth, look.place], tree.arms[depth + 1, look.below]
    ends = ends_of(test, tree, total, depth)
    if test.skip:
        found = compare_pairs(test, schedules, tree, ends, s, arms)
    else:
        found = all_unresolved(schedules, tree, s, arms)
    if found > 0:
        list_unresolved(tree.unresolved, arms, listed)
    return found


@inlined
def all_unresolved(schedules, tree, s, arms):
    """Count every pair of arms alive as unresolved: without skipping."""
    alive = np.int64(0)
    for j in range(arms[schedules.eliminated_at.shape[1]]):
        k = arms[j]
        tree.unresolved[k] = schedules.eliminated_at[s, k] == NEVER
        alive += np.int64(tree.unresolved[k])
    return alive * (alive - 1) // 2


@inlined
def compare_pairs(test, schedules, tree, ends, s, arms):
    """Count the pairs that are not certified: all at once, then arm by arm, then pair by pair.

    Flags their arms in ``tree.unresolved``.
    """
    g_a, g_b, total_a, total_b = ends
    eliminated_at, unresolved, variance = schedules.eliminated_at, tree.unresolved, tree.variance
    count = arms[eliminated_at.shape[1]]
    alive = 0
    best_a = best_b = -np.inf
    worst_a = worst_b = np.inf
    widest = 0.0
    for j in range(count):
        k = arms[j]
        unresolved[k] = False
        if eliminated_at[s, k] == NEVER:
            alive += 1
            best_a, worst_a = larger(best_a, total_a[k]), smaller(worst_a, total_a[k])
            best_b, worst_b = larger(best_b, total_b[k]), smaller(worst_b, total_b[k])
            widest = larger(widest, variance[k])
    if hooks.certified(
        test.rewards,
        g_a - (best_a - worst_a),
        g_b - (best_b - worst_b),
        test.least,
        test.slack,
        2.0 * widest,
    ):
        schedules.state[s, CERTIFICATES] += alive * (alive - 1)
        return np.int64(0)
    tree.apart[0] = np.int64(smaller(best_a - worst_a, best_b - worst_b) > g_b)
    found = np.int64(0)
    for j in range(count):
        k = arms[j]
        if eliminated_at[s, k] < NEVER:
            continue
        lift_a, lift_b = g_a + total_a[k], g_b + total_b[k]
        # the leaders at either end are at least as near to crossing as any one rival
        if hooks.certified(
            test.rewards,
            lift_a - best_a,
            lift_b - best_b,
            test.least,
            test.slack,
            variance[k] + widest,
        ):
            schedules.state[s, CERTIFICATES] += alive - 1
            continue
        for r in range(count):
            rival = arms[r]
            if rival == k or eliminated_at[s, rival] < NEVER:
                continue
            if hooks.certified(
                test.rewards,
                lift_a - total_a[rival],
                lift_b - total_b[rival],
                test.least,
                test.slack,
                variance[k] + variance[rival],
            ):
                schedules.state[s, CERTIFICATES] += 1
                continue
            unresolved[k] = unresolved[rival] = True
            found = _add_pair(tree.pairs, found, np.int64(rival), np.int64(k))
    return found


@inlined
def _add_pair(pairs, found, leader, rival):
    """List an unresolved pair, unless it is listed the other way round; return their number."""
    listed = False
    for p in range(smaller(found, MOST_PAIRS)):
        listed |= pairs[p, 0] == rival and pairs[p, 1] == leader
    if listed:
        return found
    if found < MOST_PAIRS:
        pairs[found, 0], pairs[found, 1] = leader, rival
    return found + 1


@inlined
def list_unresolved(unresolved, arms, listed):
    """List the unresolved arms among ``arms``, and their number last."""
    arm_count = unresolved.shape[0]
    found = 0
    for j in range(arms[arm_count]):
        k = arms[j]
        if unresolved[k]:
            listed[found] = k
            found += 1
    listed[arm_count] = found


@inlined
def certainly_leads(test, tree, ends, most, j, k):
    """Tell whether j is certified to lead k by g or more; ``most`` is above g in the interval."""
    _, _, total_a, total_b = ends
    return hooks.certified(
        test.rewards,
        total_a[j] - total_a[k] - most,
        total_b[j] - total_b[k] - most,
        test.least,
        test.slack,
        tree.variance[j] + tree.variance[k],
    )


@inner
def eliminate_led(test, schedules, tree, total, look):
    """Eliminate at the next time every arm that the leader certainly leads by g in the interval.

    That is undone if any pair of the others is unresolved, for then more might happen inside.
    Pairs of an arm that leaves with one that stays do not matter: at the next time the leader is
    above the one that leaves, and eliminates all that it would. Return the number that left.
    """
    s, depth = look.s, look.depth
    arms, state = tree.arms[depth, look.place], schedules.state
    eliminated_at = schedules.eliminated_at
    ends = ends_of(test, tree, total, depth)
    count = arms[eliminated_at.shape[1]]
    leader, best = np.int64(-1), -np.inf
    for j in range(count):
        k = np.int64(arms[j])
        if eliminated_at[s, k] == NEVER and ends.total_b[k] > best:
            leader, best = k, ends.total_b[k]
    most = boundary_above(test.radius, tree.frame[depth, B])
    n, left = state[s, NEXT], np.int64(0)
    for j in range(count):
        k = np.int64(arms[j])
        if k == leader or eliminated_at[s, k] < NEVER:
            continue
        if certainly_leads(test, tree, ends, most, leader, k):
            eliminated_at[s, k] = n
            left += 1
    state[s, CERTIFICATES] += left
    alone = state[s, ALIVE] - left == 1
    if left == 0 or alone or compare_pairs(test, schedules, tree, ends, s, arms) == 0:
        return left
    for j in range(count):
        if eliminated_at[s, arms[j]] == n:
            eliminated_at[s, arms[j]] = NEVER
    return np.int64(0)
