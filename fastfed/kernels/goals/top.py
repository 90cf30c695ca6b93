"""The goal `top`: the N best arms.

Let U be the arms that are undecided, and let N' of them still be wanted. At a communication time
an arm is rejected if at least N' arms of U lead it by g or more, and accepted if it leads at least
|U| - N' of them so; all at once, from the state before. The pass ends when no more are wanted, or
when all that are left are.

When nothing can happen in an interval. Each ordered pair (j, k) of U is *low* if j is certified to
lead k by less than g throughout, *high* if j is certified to lead k by g or more throughout, and
otherwise unresolved. "Low" is the certificate of every goal; for "high" the lead must stay above a
line that lies above g, and g never falls, so the line is the constant g(b) (`boundary_above`). The
bounds of the rewards hold for both signs of a walk.

Arm k may be rejected inside the interval only if the arms that are not low against it, together
with those that may themselves be accepted there (which lowers N'), are N' or more; and it may be
accepted only if the arms against which it is not low, with those that may be rejected, are
|U| - N' or more. Starting from no cascade, the two sets grow until nothing changes (`_candidates`).

The candidates have to be drawn, and the arms of their unresolved pairs. An undecided arm that is
not drawn stays undecided in the whole interval, and is low or high against each candidate: the
number of high ones is noted with the list, for each candidate (``notes.above``, ``notes.below``),
so that the counts of arms that lead and are led are complete. Arms that are drawn for the sake of
others, and cannot be decided themselves, have NO_CANDIDATE there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.client_brackets import (
    all_tie,
    certified,
    depend_on_undecided,
    drop_out,
    extremes,
    find_pairs,
    least_lead_of_sides,
    spread,
)
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.decisions import TOP, Rule
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.goals import hooks
from fastfed.kernels.goals.sets import set_errs
from fastfed.kernels.memory import (
    A_SET,
    ABANDONED,
    ACCEPT,
    ACCEPTED,
    ALIVE,
    CERTIFICATES,
    DEPTHS,
    FAILED,
    NEVER,
    NEXT,
    REJECT,
    WINNER,
    B,
    Looked,
)
from fastfed.kernels.radii import boundary_above, octave, reaches
from fastfed.kernels.rewards import hooks as reward_hooks
from fastfed.kernels.unresolved_pairs import (
    all_unresolved,
    certainly_leads,
    ends_of,
    list_unresolved,
)

NO_CANDIDATE = -(2**30)  # no count of arms makes up for it


class TopNotes(NamedTuple):
    """The known relations to arms that are not drawn, for each list of unresolved arms."""

    above: Any  # (depths, S, K) number of those that certainly lead the arm by g or more
    below: Any  # (depths, S, K) number of those that the arm certainly leads so
    rejected: Any  # (K,) flags: might be rejected in the interval that is looked at
    accepted: Any  # (K,)
    leaders: Any  # (K,) how many arms of the list are not low against the arm
    led: Any  # (K,) against how many the arm is not low


class TopGoal(NamedTuple):
    """The N best arms of each client and of the server."""

    count: Any  # N
    local_top: Any  # (M, K)
    local_rest: Any  # (M, K)
    server_top: Any  # (Q, K)
    server_rest: Any  # (Q, K)
    local_ties: Any  # (M, K) arms of equal number tie at a client,
    server_ties: Any  # (Q, K) and in a question of the server

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
    """The goal as one client, or the server, follows it."""

    count: Any  # N
    ties: Any  # (K,)
    notes: Any  # `TopNotes`


@hooks.at_client.of(TopGoal)
def _at_client(goal, notes, m):
    return TopRule(goal.count, goal.local_ties[m], notes)


@hooks.at_server.of(TopGoal)
def _at_server(goal, notes, q):
    return TopRule(goal.count, goal.server_ties[q], notes)


@hooks.server_rule.of(TopGoal)
def _server_rule(goal, questions, q):
    return Rule(TOP, np.int64(goal.count), goal.server_ties[q], questions.zeros, 0.0)


@hooks.client_rule.of(TopGoal)
def _client_rule(goal, questions, m):
    return Rule(TOP, np.int64(goal.count), goal.local_ties[m], questions.zeros, 0.0)


@hooks.client_errs.of(TopGoal)
def _client_errs(goal, m, state):
    return set_errs(state[0], goal.local_top[m], goal.local_rest[m])


@hooks.server_errs.of(TopGoal)
def _server_errs(goal, q, s, state):
    return set_errs(state[s], goal.server_top[q], goal.server_rest[q])


@hooks.most_certificates.of(TopGoal)
def _most_certificates(goal, arms):
    return 3 * arms * (arms - 1)  # pairs that are low, and high ones of both kinds of candidates


# ---- at a communication time -------------------------------------------------------------------


@inner
def _wanted(rule, schedules, s):
    """Return N', the number of undecided arms that are still wanted."""
    accepted = np.int64(0)
    for k in range(schedules.eliminated_at.shape[1]):
        if schedules.eliminated_at[s, k] < NEVER:
            accepted += schedules.state[s, ACCEPTED + k]
    return rule.count - accepted


