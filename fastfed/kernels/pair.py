"""One unresolved pair of arms, followed through an interval for several schedules at once.

A pass keeps lists of schedules and of arms for every interval. Most intervals that the server's
pass splits have one unresolved pair, the same for all schedules: there the lists and the general
comparison cost as much as the draws. `follow_pair` looks at the same intervals in the same order,
by the same certificates, with two arms and the next time of each schedule. It finds for each
schedule the first communication time at which one arm leads the other by g or more, and carries the
eliminations out at the end. Other pairs of a schedule need no look: they are certified in the whole
interval.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastfed.kernels.adaptive import is_chosen
from fastfed.kernels.compiling import inlined
from fastfed.kernels.interval_tree import next_interval, open_left
from fastfed.kernels.memory import (
    ALIVE,
    CERTIFICATES,
    DRAWN,
    DRAWS,
    END,
    INDEX,
    LAST,
    LEFT,
    NEVER,
    NEXT,
    PERIOD,
    RIGHT,
    STEP,
    UNSETTLED,
    A,
    B,
    Flag,
    Int,
    Interval,
    Schedules,
    Scope,
    Tree,
    Walks,
)
from fastfed.kernels.radii import CHORD, octave, reaches
from fastfed.kernels.rewards import hooks
from fastfed.kernels.schedules import communicate_through, conclude

# columns of `Tree.pairs`, a row for each schedule that is followed: its next time, the place of
# that in `Schedules.listed`, and the step at which it eliminates an arm, negative if that is the
# first of the two (0: none was found so far)
AT, PLACE, CROSSING = range(3)


@inlined
def is_one_pair(rewards: Any, schedules: Schedules, tree: Tree, depth: Int) -> Flag:
    """Tell whether all schedules that must split an interval have one pair, and the same one."""
    arms, last = tree.arms[depth + 1], schedules.eliminated_at.shape[1]
    one = tree.frame[depth, B] - tree.frame[depth, A] > hooks.leaf(rewards)
    for i in range(tree.frame[depth + 1, UNSETTLED]):
        one &= arms[i, last] == 2 and arms[i, 0] == arms[0, 0] and arms[i, 1] == arms[0, 1]
        one &= not is_chosen(schedules.chosen, tree.unsettled[depth + 1, i])
    return one


@inlined
def follow_pair(
    rewards: Any,
    memory: Any,
    scope: Scope,
    radius: Any,
    schedules: Schedules,
    walks: Walks,
    tree: Tree,
    interval: Interval,
) -> None:
    """Carry the schedules listed below the interval through it; they have one unresolved pair."""
    top, level = interval.depth, interval.level
    frame, followed, state = tree.frame, tree.pairs, schedules.state
    count, listed = frame[top + 1, UNSETTLED], tree.unsettled[top + 1]
    j, k = np.int64(tree.arms[top + 1, 0, 0]), np.int64(tree.arms[top + 1, 0, 1])
    for i in range(count):
        s = listed[i]
        followed[i, AT], followed[i, PLACE] = state[s, NEXT], state[s, INDEX]
        followed[i, CROSSING] = 0
    depth = top
    while True:
        tree.drawn[depth + 1, 0], tree.drawn[depth + 1, 1] = j, k
        frame[depth + 1, DRAWN] = 2
        if frame[depth, B] - frame[depth, A] > hooks.leaf(rewards):
            hooks.split_interval(rewards, memory, scope, walks, tree, depth)
            open_left(tree, depth, level, radius, hooks.noise_floor(rewards))
            depth += 1
        else:
            hooks.walk_interval(rewards, memory, scope, walks, tree, depth)
            _visit_steps(radius, schedules, walks.total, tree, depth, (listed, count, j, k))
            depth = next_interval(frame, tree.g, depth, top)
        while depth > top and not _is_unresolved(
            rewards, memory, scope, radius, schedules, walks, tree, (depth, listed, count, j, k)
        ):
            depth = next_interval(frame, tree.g, depth, top)
        if depth <= top:
            break
    _carry_out(scope, schedules, tree, (listed, count, j, k), frame[top, B])


@inlined
def _is_unresolved(rewards, memory, scope, radius, schedules, walks, tree, look):
    """Look at an interval for all schedules, and tell whether it must be split or walked."""
    depth, listed, count, j, k = look
    frame, followed, state = tree.frame, tree.pairs, schedules.state
    a, b = frame[depth, A], frame[depth, B]
    g_a, g_b = tree.g[depth, 0], tree.g[depth, 1]
    at_a, at_b = walks.total[frame[depth, LEFT]], walks.total[frame[depth, RIGHT]]
    lead_a, lead_b = at_a[j] - at_a[k], at_b[j] - at_b[k]
    inside = np.int64(0)
    for i in range(count):
        if followed[i, AT] <= a:
            _pass_by(a, schedules, listed[i], followed, i)
        if followed[i, AT] > b:
            continue
        walks.work[0] += 1
        if followed[i, CROSSING] == 0:
            if followed[i, AT] < b:
                inside += 1
                continue
            if abs(lead_b) >= g_b:
                _note_crossing(radius, lead_b, frame[depth, B], followed, i)
        _pass_by(b, schedules, listed[i], followed, i)
    if inside == 0:
        return False
    least, slack = hooks.certificate_bound(rewards, memory, scope, walks, tree, depth)
    spread = tree.variance[j] + tree.variance[k]
    ahead = hooks.certified(rewards, g_a - lead_a, g_b - lead_b, least, slack, spread)
    behind = hooks.certified(rewards, g_a + lead_a, g_b + lead_b, least, slack, spread)
    certificates = np.int64(ahead) + np.int64(behind)
    draws = np.int64(0)
    if certificates < 2:
        draws = (b - a if b - a <= hooks.leaf(rewards) else np.int64(1)) * (scope.hi - scope.lo) * 2
    for i in range(count):
        if followed[i, CROSSING] == 0 and followed[i, AT] < b:
            state[listed[i], CERTIFICATES] += certificates
            state[listed[i], DRAWS] += draws
    return certificates < 2


@inlined
def _visit_steps(radius, schedules, total, tree, depth, pair):
    """Compare the two arms at every communication time of an interval whose steps were walked."""
    listed, count, j, k = pair
    frame, followed = tree.frame, tree.pairs
    a, b, right = frame[depth, A], frame[depth, B], frame[depth, RIGHT]
    g_a = tree.g[depth, 0]
    rise = (tree.g[depth, 1] - g_a) / float(b - a)
    for i in range(count):
        if followed[i, CROSSING] != 0:
            continue
        if followed[i, AT] <= a:
            _pass_by(a, schedules, listed[i], followed, i)
        while followed[i, AT] <= b and followed[i, CROSSING] == 0:
            n = followed[i, AT]
            at_n = total[right if n == b else STEP + n - a]
            lead = at_n[j] - at_n[k]
            if abs(lead) >= (g_a + rise * float(n - a)) * CHORD:
                _note_crossing(radius, lead, n, followed, i)
            _pass_by(n, schedules, listed[i], followed, i)


@inlined
def _note_crossing(radius, lead, n, followed, i):
    """Take note of an elimination at n, if one arm leads the other by g."""
    if reaches(radius, abs(lead), n, octave(n)):
        followed[i, CROSSING] = n if lead > 0.0 else -n


@inlined
def _pass_by(n, schedules, s, followed, i):
    """Set the next time of a schedule to its first after n; to NEVER after its last pair."""
    period, last = schedules.times[s, PERIOD], schedules.times[s, LAST]
    if followed[i, CROSSING] != 0 and schedules.state[s, ALIVE] == 2:
        followed[i, AT] = NEVER
        return
    if period > 0:
        time = n + 1 if period == 1 else n - n % period + period
        followed[i, AT] = time if time <= last else NEVER
        return
    place, end = followed[i, PLACE], schedules.times[s, END]
    while place < end and schedules.listed[place] <= n:
        place += 1
    followed[i, PLACE] = place
    followed[i, AT] = schedules.listed[place] if place < end else NEVER


@inlined
def _carry_out(scope, schedules, tree, pair, b):
    """Hold all communication rounds up to b, and carry out the eliminations that were found."""
    listed, count, j, k = pair
    state = schedules.state
    for i in range(count):
        s, n = listed[i], tree.pairs[i, CROSSING]
        if n != 0:
            communicate_through(s, abs(n), scope.senders, schedules)
            schedules.eliminated_at[s, k if n > 0 else j] = abs(n)
            state[s, ALIVE] -= 1
            conclude(s, abs(n), schedules)
        if state[s, NEXT] <= b:
            communicate_through(s, b, scope.senders, schedules)
