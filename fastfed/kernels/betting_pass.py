"""Trials of the radius `betting`: passes of the server and of the clients, then rows.

A pass compares the capitals of pairs (`betting`) at its communication times; a client compares at
every step. It goes through the same intervals as the pass of `elimination`: an interval in which
every pair is certified not to reach its level is skipped, another one is split. The centres of the
capitals change at the first comparison at or after each power of two. In the server's pass this
comparison may lie inside an octave, and the interval is then split down to it with all arms. The
centres depend on the schedule, so each schedule has a pass of its own. Clients are followed to
their end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels import schedules as times_of
from fastfed.kernels.betting import (
    ALL,
    CHANGE_AT,
    EPS,
    TOP,
    Ledger,
    beats,
    begin,
    certified_together,
    fill_logs,
    line_up,
    make_ledger,
    recentre,
    terms_of,
)
from fastfed.kernels.compiling import entry_point, inlined, inner
from fastfed.kernels.extremes import larger
from fastfed.kernels.goals import hooks as goals
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
    MIDDLE,
    NEVER,
    NEXT,
    NOBODY,
    ORIGIN,
    RIGHT,
    SENT,
    SKIP_TOLERANCE,
    SPINE,
    SPINE_DECIDES,
    STEP,
    TIMES_USED,
    WINNER,
    A,
    B,
    Int,
    Schedules,
    Space,
    make_space,
)
from fastfed.kernels.rewards import hooks
from fastfed.kernels.rewards.counts import shuffle_steps, weigh
from fastfed.kernels.server_questions import client_scope, combine, server_scope
from fastfed.kernels.trials import (
    Control,
    Limits,
    Problem,
    Rows,
    Times,
    _keep_departures,
    _write_answers,
    _write_row,
)
from fastfed.kernels.tuple_references import by_reference
from fastfed.kernels.uplinks import hooks as uplinks


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
    rules: Any
    ledger: Any
    ties: Any
    candidates: Any  # (K,) the arms in question,
    senders: Any  # (K,) and the number of clients that send for each
    level: Any
    weights: Any  # (K, M), of no meaning to a client
    shares: Any
    local: Any


def make_betting_space(problem: Any, arms: int, clients: int, schedules: int) -> BettingSpace:
    """Make the memory for trials of a `trials.Problem` whose radius is `betting.Bets`."""
    trial = make_space(problem, arms, clients, schedules)
    slots = STEP + problem.rewards.longest_walk + 1
    return BettingSpace(trial, make_ledger(problem.local_radius, slots, arms, clients))


# ---- a pass ------------------------------------------------------------------------------------


@inner
def run_pass(view, s, skip):
    """Eliminate arms until schedule s has declared or has no communication time left."""
    frame, state, ledger = view.tree.frame, view.schedules.state, view.ledger
    if not _begin(view, s):
        return
    begin(view, s)
    frame[0, B], frame[0, RIGHT] = 0, ORIGIN
    for level in range(SPINE):
        if state[s, NEXT] == NEVER:
            return
        _list_alive(view, s, np.int64(0))
        frame[0, A], frame[0, LEFT] = frame[0, B], frame[0, RIGHT]
        frame[0, B], frame[0, RIGHT] = np.int64(1) << level, level
        hooks.extend_spine(view.rewards, view.memory, view.scope, view.walks, view.tree, level)
        ledger.listed[0] = ALL
        if state[s, NEXT] < ledger.marks[CHANGE_AT]:
            fill_logs(view, s, frame[0, B], frame[0, RIGHT], np.int64(0))
        depth = np.int64(0)
        while True:
            if _must_open(view, s, depth, skip):
                if frame[depth, B] - frame[depth, A] > hooks.leaf(view.rewards):
                    _split(view, s, depth)
                    depth += 1
                    continue
                _walk(view, s, depth)
            depth = _next_interval(frame, depth)
            if depth == 0:
                break


@inner
def _begin(view, s):
    """Put a schedule before its first time, with all arms alive; False: nothing is to be done."""
    state, eliminated_at = view.schedules.state, view.schedules.eliminated_at
    alive, last = np.int64(0), np.int64(NOBODY)
    for k in range(eliminated_at.shape[1]):
        eliminated_at[s, k] = NEVER if view.candidates[k] else 0
        state[s, ACCEPTED + k] = 0
        if view.candidates[k]:
            alive, last = alive + 1, np.int64(k)
    times_of.begin(s, view.schedules)
    state[s, ALIVE], state[s, WINNER] = alive, NOBODY
    for column in (SENT, TIMES_USED, CERTIFICATES, ABANDONED, BITS, DRAWS):
        state[s, column] = 0
    state[s, SPINE_DECIDES] = NEVER
    top = view.rules.goal == TOP
    if alive > (view.rules.wanted if top else 1):
        return True
    for k in range(eliminated_at.shape[1]):  # all arms are declared without a pull
        eliminated_at[s, k] = 0
        state[s, ACCEPTED + k] = 1 if top and view.candidates[k] else 0
    state[s, WINNER], state[s, NEXT] = A_SET if top else last, NEVER
    return False


@inner
def _messages(view, s):
    """Count the messages of a communication round."""
    count = np.int64(0)
    for k in range(view.senders.shape[0]):
        if view.schedules.eliminated_at[s, k] == NEVER:
            count += view.senders[k]
    return count


@inner
def _list_alive(view, s, depth):
    """List the undecided arms as those to be drawn at a depth."""
    tree, alive = view.tree, view.schedules.eliminated_at[s]
    count = 0
    for k in range(alive.shape[0]):
        if alive[k] == NEVER:
            tree.drawn[depth, count] = k
            count += 1
    tree.frame[depth, DRAWN] = count


@inlined
def _next_interval(frame, depth):
    """Open the interval that follows the one at ``depth``, and return its depth; 0: none does."""
    b = frame[depth, B]
    while depth > 0 and frame[depth, IS_RIGHT] == 1:
        depth -= 1
    if depth > 0:
        frame[depth, A], frame[depth, LEFT] = b, frame[depth, RIGHT]
        frame[depth, B], frame[depth, RIGHT] = frame[depth - 1, B], frame[depth - 1, RIGHT]
        frame[depth, IS_RIGHT] = 1
    return depth


@inner
def _must_open(view, s, depth, skip):
    """Settle an interval, or list at depth + 1 what has to be looked at inside."""
    frame, state, ledger = view.tree.frame, view.schedules.state, view.ledger
    b = frame[depth, B]
    if state[s, NEXT] > b:
        return False
    view.walks.work[0] += 1
    if state[s, NEXT] == b:
        _compare(view, s, b, frame[depth, RIGHT], depth, depth)
        return False
    if state[s, NEXT] >= ledger.marks[CHANGE_AT]:  # the centres change inside
        ledger.listed[depth + 1] = ALL
        _list_alive(view, s, depth + 1)
        return True
    if not skip:
        ledger.listed[depth + 1] = ALL
        _list_alive(view, s, depth + 1)
        return True
    if _list_unresolved(view, s, depth) > 0:
        _list_arms(view, depth + 1)
        return True
    if b < ledger.marks[CHANGE_AT]:
        times_of.communicate_through(s, b, _messages(view, s), view.schedules)
        return False
    times_of.communicate_through(s, b - 1, _messages(view, s), view.schedules)
    if state[s, NEXT] == b:
        times_of.communicate(s, b, _messages(view, s), view.schedules)
        recentre(view, s, b, frame[depth, RIGHT])
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
    if view.schedules.state[s, NEXT] < view.ledger.marks[CHANGE_AT]:
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
def _pair(code, arms):
    """Return the pair (j, k) of a code, and whether it is the one with the slack."""
    near = code & 1
    code >>= 1
    j = code // arms
    return j, code - j * arms, near


@inlined
def _is_open(view, s, j, k, near):
    """Tell whether it is still to be found out if arm j beats arm k, or nearly does."""
    ledger, alive = view.ledger, view.schedules.eliminated_at[s]
    if j == k or alive[j] < NEVER or alive[k] < NEVER:
        return False
    return not (ledger.nearly[j, k] if near == 1 else ledger.beaten[j, k])


@inlined
def _begin_of(view, near):
    """Return the place of the capitals of bets that rewards are low."""
    return (1 + near) * view.rules.bets.shape[0]


@inner
def _compare(view, s, n, slot, listed, below):
    """Hold the communication round at n: compare the pairs that are listed at a depth.

    If the centres change, the capitals at the right ends of intervals above ``below`` do, too.
    """
    ledger, arms = view.ledger, view.schedules.eliminated_at.shape[1]
    times_of.communicate(s, n, _messages(view, s), view.schedules)
    if n >= ledger.marks[CHANGE_AT]:
        fill_logs(view, s, n, slot, listed)
    found = False
    if ledger.listed[listed] == ALL:
        drawn, count = view.tree.drawn[listed], view.tree.frame[listed, DRAWN]
        for i in range(count):
            for r in range(count):
                if i != r:
                    for near in range(2 if view.rules.goal == EPS else 1):
                        pair = np.int64(drawn[i]), np.int64(drawn[r])
                        found |= _compare_pair(view, s, slot, pair[0], pair[1], near)
    else:
        for i in range(ledger.listed[listed]):
            j, k, near = _pair(np.int64(ledger.pairs[listed, i]), arms)
            found |= _compare_pair(view, s, slot, j, k, near)
    if found:
        _decide(view, s, n)
    if n >= ledger.marks[CHANGE_AT] and view.schedules.state[s, NEXT] < NEVER:
        recentre(view, s, n, slot)
        for depth in range(below):
            fill_logs(view, s, view.tree.frame[depth, B], view.tree.frame[depth, RIGHT], depth)


@inner
def _compare_pair(view, s, slot, j, k, near):
    """Note it if arm j beats arm k, or nearly does; tell whether it does."""
    if not _is_open(view, s, j, k, near):
        return False
    found = beats(view.ledger, slot, j, k, _begin_of(view, near), view.level)
    if found:
        if near == 1:
            view.ledger.nearly[j, k] = True
        else:
            view.ledger.beaten[j, k] = True
    return found


@inner
def _list_unresolved(view, s, depth):
    """List at depth + 1 the pairs that are not certified; return their number.

    First all arms that may beat an arm are taken together, then pair by pair.
    """
    tree, ledger, frame = view.tree, view.ledger, view.tree.frame
    least, slack = hooks.certificate_bound(
        view.rewards, view.memory, view.scope, view.walks, tree, depth
    )
    terms = terms_of(view, frame[depth, LEFT], frame[depth, RIGHT], least, slack)
    ledger.listed[depth + 1] = 0
    if ledger.listed[depth] == ALL:
        _list_from_all(view, s, terms, depth)
    else:
        _list_from_pairs(view, s, terms, depth)
    return ledger.listed[depth + 1]


@inner
def _list_from_all(view, s, terms, depth):
    """List from all pairs of the arms that are drawn."""
    rivals = view.ledger.rivals
    drawn, count = view.tree.drawn[depth], view.tree.frame[depth, DRAWN]
    for near in range(2 if view.rules.goal == EPS else 1):
        for r in range(count):
            k, opened = np.int64(drawn[r]), np.int64(0)
            for i in range(count):
                if _is_open(view, s, np.int64(drawn[i]), k, near):
                    rivals[opened] = drawn[i]
                    opened += 1
            _list_rivals(view, s, terms, depth, opened, k, near)


@inner
def _list_from_pairs(view, s, terms, depth):
    """List from the pairs of an interval; those of one eliminated arm follow each other."""
    ledger, arms = view.ledger, view.schedules.eliminated_at.shape[1]
    pairs, count = ledger.pairs[depth], ledger.listed[depth]
    first = np.int64(0)
    while first < count:
        _, k, near = _pair(np.int64(pairs[first]), arms)
        opened = np.int64(0)
        while first < count:
            j, other, kind = _pair(np.int64(pairs[first]), arms)
            if other != k or kind != near:
                break
            if _is_open(view, s, j, k, near):
                ledger.rivals[opened] = j
                opened += 1
            first += 1
        _list_rivals(view, s, terms, depth, opened, k, near)


@inner
def _list_rivals(view, s, terms, depth, opened, k, near):
    """List the rivals of arm k at depth + 1, but for the weakest ones that are certified together.

    How many these are is found by bisection.
    """
    if opened == 0:
        return
    ledger, variance = view.ledger, view.tree.variance
    rivals, begin = ledger.rivals, _begin_of(view, near)
    line_up(ledger, terms, opened, k, begin)
    widest = 0.0
    for i in range(opened):
        widest = larger(widest, variance[rivals[i]])
    spread = widest, variance[k]
    safe, unsafe = opened, opened
    if not certified_together(ledger, terms, opened, k, begin, spread):
        safe = np.int64(0)
        while unsafe - safe > 1:
            middle = (safe + unsafe) // 2
            if certified_together(ledger, terms, middle, k, begin, spread):
                safe = middle
            else:
                unsafe = middle
    view.schedules.state[s, CERTIFICATES] += safe
    arms, place = view.schedules.eliminated_at.shape[1], ledger.listed[depth + 1]
    for i in range(safe, opened):
        ledger.pairs[depth + 1, place] = 2 * (rivals[i] * arms + k) + near
        place += 1
    ledger.listed[depth + 1] = place


@inner
def _list_arms(view, depth):
    """List the arms of the pairs at a depth as those to be drawn."""
    tree, ledger, gone = view.tree, view.ledger, view.ledger.gone
    arms = gone.shape[0]
    for k in range(arms):
        gone[k] = False
    for i in range(ledger.listed[depth]):
        j, k, _ = _pair(np.int64(ledger.pairs[depth, i]), arms)
        gone[j] = gone[k] = True
    count = 0
    for k in range(arms):
        if gone[k]:
            tree.drawn[depth, count] = k
            count += 1
    tree.frame[depth, DRAWN] = count


# ---- decisions ---------------------------------------------------------------------------------


@inner
def _decide(view, s, n):
    """Decide, after new pairs of which one arm beats the other."""
    if view.rules.goal == TOP:
        _decide_top(view, s, n)
        return
    ledger, state, out = view.ledger, view.schedules.state, view.schedules.eliminated_at[s]
    gone, arms = ledger.gone, out.shape[0]
    left, first = 0, np.int64(-1)
    for k in range(arms):
        gone[k] = False
        if out[k] == NEVER:
            for j in range(arms):
                gone[k] |= out[j] == NEVER and ledger.beaten[j, k]
            left += 0 if gone[k] else 1
            first = np.int64(k) if first < 0 else first
    if left == 0:  # the good event does not hold: any arm will do
        gone[first] = False
    fewer = False
    for k in range(arms):
        if out[k] == NEVER and gone[k]:
            out[k] = n
            state[s, ALIVE] -= 1
            fewer = True
    winner = _winner(view, s)
    if winner >= 0:
        for k in range(arms):
            out[k] = n if out[k] == NEVER else out[k]
        state[s, ALIVE], state[s, WINNER], state[s, NEXT] = 1, winner, NEVER
    elif view.rules.goal != EPS and fewer and _all_tie(view, s):
        state[s, ABANDONED], state[s, NEXT] = n, NEVER


@inner
def _winner(view, s):
    """Return the first arm that is alone, or nearly beats all others; -1: there is none."""
    out, ledger = view.schedules.eliminated_at[s], view.ledger
    arms = out.shape[0]
    for i in range(arms):
        if out[i] == NEVER:
            wins = True
            for k in range(arms):
                if k != i and out[k] == NEVER:
                    wins &= view.rules.goal == EPS and ledger.nearly[i, k]
            if wins:
                return np.int64(i)
    return np.int64(-1)


@inner
def _all_tie(view, s):
    """Tell whether all undecided arms tie: see `schedules.conclude`."""
    out = view.schedules.eliminated_at[s]
    last = -1
    for k in range(out.shape[0]):
        if out[k] == NEVER:
            if last >= 0 and view.ties[k] != view.ties[last]:
                return False
            last = k
    return True


@inner
def _decide_top(view, s, n):
    """Accept and reject, all at once, from the state before: see `model.goals.top`."""
    ledger, state, out = view.ledger, view.schedules.state, view.schedules.eliminated_at[s]
    arms = out.shape[0]
    wanted = view.rules.wanted
    for k in range(arms):
        wanted -= state[s, ACCEPTED + k]
    others = state[s, ALIVE] - wanted
    found = False
    for k in range(arms):
        ledger.gone[k] = False
        if out[k] == NEVER:
            leaders, led = 0, 0
            for j in range(arms):
                if out[j] == NEVER:
                    leaders += 1 if ledger.beaten[j, k] else 0
                    led += 1 if ledger.beaten[k, j] else 0
            ledger.gone[k] = leaders >= wanted or led >= others
            state[s, ACCEPTED + k] = 1 if led >= others else 0
            found |= ledger.gone[k]
    if not found:
        return
    wanted = view.rules.wanted
    for k in range(arms):
        if ledger.gone[k]:
            out[k] = n
            state[s, ALIVE] -= 1
        wanted -= state[s, ACCEPTED + k]
    if 0 < wanted < state[s, ALIVE]:
        if _all_tie(view, s):
            state[s, ABANDONED], state[s, NEXT] = n, NEVER
        return
    for k in range(arms):
        if out[k] == NEVER:
            out[k] = n
            state[s, ACCEPTED + k] = 1 if wanted > 0 else 0
    state[s, WINNER], state[s, NEXT] = A_SET, NEVER


# ---- trials ------------------------------------------------------------------------------------


@inlined
def _server_view(problem, times, space, trial, q):
    """Return the view of the server's pass for question q."""
    held, rules = space.trial, problem.local_radius
    return View(
        problem.rewards,
        held.rewards,
        server_scope(problem.questions, problem.seed, trial, q),
        held.walks,
        held.tree,
        Schedules(
            times.times,
            times.listed,
            held.state[q],
            held.eliminated_at[q],
            goals.at_server(problem.goal, held.notes, q),
            times.chosen,
        ),
        rules,
        space.ledger,
        rules.server_ties[q],
        problem.questions.candidates[q],
        problem.questions.senders[q],
        rules.levels[q],
        rules.weights[q],
        rules.shares[q],
        False,
    )


