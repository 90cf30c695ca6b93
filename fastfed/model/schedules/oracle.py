"""The oracle: pulls in the proportions that are optimal for the true means, which it knows.

No real algorithm can do this: `oracle` is a yardstick. Its proportions are those of T*
(`fastfed.theory.characteristic`) for Gaussian rewards with the confidence scale as their standard
deviation; its rule is that of `fastfed.model.schedules.evidence`, so that it is delta-PAC. The
first round has kl(delta, 1 - delta) times the optimal pulls, fewer than any answer can be right
with; each later round has LAMBDA times as many in all.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from fastfed.model.part_options import Option
from fastfed.model.schedules.algorithm import UNDECIDED, Algorithm, server_weights
from fastfed.model.schedules.allocation import cheapest
from fastfed.model.schedules.evidence import (
    Boundaries,
    Floats,
    boundaries,
    declare,
    declare_lone,
    memory_length,
    wanted_cell,
)

if TYPE_CHECKING:
    from fastfed.model.setting import Setting

_STEPS = 2000  # of the solver: the pulls are within 1e-3 of the optimum
_MANY = 100  # cells from which on compiling the solver is faster than to run it as it is


class Known(NamedTuple):
    """Pulls per unit of kl(delta, 1 - delta), the first total in that unit, and the boundaries."""

    allocation: Floats  # (K, M)
    first: float
    limits: Boundaries


def optimal_allocation(means: Floats, averages: Floats, weights: Floats, variance: float) -> Floats:
    """Return the pulls (K, M) that T* is the sum of, nearly; weights are (K, M)."""
    values = np.vstack([means.T, averages])
    values = np.where(np.isnan(values), -np.inf, values)  # arms that are no candidates
    leaders = values.argmax(axis=1)
    gaps = values.max(axis=1, keepdims=True) - values
    # a trial with a smaller gap never ends; larger needs than these would overflow
    least = max(1e-100 * math.sqrt(variance), 1e-150)
    gaps = np.where(gaps > 0.0, np.maximum(gaps, least), 0.0)
    needs = np.divide(2.0, gaps**2, out=np.zeros_like(gaps), where=gaps > 0.0)
    solve = cheapest
    if means.size > _MANY:
        from fastfed.kernels.user_functions import compiled

        solve = compiled(cheapest)
    return np.asarray(solve(needs, leaders, weights, variance, _STEPS))


class Oracle(Algorithm):
    """Optimal proportions from the true means: a yardstick, because it knows them.

    Parameters
    ----------
    growth
        LAMBDA, above 1: the factor from the pulls of one round to those of the next.

    Examples
    --------
    >>> import fastfed as ff
    >>> done = ff.simulate("synthetic", ["fedelim", "oracle"], delta=0.01, trials=50)
    >>> pulls = done.summary(costs=[0])["pulls_mean"]
    >>> bool(3 * pulls[1] < pulls[0])
    True
    """

    family = "oracle"
    example = "oracle:2"
    declared_options: ClassVar = {"growth": Option("LAMBDA", 1.0, 1e15, above=True, default=1.2)}
    knows_means = True
    rank = 140

    def prepare(self, setting: Setting) -> Known:
        weights = server_weights(setting.instance)
        d = setting.delta
        kl = (1.0 - 2.0 * d) * math.log((1.0 - d) / d) if d < 0.5 else 0.0
        instance = setting.instance
        return Known(
            optimal_allocation(instance.means, instance.averages, weights, setting.sigma**2),
            max(kl, 0.1),
            boundaries(setting),
        )

    def memory(self, arms: int, clients: int) -> int:
        return memory_length(arms, clients)

    @staticmethod
    def decide(seen: Any, answer: Any) -> None:
        arms, clients = seen.counts.shape
        if seen.round > 0:
            declare(seen, answer, seen.prepared.limits)
        else:
            declare_lone(seen, answer)
        total = min(seen.prepared.first * seen.options.growth ** float(seen.round), 1e300)
        most = seen.limit + 1.0  # a target above the limit ends the trial
        asked = answer.global_arm[0] == UNDECIDED
        for m in range(clients):
            for k in range(arms):
                if wanted_cell(seen, answer, k, m):
                    wanted = math.ceil(min(seen.prepared.allocation[k, m] * total, most))
                    answer.targets[k, m] = max(seen.counts[k, m] + 1, wanted)
                answer.sent[k, m] = asked and seen.arm_weights[k, m] > 0.0
