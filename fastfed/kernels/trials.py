"""Many independent trials: one local pass per client, one server pass for all schedules, rows.

A client's eliminations read only its own walks and the server's only the sums over clients, so
the two kinds of pass are independent given the walks, and arm k of client m is pulled
max(T_local[k, m], T_global[k]) times. All schedules of a trial see the same walks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fastfed import radius
from fastfed.kernels.boundary import tabulate_logs
from fastfed.kernels.compiling import entry_point, inner
from fastfed.kernels.elimination import run_pass
from fastfed.kernels.laws.counts import count_walk_value
from fastfed.kernels.laws.walk import walk_value
from fastfed.kernels.memory import ROUNDS as TALKED
from fastfed.kernels.memory import SAFE_PAIRS, SKIP_TOLERANCE, WINNER
from fastfed.kernels.memory import UPLINKS as SENT

(PULLS, UPLINKS, ROUNDS, STEPS, LOCAL_STEPS, GLOBAL_STEPS, GLOBAL_ARM, LOCAL_ERRORS, CORRECT,
 TRUNCATED) = range(10)
COLUMNS = 10


class Goal(NamedTuple):
    """The right answers, and where a trial is cut off."""

    local_best: Any  # (M,)
    global_best: Any
    max_steps: Any
    horizon: Any  # (S,) where an undecided schedule is given up: its last time, or max_steps


class Rows(NamedTuple):
    """What the trials leave behind, indexed by position in the range of trials."""

    ints: Any  # (S, trials, COLUMNS)
    skip_error: Any  # (S, trials)
    pulls: Any  # (S, trials, K, M) pulls of each arm at each client; (0, 0, 0, 0) if not kept
    work: Any  # (trials, 2) intervals looked at, variates drawn


class Control(NamedTuple):
    """Shared with the caller's thread while the kernel runs without the GIL."""

    stop: Any  # (1,) not zero: leave after the current trial
    done: Any  # (1,) trials finished


class Times(NamedTuple):
    """When each of S schedules talks, as `elimination` reads it."""

    plan: Any  # (S, 4)
    listed: Any  # all listed times, one schedule after the other


@inner
def _write_row(s, i, goal, local_out, winners, safe_pairs, state, out_at, rows):
    """Row i of schedule s. A trial that cannot end, or is not followed to its end, is cut off at
    its horizon: what was spent until then counts, who has not declared by then has not declared."""
    arms, clients = local_out.shape
    winner = state[s, WINNER]
    horizon = goal.max_steps if winner >= 0 else goal.horizon[s]
    keep = rows.pulls.shape[0] > 0
    pulls = 0
    steps = 0
    local_steps = 0
    wrong = 0
    undeclared = 0
    for m in range(clients):
        declared = 0
        for k in range(arms):
            declared = max(declared, local_out[k, m])
            count = min(max(local_out[k, m], out_at[s, k]), horizon)
            pulls += count
            steps = max(steps, count)
            if keep:
                rows.pulls[s, i, k, m] = count
        local_steps = max(local_steps, min(declared, horizon))
        if declared > horizon:
            undeclared += 1
        elif winners[m] != goal.local_best[m]:
            wrong += 1
    global_steps = 0
    for k in range(arms):
        global_steps = max(global_steps, min(out_at[s, k], horizon))
    right = wrong == 0 and undeclared == 0 and winner == goal.global_best
    rows.ints[s, i, PULLS] = pulls
    rows.ints[s, i, UPLINKS] = state[s, SENT]
    rows.ints[s, i, ROUNDS] = state[s, TALKED]
    rows.ints[s, i, STEPS] = steps
    rows.ints[s, i, LOCAL_STEPS] = local_steps
    rows.ints[s, i, GLOBAL_STEPS] = global_steps
    rows.ints[s, i, GLOBAL_ARM] = winner
    rows.ints[s, i, LOCAL_ERRORS] = wrong
    rows.ints[s, i, CORRECT] = 1 if right else 0
    rows.ints[s, i, TRUNCATED] = 1 if undeclared > 0 or winner < 0 else 0
    rows.skip_error[s, i] = SKIP_TOLERANCE * float(safe_pairs + state[s, SAFE_PAIRS])


def _sources() -> int:
    """A number that changes with any source that the compiled kernels are made of."""
    digest = hashlib.sha256()
    for path in [Path(radius.__file__), *sorted(Path(__file__).parent.rglob("*.py"))]:
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:7], "big")


def _compiled(
    sources: int,
) -> tuple[Callable[..., None], Callable[..., float], Callable[..., float]]:
    """The entry points. Numba's disk cache looks only at the file that a function stands in;
    `sources`, a closure variable and so part of the cache's key, makes it look at them all."""

    @entry_point
    def run_trials(problem, values, every, times, goal, first, space, rows, control):
        """Trials first, first + 1, ... into rows 0, 1, ..., as many as `rows` holds."""
        _ = sources
        arms, clients = problem.means.shape
        schedules = times.plan.shape[0]
        local_state, local_out_at = space.local_state, space.local_out_at
        state, out_at = space.state, space.out_at
        local_out, winners = space.local_out, space.winners
        tabulate_logs(space.local_logs, problem.local_log)
        tabulate_logs(space.global_logs, problem.global_log)
        for i in range(rows.ints.shape[1]):
            if control.stop[0] != 0:
                return
            trial = first + i
            for k in range(arms):
                for m in range(clients):
                    space.known[k, m] = 0
            space.work[0] = space.work[1] = 0
            safe_pairs = np.int64(0)
            for m in range(clients):
                run_pass(problem, values, every.plan, every.listed, trial, m, m + 1,
                         problem.local_log, space.local_logs, space, local_state, local_out_at)
                for k in range(arms):
                    local_out[k, m] = local_out_at[0, k]
                winners[m] = local_state[0, WINNER]
                safe_pairs += local_state[0, SAFE_PAIRS]
            run_pass(problem, values, times.plan, times.listed, trial, np.int64(0), clients,
                     problem.global_log, space.global_logs, space, state, out_at)
            if arms == 1:  # Algorithm 1 never pulls a lone arm (line 5), it only declares it
                for m in range(clients):
                    local_out[0, m] = winners[m] = 0
                for s in range(schedules):
                    out_at[s, 0] = state[s, WINNER] = 0
            for s in range(schedules):
                _write_row(s, i, goal, local_out, winners, safe_pairs, state, out_at, rows)
            rows.work[i, 0], rows.work[i, 1] = space.work[0], space.work[1]
            control.done[0] += 1

    @entry_point
    def value(seed, trial, arm, client, n, mu, sigma):
        """X(n) of one Gaussian walk."""
        _ = sources
        return walk_value(seed, trial, arm, client, n, mu, sigma)

    @entry_point
    def count_value(seed, trial, arm, client, n, values, shares, scratch, steps):
        """X(n) of one walk with finite support; shares (V,), scratch (4, V) int64, steps
        (STRETCH,)."""
        _ = sources
        return count_walk_value(seed, trial, arm, client, n, values, shares, scratch, steps)

    return run_trials, value, count_value


run_trials, value, count_value = _compiled(_sources())
