"""Private successive elimination, DP-SE, for one client.

Sajed and Sheffet, "An optimal private stochastic-MAB algorithm based on an optimal private stopping
rule" (ICML 2019), Algorithm 2. In epoch e, with the gap D = 2^-e and S arms alive, every arm is
pulled n times anew, n = max(32 ln(8 S e^2 / delta) / D^2, 8 ln(4 S e^2 / delta) / (EPS D)) + 1,
rounded down. The mean of these pulls alone gets Laplace noise of the scale 1 / (EPS n). Arms that
are more than 2 h + 2 c behind the best noisy mean leave: h = sqrt(ln(8 S e^2 / delta) / (2 n))
bounds the error of a mean, c = ln(4 S e^2 / delta) / (EPS n) that of its noise. All of this is for
rewards from 0 to 1, and is multiplied by the range of others.

Each reward enters one mean, so the noisy means are EPS-differentially private in one reward.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastfed.capital import laplace
from fastfed.errors import InputError
from fastfed.model.part_options import Option
from fastfed.model.schedules.algorithm import Algorithm

if TYPE_CHECKING:
    from fastfed.model.setting import Setting


class PrivateElimination(Algorithm):
    """Successive elimination with noisy means of one client, EPS-differentially private.

    Parameters
    ----------
    eps
        EPS, the privacy parameter.

    Examples
    --------
    >>> import fastfed as ff
    >>> means = [[0.0], [0.25], [0.5], [0.75], [1.0]]
    >>> done = ff.simulate(means, "dp-se:1", delta=0.01, trials=3, rewards="bernoulli")
    >>> done.frame["pulls"].to_list()
    [5310, 5310, 5310]
    """

    family = "dp-se"
    example = "dp-se:1"
    declared_options: ClassVar = {"eps": Option("EPS", 0.0, 1e15, above=True)}
    randomised = True
    rank = 140

    def prepare(self, setting: Setting) -> Any:
        width, clients = setting.instance.rewards.range, setting.instance.shape[1]
        if clients > 1 or not math.isfinite(width):
            raise InputError(
                f"schedule {self}: for one client with bounded rewards, and "
                f"{setting.instance.name} has {clients} with {setting.instance.rewards.family} "
                "rewards; the uplink laplace:EPS serves several"
            )
        return np.array([width])

    def memory(self, arms: int, clients: int) -> int:
        return 3 * arms

    @staticmethod
    def decide(seen: Any, answer: Any) -> None:
        arms, eps, width = seen.counts.shape[0], seen.options.eps, seen.prepared[0]
        alive, counts, sums = seen.memory.reshape((3, arms))
        if seen.round == 0:
            alive[:] = 1.0
        else:
            share = alive.sum() * seen.round**2 / seen.delta
            noisy, n = np.full(arms, -np.inf), 0.0
            for k in range(arms):
                if alive[k] > 0.0:
                    n = seen.counts[k, 0] - counts[k]
                    noise = width * laplace(seen.uniforms[k, 0]) / (eps * n)
                    noisy[k] = (seen.sums[k, 0] - sums[k]) / n + noise
                    counts[k], sums[k] = seen.counts[k, 0], seen.sums[k, 0]
            off = math.sqrt(math.log(8.0 * share) / (2.0 * n)) + math.log(4.0 * share) / (eps * n)
            for k in range(arms):
                if noisy.max() - noisy[k] > 2.0 * width * off:
                    alive[k] = 0.0
        if alive.sum() == 1.0:
            answer.local_arms[0] = answer.global_arm[0] = np.argmax(alive)
            return
        share, gap = alive.sum() * (seen.round + 1) ** 2 / seen.delta, 0.5 ** (seen.round + 1)
        each = 32.0 * math.log(8.0 * share) / gap**2
        each = int(max(each, 8.0 * math.log(4.0 * share) / (eps * gap)) + 1.0)
        for k in range(arms):
            if alive[k] > 0.0:
                answer.targets[k, 0] = seen.counts[k, 0] + each
