"""The N best arms.

U are the undecided arms, A the accepted ones, N' = N - |A| arms are still wanted. Reject an arm if
at least N' arms of U lead it by 2 alpha; accept it if it leads at least |U| - N' arms of U by
2 alpha; all at once, from the state before. Stop when |A| = N, and reject the rest, or when
|A| + |U| = N, and accept the rest. N = 1 is `best`: an arm is rejected when another leads it
by 2 alpha, and accepted when it leads all others by as much.

Why it is right. On the good event (`base`) no arm of the rest ever leads one of the top by 2 alpha.
Suppose that all decisions so far were right. Then U has N' arms of the top and |U| - N' of the
rest. If an arm of the top is led by N' arms of U, one of them is of the rest, for only N' - 1
others are of the top: that cannot be. If an arm of the rest leads |U| - N' arms of U, one of them
is of the top: nor can that. So the next decisions are right, too, and so is what is left in the
end. Errors hang on the N (K - N) pairs of an arm of the rest with one of the top: the budget of a
radius per pair is shared among these.

When an arm is settled. The gap of an arm of the top is its distance to the N+1-st mean, that of an
arm of the rest its distance to the N-th. Once 4 alpha <= gap, an arm of the top leads all of the
rest by 2 alpha, of which |U| - N' are undecided, and is accepted; in the same way for the others.

Means may tie within the top, and within the rest: nobody needs to tell these apart.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fastfed.errors import InputError
from fastfed.model.goals.base import (
    Decision,
    Flags,
    Floats,
    Goal,
    Means,
    Numbers,
    Right,
    leads,
    tolerance,
)
from fastfed.model.part_options import option
from fastfed.model.weights import ALIKE, ArmScales
from fastfed.validation import MOST_CELLS

if TYPE_CHECKING:
    from fastfed.model.instance import Instance


@dataclass(frozen=True, eq=False)
class Top(Goal):
    """The set of the ``count`` best arms; the last of them must be better than the next.

    Parameters
    ----------
    count
        N, from 1 to one less than the number of arms.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Top(2))
    'top:2'
    >>> done = ff.simulate([[0.9], [0.8], [0.1], [0.0]], delta=0.1, trials=5, goal=ff.Top(2))
    >>> done.frame["global_answer"].to_list()[0]
    [0, 1]
    """

    count: int = field(metadata=option("N", 1, MOST_CELLS, whole=True))

    family = "top"
    covered = True
    example = "top:3"
    rank = 1
    gap_text = "between the last arm of the top and the first of the rest"
    one_arm = False

    @property
    def numbers(self) -> Numbers:
        """The goal's own numbers; a client with N arms or fewer accepts all of them."""
        return Numbers("top", self.count)

    def check(self, instance: Instance) -> None:
        arms = instance.shape[0]
        if self.count >= arms:
            reason = f"{arms} arms, so N must be from 1 to {arms - 1}"
            if arms == 1:
                reason = "1 arm, and nothing to choose from; the goal best declares it"
            raise InputError(f"goal {self}: {instance.name} has {reason}")
        super().check(instance)

    def _edge(self, values: Floats) -> Floats:
        """Return the N-th and the (N + 1)-st mean of each list; NaN if there are fewer."""
        falling: Floats = -np.sort(-values, axis=0)
        return falling[self.count - 1 : self.count + 1]

    def tied(self, values: Floats) -> Flags:
        (last, following), off = self._edge(values), tolerance(values)
        return np.asarray((np.abs(values - last) <= off) & (last - following <= off))

    def tie_text(self, values: Floats, arms: str, where: str) -> str:
        falling = -np.sort(-values[~np.isnan(values)])
        apart = np.flatnonzero(falling[:-1] - falling[1:] > tolerance(values)) + 1
        fix = "eps:E, as in eps:0.1, takes either"
        if len(apart):
            fix = f"top:{apart[np.abs(apart - self.count).argmin()]} would do here"
        return (
            f"goal {self}: {arms} tie for place {self.count} at {where} (all pay "
            f"{falling[self.count - 1]:.12g}), so the {self.count} best are not unique; {fix}"
        )

    def gaps(self, values: Floats) -> Floats:
        last, following = self._edge(values)
        gaps: Floats = np.where(self.right(values).must, values - following, last - values)
        gaps[np.isnan(gaps)] = np.inf
        return gaps

    def bound_scales(self, values: Floats, scales: ArmScales) -> Floats:
        """Return the largest scale with an arm of the other side, the top or the rest."""
        top, arms = self.right(values).must, range(len(values))
        return np.array([max(scales.pair(k, j) for j in arms if top[j] != top[k]) for k in arms])

    def right(self, values: Floats) -> Right:
        top = np.zeros(values.shape, bool)
        first = np.argsort(-values, axis=0, kind="stable")[: self.count]
        np.put_along_axis(top, first, ~np.isnan(np.take_along_axis(values, first, 0)), 0)
        return Right(top, ~top)

    def pairs(self, arms: int) -> int:
        return self.count * max(arms - self.count, 1)  # N arms or fewer are accepted at once

    def decide(
        self, means: Means, alpha: float, accepted: Set[int], scales: ArmScales = ALIKE
    ) -> Decision:
        wanted = self.count - len(accepted)
        ahead = {(j, k) for j in means for k in means if leads(means, j, k, alpha, scales)}
        rejected = {k for k in means if sum((j, k) in ahead for j in means) >= wanted}
        chosen = {k for k in means if sum((k, j) in ahead for j in means) >= len(means) - wanted}
        left = means.keys() - rejected - chosen
        if len(accepted) + len(chosen) == self.count:
            rejected |= left
        elif len(accepted) + len(chosen) + len(left) == self.count:
            chosen |= left
        return Decision(chosen, rejected)

    def gives_up(self, ties: Set[int]) -> bool:
        """Tell whether all undecided arms tie: then one of the N best was lost.

        Some of the undecided arms belong to the answer and some do not, and such arms do not tie
        otherwise.
        """
        return len(ties) == 1
