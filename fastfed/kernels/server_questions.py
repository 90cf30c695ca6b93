"""Questions of the server: weights of clients in each of them, and the costs that they share.

A question is one weighted average over clients whose best arm the server must find. The paper's
server has one question, with equal weights.

The server's pass for a question follows sums over clients of w_m X_km (`model.weights`). Passes of
several questions are independent given the walks. Arm k of client m is pulled until the last
question with a weight on m has decided the arm, and sent as long as such a question communicates. A
number that several questions need at one step is sent once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.adaptive import ChosenTimes, is_chosen
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.dispatch import generic_with_default
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.memory import (
    ABANDONED,
    BEGIN,
    BITS,
    CERTIFICATES,
    DRAWS,
    END,
    LAST,
    NOBODY,
    PERIOD,
    SENT,
    TIMES_USED,
    WINNER,
    Flag,
    Floats,
    Int,
    Ints,
    Scope,
)
from fastfed.kernels.schedules import decided_at


class Questions(NamedTuple):
    """The weights of the clients in each question of the server."""

    weights: Floats  # (Q, M) w
    senders: Ints  # (Q,) the number of clients with a weight above 0
    ones: Floats  # (M,) the weights in a client's own pass
    local: Any  # whether clients ask for their own answers
    alike: Any  # whether every client has a weight in every question


@inlined
def client_scope(questions: Questions, seed: Int, trial: Int, m: Int) -> Scope:
    """Return the walks of client m, for its own pass."""
    return Scope(seed, trial, m, m + 1, questions.ones, np.int64(1))


@inlined
def server_scope(questions: Questions, seed: Int, trial: Int, q: Int) -> Scope:
    """Return the walks of all clients, for the server's pass of question q."""
    clients = np.int64(questions.weights.shape[1])
    return Scope(seed, trial, np.int64(0), clients, questions.weights[q], questions.senders[q])


@inlined
def needed_until(
    questions: Questions, state: Ints, eliminated_at: Ints, s: Int, k: Int, m: Int
) -> Int:
    """Return the step up to which questions need arm k of client m; ``state`` is (Q, S, ...)."""
    latest: Int = np.int64(0)
    for q in range(state.shape[0]):
        if questions.weights[q, m] > 0.0:
            latest = larger(latest, decided_at(state[q], eliminated_at[q], s, k))
    return latest


@inlined
def all_over(state: Ints, s: Int) -> Flag:
    """Tell whether every question was answered or abandoned."""
    over = True
    for q in range(state.shape[0]):
        over &= state[q, s, WINNER] != NOBODY or state[q, s, ABANDONED] > 0
    return over


@inner
def combine(questions: Questions, times: Any, log: Ints, state: Ints, eliminated_at: Ints) -> None:
    """Write the costs of all questions together to the state of the first.

    These are scalars sent, communication times used, bits, certificates and draws. ``log`` is
    (Q, S, times): see `adaptive`.
    """
    count, schedules = state.shape[0], state.shape[1]
    for s in range(schedules):
        sent, used = _count(times.chosen, questions, times, log, state, eliminated_at, s)
        for q in range(1, count):
            for column in (BITS, CERTIFICATES, DRAWS):
                state[0, s, column] += state[q, s, column]
        state[0, s, SENT], state[0, s, TIMES_USED] = sent, used


@generic_with_default
def _count(
    chosen: Any,
    questions: Questions,
    times: Any,
    log: Ints,
    state: Ints,
    eliminated_at: Ints,
    s: Int,
) -> Any:
    """Count the messages and the rounds of schedule s."""
    return _count_fixed(questions, times, state, eliminated_at, s)


@_count.of(ChosenTimes)
def _count_either(chosen, questions, times, log, state, eliminated_at, s):
    if not is_chosen(chosen, s):
        return _count_fixed(questions, times, state, eliminated_at, s)
    for q in range(log.shape[0]):
        log[q, s, 0] = times.listed[times.times[s, BEGIN]]  # known before the trial
    return _count_chosen(questions, log, state, eliminated_at, s)


@inner
def _count_fixed(questions, times, state, eliminated_at, s):
    """Count messages and rounds of a schedule whose times all questions share."""
    arms, clients = eliminated_at.shape[2], questions.weights.shape[1]
    sent, latest = np.int64(0), np.int64(0)
    for k in range(arms):
        for m in range(clients):
            until = needed_until(questions, state, eliminated_at, s, k, m)
            sent += _times_until(times, s, until)
            latest = larger(latest, until)
    return sent, _times_until(times, s, latest)


@inner
def _times_until(times, s, n):
    """Count the communication times of schedule s up to step n."""
    plan = times.times
    if plan[s, PERIOD] > 0:
        return smaller(n, plan[s, LAST]) // plan[s, PERIOD]
    low, high = plan[s, BEGIN], plan[s, END]
    while low < high:
        middle = (low + high) // 2
        if times.listed[middle] <= n:
            low = middle + 1
        else:
            high = middle
    return low - plan[s, BEGIN]


@inner
def _count_chosen(questions, log, state, eliminated_at, s):
    """Count messages and rounds of a schedule for which each question chooses its own times."""
    count, arms, clients = state.shape[0], eliminated_at.shape[2], questions.weights.shape[1]
    sent, used = np.int64(0), np.int64(0)
    for q in range(count):
        for i in range(state[q, s, TIMES_USED]):
            n = log[q, s, i]
            used += not _used_before(log, state, q, s, n)
            for k in range(arms):
                if decided_at(state[q], eliminated_at[q], s, k) < n:
                    continue
                for m in range(clients):
                    if questions.weights[q, m] > 0.0:
                        sent += not _sent_before(
                            questions, log, state, eliminated_at, (q, s, n, k, m)
                        )
    return sent, used


@inner
def _uses(log, state, q, s, n):
    """Tell whether the server's pass of question q has a communication round at step n."""
    low, high = np.int64(0), state[q, s, TIMES_USED]
    while low < high:
        middle = (low + high) // 2
        if log[q, s, middle] < n:
            low = middle + 1
        else:
            high = middle
    return low < state[q, s, TIMES_USED] and log[q, s, low] == n


@inner
def _used_before(log, state, q, s, n):
    """Tell whether a question before q communicates at step n."""
    found = False
    for earlier in range(q):
        found |= _uses(log, state, earlier, s, n)
    return found


@inner
def _sent_before(questions, log, state, eliminated_at, message):
    """Tell whether a question before q has the message (q, s, n, k, m) sent."""
    q, s, n, k, m = message
    for earlier in range(q):
        if (
            questions.weights[earlier, m] > 0.0
            and decided_at(state[earlier], eliminated_at[earlier], s, k) >= n
            and _uses(log, state, earlier, s, n)
        ):
            return True
    return False
