"""Lazy clients: brackets of a client's eliminations, and passes restricted to some arms.

Arm k of client m is pulled max(T_local, T_global) times, so T_local has to be located only where it
may exceed the server's; besides that a row holds the last step at which any client declares, and
the wrong declarations. `bracket` looks at a client's spine alone. It finds for each arm an interval
(2^lo, hi] that holds T_local, and the client's answer. How values at spine nodes tell that is the
goal's affair (`look_at_octave`). If they do not, the bracket fails, and the client's whole
pass is run, from the last spine node at which each arm was certainly in or out. Eliminations that
a row needs exactly are located by a pass that is restricted to their arms and to the arms on which
they may depend. `clients` decides which; the proof is in docs/explanation/skipping.md.
"""

from __future__ import annotations

import numpy as np

from fastfed.kernels.brackets.best import look_for_best
from fastfed.kernels.brackets.eps import look_for_eps
from fastfed.kernels.brackets.threshold import look_for_threshold
from fastfed.kernels.brackets.top import look_for_top
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.goal import BEST, EPS, THRESHOLD, TOP
from fastfed.kernels.memory import (
    ABANDONED,
    ACCEPT,
    ACCEPTED,
    ALIVE,
    BITS,
    CERTIFICATES,
    DRAWN,
    DRAWS,
    FAILED,
    ISSUED,
    LAST,
    LEFT,
    NEVER,
    NEXT,
    NOBODY,
    ORIGIN,
    OWN,
    QUIET,
    RIGHT,
    SENDING,
    SENT,
    SPINE,
    SPINE_USED,
    TIMES_USED,
    WINNER,
    A,
    B,
    Octave,
)
from fastfed.kernels.radii import boundary_at_node, octave, reaches
from fastfed.kernels.rewards import hooks
from fastfed.kernels.schedules import begin


@inlined
def look_at_octave(rule, rewards, radius, held, octave, lazy):
    """Bracket the arms of a client that may leave in an octave, from values at its ends alone.

    For each arm that may leave, ``lazy.lo`` is set, and ``lazy.hi`` and ``lazy.side`` if it is
    certainly out at the end. Arms that are out are removed from ``tree.drawn[0]``. When all are
    out, ``lazy.by`` and the answer in ``schedules.state`` are set. FAILED: the goal cannot tell.
    """
    if rule.kind == BEST:
        return look_for_best(rule, rewards, radius, held, octave, lazy)
    if rule.kind == TOP:
        return look_for_top(rule, rewards, radius, held, octave, lazy)
    if rule.kind == EPS:
        return look_for_eps(rule, rewards, radius, held, octave, lazy)
    return look_for_threshold(rule, rewards, radius, held, octave, lazy)


@inner
def bracket(rule, rewards, memory, scope, radius, held, own, lazy):
    """Bracket the eliminations of one client; tell whether the spine suffices for that.

    ``own`` flags the arms of the client. If the spine suffices, its answer is in
    ``schedules.state``. If not, certificates after the node of QUIET are not used, and not counted.
    """
    walks, tree, schedules = held.walks, held.tree, held.schedules
    m, all_arms = scope.lo, lazy.lo.shape[0]
    frame, drawn, notes = tree.frame, tree.drawn[0], lazy.notes
    latest = np.int64(0)  # the step from which on nothing can be saved any more
    arms = np.int64(0)
    for k in range(all_arms):
        lazy.lo[k, m], lazy.hi[k, m], lazy.side[k, m] = NEVER, 0, 0
        lazy.victim[k] = False
        schedules.state[0, ACCEPTED + k] = 0
        if own[k]:
            drawn[arms] = k
            arms += 1
            latest = larger(latest, lazy.due[k])
        for i in range(all_arms):
            lazy.by[m, k, i] = False
    notes[OWN] = arms
    if arms <= rule.count:
        return False
    lazy.winner[m] = NOBODY
    count, certificates = np.int64(arms), np.int64(0)
    left, g_a, high, low = np.int64(ORIGIN), 0.0, 0.0, 0.0
    clean = True
    for level in range(SPINE):
        n = np.int64(1) << level
        if n > schedules.times[0, LAST] or (count == arms and n > latest):
            return False
        frame[0, DRAWN] = count
        frame[0, A], frame[0, B], frame[0, LEFT], frame[0, RIGHT] = n >> 1, n, left, level
        # most nodes are known from the server's pass
        if not hooks.spine_is_known(rewards, scope, walks, tree, level):
            hooks.extend_spine(rewards, memory, scope, walks, tree, level)
        walks.work[0] += 1
        notes[SPINE_USED] += count
        g_b = boundary_at_node(radius, level)
        least = slack = 0.0
        if level > 0:
            least, slack = hooks.certificate_bound(rewards, memory, scope, walks, tree, np.int64(0))
        looked = look_at_octave(
            rule,
            rewards,
            radius,
            held,
            Octave(m, level, left, g_a, g_b, least, slack, count, high, low),
            lazy,
        )
        count = looked.arms
        if count == FAILED:
            return False
        certificates += looked.certificates
        if count == 0:
            notes[ISSUED] = certificates
            return True
        if looked.found > 0:
            clean = _is_clean(lazy, m)
        if clean:
            notes[QUIET], notes[ISSUED] = level, certificates
        left, g_a, high, low = np.int64(level), g_b, looked.high, looked.low
    return False