@hooks.decide.of(TopRule)
def _decide(rule, schedules, tree, radius, total, at_n):
    """Compare pairs, if some pair of the list may be g apart, or a count is full without one."""
    s, depth, place = at_n.s, at_n.depth, at_n.place
    arms, eliminated_at = tree.arms[depth, place], schedules.eliminated_at
    above, below = rule.notes.above[depth, place], rule.notes.below[depth, place]
    best = -np.inf
    worst = np.inf
    counted = False
    for j in range(arms[eliminated_at.shape[1]]):
        k = arms[j]
        if eliminated_at[s, k] == NEVER:
            best = larger(best, total[k])
            worst = smaller(worst, total[k])
            counted |= (above[k] > 0) | (below[k] > 0)
    if counted or best - worst >= at_n.g_below:
        _compare(rule, schedules, radius, total, at_n, arms)


@inner
def _compare(rule, schedules, radius, total, at_n, arms):
    """Accept and reject, all at once, from the state before."""
    s, n, g_below, notes = at_n.s, at_n.n, at_n.g_below, rule.notes
    above, below = notes.above[at_n.depth, at_n.place], notes.below[at_n.depth, at_n.place]
    eliminated_at, state = schedules.eliminated_at, schedules.state
    count, level = arms[eliminated_at.shape[1]], octave(n)
    wanted = _wanted(rule, schedules, s)
    others = state[s, ALIVE] - wanted
    found = False
    for j in range(count):
        k = arms[j]
        notes.accepted[k] = notes.rejected[k] = False
        if eliminated_at[s, k] < NEVER:
            continue
        leaders, led = np.int64(above[k]), np.int64(below[k])
        for r in range(count):
            rival = arms[r]
            if rival == k or eliminated_at[s, rival] < NEVER:
                continue
            lead = total[k] - total[rival]
            if abs(lead) >= g_below and reaches(radius, abs(lead), n, level):
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
            eliminated_at[s, k] = n
            state[s, ACCEPTED + k] = 1 if notes.accepted[k] else 0
            state[s, ALIVE] -= 1
    _conclude(rule, schedules, s, n)


@hooks.decided_count.of(TopRule)
def _decided_count(rule, schedules, tree, total, at_n, bar):
    return _count(_wanted(rule, schedules, at_n.s), schedules, tree, total, at_n, bar)


@inner
def _count(wanted, schedules, tree, total, at_n, bar):
    """Count the arms that would be accepted or rejected; all, if that ends the pass."""
    s, alive = at_n.s, schedules.state[at_n.s, ALIVE]
    arms, eliminated_at = tree.arms[at_n.depth, at_n.place], schedules.eliminated_at
    listed = arms[eliminated_at.shape[1]]
    accepted, rejected = np.int64(0), np.int64(0)
    for j in range(listed):
        k = arms[j]
        if eliminated_at[s, k] < NEVER:
            continue
        leaders, led = np.int64(0), np.int64(0)
        for r in range(listed):
            if eliminated_at[s, arms[r]] == NEVER:
                lead = total[k] - total[arms[r]]
                led += np.int64(lead >= bar)
                leaders += np.int64(-lead >= bar)
        accepted += np.int64(led >= alive - wanted)
        rejected += np.int64(leaders >= wanted)
    ends = accepted == wanted or rejected == alive - wanted
    return alive if ends else accepted + rejected


