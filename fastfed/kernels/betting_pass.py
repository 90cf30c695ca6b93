"""Trials of the radius `betting`: passes of the server and of the clients, then rows.

A pass compares the capitals of pairs (`betting`) at its communication times; a client compares at
every step. It goes through the same intervals as the other passes: an interval in which every pair
is certified not to reach its level is skipped, another one is split. The centres of the capitals
change at the first comparison at or after each power of two. In the server's pass this comparison
may lie inside an octave, and the interval is then split down to it with all arms. The centres
depend on the schedule, so each schedule has a pass of its own. Clients are followed to their end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels import betting
from fastfed.kernels import schedules as times_of
from fastfed.kernels.betting import CHANGE_AT, Ledger, fill_logs
from fastfed.kernels.clients import client_schedules, note_answer
from fastfed.kernels.compiling import entry_point, inlined, inner
from fastfed.kernels.decisions import carry_out
from fastfed.kernels.extremes import larger
from fastfed.kernels.goal import EPS, TOP
from fastfed.kernels.interval_tree import next_interval
from fastfed.kernels.memory import (
    ACCEPT,
    ACCEPTED,
    ALIVE,
    CERTIFICATES,
    DRAWN,
    IS_RIGHT,
    LEFT,
    LISTED,
    MIDDLE,
    NEVER,
    NEXT,
    ORIGIN,
    REJECT,
    RIGHT,
    SENDING,
    SKIP_TOLERANCE,
    SPINE,
    STEP,
    A,
    B,
    Int,
    Link,
    Space,
    make_space,
)
from fastfed.kernels.passes import begin
from fastfed.kernels.rewards import hooks
from fastfed.kernels.rewards.counts import shuffle_steps, weigh
from fastfed.kernels.server_questions import client_scope, combine, server_scope
from fastfed.kernels.trials import (
    Control,
    Limits,
    Problem,
    Rows,
    Times,
    keep_departures,
    server_schedules,
    write_answers,
    write_row,
)
from fastfed.kernels.tuple_references import by_reference
from fastfed.kernels.uplinks import hooks as uplinks
from fastfed.kernels.verdicts import ALL, list_functional


class BettingSpace(NamedTuple):
    """Scratch memory of one thread."""

    trial: Space
    ledger: Ledger


class View(NamedTuple):
    """All that a pass reads and writes."""

    rewards: Any
    memory: Any
    scope: Any
    walks: Any
    tree: Any
    schedules: Any
    arms: Any  # (K,) the candidates,
    senders: Any  # (K,) and the number of clients that send for each
    skip: Any
    link: Link
    rules: Any
    ledger: Any
    level: Any
    weights: Any  # (K, M), of no meaning to a client
    shares: Any
    local: Any


def make_betting_space(problem: Any, arms: int, clients: int, schedules: int) -> BettingSpace:
    """Make the memory for trials of a `trials.Problem` whose radius is `betting.Bets`."""
    trial = make_space(problem, arms, clients, schedules)
    slots = STEP + problem.rewards.longest_walk + 1
    return BettingSpace(trial, betting.make_ledger(problem.local_radius, slots, arms, clients))


# ---- a pass ------------------------------------------------------------------------------------


@inner
def run_pass(view, s):
    """Eliminate arms until schedule s has declared or has no communication time left."""
    frame, state = view.tree.frame, view.schedules.state
    begin(view.schedules, view, view.link, s)
    if state[s, NEXT] < NEVER:
        betting.begin(view, s)
    frame[0, B], frame[0, RIGHT] = 0, ORIGIN
    for level in range(SPINE):
        if state[s, NEXT] == NEVER:
            return
        _list_alive(view, s, np.int64(0))
        frame[0, A], frame[0, LEFT] = frame[0, B], frame[0, RIGHT]
        frame[0, B], frame[0, RIGHT] = np.int64(1) << level, level
        hooks.extend_spine(view.rewards, view.memory, view.scope, view.walks, view.tree, level)
        fill_logs(view, s, frame[0, B], frame[0, RIGHT], np.int64(0))
        depth = np.int64(0)
        while True:
            if _must_open(view, s, depth):
                if frame[depth, B] - frame[depth, A] > hooks.leaf(view.rewards):
                    _split(view, s, depth)
                    depth += 1
                    continue
                _walk(view, s, depth)
            depth = next_interval(frame, view.tree.g, depth)
            if depth == 0:
                break


@inner
def _list_alive(view, s, depth):
    """List the undecided arms as those to be drawn at a depth, and all their pairs."""
    tree, alive = view.tree, view.schedules.eliminated_at[s]
    count = 0
    for k in range(alive.shape[0]):
        if alive[k] == NEVER:
            tree.drawn[depth, count] = k
            count += 1
    tree.frame[depth, DRAWN], tree.frame[depth, LISTED] = count, ALL


@inner
def _must_open(view, s, depth):
    """Settle an interval, or list at depth + 1 what has to be looked at inside."""
    frame, state, ledger = view.tree.frame, view.schedules.state, view.ledger
    b = frame[depth, B]
    if state[s, NEXT] > b:
        return False
    view.walks.work[0] += 1
    if state[s, NEXT] == b:
        _compare(view, s, b, frame[depth, RIGHT], depth, depth)
        return False
    if not view.skip or state[s, NEXT] >= ledger.marks[CHANGE_AT]:  # the centres change inside
        _list_alive(view, s, depth + 1)
        return True
    if _list_unresolved(view, s, depth):
        _list_arms(view, s, depth + 1)
        return True
    times_of.communicate_through(s, b - 1, state[s, SENDING], view.schedules)
    if state[s, NEXT] == b:
        _compare(view, s, b, frame[depth, RIGHT], depth + 1, depth)
    return False


@inner
def _split(view, s, depth):
    """Draw the middle of an interval, and open its left half."""
    frame, below = view.tree.frame, depth + 1
    hooks.split_interval(view.rewards, view.memory, view.scope, view.walks, view.tree, depth)
    a, middle = frame[depth, A], (frame[depth, A] + frame[depth, B]) // 2
    frame[below, A], frame[below, B] = a, middle
    frame[below, LEFT], frame[below, RIGHT] = frame[depth, LEFT], MIDDLE + depth
    frame[below, IS_RIGHT] = 0
    fill_logs(view, s, middle, MIDDLE + depth, below)


@inner
def _walk(view, s, depth):
    """Compare at every communication time of an interval that is not split any more."""
    frame, state = view.tree.frame, view.schedules.state
    a, b = frame[depth, A], frame[depth, B]
    if view.local:
        _walk_counts(view, s, depth)
    else:
        hooks.walk_interval(view.rewards, view.memory, view.scope, view.walks, view.tree, depth)
    while state[s, NEXT] < b:
        n = state[s, NEXT]
        if not view.local:
            fill_logs(view, s, n, STEP + n - a, depth + 1)
        _compare(view, s, n, STEP + n - a, depth + 1, depth + 1)
    if state[s, NEXT] == b:
        _compare(view, s, b, frame[depth, RIGHT], depth + 1, depth)


@inner
def _walk_counts(view, s, depth):
    """Compute the capitals of a client at every step of an interval that is walked.

    The rewards are shuffled with numbers in place of values, 0 for a cell's last and i + 1 for its
    i-th: their differences tell which value came.
    """
    frame, drawn, numbers = view.tree.frame, view.tree.drawn[depth + 1], view.rules.numbers
    memory, logs, m = view.memory, view.ledger.logs, view.scope.lo
    left, right, a = frame[depth, LEFT], frame[depth, RIGHT], frame[depth, A]
    length = frame[depth, B] - a
    for i in range(frame[depth + 1, DRAWN]):
        k = np.int64(drawn[i])
        if view.schedules.eliminated_at[s, k] < NEVER:
            continue
        kinds, place = view.rewards.kinds[k, m], view.rules.place[k, m]
        if kinds > 0:
            view.walks.work[1] += length - 1
        shuffle_steps(
            (memory.counts[left, m, k], memory.counts[right, m, k]),
            kinds,
            numbers,
            0.0,
            memory.rest,
            (a, length),
            (view.scope.seed, view.scope.trial, m, k, a + length // 2),
            memory.steps,
        )
        known, before = weigh(memory.counts[left, m, k], kinds, numbers, 0.0, a), left
        for step in range(1, length):
            number = np.int64(memory.steps[step] - known)
            one = view.ledger.table[place[kinds if number == 0 else number - 1]]
            for d in range(one.shape[0]):
                logs[STEP + step, k, d] = logs[before, k, d] + one[d]
            known, before = memory.steps[step], STEP + step


# ---- pairs -------------------------------------------------------------------------------------


@inlined
def _pair_at(tree, depth, p):
    """Return the arms j and k of a listed pair, and 1 if j is to beat k with the slack."""
    listed = tree.verdicts[depth, p]
    return np.int64(listed[0]), np.int64(listed[1]), np.int64(listed[2])


@inlined
def _is_open(view, s, j, k, near):
    """Tell whether it is still to be found out if arm j beats arm k, or would with the slack."""
    alive = view.schedules.eliminated_at[s]
    return (j != k) & (alive[j] == NEVER) & (alive[k] == NEVER) & (not view.ledger.won[near, j, k])


@inner
def _compare(view, s, n, slot, listed, below):
    """Hold the communication round at n: compare the pairs that are listed at a depth.

    If the centres change, the capitals at the right ends of intervals above ``below`` do, too.
    """
    tree, state = view.tree, view.schedules.state
    times_of.communicate(s, n, state[s, SENDING], view.schedules)
    found = False
    if tree.frame[listed, LISTED] == ALL:
        drawn, count = tree.drawn[listed], tree.frame[listed, DRAWN]
        for near in range(view.rules.kinds - 1):
            for i in range(count):
                for r in range(count):
                    j, k = np.int64(drawn[i]), np.int64(drawn[r])
                    found |= _compare_pair(view, s, slot, j, k, near)
    for p in range(tree.frame[listed, LISTED]):
        j, k, near = _pair_at(tree, listed, p)
        found |= _compare_pair(view, s, slot, j, k, near)
    if found:
        _decide(view, s, n)
    if n >= view.ledger.marks[CHANGE_AT] and state[s, NEXT] < NEVER:
        betting.recentre(view, s, n, slot)
        for depth in range(below):
            fill_logs(view, s, tree.frame[depth, B], tree.frame[depth, RIGHT], depth)


@inner
def _compare_pair(view, s, slot, j, k, near):
    """Note it if arm j beats arm k, or would with the slack; tell whether it does."""
    if not _is_open(view, s, j, k, near):
        return False
    begin = (1 + near) * view.rules.bets.shape[0]
    found = betting.beats(view.ledger, slot, j, k, begin, view.level)
    view.ledger.won[near, j, k] = found
    return found


@inner
def _list_unresolved(view, s, depth):
    """List at depth + 1 the pairs that are not certified; tell whether there are any."""
    tree, frame = view.tree, view.tree.frame
    least, slack = hooks.certificate_bound(
        view.rewards, view.memory, view.scope, view.walks, tree, depth
    )
    terms = betting.terms_of(view, frame[depth, LEFT], frame[depth, RIGHT], least, slack)
    frame[depth + 1, LISTED] = 0
    if frame[depth, LISTED] == ALL:
        _list_from_all(view, s, terms, depth)
    for p in range(frame[depth, LISTED]):
        j, k, near = _pair_at(tree, depth, p)
        _list_pair(view, s, terms, depth, j, k, near)
    return frame[depth + 1, LISTED] != 0


@inner
def _list_from_all(view, s, terms, depth):
    """List from all pairs: arm by arm against the highest capitals of all arms, then by pairs.

    An arm's own capital is among the highest: its two sides together never exceed 1.
    """
    ledger, tree, alive = view.ledger, view.tree, view.schedules.eliminated_at[s]
    highest, bets, widest = ledger.highest, ledger.stakes.shape[0], 0.0
    for g in range(bets):
        highest[0, g] = highest[1, g] = -np.inf
    for i in range(tree.frame[depth, DRAWN]):
        j = np.int64(tree.drawn[depth, i])
        if alive[j] == NEVER:
            widest = larger(widest, tree.variance[j])
            for g in range(bets):
                highest[0, g] = larger(highest[0, g], ledger.logs[terms.left, j, g])
                highest[1, g] = larger(highest[1, g], ledger.logs[terms.right, j, g])
    above = highest[0], highest[1]
    for near in range(view.rules.kinds - 1):
        for r in range(tree.frame[depth, DRAWN]):
            k = np.int64(tree.drawn[depth, r])
            if alive[k] < NEVER:
                continue
            spread = widest, tree.variance[k]
            if betting.certified(ledger, terms, above, k, (1 + near) * bets, spread):
                view.schedules.state[s, CERTIFICATES] += view.schedules.state[s, ALIVE] - 1
                continue
            for i in range(tree.frame[depth, DRAWN]):
                _list_pair(view, s, terms, depth, np.int64(tree.drawn[depth, i]), k, near)


@inner
def _list_pair(view, s, terms, depth, j, k, near):
    """List pair (j, k) at depth + 1, unless it is certified; or ALL, if the list is full."""
    if view.tree.frame[depth + 1, LISTED] == ALL or not _is_open(view, s, j, k, near):
        return
    ledger, variance = view.ledger, view.tree.variance
    begin = (1 + near) * ledger.stakes.shape[0]
    above = ledger.logs[terms.left, j], ledger.logs[terms.right, j]
    if betting.certified(ledger, terms, above, k, begin, (variance[j], variance[k])):
        view.schedules.state[s, CERTIFICATES] += 1
        return
    list_functional(view.tree, depth + 1, j, k, near)


@inner
def _list_arms(view, s, depth):
    """List the arms of the pairs at a depth as those to be drawn."""
    tree, found = view.tree, view.tree.unresolved
    if tree.frame[depth, LISTED] == ALL:
        _list_alive(view, s, depth)
        return
    for k in range(found.shape[0]):
        found[k] = False
    for p in range(tree.frame[depth, LISTED]):
        j, k, _ = _pair_at(tree, depth, p)
        found[j] = found[k] = True
    count = 0
    for k in range(found.shape[0]):
        if found[k]:
            tree.drawn[depth, count] = k
            count += 1
    tree.frame[depth, DRAWN] = count


# ---- decisions ---------------------------------------------------------------------------------


@inner
def _decide(view, s, n):
    """Decide, after new pairs of which one arm beats the other."""
    rule, marks = view.schedules.rule, view.tree.marks
    alive, won = view.schedules.eliminated_at[s], view.ledger.won
    arms, state = alive.shape[0], view.schedules.state[s]
    wanted = rule.count
    for k in range(arms):
        marks[k] = 0
        wanted -= state[ACCEPTED + k]
    left, first = np.int64(0), np.int64(-1)
    for k in range(arms):
        if alive[k] == NEVER:
            leaders, led = 0, 0
            for j in range(arms):
                if alive[j] == NEVER:
                    leaders += won[0, j, k]
                    led += won[0, k, j]
            if leaders >= wanted:
                marks[k] = REJECT
            if rule.kind == TOP and led >= state[ALIVE] - wanted:
                marks[k] = ACCEPT
            left += marks[k] == 0
            first = np.int64(k) if first < 0 else first
    if left == 0 and rule.kind != TOP:  # the good event does not hold: any arm will do
        marks[first] = 0
    if rule.kind == EPS:
        _accept_near(alive, won[1], marks)
    carry_out(rule, view.schedules, view.senders, marks, s, n)


@inner
def _accept_near(alive, won, marks):
    """Accept the first arm that is left alone, or beats all others with the slack."""
    for i in range(alive.shape[0]):
        if alive[i] == NEVER and marks[i] == 0:
            wins = True
            for k in range(alive.shape[0]):
                if k != i and alive[k] == NEVER and marks[k] == 0:
                    wins &= won[i, k]
            if wins:
                for k in range(alive.shape[0]):
                    marks[k] = ACCEPT if k == i else REJECT
                return


# ---- trials ------------------------------------------------------------------------------------


@inlined
def _run_server(problem, times, space, trial, q):
    """Run the passes of the server for question q, one for each schedule."""
    held, rules, questions = space.trial, problem.local_radius, problem.questions
    view = View(
        problem.rewards,
        held.rewards,
        by_reference(server_scope(questions, problem.seed, trial, q)),
        held.walks,
        held.tree,
        by_reference(server_schedules(problem, times, held, q)),
        questions.candidates[q],
        questions.senders[q],
        problem.skip,
        Link(problem.uplink, held.received),
        rules,
        space.ledger,
        rules.levels[q],
        rules.weights[q],
        rules.shares[q],
        False,
    )
    for s in range(times.times.shape[0]):
        run_pass(by_reference(view), np.int64(s))


@inlined
def _run_client(problem, every_step, space, trial, i, m, rows):
    """Run the pass of a client, and keep what it declares; return its certificates."""
    held, rules, questions = space.trial, problem.local_radius, problem.questions
    schedules = by_reference(client_schedules(problem, every_step, held, m))
    view = View(
        problem.rewards,
        held.rewards,
        by_reference(client_scope(questions, problem.seed, trial, m)),
        held.walks,
        held.tree,
        schedules,
        questions.client_arms[m],
        questions.one_each,
        problem.skip,
        Link(problem.uplink, held.received),
        rules,
        space.ledger,
        rules.client_level,
        rules.weights[0],
        rules.shares[0],
        True,
    )
    run_pass(by_reference(view), np.int64(0))
    note_answer(problem.goal, schedules.state, held, m, i, rows)
    for k in range(held.local_eliminated_at.shape[0]):
        held.local_eliminated_at[k, m] = schedules.eliminated_at[0, k]
    return schedules.state[0, CERTIFICATES]


@entry_point
def run_betting_trials(
    problem: Problem,
    every_step: Times,
    times: Times,
    limits: Limits,
    space: BettingSpace,
    rows: Rows,
    control: Control,
    first: Int,
) -> None:
    """Run the trials first, first + 1, ... into rows 0, 1, ..., as `trials.run_trials` does."""
    problem, space, rows = by_reference(problem), by_reference(space), by_reference(rows)
    every_step, times, limits = by_reference(every_step), by_reference(times), by_reference(limits)
    held, questions = space.trial, problem.questions
    arms, clients = held.local_eliminated_at.shape
    for i in range(rows.ints.shape[1]):
        if control.stop[0] != 0:
            return
        trial = first + i
        for k in range(arms):
            for m in range(clients):
                held.walks.known[k, m] = 0
        held.walks.work[0] = held.walks.work[1] = 0
        for q in range(questions.weights.shape[0]):
            _run_server(problem, times, space, trial, np.int64(q))
        if questions.weights.shape[0] > 1:
            combine(questions, times, held.state, held.eliminated_at)
        certificates = np.int64(0)
        if questions.local:
            for m in range(clients):
                certificates += _run_client(problem, every_step, space, trial, i, np.int64(m), rows)
        server = by_reference(server_schedules(problem, times, held, np.int64(0)))
        for s in range(times.times.shape[0]):
            bits = uplinks.bits_sent(problem.uplink, server, s)
            write_row(s, i, problem, times, limits, held, bits, rows)
            write_answers(s, i, held.state, rows)
            used = certificates + held.state[0, s, CERTIFICATES]
            rows.skip_error[s, i] = SKIP_TOLERANCE * float(used)
            rows.draws[s, i] = held.walks.work[1]
        if rows.local_eliminated_at.shape[0] > 0:
            keep_departures(i, held, rows)
        rows.work[i, 0], rows.work[i, 1] = held.walks.work[0], held.walks.work[1]
        control.done[0] += 1
