"""Compilation of kernels ahead of their first use, for images and clusters.

Numba compiles a kernel for the classes of its arguments, and keeps it on disk. There is one kernel
for each combination of reward distribution, radius, goal, uplink and kind of schedule; names that
share their classes share a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import NamedTuple

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
RADII = ("paper", "mixture")
GOALS = ("best", "top:1", "eps:0.3", "threshold:0.5")
UPLINKS = ("exact", "dither:0.5")
SCHEDULES = ("fedelim", "adaptive")


class Combination(NamedTuple):
    """The choices that a kernel is compiled for, each by one name of its class."""

    rewards: str
    radius: str = "paper"
    goal: str = "best"
    uplink: str = "exact"
    schedule: str = "fedelim"

    def __str__(self) -> str:
        return "; ".join(self)

    def job(self) -> Job:
        """Make a small job that needs the kernel."""
        return Job.of(
            Instance(_MEANS, REWARDS[self.rewards]),
            self.schedule,
            delta=0.1,
            max_steps=1,
            radius=self.radius,
            goal=self.goal,
            uplink=self.uplink,
        )


def combinations(every: bool) -> list[Combination]:
    """List the combinations with the paper's radius, goal and uplink, or all of them."""
    if not every:
        return [Combination(name) for name in REWARDS]
    return [Combination(*one) for one in product(REWARDS, RADII, GOALS, UPLINKS, SCHEDULES)]


def compile_one(one: Combination) -> Combination:
    """Compile the kernel of a combination, or load it if it is kept on disk."""
    one.job().run(0, 1)
    return one


def compile_kernels(every: bool, workers: int) -> Iterator[Combination]:
    """Compile kernels on several processes; yield combinations as they are done."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(compile_one, combinations(every))
