"""Messages of a few bits in law: errors of messages, of trials, and of radii.

Tests are at a false-alarm probability of 1e-7 each, some ten of them: 1e-6 in total.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import fastfed as ff
from fastfed.model.radii import Radius
from fastfed.model.uplinks import messages
from fastfed.simulation.walks import dithers, walk

pytestmark = pytest.mark.statistical

ALARM = 1e-7
INSTANCE = ff.Instance([[1.2, 0.4], [0.4, 1.0], [0.2, -0.2]])


def test_errors_of_messages_are_uniform_and_independent_of_the_rewards() -> None:
    """At the seeds, arms and steps of trials, from the walks and dithers that the kernels see."""
    uplink, server = ff.Dither(1.5), Radius.parse("paper").at_server(3, 2, 0.1, 1.0)
    errors, means, places = [], [], []
    for trial in range(300):
        sums, dither = walk(INSTANCE, 8, trial), dithers(8, trial)
        for k in range(3):
            for m in range(2):
                for n in (1, 2, 3, 64, 1000):
                    step, mean = uplink.step(n, server), sums(k, m, n) / n
                    place = messages.nearest(mean, step, dither(k, m, n))
                    errors.append(messages.point(place, step, dither(k, m, n)) / step - mean / step)
                    means.append((mean - INSTANCE.means[k, m]) * math.sqrt(n))
                    places.append(mean / step % 1)
    assert stats.kstest(errors, "uniform", (-0.5, 1)).pvalue > ALARM
    for other in (means, places):
        assert stats.spearmanr(errors, other).pvalue > ALARM
    table = np.histogram2d(errors, places, bins=(8, 8), range=((-0.5, 0.5), (0, 1)))[0]
    assert stats.chi2_contingency(table).pvalue > ALARM
    by_time = np.reshape(errors, (-1, 5))
    assert stats.spearmanr(by_time[:, 0], by_time[:, 1]).pvalue > ALARM
    assert stats.spearmanr(by_time[:, 3], by_time[:, 4]).pvalue > ALARM
    assert stats.spearmanr(by_time[:-1, 4], by_time[1:, 4]).pvalue > ALARM


@pytest.mark.parametrize("uplink", ["dither:0.5", "dither:4", "round:0.2"])
@pytest.mark.parametrize("radius", ["paper", "mixture-pairs"])
def test_error_rates_stay_below_delta(uplink: str, radius: str) -> None:
    """Close arms and a large delta, so that errors are as likely as they can be."""
    close = ff.Instance([[0.08], [0.0]])
    rows = ff.simulate(
        close, ["fedelim", "fedelim0"], delta=0.5, trials=1000, uplink=uplink, radius=radius, seed=4
    ).frame
    for _, part in rows.group_by("schedule"):
        wrong = int((~part["correct"]).sum())
        assert stats.binomtest(wrong, 1000, 0.5, "greater").pvalue > ALARM


def test_a_factor_is_not_enough_for_a_radius_of_whole_walks() -> None:
    """Apply a dither at each of 2^14 steps, with an error budget of 0.05.

    Far too many walks leave the mixture radius times sqrt(1 + KAPPA^2 / 12), while alpha + D / 2
    keeps the budget. For the paper's radius the factor is enough.
    """
    steps, walks, kappa, budget = 2**14, 1000, 2.0, 0.05
    n = np.arange(1.0, steps + 1)
    rng = np.random.default_rng(12)
    plain = {
        name: Radius.parse(name).at_server(1, 1, 2 * budget, 1.0) for name in ("paper", "mixture")
    }
    alpha = {name: np.array([one.alpha(x) for x in n]) for name, one in plain.items()}
    wide = {
        name: np.array([ff.Dither(kappa).widened(one).alpha(x) for x in n])
        for name, one in plain.items()
    }
    left = {"factor": 0, "mixture": 0, "paper": 0}
    for _ in range(walks):
        heard = np.abs(
            rng.standard_normal(steps).cumsum() / n
            + kappa / np.sqrt(n) * rng.uniform(-0.5, 0.5, steps)
        )
        left["factor"] += (heard >= alpha["mixture"] * math.sqrt(1 + kappa**2 / 12)).any()
        for name in ("paper", "mixture"):
            left[name] += (heard >= wide[name]).any()
    assert stats.binomtest(int(left["factor"]), walks, budget, "greater").pvalue < ALARM
    assert stats.binomtest(int(left["mixture"]), walks, budget, "greater").pvalue > ALARM
    assert stats.binomtest(int(left["paper"]), walks, budget, "greater").pvalue > ALARM
