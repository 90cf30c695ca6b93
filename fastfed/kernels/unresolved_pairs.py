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

# rows of `Tree.side`, which holds values of the arms alive, one beside the other: the sums at both
# ends, the variance, the number of the arm, and 1.0 if a rival is not certified
AT_A, AT_B, WIDTH, NAME, FLAG = range(5)
# columns of `Tree.last`: 0 if in the last look no arm led another by g(b) at both ends; and of the
# last comparison that may be shared: its arms as bits of a number (or NOTHING), their
# unresolved pairs, the certificates, the unresolved arms as bits, and APART as it left it
APART, COMPARED, FOUND, ISSUED, LISTED, WERE_APART = range(6)
MOST_BITS, NOTHING = 63, -1  # the bits of so many arms are never all set
# from so many arms on, rivals are compared as vectors, by loops without branches; the vectors of
# fewer arms cost more than they spare
SIDE_BY_SIDE = 8


class Ends(NamedTuple):
    """The boundary g and the sums of all arms at the two ends a and b of an interval."""

    g_a: Any
    g_b: Any
    total_a: Any  # (K,)
    total_b: Any  # (K,)


class Highest(NamedTuple):
    """The largest values of any arm alive: sums at both ends, and variance."""

    at_a: Any
    at_b: Any
    variance: Any


class Scratch(NamedTuple):
    """Arrays of `memory.Tree` that comparisons use."""

    unresolved: Any
    variance: Any
    pairs: Any
    side: Any


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
    if test.skip and arms[schedules.eliminated_at.shape[1]] == 2:  # most looks are at two arms
        return _two_arms_unresolved(test, schedules, tree, ends, s, arms, listed)
    if test.skip:
        return _compare_once(test, schedules, tree, ends, look)
    found = all_unresolved(schedules, tree, s, arms)
    if found > 0:
        list_unresolved(tree.unresolved, arms, listed)
    return found


@inlined
def _compare_once(test, schedules, tree, ends, look):
    """Count as `unresolved_pairs` does, once for schedules with the same arms one after the other.

    What they find in an interval depends on nothing else.
    """
    s, last, state = look.s, tree.last, schedules.state
    arms, listed = tree.arms[look.depth, look.place], tree.arms[look.depth + 1, look.below]
    schedule_count, arm_count = schedules.eliminated_at.shape
    shared = schedule_count > 1 and arm_count <= MOST_BITS
    bits = np.int64(0)
    if shared:
        for j in range(arms[arm_count]):
            k = np.int64(arms[j])
            bits |= np.int64(schedules.eliminated_at[s, k] == NEVER) << k
        if bits == last[COMPARED]:
            state[s, CERTIFICATES] += last[ISSUED]
            last[APART] = last[WERE_APART]
            if last[FOUND] > 0:
                found = 0
                for j in range(arms[arm_count]):
                    k = np.int64(arms[j])
                    listed[found] = k  # no branch: the next arm takes the place if it is not listed
                    found += (last[LISTED] >> k) & 1
                listed[arm_count] = found
            return last[FOUND]
    before = state[s, CERTIFICATES]
    pairs = compare_pairs(test, schedules, tree, ends, s, arms)
    if pairs > 0:
        list_unresolved(tree.unresolved, arms, listed)
    if shared:
        last[COMPARED], last[FOUND], last[WERE_APART] = bits, pairs, last[APART]
        last[ISSUED], last[LISTED] = state[s, CERTIFICATES] - before, 0
        if pairs > 0:
            for j in range(listed[arm_count]):
                last[LISTED] |= np.int64(1) << np.int64(listed[j])
    return pairs


