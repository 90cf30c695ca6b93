"""The clients of a trial, after its server: each is followed only as far as a row needs it.

A row holds the pulls, max(T_local, T_global) for each arm and client, the last step at which any
client declares, and the number of wrong declarations. So a client's eliminations are bracketed
first (`client_brackets`), and located where a row depends on the exact step. Whatever chooses the
passes and their arms is a function of values at spine nodes, and of other clients' passes: the
inside of every interval that a pass certifies is still a bridge. So certificates may be counted as
if each pass had been chosen beforehand. docs/explanation/skipping.md has the proof.
"""

from __future__ import annotations

import numpy as np

from fastfed.kernels.client_brackets import (
    all_out_by,
    begin_at,
    bracket,
    last_surplus,
    take_eliminators,
)
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.goal import THRESHOLD, client_errs, client_rule, most_certificates
from fastfed.kernels.memory import (
    ABANDONED,
    ACCEPTED,
    CERTIFICATES,
    DRAWS,
    ISSUED,
    NEVER,
    NOBODY,
    QUIET,
    SPINE_DECIDES,
    SPINE_USED,
    WINNER,
    Link,
    PassMemory,
    Schedules,
)
from fastfed.kernels.passes import Asked, run_pass
from fastfed.kernels.radii import octave
from fastfed.kernels.schedules import decided_at
from fastfed.kernels.server_questions import client_scope
from fastfed.kernels.tuple_references import by_reference

ANEW = 4096  # clients, after which it is decided anew whether brackets spare enough


@inner
def run_clients(problem, every_step, limits, space, trial, i, rows):
    """Run the passes of the clients of a trial, after the server's; return their certificates.

    After `find_last` the steps in ``space.local_eliminated_at`` give the trial's rows, but not all
    of them are located exactly, unless the caller keeps eliminations.
    """
    lazy, questions = space.lazy, problem.questions
    arms, clients = space.local_eliminated_at.shape
    lazily = problem.skip and rows.local_eliminated_at.shape[0] == 0
    certificates, in_vain = np.int64(0), np.int64(0)
    for m in range(clients):
        client = by_reference(client_schedules(problem, every_step, space, np.int64(m)))
        scope = by_reference(client_scope(questions, problem.seed, trial, np.int64(m)))
        if m == 0 or not questions.alike:
            _set_due(questions, space.state, space.eliminated_at, limits.horizon, lazy, m)
        lazy.notes[ISSUED], lazy.notes[QUIET] = 0, -1
        bracketed = False
        # clients of a trial are alike: where brackets spare little, most clients do without
        place = m % ANEW
        if place == 0:
            in_vain = np.int64(0)
        if lazily and 4 * in_vain <= place + 4:
            held = PassMemory(space.walks, space.tree, client)
            bracketed = bracket(
                client.rule,
                problem.rewards,
                space.rewards,
                scope,
                problem.local_radius,
                held,
                questions.client_arms[m],
                lazy,
            )
        taken = np.int64(arms)
        if bracketed:
            apart = client.rule.kind == THRESHOLD  # no arm's step depends on others
            _take_needed(space.local_eliminated_at, client.state, lazy, np.int64(m), apart)
            taken, first = take_eliminators(lazy, np.int64(m))
        in_vain += np.int64(4 * taken > 3 * arms)
        certificates += lazy.notes[ISSUED]
        if not bracketed:
            certificates += _follow(problem, space, scope, client)
        elif taken > 0:
            certificates += _locate(problem, space, scope, client, first)
        note_answer(problem.goal, client.state, space, np.int64(m), i, rows)
    return certificates


@inner
def note_answer(goal, state, space, m, i, rows):
    """Note the answer of client m in trial i, from the state of its pass."""
    space.winners[m] = state[0, WINNER]
    space.wrong[m] = 1 if client_errs(goal, m, state) else 0
    space.local_abandoned_at[m] = state[0, ABANDONED]
    if rows.local_accepted.shape[0] > 0:
        for k in range(space.local_eliminated_at.shape[0]):
            rows.local_accepted[i, k, m] = state[0, ACCEPTED + k] == 1


@inner
def _set_due(questions, state, eliminated_at, horizon, lazy, m):
    """Set a number of pulls of each arm that every schedule asks of client m.

    It is the server's own number as far as values at spine nodes decide it, in the last question
    with a weight on the client. Exact steps between spine nodes would let the choice of a client's
    passes depend on what these passes look at. Chosen times may: see `adaptive.intervals_around`.
    """
    count, schedules, arms = eliminated_at.shape
    for k in range(arms):
        due = NEVER
        for s in range(schedules):
            latest = np.int64(0)
            for q in range(count):
                if questions.weights[q, k, m] > 0.0:
                    known = decided_at(state[q], eliminated_at[q], s, k)
                    latest = larger(latest, smaller(known, state[q, s, SPINE_DECIDES]))
            due = smaller(smaller(due, latest), horizon[s])
        lazy.due[k] = due


@inlined
def client_schedules(problem, every_step, space, m):
    """Return the one schedule of client m, which compares at every step."""
    return Schedules(
        every_step.times,
        every_step.listed,
        space.client_state,
        space.client_eliminated_at,
        client_rule(problem.goal, m),
        every_step.chosen,
    )


@inlined
def _run(problem, space, scope, client, level):
    """Run a client's pass, from the start (-1), or from an octave on."""
    questions = problem.questions
    run_pass(
        problem.rewards,
        space.rewards,
        scope,
        problem.local_radius,
        PassMemory(space.walks, space.tree, client),
        by_reference(
            Asked(
                questions.client_arms[scope.lo],
                questions.client_scales,
                questions.one_each,
                problem.skip,
                level,
            )
        ),
        by_reference(Link(problem.uplink, space.received)),
    )


