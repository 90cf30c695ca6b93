"""One unresolved pair of arms, followed through an interval for several schedules at once.

A pass keeps lists of schedules and of arms for every interval. Most intervals that the server's
pass splits have one unresolved pair, the same for all schedules: there the lists and the general
comparison cost as much as the draws. `follow_pair` looks at the same intervals in the same order,
by the same certificates, with two arms and the next time of each schedule. It finds for each
schedule the first communication time at which one arm leads the other by g or more, and carries the
eliminations out at the end. Where an arm certainly leads by g in a whole interval, it is the next
time of each schedule. Other pairs of a schedule need no look: they are certified in the whole
interval.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.adaptive import is_chosen
from fastfed.kernels.compiling import inlined
from fastfed.kernels.extremes import smaller
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
    PassMemory,
    Schedules,
    Scope,
    Tree,
)
from fastfed.kernels.radii import CHORD, boundary_above, octave, reaches
from fastfed.kernels.rewards import hooks
from fastfed.kernels.schedules import communicate_through, conclude

# columns of `Tree.pairs`, a row for each schedule that is followed: its next time, the place of
# that in `Schedules.listed`, and the step at which it eliminates an arm, negative if that is the
# first of the two (0: none was found so far)
AT, PLACE, CROSSING = range(3)


class Pair(NamedTuple):
    """Two arms, and the schedules that follow them."""

    j: Any
    k: Any
    listed: Any  # the schedules: first those that are active, which have not eliminated an arm yet
    count: Any


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
    held: PassMemory,
    interval: Interval,
) -> None:
    """Carry the schedules listed below the interval through it; they have one unresolved pair."""
    walks, tree, schedules = held.walks, held.tree, held.schedules
    top, level = interval.depth, interval.level
    frame, followed, state = tree.frame, tree.pairs, schedules.state
    count, listed = frame[top + 1, UNSETTLED], tree.unsettled[top + 1]
    j, k = np.int64(tree.arms[top + 1, 0, 0]), np.int64(tree.arms[top + 1, 0, 1])
    for i in range(count):
        s = listed[i]
        followed[i, AT], followed[i, PLACE] = state[s, NEXT], state[s, INDEX]
        followed[i, CROSSING] = 0
    depth, active = top, count
    while active > 0:
        tree.drawn[depth + 1, 0], tree.drawn[depth + 1, 1] = j, k
        frame[depth + 1, DRAWN] = 2
        if frame[depth, B] - frame[depth, A] > hooks.leaf(rewards):
            hooks.split_interval(rewards, memory, scope, walks, tree, depth)
            open_left(tree, depth, level, radius, hooks.noise_floor(rewards))
            depth += 1
        else:
            hooks.walk_interval(rewards, memory, scope, walks, tree, depth)
            pair = Pair(j, k, listed, active)
            active = _visit_steps(radius, schedules, walks.total, tree, depth, pair)
            depth = next_interval(frame, tree.g, depth, top)
        while depth > top:
            pair = Pair(j, k, listed, active)
            unresolved, active = _look(rewards, memory, scope, radius, held, depth, pair)
            if unresolved:
                break
            depth = next_interval(frame, tree.g, depth, top)
        if depth <= top:
            break
    _carry_out(scope, schedules, tree, Pair(j, k, listed, count), frame[top, B])


@inlined
def _look(rewards, memory, scope, radius, held, depth, pair):
    """Look at an interval for all active schedules.

    Tell whether it must be split or walked, and return the number of schedules still active.
    """
    j, k, listed, active = pair
    walks, tree, schedules = held.walks, held.tree, held.schedules
    frame, followed, state = tree.frame, tree.pairs, schedules.state
    a, b = frame[depth, A], frame[depth, B]
    g_a, g_b = tree.g[depth, 0], tree.g[depth, 1]
    at_a, at_b = walks.total[frame[depth, LEFT]], walks.total[frame[depth, RIGHT]]
    lead_a, lead_b = at_a[j] - at_a[k], at_b[j] - at_b[k]
    inside = i = np.int64(0)
    while i < active:
        if followed[i, AT] <= a:
            _pass_by(a, schedules, listed[i], followed, i)
        if followed[i, AT] > b:
            i += 1
            continue
        walks.work[0] += 1
        if followed[i, AT] < b:
            inside += 1
        # b anew from memory, for the reason given in `elimination`
        elif abs(lead_b) >= g_b and _reaches_at(radius, lead_b, frame[depth, B]):
            active = _note_crossing(followed, listed, active, i, lead_b)
            continue
        else:
            _pass_by(b, schedules, listed[i], followed, i)
        i += 1
    if inside == 0:
        return False, active
    least, slack = hooks.certificate_bound(rewards, memory, scope, walks, tree, depth)
    spread = tree.variance[j] + tree.variance[k]
    ahead = hooks.certified(rewards, g_a - lead_a, g_b - lead_b, least, slack, spread)
    behind = hooks.certified(rewards, g_a + lead_a, g_b + lead_b, least, slack, spread)
    certificates = np.int64(ahead) + np.int64(behind)
    draws, crosses = np.int64(0), False
    if certificates < 2:
        draws = (b - a if b - a <= hooks.leaf(rewards) else np.int64(1)) * (scope.hi - scope.lo) * 2
        if lead_a * lead_b > 0.0 and smaller(abs(lead_a), abs(lead_b)) > g_b:
            most = boundary_above(radius, b)
            d_a, d_b = abs(lead_a) - most, abs(lead_b) - most
            crosses = hooks.certified(rewards, d_a, d_b, least, slack, spread)
    i = np.int64(0)
    while i < active:
        if followed[i, AT] < b:
            if crosses:
                state[listed[i], CERTIFICATES] += 1
                active = _note_crossing(followed, listed, active, i, lead_b)
                continue
            state[listed[i], CERTIFICATES] += certificates
            state[listed[i], DRAWS] += draws
        i += 1
    return certificates < 2 and not crosses, active


@inlined
def _visit_steps(radius, schedules, total, tree, depth, pair):
    """Compare the two arms at every communication time of an interval whose steps were walked.

    Return the number of schedules still active.
    """
    j, k, listed, active = pair
    frame, followed = tree.frame, tree.pairs
    a, b, right = frame[depth, A], frame[depth, B], frame[depth, RIGHT]
    g_a = tree.g[depth, 0]
    rise = (tree.g[depth, 1] - g_a) / float(b - a)
    i = np.int64(0)
    while i < active:
        if followed[i, AT] <= a:
            _pass_by(a, schedules, listed[i], followed, i)
        n = followed[i, AT]
        if n > b:
            i += 1
            continue
        at_n = total[right if n == b else STEP + n - a]
        lead = at_n[j] - at_n[k]
        if abs(lead) >= (g_a + rise * float(n - a)) * CHORD and _reaches_at(radius, lead, n):
            active = _note_crossing(followed, listed, active, i, lead)
        else:
            _pass_by(n, schedules, listed[i], followed, i)
    return active


@inlined
def _reaches_at(radius, lead, n):
    """Tell whether one arm leads the other by g(n) or more."""
    return reaches(radius, abs(lead), n, octave(n))


@inlined
def _note_crossing(followed, listed, active, i, lead):
    """Take note that schedule i eliminates an arm at its next time; it is active no more.

    It changes places with the last active schedule, whose number is returned.
    """
    n, s, last = followed[i, AT], listed[i], active - 1
    followed[i, AT], followed[i, PLACE] = followed[last, AT], followed[last, PLACE]
    listed[i], listed[last] = listed[last], s
    followed[last, CROSSING] = n if lead > 0.0 else -n
    return last


@inlined
def _pass_by(n, schedules, s, followed, i):
    """Set the next time of a schedule to its first after n."""
    period, last = schedules.times[s, PERIOD], schedules.times[s, LAST]
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
    j, k, listed, count = pair
    state = schedules.state
    for i in range(count):
        s, n = listed[i], tree.pairs[i, CROSSING]
        if n != 0:
            communicate_through(s, abs(n), scope.senders * state[s, ALIVE], schedules)
            schedules.eliminated_at[s, k if n > 0 else j] = abs(n)
            state[s, ALIVE] -= 1
            conclude(s, abs(n), schedules)
        if state[s, NEXT] <= b:
            communicate_through(s, b, scope.senders * state[s, ALIVE], schedules)
