"""The paper's goal: the best arm.

An arm is eliminated when another is 2 alpha ahead of it; the last arm is declared. If all clients
have all arms, the other is the leader; otherwise alpha is wider for some pairs than for others.

Proof of correctness. On the good event (`base`) the empirical mean of any arm is at most its true
mean plus alpha, and that of the best arm is at least mu_best - alpha. So no arm is ever 2 alpha
ahead of the best arm, except for ties, and the best arm is the last one. With a radius per pair the
good event is about differences: none of the K - 1 other arms gets ahead of the best arm by 2 alpha
more than the difference of their true means.

Steps until an arm is eliminated. Once 4 alpha <= Delta_k, the best arm's empirical mean is at least
mu_best - alpha >= mu_k + Delta_k - alpha >= (mu_k + alpha) + 2 alpha. So arm k has been eliminated.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from fastfed.model.goals.base import (
    Decision,
    Flags,
    Floats,
    Goal,
    Means,
    Right,
    behind,
    behind_best,
    tolerance,
)
from fastfed.model.weights import ALIKE, ArmScales


@dataclass(frozen=True, eq=False)
class Best(Goal):
    """The arm with the largest mean, which must be unique.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Best())
    'best'
    """

    family = "best"
    covered = True
    rank = 0
    gap_text = "between the best two arms"

    def tied(self, values: Floats) -> Flags:
        tied = np.fmax.reduce(values, axis=0) - values <= tolerance(values)
        return np.asarray(tied & (tied.sum(axis=0) > 1))

    def tie_text(self, values: Floats, arms: str, where: str) -> str:
        return (
            f"tie for the best arm at {where}: {arms} all pay {np.nanmax(values):.12g}; the "
            "best arm must be unique, or no trial ever ends; the goal eps:E, as in eps:0.1, takes "
            "either of them"
        )

    def gaps(self, values: Floats) -> Floats:
        return behind_best(values)

    def bound_scales(self, values: Floats, scales: ArmScales) -> Floats:
        """Return the scale with the best arm, and for the best arm the largest of these."""
        best = int(np.argmax(values))
        found = np.array([scales.pair(k, best) for k in range(len(values))])
        found[best] = np.delete(found, best).max(initial=1.0)
        return found

    def right(self, values: Floats) -> Right:
        best = values == np.fmax.reduce(values, axis=0)
        return Right(best, ~best)

    def decide(
        self, means: Means, alpha: float, accepted: Set[int], scales: ArmScales = ALIKE
    ) -> Decision:
        rejected = behind(means, alpha, scales)
        left = means.keys() - rejected
        return Decision(left if len(left) == 1 else set(), rejected)

    def gives_up(self, ties: Set[int]) -> bool:
        """Tell whether all remaining arms tie: then the best arm was eliminated by mistake."""
        return len(ties) == 1
