"""The goal `threshold` in an octave of a client's spine: each arm by itself."""

from __future__ import annotations

import numpy as np

from fastfed.kernels.brackets.octaves import drop_out
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import smaller
from fastfed.kernels.memory import (
    A_SET,
    ABANDONED,
    ACCEPT,
    ACCEPTED,
    NEVER,
    REJECT,
    WINNER,
    Looked,
)
from fastfed.kernels.radii import reaches
from fastfed.kernels.rewards import hooks


@inner
def look_for_threshold(rule, rewards, radius, held, octave, lazy):
    """Look at each arm by itself. An arm that may leave on either side has to be located."""
    tree, value, state, m = held.tree, held.walks.value, held.schedules.state, octave.m
    level, drawn = octave.level, tree.drawn[0]
    n = np.int64(1) << level
    a, b = float(n >> 1), float(n)
    h_a, h_b = 0.5 * octave.g_a - a * rule.slack, 0.5 * octave.g_b - b * rule.slack
    found, issued = np.int64(0), np.int64(0)
    for p in range(octave.arms):
        k = np.int64(drawn[p])
        beyond_a = value[octave.left, k, m] - a * rule.tau[k]
        beyond_b = value[level, k, m] - b * rule.tau[k]
        above = _may_leave(rewards, octave, h_a - beyond_a, h_b - beyond_b, tree.variance[k])
        below = _may_leave(rewards, octave, h_a + beyond_a, h_b + beyond_b, tree.variance[k])
        issued += 2 - np.int64(above) - np.int64(below)
        if not (above or below):
            continue
        found += 1
        lazy.side[k, m] |= (ACCEPT if above else 0) | (REJECT if below else 0)
        lazy.lo[k, m] = smaller(lazy.lo[k, m], np.int64(level) - 1)
        if lazy.side[k, m] == ACCEPT | REJECT:
            lazy.hi[k, m] = NEVER
        elif reaches(radius, 2.0 * (abs(beyond_b) + b * rule.slack), n, level + 1):
            lazy.hi[k, m] = n
            state[0, ACCEPTED + k] = 1 if above else 0
    count = octave.arms
    if found > 0:
        count = drop_out(lazy, m, drawn, count)
        state[0, WINNER], state[0, ABANDONED] = A_SET, 0
    return Looked(count, found, issued, 0.0, 0.0)


@inlined
def _may_leave(rewards, octave, d_a, d_b, variance):
    """Tell whether a walk may come as far as h inside the octave or at its end."""
    if d_b <= 0.0:
        return True
    return octave.level > 0 and not hooks.certified_alone(
        rewards, d_a, d_b, octave.least, octave.slack, variance
    )