@inlined
def _follow(problem, space, scope, client):
    """Run the whole pass of a client; return its certificates.

    It begins at the last spine node at which a bracket found each arm in or out.
    """
    m, lazy, state = scope.lo, space.lazy, client.state
    quiet, level = lazy.notes[QUIET], np.int64(-1)
    own = problem.questions.client_arms[m]
    if quiet >= 0:
        for k in range(lazy.taken.shape[0]):
            undecided = lazy.hi[k, m] == 0 or lazy.hi[k, m] > np.int64(1) << quiet
            lazy.taken[k] = own[k] and undecided
        level = begin_at(quiet, problem.local_radius, client, space.walks, space.tree, own, lazy, m)
    _run(problem, space, scope, client, level)
    last = np.int64(0)
    end = state[0, ABANDONED] if state[0, ABANDONED] > 0 else NEVER
    for k in range(space.local_eliminated_at.shape[0]):
        space.local_eliminated_at[k, m] = client.eliminated_at[0, k]
        last = larger(last, smaller(client.eliminated_at[0, k], end))
    lazy.winner[m] = NOBODY
    lazy.low[m] = lazy.high[m] = last
    lazy.notes[SPINE_USED] += state[0, DRAWS]
    return state[0, CERTIFICATES]


@inner
def _take_needed(eliminated_at, state, lazy, m, apart):
    """Store a client's brackets; take the arms whose exact step a row depends on.

    If there are any, the arms that determine the step of the client's declaration are taken, too.
    So no client is located twice. Arms that are ``apart`` can be: no arm is followed twice.
    """
    arms = lazy.taken.shape[0]
    low, high = np.int64(-1), np.int64(0)
    needed = False
    for k in range(arms):
        eliminated_at[k, m] = lazy.hi[k, m]
        if lazy.lo[k, m] == NEVER:  # no arm of this client
            continue
        low, high = larger(low, lazy.lo[k, m]), larger(high, lazy.hi[k, m])
        needed |= lazy.hi[k, m] > lazy.due[k]
    low = np.int64(1) << low if low >= 0 else np.int64(0)
    lazy.winner[m], lazy.low[m], lazy.high[m] = state[0, WINNER], low, high
    for k in range(arms):
        exact_above = lazy.due[k] if apart else smaller(lazy.due[k], low)
        lazy.taken[k] = needed and lazy.hi[k, m] > exact_above


@inlined
def _locate(problem, space, scope, client, first):
    """Locate the eliminations of the arms taken, from 2^first on; return the certificates."""
    m, lazy, out = scope.lo, space.lazy, space.local_eliminated_at
    own = problem.questions.client_arms[m]
    level = begin_at(first, problem.local_radius, client, space.walks, space.tree, own, lazy, m)
    _run(problem, space, scope, client, level)
    low = high = np.int64(0)
    for k in range(out.shape[0]):
        if lazy.taken[k]:
            out[k, m] = lazy.hi[k, m] = client.eliminated_at[0, k]
            low = larger(low, out[k, m])
        high = larger(high, out[k, m])
    lazy.low[m], lazy.high[m] = larger(lazy.low[m], low), high
    if high <= lazy.low[m]:
        lazy.winner[m] = NOBODY
    lazy.notes[SPINE_USED] += client.state[0, DRAWS]
    return client.state[0, CERTIFICATES]


@inner
def find_last(problem, every_step, space, trial):
    """Locate the last declaration of any client, the likeliest first; return the certificates."""
    lazy, out = space.lazy, space.local_eliminated_at
    arms, clients = out.shape
    certificates, latest = np.int64(0), np.int64(0)
    for m in range(clients):
        latest = larger(latest, lazy.low[m])
    while True:
        m = _likeliest(problem, space, latest)
        if m < 0:
            break
        client = by_reference(client_schedules(problem, every_step, space, m))
        scope = by_reference(client_scope(problem.questions, problem.seed, trial, m))
        for k in range(arms):
            lazy.taken[k] = lazy.hi[k, m] > larger(lazy.low[m], latest)
        taken, first = take_eliminators(lazy, m)
        if latest > lazy.low[m]:
            # the answer tells of the inside of these intervals, at each of the depths of a pass, so
            # their certificates count whatever it is
            certificates += octave(latest) * most_certificates(problem.goal.kind, taken)
            held = PassMemory(space.walks, space.tree, client)
            if all_out_by(
                client.rule,
                problem.rewards,
                space.rewards,
                scope,
                problem.local_radius,
                held,
                lazy,
                latest,
            ):
                lazy.winner[m] = NOBODY
                continue
        certificates += _locate(problem, space, scope, client, first)
        latest = larger(latest, lazy.high[m])
    # clients that were not located declare at that step or before: any such step gives the row
    for m in range(clients):
        for k in range(arms):
            if out[k, m] < NEVER:
                out[k, m] = smaller(out[k, m], latest)
    return certificates


@inlined
def _likeliest(problem, space, latest):
    """Return the client that is likeliest to declare last, if it may after ``latest``, or -1."""
    lazy = space.lazy
    found, least = np.int64(-1), np.inf
    for m in range(lazy.winner.shape[0]):
        if lazy.winner[m] != NOBODY and lazy.high[m] > latest:
            rule = by_reference(client_rule(problem.goal, np.int64(m)))
            radius = problem.local_radius
            surplus = last_surplus(rule, radius, space.walks, space.tree, lazy, np.int64(m))
            if found < 0 or surplus < least:
                found, least = np.int64(m), surplus
    return found
