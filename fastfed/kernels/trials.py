"""Independent trials: one server pass for all schedules, passes of the clients, then rows.

A client's eliminations read only its own walks and the server's only the sums over clients, so
the two kinds of pass are independent given the walks, and arm k of client m is pulled
max(T_local[k, m], T_global[k]) times. All schedules of a trial see the same walks. The server comes
first, because a client is followed only as far as a row needs it (`clients`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.adaptive import intervals_around, is_chosen
from fastfed.kernels.clients import find_last, run_clients
from fastfed.kernels.compiling import entry_point, inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.goal import Goal, most_certificates, server_errs, server_rule
from fastfed.kernels.memory import (
    ABANDONED,
    ACCEPTED,
    CERTIFICATES,
    DRAWS,
    LAST,
    NEVER,
    NOBODY,
    SENT,
    SKIP_TOLERANCE,
    SPINE_USED,
    TIMES_USED,
    WINNER,
    Flags,
    Floats,
    Int,
    Ints,
    Link,
    PassMemory,
    Schedules,
    Space,
)
from fastfed.kernels.passes import Asked
from fastfed.kernels.radii import boundary_of
from fastfed.kernels.rewards import hooks
from fastfed.kernels.rounds_server import FullParticipation, recount, serve
from fastfed.kernels.schedules import decided_at
from fastfed.kernels.server_questions import (
    Questions,
    all_over,
    combine,
    count_downlinks,
    count_senders,
    needed_until,
    server_scope,
)
from fastfed.kernels.tuple_references import by_reference
from fastfed.kernels.uplinks import hooks as uplinks
from fastfed.kernels.uplinks.exact import ExactUplink, Nothing

# columns of `Rows.ints`
(
    PULLS,
    UPLINKS,
    BITS,
    ROUNDS,
    STEPS,
    BUSIEST,
    DOWNLINKS,
    LOCAL_STEPS,
    GLOBAL_STEPS,
    GLOBAL_ARM,
    LOCAL_ERRORS,
    CORRECT,
    TRUNCATED,
    SERVER_ERRORS,
) = range(14)
COLUMNS = SERVER_ERRORS + 1


class Problem(NamedTuple):
    """The simulated setting, as kernels read it."""

    seed: Any
    rewards: Any  # one of `kernels.rewards`
    local_radius: Any  # `radii.Boundaries` of the clients; in their own passes a `Boundary`
    question_radii: Any  # and those of the server's questions
    uplink: Any  # one of `kernels.uplinks`
    participation: Any  # of clients in rounds: see `kernels.rounds_server`
    skip: Any  # False: visit every step
    goal: Goal
    questions: Questions


class Times(NamedTuple):
    """The communication times of S schedules, as `schedules` reads them."""

    times: Ints  # (S, 4)
    listed: Ints  # all listed times, one schedule after the other
    chosen: Any  # one of `kernels.adaptive`


class Limits(NamedTuple):
    """The steps at which a trial is cut off."""

    max_steps: Any
    horizon: Ints  # (S,) of an undecided schedule: its last time, or max_steps


class Rows(NamedTuple):
    """The results of the trials, indexed by their position in the range of trials.

    Arrays that the caller does not ask for have a first dimension of 0.
    """

    ints: Ints  # (S, trials, COLUMNS)
    skip_error: Floats  # (S, trials)
    draws: Ints  # (S, trials) of walks that a row depends on, at most
    pulls: Ints  # (S, trials, K, M) pulls of each arm at each client
    accepted: Any  # (S, trials, Q, K) 1 if an arm is in the set that the server declared, 0 if not;
    # left as it is if none was declared
    server_arms: Ints  # (S, trials, Q) the arms that the server declared, or NOBODY
    work: Ints  # (trials, 2) intervals looked at, variates drawn
    local_eliminated_at: Ints  # (trials, K, M) the step at which each arm left, or NEVER
    local_arms: Ints  # (trials, M) the declarations of the clients: an arm, NOBODY or A_SET
    local_accepted: Flags  # (trials, K, M) whether an arm is in the set that a client declared
    global_eliminated_at: Ints  # (trials, S, Q, K) the step at which each arm left at the server
    global_accepted: Flags  # (trials, S, Q, K) whether an arm is in a set that the server declared
    local_abandoned_at: Ints  # (trials, M) the step at which a client abandoned; 0: it did not
    global_abandoned_at: Ints  # (trials, S, Q) and at which the server did


class Control(NamedTuple):
    """Memory shared with the caller's thread while the kernel runs without the GIL."""

    stop: Ints  # (1,) not zero: leave after the current trial
    done: Ints  # (1,) trials finished


