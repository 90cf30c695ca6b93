"""Phases: federated Track-and-Stop, whose rounds follow T* for the means seen so far.

The first round pulls every arm n_0 times, the least n after which a gap of 2 sigma could be proven.
After each round the leader of every open question (a client's, the server's) is the arm with the
largest mean of all rewards. A rival that is not yet proven worse needs the information W: the least
with which it would be, if its lead stayed what it is, and at most as much as the pair has, so that
V of a pair is at most doubled by its own need. The next round has the cheapest counts with these
W (`fastfed.model.schedules.allocation`).

The cap is on each pair and not on the pulls of a round: where two rivals tie, a cap on the sum
would starve the best arm.

A rival that is proven worse than the leader is still pulled, so that its pair keeps at least 1/64
of the largest information of its question. Without that a trial might never end: if the best arm
were proven worse than one of two rivals that tie, only these two would be pulled, for ever.

The rule is that of `fastfed.model.schedules.evidence`, which holds however counts are chosen:
delta-PAC. As long as the server's question is open, clients send the mean of every arm that they
pulled in the round: then the server knows all that the allocation needs. Later nothing is sent:
each client's needs concern its own arms only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastfed.model.schedules.algorithm import UNDECIDED, Algorithm
from fastfed.model.schedules.allocation import cheapest
from fastfed.model.schedules.evidence import (
    Boundaries,
    boundaries,
    boundary,
    candidates_of,
    declare,
    declare_lone,
    memory_length,
    wanted_cell,
)

if TYPE_CHECKING:
    from fastfed.model.setting import Setting

STEPS = 40
"""Steps of the solver in a round: the counts are within a few per cent of the optimum."""


LEAST_SHARE = 1.0 / 64.0
"""Share of the largest information of a question that every pair with the leader is to have."""


class Start(NamedTuple):
    """The pulls of every arm in the first round, and the boundaries."""

    first: int
    limits: Boundaries


def missing(lead: float, gap: float, information: float, limits: Any, at_server: int) -> float:
    """Return the information that a pair is to gain in the next round.

    ``lead`` is S and ``information`` is V; the lead would grow by ``gap`` for each unit.
    """
    if lead >= boundary(limits, at_server, information):
        return 0.0
    low, high = 0.0, information
    if lead + gap * high < boundary(limits, at_server, information + high):
        return high
    for _ in range(8):
        middle = 0.5 * (low + high)
        if lead + gap * middle < boundary(limits, at_server, information + middle):
            low = middle
        else:
            high = middle
    return high


class Phases(Algorithm):
    """Track-and-Stop in rounds: the allocation of T* for the means seen so far.

    Examples
    --------
    >>> import fastfed as ff
    >>> done = ff.simulate("synthetic", ["fedelim", "phases"], delta=0.01, trials=50)
    >>> pulls = done.summary(costs=[0])["pulls_mean"]
    >>> bool(3 * pulls[1] < pulls[0])
    True
    """

    family = "phases"
    rank = 120

    def prepare(self, setting: Setting) -> Start:
        limits = boundaries(setting)
        unit = 0.5 / setting.sigma**2  # information of one pull of each of two arms
        first = 1
        while boundary(limits, 0, first * unit) > 2.0 * setting.sigma * first * unit:
            first += 1
        return Start(min(first, setting.last_step), limits)

    def memory(self, arms: int, clients: int) -> int:
        return memory_length(arms, clients)

    @staticmethod
    def decide(seen: Any, answer: Any) -> None:
        arms, clients = seen.counts.shape
        if seen.round == 0:
            declare_lone(seen, answer)
            for k in range(arms):
                for m in range(clients):
                    if wanted_cell(seen, answer, k, m):
                        answer.targets[k, m] = seen.prepared.first
            return
        limits = seen.prepared.limits
        evidence, candidates = declare(seen, answer, limits), candidates_of(seen)
        leaders = np.zeros(clients + 1, np.int64)
        needs = np.zeros((clients + 1, arms))
        values = np.zeros(arms)
        for q in range(clients + 1):
            at_server = 1 if q == clients else 0
            declared = answer.global_arm[0] if q == clients else answer.local_arms[q]
            if declared != UNDECIDED:
                continue
            for k in range(arms):
                values[k] = 0.0 if candidates[q, k] else -np.inf
                for m in range(clients):
                    if q == clients and seen.arm_weights[k, m] > 0.0:
                        values[k] += seen.arm_weights[k, m] * (seen.sums[k, m] / seen.counts[k, m])
                    elif q == m and candidates[q, k]:
                        values[k] = seen.sums[k, m] / seen.counts[k, m]
            leader = np.argmax(values)
            leaders[q] = leader
            for k in range(arms):
                if k != leader and candidates[q, k]:
                    needs[q, k] = missing(
                        evidence[0, q, leader, k],
                        values[leader] - values[k],
                        evidence[1, q, leader, k],
                        limits,
                        at_server,
                    )
            largest = np.max(evidence[1, q, leader])
            for k in range(arms):  # no rival is left behind for ever, or a lost best arm would be
                if (
                    k != leader
                    and candidates[q, k]
                    and LEAST_SHARE * largest > evidence[1, q, leader, k]
                ):
                    needs[q, k] = max(needs[q, k], evidence[1, q, leader, k])
        counts = cheapest(needs, leaders, seen.arm_weights, seen.sigma * seen.sigma, STEPS)
        for k in range(arms):
            for m in range(clients):
                more = math.ceil(min(counts[k, m], seen.limit + 1.0))  # above the limit: the end
                answer.targets[k, m] = seen.counts[k, m] + more
                asked = answer.global_arm[0] == UNDECIDED
                answer.sent[k, m] = asked and seen.arm_weights[k, m] > 0.0
