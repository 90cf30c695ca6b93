"""Compilation of kernels ahead of their first use, for images and clusters.

Numba compiles a kernel for the classes of its arguments, and keeps it on disk. There is one kernel
for each combination of reward distribution, choices and kind of schedule; names that
share their classes share a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import Any, NamedTuple

from fastfed.model.choices import CHOICES, DEFAULTS
from fastfed.model.instance import Instance
from fastfed.model.rewards import Bernoulli, Gaussian, Poisson, Rewards
from fastfed.simulation.job import Job

_MEANS = [[0.9, 0.8], [0.1, 0.2]]
REWARDS: dict[str, Rewards] = {
    "gaussian": Gaussian(),
    "gaussian, one noise level for each cell": Gaussian([[1.0, 0.5], [0.5, 1.0]]),
    "finite": Bernoulli(),
    "poisson": Poisson(sigma=1.0),
}
SCHEDULES = ("fedelim", "adaptive")


class Combination(NamedTuple):
    """The rewards, choices and schedule that a kernel is compiled for, by one name of a class."""

    rewards: str
    choices: Mapping[str, Any] = DEFAULTS
    schedule: str = "fedelim"

    def __str__(self) -> str:
        return "; ".join([self.rewards, *self.choices.values(), self.schedule])

    def job(self) -> Job:
        """Make a small job that needs the kernel."""
        return Job.of(
            Instance(_MEANS, REWARDS[self.rewards]),
            self.schedule,
            delta=0.1,
            max_steps=1,
            **self.choices,
        )


def combinations(every: bool) -> list[Combination]:
    """List the combinations with the paper's choices, or all of them."""
    if not every:
        return [Combination(name) for name in REWARDS]
    chosen = [
        dict(zip(CHOICES, names, strict=True))
        for names in product(*(one.kernels for one in CHOICES.values()))
    ]
    return [Combination(*one) for one in product(REWARDS, chosen, SCHEDULES)]


def compile_one(one: Combination) -> Combination:
    """Compile the kernel of a combination, or load it if it is kept on disk."""
    one._replace(choices={**one.choices, "radius": "stitched"}).job()  # compiles its table alone
    one.job().run(0, 1)
    return one


def compile_kernels(every: bool, workers: int) -> Iterator[Combination]:
    """Compile kernels on several processes; yield combinations as they are done."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(compile_one, combinations(every))
