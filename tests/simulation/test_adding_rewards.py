"""Reward distribution that is added from outside, as docs/extending.md says.

It takes one kernel and one class. The page shows the marked parts of this file.

Rewards are +1 or -1. X(n) = 2 (number of +1) - n, so the walk is one of counts. It is extended by a
binomial draw and split by a hypergeometric one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from helpers import BOUNDS, refused
from numba.core import config
from polars.testing import assert_frame_equal
from scipy import stats

import fastfed as ff
from fastfed.kernels import numba_internals, trials
from fastfed.kernels.compiling import EntryCache, kernel
from fastfed.kernels.memory import BAR, DRAWN, LEFT, MIDDLE, RIGHT, STEP, A, B
from fastfed.kernels.random.binomial import binomial
from fastfed.kernels.random.discrete import VARIATE_ERROR, VARIATE_ERROR_A_SIGMA, hypergeometric
from fastfed.kernels.rewards import hooks
from fastfed.kernels.sums import add_client
from fastfed.model.rewards.base import Floats, Rewards
from fastfed.simulation import reference
from fastfed.simulation.walks import values_at

pytestmark = pytest.mark.slow

# the kernel: what would be a file of fastfed/kernels/rewards


# --8<-- [start:law]
class SignMemory(NamedTuple):
    nothing: Any


class SignRewards(NamedTuple):
    up: Any  # (K, M) the probability of +1

    @property
    def longest_walk(self) -> int:
        return 2

    def memory(self, slots: int, arms: int, clients: int) -> SignMemory:
        return SignMemory(0)

    def draw_error(self, steps: Floats) -> Floats:
        return VARIATE_ERROR + VARIATE_ERROR_A_SIGMA * 0.5 * np.sqrt(steps)


# --8<-- [end:law]


# --8<-- [start:draws]
@kernel
def further(up, steps, address):
    """Draw the sum of the next ``count`` rewards."""
    return 2.0 * float(binomial(np.int64(steps), up, address, np.int64(0))) - float(steps)


@kernel
def middle_of(left, right, length, address):
    """X in the middle of an interval, from its ends."""
    ups = np.int64((right - left + float(length)) / 2.0)
    half = length // 2
    found = hypergeometric(ups, length - ups, half, address, np.int64(0))
    return left + 2.0 * float(found) - float(half)


# --8<-- [end:draws]


# --8<-- [start:hooks]
@hooks.leaf.of(SignRewards)
def _leaf(rewards):
    return 2


@hooks.noise_floor.of(SignRewards)
def _noise_floor(rewards):
    return 1.0


@hooks.extend_spine.of(SignRewards)
def _extend_spine(rewards, memory, scope, walks, tree, level):
    for i in range(tree.frame[0, DRAWN]):
        k = np.int64(tree.drawn[0, i])
        total = 0.0
        for m in range(scope.lo, scope.hi):
            for t in range(walks.known[k, m], level + 1):
                before, steps = (0.0, 1) if t == 0 else (walks.value[t - 1, k, m], 1 << (t - 1))
                address = (scope.seed, scope.trial, m, k, np.int64(1) << t)
                walks.work[1] += 1
                walks.value[t, k, m] = before + further(rewards.up[k, m], np.int64(steps), address)
            walks.known[k, m] = max(walks.known[k, m], level + 1)
            total = add_client(scope.weights[k], total, m, walks.value[level, k, m])
        walks.total[level, k] = total


@hooks.split_interval.of(SignRewards)
def _split_interval(rewards, memory, scope, walks, tree, depth):
    frame = tree.frame
    a, b, left, right = frame[depth, A], frame[depth, B], frame[depth, LEFT], frame[depth, RIGHT]
    for j in range(frame[depth + 1, DRAWN]):
        k = np.int64(tree.drawn[depth + 1, j])
        total = 0.0
        for m in range(scope.lo, scope.hi):
            x = middle_of(
                walks.value[left, k, m],
                walks.value[right, k, m],
                b - a,
                (scope.seed, scope.trial, m, k, (a + b) >> 1),
            )
            walks.value[MIDDLE + depth, k, m] = x
            walks.work[1] += 1
            total = add_client(scope.weights[k], total, m, x)
        walks.total[MIDDLE + depth, k] = total


@hooks.walk_interval.of(SignRewards)
def _walk_interval(rewards, memory, scope, walks, tree, depth):
    frame = tree.frame
    left, right, a = frame[depth, LEFT], frame[depth, RIGHT], frame[depth, A]
    for j in range(frame[depth + 1, DRAWN]):
        k = np.int64(tree.drawn[depth + 1, j])
        total = 0.0
        for m in range(scope.lo, scope.hi):
            x = middle_of(
                walks.value[left, k, m],
                walks.value[right, k, m],
                np.int64(2),
                (scope.seed, scope.trial, m, k, a + 1),
            )
            walks.value[STEP + 1, k, m] = x
            walks.work[1] += 1
            total = add_client(scope.weights[k], total, m, x)
        walks.total[STEP + 1, k] = total


# --8<-- [end:hooks]


# --8<-- [start:safe]
@hooks.certificate_bound.of(SignRewards)
def _certificate_bound(rewards, memory, scope, walks, tree, depth):
    """Bound a crossing by Hoeffding's inequality for sums without replacement.

    The bound is applied at each of N - 1 steps. After n steps, a pair of 2 M walks is d above its
    chord with probability at most exp(-d^2 / (4 M N)).
    """
    length = float(tree.frame[depth, B] - tree.frame[depth, A])
    return 4.0 * float(scope.hi - scope.lo) * length * (BAR + np.log(length)), 0.0


@hooks.certified.of(SignRewards)
def _certified(rewards, d_a, d_b, least, slack, variance):
    d = min(d_a, d_b)
    return d > 0.0 and d * d >= least


# --8<-- [end:safe]


@hooks.walk_value.of(SignRewards)
def _walk_value(rewards, memory, address):
    seed, trial, client, arm, n = address
    up = rewards.up[arm, client]
    a, b, left = np.int64(0), np.int64(1), 0.0
    right = further(up, np.int64(1), (seed, trial, client, arm, b))
    while b < n:
        a, b, left = b, 2 * b, right
        right = left + further(up, a, (seed, trial, client, arm, b))
    while b != n:
        middle = (a + b) // 2
        value = middle_of(left, right, b - a, (seed, trial, client, arm, middle))
        if middle <= n:
            a, left = middle, value
            if middle == n:
                return value
        else:
            b, right = middle, value
    return right


# the reward class: what would be a file of fastfed/model/rewards


# --8<-- [start:rewards]
class Signs(Rewards):
    """Rewards +1 and -1 with the given means."""

    family = "signs"

    def check(self, means: Floats) -> None:
        if np.abs(means).max() > 1:
            raise ff.InputError("means: those of rewards +1 and -1 lie from -1 to 1")

    def kernel(self, setting: Any) -> SignRewards:
        return SignRewards((1.0 + setting.instance.means) / 2.0)

    def draw(self, means: Floats, rng: np.random.Generator) -> Callable[[int, int], float]:
        return lambda k, m: 1.0 if rng.random() < (1.0 + means[k, m]) / 2.0 else -1.0

    @property
    def range(self) -> float:
        return 2.0


# --8<-- [end:rewards]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the kernel of trials a cache of its own, so that its files can be counted."""
    place, run_trials = tmp_path_factory.mktemp("cache"), trials.run_trials
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "CACHE_DIR", str(place))
        patch.setattr(run_trials, "_cache", run_trials._cache)  # and attached again at the end
        numba_internals.attach(run_trials, EntryCache(run_trials.py_func))
        yield place


