"""The goal `best` in an octave of a client's spine."""

from __future__ import annotations

import numpy as np

from fastfed.kernels.brackets.octaves import (
    all_tie,
    certified,
    drop_out,
    extremes,
    find_pairs,
    may_be_gone,
    spread,
)
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger
from fastfed.kernels.memory import ABANDONED, ACCEPT, FAILED, NEVER, WINNER, Looked


@inlined
def look_for_best(rule, rewards, radius, held, octave, lazy):
    """Find the arms that may eliminate others. It fails if one of them may itself be out."""
    tree, value, m, count = held.tree, held.walks.value, octave.m, octave.arms
    drawn, nothing, issued = tree.drawn[0], np.int64(0), count * (count - 1)
    d_a, d_b, high, low, widest = spread(held, octave)
    if certified(rewards, octave, d_a, d_b, 2.0 * widest):
        return Looked(count, nothing, issued, high, low)
    found = find_pairs(rule, rewards, radius, held, octave, (high, widest), lazy)
    if found > 0:
        if may_be_gone(lazy, m, drawn, count):
            return Looked(np.int64(FAILED), found, nothing, high, low)
        count = drop_out(lazy, m, drawn, count)
        if count == 1:
            declared = _declare(rule, held.schedules.state, lazy, m, np.int64(drawn[0]))
            return Looked(nothing if declared else FAILED, found, issued - found, high, low)
        if all_tie(rule.ties, drawn, count):
            return Looked(np.int64(FAILED), found, nothing, high, low)
        high, low, _ = extremes(value[octave.level], tree.variance, drawn, count, m)
    return Looked(count, found, issued - found, high, low)


@inner
def _declare(rule, state, lazy, m, winner):
    """Note the winner; return False if it ties with another arm: the pass might be abandoned.

    The winner leaves with the last of the others.
    """
    for k in range(rule.ties.shape[0]):
        if k != winner and lazy.lo[k, m] < NEVER and rule.ties[k] == rule.ties[winner]:
            return False
    lazy.lo[winner, m] = -1
    for k in range(rule.ties.shape[0]):
        if k != winner and lazy.lo[k, m] < NEVER:  # other arms are none of this client
            lazy.lo[winner, m] = larger(lazy.lo[winner, m], lazy.lo[k, m])
            lazy.hi[winner, m] = larger(lazy.hi[winner, m], lazy.hi[k, m])
    lazy.side[winner, m] = ACCEPT
    state[0, WINNER], state[0, ABANDONED] = winner, 0
    return True
