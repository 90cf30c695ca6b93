"""A server that visits every communication round, for reports that get lost or carry noise.

The pass of `passes` rests on sums of all clients at one step. Here each client takes part in a
round with a probability of its own, and the server keeps the last report of each. Values come from
their addresses alone (`rewards.walk_value`), bit for bit those of a pass, and nothing is certified:
a row owes none of its `skip_error` to such a server. Both engines run it.

* ``waits``: the server decides at rounds with all clients, as a pass does there.
* Otherwise it decides as soon as it has a report of every client, at n_m of client m. It compares
  sums over clients of w_m X_m(n_m) n / n_m, which are n times the values of means, with the radius
  of N steps, N the weighted harmonic mean of the n_m (`confidence.common_steps`).
  `model.participations` has the proof. Where all n_m are n, these are the sums and the boundary of
  a pass, bit for bit.

An uplink may add noise to every report, and set the boundary (`uplinks.hooks`).

Lazy clients may follow a server only as far as values at spine nodes decide (SPINE_DECIDES): a
report at any other step ends that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed import confidence
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.decisions import When, carry_out, mark
from fastfed.kernels.dispatch import generic_with_default
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.kernel_arrays import fill
from fastfed.kernels.memory import (
    BEGIN,
    DRAWN,
    DRAWS,
    END,
    LAST,
    NEVER,
    NEXT,
    PERIOD,
    RECEIVED,
    SENT,
    SPINE_DECIDES,
    TIMES_USED,
    Ints,
    Link,
    PassMemory,
    Scope,
)
from fastfed.kernels.passes import Asked, begin, run_pass
from fastfed.kernels.radii import octave
from fastfed.kernels.random.presence import presence_from, presence_words, share_of
from fastfed.kernels.rewards import hooks
from fastfed.kernels.schedules import communicate
from fastfed.kernels.server_questions import Questions, needed_until
from fastfed.kernels.sums import add_client
from fastfed.kernels.uplinks import hooks as uplinks

MOST_ROUNDS = 2**20
"""Rounds of a trial: every one is visited, and one takes 0.1 to 10 us on the paper's instances."""

common_steps = inner(confidence.common_steps)


class FullParticipation(NamedTuple):
    """All clients take part in every round: the server is a pass that skips."""

    nothing: Any  # (), which takes no room in a call

    def received(self, uplink: Any, schedules: int, arms: int, clients: int) -> Any:
        return uplink.memory(schedules, arms, clients)


class AtRounds(NamedTuple):
    """Clients take part at random, or their reports carry noise: all rounds are visited."""

    share: Any  # the probability that a client takes part, times 2^BITS
    waits: Any  # whether the server decides at rounds with all clients only
    too_many: Ints  # (1,) set to 1 by a trial with more than MOST_ROUNDS rounds

    def received(self, uplink: Any, schedules: int, arms: int, clients: int) -> Reports:
        return Reports(
            np.zeros(clients, np.int64),
            np.zeros(clients, np.int64),
            np.zeros(clients, np.bool_),
            np.zeros((arms, clients)),
            np.zeros((arms, clients)),
            np.zeros((arms, clients), np.int64),
            uplink.memory(schedules, arms, clients),
        )


class Reports(NamedTuple):
    """The last report of every client."""

    last: Ints  # (M,) its step; 0: there was none
    sent: Ints  # (M,) the number of its reports so far
    present: Any  # (M,) whether the client takes part in the round
    sums: Any  # (K, M) X at its step
    noise: Any  # (K, M) the noise of all reports of the client
    until: Ints  # (K, M) the step up to which the client sends an arm
    uplink: Any  # memory of the uplink


def at_rounds(probability: float, waits: bool) -> AtRounds:
    """Make the participation of clients that take part in each round with a probability."""
    return AtRounds(share_of(probability), waits, np.zeros(1, np.int64))


@generic_with_default
def serve(
    participation: Any,
    rewards: Any,
    memory: Any,
    scope: Scope,
    radius: Any,
    held: PassMemory,
    asked: Asked,
    link: Link,
) -> None:
    """Run the server of one question, for all schedules."""
    run_pass(rewards, memory, scope, radius, held, asked, link)


@generic_with_default
def recount(
    participation: Any, questions: Questions, times: Any, state: Ints, eliminated_at: Ints, who: Any
) -> None:
    """Count the scalars sent and the rounds used, if not all clients send at all rounds.

    ``who`` is (seed, trial, memory of the reports).
    """


@serve.of(AtRounds)
def _serve(participation, rewards, memory, scope, radius, held, asked, link):
    """Visit the rounds of each schedule until it has declared, or has no round left."""
    reports, state = link.received, held.schedules.state
    for at in range(state.shape[0]):
        s = np.int64(at)
        begin(held.schedules, asked, link, s)
        fill(reports.last, 0)
        fill(reports.sent, 0)
        fill(reports.noise, 0.0)
        uplinks.begin_reports(link.uplink, reports, scope, s)
        rounds = np.int64(0)
        while state[s, NEXT] < NEVER:
            n = state[s, NEXT]
            rounds += 1
            if rounds > MOST_ROUNDS:
                participation.too_many[0] = 1
                state[s, NEXT] = NEVER
                break
            communicate(s, n, np.int64(0), held.schedules)
            _list_alive(held, s)
            all_came = _find_present(participation.share, scope, reports, n) == scope.senders
            for m in range(scope.lo, scope.hi):
                if reports.present[m]:
                    reports.last[m] = n
                    reports.sent[m] += 1
                    uplinks.add_noise(link.uplink, reports, scope, held, m, n)
            if participation.waits and not all_came:
                continue
            _look_up(rewards, memory, scope, held, reports, s, n)
            if participation.waits or _all_heard(scope, reports):
                _decide(scope, radius, held, asked, link, s, n)