@inlined
def _client_view(problem, every_step, space, trial, m):
    """Return the view of client m's pass."""
    held, rules = space.trial, problem.local_radius
    return View(
        problem.rewards,
        held.rewards,
        client_scope(problem.questions, problem.seed, trial, m),
        held.walks,
        held.tree,
        Schedules(
            every_step.times,
            every_step.listed,
            held.client_state,
            held.client_eliminated_at,
            goals.at_client(problem.goal, held.notes, m),
            every_step.chosen,
        ),
        rules,
        space.ledger,
        rules.local_ties[m],
        problem.questions.client_arms[m],
        problem.questions.one_each,
        rules.client_level,
        rules.weights[0],
        rules.shares[0],
        True,
    )


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
            server = by_reference(_server_view(problem, times, space, trial, np.int64(q)))
            for s in range(times.times.shape[0]):
                run_pass(server, np.int64(s), problem.skip)
        if questions.weights.shape[0] > 1:
            combine(questions, times, held.state, held.eliminated_at)
        certificates = np.int64(0)
        if questions.local:
            for m in range(clients):
                certificates += _run_client(problem, every_step, space, trial, i, m, rows)
        server = by_reference(_server_view(problem, times, space, trial, np.int64(0)))
        for s in range(times.times.shape[0]):
            bits = uplinks.bits_sent(problem.uplink, server.schedules, s)
            _write_row(s, i, problem, times, limits, held, bits, rows)
            _write_answers(s, i, held.state, rows)
            used = certificates + held.state[0, s, CERTIFICATES]
            rows.skip_error[s, i] = SKIP_TOLERANCE * float(used)
            rows.draws[s, i] = held.walks.work[1]
        if rows.local_eliminated_at.shape[0] > 0:
            _keep_departures(i, held, rows)
        rows.work[i, 0], rows.work[i, 1] = held.walks.work[0], held.walks.work[1]
        control.done[0] += 1


@inlined
def _run_client(problem, every_step, space, trial, i, m, rows):
    """Run the pass of a client, and keep what it declares; return its certificates."""
    held, m = space.trial, np.int64(m)
    client = by_reference(_client_view(problem, every_step, space, trial, m))
    run_pass(client, np.int64(0), problem.skip)
    state = held.client_state
    held.winners[m] = state[0, WINNER]
    held.wrong[m] = 1 if goals.client_errs(problem.goal, m, state) else 0
    held.local_abandoned_at[m] = state[0, ABANDONED]
    for k in range(held.local_eliminated_at.shape[0]):
        held.local_eliminated_at[k, m] = held.client_eliminated_at[0, k]
        if rows.local_accepted.shape[0] > 0:
            rows.local_accepted[i, k, m] = state[0, ACCEPTED + k] == 1
    return state[0, CERTIFICATES]