@inner
def _is_clean(lazy, m):
    """Tell whether each arm of a client is certainly in, or out at a step that no row needs."""
    for k in range(lazy.lo.shape[0]):
        n = lazy.hi[k, m]
        if n > lazy.due[k] if n > 0 else lazy.lo[k, m] < NEVER:
            return False
    return True


# ---- restricted passes -------------------------------------------------------------------------


@inner
def take_eliminators(lazy, m):
    """Take the arms on which one of the arms taken may depend.

    Return the number of arms taken, and the level at which their pass begins.
    """
    arms = lazy.taken.shape[0]
    grown = True
    while grown:
        grown = False
        for k in range(arms):
            for i in range(arms):
                if lazy.taken[k] and lazy.by[m, k, i] and not lazy.taken[i]:
                    lazy.taken[i] = grown = True
    taken, first = np.int64(0), np.int64(SPINE)
    for k in range(arms):
        if lazy.taken[k]:
            taken += 1
            first = smaller(first, lazy.lo[k, m])
    return taken, first


@inner
def begin_at(first, radius, schedules, walks, tree, own, lazy, m):
    """Put a client's pass of the arms taken at 2^first (-1: step 0); return its first octave."""
    state, eliminated_at, frame = schedules.state, schedules.eliminated_at, tree.frame
    arms = eliminated_at.shape[1]
    alive = np.int64(0)
    for k in range(arms):
        eliminated_at[0, k] = NEVER if lazy.taken[k] else larger(lazy.hi[k, m], np.int64(own[k]))
        state[0, ACCEPTED + k] = 1 if lazy.side[k, m] == ACCEPT else 0
        alive += np.int64(lazy.taken[k])
    begin(np.int64(0), schedules)  # not a literal, which would compile `begin` once more
    state[0, ALIVE] = state[0, SENDING] = alive
    state[0, WINNER] = NOBODY
    state[0, SENT] = state[0, TIMES_USED] = state[0, CERTIFICATES] = state[0, ABANDONED] = 0
    state[0, BITS] = state[0, DRAWS] = 0
    if first < 0:
        frame[0, B], frame[0, RIGHT] = 0, ORIGIN
        return np.int64(0)
    n = np.int64(1) << first
    frame[0, B], frame[0, RIGHT] = n, first
    tree.g[0, 1] = boundary_at_node(radius, first)
    state[0, NEXT] = n + 1 if n < schedules.times[0, LAST] else NEVER
    for k in range(arms):
        walks.total[first, k] = walks.value[first, k, m]
    return first + 1


@inlined
def _least_lead(rule, x, lazy, m, n, after):
    """Return a lead at step n: if it is g(n) or more, client m has declared by then.

    ``x`` are the values at n of the arms that may be in after the step ``after``. The client was
    bracketed, so the side of each arm is known.
    """
    slack = float(n) * rule.slack
    if rule.kind == THRESHOLD:
        least = np.inf
        for k in range(lazy.hi.shape[0]):
            if lazy.hi[k, m] > after:
                least = smaller(least, abs(x[k] - float(n) * rule.tau[k]))
        return 2.0 * (least + slack)
    lowest, highest = np.inf, -np.inf  # of the arms that are accepted, and rejected
    for k in range(lazy.hi.shape[0]):
        if lazy.hi[k, m] > after:
            if lazy.side[k, m] == ACCEPT:
                lowest = smaller(lowest, x[k])
            else:
                highest = larger(highest, x[k])
    return lowest - highest + slack


@inner
def last_surplus(rule, radius, walks, tree, lazy, m):
    """Return the least lead that decides a client's last arms, in units of g.

    It is taken at the step by which they are certainly out: the smaller, the later they left.
    """
    n, x = lazy.high[m], tree.scratch
    level = octave(n) - 1
    for k in range(lazy.hi.shape[0]):
        x[k] = walks.value[level, k, m]
    return _least_lead(rule, x, lazy, m, n, n - 1) / boundary_at_node(radius, level)


@inner
def all_out_by(rule, rewards, memory, scope, radius, held, lazy, n):
    """Tell whether a client has declared by step n, from its values there alone.

    The walks are looked at inside an octave, at n alone: see `clients.find_last`.
    """
    m, walks, x = scope.lo, held.walks, held.tree.scratch
    level = octave(n)  # 2^(level-1) <= n < 2^level
    if np.int64(1) << (level - 1) == n:
        return False
    for k in range(lazy.hi.shape[0]):
        if lazy.hi[k, m] <= n:
            continue
        if walks.known[k, m] <= level:
            return False
        x[k] = hooks.value_inside(rewards, memory, scope, walks, np.int64(k), n, level)
        walks.work[1] += level - 1
        if np.isnan(x[k]):
            return False
    return reaches(radius, _least_lead(rule, x, lazy, m, n, n), n, level)