@inner
def write_row(s, i, problem, times, limits, space, bits, rows):
    """Write row i of schedule s.

    A trial that cannot end, or is not followed to its end, is cut off at its horizon: pulls until
    then count, declarations after it do not. A client or question that is abandoned needs no more
    pulls; the others go on.
    """
    goal, questions = problem.goal, problem.questions
    state, eliminated_at = space.state, space.eliminated_at
    local_eliminated_at, abandoned_at = space.local_eliminated_at, space.local_abandoned_at
    arms, clients = local_eliminated_at.shape
    horizon = limits.max_steps if all_over(state, s) else limits.horizon[s]
    keep = rows.pulls.shape[0] > 0
    pulls = 0
    busiest = 0
    steps = 0
    local_steps = 0
    wrong = 0
    undeclared = 0
    for m in range(clients):
        before = pulls
        declared = 0
        client_end = abandoned_at[m] if abandoned_at[m] > 0 else NEVER
        for k in range(arms):
            locally = smaller(local_eliminated_at[k, m], client_end)
            globally = needed_until(questions, state, eliminated_at, s, k, m)
            declared = larger(declared, locally)
            count = smaller(larger(locally, globally), horizon)
            pulls += count
            steps = larger(steps, count)
            if keep:
                rows.pulls[s, i, k, m] = count
        busiest = larger(busiest, pulls - before)
        local_steps = larger(local_steps, smaller(declared, horizon))
        if declared > horizon or client_end < NEVER:
            undeclared += 1
        else:
            wrong += space.wrong[m]
    global_steps = 0
    ended = True
    server_wrong = 0
    for q in range(state.shape[0]):
        for k in range(arms):
            decided = decided_at(state[q], eliminated_at[q], s, k)
            global_steps = larger(global_steps, smaller(decided, horizon))
        if state[q, s, WINNER] == NOBODY:
            ended = False
        elif server_errs(goal, q, s, state[q]):
            server_wrong += 1
    right = wrong == 0 and undeclared == 0 and ended and server_wrong == 0
    rows.ints[s, i, PULLS] = pulls
    rows.ints[s, i, UPLINKS] = state[0, s, SENT]
    rows.ints[s, i, BITS] = bits
    rows.ints[s, i, ROUNDS] = state[0, s, TIMES_USED]
    rows.ints[s, i, STEPS] = steps
    rows.ints[s, i, BUSIEST] = busiest
    if is_chosen(times.chosen, s):  # every round chooses the next one, or ends the trial
        downlinks = count_senders(questions) * state[0, s, TIMES_USED]
    else:
        downlinks = count_downlinks(questions, eliminated_at, s, space.told)
    rows.ints[s, i, DOWNLINKS] = downlinks
    rows.ints[s, i, LOCAL_STEPS] = local_steps
    rows.ints[s, i, GLOBAL_STEPS] = global_steps
    rows.ints[s, i, GLOBAL_ARM] = larger(state[0, s, WINNER], NOBODY)
    rows.ints[s, i, LOCAL_ERRORS] = wrong
    rows.ints[s, i, SERVER_ERRORS] = server_wrong
    rows.ints[s, i, CORRECT] = 1 if right else 0
    rows.ints[s, i, TRUNCATED] = 1 if undeclared > 0 or not ended else 0


@inner
def _last_needed(state, limits):
    """Return the last step that a row depends on: rows that cannot end are cut at their horizon."""
    last = np.int64(0)
    for s in range(limits.horizon.shape[0]):
        last = larger(last, limits.max_steps if all_over(state, s) else limits.horizon[s])
    return last


@inner
def write_answers(s, i, state, rows):
    """Write the answers of the server to all questions, where the caller asks for them."""
    for q in range(state.shape[0]):
        if rows.server_arms.shape[0] > 0:
            rows.server_arms[s, i, q] = larger(state[q, s, WINNER], NOBODY)
        if rows.accepted.shape[0] > 0 and state[q, s, WINNER] != NOBODY:
            for k in range(rows.accepted.shape[3]):
                rows.accepted[s, i, q, k] = state[q, s, ACCEPTED + k]


@inner
def keep_departures(i, space, rows):
    """Keep the steps at which arms left, and the declarations of the clients, of trial i."""
    arms, clients = space.local_eliminated_at.shape
    for m in range(clients):
        rows.local_arms[i, m] = space.winners[m]
        rows.local_abandoned_at[i, m] = space.local_abandoned_at[m]
        for k in range(arms):
            rows.local_eliminated_at[i, k, m] = space.local_eliminated_at[k, m]
    for q in range(space.eliminated_at.shape[0]):
        for s in range(space.eliminated_at.shape[1]):
            rows.global_abandoned_at[i, s, q] = space.state[q, s, ABANDONED]
            for k in range(arms):
                rows.global_eliminated_at[i, s, q, k] = space.eliminated_at[q, s, k]
                rows.global_accepted[i, s, q, k] = space.state[q, s, ACCEPTED + k] == 1


@inlined
def server_schedules(problem, times, space, q):
    """Return the schedules of the server's pass for question q."""
    return Schedules(
        times.times,
        times.listed,
        space.state[q],
        space.eliminated_at[q],
        server_rule(problem.goal, q),
        times.chosen,
    )


@inlined
def _run_server(problem, times, space, trial, q):
    """Run the server's pass for question q."""
    questions = problem.questions
    serve(
        problem.participation,
        problem.rewards,
        space.rewards,
        by_reference(server_scope(questions, problem.seed, trial, q)),
        by_reference(boundary_of(problem.question_radii, q)),
        PassMemory(
            space.walks, space.tree, by_reference(server_schedules(problem, times, space, q))
        ),
        by_reference(
            Asked(
                questions.candidates[q],
                questions.scales[q],
                questions.senders[q],
                problem.skip,
                np.int64(-1),
            )
        ),
        by_reference(Link(problem.uplink, space.received)),
    )


