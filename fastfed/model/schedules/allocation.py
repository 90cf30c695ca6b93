"""The cheapest counts that give every pair of arms the information that it needs.

Question q (a client's, or the server's) compares its leader with rivals k, which need information
W_qk. In x = 1 / n, with s the variance of a reward, the counts n must satisfy

    s (x_km + x_lm) W_mk <= 1                     at client m with leader l,
    s sum over m of p_m^2 (x_km + x_lm) W_k <= 1  at the server with leader l,

and the sum of 1 / x is to be least: the programme of `fastfed.theory.gaussian_programme`, with T*
for W = 2 / gap^2. It is solved by the same iteration, without matrices: O(K M) a step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def cheapest(needs: Any, leaders: Any, weights: Any, variance: float, steps: int) -> Any:
    """Return counts (K, M) that satisfy all needs, nearly the cheapest.

    ``needs`` is (M + 1, K), the server's in the last row, 0 where nothing is needed; ``leaders``,
    (M + 1,), has the arms that rivals are compared with.
    """
    arms, clients = needs.shape[1], needs.shape[0] - 1
    shares = np.zeros((clients + 1, arms))
    rows = 0
    for q in range(clients + 1):
        for k in range(arms):
            if k != leaders[q] and needs[q, k] > 0.0:
                shares[q, k] = 1.0
                rows += 1
    counts = np.zeros((arms, clients))
    if rows == 0:
        return counts
    shares /= rows
    loads = np.zeros((clients + 1, arms))
    for _ in range(steps):
        _counts_of(shares, needs, leaders, weights, variance, counts)
        _loads_of(counts, needs, leaders, weights, variance, loads)
        total = 0.0
        for q in range(clients + 1):
            for k in range(arms):
                shares[q, k] *= loads[q, k] * loads[q, k]
                total += shares[q, k]
        shares /= total
    _counts_of(shares, needs, leaders, weights, variance, counts)
    _loads_of(counts, needs, leaders, weights, variance, loads)
    # a cell is raised by the largest load among its rows: then every row holds
    server = clients
    for m in range(clients):
        worst = np.zeros(arms)
        for k in range(arms):
            if weights[m] > 0.0:
                worst[k] = loads[server, k]
            worst[k] = max(worst[k], loads[m, k])
        for q in (m, server):
            if q == m or weights[m] > 0.0:
                worst[leaders[q]] = max(worst[leaders[q]], np.max(loads[q]))
        for k in range(arms):
            counts[k, m] *= worst[k]
    return counts


def _counts_of(
    shares: Any, needs: Any, leaders: Any, weights: Any, variance: float, counts: Any
) -> None:
    """Set the counts that belong to multipliers of the rows."""
    arms, clients = counts.shape
    of_leader = 0.0
    for k in range(arms):
        of_leader += shares[clients, k] * needs[clients, k]
    for m in range(clients):
        square = weights[m] * weights[m]
        here = 0.0
        for k in range(arms):
            mine = shares[m, k] * needs[m, k]
            here += mine
            counts[k, m] = mine + square * shares[clients, k] * needs[clients, k]
        counts[leaders[m], m] += here
        counts[leaders[clients], m] += square * of_leader
        for k in range(arms):
            counts[k, m] = math.sqrt(variance * counts[k, m])


def _loads_of(
    counts: Any, needs: Any, leaders: Any, weights: Any, variance: float, loads: Any
) -> None:
    """Set the left-hand sides of the rows; 0 where nothing is needed."""
    arms, clients = counts.shape
    for q in range(clients + 1):
        leader = leaders[q]
        for k in range(arms):
            loads[q, k] = 0.0
            if k == leader or needs[q, k] <= 0.0:
                continue
            if q < clients:
                spread = 1.0 / counts[k, q] + 1.0 / counts[leader, q]
            else:
                spread = 0.0
                for m in range(clients):
                    if weights[m] > 0.0:
                        square = weights[m] * weights[m]
                        spread += square * (1.0 / counts[k, m] + 1.0 / counts[leader, m])
            loads[q, k] = variance * needs[q, k] * spread
