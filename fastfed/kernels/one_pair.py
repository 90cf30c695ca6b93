"""Intervals with one unresolved pair of arms, and those of a client with few.

Most intervals that the server opens have one pair, the same for all schedules: there the general
comparison of `passes` costs as much as the draws. What is here does as `passes` does, for one pair.
"""

from __future__ import annotations

import numpy as np

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.memory import (
    ALIVE,
    CERTIFICATES,
    DRAWN,
    LEFT,
    LISTED,
    NEVER,
    NEXT,
    PERIOD,
    RIGHT,
    SENDING,
    SPINE_DECIDES,
    STEP,
    UNSETTLED,
    A,
    B,
    Unresolved,
)
from fastfed.kernels.radii import CHORD, boundary_above, exact
from fastfed.kernels.rewards import hooks
from fastfed.kernels.schedules import communicate, communicate_through, conclude
from fastfed.kernels.verdicts import DOES, FIRST_DOES, count_flags, is_ahead, may_reach, or_surely


@inlined
def settle_pair(rewards, memory, scope, radius, held, asked, link, place):
    """Do as `_settle` does for an interval with one functional, and list what is left over.

    Dense schedules take 1.3 to 1.4 times as long without.
    """
    depth, level = place
    walks, tree, schedules = held.walks, held.tree, held.schedules
    frame, state, below = tree.frame, schedules.state, depth + 1
    eliminated_at, b = schedules.eliminated_at, frame[depth, B]
    above = tree.verdicts[depth, 0]
    i, j, wanted = np.int64(above[0]), np.int64(above[1]), np.int64(above[2])
    at_b, scale = walks.total[frame[depth, RIGHT]], asked.scales[i, j]
    lead = at_b[i] - at_b[j]
    flags, issued, left_over = np.int64(-1), np.int64(0), np.int64(0)
    looked = np.int64(0)
    for p in range(frame[depth, UNSETTLED]):
        s = np.int64(tree.unsettled[depth, p])
        n = state[s, NEXT]
        if n > b:
            continue
        looked += 1
        lost = False
        if n == b:
            communicate(s, b, state[s, SENDING], schedules)
            if abs(lead) >= scale * tree.g[depth, 1]:
                pair = (i, j, scale, lead)
                lost = _compare_pair(radius, schedules, asked, s, frame[depth, B], pair)
        else:
            if flags < 0:
                flags = wanted
                if wanted & DOES == 0:
                    bound = hooks.certificate_bound(rewards, memory, scope, walks, tree, depth)
                    at_a, g_b = walks.total[frame[depth, LEFT]], scale * tree.g[depth, 1]
                    leads, bars = (at_a[i] - at_a[j], lead), (scale * tree.g[depth, 0], g_b)
                    variance = tree.variance[i] + tree.variance[j]
                    flags = may_reach(rewards, leads, bars, bound, variance, wanted)
                    if flags != 0 and is_ahead(leads, g_b):
                        most = scale * boundary_above(radius, b)
                        flags = or_surely(rewards, leads, most, bound, variance, flags)
                    issued = count_flags(wanted) - count_flags(flags)
            if issued > 0:
                state[s, CERTIFICATES] += issued
            if flags == 0:
                communicate_through(s, b, state[s, SENDING], schedules)
            elif flags & DOES:
                communicate(s, n, state[s, SENDING], schedules)
                _drop(schedules, asked, s, n, j if flags & FIRST_DOES else i)
                lost = True
            else:
                if depth == 0:
                    state[s, SPINE_DECIDES] = smaller(state[s, SPINE_DECIDES], frame[0, A])
                settled = False
                if scope.hi - scope.lo == 1:
                    tree.pairs[0, 0], tree.pairs[0, 1] = i, j
                    few = depth, level, np.int64(1)
                    settled = settle_few(rewards, memory, scope, radius, held, few)
                    lost = settled and (eliminated_at[s, i] < NEVER or eliminated_at[s, j] < NEVER)
                if not settled:
                    tree.unsettled[below, left_over] = s
                    left_over += 1
        if lost:
            _pass_pair(schedules, frame, s, depth)
    walks.work[0] += looked
    if left_over > 0:
        listed = tree.verdicts[below, 0]
        listed[0], listed[1], listed[2] = i, j, flags
        tree.drawn[below, 0], tree.drawn[below, 1] = i, j
        frame[below, LISTED], frame[below, DRAWN], frame[below, UNSETTLED] = 1, 2, left_over
    return left_over


@inlined
def walk_pair(radius, held, asked, depth):
    """Do as `_walk` does for an interval with one functional."""
    tree, schedules, total = held.tree, held.schedules, held.walks.total
    frame, state, below = tree.frame, schedules.state, depth + 1
    a, b, right, g_a = frame[depth, A], frame[depth, B], frame[depth, RIGHT], tree.g[depth, 0]
    i, j = np.int64(tree.drawn[below, 0]), np.int64(tree.drawn[below, 1])
    scale, rise = asked.scales[i, j], (tree.g[depth, 1] - g_a) / float(b - a)
    for p in range(frame[below, UNSETTLED]):
        s = np.int64(tree.unsettled[below, p])
        while state[s, NEXT] <= b:
            n = state[s, NEXT]
            at_n = total[right if n == b else STEP + n - a]
            lead = at_n[i] - at_n[j]
            communicate(s, n, state[s, SENDING], schedules)
            near = abs(lead) >= scale * (g_a + rise * float(n - a)) * CHORD
            if near and _compare_pair(radius, schedules, asked, s, n, (i, j, scale, lead)):
                _pass_pair(schedules, frame, s, below)
                break


@inner
def _pass_pair(schedules, frame, s, depth):
    """Carry schedule s, which lost an arm of the pair, through the intervals that list it alone.

    The list at a depth is that of the whole interval above it.
    """
    top = depth
    while top > 0 and frame[top - 1, LISTED] == 1:
        top -= 1
    until = frame[larger(top - 1, 0), B]
    if schedules.state[s, NEXT] <= until:
        communicate_through(s, until, schedules.state[s, SENDING], schedules)


@inner
def _compare_pair(radius, schedules, asked, s, n, pair):
    """Eliminate one of two arms at step n if the other is g ahead; tell whether it was done."""
    i, j, scale, lead = pair
    if abs(lead) < scale * exact(radius, float(n)):
        return False
    _drop(schedules, asked, s, n, j if lead > 0.0 else i)
    return True


@inner
def _drop(schedules, asked, s, n, k):
    """Let arm k leave schedule s at step n."""
    state = schedules.state
    schedules.eliminated_at[s, k] = n
    state[s, ALIVE] -= 1
    state[s, SENDING] -= asked.senders[k]
    conclude(s, n, schedules)


@inlined
def settle_few(rewards, memory, scope, radius, held, place):
    """Settle an interval of a client by `rewards.settle_few`; ``tree.pairs`` has its pairs."""
    depth, level, count = place
    walks, tree, schedules = held.walks, held.tree, held.schedules
    if schedules.times.shape[0] > 1 or schedules.times[0, PERIOD] != 1:
        return False
    found = Unresolved(np.int64(count), depth, level)
    settled = hooks.settle_few(rewards, memory, scope, walks, tree, schedules, radius, found)
    if settled:  # one client, one message for each arm
        schedules.state[0, SENDING] = schedules.state[0, ALIVE]
    return settled
