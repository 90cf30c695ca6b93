"""Gaussian rewards with a noise of its own for each arm and client.

The walks are those of `gaussian`, cell by cell. The walk of a pair of arms, summed over clients,
has the variance rate v = sum of both arms' noise^2 over those clients, and a pair is safe if
2 d1 d2 / (v (b - a)) >= BAR: ``tree.variance`` keeps each arm's share of v for a pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.laws import hooks
from fastfed.kernels.laws.gaussian import (
    LEAF,
    Floats,
    GaussianMemory,
    draws_as_gaussian,
    gaussian_memory,
)
from fastfed.kernels.laws.gaussian_walk import noise_at
from fastfed.kernels.memory import BAR, DRAWN, A, B


class GaussianCellsLaw(NamedTuple):
    """A noise for every arm and client."""

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
        """Normals have 53 bits, as rewards of a step-by-step simulation have."""
        return np.zeros_like(steps)

    def memory(self, slots: int, arms: int, clients: int) -> GaussianMemory:
        return gaussian_memory(arms, clients)


draws_as_gaussian(GaussianCellsLaw)


@noise_at.of(GaussianCellsLaw)
def _noise_at(law, k, m):
    return law.noise[k, m]


@hooks.noise_floor.of(GaussianCellsLaw)
def _noise_floor(law):
    return law.floor


@hooks.judge_by.of(GaussianCellsLaw)
def _judge_by(law, memory, who, walks, tree, depth):
    if depth == 0:  # it is the same in all intervals of a pass; arms only become fewer
        for i in range(tree.frame[0, DRAWN]):
            k = np.int64(tree.drawn[0, i])
            sum_over_clients = 0.0
            for m in range(who.lo, who.hi):
                sum_over_clients += law.noise[k, m] * law.noise[k, m]
            tree.variance[k] = sum_over_clients
    return 0.5 * float(tree.frame[depth, B] - tree.frame[depth, A]) * BAR, 0.0


@hooks.safe_alone.of(GaussianCellsLaw)
@hooks.safe.of(GaussianCellsLaw)
def _safe(law, d_a, d_b, least, slack, variance):
    if d_b <= 0.0 or d_a <= 0.0:
        return False
    return d_a * d_b >= least * variance
