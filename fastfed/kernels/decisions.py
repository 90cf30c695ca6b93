"""Decisions of the goals: functions of verdicts, or of sums and a bar, without rewards.

* `may_change` reads the verdicts of an interval for one schedule: nothing can be decided inside,
  all that is decided is certain and comes at the schedule's next time, or the interval must be
  opened.
* `mark` decides at a communication time: it marks the arms that sums and a bar decide.

`best`: an arm is rejected if any arm that is left reaches g over it (Algorithm 1, lines 11 and 21).

`top`: let U be the arms that are undecided, and let N' of them still be wanted. An arm is rejected
if N' arms of U or more lead it by g, and accepted if it leads |U| - N' of them so. Inside an
interval arm k may be rejected only if the arms that may reach g over it, with those that may be
accepted (which lowers N'), are N' or more; the mirror image for accepted arms. From no cascade the
two sets grow until nothing changes.

`eps`: arms fall as for `best`, and the pass stops as soon as one arm reaches h = g - n E over all
others. Inside an interval arm l cannot stop the pass if some arm that certainly stays is certified
less than h behind l.

`threshold`: each arm by itself, see `verdicts`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.goal import BEST, EPS, THRESHOLD, TOP
from fastfed.kernels.memory import (
    A_SET,
    ABANDONED,
    ACCEPT,
    ACCEPTED,
    ALIVE,
    DRAWN,
    LISTED,
    NEVER,
    NEXT,
    REJECT,
    SENDING,
    WINNER,
    Int,
)
from fastfed.kernels.schedules import conclude
from fastfed.kernels.verdicts import (
    ALL,
    DOES,
    FIRST_DOES,
    FIRST_MAY,
    FIRST_STOPS,
    MAY,
    NEEDED,
    SECOND_DOES,
    SECOND_MAY,
    SECOND_STOPS,
    STOPS,
)

NOTHING, CERTAIN, OPEN = range(3)
_LOSES, _MAY_LOSE = 1, 2  # in `Tree.marks`
_FIRST, _SECOND = FIRST_MAY | FIRST_DOES, SECOND_MAY | SECOND_DOES


class When(NamedTuple):
    """A communication time of one schedule, and the functionals that it may depend on."""

    s: Int
    n: Int
    depth: Int  # those listed there,
    whole: Any  # or all pairs of the arms drawn there


@inlined
def _alive(schedules, s, i):
    return schedules.eliminated_at[s, i] == NEVER


@inlined
def _wanted(rule, schedules, s):
    """Return N', the number of undecided arms that are still wanted."""
    accepted = np.int64(0)
    for k in range(schedules.eliminated_at.shape[1]):
        if schedules.eliminated_at[s, k] < NEVER:
            accepted += schedules.state[s, ACCEPTED + k]
    return rule.count - accepted


# ---- inside an interval ------------------------------------------------------------------------


@inner
def may_change(rule, schedules, tree, s, below):
    """Say what schedule s may decide in an interval whose verdicts are listed at ``below``.

    NOTHING, CERTAIN (the arms that leave at its next time are marked), or OPEN; then the
    functionals on which that depends are flagged as NEEDED.
    """
    if tree.frame[below, LISTED] == ALL:
        return OPEN
    if rule.kind == TOP:
        return _may_change_top(rule, schedules, tree, s, below)
    marks, count = tree.marks, tree.frame[below, LISTED]
    if count == 0:
        return NOTHING
    for p in range(count):
        marks[tree.verdicts[below, p, 0]] = marks[tree.verdicts[below, p, 1]] = 0
    seen = np.int64(0)
    for p in range(count):
        listed = tree.verdicts[below, p]
        i, j, flags = np.int64(listed[0]), np.int64(listed[1]), np.int64(listed[2])
        if _alive(schedules, s, i) and _alive(schedules, s, j):
            seen |= flags
            marks[j] |= (_LOSES if flags & FIRST_DOES else 0) | (
                _MAY_LOSE if flags & FIRST_MAY else 0
            )
            marks[i] |= (_LOSES if flags & SECOND_DOES else 0) | (
                _MAY_LOSE if flags & SECOND_MAY else 0
            )
    wanted = np.int64(MAY | DOES)
    if rule.kind == EPS and _may_stop(schedules, tree, s, below):
        wanted = np.int64(MAY | DOES | STOPS)
    elif seen & wanted == 0:
        return NOTHING
    if rule.kind == BEST and seen & DOES and _all_lose(schedules, tree, below):
        return CERTAIN
    for p in range(count):
        listed = tree.verdicts[below, p]
        i, j = np.int64(listed[0]), np.int64(listed[1])
        alive = _alive(schedules, s, i) and _alive(schedules, s, j)
        if alive and np.int64(listed[2]) & wanted:
            listed[2] |= np.uint32(NEEDED)
    return OPEN


