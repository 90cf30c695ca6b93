"""Sequential halving: a fixed number of pulls, and as few errors as it allows.

Karnin, Koren and Somekh, "Almost optimal exploration in multi-armed bandits" (ICML 2013), for every
client and the server at once. There are ceil(log2 K) rounds with equal shares of the budget. In a
round all arms that are alive at a client or at the server are pulled equally often at that client
(an arm that is alive at the server, at all clients). Then every client keeps the better half of its
arms by the means of the round, and so does the server; what is left after the last round is
declared. Clients send the means of the arms that are alive at the server.

Nothing is promised about delta. With t pulls of each arm in a round, the best arm of a question is
lost in that round with probability at most 3 exp(-t gap^2 / (4 s)), where gap is that of the arm at
the end of the best quarter of those alive, and s is sigma^2 at a client and sigma^2 sum p_m^2 at
the server: docs/explanation/algorithms.md has the proof.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastfed.errors import InputError
from fastfed.model.part_options import Option
from fastfed.model.schedules.algorithm import Algorithm
from fastfed.model.schedules.evidence import candidates_of

if TYPE_CHECKING:
    from fastfed.model.setting import Setting


def keep_half(alive: Any, values: Any) -> None:
    """Keep the better half of the arms that are alive, rounded up; of equal values the first."""
    count = 0
    for k in range(len(values)):
        if alive[k] > 0.0:
            count += 1
    for _ in range(count // 2):
        worst = -1
        for k in range(len(values)):
            if alive[k] > 0.0 and (worst < 0 or values[k] <= values[worst]):
                worst = k
        alive[worst] = 0.0


class Halving(Algorithm):
    """Sequential halving with a fixed budget of pulls.

    Parameters
    ----------
    budget
        BUDGET, the largest number of pulls of a trial, over all arms and clients.

    Examples
    --------
    >>> import fastfed as ff
    >>> done = ff.simulate("synthetic", ["halving:1000", "halving:20000"], delta=0.1, trials=200)
    >>> few, many = done.summary(costs=[0])["error_rate"]
    >>> bool(many < few), bool(done.frame["pulls"].max() <= 20000)
    (True, True)
    """

    family = "halving"
    example = "halving:20000"
    declared_options: ClassVar = {"budget": Option("BUDGET", 1, 10**15, whole=True)}
    fixed_budget = True
    rank = 130

    def prepare(self, setting: Setting) -> Any:
        arms, clients = setting.instance.shape
        rounds = max(1, math.ceil(math.log2(arms)))
        least = rounds * int(setting.instance.available.sum())
        if self.options.budget < least:
            raise InputError(
                f"schedule {self}: too few pulls for {arms} arms at {clients} clients; BUDGET must "
                f"be at least {least}, a pull of each in {rounds} rounds"
            )
        return np.array([rounds], np.int64)

    def memory(self, arms: int, clients: int) -> int:
        return (clients + 1) * arms + 2 * arms * clients

    @staticmethod
    def decide(seen: Any, answer: Any) -> None:
        arms, clients = seen.counts.shape
        alive = seen.memory[: (clients + 1) * arms].reshape((clients + 1, arms))
        before = seen.memory[(clients + 1) * arms :].reshape((2, arms, clients))
        if seen.round == 0:
            alive[:] = candidates_of(seen)
        else:
            values = np.zeros((clients + 1, arms))
            for k in range(arms):
                for m in range(clients):
                    new = seen.counts[k, m] - before[0, k, m]
                    if new > 0.0:
                        values[m, k] = (seen.sums[k, m] - before[1, k, m]) / new
                    before[0, k, m], before[1, k, m] = seen.counts[k, m], seen.sums[k, m]
                    values[clients, k] += seen.arm_weights[k, m] * values[m, k]
            for q in range(clients + 1):
                keep_half(alive[q], values[q])
        rounds = seen.prepared[0]
        if seen.round == rounds:
            for m in range(clients):
                answer.local_arms[m] = np.argmax(alive[m])
            answer.global_arm[0] = np.argmax(alive[clients])
            return
        cells = 0
        for k in range(arms):
            for m in range(clients):
                if alive[m, k] > 0.0 or (alive[clients, k] > 0.0 and seen.arm_weights[k, m] > 0.0):
                    cells += 1
        each = int(seen.options.budget // (rounds * cells))
        for k in range(arms):
            for m in range(clients):
                sent = alive[clients, k] > 0.0 and seen.arm_weights[k, m] > 0.0
                if alive[m, k] > 0.0 or sent:
                    answer.targets[k, m] = seen.counts[k, m] + each
                answer.sent[k, m] = sent