@inlined
def _conclude(rule, schedules, s, n):
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


# ---- inside an interval ------------------------------------------------------------------------


@inlined
def _low(test, tree, ends, j, k):
    """Tell whether j is certified to lead k by less than g."""
    g_a, g_b, total_a, total_b = ends
    return reward_hooks.certified(
        test.rewards,
        g_a + total_a[k] - total_a[j],
        g_b + total_b[k] - total_b[j],
        test.least,
        test.slack,
        tree.variance[j] + tree.variance[k],
    )


@hooks.unresolved_count.of(TopRule)
def _unresolved_count(rule, test, schedules, tree, total, look):
    s, depth, below = look.s, look.depth, look.below
    frame, arms, listed = tree.frame, tree.arms[depth, look.place], tree.arms[depth + 1, below]
    ends = ends_of(test, tree, total, depth)
    if not test.skip:
        found = all_unresolved(schedules, tree, s, arms)
        if found > 0:
            list_unresolved(tree.unresolved, arms, listed)
            for j in range(listed[schedules.eliminated_at.shape[1]]):
                rule.notes.above[depth + 1, below, listed[j]] = 0
                rule.notes.below[depth + 1, below, listed[j]] = 0
        return found
    wanted = _wanted(rule, schedules, s)
    if not (
        _count_pairs(test, schedules, tree, ends, s, arms)
        or _is_counted(schedules, rule.notes, look, arms, wanted)
    ):
        return np.int64(0)
    found = _candidates(test, schedules, tree, ends, look, arms, wanted)
    if found > 0:
        most = boundary_above(test.radius, frame[depth, B])
        most += test.largest_error[0] + test.largest_error[1] * most
        _draw_candidates(test, schedules, tree, ends, most, s, arms)
        list_unresolved(tree.unresolved, arms, listed)
        _take_notes(test, schedules, tree, ends, most, look, arms)
    return found


@inlined
def _count_pairs(test, schedules, tree, ends, s, arms):
    """Count the arms that are not low against each arm, and those against which it is not low.

    Tell whether there is any such pair.
    """
    g_a, g_b, total_a, total_b = ends
    eliminated_at, notes, variance = schedules.eliminated_at, schedules.rule.notes, tree.variance
    count = arms[eliminated_at.shape[1]]
    alive = 0
    best_a = best_b = -np.inf
    worst_a = worst_b = np.inf
    widest = 0.0
    for j in range(count):
        k = arms[j]
        notes.leaders[k] = notes.led[k] = 0
        tree.unresolved[k] = notes.accepted[k] = notes.rejected[k] = False
        if eliminated_at[s, k] == NEVER:
            alive += 1
            best_a, worst_a = larger(best_a, total_a[k]), smaller(worst_a, total_a[k])
            best_b, worst_b = larger(best_b, total_b[k]), smaller(worst_b, total_b[k])
            widest = larger(widest, variance[k])
    if reward_hooks.certified(
        test.rewards,
        g_a - (best_a - worst_a),
        g_b - (best_b - worst_b),
        test.least,
        test.slack,
        2.0 * widest,
    ):
        schedules.state[s, CERTIFICATES] += alive * (alive - 1)
        return False
    found = False
    for j in range(count):
        k = arms[j]
        if eliminated_at[s, k] < NEVER:
            continue
        # the leaders at either end are at least as near to crossing as any one rival
        if reward_hooks.certified(
            test.rewards,
            g_a + total_a[k] - best_a,
            g_b + total_b[k] - best_b,
            test.least,
            test.slack,
            variance[k] + widest,
        ):
            schedules.state[s, CERTIFICATES] += alive - 1
            continue
        for r in range(count):
            rival = arms[r]
            if rival == k or eliminated_at[s, rival] < NEVER:
                continue
            if _low(test, tree, ends, rival, k):
                schedules.state[s, CERTIFICATES] += 1
            else:
                notes.leaders[k] += 1
                notes.led[rival] += 1
                found = True
    return found