@inner
def _all_lose(schedules, tree, below):
    """Tell whether all arms that may lose certainly do; then mark them as rejected."""
    marks, count = tree.marks, tree.frame[below, LISTED]
    for p in range(count):
        listed = tree.verdicts[below, p]
        if marks[listed[0]] == _MAY_LOSE or marks[listed[1]] == _MAY_LOSE:
            return False
    for k in range(schedules.eliminated_at.shape[1]):
        tree.led[k] = 0
    for p in range(count):
        listed = tree.verdicts[below, p]
        tree.led[listed[0]] = marks[listed[0]] & _LOSES
        tree.led[listed[1]] = marks[listed[1]] & _LOSES
    for k in range(schedules.eliminated_at.shape[1]):
        marks[k] = REJECT if tree.led[k] != 0 else 0
    return True


@inner
def _may_stop(schedules, tree, s, below):
    """Tell whether some arm may reach h over all others; ``marks`` has the arms that may lose.

    Arm l is held back by an arm that certainly stays and over which l does not reach h.
    """
    arms, reached, state = schedules.eliminated_at.shape[1], tree.led, schedules.state
    for k in range(arms):
        reached[k] = tree.leaders[k] = 0
    lost = np.int64(0)
    for p in range(tree.frame[below, LISTED]):
        listed = tree.verdicts[below, p]
        for side in range(2):
            k = np.int64(listed[side])
            if tree.marks[k] != 0 and _alive(schedules, s, k) and tree.leaders[k] == 0:
                tree.leaders[k] = 1  # it may lose
                lost += 1
    for p in range(tree.frame[below, LISTED]):
        listed = tree.verdicts[below, p]
        i, j, flags = np.int64(listed[0]), np.int64(listed[1]), np.int64(listed[2])
        if _alive(schedules, s, i) and _alive(schedules, s, j):
            if flags & FIRST_STOPS and tree.leaders[j] == 0:
                reached[i] += 1
            if flags & SECOND_STOPS and tree.leaders[i] == 0:
                reached[j] += 1
    for k in range(arms):
        if _alive(schedules, s, k):
            staying = state[s, ALIVE] - lost - (1 - tree.leaders[k])
            if reached[k] >= staying:
                return True
    return False


@inner
def _may_change_top(rule, schedules, tree, s, below):
    """Say what may be decided of the N best arms: the candidates are those of the module's text."""
    marks, leaders, led = tree.marks, tree.leaders, tree.led
    arms, count = schedules.eliminated_at.shape[1], tree.frame[below, LISTED]
    wanted = _wanted(rule, schedules, s)
    others = schedules.state[s, ALIVE] - wanted
    for k in range(arms):
        marks[k] = 0
    found, grown = np.int64(0), count > 0
    while grown:
        grown = False
        accepted = rejected = np.int64(0)
        for k in range(arms):
            accepted += np.int64(marks[k] & ACCEPT != 0)
            rejected += np.int64(marks[k] & REJECT != 0)
        for k in range(arms):
            leaders[k] = accepted - np.int64(marks[k] & ACCEPT != 0)
            led[k] = rejected - np.int64(marks[k] & REJECT != 0)
        for p in range(count):
            listed = tree.verdicts[below, p]
            i, j, flags = np.int64(listed[0]), np.int64(listed[1]), np.int64(listed[2])
            if _alive(schedules, s, i) and _alive(schedules, s, j):
                # a candidate is counted once, whether it leads or leaves
                if flags & _FIRST:
                    leaders[j] += np.int64(marks[i] & ACCEPT == 0)
                    led[i] += np.int64(marks[j] & REJECT == 0)
                if flags & _SECOND:
                    leaders[i] += np.int64(marks[j] & ACCEPT == 0)
                    led[j] += np.int64(marks[i] & REJECT == 0)
        for k in range(arms):
            if _alive(schedules, s, k):
                before = marks[k]
                if leaders[k] >= wanted:
                    marks[k] |= REJECT
                if led[k] >= others:
                    marks[k] |= ACCEPT
                if marks[k] != before:
                    grown = True
                    found += 1
    if found == 0:
        return NOTHING
    for p in range(count):
        listed = tree.verdicts[below, p]
        i, j = np.int64(listed[0]), np.int64(listed[1])
        if _alive(schedules, s, i) and _alive(schedules, s, j) and (marks[i] | marks[j]) != 0:
            listed[2] |= np.uint32(NEEDED)
    return OPEN


