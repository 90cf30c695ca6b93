"""The uplink `laplace:EPS`: its noise, its boundary, its rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers import refused
from scipy.integrate import quad

import fastfed as ff
from fastfed import capital
from fastfed.model.setting import Setting
from fastfed.simulation.walks import dithers

COINS = ff.Instance(
    [[0.9, 0.2, 0.6], [0.4, 0.8, 0.1], [0.1, 0.3, 0.05]], ff.Bernoulli(), name="coins"
)
VALUES = ff.Instance(
    rewards=ff.Finite([1.0, 2.0, 5.0], [[[1, 2, 3], [3, 1, 1]], [[4, 1, 1], [1, 1, 5]]])
)


def test_differences_of_two_variates_have_their_distribution() -> None:
    """P(difference > x) = (2 + x / b) exp(-x / b) / 4; a share is 5 errors off with 6e-7."""
    draw = dithers(1, 0)
    noise = np.array([capital.laplace(draw(k, m, n)) for n in range(1, 15_001) for k, m in PLACES])
    difference = noise[::2] - noise[1::2]
    for x in (0.0, 0.5, 1.0, 2.0, 4.0):
        p = (2 + x) * math.exp(-x) / 4
        error = 5 * math.sqrt(p * (1 - p) / len(difference))
        assert abs((difference > x).mean() - p) < error, x
    assert math.isfinite(capital.laplace(0.5))
    assert math.isfinite(capital.laplace(-0.5))


PLACES = [(0, 0), (1, 0), (5, 2), (2, 1)]


@pytest.mark.parametrize("noise", [1e-6, 1.0, 50.0])
def test_the_boundary_is_where_the_mean_capital_is_1_over_a(noise: float) -> None:
    a = 0.003
    slopes, charges = map(np.array, capital.slopes(6.0, noise, a, 1000))
    assert (slopes * noise < 1).all()
    assert np.exp(-charges).sum() == pytest.approx(1)
    for n, rounds in ((1, 1), (100, 7), (10**6, 20), (10**6, 10**6), (2**50, 50)):
        costs = np.array(
            [0.5 * s * s * 6 * n + rounds * capital.laplace_cost(s, noise) for s in slopes]
        )
        found = capital.root(slopes, charges + costs, a)
        assert np.average(
            np.exp(slopes * found - costs), weights=np.exp(-charges)
        ) == pytest.approx(1 / a, rel=1e-6)


def test_the_noise_of_a_report_costs_its_moment() -> None:
    """E exp(l Z) = 1 / (1 - l^2 b^2), by quadrature."""
    for slope in (0.1, 0.3):
        mean, _ = quad(
            lambda u, slope=slope: math.exp(2.0 * slope * capital.laplace(u)), -0.5, 0.5, points=[0]
        )
        assert math.log(mean) == pytest.approx(capital.laplace_cost(slope, 2.0), rel=1e-4)


@pytest.mark.slow
def test_hardly_any_noise_is_the_rule_of_a_mixture() -> None:
    """At EPS = 10^6 the server needs about as much as with the exact uplink and mixture-pairs."""
    rows = [
        ff.simulate(
            COINS, "periodic:10", delta=0.01, trials=200, radius="mixture-pairs", uplink=one
        ).frame
        for one in ("exact", "laplace:1000000")
    ]
    exact, noisy = (one["global_steps"].mean() for one in rows)
    assert isinstance(exact, float)
    assert isinstance(noisy, float)
    assert noisy == pytest.approx(exact, rel=0.03)
    assert (rows[1]["bits"] == 64 * rows[1]["uplinks"]).all()


@pytest.mark.slow
def test_more_privacy_takes_more_pulls_and_the_scale_is_the_range_over_epsilon() -> None:
    pulls = [
        ff.simulate(COINS, "fedelim", delta=0.1, trials=100, uplink=f"laplace:{eps}")
        .frame["pulls"]
        .mean()
        for eps in (1, 0.1, 0.03)
    ]
    assert pulls[0] < pulls[1] < pulls[2]  # type: ignore[operator]
    for instance, width in ((COINS, 1.0), (VALUES, 4.0)):
        setting = Setting.of(instance, delta=0.1, uplink="laplace:0.5")
        assert setting.uplink.rule(setting).scale == pytest.approx(width / 0.5)  # type: ignore[attr-defined]


def test_what_does_not_fit_is_refused() -> None:
    def run(instance: object, **options: object) -> None:
        ff.simulate(instance, options.pop("schedule", "fedelim"), delta=0.1, trials=1, **options)  # type: ignore[arg-type]

    refused(lambda: run("synthetic", uplink="laplace:1"), "laplace:1", "bounded")
    refused(lambda: run(COINS, uplink="laplace:1", schedule="adaptive"), "adaptive", "laplace:1")
    refused(lambda: run(COINS, uplink="laplace:1", schedule="phases"), "phases", "exact")
    for name in ("laplace", "laplace:0", "laplace:-1", "laplace:x", "laplace:1e9"):
        refused(lambda name=name: run(COINS, uplink=name), "laplace")  # type: ignore[misc]


STAIRS = ff.Instance([[0.0], [0.25], [0.5], [0.75], [1.0]], ff.Bernoulli(), name="stairs")


@pytest.mark.slow
def test_private_elimination_stops_as_published() -> None:
    """At EPS = 1 one epoch of 1,062 pulls an arm is enough; at 0.1 a second one often follows."""
    assert (ff.simulate(STAIRS, "dp-se:1", delta=0.01, trials=500).frame["pulls"] == 5 * 1062).all()
    done = ff.simulate(STAIRS, "dp-se:0.1", delta=0.01, trials=20_000).frame
    # 9,094 +- 30 by another program; the standard error here is about 30, too
    assert abs(done["pulls"].mean() - 9094) < 5 * math.hypot(30, 30)  # type: ignore[operator]
    assert done["correct"].all()
    compiled, plain = (
        ff.simulate(STAIRS, "dp-se:0.1", delta=0.01, trials=20, engine=one).frame
        for one in ("auto", "python")
    )
    assert compiled["pulls"].equals(plain["pulls"])


def test_private_elimination_runs_uncompiled_and_refuses_what_it_cannot_do() -> None:
    plain = ff.simulate(STAIRS, "dp-se:1", delta=0.01, trials=2, engine="python").frame
    assert plain["pulls"].to_list() == [5 * 1062] * 2
    refused(lambda: ff.simulate(COINS, "dp-se:1", delta=0.1, trials=1), "one client", "laplace")
    refused(lambda: ff.simulate([[1.0], [0.0]], "dp-se:1", delta=0.1, trials=1), "bounded")
    refused(lambda: ff.simulate(STAIRS, "dp-se:0", delta=0.1, trials=1), "EPS")
