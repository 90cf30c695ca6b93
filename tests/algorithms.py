"""Algorithms for tests: small ones that run, and ten that break a rule."""

from __future__ import annotations

from typing import Any

import numpy as np

import fastfed as ff

NAMES = ("rounds:2", "phases", "halving:600", "oracle")


class Uniform(ff.Algorithm):
    """Pull every arm equally often, doubling, and declare the leaders after a number of rounds."""

    family = "uniform-test"
    parameters = {"rounds": 6.0}  # noqa: RUF012

    @staticmethod
    def decide(seen: Any, answer: Any) -> None:
        if seen.round < seen.options.rounds:
            answer.targets[:] = 2**seen.round
            return
        arms, clients = seen.counts.shape
        for m in range(clients):
            answer.local_arms[m] = np.argmax(seen.sums[:, m])
        totals = np.zeros(arms)
        for k in range(arms):
            for m in range(clients):
                totals[k] += seen.weights[m] * seen.received_sums[k, m]
        answer.global_arm[0] = np.argmax(totals)


def target_falls(seen: Any, answer: Any) -> None:
    answer.targets[:] = 8 if seen.round == 0 else 5


def target_above_the_limit(seen: Any, answer: Any) -> None:
    answer.targets[:] = 2**60


def local_arm_out_of_range(seen: Any, answer: Any) -> None:
    answer.targets[:] = 1
    answer.local_arms[1] = 7


def global_arm_out_of_range(seen: Any, answer: Any) -> None:
    answer.targets[:] = 1
    answer.global_arm[0] = -3


def local_declaration_changes(seen: Any, answer: Any) -> None:
    answer.targets[:] = seen.round + 1
    answer.local_arms[0] = seen.round % 2


def global_declaration_changes(seen: Any, answer: Any) -> None:
    answer.targets[:] = seen.round + 1
    answer.global_arm[0] = seen.round % 2


def never_pulls(seen: Any, answer: Any) -> None:
    answer.global_arm[0] = 0


def writes_into_sums(seen: Any, answer: Any) -> None:
    seen.sums[0, 0] = 1.0


def divides_by_zero(seen: Any, answer: Any) -> None:
    answer.targets[0, 0] = 1 // seen.counts[0, 0]


def misspells(seen: Any, answer: Any) -> None:
    answer.targets[:] = seen.counted + 1


WRONG = {
    target_falls: ("round 1", "target 5 of arm 0 at client 0", "8 pulls", "never fall"),
    target_above_the_limit: ("round 0", "limit", "max_steps"),
    local_arm_out_of_range: ("round 0", "client 1 declares arm 7", "from 0 to 1"),
    global_arm_out_of_range: ("round 0", "server declares arm -3", "from 0 to 1"),
    local_declaration_changes: ("round 1", "client 0 declared arm 0 and now 1", "final"),
    global_declaration_changes: ("round 1", "server declared arm 0 and now 1", "final"),
    never_pulls: ("round 0", "no target is above", "never ends"),
    writes_into_sums: (),
    divides_by_zero: (),
    misspells: ("counted",),
}
"""Functions that break a rule, with the words of the refusal."""
