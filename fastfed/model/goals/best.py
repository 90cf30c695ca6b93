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

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fastfed.errors import InputError
from fastfed.model.goals.base import Decision, Floats, Goal, Right, arm_list, leads, tolerance
from fastfed.model.weights import ALIKE, ArmScales

if TYPE_CHECKING:
    from fastfed.model.instance import Instance


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

    def refuse_means(self, values: Floats, where: str, arms: Sequence[str]) -> None:
        best = np.nanmax(values)
        tied = np.flatnonzero(best - values <= tolerance(values))
        if len(tied) > 1:
            raise InputError(
                f"tie for the best arm at {where}: arms {arm_list(tied, arms)} all pay "
                f"{best:.12g}; the best arm must be unique, or no trial ever ends; the "
                "goal eps:E, as in eps:0.1, takes either of them"
            )

    def check(self, instance: Instance) -> None:
        """Raise an InputError if arms tie for the best; all clients are compared at once."""
        means = instance.means
        tied = (np.nanmax(means, axis=0) - means <= tolerance(means)).sum(axis=0) > 1
        for m in np.flatnonzero(tied)[: int(instance.questions.local)]:
            self.refuse_means(means[:, m], f"client {instance.client_text(int(m))}", instance.arms)
        self.check_server(instance)

    def gaps(self, values: Floats) -> Floats:
        """Return the gap of each arm, in each column of (K,) or (K, M) values."""
        if len(values) == 1:
            return np.full(values.shape, math.inf)
        best = np.argmax(values, axis=0, keepdims=True)
        gaps: Floats = values.max(axis=0) - values
        np.put_along_axis(gaps, best, math.inf, axis=0)
        np.put_along_axis(gaps, best, gaps.min(axis=0, keepdims=True), axis=0)
        return gaps

    def local_gaps(self, instance: Instance) -> Floats:
        """Return the gaps at all clients, at once if they have all arms."""
        full = instance.questions.full
        return self.gaps(instance.means) if full else super().local_gaps(instance)

    def bound_scales(self, values: Floats, scales: ArmScales) -> Floats:
        """Return the scale with the best arm, and for the best arm the largest of these."""
        best = int(np.argmax(values))
        found = np.array([scales.pair(k, best) for k in range(len(values))])
        found[best] = np.delete(found, best).max(initial=1.0)
        return found

    def right(self, values: Floats) -> Right:
        best = values == values.max()
        return Right(best, ~best)

    def decide(
        self,
        means: Mapping[int, float],
        alpha: float,
        accepted: Set[int],
        scales: ArmScales = ALIKE,
    ) -> Decision:
        rejected = {
            k for k in means if any(leads(means, j, k, alpha, scales) for j in means if j != k)
        }
        left = means.keys() - rejected
        return Decision(left if len(left) == 1 else set(), rejected)

    def gives_up(self, ties: Set[int]) -> bool:
        """Tell whether all remaining arms tie: then the best arm was eliminated by mistake."""
        return len(ties) == 1

    def local_right(self, instance: Instance) -> Right:
        """Return the right answers of all clients at once: there may be a million."""
        best = np.arange(instance.shape[0]) == instance.local_best[:, None]
        return Right(best, ~best)
