"""Lazy clients: brackets of a client's eliminations, and passes restricted to some arms.

Arm k of client m is pulled max(T_local, T_global) times, so T_local has to be located only where it
may exceed the server's; besides that a row holds the last step at which any client declares, and
the wrong declarations. `bracket` looks at a client's spine alone. It finds for each arm an interval
(2^lo, hi] that holds T_local, and the client's answer. How values at spine nodes tell that is the
goal's affair (`goals.look_at_octave`). If they do not, the bracket fails, and the client's whole
pass is run, from the last spine node at which each arm was certainly in or out. Eliminations that
a row needs exactly are located by a pass that is restricted to their arms and to the arms on which
they may depend. `clients` decides which; the proof is in docs/explanation/skipping.md.
"""

from __future__ import annotations

import numpy as np

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.goals import hooks as goals
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
    QUIET,
    RIGHT,
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


@inner
def bracket(rule, rewards, memory, scope, radius, held, lazy):
    """Bracket the eliminations of one client; tell whether the spine suffices for that.

    If so, its answer is in ``schedules.state``. If not, certificates after the node of QUIET are
    not used, and not counted.
    """
    walks, tree, schedules = held.walks, held.tree, held.schedules
    m, arms = scope.lo, lazy.lo.shape[0]
    if not goals.is_open(rule, arms):
        return False
    frame, drawn, notes = tree.frame, tree.drawn[0], lazy.notes
    latest = np.int64(0)  # the step from which on nothing can be saved any more
    for k in range(arms):
        lazy.lo[k, m], lazy.hi[k, m], lazy.side[k, m], drawn[k] = NEVER, 0, 0, k
        lazy.victim[k] = False
        latest = larger(latest, lazy.due[k])
        for i in range(arms):
            lazy.by[m, k, i] = False
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
        looked = goals.look_at_octave(
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


# ---- for the goals -----------------------------------------------------------------------------


@inlined
def extremes(value, variance, drawn, count, m):
    """Return the largest and the smallest value of an arm in play, and the largest variance."""
    best, worst, widest = -np.inf, np.inf, 0.0
    for p in range(count):
        k = np.int64(drawn[p])
        best, worst = larger(best, value[k, m]), smaller(worst, value[k, m])
        widest = larger(widest, variance[k])
    return best, worst, widest


@inlined
def spread(held, test):
    """Return how far the arms in play are from being g apart at both ends of an `Octave`.

    Return also the extremes at its end: the largest and the smallest value, the largest variance.
    """
    tree = held.tree
    high, low, widest = extremes(
        held.walks.value[test.level], tree.variance, tree.drawn[0], test.arms, test.m
    )
    return test.g_a - (test.high - test.low), test.g_b - (high - low), high, low, widest


@inner
def drop_out(lazy, m, drawn, count):
    """Remove the arms that are certainly eliminated from the list; return its new length."""
    kept = np.int64(0)
    for p in range(count):
        if lazy.hi[drawn[p], m] == 0:
            drawn[kept] = drawn[p]
            kept += 1
    return kept


@inner
def all_tie(ties, drawn, count):
    """Tell whether several arms are in play, and all tie: the pass may have been abandoned."""
    for p in range(1, count):
        if ties[drawn[p]] != ties[drawn[0]]:
            return False
    return count > 1


@inlined
def certified(rewards, test, d_a, d_b, variance):
    """Certify that a pair does not cross inside the `Octave` or at its end."""
    if d_b <= 0.0:
        return False
    return test.level == 0 or hooks.certified(rewards, d_a, d_b, test.least, test.slack, variance)


@inner
def find_pairs(rule, rewards, radius, held, test, at_end, lazy):
    """Count the ordered pairs that may cross in an `Octave`, and have the goal note each of them.

    ``at_end`` are the largest values at its end: of a sum, and of a variance.
    """
    value, tree, m, count = held.walks.value, held.tree, test.m, test.arms
    variance, drawn = tree.variance, tree.drawn[0]
    level, left, best_a = test.level, test.left, test.high
    best_b, widest = at_end
    found = np.int64(0)
    for p in range(count):
        k = np.int64(drawn[p])
        lift_a, lift_b = test.g_a + value[left, k, m], test.g_b + value[level, k, m]
        if certified(rewards, test, lift_a - best_a, lift_b - best_b, variance[k] + widest):
            continue
        for q in range(count):
            i = np.int64(drawn[q])
            d_a, d_b = lift_a - value[left, i, m], lift_b - value[level, i, m]
            if i != k and not certified(rewards, test, d_a, d_b, variance[k] + variance[i]):
                found += 1
                lazy.by[m, k, i] = True
                goals.note_pair(rule, radius, value, (k, i, m), level, d_b <= 0.0, lazy)
    return found


@inner
def depend_on_undecided(lazy, m):
    """Note that an arm's step may depend on each arm that may be in when its bracket begins."""
    arms = lazy.lo.shape[0]
    for k in range(arms):
        begins = np.int64(1) << lazy.lo[k, m] if lazy.lo[k, m] >= 0 else np.int64(0)
        for i in range(arms):
            lazy.by[m, k, i] = i != k and lazy.hi[i, m] > begins


@inlined
def least_lead_of_sides(x, lazy, m, after):
    """Return the lead of the lowest arm accepted after a step over the highest one rejected."""
    lowest, highest = np.inf, -np.inf
    for k in range(lazy.hi.shape[0]):
        if lazy.hi[k, m] > after:
            if lazy.side[k, m] == ACCEPT:
                lowest = smaller(lowest, x[k])
            else:
                highest = larger(highest, x[k])
    return lowest - highest


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
def begin_at(first, radius, schedules, walks, tree, lazy, m):
    """Put a client's pass of the arms taken at 2^first (-1: step 0); return its first octave."""
    state, eliminated_at, frame = schedules.state, schedules.eliminated_at, tree.frame
    arms = eliminated_at.shape[1]
    alive = np.int64(0)
    for k in range(arms):
        eliminated_at[0, k] = NEVER if lazy.taken[k] else larger(lazy.hi[k, m], 1)
        state[0, ACCEPTED + k] = 1 if lazy.side[k, m] == ACCEPT else 0
        alive += np.int64(lazy.taken[k])
    begin(np.int64(0), schedules)  # not a literal, which would compile `begin` once more
    state[0, ALIVE], state[0, WINNER] = alive, NOBODY
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


@inner
def last_surplus(rule, radius, walks, tree, lazy, m):
    """Return the least lead that decides a client's last arms, in units of g.

    It is taken at the step by which they are certainly out: the smaller, the later they left.
    """
    n, x = lazy.high[m], tree.scratch
    level = octave(n) - 1
    for k in range(lazy.hi.shape[0]):
        x[k] = walks.value[level, k, m]
    return goals.least_lead(rule, x, lazy, m, n, n - 1) / boundary_at_node(radius, level)


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
    return reaches(radius, goals.least_lead(rule, x, lazy, m, n, n), n, level)
