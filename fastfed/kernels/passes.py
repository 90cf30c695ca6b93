"""A pass on verdicts: the sums of some clients, for all schedules at once.

A pass follows the sums S_k(n) of the arms that it asks about, over the clients lo .. hi - 1: all of
them at the server, one in a client's own pass, whose one schedule has period 1. The spine visits
n = 1, 2, 4, ...; between two of its nodes lies a dyadic tree of intervals (a, b], whose middles can
be drawn at any time and in any order. An interval is judged once for all schedules (`verdicts`).
Then, for each schedule:

* no communication time in (a, b]: nothing can happen;
* b is the only one: the goal's own comparison at b;
* others inside: the goal reads the verdicts (`decisions.may_change`). Nothing can change: the
  interval is skipped. All that changes is certain: it is carried out at the next time. Otherwise
  the interval is opened for the schedule: split in its middle, or walked if it is short.

Only the arms of functionals that some schedule needs are drawn inside. Schedules that cannot skip
(without skipping; to count bits; to reach a chosen time) need all arms that they have left.

Certificates are counted once for each functional and interval, for every schedule that reads them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels import schedules as times_of
from fastfed.kernels.adaptive import choose_next, is_chosen
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.decisions import (
    CERTAIN,
    OPEN,
    When,
    carry_out,
    is_near,
    mark,
    may_change,
)
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.goal import BEST, EPS, THRESHOLD, TOP
from fastfed.kernels.interval_tree import next_interval, open_left
from fastfed.kernels.memory import (
    A_SET,
    ABANDONED,
    ACCEPTED,
    ALIVE,
    BITS,
    CERTIFICATES,
    DRAWN,
    DRAWS,
    IS_RIGHT,
    LEFT,
    LISTED,
    MOST_PAIRS,
    NEVER,
    NEXT,
    NOBODY,
    ORIGIN,
    RIGHT,
    SENDING,
    SENT,
    SPINE,
    SPINE_DECIDES,
    STEP,
    TIMES_USED,
    UNSETTLED,
    WINNER,
    A,
    B,
    Flags,
    Floats,
    Int,
    Ints,
    Link,
    PassMemory,
    Round,
    Scope,
)
from fastfed.kernels.one_pair import settle_few, settle_pair, walk_pair
from fastfed.kernels.radii import CHORD, boundary_at_node, exact
from fastfed.kernels.rewards import hooks
from fastfed.kernels.schedules import communicate, communicate_through
from fastfed.kernels.tuple_references import by_reference
from fastfed.kernels.uplinks import hooks as uplinks
from fastfed.kernels.verdicts import (
    ALL,
    MAY,
    NEEDED,
    STOPS,
    Terms,
    judge,
)

_LEAST, _SLACK, _KNOWN = range(3)  # of `Tree.bound`


class Asked(NamedTuple):
    """The question of a pass: its arms, their boundaries and senders."""

    arms: Flags  # (K,) the candidates: other arms are out from the start
    scales: Floats  # (K, K) of the boundary of each pair; of each arm alone on the diagonal
    senders: Ints  # (K,) the number of clients that send for each arm
    skip: Any  # False: visit every step
    level: Int  # the octave to begin with, if the pass has been prepared; -1: step 0


@inner
def run_pass(
    rewards: Any,
    memory: Any,
    scope: Scope,
    radius: Any,
    held: PassMemory,
    asked: Asked,
    link: Link,
) -> None:
    """Decide on arms until each schedule has declared or has no communication time left.

    The result is in ``schedules.state`` and ``schedules.eliminated_at``.
    """
    walks, tree, schedules = held.walks, held.tree, held.schedules
    frame, g, state = tree.frame, tree.g, schedules.state
    drawn_before = walks.work[1]
    if asked.level < 0:
        for s in range(state.shape[0]):
            begin(schedules, asked, link, np.int64(s))
        frame[0, B], frame[0, RIGHT] = 0, ORIGIN
        g[0, 1] = 0.0
    # most intervals that the server opens have one pair: see `settle_pair`
    one_pair = asked.skip and schedules.rule.kind == BEST
    one_pair &= uplinks.arrives_as_sent(link.uplink)
    for s in range(state.shape[0]):
        one_pair &= not is_chosen(schedules.chosen, s)
    listed = False
    for level in range(larger(asked.level, 0), SPINE):
        if not listed and not _list_all(schedules, tree, one_pair):
            break
        frame[0, A], frame[0, LEFT] = frame[0, B], frame[0, RIGHT]
        frame[0, B], frame[0, RIGHT] = 1 << level, level
        hooks.extend_spine(rewards, memory, scope, walks, tree, level)
        g[0, 0] = g[0, 1]
        g[0, 1] = boundary_at_node(radius, level)
        single = frame[0, LISTED] == 1
        tree.bound[_KNOWN] = 0.0
        quiet = (
            asked.skip
            and not single
            and uplinks.arrives_as_sent(link.uplink)
            and _is_quiet(rewards, memory, scope, held)
        )
        depth = np.int64(0)
        while not quiet:
            pair = one_pair and frame[depth, LISTED] == 1
            if pair:
                left_over = settle_pair(
                    rewards, memory, scope, radius, held, asked, link, (depth, level)
                )
            else:
                left_over = _settle(
                    rewards, memory, scope, radius, held, asked, link, (depth, level)
                )
                if left_over > 0:
                    _list_needed(tree, depth)
            if left_over > 0:
                if frame[depth, B] - frame[depth, A] > hooks.leaf(rewards):
                    hooks.split_interval(rewards, memory, scope, walks, tree, depth)
                    open_left(tree, depth, level, radius, hooks.noise_floor(rewards))
                    depth += 1
                    continue
                hooks.walk_interval(rewards, memory, scope, walks, tree, depth)
                if pair:
                    walk_pair(radius, held, asked, depth)
                else:
                    _walk(rewards, scope, radius, held, asked, link, depth)
            depth = next_interval(frame, g, depth)
            if depth == 0:
                break
        listed = (quiet or single) and _all_run(state, tree)
    for s in range(state.shape[0]):
        state[s, DRAWS] = walks.work[1] - drawn_before


@inner
def begin(schedules, asked, link, s):
    """Put schedule s before its first time, with all candidates alive.

    A question that needs no pull is answered at once: Algorithm 1 never pulls a lone arm (line 5).
    """
    state, eliminated_at, rule = schedules.state, schedules.eliminated_at, schedules.rule
    times_of.begin(s, schedules)
    uplinks.begin_receiving(link.uplink, link.received, s)
    alive, sending, last = np.int64(0), np.int64(0), np.int64(NOBODY)
    for k in range(eliminated_at.shape[1]):
        eliminated_at[s, k] = NEVER if asked.arms[k] else 0
        state[s, ACCEPTED + k] = 0
        if asked.arms[k]:
            alive += 1
            sending += asked.senders[k]
            last = k
    state[s, ALIVE], state[s, SENDING], state[s, WINNER] = alive, sending, NOBODY
    for column in (SENT, TIMES_USED, CERTIFICATES, ABANDONED, BITS, DRAWS):
        state[s, column] = 0
    state[s, SPINE_DECIDES] = NEVER
    if alive <= rule.count:
        for k in range(eliminated_at.shape[1]):
            eliminated_at[s, k] = 0
            state[s, ACCEPTED + k] = np.int64(asked.arms[k])
        state[s, WINNER] = A_SET if rule.kind in (TOP, THRESHOLD) else last
        state[s, NEXT] = NEVER


@inner
def _list_all(schedules, tree, one_pair):
    """List at depth 0 the schedules that still run, and the arms of any of them."""
    frame, state, eliminated_at = tree.frame, schedules.state, schedules.eliminated_at
    running = np.int64(0)
    for k in range(eliminated_at.shape[1]):
        tree.unresolved[k] = False
    for s in range(state.shape[0]):
        if state[s, NEXT] < NEVER:
            tree.unsettled[0, running] = s
            running += 1
            for k in range(eliminated_at.shape[1]):
                tree.unresolved[k] |= eliminated_at[s, k] == NEVER
    count = np.int64(0)
    for k in range(eliminated_at.shape[1]):
        if tree.unresolved[k]:
            tree.drawn[0, count] = k
            count += 1
    frame[0, IS_RIGHT], frame[0, UNSETTLED] = 0, running
    frame[0, DRAWN], frame[0, LISTED] = count, ALL
    if one_pair and count == 2:
        frame[0, LISTED] = 1
        listed = tree.verdicts[0, 0]
        listed[0], listed[1], listed[2] = tree.drawn[0, 0], tree.drawn[0, 1], MAY
    return running > 0


@inlined
def _all_run(state, tree):
    """Tell whether all schedules that are listed still run."""
    run = True
    for i in range(tree.frame[0, UNSETTLED]):
        run &= state[tree.unsettled[0, i], NEXT] < NEVER
    return run


@inlined
def _is_quiet(rewards, memory, scope, held):
    """Carry all schedules through an octave if no pair comes apart in it: most octaves are quiet.

    Tell whether it was done.
    """
    walks, tree, schedules = held.walks, held.tree, held.schedules
    frame, state, rule = tree.frame, schedules.state, schedules.rule
    if rule.kind == THRESHOLD:
        return False
    b, inside = frame[0, B], False
    for i in range(frame[0, UNSETTLED]):
        s = np.int64(tree.unsettled[0, i])
        if is_chosen(schedules.chosen, s):
            return False
        inside |= state[s, NEXT] < b
    left, right = walks.total[frame[0, LEFT]], walks.total[frame[0, RIGHT]]
    count = frame[0, DRAWN]
    best, worst = -np.inf, np.inf
    for p in range(count):
        x = right[tree.drawn[0, p]]
        best, worst = larger(best, x), smaller(worst, x)
    stop = rule.slack if rule.kind == EPS else 0.0
    d_b = tree.g[0, 1] - float(b) * stop - (best - worst)
    if d_b <= 0.0:
        return False
    issued = np.int64(0)
    if inside:
        best, worst = -np.inf, np.inf
        for p in range(count):
            x = left[tree.drawn[0, p]]
            best, worst = larger(best, x), smaller(worst, x)
        d_a = tree.g[0, 0] - float(frame[0, A]) * stop - (best - worst)
        least, slack = hooks.certificate_bound(rewards, memory, scope, walks, tree, np.int64(0))
        tree.bound[_LEAST], tree.bound[_SLACK], tree.bound[_KNOWN] = least, slack, 1.0
        widest = 0.0
        for p in range(count):
            widest = larger(widest, tree.variance[tree.drawn[0, p]])
        if not hooks.certified(rewards, d_a, d_b, least, slack, 2.0 * widest):
            return False
        issued = count * (count - 1) * (2 if rule.kind == EPS else 1)
    for i in range(frame[0, UNSETTLED]):
        s = np.int64(tree.unsettled[0, i])
        if state[s, NEXT] <= b:
            walks.work[0] += 1
            if state[s, NEXT] < b:
                state[s, CERTIFICATES] += issued
            communicate_through(s, b, state[s, SENDING], schedules)
    return True


@inlined
def _is_whole(schedules, asked, link, s):
    """Tell whether schedule s can skip nothing."""
    return (
        not asked.skip
        or uplinks.visits_all(link.uplink, schedules, s)
        or is_chosen(schedules.chosen, s)
    )


@inlined
def _terms(rewards, memory, scope, radius, held, asked, link, place):
    """Return the `Terms` of the interval at a depth, in the octave of a level."""
    depth, level = place
    tree, rule = held.tree, held.schedules.rule
    least, slack = tree.bound[_LEAST], tree.bound[_SLACK]
    if depth > 0 or tree.bound[_KNOWN] == 0.0:
        least, slack = hooks.certificate_bound(rewards, memory, scope, held.walks, tree, depth)
    errors = uplinks.message_errors(link.uplink, tree, depth, level)
    return Terms(
        rewards,
        least,
        slack,
        radius,
        asked.scales,
        float(tree.frame[depth, A]),
        float(tree.frame[depth, B]),
        tree.g[depth, 0],
        tree.g[depth, 1],
        rule.slack if rule.kind == EPS else -1.0,
        rule.tau,
        rule.slack if rule.kind == THRESHOLD else -1.0,
        errors,
        uplinks.message_errors_alone(link.uplink, tree, depth),
        uplinks.largest_message_error(link.uplink, errors[1]),
    )


@inlined
def _settle(rewards, memory, scope, radius, held, asked, link, place):
    """Carry each schedule through an interval if that takes no split; count and list the others.

    The schedules that are left over are listed at depth + 1.
    """
    depth, level = place
    walks, tree, schedules = held.walks, held.tree, held.schedules
    frame, state, b, below = tree.frame, schedules.state, tree.frame[depth, B], depth + 1
    issued, judged = np.int64(0), False
    for i in range(frame[depth, UNSETTLED]):
        s = np.int64(tree.unsettled[depth, i])
        judged |= state[s, NEXT] < b and not _is_whole(schedules, asked, link, s)
    frame[below, LISTED] = ALL
    if judged:
        terms = by_reference(_terms(rewards, memory, scope, radius, held, asked, link, place))
        issued = judge(terms, tree, walks.total, depth)
    for j in range(frame[depth, DRAWN]):
        tree.unresolved[tree.drawn[depth, j]] = False
    left_over = np.int64(0)
    for i in range(frame[depth, UNSETTLED]):
        s = np.int64(tree.unsettled[depth, i])
        if state[s, NEXT] > b:
            continue
        walks.work[0] += 1
        whole = _is_whole(schedules, asked, link, s)
        if state[s, NEXT] == b:
            at_b = Round(s, b, frame[depth, RIGHT], tree.g[depth, 1], depth)
            _communicate(rewards, scope, radius, held, asked, link, at_b)
            continue
        if not whole:
            state[s, CERTIFICATES] += issued
            change = may_change(schedules.rule, schedules, tree, s, below)
            if change != OPEN:
                if change == CERTAIN:
                    n = state[s, NEXT]
                    communicate(s, n, state[s, SENDING], schedules)
                    carry_out(schedules.rule, schedules, asked.senders, tree.marks, s, n)
                if state[s, NEXT] <= b:
                    communicate_through(s, b, state[s, SENDING], schedules)
                continue
        if depth == 0 and not is_chosen(schedules.chosen, s):
            state[s, SPINE_DECIDES] = smaller(state[s, SPINE_DECIDES], frame[0, A])
        if (
            not whole
            and uplinks.arrives_as_sent(link.uplink)
            and schedules.rule.kind == BEST
            and scope.hi - scope.lo == 1
            and 0 < frame[below, LISTED] <= MOST_PAIRS
        ):
            for p in range(frame[below, LISTED]):
                listed = tree.verdicts[below, p]
                tree.pairs[p, 0], tree.pairs[p, 1] = np.int64(listed[0]), np.int64(listed[1])
            found = (depth, level, frame[below, LISTED])
            if settle_few(rewards, memory, scope, radius, held, found):
                continue
        if whole or frame[below, LISTED] == ALL:
            _need_all(schedules, tree, s, depth)
        tree.unsettled[below, left_over] = s
        left_over += 1
    frame[below, UNSETTLED] = left_over
    return left_over


@inner
def _need_all(schedules, tree, s, depth):
    """Flag all arms that schedule s has left as unresolved, and their functionals as NEEDED."""
    eliminated_at, below = schedules.eliminated_at, depth + 1
    for j in range(tree.frame[depth, DRAWN]):
        k = tree.drawn[depth, j]
        tree.unresolved[k] |= eliminated_at[s, k] == NEVER
    for p in range(tree.frame[below, LISTED]):
        listed = tree.verdicts[below, p]
        if eliminated_at[s, listed[0]] == NEVER and eliminated_at[s, listed[1]] == NEVER:
            listed[2] |= np.uint32(NEEDED)


@inner
def _list_needed(tree, depth):
    """Keep at depth + 1 the functionals that are NEEDED, and list the arms to be drawn for them."""
    frame, below, kept = tree.frame, depth + 1, np.int64(0)
    for p in range(frame[below, LISTED]):
        listed = tree.verdicts[below, p]
        flags = np.int64(listed[2])
        if flags & NEEDED:
            if flags & (MAY | STOPS):
                tree.unresolved[listed[0]] = tree.unresolved[listed[1]] = True
            to = tree.verdicts[below, kept]
            to[0], to[1], to[2] = listed[0], listed[1], flags & ~NEEDED
            kept += 1
    if frame[below, LISTED] != ALL:
        frame[below, LISTED] = kept
    count = np.int64(0)
    for j in range(frame[depth, DRAWN]):
        k = tree.drawn[depth, j]
        if tree.unresolved[k]:
            tree.drawn[below, count] = k
            count += 1
    frame[below, DRAWN] = count


@inlined
def _walk(rewards, scope, radius, held, asked, link, depth):
    """Hold every communication round of the interval at ``depth``, whose steps were walked."""
    walks, tree, state = held.walks, held.tree, held.schedules.state
    frame, below = tree.frame, depth + 1
    a, b, right = frame[depth, A], frame[depth, B], frame[depth, RIGHT]
    last = STEP + b - a
    for j in range(frame[below, DRAWN]):
        k = tree.drawn[below, j]
        walks.total[last, k] = walks.total[right, k]
        if not uplinks.arrives_as_sent(link.uplink):
            for m in range(scope.lo, scope.hi):
                walks.value[last, k, m] = walks.value[right, k, m]
    g_a = tree.g[depth, 0]
    rise = (tree.g[depth, 1] - g_a) / float(b - a)
    for i in range(frame[below, UNSETTLED]):
        s = np.int64(tree.unsettled[below, i])
        while state[s, NEXT] <= b:
            n = state[s, NEXT]
            chord = (g_a + rise * float(n - a)) * CHORD
            at_n = Round(s, n, STEP + n - a, chord, below)
            _communicate(rewards, scope, radius, held, asked, link, at_n)


@inner
def _communicate(rewards, scope, radius, held, asked, link, at_n):
    """Hold the `Round` ``at_n``: clients send, the server receives and decides."""
    tree, schedules = held.tree, held.schedules
    s, n, rule = at_n.s, at_n.n, schedules.rule
    whole = _is_whole(schedules, asked, link, s)
    received = uplinks.receive(link.uplink, link.received, rewards, scope, radius, held, at_n)
    communicate(s, n, schedules.state[s, SENDING], schedules)
    sums, at = held.walks.total[received], When(s, n, at_n.depth, whole)
    if is_near(rule, schedules, tree, sums, asked.scales, at_n.g_below, at):
        bar = exact(radius, float(n))
        if mark(rule, schedules, tree, sums, asked.scales, bar, at) > 0:
            carry_out(rule, schedules, asked.senders, tree.marks, s, n)
    choose_next(schedules.chosen, schedules, tree, radius, sums, asked.scales, at)
