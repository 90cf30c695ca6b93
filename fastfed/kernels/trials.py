"""Many independent trials: one local pass per client, one server pass for all schedules, rows.

A client's eliminations read only its own walks and the server's only the sums over clients, so
the two kinds of pass are independent given the walks, and arm k of client m is pulled
max(T_local[k, m], T_global[k]) times. All schedules of a trial see the same walks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.compiling import entry_point, inner
from fastfed.kernels.elimination import run_pass
from fastfed.kernels.goals import hooks as goals
from fastfed.kernels.laws import hooks
from fastfed.kernels.memory import (
    CALLED,
    DRAWS,
    GAVE_UP,
    NEVER,
    NOBODY,
    SAFE_PAIRS,
    SENT,
    SKIP_TOLERANCE,
    TALKS,
    WINNER,
    Talks,
    Who,
)
from fastfed.kernels.uplinks import hooks as uplinks
from fastfed.kernels.uplinks.exact import ExactUplink, Nothing

# columns of `Rows.ints`
(
    PULLS,
    UPLINKS,
    BITS,
    ROUNDS,
    STEPS,
    LOCAL_STEPS,
    GLOBAL_STEPS,
    GLOBAL_ARM,
    LOCAL_ERRORS,
    CORRECT,
    TRUNCATED,
) = range(11)
COLUMNS = 11


class Problem(NamedTuple):
    """What is simulated."""

    seed: Any
    law: Any  # of the rewards, one of `kernels.laws`
    local_curve: Any  # the boundary at the clients, one of `kernels.boundary`,
    global_curve: Any  # and at the server
    uplink: Any  # what the server hears of the clients, one of `kernels.uplinks`
    skip: Any  # False: visit every step
    goal: Any  # one of `kernels.goals`


class Times(NamedTuple):
    """When each of S schedules talks, as `communication` reads it."""

    plan: Any  # (S, 4)
    listed: Any  # all listed times, one schedule after the other


class Limits(NamedTuple):
    """Where a trial is cut off."""

    max_steps: Any
    horizon: Any  # (S,) where an undecided schedule is cut off: its last time, or max_steps


class Rows(NamedTuple):
    """The result of the trials, indexed by their position in the range of trials. What is not
    wanted has a first dimension of 0."""

    ints: Any  # (S, trials, COLUMNS)
    skip_error: Any  # (S, trials)
    draws: Any  # (S, trials) of walks, as if each schedule had run alone
    pulls: Any  # (S, trials, K, M) pulls of each arm at each client
    called: Any  # (S, trials, K) 1 if an arm is in the set that the server declared, 0 if not;
    # left as it is where none was declared
    work: Any  # (trials, 2) intervals looked at, variates drawn
    local_out: Any  # (trials, K, M) the step at which each arm left at each client, or NEVER
    local_arms: Any  # (trials, M) what the clients declared: an arm, NOBODY or A_SET
    local_called: Any  # (trials, K, M) whether an arm is in the set that a client declared
    global_out: Any  # (trials, S, K) the step at which each arm left at the server, or NEVER
    global_called: Any  # (trials, S, K) whether an arm is in the set that the server declared
    local_gave_up: Any  # (trials, M) the step at which a client gave up; 0: it did not
    global_gave_up: Any  # (trials, S) and at which the server did


class Control(NamedTuple):
    """Shared with the caller's thread while the kernel runs without the GIL."""

    stop: Any  # (1,) not zero: leave after the current trial
    done: Any  # (1,) trials finished


class Outcome(NamedTuple):
    """How a trial ended, at the clients and at the server."""

    local_out: Any  # (K, M)
    winners: Any  # (M,)
    wrong: Any  # (M,) whether a client's answer is wrong
    gave_up: Any  # (M,)
    state: Any  # (S, CALLED + K)
    out_at: Any  # (S, K)


@inner
def _write_row(s, i, goal, limits, outcome, bits, safe_pairs, rows):
    """Row i of schedule s. A trial that cannot end, or is not followed to its end, is cut off at
    its horizon: what was spent until then counts, who has not declared by then has not declared.
    A client or server that gives up pulls and sends no more; the others go on."""
    local_out, out_at, state = outcome.local_out, outcome.out_at, outcome.state
    arms, clients = local_out.shape
    winner = state[s, WINNER]
    server_end = state[s, GAVE_UP] if state[s, GAVE_UP] > 0 else NEVER
    ended = winner != NOBODY
    horizon = limits.max_steps if ended or server_end < NEVER else limits.horizon[s]
    keep = rows.pulls.shape[0] > 0
    pulls = 0
    steps = 0
    local_steps = 0
    wrong = 0
    undeclared = 0
    for m in range(clients):
        declared = 0
        client_end = outcome.gave_up[m] if outcome.gave_up[m] > 0 else NEVER
        for k in range(arms):
            locally, globally = min(local_out[k, m], client_end), min(out_at[s, k], server_end)
            declared = max(declared, locally)
            count = min(max(locally, globally), horizon)
            pulls += count
            steps = max(steps, count)
            if keep:
                rows.pulls[s, i, k, m] = count
        local_steps = max(local_steps, min(declared, horizon))
        if declared > horizon or client_end < NEVER:
            undeclared += 1
        else:
            wrong += outcome.wrong[m]
    global_steps = 0
    for k in range(arms):
        global_steps = max(global_steps, min(out_at[s, k], server_end, horizon))
    right = wrong == 0 and undeclared == 0 and ended and not goals.server_errs(goal, s, state)
    rows.ints[s, i, PULLS] = pulls
    rows.ints[s, i, UPLINKS] = state[s, SENT]
    rows.ints[s, i, BITS] = bits
    rows.ints[s, i, ROUNDS] = state[s, TALKS]
    rows.ints[s, i, STEPS] = steps
    rows.ints[s, i, LOCAL_STEPS] = local_steps
    rows.ints[s, i, GLOBAL_STEPS] = global_steps
    rows.ints[s, i, GLOBAL_ARM] = max(winner, NOBODY)
    rows.ints[s, i, LOCAL_ERRORS] = wrong
    rows.ints[s, i, CORRECT] = 1 if right else 0
    rows.ints[s, i, TRUNCATED] = 1 if undeclared > 0 or not ended else 0
    rows.skip_error[s, i] = SKIP_TOLERANCE * float(safe_pairs)
    if rows.called.shape[0] > 0 and ended:
        for k in range(arms):
            rows.called[s, i, k] = state[s, CALLED + k]


