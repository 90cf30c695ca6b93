"""The radius `betting` as docs/explanation/betting.md states it, one reward after the other.

One `Capitals` belongs to a client, or to a question of the server. It shares nothing with the
kernels but the list of bets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfed.capital import MOST_STAKE, bets
from fastfed.model.betting import histogram, question_weights, scaled_slack
from fastfed.model.goals import Eps, Goal, Top
from fastfed.model.goals.base import Decision
from fastfed.model.setting import Setting

Floats = npt.NDArray[np.float64]
Pairs = set[tuple[int, int]]


class Capitals:
    """The capitals of all pairs of arms, and the pairs that have been decided.

    Parameters
    ----------
    bets
        The bets lambda_g.
    level
        ln(1 / a), a being the error budget of a pair.
    weights
        p, (K, M): the weight of each client in the value of each arm; rows have the sum 1.
    slack
        E of the goal eps:E, scaled as rewards are.
    scale
        The smallest reward, and the largest less the smallest.
    """

    def __init__(
        self,
        bets: Sequence[float],
        level: float,
        weights: Floats,
        slack: float = 0.0,
        scale: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.level, self.weights, self.slack = level, weights, slack
        self.low, self.width = scale
        self.bets = np.array(bets)
        self.shares = weights / weights.max()
        self.stakes = self.bets
        self.centres = np.full(weights.shape, 0.5)
        self.change_at = 1
        # logarithms of capitals, (K, G): bets that rewards lie above the centre, below it, and
        # below the centre plus the slack
        self.above, self.below, self.near = np.zeros((3, len(weights), len(bets)))
        self.means, self.last_round = np.zeros(weights.shape), 0
        self.beaten: Pairs = set()
        self.nearly: Pairs = set()

    def scaled(self, reward: Any) -> Any:
        """Scale rewards, or their means, to [0, 1]."""
        return (reward - self.low) / self.width

    def see(self, k: int, m: int, reward: float, count: float = 1.0) -> None:
        """Multiply the capitals of arm k by what rewards of client m give, all of them equal."""
        away = self.shares[k, m] * (self.scaled(reward) - self.centres[k, m])
        slack = self.shares[k, m] * self.slack
        self.above[k] += count * np.log(1.0 + self.stakes * away)
        self.below[k] += count * np.log(1.0 - self.stakes * away)
        self.near[k] += count * np.log(1.0 - self.stakes * (away - slack))

    def decide(self, goal: Goal, arms: Mapping[int, float], accepted: Set[int]) -> Decision:
        """Note the pairs (j, k) of which j beats k, or would with the slack; decide on these."""
        for j, k in permutations(sorted(arms), 2):
            if mixture(self.above[j] + self.below[k]) >= self.level:
                self.beaten.add((j, k))
            if mixture(self.above[j] + self.near[k]) >= self.level:
                self.nearly.add((j, k))
        return decide(goal, set(arms), self, accepted)

    def receive(self, n: int, received: Mapping[tuple[int, int], float], arms: Set[int]) -> None:
        """Take the means that the clients of a question send at round n."""
        pulls = n - self.last_round
        for k in sorted(arms):
            for m in np.flatnonzero(self.weights[k]).tolist():
                mean = self.scaled(received[k, m])
                total = mean * n - self.means[k, m] * self.last_round
                # a sum gives at least what its chord gives: rewards of 1 and of 0
                self.see(k, m, self.low + self.width, total)
                self.see(k, m, self.low, pulls - total)
                self.means[k, m] = mean
        self.last_round = n

    def recentre(self, n: int, means: Floats, arms: Set[int]) -> None:
        """Choose centres anew, if n is the first comparison at or after a power of two.

        ``means`` are those of each arm at each client, (K, M), scaled to [0, 1], and ``arms`` the
        undecided ones.
        """
        if n < self.change_at or not arms:
            return
        self.change_at = 1 << n.bit_length()
        values = (self.weights * means).sum(axis=1)
        leading = max(values[k] for k in arms)
        self.centres = leading + means - values[:, None]
        reach = self.shares * np.maximum(np.abs(self.centres), np.abs(1.0 - self.centres))
        self.stakes = np.minimum(self.bets, MOST_STAKE / reach[sorted(arms)].max())


def all_capitals(setting: Setting, count: int) -> dict[int, Capitals]:
    """Make the capitals of the clients, 0 .. M - 1, and of the questions of the server, M, ..."""
    K, M = setting.instance.shape
    law, slack, stakes = histogram(setting), scaled_slack(setting), bets(count)
    scale = float(law.values[0]), law.range
    level = -math.log(setting.radii.client.budget)
    found = {m: Capitals(stakes, level, np.ones((K, 1)), slack, scale) for m in range(M)}
    for q, weights in enumerate(question_weights(setting)):
        level = -math.log(setting.radii.of(q).budget)
        found[M + q] = Capitals(stakes, level, weights, slack, scale)
    return found


def mixture(logs: Floats) -> float:
    """Return the logarithm of the mean of capitals, given their logarithms."""
    top = logs.max()
    return float(top + np.log(np.exp(logs - top).mean()))


def decide(goal: Goal, arms: set[int], found: Capitals, accepted: Set[int]) -> Decision:
    """Decide as the goal does, on pairs of which one arm beats the other."""
    if isinstance(goal, Top):
        return _decide_top(goal, arms, found.beaten, accepted)
    rejected = {k for k in arms if any((j, k) in found.beaten for j in arms)}
    left = arms - rejected
    if not left:  # the good event does not hold: any arm will do
        left = {min(arms)}
        rejected -= left
    if isinstance(goal, Eps):
        for i in sorted(left):
            if all((i, k) in found.nearly for k in left - {i}):
                return Decision({i}, arms - {i})
    return Decision(left if len(left) == 1 else set(), rejected)


def _decide_top(goal: Top, arms: set[int], beaten: Pairs, accepted: Set[int]) -> Decision:
    """Reject who is beaten by as many as are wanted; accept who beats all that are not."""
    wanted = goal.count - len(accepted)
    rejected = {k for k in arms if sum((j, k) in beaten for j in arms) >= wanted}
    chosen = {k for k in arms if sum((k, j) in beaten for j in arms) >= len(arms) - wanted}
    left = arms - rejected - chosen
    if len(accepted) + len(chosen) >= goal.count:
        rejected |= left
    elif len(accepted) + len(chosen) + len(left) == goal.count:
        chosen |= left
    return Decision(chosen, rejected)
