"""Which pairs of arms might cross the boundary inside an interval, and which arms that leaves.

An interval has lists: the schedules that must look into it, for each of them the arms that are in
doubt there, and the union of those arms, which is what has to be drawn.
"""

from __future__ import annotations

import numpy as np

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.laws import hooks
from fastfed.kernels.memory import (
    DRAWN,
    IS_RIGHT,
    LEFT,
    MOST_DUELS,
    NEVER,
    NEXT,
    RIGHT,
    SAFE_PAIRS,
    TALKERS,
)


@inner
def list_arms(talks, tree):
    """List at depth 0 the schedules that still run, and the arms of each."""
    frame, arms, doubt = tree.frame, tree.arms, tree.doubt
    state, out_at = talks.state, talks.out_at
    schedules, arm_count = out_at.shape
    for k in range(arm_count):
        doubt[k] = False
    running = 0
    for s in range(schedules):
        if state[s, NEXT] == NEVER:
            continue
        count = 0
        for k in range(arm_count):
            if out_at[s, k] == NEVER:
                arms[0, running, count] = k
                doubt[k] = True
                count += 1
        arms[0, running, arm_count] = count
        tree.talkers[0, running] = s
        running += 1
    count = 0
    for k in range(arm_count):
        if doubt[k]:
            tree.drawn[0, count] = k
            count += 1
    frame[0, IS_RIGHT] = 0
    frame[0, TALKERS] = running
    frame[0, DRAWN] = count


@inlined
def collect_arms(tree, depth):
    """At depth + 1, the union of the arms in doubt over the schedules in doubt."""
    frame, arms, drawn, doubt = tree.frame, tree.arms, tree.drawn, tree.doubt
    below = depth + 1
    arm_count = doubt.shape[0]
    if frame[below, TALKERS] == 1:
        count = np.int64(arms[below, 0, arm_count])
        for j in range(count):
            drawn[below, j] = arms[below, 0, j]
        frame[below, DRAWN] = count
        return
    for j in range(frame[depth, DRAWN]):
        doubt[drawn[depth, j]] = False
    for i in range(frame[below, TALKERS]):
        for j in range(arms[below, i, arm_count]):
            doubt[arms[below, i, j]] = True
    count = 0
    for j in range(frame[depth, DRAWN]):
        if doubt[drawn[depth, j]]:
            drawn[below, count] = drawn[depth, j]
            count += 1
    frame[below, DRAWN] = count


@inlined
def pairs_in_doubt(test, talks, tree, total, s, i, depth, slot):
    """The number of pairs that might cross g in the interval, the first MOST_DUELS of which are
    listed in ``tree.pairs``; their arms are listed at [depth + 1, slot]. The schedule is s, the
    i-th that looks into the interval."""
    arms, listed = tree.arms[depth, i], tree.arms[depth + 1, slot]
    ends = (
        tree.g[depth, 0] - test.strays[0],
        tree.g[depth, 1] - test.strays[1],
        total[tree.frame[depth, LEFT]],
        total[tree.frame[depth, RIGHT]],
    )
    if test.skip and arms[talks.out_at.shape[1]] == 2:  # most looks are at two arms
        return _two_arms_in_doubt(test, talks, tree, ends, s, arms, listed)
    if test.skip:
        doubts = compare_pairs(test, talks, tree, ends, s, arms)
    else:
        doubts = all_in_doubt(talks, tree, s, arms)
    if doubts > 0:
        list_doubts(tree.doubt, arms, listed)
    return doubts