@inlined
def _two_arms_unresolved(test, schedules, tree, ends, s, arms, listed):
    """Count, as `unresolved_pairs` does, for two arms."""
    g_a, g_b, total_a, total_b = ends
    eliminated_at, pairs = schedules.eliminated_at, tree.pairs
    k, rival = arms[0], arms[1]
    if eliminated_at[s, k] < NEVER or eliminated_at[s, rival] < NEVER:
        return np.int64(0)
    lead_a, lead_b = total_a[k] - total_a[rival], total_b[k] - total_b[rival]
    spread = tree.variance[k] + tree.variance[rival]
    ahead = hooks.certified(
        test.rewards, g_a - lead_a, g_b - lead_b, test.least, test.slack, spread
    )
    behind = hooks.certified(
        test.rewards, g_a + lead_a, g_b + lead_b, test.least, test.slack, spread
    )
    schedules.state[s, CERTIFICATES] += np.int64(ahead) + np.int64(behind)
    if ahead and behind:
        return np.int64(0)
    tree.last[APART] = np.int64(smaller(abs(lead_a), abs(lead_b)) > g_b)
    listed[0], listed[1] = k, rival
    listed[eliminated_at.shape[1]] = 2
    pairs[0, 0], pairs[0, 1] = k, rival
    return np.int64(1)


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
    tree.last[APART] = np.int64(smaller(best_a - worst_a, best_b - worst_b) > g_b)
    if alive >= SIDE_BY_SIDE:
        highest = Highest(best_a, best_b, widest)
        scratch = Scratch(unresolved, variance, tree.pairs, tree.side)
        terms = (test.least, test.slack)
        found, certificates = _compare_side_by_side(
            test.rewards, terms, ends, arms, eliminated_at[s], highest, scratch
        )
        schedules.state[s, CERTIFICATES] += certificates
        return found
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


@inner
def _compare_side_by_side(rewards, terms, ends, arms, eliminated_at, highest, scratch):
    """Compare as `compare_pairs` does, many rivals at once; return pairs and certificates."""
    g_a, g_b, total_a, total_b = ends
    unresolved, variance, pairs, side = scratch
    alive = np.int64(0)
    for j in range(arms[eliminated_at.shape[0]]):
        k = arms[j]
        if eliminated_at[k] == NEVER:
            put_beside(side, alive, np.int64(k), total_a[k], total_b[k], variance[k])
            alive += 1
    found, certificates = np.int64(0), np.int64(0)
    for j in range(alive):
        lift_a, lift_b = g_a + side[AT_A, j], g_b + side[AT_B, j]
        certificates += alive - 1
        if hooks.certified(
            rewards,
            lift_a - highest.at_a,
            lift_b - highest.at_b,
            terms[0],
            terms[1],
            side[WIDTH, j] + highest.variance,
        ):
            continue
        flag_rivals(rewards, terms, (lift_a, lift_b), side, j, alive)
        k = np.int64(side[NAME, j])
        for r in range(alive):
            if side[FLAG, r] != 0.0:
                rival = np.int64(side[NAME, r])
                certificates -= 1
                unresolved[k] = unresolved[rival] = True
                found = _add_pair(pairs, found, rival, k)
    return found, certificates


@inlined
def put_beside(side, place, k, x_a, x_b, variance):
    """Put the values of arm k beside those of the arms before it."""
    side[AT_A, place], side[AT_B, place] = x_a, x_b
    side[WIDTH, place], side[NAME, place] = variance, float(k)


@inlined
def flag_rivals(rewards, terms, lift, side, j, alive):
    """Flag the rivals that are not certified not to lead arm j by g; ``lift`` is g + its sums.

    The loop has no branch, so that LLVM makes vectors of it.
    """
    lift_a, lift_b = lift
    least, slack = terms
    at_a, at_b, width, flag = side[AT_A], side[AT_B], side[WIDTH], side[FLAG]
    width_j = width[j]
    for r in range(alive):
        safe = hooks.certified_without_branch(
            rewards, lift_a - at_a[r], lift_b - at_b[r], least, slack, width_j + width[r]
        )
        flag[r] = 0.0 if safe else 1.0
    flag[j] = 0.0


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
