"""The cheapest counts that give every pair of arms the information that it needs.

Question q (a client's, or the server's) compares its leader with rivals k, which need information
W_qk. In x = 1 / n, with s the variance of a reward, the counts n must satisfy

    s (x_km + x_lm) W_mk <= 1                     at client m with leader l,
    s sum over m of (p_km^2 x_km + p_lm^2 x_lm) W_k <= 1  at the server with leader l,

and the sum of 1 / x is to be least: the programme of `fastfed.theory.gaussian_programme`, with T*
for W = 2 / gap^2. It is solved by the same iteration, without matrices: a step costs as much as
there are rows, at most O(K M).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np


class Programme(NamedTuple):
    """The rows, and lists of the arms that are in them.

    The lists are there because most rows need nothing: in a round of `phases` on `movielens` some
    100 of 780 do, and without the lists a round took 3 times as long.
    """

    needs: Any  # (M + 1, K)
    leaders: Any  # (M + 1,)
    weights: Any  # (K, M) p
    variance: float
    rivals: Any  # (M + 1, K) the arms that need information in a question, in order,
    rivals_of: Any  # (M + 1,) and their number
    used: Any  # (M, K) the arms that are in a row of a client or of the server, in order,
    used_of: Any  # (M,) and their number


def cheapest(needs: Any, leaders: Any, weights: Any, variance: float, steps: int) -> Any:
    """Return counts (K, M) that satisfy all needs, nearly the cheapest.

    ``needs`` is (M + 1, K), the server's in the last row, 0 where nothing is needed; ``leaders``,
    (M + 1,), has the arms that rivals are compared with. ``steps`` is the number of iterations.
    """
    arms, clients = needs.shape[1], needs.shape[0] - 1
    asked = _programme(needs, leaders, weights, variance)
    rivals, rivals_of = asked.rivals, asked.rivals_of
    counts, loads = np.zeros((arms, clients)), np.zeros((clients + 1, arms))
    rows = np.sum(rivals_of)
    if rows == 0:
        return counts
    shares = np.zeros((clients + 1, arms))
    for q in range(clients + 1):
        for i in range(rivals_of[q]):
            shares[q, rivals[q, i]] = 1.0 / rows
    for _ in range(steps):
        _weigh(asked, shares, counts, loads)
        total = 0.0
        for q in range(clients + 1):
            for i in range(rivals_of[q]):
                k = rivals[q, i]
                shares[q, k] *= loads[q, k] * loads[q, k]
                total += shares[q, k]
        for q in range(clients + 1):
            for i in range(rivals_of[q]):
                shares[q, rivals[q, i]] /= total
    _weigh(asked, shares, counts, loads)
    # a cell is raised by the largest load among its rows: then every row holds
    server = clients
    for m in range(clients):
        worst = np.zeros(arms)
        for k in range(arms):
            if weights[k, m] > 0.0:
                worst[k] = loads[server, k]
            worst[k] = max(worst[k], loads[m, k])
        for q in (m, server):
            if q == m or weights[leaders[q], m] > 0.0:
                worst[leaders[q]] = max(worst[leaders[q]], np.max(loads[q]))
        for k in range(arms):
            counts[k, m] *= worst[k]
    return counts


def _programme(needs: Any, leaders: Any, weights: Any, variance: float) -> Any:
    """List the arms that are in the rows."""
    arms, clients = needs.shape[1], needs.shape[0] - 1
    rivals, rivals_of = np.zeros((clients + 1, arms), np.int64), np.zeros(clients + 1, np.int64)
    for q in range(clients + 1):
        for k in range(arms):
            if k != leaders[q] and needs[q, k] > 0.0:
                rivals[q, rivals_of[q]] = k
                rivals_of[q] += 1
    used, used_of = np.zeros((clients, arms), np.int64), np.zeros(clients, np.int64)
    for m in range(clients):
        for k in range(arms):
            inside = False
            for q in (m, clients):
                if rivals_of[q] > 0 and (q == m or weights[k, m] > 0.0):
                    inside = inside or k == leaders[q] or needs[q, k] > 0.0
            if inside:
                used[m, used_of[m]] = k
                used_of[m] += 1
    return Programme(needs, leaders, weights, variance, rivals, rivals_of, used, used_of)


def _weigh(asked: Any, shares: Any, counts: Any, loads: Any) -> None:
    """Set the counts that belong to multipliers of the rows, and the left-hand sides of the rows.

    Cells and rows in which nothing is needed keep their 0.
    """
    needs, leaders, rivals, rivals_of = asked.needs, asked.leaders, asked.rivals, asked.rivals_of
    clients = counts.shape[1]
    server, leader_there = clients, leaders[clients]
    of_leader = 0.0
    for i in range(rivals_of[server]):
        k = rivals[server, i]
        of_leader += shares[server, k] * needs[server, k]
        loads[server, k] = 0.0
    inverse = np.zeros(counts.shape[0])
    for m in range(clients):
        here = 0.0
        for i in range(asked.used_of[m]):
            k = asked.used[m, i]
            mine = shares[m, k] * needs[m, k]
            here += mine
            square = asked.weights[k, m] * asked.weights[k, m]
            counts[k, m] = mine + square * shares[server, k] * needs[server, k]
        counts[leaders[m], m] += here
        of_leader_here = asked.weights[leader_there, m] * asked.weights[leader_there, m]
        counts[leader_there, m] += of_leader_here * of_leader
        for i in range(asked.used_of[m]):
            k = asked.used[m, i]
            counts[k, m] = math.sqrt(asked.variance * counts[k, m])
            inverse[k] = 1.0 / counts[k, m]
        for i in range(rivals_of[m]):
            k = rivals[m, i]
            loads[m, k] = asked.variance * needs[m, k] * (inverse[k] + inverse[leaders[m]])
        for i in range(rivals_of[server]):
            k = rivals[server, i]
            square = asked.weights[k, m] * asked.weights[k, m]
            if square == of_leader_here:
                loads[server, k] += square * (inverse[k] + inverse[leader_there])
            else:
                loads[server, k] += square * inverse[k] + of_leader_here * inverse[leader_there]
    for i in range(rivals_of[server]):
        k = rivals[server, i]
        loads[server, k] *= asked.variance * needs[server, k]