@inlined
def _two_arms_in_doubt(test, talks, tree, ends, s, arms, listed):
    """`pairs_in_doubt` for two arms."""
    g_a, g_b, total_a, total_b = ends
    out_at, pairs = talks.out_at, tree.pairs
    k, rival = arms[0], arms[1]
    if out_at[s, k] < NEVER or out_at[s, rival] < NEVER:
        return np.int64(0)
    lead_a, lead_b = total_a[k] - total_a[rival], total_b[k] - total_b[rival]
    spread = tree.variance[k] + tree.variance[rival]
    ahead = hooks.safe(test.law, g_a - lead_a, g_b - lead_b, test.least, test.slack, spread)
    behind = hooks.safe(test.law, g_a + lead_a, g_b + lead_b, test.least, test.slack, spread)
    talks.state[s, SAFE_PAIRS] += np.int64(ahead) + np.int64(behind)
    if ahead and behind:
        return np.int64(0)
    listed[0], listed[1] = k, rival
    listed[out_at.shape[1]] = 2
    pairs[0, 0], pairs[0, 1] = k, rival
    return np.int64(1)


@inlined
def all_in_doubt(talks, tree, s, arms):
    """Without skipping, every pair of arms alive."""
    alive = np.int64(0)
    for j in range(arms[talks.out_at.shape[1]]):
        k = arms[j]
        tree.doubt[k] = talks.out_at[s, k] == NEVER
        alive += np.int64(tree.doubt[k])
    return alive * (alive - 1) // 2


@inlined
def compare_pairs(test, talks, tree, ends, s, arms):
    """The pairs that are not safe: first all at once, then arm by arm, then pair by pair. Flags
    their arms in ``tree.doubt``."""
    g_a, g_b, total_a, total_b = ends
    out_at, doubt, variance = talks.out_at, tree.doubt, tree.variance
    count = arms[out_at.shape[1]]
    alive = 0
    best_a = best_b = -np.inf
    worst_a = worst_b = np.inf
    widest = 0.0
    for j in range(count):
        k = arms[j]
        doubt[k] = False
        if out_at[s, k] == NEVER:
            alive += 1
            best_a, worst_a = max(best_a, total_a[k]), min(worst_a, total_a[k])
            best_b, worst_b = max(best_b, total_b[k]), min(worst_b, total_b[k])
            widest = max(widest, variance[k])
    if hooks.safe(
        test.law,
        g_a - (best_a - worst_a),
        g_b - (best_b - worst_b),
        test.least,
        test.slack,
        2.0 * widest,
    ):
        talks.state[s, SAFE_PAIRS] += alive * (alive - 1)
        return np.int64(0)
    doubts = np.int64(0)
    for j in range(count):
        k = arms[j]
        if out_at[s, k] < NEVER:
            continue
        lift_a, lift_b = g_a + total_a[k], g_b + total_b[k]
        # the leaders at either end are at least as near to crossing as any one rival
        if hooks.safe(
            test.law, lift_a - best_a, lift_b - best_b, test.least, test.slack, variance[k] + widest
        ):
            talks.state[s, SAFE_PAIRS] += alive - 1
            continue
        for r in range(count):
            rival = arms[r]
            if rival == k or out_at[s, rival] < NEVER:
                continue
            if hooks.safe(
                test.law,
                lift_a - total_a[rival],
                lift_b - total_b[rival],
                test.least,
                test.slack,
                variance[k] + variance[rival],
            ):
                talks.state[s, SAFE_PAIRS] += 1
                continue
            doubt[k] = doubt[rival] = True
            doubts = _add_pair(tree.pairs, doubts, rival, k)
    return doubts


@inlined
def _add_pair(pairs, doubts, leader, rival):
    """List a pair in doubt, unless it is listed the other way round; the number of pairs."""
    listed = False
    for p in range(min(doubts, MOST_DUELS)):
        listed |= pairs[p, 0] == rival and pairs[p, 1] == leader
    if listed:
        return doubts
    if doubts < MOST_DUELS:
        pairs[doubts, 0], pairs[doubts, 1] = leader, rival
    return doubts + 1


@inlined
def list_doubts(doubt, arms, listed):
    """The arms in doubt among ``arms``, and their number last."""
    arm_count = doubt.shape[0]
    found = 0
    for j in range(arms[arm_count]):
        k = arms[j]
        if doubt[k]:
            listed[found] = k
            found += 1
    listed[arm_count] = found
