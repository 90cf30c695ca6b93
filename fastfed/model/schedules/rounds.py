"""Elimination in rounds: FedElim whose clients, too, decide at communication rounds only.

At n = 1, LAMBDA, LAMBDA^2, ... (rounded up) the server eliminates as FedElim does, so on the same
walks it gives the same answer at the same step. A client eliminates at the same rounds, where
FedElim's clients eliminate at every step. The difference in pulls is what clients gain by deciding
at every step.

delta-PAC, because the radii hold at all n together, and so at the n that are looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.model.part_options import Option
from fastfed.model.schedules.algorithm import ABANDONED, UNDECIDED, Algorithm, alpha
from fastfed.model.schedules.evidence import candidates_of, declare_lone
from fastfed.model.schedules.fixed import Exponential
from fastfed.model.weights import ALIKE
from fastfed.validation import MOST_BASE

if TYPE_CHECKING:
    from fastfed.model.setting import Setting


class Plan(NamedTuple):
    """The rounds, and the groups of arms that tie, among which nobody can ever decide."""

    times: npt.NDArray[np.int64]
    ties: npt.NDArray[np.int64]  # (M + 1, K), the server's in the last row
    scales: npt.NDArray[np.float64]  # (2, K, K) of pairs of arms at a client, and at the server


def eliminate(out: Any, means: Any, threshold: float, ties: Any, scales: Any) -> int:
    """Eliminate the arms that are ``threshold`` times a scale behind another; return the declared.

    ``out`` is not 0 for eliminated arms. The last arm is declared. If all remaining arms tie, the
    best arm was eliminated by mistake, and the trial is abandoned.
    """
    leaves = np.zeros(len(means), np.bool_)
    for j in range(len(means)):
        for k in range(len(means)):
            if j != k and out[j] == 0.0 and out[k] == 0.0:
                leaves[k] = leaves[k] or means[j] - means[k] >= threshold * scales[j, k]
    for k in range(len(means)):
        if leaves[k]:
            out[k] = 1.0
    last = -1
    alone = True
    for k in range(len(means)):
        if out[k] == 0.0:
            if last >= 0:
                alone = False
                if ties[k] != ties[last]:
                    return UNDECIDED
            last = k
    return last if alone else ABANDONED


class Rounds(Algorithm):
    """Elimination at the powers of LAMBDA, by the server and by the clients.

    Parameters
    ----------
    growth
        LAMBDA, above 1: the factor from one round to the next.

    Examples
    --------
    >>> import fastfed as ff
    >>> done = ff.simulate("synthetic", ["fedelim", "rounds:2"], delta=0.01, trials=100)
    >>> server = done.frame["global_steps"].to_numpy().reshape(2, 100)
    >>> bool((server[0] == server[1]).all())
    True
    """

    family = "rounds"
    example = "rounds:2"
    declared_options: ClassVar = {"growth": Option("LAMBDA", 1.0, MOST_BASE, above=True)}
    rank = 110

    def check_options(self) -> None:
        try:
            Exponential(self.options.growth)
        except InputError as error:
            raise InputError(f"schedule rounds: {error}") from None

    def prepare(self, setting: Setting) -> Plan:
        instance, arms = setting.instance, range(setting.instance.shape[0])
        scales = setting.scales(0)
        return Plan(
            Exponential(self.options.growth).times(setting.last_step),
            np.vstack([instance.local_ties.T, instance.global_ties]),
            np.array([[[one.pair(i, j) for j in arms] for i in arms] for one in (ALIKE, scales)]),
        )

    def memory(self, arms: int, clients: int) -> int:
        return arms * (clients + 1)

    @staticmethod
    def decide(seen: Any, answer: Any) -> None:
        arms, clients = seen.counts.shape
        out = seen.memory.reshape((clients + 1, arms))  # not 0: eliminated; the server comes last
        if seen.round == 0:
            declare_lone(seen, answer)
            candidates = candidates_of(seen)
            for q in range(clients + 1):
                for k in range(arms):
                    out[q, k] = 0.0 if candidates[q, k] else 1.0
        else:
            n = seen.prepared.times[seen.round - 1]
            means = np.zeros(arms)
            for m in range(clients):
                if answer.local_arms[m] == UNDECIDED:
                    for k in range(arms):
                        means[k] = seen.sums[k, m] / n
                    threshold = 2.0 * alpha(seen.local_radius, float(n))
                    answer.local_arms[m] = eliminate(
                        out[m], means, threshold, seen.prepared.ties[m], seen.prepared.scales[0]
                    )
            if answer.global_arm[0] == UNDECIDED:
                for k in range(arms):
                    means[k] = 0.0
                    for m in range(clients):
                        means[k] += seen.arm_weights[k, m] * (seen.received_sums[k, m] / n)
                threshold = 2.0 * alpha(seen.global_radius, float(n))
                ties = seen.prepared.ties[clients]
                answer.global_arm[0] = eliminate(
                    out[clients], means, threshold, ties, seen.prepared.scales[1]
                )
        if seen.round < len(seen.prepared.times):
            following = seen.prepared.times[seen.round]
        else:
            following = seen.limit + 1
        for k in range(arms):
            wanted = answer.global_arm[0] == UNDECIDED and out[clients, k] == 0.0
            for m in range(clients):
                asked = wanted and seen.arm_weights[k, m] > 0.0
                if asked or (answer.local_arms[m] == UNDECIDED and out[m, k] == 0.0):
                    answer.targets[k, m] = following
                answer.sent[k, m] = asked