@inlined
def _is_counted(schedules, notes, look, arms, wanted):
    """Tell whether an arm would be decided by the arms alone that are not drawn.

    That is possible once others were decided since they were counted.
    """
    s, i, depth = look.s, look.place, look.depth
    others = schedules.state[s, ALIVE] - wanted
    for j in range(arms[schedules.eliminated_at.shape[1]]):
        k = arms[j]
        if schedules.eliminated_at[s, k] == NEVER and (
            notes.above[depth, i, k] >= wanted or notes.below[depth, i, k] >= others
        ):
            return True
    return False


@inlined
def _candidates(test, schedules, tree, ends, look, arms, wanted):
    """Flag and count the arms that might be rejected, or accepted, inside the interval."""
    s, i, depth = look.s, look.place, look.depth
    eliminated_at, notes = schedules.eliminated_at, schedules.rule.notes
    count = arms[eliminated_at.shape[1]]
    others = schedules.state[s, ALIVE] - wanted
    found = np.int64(0)
    grown = True
    while grown:
        grown = False
        for j in range(count):
            k = arms[j]
            if eliminated_at[s, k] < NEVER:
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
def _draw_candidates(test, schedules, tree, ends, most, s, arms):
    """Flag the candidates, and the arms of their unresolved pairs, as unresolved."""
    notes, unresolved = schedules.rule.notes, tree.unresolved
    eliminated_at = schedules.eliminated_at
    count = arms[eliminated_at.shape[1]]
    for j in range(count):
        k = arms[j]
        if not (notes.rejected[k] or notes.accepted[k]):
            continue
        unresolved[k] = True
        for r in range(count):
            rival = arms[r]
            if rival == k or unresolved[rival] or eliminated_at[s, rival] < NEVER:
                continue
            if notes.rejected[k] and not _low(test, tree, ends, rival, k):
                unresolved[rival] |= not certainly_leads(test, tree, ends, most, rival, k)
            if notes.accepted[k] and not _low(test, tree, ends, k, rival):
                unresolved[rival] |= not certainly_leads(test, tree, ends, most, k, rival)


@inlined
def _take_notes(test, schedules, tree, ends, most, look, arms):
    """Note, for the list at depth + 1, the counts of high pairs with arms that are not on it.

    Above: arms that are high against a candidate; below: arms against which it is high.
    """
    s, i, depth = look.s, look.place, look.depth
    notes, unresolved = schedules.rule.notes, tree.unresolved
    eliminated_at = schedules.eliminated_at
    above, below = notes.above[depth + 1, look.below], notes.below[depth + 1, look.below]
    count = arms[eliminated_at.shape[1]]
    for j in range(count):
        k = arms[j]
        if not unresolved[k]:
            continue
        above[k] = notes.above[depth, i, k] if notes.rejected[k] else NO_CANDIDATE
        below[k] = notes.below[depth, i, k] if notes.accepted[k] else NO_CANDIDATE
        for r in range(count):
            rival = arms[r]
            if unresolved[rival] or eliminated_at[s, rival] < NEVER:
                continue
            if notes.rejected[k] and certainly_leads(test, tree, ends, most, rival, k):
                above[k] += 1
                schedules.state[s, CERTIFICATES] += 1
            if notes.accepted[k] and certainly_leads(test, tree, ends, most, k, rival):
                below[k] += 1
                schedules.state[s, CERTIFICATES] += 1


# ---- the bracket of a client -------------------------------------------------------------------


@hooks.look_at_octave.of(TopRule)
def _look_at_octave(rule, rewards, radius, held, octave, lazy):
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
    m, arms, side, by = octave.m, lazy.hi.shape[0], lazy.side, lazy.by
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
    m, arms, side, by = octave.m, lazy.hi.shape[0], lazy.side, lazy.by
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
            if lazy.side[k, m] != lazy.side[j, m] and rule.ties[k] == rule.ties[j]:
                return False
        state[0, ACCEPTED + k] = 1 if lazy.side[k, m] == ACCEPT else 0
    depend_on_undecided(lazy, m)
    state[0, WINNER], state[0, ABANDONED] = A_SET, 0
    return True


@hooks.least_lead.of(TopRule)
def _least_lead(rule, x, lazy, m, n, after):
    return least_lead_of_sides(x, lazy, m, after)