@inner
def _keep_departures(i, outcome, rows):
    """When each arm left, and what the clients declared, of trial i."""
    arms, clients = outcome.local_out.shape
    for m in range(clients):
        rows.local_arms[i, m] = outcome.winners[m]
        rows.local_gave_up[i, m] = outcome.gave_up[m]
        for k in range(arms):
            rows.local_out[i, k, m] = outcome.local_out[k, m]
    for s in range(outcome.out_at.shape[0]):
        rows.global_gave_up[i, s] = outcome.state[s, GAVE_UP]
        for k in range(arms):
            rows.global_out[i, s, k] = outcome.out_at[s, k]
            rows.global_called[i, s, k] = outcome.state[s, CALLED + k] == 1


@entry_point
def run_trials(problem, every, times, limits, space, rows, control, first):
    """Trials first, first + 1, ... into rows 0, 1, ..., as many as `rows` holds."""
    law, memory, walks, tree = problem.law, space.law, space.walks, space.tree
    goal = problem.goal
    arms, clients = space.local_out.shape
    schedules = times.plan.shape[0]
    outcome = Outcome(
        space.local_out, space.winners, space.wrong, space.local_gave_up, space.state, space.out_at
    )
    globally = Talks(
        times.plan,
        times.listed,
        space.state,
        space.out_at,
        goals.at_server(goal),
        problem.uplink,
        space.heard,
    )
    for i in range(rows.ints.shape[1]):
        if control.stop[0] != 0:
            return
        trial = first + i
        for k in range(arms):
            for m in range(clients):
                walks.known[k, m] = 0
        walks.work[0] = walks.work[1] = 0
        safe_pairs = np.int64(0)
        for m in range(clients):
            locally = Talks(
                every.plan,
                every.listed,
                space.local_state,
                space.local_out_at,
                goals.at_client(goal, m),
                ExactUplink(()),
                Nothing(()),
            )
            run_pass(
                law,
                memory,
                Who(problem.seed, trial, m, m + 1),
                problem.local_curve,
                locally,
                walks,
                tree,
                problem.skip,
            )
            for k in range(arms):
                space.local_out[k, m] = locally.out_at[0, k]
            space.winners[m] = locally.state[0, WINNER]
            space.wrong[m] = 1 if goals.client_errs(goal, m, locally.state) else 0
            space.local_gave_up[m] = locally.state[0, GAVE_UP]
            if rows.local_called.shape[0] > 0:
                for k in range(arms):
                    rows.local_called[i, k, m] = locally.state[0, CALLED + k] == 1
            safe_pairs += locally.state[0, SAFE_PAIRS]
        local_draws = walks.work[1]
        run_pass(
            law,
            memory,
            Who(problem.seed, trial, np.int64(0), clients),
            problem.global_curve,
            globally,
            walks,
            tree,
            problem.skip,
        )
        for s in range(schedules):
            bits = uplinks.bits_sent(problem.uplink, globally, s)
            verdicts = uplinks.verdict_errors(problem.uplink) * space.state[s, SAFE_PAIRS]
            _write_row(s, i, goal, limits, outcome, bits, safe_pairs + verdicts, rows)
            rows.draws[s, i] = local_draws + space.state[s, DRAWS]
        if rows.local_out.shape[0] > 0:
            _keep_departures(i, outcome, rows)
        rows.work[i, 0], rows.work[i, 1] = walks.work[0], walks.work[1]
        control.done[0] += 1


@entry_point
def value_at(law, memory, address):
    """X(n) of one walk; the address is (seed, trial, client, arm, n), n >= 1."""
    return hooks.walk_value(law, memory, address)


@entry_point
def values_at(law, memory, seed, trials, steps, out):
    """out[i, k, m] = X(steps[i, k, m]) of trial trials[i]; 0 after no step."""
    count, arms, clients = steps.shape
    for i in range(count):
        for k in range(arms):
            for m in range(clients):
                n = steps[i, k, m]
                out[i, k, m] = 0.0
                if n > 0:
                    out[i, k, m] = hooks.walk_value(law, memory, (seed, trials[i], m, k, n))
