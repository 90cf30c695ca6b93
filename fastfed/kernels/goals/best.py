"""The goal `best`: Algorithm 1's own rule, by which an arm g or more behind the leader falls."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.boundary import octave, reaches
from fastfed.kernels.communication import conclude
from fastfed.kernels.compiling import inner
from fastfed.kernels.doubt import pairs_in_doubt
from fastfed.kernels.goals import hooks
from fastfed.kernels.laws import hooks as laws
from fastfed.kernels.memory import ALIVE, NEVER, WINNER


class NoNotes(NamedTuple):
    """A goal that needs no memory of its own."""

    nothing: Any


class BestGoal(NamedTuple):
    """The best arm of each client and of the server."""

    local_best: Any  # (M,)
    global_best: Any
    local_ties: Any  # (M, K) arms of equal number tie at a client,
    global_ties: Any  # (K,) and at the server

    def notes(self, arms: int, schedules: int) -> NoNotes:
        return NoNotes(0)


class BestRule(NamedTuple):
    """One client's, or the server's."""

    ties: Any  # (K,) arms of equal number tie: see `communication.conclude`


@hooks.at_client.of(BestGoal)
def _at_client(goal, m):
    return BestRule(goal.local_ties[m])


@hooks.at_server.of(BestGoal)
def _at_server(goal):
    return BestRule(goal.global_ties)


@hooks.client_errs.of(BestGoal)
def _client_errs(goal, m, state):
    return state[0, WINNER] != goal.local_best[m]


@hooks.server_errs.of(BestGoal)
def _server_errs(goal, s, state):
    return state[s, WINNER] != goal.global_best


@hooks.is_open.of(BestRule)
def _is_open(rule, arms):
    return arms > 1


@hooks.decide.of(BestRule)
def _decide(rule, talks, tree, curve, total, here):
    """Algorithm 1, lines 8-15 and 17-25."""
    s, n, g_below, depth, i = here
    arms, out_at = tree.arms[depth, i], talks.out_at
    best = -np.inf
    worst = np.inf
    for j in range(arms[out_at.shape[1]]):
        k = arms[j]
        if out_at[s, k] == NEVER:
            best = max(best, total[k])
            worst = min(worst, total[k])
    if best - worst >= g_below:
        _eliminate(s, n, best, curve, talks, arms, total)


@inner
def _eliminate(s, n, best, curve, talks, arms, total):
    """Every arm whose distance from the leader is g or more is eliminated, all at once."""
    state, out_at = talks.state, talks.out_at
    level = octave(n)
    for j in range(arms[out_at.shape[1]]):
        k = arms[j]
        if out_at[s, k] == NEVER and reaches(curve, best - total[k], n, level):
            out_at[s, k] = n
            state[s, ALIVE] -= 1
    conclude(s, n, talks)


@hooks.doubts.of(BestRule)
def _doubts(rule, test, talks, tree, total, here):
    s, i, depth, slot = here
    return pairs_in_doubt(test, talks, tree, total, s, i, depth, slot)


@hooks.settle_few.of(BestRule)
def _settle_few(rule, law, memory, who, spaces, curve, here):
    walks, tree, talks = spaces
    return laws.settle_few(law, memory, who, walks, tree, talks, curve, here)