@inlined
def _list_alive(held, s):
    """List the arms of schedule s that are alive as those drawn at depth 0."""
    drawn, eliminated_at = held.tree.drawn[0], held.schedules.eliminated_at
    count = np.int64(0)
    for k in range(eliminated_at.shape[1]):
        if eliminated_at[s, k] == NEVER:
            drawn[count] = k
            count += 1
    held.tree.frame[0, DRAWN] = count


@inlined
def _find_present(share, scope, reports, n):
    """Find the clients with a weight that take part in the round at step n; return their number."""
    came = np.int64(0)
    words = (np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0))
    for m in range(scope.lo, scope.hi):
        if m & 3 == 0:
            words = presence_words(scope.seed, scope.trial, m >> 2, n)
        here = scope.weights[0, m] > 0.0 and presence_from(words[m & 3], share)
        reports.present[m] = here
        came += np.int64(here)
    return came


@inner
def _look_up(rewards, memory, scope, held, reports, s, n):
    """Look up the sums that the clients of a round report, for the arms that are alive."""
    drawn, state = held.tree.drawn[0], held.schedules.state
    # the spine up to the node at or beyond n, and a split at each level below it
    level, draws = octave(n), np.int64(0)
    for m in range(scope.lo, scope.hi):
        if reports.present[m]:
            for j in range(held.tree.frame[0, DRAWN]):
                k = np.int64(drawn[j])
                address = (scope.seed, scope.trial, m, k, n)
                reports.sums[k, m] = hooks.walk_value(rewards, memory, address)
                draws += 2 * level + 1
    state[s, DRAWS] += draws
    held.walks.work[1] += draws
    if n & (n - 1) != 0:
        before = np.int64(1) << (level - 1)
        state[s, SPINE_DECIDES] = smaller(state[s, SPINE_DECIDES], before)


@inlined
def _all_heard(scope, reports):
    """Tell whether the server has a report of every client with a weight."""
    for m in range(scope.lo, scope.hi):
        if scope.weights[0, m] > 0.0 and reports.last[m] == 0:
            return False
    return True


@inner
def _decide(scope, radius, held, asked, link, s, n):
    """Decide at step n from the last reports."""
    reports, schedules = link.received, held.schedules
    weights = scope.weights[0]  # every client has every arm
    total, rule = held.walks.total[RECEIVED], schedules.rule
    for j in range(held.tree.frame[0, DRAWN]):
        k = np.int64(held.tree.drawn[0, j])
        value = 0.0
        for m in range(scope.lo, scope.hi):
            if weights[m] > 0.0:
                scale = float(n) / float(reports.last[m])
                x = (reports.sums[k, m] + reports.noise[k, m]) * scale
                value = add_client(weights, value, m, x)
        total[k] = value
    steps = common_steps(weights, reports.last)
    bar = uplinks.bar_at(link.uplink, reports, radius, n, steps)
    at = When(s, n, np.int64(0), True)
    if mark(rule, schedules, held.tree, total, asked.scales, bar, at) > 0:
        carry_out(rule, schedules, asked.senders, held.tree.marks, s, n)


@recount.of(AtRounds)
def _recount(participation, questions, times, state, eliminated_at, who):
    seed, trial, reports = who
    for s in range(state.shape[1]):
        address = seed, trial, s
        _count(participation.share, questions, times, state, eliminated_at, reports, address)


@inner
def _count(share, questions, times, state, eliminated_at, reports, who):
    """Count what the clients send at the rounds of one schedule, for all questions together."""
    seed, trial, s = who
    plan, until = times.times, reports.until
    arms, clients = until.shape
    latest = np.int64(0)
    for k in range(arms):
        for m in range(clients):
            until[k, m] = needed_until(questions, state, eliminated_at, s, k, m)
            latest = larger(latest, until[k, m])
    period = plan[s, PERIOD]
    count = plan[s, LAST] // period if period > 0 else plan[s, END] - plan[s, BEGIN]
    sent, used = np.int64(0), np.int64(0)
    words = (np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0))
    for i in range(smaller(count, MOST_ROUNDS)):
        n = (i + 1) * period if period > 0 else times.listed[plan[s, BEGIN] + i]
        if n > latest:
            break
        now = np.int64(0)
        for m in range(clients):
            if m & 3 == 0:
                words = presence_words(seed, trial, m >> 2, n)
            if presence_from(words[m & 3], share):
                for k in range(arms):
                    now += np.int64(until[k, m] >= n)
        sent += now
        used += np.int64(now > 0)
    state[0, s, SENT], state[0, s, TIMES_USED] = sent, used
