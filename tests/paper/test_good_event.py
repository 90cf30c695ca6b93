"""Proofs of Theorems 1, 2 and 4, path by path, on the good event.

On the good event every empirical mean stays within its radius. The tests check what follows from
that, and how often it happens.

The walks are those of the engine, summed up anew and examined in every step. Beyond the last step
that any bound names, nothing is examined. That makes the event a little larger than the paper's,
and its probability no smaller. The conclusions are not weaker.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from fastfed import confidence
from fastfed.model.instance import Instance
from fastfed.simulation import reference
from fastfed.simulation.job import Job
from fastfed.simulation.replay import OneTrial, departures
from fastfed.theory.bounds import bounds

INSTANCE = Instance([[4.0, 0.0], [0.0, 2.0], [1.0, 0.2]])  # settled by step 237
TRIALS = 400
DELTA = 0.5  # not small, so that some trials leave the event
SEED = 3
FALSE_ALARM = 1e-6


@dataclass(frozen=True)
class Path:
    """One trial: whether it is on the event, and when arms left under either schedule."""

    good: bool
    fedelim0: OneTrial
    fedelim: OneTrial


def follow(sigma: float) -> list[Path]:
    K, M = INSTANCE.shape
    b = bounds(INSTANCE, DELTA, sigma=sigma)
    n = np.arange(1, int(max(b.n_km.max(), b.n_k.max())) + 1)
    local, server = (
        np.array([alpha(i, K, M, DELTA, sigma) for i in n])
        for alpha in (confidence.alpha_local, confidence.alpha_global)
    )
    jobs = [
        Job.of(INSTANCE, name, delta=DELTA, seed=SEED, engine="dense", sigma=sigma)
        for name in ("fedelim0", "fedelim")
    ]
    paths = []
    for trial in range(TRIALS):
        reward = reference.walk_rewards(INSTANCE, SEED, trial)
        drawn = np.array([[[reward(k, m, i) for i in n] for m in range(M)] for k in range(K)])
        off = drawn.cumsum(axis=2) / n - INSTANCE.means[:, :, None]
        good = not ((np.abs(off) > local).any() or (np.abs(off.mean(axis=1)) > server).any())
        paths.append(Path(good, *(departures(job, trial) for job in jobs)))
    return paths


def pulls(left: OneTrial) -> int:
    return int(np.maximum(left.local, left.server[0][:, None]).sum())


@pytest.fixture(scope="module")
def good_paths() -> list[Path]:
    """Those on the event; asserts that they are as many as they should be."""
    paths = follow(sigma=1.0)
    good = [path for path in paths if path.good]
    # With probability 1 - delta, as promised, or more, fewer than this happens once in a million.
    assert len(good) >= stats.binom.ppf(FALSE_ALARM, TRIALS, 1 - DELTA)
    assert len(good) < TRIALS  # it can fail, and is seen to
    return good


def test_on_the_event_arms_fall_in_time(good_paths: list[Path]) -> None:
    b = bounds(INSTANCE, DELTA)
    for path in good_paths:
        left = path.fedelim0
        assert (left.local <= b.n_km).all()
        assert (left.server <= b.n_k).all()
        assert pulls(left) <= b.T_sharp


def test_on_the_event_fedelim_waits_for_the_next_power_of_two(good_paths: list[Path]) -> None:
    b = bounds(INSTANCE, DELTA)
    for path in good_paths:
        left = path.fedelim
        assert (left.local <= b.n_km).all()
        assert (left.server <= 2 ** np.ceil(np.log2(b.n_k))).all()
        assert pulls(left) <= b.fedelim.sharp.pulls


def test_a_step_of_the_proof_of_theorem_4_is_false_path_by_path(good_paths: list[Path]) -> None:
    """A step of the proof fails on the event, but the theorem does not need it.

    The proof says that an arm leaves FedElim's server before twice the step at which it leaves
    FedElim0's. That is not always so. The arm does leave before twice n_k, which is enough.
    """
    n_k = bounds(INSTANCE, DELTA).n_k
    twice = [(path.fedelim.server >= 2 * path.fedelim0.server).any() for path in good_paths]
    assert any(twice)
    assert all((path.fedelim.server < 2 * n_k).all() for path in good_paths)


def test_on_the_event_answers_are_right(good_paths: list[Path]) -> None:
    for path in good_paths:
        for left in (path.fedelim0, path.fedelim):
            assert left.server_arms[0] == INSTANCE.global_best
            np.testing.assert_array_equal(left.local_arms, INSTANCE.local_best)


def test_a_tenth_of_the_scale_leaves_the_event() -> None:
    """Use radii of a tenth of their size, as a negative control.

    The event is rare then. Off the event arms do outlast n_km, so the tests above could have
    failed.
    """
    paths = follow(sigma=0.1)
    # were its probability 1 - delta, so few on it would happen less than once in a million
    assert stats.binom.cdf(sum(path.good for path in paths), TRIALS, 1 - DELTA) < FALSE_ALARM
    n_km = bounds(INSTANCE, DELTA, sigma=0.1).n_km
    assert any((path.fedelim0.local > n_km).any() for path in paths)
    assert all((path.fedelim0.local <= n_km).all() for path in paths if path.good)


def test_departures_are_those_of_algorithm_1() -> None:
    """The steps that the tests above take from the engine are those of the printed algorithm."""
    job = Job.of(INSTANCE, "fedelim", delta=DELTA, seed=SEED, engine="dense")
    for trial in range(10):
        left = departures(job, trial)
        out = reference.fedelim(
            INSTANCE, job.schedules[0], DELTA, reference.walk_rewards(INSTANCE, SEED, trial)
        )
        assert out.eliminations
        for step, client, arm in out.eliminations:
            assert step == (left.server[0, arm] if client is None else left.local[arm, client])
        assert out.pulls.sum() == pulls(left)