# ---- at a communication time -------------------------------------------------------------------


@inner
def is_near(rule, schedules, tree, sums, scales, g_below, at):
    """Tell whether anything may be decided, by a lower bound on g: the formula is dear."""
    s, depth, slack = at.s, at.depth, float(at.n) * rule.slack
    if rule.kind == THRESHOLD:
        for p in range(tree.frame[depth, DRAWN]):
            k = np.int64(tree.drawn[depth, p])
            if _alive(schedules, s, k):
                beyond = abs(sums[k] - float(at.n) * rule.tau[k])
                if 2.0 * (beyond + slack) >= g_below * scales[k, k]:
                    return True
        return False
    lift = slack if rule.kind == EPS else 0.0
    if at.whole or tree.frame[depth, LISTED] == ALL:
        best, worst = -np.inf, np.inf
        for p in range(tree.frame[depth, DRAWN]):
            k = np.int64(tree.drawn[depth, p])
            if _alive(schedules, s, k):
                best, worst = larger(best, sums[k]), smaller(worst, sums[k])
        return best - worst + lift >= g_below
    for p in range(tree.frame[depth, LISTED]):
        listed = tree.verdicts[depth, p]
        i, j = np.int64(listed[0]), np.int64(listed[1])
        if _alive(schedules, s, i) and _alive(schedules, s, j):
            if np.int64(listed[2]) & DOES:
                return True
            if abs(sums[i] - sums[j]) + lift >= g_below * scales[i, j]:
                return True
    return False


@inner
def mark(rule, schedules, tree, sums, scales, bar, at):
    """Mark the arms that are decided if g is ``bar``; return their number.

    All arms that are left count if the pass is over, though `top` marks only some of them. Nothing
    but ``tree.marks``, ``tree.leaders`` and ``tree.led`` is written.
    """
    s, marks = at.s, tree.marks
    arms = schedules.eliminated_at.shape[1]
    for k in range(arms):
        marks[k] = tree.leaders[k] = tree.led[k] = 0
    if rule.kind == THRESHOLD:
        return _mark_arms(rule, schedules, tree, sums, scales, bar, at)
    slack = float(at.n) * rule.slack
    if rule.kind == EPS:
        _count_leads(schedules, tree, sums, scales, bar, slack, at)
        winner = np.int64(-1)
        for k in range(arms):
            if _alive(schedules, s, k) and tree.led[k] == schedules.state[s, ALIVE] - 1:
                if winner < 0 or sums[k] > sums[winner]:
                    winner = k
        if winner >= 0:
            for k in range(arms):
                if _alive(schedules, s, k):
                    marks[k] = ACCEPT if k == winner else REJECT
            return schedules.state[s, ALIVE]
        for k in range(arms):
            tree.leaders[k] = tree.led[k] = 0
    _count_leads(schedules, tree, sums, scales, bar, 0.0, at)
    wanted, others = np.int64(1), NEVER
    if rule.kind == TOP:
        wanted = _wanted(rule, schedules, s)
        others = schedules.state[s, ALIVE] - wanted
    accepted = rejected = np.int64(0)
    for k in range(arms):
        if _alive(schedules, s, k):
            if tree.led[k] >= others:
                marks[k] = ACCEPT
                accepted += 1
            elif tree.leaders[k] >= wanted:
                marks[k] = REJECT
                rejected += 1
    if rule.kind == TOP and (accepted == wanted or rejected == others):
        return schedules.state[s, ALIVE]  # the pass is over
    return accepted + rejected


