"""The paper's goal: the best arm.

An arm is eliminated when the leader is 2 alpha ahead of it; the last arm is declared.

Why it is right. On the good event (`base`) the leader's mean is at most mu + alpha, that of the
best arm at least mu_best - alpha; so nobody is ever 2 alpha ahead of the best arm, but for ties,
and the best arm is what is left. With a radius per pair the event is that none of K - 1 arms gets
2 alpha further ahead of the best one than it is in truth.

When an arm is settled. Once 4 alpha <= Delta_k, the best arm's mean is at least mu_best - alpha >=
mu_k + Delta_k - alpha >= (mu_k + alpha) + 2 alpha, so arm k has been eliminated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fastfed.errors import InputError
from fastfed.goals.base import Decision, Floats, Goal, Right, arm_list, tolerance
from fastfed.validation import shown

if TYPE_CHECKING:
    from fastfed.problem.instance import Instance


@dataclass(frozen=True)
class Best(Goal):
    """The arm with the largest mean, which must be unique.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Best())
    'best'
    """

    family = "best"
    grammar = "best"
    gap_text = "between the best two arms"

    @classmethod
    def from_text(cls, text: str, options: str | None) -> Self:
        if options is not None:
            raise InputError(f"goal {shown(text)}: best takes no option; write best")
        return cls()

    def __str__(self) -> str:
        return self.family

    def refuse(self, values: Floats, where: str, arms: Sequence[str]) -> None:
        tied = np.flatnonzero(values.max() - values <= tolerance(values))
        if len(tied) > 1:
            raise InputError(
                f"tie for the best arm at {where}: arms {arm_list(tied, arms)} all pay "
                f"{values.max():.12g}; the best arm must be unique, or no trial ever ends; the "
                "goal eps:E, as in eps:0.1, takes either of them"
            )

    def gaps(self, values: Floats) -> Floats:
        best = int(np.argmax(values))
        if len(values) == 1:
            return np.array([math.inf])
        gaps: Floats = values[best] - values
        gaps[best] = np.delete(gaps, best).min()
        return gaps

    def right(self, values: Floats) -> Right:
        best = values == values.max()
        return Right(best, ~best)

    def decide(self, means: Mapping[int, float], alpha: float, accepted: Set[int]) -> Decision:
        best = max(means.values())
        rejected = {k for k, mean in means.items() if best - mean >= 2 * alpha}
        left = means.keys() - rejected
        return Decision(left if len(left) == 1 else set(), rejected)

    def gives_up(self, ties: Set[int]) -> bool:
        """If all arms that are left tie, the best was lost."""
        return len(ties) == 1

    def kernel(self, instance: Instance, law: Any) -> Any:
        from fastfed.kernels.goals.best import BestGoal

        return BestGoal(
            instance.local_best,
            np.int64(instance.global_best),
            np.array(instance.local_ties.T, order="C"),
            np.array(instance.global_ties),
        )
