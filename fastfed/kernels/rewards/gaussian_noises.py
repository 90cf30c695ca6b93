"""Gaussian rewards with a noise of its own for each arm and client.

The walks are those of `gaussian`, cell by cell. The walk of a pair of arms, summed over clients,
has the variance rate v = sum of both arms' (weight noise)^2 over those clients, and a pair is
certified if 2 d1 d2 / (v (b - a)) >= BAR: ``tree.variance`` keeps each arm's share of v for a pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.memory import BAR, DRAWN, A, B, Floats
from fastfed.kernels.rewards import hooks
from fastfed.kernels.rewards.gaussian import (
    LEAF,
    GaussianMemory,
    draws_as_gaussian,
    gaussian_memory,
)
from fastfed.kernels.rewards.gaussian_walk import noise_at


class GaussianCellsRewards(NamedTuple):
    """Gaussian rewards with a standard deviation for each arm and client."""

    means: Any  # (K + 1, M), less the origin, which is the last row
    noise: Any  # (K, M)
    floor: Any  # the smallest noise

    @property
    def longest_walk(self) -> int:
        return LEAF

    @property
    def origin(self) -> Floats:
        return np.asarray(self.means[-1])

    def draw_error(self, steps: Floats) -> Floats:
        """Return zeros: normals have 53 bits, as rewards of a step-by-step simulation have."""
        return np.zeros_like(steps)

    def memory(self, slots: int, arms: int, clients: int) -> GaussianMemory:
        return gaussian_memory(arms, clients)


draws_as_gaussian(GaussianCellsRewards)


@noise_at.of(GaussianCellsRewards)
def _noise_at(rewards, k, m):
    return rewards.noise[k, m]


@hooks.noise_floor.of(GaussianCellsRewards)
def _noise_floor(rewards):
    return rewards.floor


@hooks.certificate_bound.of(GaussianCellsRewards)
def _certificate_bound(rewards, memory, scope, walks, tree, depth):
    if depth == 0:  # it is the same in all intervals of a pass; arms only become fewer
        for i in range(tree.frame[0, DRAWN]):
            k = np.int64(tree.drawn[0, i])
            sum_over_clients = 0.0
            for m in range(scope.lo, scope.hi):
                noise = scope.weights[k, m] * rewards.noise[k, m]
                sum_over_clients += noise * noise
            tree.variance[k] = sum_over_clients
    return 0.5 * float(tree.frame[depth, B] - tree.frame[depth, A]) * BAR, 0.0


@hooks.certified.of(GaussianCellsRewards)
def _certified(rewards, d_a, d_b, least, slack, variance):
    if d_b <= 0.0 or d_a <= 0.0:
        return False
    return d_a * d_b >= least * variance
