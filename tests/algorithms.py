"""Algorithms for tests: small ones that run, and some that break a rule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

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


def write_beyond(answer: Any) -> None:
    answer.local_arms[len(answer.local_arms)] = 0


@njit
def write_before(answer: Any) -> None:
    answer.local_arms[-len(answer.local_arms) - 1] = 0


class Reckless(ff.Algorithm):
    """Ten uses of an array or of a number that plain compiled code would not notice."""

    family = "reckless-test"
    parameters = {"use": None}  # noqa: RUF012

    @staticmethod
    def decide(seen: Any, answer: Any) -> None:
        use, none, many = seen.options.use, np.nan * seen.delta, 1e300 * seen.delta
        answer.targets[:] = seen.round + 1
        if use == 0:
            answer.local_arms[len(answer.local_arms)] = 0
        elif use == 1:
            write_beyond(answer)
        elif use == 2:
            write_before(answer)
        elif use == 3:
            seen.memory[0] = 1.0
        elif use == 4:
            answer.targets[0, 0] += int(seen.weights[seen.counts.shape[1] + 1])
        elif use == 5:
            answer.targets[0, 0] = none
        elif use == 6:
            answer.targets[:] = many
        elif use == 7:
            answer.targets[:] = max(1, math.ceil(many))
        elif use == 8:
            answer.targets[:] = max(1, round(none))
        elif use == 9:
            answer.targets[:] = seen.sums * none
        if seen.round:
            answer.local_arms[:] = answer.global_arm[0] = 0


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
