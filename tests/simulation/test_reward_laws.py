"""Laws beside one-noise Gaussian and finite rewards: Poisson, and a noise for each arm and client.

Statistical tests have fixed seeds and a false-alarm probability of ALARM = 1e-6 each, split evenly
over what they compare.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers import BOUNDS, refused
from polars.testing import assert_frame_equal
from scipy import stats

import fastfed as ff
from fastfed.kernels.compiling import from_python
from fastfed.kernels.rewards import poisson as poisson_law
from fastfed.simulation.walks import values_at, walk

pytestmark = pytest.mark.statistical

poisson = from_python(poisson_law.poisson)

ALARM = 1e-6
SCHEDULES = [
    "fedelim",
    "fedelim0",
    "periodic:7",
    "exponential:1.5",
    "superexponential",
    "at:1,5,25,125,3125",
]


@pytest.mark.parametrize("mean", [0.0, 0.3, 5.0, 15.99, 16.0, 16.5, 47.25, 1e3 + 0.5, 1e6, 2.0**40])
def test_poisson_variates(mean: float) -> None:
    """Test 40,000 variates by chi-square over at most 60 cells of equal probability.

    The false-alarm probability is split over the ten means.
    """
    draws = np.array(
        [
            poisson(mean, (np.uint64(3), np.int64(trial), np.int64(0), np.int64(1), np.int64(7)))
            for trial in range(40_000)
        ]
    )
    if mean == 0.0:
        assert (draws == 0).all()
        return
    law = stats.poisson(mean)
    if mean > 1e9:  # where the cumulative probabilities are those of a normal, to a millionth
        law = stats.norm(mean - 0.5, math.sqrt(mean))
    edges = np.unique(np.round(law.ppf(np.linspace(0, 1, 61)[1:-1])))
    expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * len(draws)
    seen = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=len(expected))
    keep = expected > 5
    seen = np.append(seen[keep], seen[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    positive = expected > 0
    assert (seen[~positive] == 0).all()
    value = ((seen - expected)[positive] ** 2 / expected[positive]).sum()
    assert stats.chi2(positive.sum() - 1).sf(value) > ALARM / 10


@pytest.mark.parametrize(("mean", "n"), [(0.7, 3), (0.7, 64), (2.5, 100), (40.0, 77)])
def test_poisson_walk_is_one_of_independent_rewards(mean: float, n: int) -> None:
    """The increments of a walk are Poisson, uncorrelated, and add up to X(n)."""
    instance = ff.Instance([[mean], [0.1]], ff.Poisson(sigma=1))
    trials = np.arange(4_000)
    sums = np.stack(
        [
            values_at(instance, 2, trials, np.full((4_000, 2, 1), step))[:, 0, 0]
            for step in range(n + 1)
        ]
    )
    steps = np.diff(sums, axis=0)
    assert (steps >= 0).all()
    spread = steps.var(axis=1, ddof=1) / mean
    limit = -stats.norm.ppf(ALARM / (6 * n))
    error = math.sqrt((2 + 1 / mean) / 4_000)
    assert (np.abs(spread - 1) < limit * error * 1.5).all()
    assert (np.abs(steps.mean(axis=1) - mean) < limit * math.sqrt(mean / 4_000)).all()
    if n > 3:
        apart = np.corrcoef(steps[0], steps[n // 2])[0, 1]
        assert abs(apart) < limit / math.sqrt(4_000)


def test_equal_noise_is_the_law_of_one_noise() -> None:
    means = [[0.9, 0.1, 0.4], [0.5, 0.5, 0.2], [0.1, 0.8, 0.7]]
    one, each = (
        ff.simulate(
            ff.Instance(means, ff.Gaussian(sigma)), SCHEDULES, delta=0.05, trials=50, seed=1
        ).frame
        for sigma in (0.75, np.full((3, 3), 0.75))
    )
    assert_frame_equal(one.drop(BOUNDS), each.drop(BOUNDS))


def test_noise_of_a_cell_is_its_own() -> None:
    noise = np.array([[0.1, 2.0], [1.0, 0.5]])
    instance = ff.Instance([[1.5, 0.0], [0.0, 1.0]], ff.Gaussian(noise))
    steps = np.full((20_000, 2, 2), 9)
    sums = values_at(instance, 4, np.arange(20_000), steps) - 9 * instance.means
    limit = -stats.norm.ppf(ALARM / 8) / math.sqrt(2 * 20_000)
    assert np.abs(sums.std(axis=0, ddof=1) / (3 * noise) - 1).max() < limit * 1.1
    assert instance.default_sigma == 2.0
    single = walk(instance, 4, 17)
    assert single(1, 0, 9) == sums[17, 1, 0] + 9 * instance.means[1, 0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ff.Poisson(), ("sigma", "missing", "Poisson(sigma=2)")),
        (lambda: ff.Poisson(0), ("sigma = 0", "above 0")),
        (lambda: ff.Poisson("x"), ("sigma = 'x'", "number")),
        (lambda: ff.Instance([[-0.1], [1]], ff.Poisson(1)), ("means[0, 0] = -0.1", "from 0")),
        (lambda: ff.Instance([[1], [2000]], ff.Poisson(1)), ("means[1, 0] = 2000", "1024")),
        (
            lambda: ff.simulate(
                ff.Instance([[1], [2]], ff.Poisson(1)), delta=0.1, trials=1, sigma="proxy"
            ),
            ("'proxy'", "not sub-Gaussian"),
        ),
        (lambda: ff.Gaussian([[1.0, 0.0]]), ("sigma[0, 1] = 0", "above 0")),
        (lambda: ff.Gaussian([[1.0, math.nan]]), ("sigma[0, 1] = nan",)),
        (lambda: ff.Gaussian([[1.0], [1.0, 2.0]]), ("sigma", "K x M")),
        (lambda: ff.Gaussian([1.0, 2.0]), ("1-dimensional", "K x M")),
        (lambda: ff.Instance([[1], [2]], ff.Gaussian([[1.0, 2.0]])), ("1 x 2", "2 x 1")),
    ],
)
def test_bad_laws(make, words) -> None:
    refused(make, *words)


def test_poisson_ends_where_events_can_no_longer_be_counted() -> None:
    instance = ff.Instance([[1.0], [1.0 + 1e-9]], ff.Poisson(sigma=1.0))
    refused(lambda: ff.simulate(instance, delta=0.1, trials=1), "gap 1e-09", "too small")
    rows = ff.simulate(instance, delta=0.1, trials=2, max_steps=2**41).frame
    assert rows["truncated"].all()
    assert (rows["steps"] == 2**41).all()