@inlined
def _for_clients(problem):
    """Return the problem as clients see it: their passes are compiled once for all uplinks."""
    return Problem(
        problem.seed,
        problem.rewards,
        boundary_of(problem.local_radius, np.int64(0)),
        problem.question_radii,
        ExactUplink(()),
        FullParticipation(()),
        problem.skip,
        problem.goal,
        problem.questions,
    )


@inlined
def _client_space(space):
    """Return the memory of the clients, which is that of a trial without the uplink's."""
    return Space(
        space.walks,
        space.tree,
        space.rewards,
        space.client_state,
        space.client_eliminated_at,
        space.local_eliminated_at,
        space.winners,
        space.wrong,
        space.local_abandoned_at,
        space.state,
        space.eliminated_at,
        space.told,
        Nothing(()),
        space.lazy,
    )


@entry_point
def run_trials(
    problem: Problem,
    every_step: Times,
    times: Times,
    limits: Limits,
    space: Space,
    rows: Rows,
    control: Control,
    first: Int,
) -> None:
    """Run the trials first, first + 1, ... into rows 0, 1, ..., as many as ``rows`` holds."""
    problem, space, rows = by_reference(problem), by_reference(space), by_reference(rows)
    every_step, times, limits = by_reference(every_step), by_reference(times), by_reference(limits)
    walks, goal, questions = space.walks, problem.goal, problem.questions
    arms, clients = space.local_eliminated_at.shape
    local, local_space = by_reference(_for_clients(problem)), by_reference(_client_space(space))
    several = questions.weights.shape[0] > 1
    # clients were lazy
    lazily = questions.local and problem.skip and rows.local_eliminated_at.shape[0] == 0
    for i in range(rows.ints.shape[1]):
        if control.stop[0] != 0:
            return
        trial = first + i
        for k in range(arms):
            for m in range(clients):
                walks.known[k, m] = 0
        walks.work[0] = walks.work[1] = 0
        if several:
            uplinks.begin_trial(problem.uplink, space.received)
        for q in range(questions.weights.shape[0]):
            _run_server(problem, times, space, trial, q)
            if several:
                server = by_reference(server_schedules(problem, times, space, q))
                uplinks.end_question(problem.uplink, space.received, server, questions.weights[q])
        if several:
            combine(questions, times, space.state, space.eliminated_at)
        who = (problem.seed, trial, space.received)
        recount(problem.participation, questions, times, space.state, space.eliminated_at, who)
        server_draws = walks.work[1]
        certificates = np.int64(0)
        space.lazy.notes[SPINE_USED] = 0
        if not problem.skip and rows.local_eliminated_at.shape[0] == 0:
            every_step.times[0, LAST] = _last_needed(space.state, limits)
        if questions.local:
            certificates += run_clients(local, every_step, limits, local_space, trial, i, rows)
        if lazily:
            certificates += find_last(local, every_step, local_space, trial)
            around = intervals_around(times.chosen, space.state[0])
            certificates += around * clients * most_certificates(goal.kind, arms)
        local_draws = walks.work[1] - server_draws
        spine_used = space.lazy.notes[SPINE_USED]
        server = by_reference(server_schedules(problem, times, space, np.int64(0)))
        errors = uplinks.errors_per_certificate(problem.uplink)
        for s in range(times.times.shape[0]):
            bits = uplinks.bits_sent(problem.uplink, server, s)
            in_all = certificates + errors * space.state[0, s, CERTIFICATES]
            write_row(s, i, problem, times, limits, space, bits, rows)
            write_answers(s, i, space.state, rows)
            rows.skip_error[s, i] = SKIP_TOLERANCE * float(in_all)
            # clients use spine nodes that the server drew, perhaps for another schedule
            shared = smaller(server_draws, space.state[0, s, DRAWS] + spine_used)
            rows.draws[s, i] = local_draws + shared
        if rows.local_eliminated_at.shape[0] > 0:
            keep_departures(i, space, rows)
        rows.work[i, 0], rows.work[i, 1] = walks.work[0], walks.work[1]
        control.done[0] += 1


@entry_point
def value_at(rewards, memory, address):
    """Return the sum of n rewards; the address is (seed, trial, client, arm, n), n >= 1."""
    return hooks.sum_of_rewards(by_reference(rewards), by_reference(memory), address)


@entry_point
def values_at(rewards, memory, seed, trials, steps, out):
    """Set out[i, k, m] to X(steps[i, k, m]) of trial trials[i]; 0 after no step."""
    rewards, memory = by_reference(rewards), by_reference(memory)
    count, arms, clients = steps.shape
    for i in range(count):
        for k in range(arms):
            for m in range(clients):
                n = steps[i, k, m]
                out[i, k, m] = 0.0
                if n > 0:
                    address = (seed, trials[i], m, k, n)
                    out[i, k, m] = hooks.sum_of_rewards(rewards, memory, address)