@inner
def _count_leads(schedules, tree, sums, scales, bar, slack, at):
    """Count for each arm the arms that lead it by its bar less ``slack``, and those it leads so."""
    s, depth, leaders, led = at.s, at.depth, tree.leaders, tree.led
    if at.whole or tree.frame[depth, LISTED] == ALL:
        for p in range(tree.frame[depth, DRAWN]):
            i = np.int64(tree.drawn[depth, p])
            if not _alive(schedules, s, i):
                continue
            for q in range(tree.frame[depth, DRAWN]):
                j = np.int64(tree.drawn[depth, q])
                if j != i and _alive(schedules, s, j):
                    if sums[i] - sums[j] + slack >= scales[i, j] * bar:
                        led[i] += 1
                        leaders[j] += 1
        return
    for p in range(tree.frame[depth, LISTED]):
        listed = tree.verdicts[depth, p]
        i, j, flags = np.int64(listed[0]), np.int64(listed[1]), np.int64(listed[2])
        if not (_alive(schedules, s, i) and _alive(schedules, s, j)):
            continue
        first, second = flags & FIRST_DOES != 0, flags & SECOND_DOES != 0
        if not (first or second):
            first = sums[i] - sums[j] + slack >= scales[i, j] * bar
            second = sums[j] - sums[i] + slack >= scales[i, j] * bar
        if first:
            led[i] += 1
            leaders[j] += 1
        if second:
            led[j] += 1
            leaders[i] += 1


@inner
def _mark_arms(rule, schedules, tree, sums, scales, bar, at):
    n, found = float(at.n), np.int64(0)
    for p in range(tree.frame[at.depth, DRAWN]):
        k = np.int64(tree.drawn[at.depth, p])
        if _alive(schedules, at.s, k):
            beyond = sums[k] - n * rule.tau[k]
            if 2.0 * (abs(beyond) + n * rule.slack) >= scales[k, k] * bar:
                tree.marks[k] = ACCEPT if beyond >= 0.0 else REJECT
                found += 1
    return found


# ---- their effect ------------------------------------------------------------------------------


@inner
def carry_out(rule, schedules, senders, marks, s, n):
    """Let the marked arms leave schedule s at step n, and end it if it is over."""
    state, eliminated_at = schedules.state, schedules.eliminated_at
    arms, winner = eliminated_at.shape[1], np.int64(-1)
    for k in range(arms):
        if marks[k] != 0 and eliminated_at[s, k] == NEVER:
            eliminated_at[s, k] = n
            state[s, ACCEPTED + k] = 1 if marks[k] == ACCEPT else 0
            state[s, ALIVE] -= 1
            state[s, SENDING] -= senders[k]
            if marks[k] == ACCEPT:
                winner = k
    if rule.kind == BEST:
        conclude(s, n, schedules)
    elif rule.kind == EPS:
        if winner >= 0:
            state[s, WINNER], state[s, NEXT] = winner, NEVER
    elif rule.kind == TOP:
        _conclude_top(rule, schedules, s, n)
    elif state[s, ALIVE] == 0:
        state[s, WINNER], state[s, NEXT] = A_SET, NEVER


@inlined
def _conclude_top(rule, schedules, s, n):
    """End the pass if none or all of the undecided arms are wanted: reject or accept them.

    If they all tie and only some of them are wanted, one of the N best was lost before: arms of
    the top and of the rest do not tie. No answer that could still be given would be right, and to
    separate arms that do not differ may take for ever, so the schedule is abandoned.
    """
    state, eliminated_at = schedules.state, schedules.eliminated_at
    wanted = _wanted(rule, schedules, s)
    if 0 < wanted < state[s, ALIVE]:
        last = np.int64(-1)
        for k in range(eliminated_at.shape[1]):
            if eliminated_at[s, k] == NEVER:
                if last >= 0 and rule.ties[k] != rule.ties[last]:
                    return
                last = k
        state[s, ABANDONED] = n
    else:
        for k in range(eliminated_at.shape[1]):
            if eliminated_at[s, k] == NEVER:
                eliminated_at[s, k] = n
                state[s, ACCEPTED + k] = 1 if wanted > 0 else 0
        state[s, ALIVE] = 0
        state[s, WINNER] = A_SET
    state[s, NEXT] = NEVER
