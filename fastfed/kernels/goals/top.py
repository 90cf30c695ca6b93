"""The goal `top`: the N best arms.

Let U be the arms that are undecided, and let N' of them still be wanted. At a communication time
an arm is rejected if at least N' arms of U lead it by g or more, and accepted if it leads at least
|U| - N' of them so; all at once, from the state before. The pass ends when no more are wanted, or
when all that are left are.

When nothing can happen in an interval. Each ordered pair (j, k) of U is *low* if j surely leads k
by less than g throughout, *high* if j surely leads k by g or more throughout, and otherwise in
doubt. "Low" is the verdict that every goal knows; for "high" the lead must stay above a line that
lies above g, and g never falls, so the line is the constant g(b) (`boundary_above`). The bounds of
the laws hold for both signs of a walk.

Arm k may be rejected inside the interval only if the arms that are not low against it, together
with those that may themselves be accepted there (which lowers N'), are N' or more; and it may be
accepted only if the arms against which it is not low, with those that may be rejected, are
|U| - N' or more. Starting from no cascade, the two sets grow until nothing changes (`_candidates`).

What has to be drawn are the candidates, and the arms of their pairs in doubt. An undecided arm that
is not drawn stays undecided in the whole interval, and is low or high against each candidate: how
many are high is noted with the list, for each candidate (``notes.above``, ``notes.below``), so
that the counts of arms that lead and are led are complete. Arms that are drawn for the sake of
others, and cannot be decided themselves, have NO_CANDIDATE there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.boundary import boundary_above, octave, reaches
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.doubt import all_in_doubt, list_doubts
from fastfed.kernels.goals import hooks
from fastfed.kernels.goals.sets import set_errs
from fastfed.kernels.laws import hooks as laws
from fastfed.kernels.memory import (
    A_SET,
    ALIVE,
    CALLED,
    DEPTHS,
    GAVE_UP,
    LEFT,
    NEVER,
    NEXT,
    RIGHT,
    SAFE_PAIRS,
    WINNER,
    B,
)
from fastfed.kernels.uplinks import hooks as uplinks

NO_CANDIDATE = -(2**30)  # no count of arms makes up for it


class TopNotes(NamedTuple):
    """What is known of the arms that are not drawn, for each list of arms in doubt."""

    above: Any  # (depths, S, K) how many surely lead the arm by g or more
    below: Any  # (depths, S, K) how many the arm surely leads so
    rejected: Any  # (K,) flags: might be rejected in the interval that is looked at
    accepted: Any  # (K,)
    leaders: Any  # (K,) how many arms of the list are not low against the arm
    led: Any  # (K,) against how many the arm is not low


class TopGoal(NamedTuple):
    """The N best arms of each client and of the server."""

    count: Any  # N
    local_top: Any  # (M, K)
    local_rest: Any  # (M, K)
    global_top: Any  # (K,)
    global_rest: Any  # (K,)
    local_ties: Any  # (M, K) arms of equal number tie at a client,
    global_ties: Any  # (K,) and at the server

    def notes(self, arms: int, schedules: int) -> TopNotes:
        return TopNotes(
            np.zeros((DEPTHS, schedules, arms), np.int32),
            np.zeros((DEPTHS, schedules, arms), np.int32),
            np.zeros(arms, np.bool_),
            np.zeros(arms, np.bool_),
            np.zeros(arms, np.int64),
            np.zeros(arms, np.int64),
        )


class TopRule(NamedTuple):
    """One client's, or the server's."""

    count: Any  # N
    ties: Any  # (K,)


@hooks.at_client.of(TopGoal)
def _at_client(goal, m):
    return TopRule(goal.count, goal.local_ties[m])


@hooks.at_server.of(TopGoal)
def _at_server(goal):
    return TopRule(goal.count, goal.global_ties)


@hooks.client_errs.of(TopGoal)
def _client_errs(goal, m, state):
    return set_errs(state[0], goal.local_top[m], goal.local_rest[m])


@hooks.server_errs.of(TopGoal)
def _server_errs(goal, s, state):
    return set_errs(state[s], goal.global_top, goal.global_rest)


@hooks.is_open.of(TopRule)
def _is_open(rule, arms):
    return True


@hooks.settle_few.of(TopRule)
def _settle_few(rule, law, memory, who, spaces, curve, here):
    return False


# ---- at a communication time -------------------------------------------------------------------


@inner
def _wanted(rule, talks, s):
    """N': how many of the undecided arms are still wanted."""
    accepted = np.int64(0)
    for k in range(talks.out_at.shape[1]):
        if talks.out_at[s, k] < NEVER:
            accepted += talks.state[s, CALLED + k]
    return rule.count - accepted


