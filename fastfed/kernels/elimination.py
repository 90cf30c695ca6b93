"""Successive elimination on skipping walks: one pass for a client, the same pass for the server.

A pass follows the sums S_k(n) of K arms over the clients lo .. hi - 1 (one client for a local
pass, all of them for the server's). For each of several schedules at once it eliminates arm k at a
communication time n where max_j S_j(n) - S_k(n) >= g(n) (Algorithm 1, lines 11 and 21, in sums). A
client compares at every step: its pass is the server's with one client and period 1. The rewards
draw single walks X, and `sums` adds the clients up.

A pass needs a logarithm of the number of steps. The spine visits n = 1, 2, 4, ...; between two of
its nodes lies a dyadic tree of intervals (a, b], whose middles can be drawn at any time and in any
order. In each interval, for each schedule:

* no communication time in (a, b]: nothing can happen;
* b is the only one: Algorithm 1's own check at b, nothing in between matters;
* others inside: if every pair of arms is certified not to cross g, the interval is skipped. If the
  other pairs are certified to be g or more apart in all of it, the arms behind leave at the first
  communication time inside (`goals.settle_next`). Otherwise the interval is split and both halves
  are looked at, in order.

The rewards certify pairs (`rewards.certified`): a certified pair crosses g in (a, b] with a
probability of at most SKIP_TOLERANCE; the other pairs are unresolved (`unresolved_pairs`). Only the
arms of unresolved pairs are drawn and compared further down: a certified pair needs no second look
anywhere inside (a, b]. Certificates are counted, and count x tolerance bounds the total variation
between these trials and step-by-step ones (union bound): each row has it as `skip_error`.

Rewards may settle a client's interval with few unresolved pairs by themselves
(`rewards.settle_few`). With skipping off every pair is unresolved until nothing is left to split:
each step is visited, on the same walk, by this code alone.

Glossary: S sums over clients, X single walks, g boundary, d distance to it; depth 0 is the spine
interval, depth i + 1 a half of depth i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastfed.kernels.adaptive import choose_next, is_chosen
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.goals import hooks as goals
from fastfed.kernels.interval_tree import next_interval, open_left
from fastfed.kernels.memory import (
    ABANDONED,
    ALIVE,
    BITS,
    CERTIFICATES,
    DRAWN,
    DRAWS,
    LEFT,
    NEVER,
    NEXT,
    NOBODY,
    ORIGIN,
    PERIOD,
    RIGHT,
    SENT,
    SPINE,
    SPINE_DECIDES,
    STEP,
    TIMES_USED,
    UNSETTLED,
    WINNER,
    A,
    B,
    Interval,
    Link,
    Look,
    PassMemory,
    Round,
    Scope,
    Start,
    Test,
    Unresolved,
)
from fastfed.kernels.radii import CHORD, boundary_at_node
from fastfed.kernels.rewards import hooks
from fastfed.kernels.schedules import begin, communicate, communicate_through
from fastfed.kernels.unresolved_pairs import collect_arms, list_arms
from fastfed.kernels.uplinks import hooks as uplinks


@inner
def run_pass(
    rewards: Any,
    memory: Any,
    scope: Scope,
    radius: Any,
    held: PassMemory,
    where: Start,
    link: Link,
) -> None:
    """Eliminate arms until each schedule has declared or has no communication time left.

    The result is in ``schedules.state`` and ``schedules.eliminated_at``.
    """
    walks, tree, schedules = held.walks, held.tree, held.schedules
    frame, g, skip = tree.frame, tree.g, where.skip
    if where.level < 0:
        begin_all(schedules, link)
        frame[0, B], frame[0, RIGHT] = 0, ORIGIN
    for level in range(larger(where.level, 0), SPINE):
        if not _count_spine_draws(schedules.state, scope.hi - scope.lo):
            return
        list_arms(schedules, tree)
        frame[0, A], frame[0, LEFT] = frame[0, B], frame[0, RIGHT]
        frame[0, B], frame[0, RIGHT] = 1 << level, level
        hooks.extend_spine(rewards, memory, scope, walks, tree, level)
        g[0, 0] = g[0, 1]
        g[0, 1] = boundary_at_node(radius, level)
        depth = np.int64(0)
        while True:
            # settle the interval for every schedule that can be settled, split it for the others
            interval = Interval(depth, level, skip)
            left_over = _settle(rewards, memory, scope, radius, held, interval, link)
            frame[depth + 1, UNSETTLED] = left_over
            if left_over > 0 and not (
                skip
                and uplinks.arrives_as_sent(link.uplink)
                and goals.follow_pair(
                    schedules.rule,
                    rewards,
                    memory,
                    scope,
                    held,
                    radius,
                    interval,
                )
            ):
                collect_arms(tree, depth)
                if frame[depth, B] - frame[depth, A] > hooks.leaf(rewards):
                    hooks.split_interval(rewards, memory, scope, walks, tree, depth)
                    open_left(tree, depth, level, radius, hooks.noise_floor(rewards))
                    depth += 1
                    continue
                hooks.walk_interval(rewards, memory, scope, walks, tree, depth)
                _communicate_step_by_step(
                    rewards, scope, radius, schedules, walks, tree, depth, link
                )
            depth = next_interval(frame, g, depth, np.int64(0))
            if depth == 0:
                break


@inner
def begin_all(schedules, link):
    """Put every schedule before its first time, with all arms alive."""
    state, eliminated_at = schedules.state, schedules.eliminated_at
    count, arms = eliminated_at.shape
    for s in range(count):
        for k in range(arms):
            eliminated_at[s, k] = NEVER
        begin(s, schedules)
        uplinks.begin_receiving(link.uplink, link.received, s)
        state[s, ALIVE] = arms
        state[s, WINNER] = NOBODY
        state[s, SENT] = 0
        state[s, TIMES_USED] = 0
        state[s, CERTIFICATES] = 0
        state[s, ABANDONED] = 0
        state[s, BITS] = 0
        state[s, DRAWS] = 0
        state[s, SPINE_DECIDES] = NEVER
        if not goals.is_open(schedules.rule, arms):  # a lone arm is declared without a pull
            eliminated_at[s, 0] = state[s, WINNER] = 0
            state[s, NEXT] = NEVER


@inlined
def _count_spine_draws(state, clients):
    """Count the next draws on the spine of each schedule; tell whether any schedule still runs."""
    running = False
    for s in range(state.shape[0]):
        if state[s, NEXT] < NEVER:
            running = True
            state[s, DRAWS] += clients * state[s, ALIVE]
    return running


@inlined
def _settle(rewards, memory, scope, radius, held, interval, link):
    """Carry each schedule through an `Interval` if that takes no split; count and list the others.

    The schedules that are left over are listed at depth + 1.
    """
    walks, tree, schedules = held.walks, held.tree, held.schedules
    skip, depth, level = interval.skip, interval.depth, interval.level
    frame, state = tree.frame, schedules.state
    clients = scope.hi - scope.lo
    every_step = schedules.times.shape[0] == 1 and clients == 1 and schedules.times[0, PERIOD] == 1
    b = frame[depth, B]
    least = slack = 0.0
    if skip and _any_time_inside(schedules, tree, depth):
        least, slack = hooks.certificate_bound(rewards, memory, scope, walks, tree, depth)
    message_errors = uplinks.message_errors(link.uplink, tree, depth, level)
    errors_alone = uplinks.message_errors_alone(link.uplink, tree, depth)
    largest_error = uplinks.largest_message_error(link.uplink, message_errors[1])
    left_over = np.int64(0)
    for i in range(frame[depth, UNSETTLED]):
        s = tree.unsettled[depth, i]
        if state[s, NEXT] > b:
            continue
        walks.work[0] += 1
        if state[s, NEXT] == b:
            # b anew from memory: with b itself LLVM computes the logarithm of an elimination at b
            # ahead of the loop, for every interval: FedElim0 is 5 to 10 % slower
            n = frame[depth, B]
            at_b = Round(s, n, frame[depth, RIGHT], tree.g[depth, 1], depth, i)
            _communicate(rewards, scope, radius, schedules, walks, tree, at_b, link)
            continue
        test = Test(
            skip
            and not uplinks.visits_all(link.uplink, schedules, s)
            and not is_chosen(schedules.chosen, s),
            rewards,
            least,
            slack,
            radius,
            message_errors,
            errors_alone,
            largest_error,
        )
        look = Look(s, i, depth, left_over)
        found = goals.unresolved_count(schedules.rule, test, schedules, tree, walks.total, look)
        if found == 0:
            communicate_through(s, b, scope.senders * state[s, ALIVE], schedules)
            continue
        if (
            test.skip
            and uplinks.arrives_as_sent(link.uplink)
            and goals.settle_next(schedules.rule, test, scope, schedules, tree, walks.total, look)
        ):
            continue
        if depth == 0 and not is_chosen(schedules.chosen, s):
            state[s, SPINE_DECIDES] = smaller(state[s, SPINE_DECIDES], frame[0, A])
        if not (
            skip
            and every_step
            and uplinks.arrives_as_sent(link.uplink)
            and goals.settle_few(
                schedules.rule,
                rewards,
                memory,
                scope,
                held,
                radius,
                Unresolved(found, depth, level),
            )
        ):
            tree.unsettled[depth + 1, left_over] = s
            # one draw splits a walk, one for each step walks it: as if no other schedule ran
            length = b - frame[depth, A]
            draws = length if length <= hooks.leaf(rewards) else np.int64(1)
            arms = np.int64(tree.arms[depth + 1, left_over, schedules.eliminated_at.shape[1]])
            state[s, DRAWS] += draws * clients * arms
            left_over += 1
    return left_over


@inlined
def _any_time_inside(schedules, tree, depth):
    """Tell whether any schedule has a known communication time in the interval before its end.

    If not, no pair needs a certificate, as on the whole spine of the paper's schedule.
    """
    for i in range(tree.frame[depth, UNSETTLED]):
        s = tree.unsettled[depth, i]
        if schedules.state[s, NEXT] < tree.frame[depth, B] and not is_chosen(schedules.chosen, s):
            return True
    return False


@inlined
def _communicate_step_by_step(rewards, scope, radius, schedules, walks, tree, depth, link):
    """Hold every communication round of the interval at ``depth``, whose steps were walked."""
    frame, state = tree.frame, schedules.state
    a, b = frame[depth, A], frame[depth, B]
    g_a = tree.g[depth, 0]
    rise = (tree.g[depth, 1] - g_a) / float(b - a)
    _copy_end(scope, walks, tree, depth, link)
    for i in range(frame[depth + 1, UNSETTLED]):
        s = tree.unsettled[depth + 1, i]
        while state[s, NEXT] <= b:
            n = state[s, NEXT]
            chord = (g_a + rise * float(n - a)) * CHORD
            at_n = Round(s, n, STEP + n - a, chord, depth + 1, i)
            _communicate(rewards, scope, radius, schedules, walks, tree, at_n, link)


@inlined
def _copy_end(scope, walks, tree, depth, link):
    """Copy the values at the end of an interval that was walked to the slot of its last step."""
    right = tree.frame[depth, RIGHT]
    last = STEP + tree.frame[depth, B] - tree.frame[depth, A]
    for j in range(tree.frame[depth + 1, DRAWN]):
        k = tree.drawn[depth + 1, j]
        walks.total[last, k] = walks.total[right, k]
        if not uplinks.arrives_as_sent(link.uplink):
            for m in range(scope.lo, scope.hi):
                walks.value[last, k, m] = walks.value[right, k, m]


@inlined
def _communicate(rewards, scope, radius, schedules, walks, tree, at_n, link):
    """Hold the `Round` ``at_n``: clients send, the server receives and decides."""
    received = uplinks.receive(
        link.uplink, link.received, rewards, scope, radius, PassMemory(walks, tree, schedules), at_n
    )
    messages = scope.senders * schedules.state[at_n.s, ALIVE]
    communicate(at_n.s, at_n.n, messages, schedules)
    goals.decide(schedules.rule, schedules, tree, radius, walks.total[received], at_n)
    choose_next(schedules.chosen, schedules, tree, radius, walks.total[received], at_n)
