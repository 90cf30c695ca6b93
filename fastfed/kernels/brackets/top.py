"""The goal `top` in an octave of a client's spine.

An arm that was accepted counts as if it led all others, and a rejected one as if all led it.
"""

from __future__ import annotations

import numpy as np

from fastfed.kernels.brackets.octaves import (
    all_tie,
    certified,
    depend_on_undecided,
    drop_out,
    extremes,
    find_pairs,
    spread,
)
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.memory import (
    A_SET,
    ABANDONED,
    ACCEPT,
    ACCEPTED,
    FAILED,
    NEVER,
    OWN,
    REJECT,
    WINNER,
    Looked,
)
from fastfed.kernels.radii import reaches


@inner
def look_for_top(rule, rewards, radius, held, octave, lazy):
    """Find the arms that may be rejected or accepted. It fails if an arm may be both."""
    tree, value, m, count = held.tree, held.walks.value, octave.m, octave.arms
    drawn, nothing, issued = tree.drawn[0], np.int64(0), count * (count - 1)
    d_a, d_b, high, low, widest = spread(held, octave)
    if certified(rewards, octave, d_a, d_b, 2.0 * widest):
        return Looked(count, nothing, issued, high, low)
    for p in range(count):
        for q in range(count):
            lazy.by[m, drawn[p], drawn[q]] = False
    found = find_pairs(rule, rewards, radius, held, octave, (high, widest), lazy)
    if found == 0:
        return Looked(count, nothing, issued, high, low)
    if not _may_be_decided(rule, drawn, octave, lazy):
        return Looked(np.int64(FAILED), found, nothing, high, low)
    _are_decided(rule, radius, value[octave.level], drawn, octave, lazy)
    count = drop_out(lazy, m, drawn, count)
    if all_tie(rule.ties, drawn, count) or (
        count == 0 and not _declare(rule, held.schedules.state, lazy, m)
    ):
        count = np.int64(FAILED)
    high, low, _ = extremes(value[octave.level], tree.variance, drawn, count, m)
    return Looked(count, found, issued - found, high, low)


@inlined
def _decided_before(lazy, m):
    """Count the arms that are certainly accepted, and those that are certainly rejected."""
    accepted, rejected = np.int64(0), np.int64(0)
    for k in range(lazy.hi.shape[0]):
        if lazy.hi[k, m] > 0:
            if lazy.side[k, m] == ACCEPT:
                accepted += 1
            else:
                rejected += 1
    return accepted, rejected


@inner
def _may_be_decided(rule, drawn, octave, lazy):
    """Note the arms that may be rejected or accepted in the octave; False: one may be both.

    An arm that was accepted counts as if it led all others, and a rejected one as if all led it.
    """
    m, arms, side, by = octave.m, lazy.notes[OWN], lazy.side, lazy.by
    accepted, rejected = _decided_before(lazy, m)
    grown = True
    while grown:
        grown = False
        for p in range(octave.arms):
            k = drawn[p]
            leaders, led = accepted, rejected
            for q in range(octave.arms):
                j = drawn[q]
                if j != k:
                    leaders += np.int64(by[m, k, j] or side[j, m] == ACCEPT)
                    led += np.int64(by[m, j, k] or side[j, m] == REJECT)
            before = side[k, m]
            if leaders >= rule.count:
                side[k, m] |= REJECT
            if led >= arms - rule.count:
                side[k, m] |= ACCEPT
            if side[k, m] == ACCEPT | REJECT:
                return False
            if side[k, m] != before:
                grown = True
                lazy.lo[k, m] = np.int64(octave.level) - 1
    return True


@inner
def _are_decided(rule, radius, x, drawn, octave, lazy):
    """Note the arms that are certainly decided at the end of the octave."""
    m, arms, side, by = octave.m, lazy.notes[OWN], lazy.side, lazy.by
    n, level = np.int64(1) << octave.level, octave.level + 1
    accepted, rejected = _decided_before(lazy, m)
    more, fewer = accepted, rejected
    for p in range(octave.arms):
        k = drawn[p]
        if side[k, m] == 0:
            continue
        # an arm counts if it leads (is led) at the end and has not been rejected (accepted)
        count = accepted if side[k, m] == REJECT else rejected
        for q in range(octave.arms):
            j = drawn[q]
            if side[k, m] == REJECT:
                if by[m, k, j] and side[j, m] != REJECT:
                    count += np.int64(reaches(radius, x[j, m] - x[k, m], n, level))
            elif by[m, j, k] and side[j, m] != ACCEPT:
                count += np.int64(reaches(radius, x[k, m] - x[j, m], n, level))
        if side[k, m] == REJECT and count >= rule.count:
            lazy.hi[k, m] = n
            fewer += 1
        elif side[k, m] == ACCEPT and count >= arms - rule.count:
            lazy.hi[k, m] = n
            more += 1
    if more == rule.count or fewer == arms - rule.count:  # the pass is over
        for p in range(octave.arms):
            lazy.hi[drawn[p], m] = n


@inner
def _declare(rule, state, lazy, m):
    """Note the answer; return False if an accepted arm ties with a rejected one.

    Then the pass might be abandoned.
    """
    arms = lazy.hi.shape[0]
    for k in range(arms):
        for j in range(arms):
            own = lazy.lo[k, m] < NEVER and lazy.lo[j, m] < NEVER
            if own and lazy.side[k, m] != lazy.side[j, m] and rule.ties[k] == rule.ties[j]:
                return False
        state[0, ACCEPTED + k] = 1 if lazy.side[k, m] == ACCEPT else 0
    depend_on_undecided(lazy, m)
    state[0, WINNER], state[0, ABANDONED] = A_SET, 0
    return True
