"""Lazy clients: brackets of a client's eliminations, and passes restricted to some arms.

Arm k of client m is pulled max(T_local, T_global) times, so T_local has to be located only where it
may exceed the server's; besides that a row holds the last step at which any client declares, and
the wrong declarations. `bracket` looks at a client's spine alone. It finds for each arm an interval
(2^lo, hi] that holds T_local, if no arm that may eliminate another can itself be out by then.
Otherwise it fails, and the client's whole pass is run, from the last spine node before which
nothing was unresolved. Eliminations that a row needs exactly are located by a pass that is
restricted to their arms and to the arms that may eliminate them. `clients` decides which; the proof
is in docs/explanation/skipping.md. Only the goal `best` brackets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.memory import (
    ABANDONED,
    ALIVE,
    BITS,
    CERTIFICATES,
    DRAWN,
    DRAWS,
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
)
from fastfed.kernels.radii import boundary_at_node, octave, reaches
from fastfed.kernels.rewards import hooks
from fastfed.kernels.schedules import begin
from fastfed.kernels.unresolved_pairs import (
    FLAG,
    SIDE_BY_SIDE,
    Highest,
    flag_rivals,
    put_beside,
)


@inner
def bracket(rewards, memory, scope, radius, schedules, walks, tree, lazy):
    """Bracket the eliminations of one client; tell whether the spine suffices for that.

    If so, the winner is ``schedules.state[0, WINNER]``. If not, certificates after the node of
    QUIET are not used, and not counted.
    """
    m, arms = scope.lo, lazy.lo.shape[0]
    frame, drawn, notes, value = tree.frame, tree.drawn[0], lazy.notes, walks.value
    latest = np.int64(0)  # the step from which on nothing can be saved any more
    for k in range(arms):
        lazy.lo[k, m], lazy.hi[k, m], lazy.victim[k], drawn[k] = NEVER, 0, False, k
        latest = larger(latest, lazy.due[k])
        for i in range(arms):
            lazy.by[m, k, i] = False
    count, certificates = np.int64(arms), np.int64(0)
    left, g_a, best_a, worst_a = np.int64(ORIGIN), 0.0, 0.0, 0.0
    quiet = True
    for level in range(SPINE):
        n = np.int64(1) << level
        if n > schedules.times[0, LAST] or arms < 2 or (count == arms and n > latest):
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
        test = _Octave(level, left, g_a, g_b, least, slack)
        best_b, worst_b, widest = _extremes(value[level], tree.variance, drawn, count, m)
        certificates += count * (count - 1)
        d_a, d_b = g_a - (best_a - worst_a), g_b - (best_b - worst_b)
        if not _certified(rewards, test, d_a, d_b, 2.0 * widest):
            highest = Highest(best_a, best_b, widest)
            scratch = (tree.variance, tree.side)
            found = _unresolved(
                rewards, radius, m, value, drawn, (count, test, highest), scratch, lazy
            )
            if found > 0:
                quiet = False
                certificates -= found
                if _may_be_gone(lazy, m, drawn, count):
                    return False
                count = _drop_out(lazy, m, drawn, count)
                if count == 1:
                    notes[ISSUED] = certificates
                    return _declare(schedules, np.int64(drawn[0]))
                best_b, worst_b, _ = _extremes(value[level], tree.variance, drawn, count, m)
        if quiet:
            notes[QUIET], notes[ISSUED] = level, certificates
        left, g_a, best_a, worst_a = np.int64(level), g_b, best_b, worst_b
    return False


@inlined
def _extremes(value, variance, drawn, count, m):
    """Return the largest and the smallest value of an arm in play, and the largest variance."""
    best, worst, widest = -np.inf, np.inf, 0.0
    for p in range(count):
        k = np.int64(drawn[p])
        best, worst = larger(best, value[k, m]), smaller(worst, value[k, m])
        widest = larger(widest, variance[k])
    return best, worst, widest


@inner
def _drop_out(lazy, m, drawn, count):
    """Remove the arms that are certainly eliminated from the list; return its new length."""
    kept = np.int64(0)
    for p in range(count):
        if lazy.hi[drawn[p], m] == 0:
            drawn[kept] = drawn[p]
            kept += 1
    return kept


class _Octave(NamedTuple):
    """An interval of the spine, and the terms on which a pair is certified in it."""

    level: Any
    left: Any  # the slot of its left end
    g_a: Any
    g_b: Any
    least: Any
    slack: Any


@inlined
def _certified(rewards, test, d_a, d_b, variance):
    """Certify that a pair does not cross inside the octave or at its end."""
    if d_b <= 0.0:
        return False
    return test.level == 0 or hooks.certified(rewards, d_a, d_b, test.least, test.slack, variance)


@inner
def _unresolved(rewards, radius, m, value, drawn, terms, scratch, lazy):
    """Count the ordered pairs that may cross in an octave, and note victims and eliminators."""
    count, test, highest = terms
    variance, side = scratch
    level, left = test.level, test.left
    best_a, best_b, widest = highest
    many = count >= SIDE_BY_SIDE and level > 0
    if many:
        for p in range(count):
            k = np.int64(drawn[p])
            put_beside(side, p, k, value[left, k, m], value[level, k, m], variance[k])
    found = np.int64(0)
    for p in range(count):
        k = np.int64(drawn[p])
        lift_a, lift_b = test.g_a + value[left, k, m], test.g_b + value[level, k, m]
        if _certified(rewards, test, lift_a - best_a, lift_b - best_b, variance[k] + widest):
            continue
        if many:
            flag_rivals(rewards, (test.least, test.slack), (lift_a, lift_b), side, p, count)
        for q in range(count):
            i = np.int64(drawn[q])
            d_a, d_b = lift_a - value[left, i, m], lift_b - value[level, i, m]
            if many:
                may_cross = side[FLAG, q] != 0.0
            else:
                may_cross = i != k and not _certified(
                    rewards, test, d_a, d_b, variance[k] + variance[i]
                )
            if may_cross:
                found += 1
                _note_eliminator(radius, value, (k, i, m), level, d_b <= 0.0, lazy)
    return found


@inlined
def _note_eliminator(radius, value, cell, level, may_be_out, lazy):
    """Note that arm i may eliminate arm k of client m in an octave, and perhaps has at its end."""
    k, i, m = cell
    n = np.int64(1) << level
    lazy.by[m, k, i] = True
    if not lazy.victim[k]:
        lazy.victim[k] = True
        lazy.lo[k, m] = level - 1
    if lazy.hi[k, m] == 0 and may_be_out:
        lead = value[level, i, m] - value[level, k, m]
        if reaches(radius, lead, n, level + 1):
            lazy.hi[k, m] = n


@inner
def _may_be_gone(lazy, m, drawn, count):
    """Tell whether an arm that may eliminate another may itself have been eliminated before."""
    for p in range(count):
        if lazy.victim[drawn[p]]:
            for q in range(count):
                if lazy.by[m, drawn[q], drawn[p]]:
                    return True
    return False


@inner
def _declare(schedules, winner):
    """Note the winner; return False if it ties with another arm: the pass might be abandoned."""
    ties = schedules.rule.ties
    for k in range(ties.shape[0]):
        if k != winner and ties[k] == ties[winner]:
            return False
    schedules.state[0, WINNER], schedules.state[0, ABANDONED] = winner, 0
    return True


@inner
def take_eliminators(lazy, m):
    """Take the arms that may eliminate one of the arms taken, too; return the level to begin at."""
    arms = lazy.taken.shape[0]
    grown = True
    while grown:
        grown = False
        for k in range(arms):
            for i in range(arms):
                if lazy.taken[k] and lazy.by[m, k, i] and not lazy.taken[i]:
                    lazy.taken[i] = grown = True
    first = np.int64(SPINE)
    for k in range(arms):
        if lazy.taken[k]:
            first = smaller(first, lazy.lo[k, m])
    return first


@inner
def begin_at(first, radius, schedules, walks, tree, lazy, m):
    """Put a client's pass of the arms taken at 2^first (-1: step 0); return its first octave."""
    state, eliminated_at, frame = schedules.state, schedules.eliminated_at, tree.frame
    arms = eliminated_at.shape[1]
    alive = np.int64(0)
    for k in range(arms):
        eliminated_at[0, k] = NEVER if lazy.taken[k] else larger(lazy.hi[k, m], 1)
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
def last_surplus(radius, walks, lazy, m):
    """Return the lead of a client's winner over its last rival, in units of g.

    It is taken at the step by which the rival is certainly out: the smaller, the later it fell.
    """
    winner = lazy.winner[m]
    surplus = np.inf
    for k in range(lazy.hi.shape[0]):
        n = lazy.hi[k, m]
        if k != winner and n == lazy.high[m]:
            level = octave(n) - 1
            lead = walks.value[level, winner, m] - walks.value[level, k, m]
            surplus = smaller(surplus, lead / boundary_at_node(radius, level))
    return surplus


@inner
def most_issued(lazy, n):
    """Bound the certificates of a pass of the arms taken on intervals that hold step n."""
    taken = np.int64(0)
    for k in range(lazy.taken.shape[0]):
        taken += np.int64(lazy.taken[k])
    return octave(n) * taken * (taken - 1)


@inner
def all_out_by(rewards, memory, scope, radius, walks, lazy, n):
    """Tell whether a client's winner leads every rival that is left by g at n: it has declared.

    The walks are looked at inside an octave, at n alone: see `most_issued`.
    """
    m = scope.lo
    winner = lazy.winner[m]
    level = octave(n)  # 2^(level-1) <= n < 2^level
    if np.int64(1) << (level - 1) == n or walks.known[winner, m] <= level:
        return False
    x = hooks.value_inside(rewards, memory, scope, walks, winner, n, level)
    walks.work[1] += level - 1
    for k in range(lazy.hi.shape[0]):
        if k == winner or lazy.hi[k, m] <= n:
            continue
        if walks.known[k, m] <= level:
            return False
        y = hooks.value_inside(rewards, memory, scope, walks, np.int64(k), n, level)
        walks.work[1] += level - 1
        if not reaches(radius, x - y, n, level):
            return False
    return True
