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

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.memory import (
    ABANDONED,
    BEGIN,
    BITS,
    CERTIFICATES,
    DRAWS,
    END,
    LAST,
    NEVER,
    NOBODY,
    PERIOD,
    SENT,
    TIMES_USED,
    WINNER,
    Flag,
    Flags,
    Floats,
    Int,
    Ints,
    Scope,
)
from fastfed.kernels.schedules import decided_at


class Questions(NamedTuple):
    """The questions of the server, and the arms of the clients."""

    weights: Floats  # (Q, K, M) w
    senders: Ints  # (Q, K) the number of clients with a weight above 0
    candidates: Flags  # (Q, K) the arms that each question asks about
    scales: Floats  # (Q, K, K) of the boundary of each pair, and of each arm alone: see `verdicts`
    ones: Floats  # (K, M) the weights in a client's own pass: 1, or 0 for an arm that it lacks
    client_arms: Flags  # (M, K) the arms of each client
    client_scales: Floats  # (K, K) ones
    one_each: Ints  # (K,) ones: a client sends to nobody but itself
    local: Any  # whether clients ask for their own answers
    alike: Any  # whether every client has a weight in every question


@inlined
def client_scope(questions: Questions, seed: Int, trial: Int, m: Int) -> Scope:
    """Return the walks of client m, for its own pass."""
    return Scope(seed, trial, m, m + 1, questions.ones, np.int64(1))


@inlined
def server_scope(questions: Questions, seed: Int, trial: Int, q: Int) -> Scope:
    """Return the walks of all clients, for the server's pass of question q."""
    clients = np.int64(questions.weights.shape[2])
    return Scope(seed, trial, np.int64(0), clients, questions.weights[q], questions.senders[q, 0])


@inlined
def needed_until(
    questions: Questions, state: Ints, eliminated_at: Ints, s: Int, k: Int, m: Int
) -> Int:
    """Return the step up to which questions need arm k of client m; ``state`` is (Q, S, ...)."""
    latest: Int = np.int64(0)
    for q in range(state.shape[0]):
        if questions.weights[q, k, m] > 0.0:
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
def count_downlinks(questions: Questions, eliminated_at: Ints, s: Int, told: Ints) -> Int:
    """Count the messages of the server: to each client one a round at which its arms changed.

    The arms of a client are those for which it has a weight in a question. ``told`` is scratch
    memory for the step of each client's last message.
    """
    count, arms = eliminated_at.shape[0], eliminated_at.shape[2]
    clients = questions.weights.shape[2]
    for m in range(clients):
        told[m] = 0
    sent, step = np.int64(0), np.int64(0)
    while True:
        later = NEVER
        for q in range(count):
            for k in range(arms):
                if eliminated_at[q, s, k] > step:
                    later = smaller(later, eliminated_at[q, s, k])
        if later == NEVER:
            return sent
        step = later
        for q in range(count):
            for k in range(arms):
                if eliminated_at[q, s, k] == step:
                    for m in range(clients):
                        if questions.weights[q, k, m] > 0.0 and told[m] < step:
                            told[m] = step
                            sent += 1


@inner
def count_senders(questions: Questions) -> Int:
    """Count the clients that send for any arm of the first question."""
    found = np.int64(0)
    for m in range(questions.weights.shape[2]):
        sends = False
        for k in range(questions.weights.shape[1]):
            sends |= questions.weights[0, k, m] > 0.0
        found += np.int64(sends)
    return found


@inner
def combine(questions: Questions, times: Any, state: Ints, eliminated_at: Ints) -> None:
    """Write the costs of all questions together to the state of the first.

    These are scalars sent, communication times used, bits, certificates and draws.
    """
    count, schedules = state.shape[0], state.shape[1]
    for s in range(schedules):
        sent, used = _count(questions, times, state, eliminated_at, s)
        for q in range(1, count):
            for column in (BITS, CERTIFICATES, DRAWS):
                state[0, s, column] += state[q, s, column]
        state[0, s, SENT], state[0, s, TIMES_USED] = sent, used


@inner
def _count(questions, times, state, eliminated_at, s):
    """Count the messages and the rounds of schedule s, whose times all questions share."""
    arms, clients = eliminated_at.shape[2], questions.weights.shape[2]
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
