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
