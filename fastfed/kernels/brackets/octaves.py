"""Parts of a look at an octave of a client's spine that several goals share."""

from __future__ import annotations

import numpy as np

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.goal import TOP
from fastfed.kernels.memory import NEVER
from fastfed.kernels.radii import reaches
from fastfed.kernels.rewards import hooks


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


@inlined
def note_eliminator(radius, value, cell, level, may_be_out, lazy):
    """Note that arm i may eliminate arm k of client m in an octave, and perhaps has at its end."""
    k, i, m = cell
    n = np.int64(1) << level
    if not lazy.victim[k]:
        lazy.victim[k] = True
        lazy.lo[k, m] = smaller(lazy.lo[k, m], np.int64(level) - 1)  # a stop may have come before
    if lazy.hi[k, m] == 0 and may_be_out:
        lead = value[level, i, m] - value[level, k, m]
        if reaches(radius, lead, n, level + 1):
            lazy.hi[k, m] = n


@inner
def may_be_gone(lazy, m, drawn, count):
    """Tell whether an arm that may eliminate another may itself have been eliminated before."""
    for p in range(count):
        if lazy.victim[drawn[p]]:
            for q in range(count):
                if lazy.by[m, drawn[q], drawn[p]]:
                    return True
    return False


@inner
def find_pairs(rule, rewards, radius, held, test, at_end, lazy):
    """Count the ordered pairs that may cross in an `Octave`, and note each of them.

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
                if rule.kind != TOP:
                    note_eliminator(radius, value, (k, i, m), level, d_b <= 0.0, lazy)
    return found


@inner
def depend_on_undecided(lazy, m):
    """Note that an arm's step may depend on each arm that may be in when its bracket begins."""
    arms = lazy.lo.shape[0]
    for k in range(arms):
        if lazy.lo[k, m] == NEVER:  # no arm of this client
            continue
        begins = np.int64(1) << lazy.lo[k, m] if lazy.lo[k, m] >= 0 else np.int64(0)
        for i in range(arms):
            lazy.by[m, k, i] = i != k and lazy.hi[i, m] > begins