@hooks.decide.of(TopRule)
def _decide(rule, talks, tree, curve, total, here):
    """Only if some pair of the list may be g apart, or a count is full without one."""
    s, _, g_below, depth, i = here
    arms, out_at = tree.arms[depth, i], talks.out_at
    above, below = tree.notes.above[depth, i], tree.notes.below[depth, i]
    best = -np.inf
    worst = np.inf
    counted = False
    for j in range(arms[out_at.shape[1]]):
        k = arms[j]
        if out_at[s, k] == NEVER:
            best = max(best, total[k])
            worst = min(worst, total[k])
            counted |= (above[k] > 0) | (below[k] > 0)
    if counted or best - worst >= g_below:
        _compare(rule, talks, tree.notes, curve, total, here, arms)


@inner
def _compare(rule, talks, notes, curve, total, here, arms):
    """Accept and reject, all at once, from the state before."""
    s, n, g_below, depth, i = here
    out_at, state = talks.out_at, talks.state
    count, level = arms[out_at.shape[1]], octave(n)
    wanted = _wanted(rule, talks, s)
    others = state[s, ALIVE] - wanted
    found = False
    for j in range(count):
        k = arms[j]
        notes.accepted[k] = notes.rejected[k] = False
        if out_at[s, k] < NEVER:
            continue
        leaders, led = np.int64(notes.above[depth, i, k]), np.int64(notes.below[depth, i, k])
        for r in range(count):
            rival = arms[r]
            if rival == k or out_at[s, rival] < NEVER:
                continue
            lead = total[k] - total[rival]
            if abs(lead) >= g_below and reaches(curve, abs(lead), n, level):
                if lead > 0.0:
                    led += 1
                else:
                    leaders += 1
        notes.rejected[k] = leaders >= wanted
        notes.accepted[k] = led >= others
        found |= notes.rejected[k] | notes.accepted[k]
    if not found:
        return
    for j in range(count):
        k = arms[j]
        if notes.accepted[k] or notes.rejected[k]:
            out_at[s, k] = n
            state[s, CALLED + k] = 1 if notes.accepted[k] else 0
            state[s, ALIVE] -= 1
    _conclude(rule, talks, s, n)


@inlined
def _conclude(rule, talks, s, n):
    """The pass ends when none or all of the undecided arms are wanted: they are rejected, or
    accepted.

    If they all tie and only some of them are wanted, one of the N best was lost before: arms of
    the top and of the rest do not tie. No answer that could still be given would be right, and to
    tell arms apart that do not differ may take for ever, so the schedule is given up.
    """
    state, out_at = talks.state, talks.out_at
    wanted = _wanted(rule, talks, s)
    if 0 < wanted < state[s, ALIVE]:
        last = np.int64(-1)
        for k in range(out_at.shape[1]):
            if out_at[s, k] == NEVER:
                if last >= 0 and rule.ties[k] != rule.ties[last]:
                    return
                last = k
        state[s, GAVE_UP] = n
    else:
        for k in range(out_at.shape[1]):
            if out_at[s, k] == NEVER:
                out_at[s, k] = n
                state[s, CALLED + k] = 1 if wanted > 0 else 0
        state[s, ALIVE] = 0
        state[s, WINNER] = A_SET
    state[s, NEXT] = NEVER


# ---- inside an interval ------------------------------------------------------------------------


