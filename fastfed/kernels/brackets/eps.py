"""The goal `eps` in an octave of a client's spine."""

from __future__ import annotations

import numpy as np

from fastfed.kernels.brackets.octaves import (
    certified,
    depend_on_undecided,
    drop_out,
    extremes,
    find_pairs,
    may_be_gone,
    spread,
)
from fastfed.kernels.compiling import inner
from fastfed.kernels.extremes import smaller
from fastfed.kernels.memory import ABANDONED, ACCEPT, FAILED, NOBODY, WINNER, Looked
from fastfed.kernels.radii import reaches


@inner
def look_for_eps(rule, rewards, radius, held, octave, lazy):
    """Look for eliminations as `best` does, and for a stop; it fails if two arms may stop.

    What is said of eliminations holds as long as the pass has not stopped. A stop takes all arms.
    """
    tree, value, m, count = held.tree, held.walks.value, octave.m, octave.arms
    drawn, issued = tree.drawn[0], count * (count - 1)
    n = np.int64(1) << octave.level
    slack = (float(n >> 1) * rule.slack, float(n) * rule.slack)
    d_a, d_b, high, low, widest = spread(held, octave)
    if certified(rewards, octave, d_a - slack[0], d_b - slack[1], 2.0 * widest):
        return Looked(count, np.int64(0), issued, high, low)
    found = np.int64(0)
    if not certified(rewards, octave, d_a, d_b, 2.0 * widest):
        found = find_pairs(rule, rewards, radius, held, octave, (high, widest), lazy)
        issued -= found
        if found > 0 and may_be_gone(lazy, m, drawn, count):
            return Looked(np.int64(FAILED), found, issued, high, low)
    held_back = _held_back(rewards, value, tree, octave, slack, lazy)
    if held_back < 0:
        return Looked(np.int64(FAILED), found, issued, high, low)
    if held_back < count:  # the arm lazy.winner[m] may have stopped the pass
        found += 1
        for p in range(count):
            k = drawn[p]
            lazy.lo[k, m] = smaller(lazy.lo[k, m], np.int64(octave.level) - 1)
        if _has_stopped(radius, value[octave.level], drawn, octave, slack[1], lazy):
            _declare(held.schedules.state, drawn, count, lazy, m, n)
            return Looked(np.int64(0), found, issued + held_back, high, low)
    if found > 0:
        count = drop_out(lazy, m, drawn, count)
        high, low, _ = extremes(value[octave.level], tree.variance, drawn, count, m)
    return Looked(count, found, issued + held_back, high, low)


@inner
def _held_back(rewards, value, tree, octave, slack, lazy):
    """Count the arms in play that some rival, which is certainly in, keeps from leading all by h.

    Any other arm may stop the pass: it goes to ``lazy.winner``. Return -1 if two may.
    """
    m, level, left = octave.m, octave.level, octave.left
    drawn, variance = tree.drawn[0], tree.variance
    count = np.int64(0)
    for p in range(octave.arms):
        leader = np.int64(drawn[p])
        held_back = False
        for r in range(octave.arms):
            rival = np.int64(drawn[r])
            if rival != leader and not lazy.victim[rival] and not held_back:
                held_back = certified(
                    rewards,
                    octave,
                    octave.g_a - slack[0] + value[left, rival, m] - value[left, leader, m],
                    octave.g_b - slack[1] + value[level, rival, m] - value[level, leader, m],
                    variance[rival] + variance[leader],
                )
        if held_back:
            count += 1
        elif lazy.winner[m] != NOBODY and lazy.winner[m] != leader:
            return np.int64(-1)
        else:
            lazy.winner[m] = leader
    return count


@inner
def _has_stopped(radius, x, drawn, octave, slack, lazy):
    """Tell whether the pass has certainly stopped at the end of the octave: h is reached there."""
    m, n = octave.m, np.int64(1) << octave.level
    winner = lazy.winner[m]
    if lazy.victim[winner]:
        return False
    for p in range(octave.arms):
        k = drawn[p]
        if k != winner and lazy.hi[k, m] == 0:
            lead = x[winner, m] - x[k, m] + slack
            if not reaches(radius, lead, n, octave.level + 1):
                return False
    return True


@inner
def _declare(state, drawn, count, lazy, m, n):
    """Note that the pass has stopped by step n."""
    winner = lazy.winner[m]
    for p in range(count):
        k = drawn[p]
        if lazy.hi[k, m] == 0:
            lazy.hi[k, m] = n
    lazy.side[winner, m] = ACCEPT
    depend_on_undecided(lazy, m)
    state[0, WINNER], state[0, ABANDONED] = winner, 0