INSTANCE = ff.Instance([[0.8, -0.1], [0.1, 0.5], [-0.6, 0.3]], Signs(), name="signs")
SCHEDULES = ["fedelim", "fedelim0", "periodic:7", "superexponential"]


# --8<-- [start:tests]
def test_skip_is_dense_and_algorithm_1() -> None:
    skip, dense = (
        ff.simulate(
            INSTANCE, SCHEDULES, delta=0.1, trials=30, seed=4, engine=engine, threads=1
        ).frame
        for engine in ("skip", "dense")
    )
    assert_frame_equal(skip.drop(BOUNDS), dense.drop(BOUNDS))
    assert (skip["draw_error"] > 0).all()
    told = reference.fedelim(INSTANCE, ff.FedElim(), 0.1, reference.walk_rewards(INSTANCE, 4, 3))
    assert told.pulls.sum() == skip["pulls"][3]


def test_the_walk_is_one_of_independent_rewards() -> None:
    """Chi-square of X(20) at one cell, false-alarm probability 1e-6."""
    sums = values_at(INSTANCE, 1, np.arange(5_000), np.full((5_000, 3, 2), 20))[:, 0, 0]
    rewards = stats.binom(20, 0.9)
    cuts = np.array([-1, 14, 15, 16, 17, 18, 19, 20])
    expected = np.diff(rewards.cdf(cuts)) * 5_000
    seen = np.histogram((sums + 20) / 2, bins=cuts + 0.5)[0]
    assert stats.chisquare(seen, expected).pvalue > 1e-6


# --8<-- [end:tests]


def test_everything_else_works_with_it() -> None:
    told = ff.replay(INSTANCE, "fedelim", delta=0.1, seed=4, trial=3)
    assert told.events[-1].pulls == told.row["pulls"]
    assert ff.bounds(INSTANCE, delta=0.1, cost=10).T > 0
    above = ff.simulate(INSTANCE, delta=0.1, trials=3, goal="threshold:0.2", threads=1).frame
    assert above["global_answer"].to_list() == [[0, 1]] * 3
    refused(lambda: ff.error_probability(INSTANCE, delta=0.1), "signs", "tilt")


def test_a_foreign_law_leaves_the_cache_as_it_was(cache: Path) -> None:
    """Compiled code of a class that other processes lack is not kept."""
    ff.simulate(INSTANCE, delta=0.1, trials=1, threads=1)
    missed = [kind for kind in trials.run_trials.stats.cache_misses if "SignRewards" in str(kind)]
    assert len(missed) == 1  # so the cache was asked, and what was compiled then is used above
    assert not list(cache.rglob("*run_trials*"))