@inlined
def _low(test, tree, ends, j, k):
    """Whether j surely leads k by less than g."""
    g_a, g_b, total_a, total_b = ends
    return laws.safe(
        test.law,
        g_a + total_a[k] - total_a[j],
        g_b + total_b[k] - total_b[j],
        test.least,
        test.slack,
        tree.variance[j] + tree.variance[k],
    )


@inlined
def _high(test, tree, ends, most, j, k):
    """Whether j surely leads k by g or more; ``most`` is above g in the whole interval."""
    _, _, total_a, total_b = ends
    return laws.safe(
        test.law,
        total_a[j] - total_a[k] - most,
        total_b[j] - total_b[k] - most,
        test.least,
        test.slack,
        tree.variance[j] + tree.variance[k],
    )


@hooks.doubts.of(TopRule)
def _doubts(rule, test, talks, tree, total, here):
    s, i, depth, slot = here
    frame, arms, listed = tree.frame, tree.arms[depth, i], tree.arms[depth + 1, slot]
    ends = (
        tree.g[depth, 0] - test.strays[0],
        tree.g[depth, 1] - test.strays[1],
        total[frame[depth, LEFT]],
        total[frame[depth, RIGHT]],
    )
    if not test.skip:
        found = all_in_doubt(talks, tree, s, arms)
        if found > 0:
            list_doubts(tree.doubt, arms, listed)
            for j in range(listed[talks.out_at.shape[1]]):
                tree.notes.above[depth + 1, slot, listed[j]] = 0
                tree.notes.below[depth + 1, slot, listed[j]] = 0
        return found
    wanted = _wanted(rule, talks, s)
    if not (
        _count_pairs(test, talks, tree, ends, s, arms)
        or _is_counted(talks, tree.notes, (s, i, depth), arms, wanted)
    ):
        return np.int64(0)
    found = _candidates(test, talks, tree, ends, (s, i, depth), arms, wanted)
    if found > 0:
        most = boundary_above(test.curve, frame[depth, B])
        most += uplinks.strays_from_above(talks.uplink, most, test.strays[1])
        _draw_candidates(test, talks, tree, ends, most, s, arms)
        list_doubts(tree.doubt, arms, listed)
        _take_notes(test, talks, tree, ends, most, here, arms)
    return found


@inlined
def _count_pairs(test, talks, tree, ends, s, arms):
    """How many arms of the list are not low against each, and against how many each is not;
    whether there is any such pair."""
    g_a, g_b, total_a, total_b = ends
    out_at, notes, variance = talks.out_at, tree.notes, tree.variance
    count = arms[out_at.shape[1]]
    alive = 0
    best_a = best_b = -np.inf
    worst_a = worst_b = np.inf
    widest = 0.0
    for j in range(count):
        k = arms[j]
        notes.leaders[k] = notes.led[k] = 0
        tree.doubt[k] = notes.accepted[k] = notes.rejected[k] = False
        if out_at[s, k] == NEVER:
            alive += 1
            best_a, worst_a = max(best_a, total_a[k]), min(worst_a, total_a[k])
            best_b, worst_b = max(best_b, total_b[k]), min(worst_b, total_b[k])
            widest = max(widest, variance[k])
    if laws.safe(
        test.law,
        g_a - (best_a - worst_a),
        g_b - (best_b - worst_b),
        test.least,
        test.slack,
        2.0 * widest,
    ):
        talks.state[s, SAFE_PAIRS] += alive * (alive - 1)
        return False
    found = False
    for j in range(count):
        k = arms[j]
        if out_at[s, k] < NEVER:
            continue
        # the leaders at either end are at least as near to crossing as any one rival
        if laws.safe(
            test.law,
            g_a + total_a[k] - best_a,
            g_b + total_b[k] - best_b,
            test.least,
            test.slack,
            variance[k] + widest,
        ):
            talks.state[s, SAFE_PAIRS] += alive - 1
            continue
        for r in range(count):
            rival = arms[r]
            if rival == k or out_at[s, rival] < NEVER:
                continue
            if _low(test, tree, ends, rival, k):
                talks.state[s, SAFE_PAIRS] += 1
            else:
                notes.leaders[k] += 1
                notes.led[rival] += 1
                found = True
    return found


