"""Verdicts: what may happen to each pair of arms in an interval, whoever asks.

The unit of a pass is a *functional*: the lead of one arm over another against the boundary of the
two, or the sum of one arm against a line (the goal `threshold`; listed as a pair of the arm with
itself). In an interval with known ends each functional has a verdict, a number made of flags:

* 0: certified that nothing happens;
* FIRST_MAY, SECOND_MAY: the first (second) arm may reach g over the other; of a single arm: it may
  reach the upper (lower) line;
* FIRST_DOES, SECOND_DOES: certified to be g or more ahead in the whole interval;
* FIRST_STOPS, SECOND_STOPS (the goal `eps`): may reach the lower boundary h.

A verdict depends on no schedule and on no goal beyond the kind of functional. An interval inherits
the unresolved functionals of the one above it and asks for these alone: what was certified there
needs no second look. The list at ``depth + 1`` is that of the interval at ``depth``, for both its
halves. In place of a list there may be ALL: every pair of the arms that are drawn.

The boundary of a pair is g times the scale of the pair. Every scale is at least 1, and no scale
exceeds the sum of two others that link the same arms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.dispatch import generic
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.memory import (
    DRAWN,
    LEFT,
    LISTED,
    RIGHT,
    B,
    Floats,
    Int,
    Tree,
)
from fastfed.kernels.radii import Boundary, boundary_above
from fastfed.kernels.rewards import hooks

FIRST_MAY, SECOND_MAY, FIRST_DOES, SECOND_DOES, FIRST_STOPS, SECOND_STOPS, NEEDED = (
    1,
    2,
    4,
    8,
    16,
    32,
    64,
)
MAY = FIRST_MAY | SECOND_MAY
DOES = FIRST_DOES | SECOND_DOES
STOPS = FIRST_STOPS | SECOND_STOPS
_LOSES, _WINS = 1, 2  # of an arm, in `Tree.marks`: some arm may lead it; it may lead some arm
ALL = -1
"""In place of the number of listed functionals: every pair of the arms that are drawn."""


class Terms(NamedTuple):
    """The terms on which functionals are judged in an interval (a, b]."""

    rewards: Any
    least: Any  # for `rewards.certified`
    slack: Any
    radius: Any
    scales: Floats  # (K, K)
    a: Any
    b: Any
    g_a: Any  # lower bounds on g at the ends
    g_b: Any
    stop: Any  # of `eps`: h = g - n stop; below 0: there is no h
    tau: Floats  # (K,) of `threshold`: the line in the middle, over n,
    margin: Any  # and by how much, over n, the lines are nearer than g / 2; below 0: pairs
    errors: Any  # bounds on the errors of messages: `uplinks.message_errors`
    errors_alone: Any
    largest_error: Any


@generic
def verdict(
    radius: Any, terms: Terms, tree: Tree, total: Floats, depth: Int, pair: Any, asked: Int
) -> Int:
    """Return the verdict on a pair (i, j) of arms in the interval at ``depth``.

    Only the flags of ``asked`` matter: the others were certified before. ``total`` are the sums at
    all slots.
    """


@inlined
def _certified(terms, tree, d_a, d_b, i, j):
    variance = tree.variance[i] + tree.variance[j]
    return hooks.certified(terms.rewards, d_a, d_b, terms.least, terms.slack, variance)


@verdict.of(Boundary)
def _verdict(radius, terms, tree, total, depth, pair, asked):
    i, j = pair
    left, right = tree.frame[depth, LEFT], tree.frame[depth, RIGHT]
    lead_a, lead_b = total[left, i] - total[left, j], total[right, i] - total[right, j]
    scale = terms.scales[i, j]
    g_a, g_b = scale * terms.g_a - terms.errors[0], scale * terms.g_b - terms.errors[1]
    if g_a < 0.0:  # then g less the errors need not be concave: see `uplinks.lattice`
        return asked
    flags = np.int64(0)
    if asked & STOPS:
        h_a, h_b = g_a - terms.a * terms.stop, g_b - terms.b * terms.stop
        if asked & FIRST_STOPS and not _certified(terms, tree, h_a - lead_a, h_b - lead_b, i, j):
            flags |= FIRST_STOPS
        if asked & SECOND_STOPS and not _certified(terms, tree, h_a + lead_a, h_b + lead_b, i, j):
            flags |= SECOND_STOPS
        asked &= flags >> 4  # who stays below h stays below g
    leads, bound = (lead_a, lead_b), (terms.least, terms.slack)
    variance = tree.variance[i] + tree.variance[j]
    flags |= may_reach(terms.rewards, leads, (g_a, g_b), bound, variance, asked)
    if flags & MAY and terms.stop < 0.0 and is_ahead(leads, scale * terms.g_b):
        above = boundary_above(radius, tree.frame[depth, B])
        most = scale * above + terms.largest_error[0] + terms.largest_error[1] * above
        return or_surely(terms.rewards, leads, most, bound, variance, flags)
    return flags


@inlined
def may_reach(rewards, leads, bars, bound, variance, asked):
    """Return the flags of MAY: of the asked ones those not certified, from both ends."""
    (lead_a, lead_b), (g_a, g_b), (least, slack) = leads, bars, bound
    flags = np.int64(0)
    if asked & FIRST_MAY and not hooks.certified(
        rewards, g_a - lead_a, g_b - lead_b, least, slack, variance
    ):
        flags |= FIRST_MAY
    if asked & SECOND_MAY and not hooks.certified(
        rewards, g_a + lead_a, g_b + lead_b, least, slack, variance
    ):
        flags |= SECOND_MAY
    return flags


@inlined
def is_ahead(leads, g_b):
    """Tell whether the same arm leads by g(b) at both ends: it may do so in the whole interval."""
    return leads[0] * leads[1] > 0.0 and smaller(abs(leads[0]), abs(leads[1])) > g_b


@inlined
def or_surely(rewards, leads, most, bound, variance, flags):
    """Return the flag of DOES if a lead certainly stays above ``most``, or else ``flags``."""
    d_a, d_b = abs(leads[0]) - most, abs(leads[1]) - most
    if hooks.certified(rewards, d_a, d_b, bound[0], bound[1], variance):
        return np.int64(FIRST_DOES if leads[1] > 0.0 else SECOND_DOES)
    return flags


@inlined
def count_flags(flags):
    """Count the flags of MAY and STOPS."""
    return (flags & 1) + (flags >> 1 & 1) + (flags >> 4 & 1) + (flags >> 5 & 1)


@inlined
def list_functional(tree, depth, i, j, flags):
    """List a functional at ``depth``; ALL, if the list is full."""
    place = tree.frame[depth, LISTED]
    if place == tree.verdicts.shape[1]:
        tree.frame[depth, LISTED] = ALL
        return False
    listed = tree.verdicts[depth, place]
    listed[0], listed[1], listed[2] = i, j, flags
    tree.frame[depth, LISTED] = place + 1
    return True


@inner
def judge(terms, tree, total, depth):
    """List at depth + 1 the functionals that are unresolved in the interval at ``depth``.

    Return the number of certificates.
    """
    below = depth + 1
    tree.frame[below, LISTED] = 0
    if terms.margin >= 0.0:
        return _judge_arms(terms, tree, total, depth)
    if tree.frame[depth, LISTED] == ALL:
        return _judge_all(terms, tree, total, depth)
    issued = np.int64(0)
    for p in range(tree.frame[depth, LISTED]):
        listed = tree.verdicts[depth, p]
        i, j, asked = np.int64(listed[0]), np.int64(listed[1]), np.int64(listed[2]) & ~NEEDED
        flags = asked
        if asked & DOES == 0:
            flags = verdict(terms.radius, terms, tree, total, depth, (i, j), asked)
            issued += count_flags(asked) - count_flags(flags)
        if flags != 0 and not list_functional(tree, below, i, j, flags):
            break
    return issued


@inner
def _judge_all(terms, tree, total, depth):
    """Judge the pairs of all arms that are drawn: all at once, arm by arm, then pair by pair."""
    drawn, count = tree.drawn[depth], tree.frame[depth, DRAWN]
    left, right = total[tree.frame[depth, LEFT]], total[tree.frame[depth, RIGHT]]
    best_a = best_b = -np.inf
    worst_a = worst_b = np.inf
    widest = 0.0
    for p in range(count):
        k = drawn[p]
        best_a, worst_a = larger(best_a, left[k]), smaller(worst_a, left[k])
        best_b, worst_b = larger(best_b, right[k]), smaller(worst_b, right[k])
        widest = larger(widest, tree.variance[k])
    each = np.int64(MAY if terms.stop < 0.0 else MAY | STOPS)
    issued = count_flags(each) * (count * (count - 1) // 2)
    stop = larger(terms.stop, 0.0)
    g_a, g_b = terms.g_a - terms.errors[0], terms.g_b - terms.errors[1]
    h_a, h_b = g_a - terms.a * stop, g_b - terms.b * stop
    concave = g_a >= 0.0
    if concave and hooks.certified(
        terms.rewards,
        h_a - (best_a - worst_a),
        h_b - (best_b - worst_b),
        terms.least,
        terms.slack,
        2.0 * widest,
    ):
        return issued
    # the best and the worst at either end are at least as near to crossing as any one rival
    losers, winners, may_lose, may_win = tree.led, tree.leaders, np.int64(0), np.int64(0)
    for p in range(count):
        k = drawn[p]
        width = tree.variance[k] + widest
        x_a, x_b = left[k], right[k]
        tree.marks[k] = 0
        if not concave or not hooks.certified(
            terms.rewards, h_a + x_a - best_a, h_b + x_b - best_b, terms.least, terms.slack, width
        ):
            tree.marks[k] |= _LOSES
            losers[may_lose] = k
            may_lose += 1
        if not concave or not hooks.certified(
            terms.rewards, h_a - x_a + worst_a, h_b - x_b + worst_b, terms.least, terms.slack, width
        ):
            tree.marks[k] |= _WINS
            winners[may_win] = k
            may_win += 1
    for p in range(may_win):
        i = winners[p]
        for q in range(may_lose):
            j = losers[q]
            both = tree.marks[i] & tree.marks[j] == _LOSES | _WINS
            if i == j or (both and j < i):  # (j, i) is asked in both directions
                continue
            asked = each if both else each & (FIRST_MAY | FIRST_STOPS)
            flags = verdict(terms.radius, terms, tree, total, depth, (i, j), asked)
            if flags != 0:
                issued -= count_flags(flags)
                if not list_functional(tree, depth + 1, i, j, flags):
                    return issued
    return issued


@inner
def _judge_arms(terms, tree, total, depth):
    """Judge each arm that is drawn against its two lines."""
    left, right = total[tree.frame[depth, LEFT]], total[tree.frame[depth, RIGHT]]
    issued = np.int64(0)
    for p in range(tree.frame[depth, DRAWN]):
        k = np.int64(tree.drawn[depth, p])
        half = 0.5 * terms.scales[k, k]
        g_a, g_b = (
            half * terms.g_a - terms.errors_alone[0],
            half * terms.g_b - terms.errors_alone[1],
        )
        h_a, h_b = g_a - terms.a * terms.margin, g_b - terms.b * terms.margin
        beyond_a, beyond_b = left[k] - terms.a * terms.tau[k], right[k] - terms.b * terms.tau[k]
        flags = np.int64(0)
        if g_a < 0.0 or not _certified_alone(terms, tree, h_a - beyond_a, h_b - beyond_b, k):
            flags |= FIRST_MAY
        if g_a < 0.0 or not _certified_alone(terms, tree, h_a + beyond_a, h_b + beyond_b, k):
            flags |= SECOND_MAY
        issued += 2 - count_flags(flags)
        if flags != 0 and not list_functional(tree, depth + 1, k, k, flags):
            return issued
    return issued


@inlined
def _certified_alone(terms, tree, d_a, d_b, k):
    variance = tree.variance[k]
    return hooks.certified_alone(terms.rewards, d_a, d_b, terms.least, terms.slack, variance)
