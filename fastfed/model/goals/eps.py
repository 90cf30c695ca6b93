"""An arm that is nearly the best: at most E worse.

Arms are eliminated at 2 alpha, as for `best`. A client, or the server, stops and declares the
leader as soon as its lead over the second is at least 2 alpha - E. If clients lack arms, alpha
differs from pair to pair, and the best arm that leads all others by so much is declared.

Why it is right. On the good event (`base`) the best arm is never eliminated, as for `best`; with
ties take any one of them. Suppose that another arm l is declared, at 2 alpha - E or more ahead of
all arms that are left, so also of the best one. Its mean is below mu_l + alpha, the best arm's
above mu_best - alpha, so 2 alpha - E < mu_l - mu_best + 2 alpha, that is mu_l > mu_best - E. The
same pairs as for `best` carry the argument for radii per pair.

To relax the elimination itself to 2 alpha - E would be wrong: the best arm could be eliminated
by one that is E worse, that one by a third that is E worse again, and so on.

When an arm is settled. At 2 alpha <= E any lead is enough, so everything ends, ties included: that
is 4 alpha <= 2 E. And with Delta the smallest gap, the best arm leads by Delta - 2 alpha at least,
which is 2 alpha - E once 4 alpha <= Delta + E. So arm k is settled once 4 alpha <= max(Delta_k,
Delta + E, 2 E).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

import numpy as np

from fastfed.model.goals.base import (
    MOST,
    Decision,
    Floats,
    Goal,
    Means,
    Numbers,
    Right,
    behind,
    behind_best,
    leads,
    tolerance,
)
from fastfed.model.part_options import option
from fastfed.model.weights import ALIKE, ArmScales


@dataclass(frozen=True, eq=False)
class Eps(Goal):
    """An arm whose mean is at most ``slack`` below the best; ties are welcome.

    Parameters
    ----------
    slack
        E, above 0.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Eps(0.1))
    'eps:0.1'
    >>> two_equal_arms = [[0.5], [0.5], [0.0]]
    >>> done = ff.simulate(two_equal_arms, delta=0.1, trials=100, goal="eps:0.2")
    >>> set(done.frame["global_arm"]) <= {0, 1}
    True
    """

    slack: float = field(metadata=option("E", 0.0, MOST, above=True))

    family = "eps"
    covered = True
    example = "eps:0.1"
    rank = 2
    gap_text = "(the smallest, or E)"

    @property
    def numbers(self) -> Numbers:
        """The goal's own numbers."""
        return Numbers("eps", slack=self.slack)

    def gaps(self, values: Floats) -> Floats:
        gaps = behind_best(values)
        least = np.maximum(gaps.min(axis=0) + self.slack, 2.0 * self.slack)
        return np.asarray(np.maximum(gaps, least))

    def right(self, values: Floats) -> Right:
        away = np.fmax.reduce(values, axis=0) - values
        return Right(np.zeros(values.shape, bool), ~(away <= self.slack + tolerance(values)))

    def decide(
        self, means: Means, alpha: float, accepted: Set[int], scales: ArmScales = ALIKE
    ) -> Decision:
        def leads_all(j: int, slack: float) -> bool:
            return all(leads(means, j, k, alpha, scales, slack) for k in means if k != j)

        near = [k for k in means if leads_all(k, self.slack)]
        if near:
            leader = max(near, key=lambda k: means[k])
            return Decision({leader}, means.keys() - {leader})
        return Decision(set(), behind(means, alpha, scales))
