"""A goal as kernels read it: its rule at one client or in one question, and the errors of answers.

The kind of a goal is a number at run time, so the same compiled code serves all goals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.memory import ACCEPTED, WINNER, Flag, Flags, Floats, Int, Ints

BEST, TOP, EPS, THRESHOLD = range(4)


class Goal(NamedTuple):
    """The goal of all clients and of the server, with the right answers."""

    kind: Int
    # answers have so many arms or more, and with so few arms nothing is pulled: N of `top`, 1 of
    # `best` and `eps`, 0 of `threshold`
    count: Int
    client_ties: Ints  # (M, K) arms of equal number tie at a client,
    server_ties: Ints  # (Q, K) and in a question of the server: see `schedules.conclude`
    client_tau: Floats  # (M, K) of `threshold`, less the origin of the rewards,
    server_tau: Floats  # (Q, K) and times the weights of the arm, summed over clients
    client_slack: Any  # E of `eps` and `threshold`,
    server_slack: Floats  # (Q,) and times the sum of the weights
    client_must: Flags  # (M, K) the arms that a right answer has,
    client_must_not: Flags  # (M, K) and those that it does not have
    server_must: Flags  # (Q, K)
    server_must_not: Flags  # (Q, K)


class Rule(NamedTuple):
    """A goal as one client, or the server, follows it."""

    kind: Int
    count: Int
    ties: Ints  # (K,)
    tau: Floats  # (K,)
    slack: Any


@inlined
def client_rule(goal: Goal, m: Int) -> Rule:
    """Return the rule by which client m decides."""
    return Rule(goal.kind, goal.count, goal.client_ties[m], goal.client_tau[m], goal.client_slack)


@inlined
def server_rule(goal: Goal, q: Int) -> Rule:
    """Return the rule by which the server decides question q."""
    return Rule(
        goal.kind, goal.count, goal.server_ties[q], goal.server_tau[q], goal.server_slack[q]
    )


@inlined
def client_errs(goal: Goal, m: Int, state: Ints) -> Flag:
    """Tell whether the answer of client m is wrong; ``state`` is that of its pass, one row."""
    return _errs(goal.kind, state[0], goal.client_must[m], goal.client_must_not[m])


@inlined
def server_errs(goal: Goal, q: Int, s: Int, state: Ints) -> Flag:
    """Tell whether the server's answer to question q with schedule s is wrong.

    ``state`` is the state of the schedules after the pass of that question.
    """
    return _errs(goal.kind, state[s], goal.server_must[q], goal.server_must_not[q])


@inner
def _errs(kind, state, must, must_not):
    if kind in (BEST, EPS):
        return state[WINNER] < 0 or must_not[state[WINNER]]
    for k in range(must.shape[0]):
        if state[ACCEPTED + k] == 1:
            if must_not[k]:
                return True
        elif must[k]:
            return True
    return False


@inlined
def most_certificates(kind: Int, arms: Int) -> Int:
    """Return the largest number of certificates that a pass of so many arms has in an interval."""
    if kind == THRESHOLD:
        return 2 * arms
    pairs = arms * (arms - 1)
    # below g, and rivals that hold a leader back or all below h
    return 2 * pairs + arms if kind == EPS else pairs