@inlined
def _is_counted(talks, notes, here, arms, wanted):
    """Whether an arm would be decided by those alone that are not drawn: possible once others were
    decided since they were counted."""
    s, i, depth = here
    others = talks.state[s, ALIVE] - wanted
    for j in range(arms[talks.out_at.shape[1]]):
        k = arms[j]
        if talks.out_at[s, k] == NEVER and (
            notes.above[depth, i, k] >= wanted or notes.below[depth, i, k] >= others
        ):
            return True
    return False


@inlined
def _candidates(test, talks, tree, ends, here, arms, wanted):
    """Flag the arms that might be rejected, or accepted, inside the interval; their number."""
    s, i, depth = here
    out_at, notes = talks.out_at, tree.notes
    count = arms[out_at.shape[1]]
    others = talks.state[s, ALIVE] - wanted
    found = np.int64(0)
    grown = True
    while grown:
        grown = False
        for j in range(count):
            k = arms[j]
            if out_at[s, k] < NEVER:
                continue
            leaders = np.int64(notes.above[depth, i, k]) + notes.leaders[k]
            led = np.int64(notes.below[depth, i, k]) + notes.led[k]
            if found > 0:  # with those that are low, and might leave U on their own
                for r in range(count):
                    rival = arms[r]
                    if rival != k and notes.accepted[rival] and _low(test, tree, ends, rival, k):
                        leaders += 1
                    if rival != k and notes.rejected[rival] and _low(test, tree, ends, k, rival):
                        led += 1
            if leaders >= wanted and not notes.rejected[k]:
                notes.rejected[k] = grown = True
                found += 1
            if led >= others and not notes.accepted[k]:
                notes.accepted[k] = grown = True
                found += 1
    return found


@inlined
def _draw_candidates(test, talks, tree, ends, most, s, arms):
    """Put the candidates in doubt, and the arms of their pairs in doubt."""
    notes, out_at, doubt = tree.notes, talks.out_at, tree.doubt
    count = arms[out_at.shape[1]]
    for j in range(count):
        k = arms[j]
        if not (notes.rejected[k] or notes.accepted[k]):
            continue
        doubt[k] = True
        for r in range(count):
            rival = arms[r]
            if rival == k or doubt[rival] or out_at[s, rival] < NEVER:
                continue
            if notes.rejected[k] and not _low(test, tree, ends, rival, k):
                doubt[rival] |= not _high(test, tree, ends, most, rival, k)
            if notes.accepted[k] and not _low(test, tree, ends, k, rival):
                doubt[rival] |= not _high(test, tree, ends, most, k, rival)


@inlined
def _take_notes(test, talks, tree, ends, most, here, arms):
    """For the list at depth + 1: how many arms that are not on it are high against each candidate,
    and against how many each candidate is."""
    s, i, depth, slot = here
    notes, out_at, doubt = tree.notes, talks.out_at, tree.doubt
    above, below = notes.above[depth + 1, slot], notes.below[depth + 1, slot]
    count = arms[out_at.shape[1]]
    for j in range(count):
        k = arms[j]
        if not doubt[k]:
            continue
        above[k] = notes.above[depth, i, k] if notes.rejected[k] else NO_CANDIDATE
        below[k] = notes.below[depth, i, k] if notes.accepted[k] else NO_CANDIDATE
        for r in range(count):
            rival = arms[r]
            if doubt[rival] or out_at[s, rival] < NEVER:
                continue
            if notes.rejected[k] and _high(test, tree, ends, most, rival, k):
                above[k] += 1
                talks.state[s, SAFE_PAIRS] += 1
            if notes.accepted[k] and _high(test, tree, ends, most, k, rival):
                below[k] += 1
                talks.state[s, SAFE_PAIRS] += 1
