"""Distributions of the engine against Algorithm 1, and the paper's guarantee on errors.

Every test has fixed seeds and states its false-alarm probability. ALARM = 1e-6 for each test is
split evenly (Bonferroni) over its comparisons. The reference draws from a NumPy generator, the
engine from its own walks, so the two samples are independent.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import fastfed as ff
from fastfed.simulation import reference

pytestmark = pytest.mark.statistical

ALARM = 1e-6


def upper_limit(errors: int, trials: int) -> float:
    """Clopper-Pearson: the error rate is below this, with confidence 1 - ALARM."""
    return float(stats.beta.ppf(1 - ALARM, errors + 1, trials - errors))


@pytest.mark.parametrize("delta", [0.1, 0.01])
@pytest.mark.parametrize("name", ["synthetic", "random:3,2,4"])
def test_error_rates_are_below_delta_at_the_honest_scale(name, delta):
    """The upper limit of the error rate lies below delta.

    The false-alarm probability is below 1e-6 as long as the true rate is below delta / 4. The radii
    are generous, and the true rate is far below that.
    """
    trials = 5000
    frame = ff.simulate(
        ff.Instance.load(name),
        ["fedelim", "fedelim0", "periodic:100"],
        delta=delta,
        trials=trials,
        seed=6,
    ).frame
    for schedule, rows in frame.group_by("schedule"):
        errors = int((~rows["correct"]).sum())
        assert upper_limit(errors, trials) < delta, f"{schedule}: {errors} errors"
    # a trial that never ends, because only arms that tie are left, counts as an error
    assert not frame.filter("truncated")["correct"].any()


def test_the_error_limit_would_notice():
    """At a tenth of the honest scale the same test fails: errors are frequent, and are counted."""
    frame = ff.simulate(
        ff.Instance.load("synthetic"), delta=0.01, trials=5000, seed=6, sigma=0.1
    ).frame
    assert upper_limit(int((~frame["correct"]).sum()), 5000) > 0.01


def test_independent_rewards_of_the_reference():
    """Mean and variance of 50,000 rewards of one arm (two comparisons share ALARM)."""
    noisy, count = ff.Instance([[0.9], [0.3]], ff.Gaussian(1.5)), 50_000
    reward = reference.independent_rewards(noisy, np.random.default_rng(8))
    rewards = np.array([reward(1, 0, n) for n in range(1, count + 1)])
    assert abs(rewards.mean() - 0.3) < stats.norm.isf(ALARM / 4) * 1.5 / np.sqrt(count)
    square = ((rewards - 0.3) ** 2).sum() / 1.5**2
    assert stats.chi2.ppf(ALARM / 4, count) < square < stats.chi2.isf(ALARM / 4, count)


def test_trials_of_one_run_are_independent():
    """Pulls of consecutive trials, and of one trial under two seeds: correlations 0."""
    inst = ff.Instance.load("synthetic")
    a, b = (
        ff.simulate(inst, "fedelim0", delta=0.1, trials=8000, seed=seed).frame["pulls"].to_numpy()
        for seed in (1, 2)
    )
    limit = stats.norm.isf(ALARM / 3 / 2) / np.sqrt(8000)
    for x, y in [(a[1:], a[:-1]), (a[2:], a[:-2]), (a, b)]:
        assert abs(np.corrcoef(x, y)[0, 1]) < limit
