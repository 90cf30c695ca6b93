"""Rare errors: against first passage by numbers, against plain counting, and what is said of them.

Every comparison of an estimate with a known probability allows 5.5 standard errors: a false alarm
with probability 4e-8. There are fewer than 60, so this file raises one with less than 3e-6, and
with fixed seeds it does so always or never.
"""

from __future__ import annotations

import json
import math

import first_passage
import numpy as np
import polars as pl
import pytest
from helpers import refused
from scipy.special import log_ndtr, zeta

import fastfed as ff
from fastfed import confidence as radius
from fastfed.cli import app as cli
from fastfed.paper import true_errors
from fastfed.theory.error_estimates import Estimate
from fastfed.theory.error_probability import _estimate, _Question
from fastfed.theory.importance_sampling import Sample

pytestmark = pytest.mark.statistical

_SIGMAS = 5.5
FEDELIM = [2**t for t in range(20)]
# gap, delta, confidence scale: errors from 2e-3 down to 2e-13
GAUSSIAN = [
    (0.3, 0.1, 0.6),
    (0.5, 0.1, 0.7),
    (0.3, 0.1, 0.9),
    (0.2, 0.01, 1.0),
    (0.5, 1e-3, 1.0),
    (1.0, 1e-3, 1.0),
    (0.5, 1e-4, 1.0),
]
# the two means, delta, confidence scale: errors from 5e-6 down to 6e-91
BERNOULLI = [
    (0.6, 0.4, 0.1, 0.3),
    (0.9, 0.85, 0.1, 0.3),
    (0.6, 0.4, 0.1, 0.4),
    (0.6, 0.4, 0.1, 1.0),
]


def boundary(delta, scale):
    log_c = radius.local_log(2, 1, delta)
    return lambda n: radius.boundary(n, 1, log_c, scale)


def agrees(estimate: Estimate, truth: float) -> bool:
    assert not estimate.warnings, estimate.warnings
    return abs(estimate.estimate - truth) < _SIGMAS * estimate.standard_error


@pytest.mark.parametrize(("gap", "delta", "scale"), GAUSSIAN)
def test_gaussian_rewards_err_as_often_as_first_passage_says(gap, delta, scale):
    found = ff.error_probability(
        ff.Instance([[gap], [0.0]]), "fedelim", delta=delta, sigma=scale, trials=4000, seed=1
    )
    g = boundary(delta, scale)
    every = first_passage.gaussian(gap, 1.0, g, range(1, 300))
    assert agrees(found.local[0], every)
    assert agrees(found.server, first_passage.gaussian(gap, 1.0, g, FEDELIM))
    assert agrees(found.joint, every)  # the client looks at every step, so at all of the server's
    assert found.local[0].relative_error < 0.06
    assert found.local[0].bound > every


@pytest.mark.parametrize(("better", "worse", "delta", "scale"), BERNOULLI)
def test_bernoulli_rewards_err_as_often_as_first_passage_says(better, worse, delta, scale):
    instance = ff.Instance([[better], [worse]], rewards=ff.Bernoulli())
    found = ff.error_probability(instance, "fedelim", delta=delta, sigma=scale, trials=2000, seed=1)
    g = boundary(delta, scale)
    every = first_passage.bernoulli(better, worse, g, range(1, 1500))
    assert agrees(found.local[0], every)
    assert agrees(found.server, first_passage.bernoulli(better, worse, g, FEDELIM[:12]))
    assert agrees(found.joint, every)
    assert found.local[0].bound > every


# weights, leads of the first arm at the clients, delta, scale: errors from 4e-3 down to 1e-13
WEIGHTED = [
    ([6, 3, 1], [0.5, -0.2, 0.3], 0.1, 0.6),
    ([6, 3, 1], [0.5, -0.2, 0.3], 0.1, 1.0),
    ([0, 1, 2], [-0.4, 0.9, 0.2], 1e-3, 1.0),
    ([0, 0, 5], [-0.4, -0.9, 0.3], 0.1, 0.9),
]


@pytest.mark.parametrize(("weights", "leads", "delta", "scale"), WEIGHTED)
def test_weighted_servers_err_as_often_as_first_passage_says(weights, leads, delta, scale):
    """With two arms the server follows one walk: the weighted sum of the clients' differences."""
    instance = ff.Instance(np.stack([leads, np.zeros(3)]), weights=weights)
    found = ff.error_probability(instance, delta=delta, sigma=scale, trials=4000, seed=7)
    shares = np.array(weights) / sum(weights)
    gap, noise = float(shares @ leads), math.sqrt(shares @ shares)
    log_c = math.log(8 * 2 / delta)  # 2 n alpha(n) = 2 scale sqrt(2 L(n) n sum p^2)
    truth = first_passage.gaussian(
        gap,
        noise,
        lambda n: 2 * scale * noise * math.sqrt(2 * n * (log_c + 2 * math.log(n))),
        FEDELIM[:16],
    )
    assert agrees(found.server, truth)
    assert found.server.bound > truth
    for one, lead in zip(found.local, leads, strict=True):  # the clients know nothing of weights
        log_local = radius.local_log(2, 3, delta)
        every = first_passage.gaussian(
            abs(lead),
            1.0,
            lambda n, log=log_local: radius.boundary(n, 1, log, scale),
            range(1, 300),
        )
        assert agrees(one, every)


def test_first_passage_does_not_depend_on_its_grid():
    g = boundary(0.1, 0.6)
    coarse, fine = (
        first_passage.gaussian(0.3, 1.0, g, range(1, 60), width) for width in (3.0, 1.4)
    )
    assert coarse == pytest.approx(fine, rel=1e-11)


THREE = [[0.9, 0.1, 0.2], [0.1, 0.6, 0.1], [0.3, 0.2, 0.8]]
FOUR = [[1.0, 0.2, 0.1, 0.9], [0.3, 0.9, 0.4, 0.1]]
FIVE = [[0.9, 0.1], [0.2, 0.6], [0.3, 0.15], [0.5, 0.0], [0.1, 0.2]]
COINS = [[0.9, 0.3], [0.5, 0.6], [0.2, 0.1]]
NOISY = ff.Gaussian(sigma=[[1.0, 0.5], [0.7, 1.5], [0.3, 1.0]])
WEIGHTS = [[[1, 2, 3], [4, 1, 1]], [[2, 3, 1], [2, 1, 2]], [[4, 2, 1], [9, 1, 1]]]
COUNTED = [
    (ff.Instance(THREE), "fedelim", 0.1, 0.35),
    (ff.Instance(FIVE), "fedelim0", 0.1, 0.4),
    (ff.Instance(FOUR), "periodic:3", 0.2, 0.35),
    (ff.Instance([*FOUR, [0.0, 0.0, 0.9, 0.0]]), "exponential:1.5", 0.2, 0.35),
    (ff.Instance([[0.9, 0.4], [0.2, 0.8]]), "superexponential", 0.1, 0.35),
    (ff.Instance([[0.9], [0.2], [0.6]]), "at:1,5,25,125,100000", 0.1, 0.4),
    (ff.Instance(COINS, ff.Bernoulli()), "fedelim", 0.2, 0.22),
    (ff.Instance(rewards=ff.Finite([0.0, 1.0, 5.0], WEIGHTS)), "periodic:2", 0.2, 0.8),
    (ff.Instance([[2.0, 1.0], [1.0, 1.8]], ff.Poisson(sigma=0.5)), "fedelim", 0.1, None),
    (ff.Instance([[0.9, 0.1], [0.2, 0.6], [0.4, 0.0]], NOISY), "periodic:2", 0.1, 0.35),
    (ff.Instance(THREE, weights=[6, 0, 1]), "fedelim", 0.2, 0.35),
    (ff.Instance(COINS, ff.Bernoulli(), weights=[0.3, 0.7]), "periodic:2", 0.2, 0.22),
]


@pytest.mark.parametrize(("instance", "schedule", "delta", "sigma"), COUNTED)
def test_frequent_errors_are_as_frequent_as_plain_counting_says(instance, schedule, delta, sigma):
    found = ff.error_probability(instance, schedule, delta=delta, sigma=sigma, trials=2000, seed=2)
    trials = 20_000
    rows = ff.simulate(instance, schedule, delta=delta, sigma=sigma, trials=trials, seed=3).frame
    assert not rows["truncated"].any()
    wrong = rows["local_errors"].to_numpy()
    counted = {
        "clients": wrong,
        "server": rows["global_arm"].to_numpy() != instance.global_best,
        "any": ~rows["correct"].to_numpy(),
    }
    estimated = {
        "clients": (
            sum(one.estimate for one in found.local),
            math.hypot(*(one.standard_error for one in found.local)),
        ),
        "server": (found.server.estimate, found.server.standard_error),
        "any": (found.joint.estimate, found.joint.standard_error),
    }
    for answer, seen in counted.items():
        mean, error = estimated[answer]
        assert seen.sum() > 30, (answer, seen.sum())
        spread = math.hypot(error, seen.std() / math.sqrt(trials))
        assert abs(seen.mean() - mean) < _SIGMAS * spread, (answer, seen.mean(), mean, spread)


@pytest.mark.slow
def test_the_intervals_cover_the_truth_as_often_as_they_say():
    """Check the intervals of 100 seeds.

    If all is well, 19 or more of the 95 % intervals miss with probability 6e-7. The mean of the 100
    standardised errors also exceeds 0.5 with probability 6e-7.
    """
    instance = ff.Instance([[0.5], [0.0]])
    truth = first_passage.gaussian(0.5, 1.0, boundary(0.01, 1.0), range(1, 100))
    assert truth == pytest.approx(3.6744e-9, rel=1e-4)
    estimates = [
        ff.error_probability(instance, "at:1", delta=0.01, trials=1000, seed=seed).local[0]
        for seed in range(100)
    ]
    missed = sum(not one.low <= truth <= one.high for one in estimates)
    assert missed < 19
    errors = [(one.estimate - truth) / one.standard_error for one in estimates]
    assert abs(np.mean(errors)) < 0.5
    assert 0.6 < np.std(errors) < 1.4


def test_each_client_has_its_own_probability():
    """Three arms, two clients, one with small gaps: each as in an instance of its own."""
    wide, narrow = [2.0, 0.0, 0.5], [0.3, 0.2, 0.0]
    both = ff.error_probability(
        ff.Instance(np.transpose([wide, narrow])), delta=0.1, sigma=0.6, trials=3000, seed=4
    )
    for client, means in enumerate((wide, narrow)):
        alone = ff.error_probability(
            ff.Instance(np.transpose([means])), delta=0.05, sigma=0.6, trials=3000, seed=5
        )
        a, b = both.local[client], alone.local[0]
        assert abs(a.estimate - b.estimate) < _SIGMAS * math.hypot(
            a.standard_error, b.standard_error
        )
    assert both.local[1].estimate > 20 * both.local[0].estimate


def test_a_lost_best_arm_is_an_error_even_if_the_others_tie_for_ever():
    """On `synthetic` the server errs by losing arm 3; arms 0 to 2 then tie."""
    found = ff.error_probability("synthetic", "at:1", delta=0.1, trials=2000, seed=1).server
    g = radius.boundary(1, 3, radius.global_log(4, 0.1), 1.0)
    # arm 3's sum of three rewards is x, and one of three others is at x + g or above
    x = np.linspace(-20.0, 20.0, 20_001)
    density = np.exp(-((x - 1.5) ** 2) / 6) / math.sqrt(6 * math.pi)
    led = -np.expm1(3 * log_ndtr((x + g - 1.1) / math.sqrt(3)))
    assert agrees(found, float(np.trapezoid(density * led, x)))


def test_the_same_seed_gives_the_same_result_on_any_number_of_threads():
    instance = ff.Instance([[0.9, 0.1], [0.2, 0.6]])
    one, two = (
        ff.error_probability(instance, delta=0.05, trials=300, seed=9, threads=threads)
        for threads in (1, 2)
    )
    other = ff.error_probability(instance, delta=0.05, trials=300, seed=10)
    assert one.frame.equals(two.frame)
    assert one.tilts.equals(two.tilts)
    assert one.joint.estimate != other.joint.estimate


def test_a_shift_and_another_unit_change_nothing():
    means = np.array([[0.9, 0.1], [0.2, 0.6]])
    base, moved = (
        ff.error_probability(
            ff.Instance(unit * means + shift, rewards=ff.Gaussian(sigma=unit)),
            delta=0.05,
            trials=300,
            seed=9,
        ).joint
        for unit, shift in ((1.0, 0.0), (1e3, 1e6))
    )
    assert moved.estimate == pytest.approx(base.estimate, rel=1e-5)


def test_what_cannot_happen_has_probability_zero():
    """Arm 0 never pays less than arm 1 does: no reward leads to the wrong answer."""
    instance = ff.Instance(rewards=ff.Finite([0.0, 0.5, 1.0], [[[0, 1, 1]], [[1, 1, 0]]]))
    found = ff.error_probability(instance, delta=0.1, sigma=0.1, trials=100)
    assert [one.estimate for one in found.estimates] == [0.0, 0.0, 0.0]
    assert [one.high for one in found.estimates] == [0.0, 0.0, 0.0]
    assert not found.warnings
    assert ff.error_probability(ff.Instance([[1.0]]), delta=0.1, trials=100).joint.bound == 0.0


def test_a_probability_below_every_double_is_a_logarithm():
    """Two looks far apart: the logarithm of the tail of a normal, SciPy's."""
    found = ff.error_probability(
        ff.Instance([[0.5], [0.0]]), "periodic:100000", delta=0.01, trials=2000, seed=3
    )
    n = 100_000
    g = boundary(0.01, 1.0)(n)
    log10 = log_ndtr(-(g + 0.5 * n) / math.sqrt(2 * n)) / math.log(10)
    assert log10 < -2000
    assert found.server.estimate == 0.0
    assert abs(found.server.log10 - log10) < _SIGMAS * found.server.relative_error
    assert f"e{math.floor(found.server.log10)}" in str(found)
    assert found.joint.estimate == pytest.approx(found.local[0].estimate, rel=0.5)


def test_an_estimate_that_hangs_on_few_trials_is_doubted():
    found = ff.error_probability(ff.Instance([[0.5], [0.0]]), delta=0.01, trials=100, seed=1)
    assert found.local[0].warnings[0].startswith("fewer than 100 effective errors")
    assert ": fewer than 100 effective errors: take more trials" in str(found)
    assert found.frame.filter(found.frame["answer"] == "client 0")["warning"][0] is not None


def test_two_runs_that_differ_are_doubted():
    """A sample whose weights are a tenth of those of the run before it."""
    counts = np.array([500, 500])
    stratum = np.repeat([0, 1], 500)
    rng = np.random.default_rng(1)
    logs = rng.normal(0.0, 0.3, 1000)
    steps = np.ones(1000, np.int64)
    ratios = np.zeros((1000, 2))
    run, other = (
        Sample(counts, stratum, ratios, logs - less, steps) for less in (0.0, math.log(10.0))
    )
    question = _Question("x", None, [], 0.0, -50.0)
    assert not _estimate(question, run, run).warnings
    assert "gave 10 times as much" in _estimate(question, other, run).warnings[0]
    left_out = _Question("x", None, [], 0.0, math.log(0.02))
    assert "no tilt was aimed at" in _estimate(left_out, run, run).warnings[0]


def test_shares_of_the_tilts_are_reported():
    found = ff.error_probability(ff.Instance([[0.9, 0.1], [0.2, 0.6]]), delta=0.05, trials=500)
    shares = {answer: rows["share"].sum() for (answer,), rows in found.tilts.group_by(["answer"])}
    assert shares == pytest.approx({"client 0": 1, "client 1": 1, "server": 1, "any": 1})
    assert found.tilts.filter(found.tilts["answer"] == "client 1")["arm"].unique().to_list() == [0]
    assert set(found.tilts.filter(found.tilts["answer"] == "any")["client"]) == {None, 0, 1}


LAWS = [
    ff.Gaussian(sigma=0.5),
    ff.Gaussian(sigma=[[1.0, 0.5], [0.7, 1.5], [0.3, 1.0]]),
    ff.Bernoulli(),
    ff.Poisson(sigma=1.0),
    ff.Finite(
        [0.0, 0.3, 1.5], [[[1, 2, 3], [4, 1, 2]], [[2, 3, 1], [1, 1, 4]], [[4, 2, 1], [9, 1, 1]]]
    ),
]


def instance_of(law):
    means = None if law.own_means is not None else [[0.7, 0.4], [0.2, 0.5], [0.4, 0.1]]
    return ff.Instance(means, rewards=law)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_cumulants_are_those_of_the_rewards_drawn(law):
    """Compare exp(psi) with the mean of exp(theta (x - mean)) over 20,000 draws.

    The tolerance is five standard errors. Derivatives are compared with differences. A tilted mean
    is the slope above the mean.
    """
    instance = instance_of(law)
    theta = np.array([[0.5, -0.4], [-0.3, 0.6], [0.0, 0.2]])
    psi, slope, curvature = law.cumulants(instance.means, theta)
    draw = law.draw(instance.means, np.random.default_rng(5))
    for k, m in np.ndindex(*instance.shape):
        seen = np.exp(
            theta[k, m] * (np.array([draw(k, m) for _ in range(20_000)]) - instance.means[k, m])
        )
        assert abs(seen.mean() - np.exp(psi[k, m])) <= 5 * seen.std() / math.sqrt(20_000) + 1e-12
    step = 1e-4
    up, down = (law.cumulants(instance.means, theta + sign * step) for sign in (1, -1))
    assert np.allclose((up[0] - down[0]) / (2 * step), slope, rtol=1e-5, atol=1e-7)
    assert np.allclose((up[1] - down[1]) / (2 * step), curvature, rtol=1e-5, atol=1e-7)
    assert np.allclose(
        ff.Instance(*law.tilted(instance.means, theta)).means, instance.means + slope
    )
    part = law.part([2, 0], [1])
    few = instance.means[np.ix_([2, 0], [1])]
    assert np.allclose(part.cumulants(few, theta[np.ix_([2, 0], [1])])[0], psi[[2, 0]][:, [1]])


def test_every_wrong_arm_that_matters_has_tilts():
    found = ff.error_probability(ff.Instance([[0.5], [0.0], [0.1], [-5.0]]), delta=0.01, trials=200)
    for answer in ("client 0", "server", "any"):
        arms = found.tilts.filter(found.tilts["answer"] == answer)["arm"]
        assert set(arms) == {1, 2}  # arm 3 is too far behind; what it adds is in `left_out`
    assert 0 < found.local[0].left_out < 1e-4 * found.local[0].estimate


@pytest.mark.parametrize("delta", [0.5, 0.01, 1e-6])
def test_errors_are_at_most_of_the_order_of_delta_squared(delta):
    """Check the bound that docs/explanation/error-probability.md proves.

    A tenth is added for the grid on which the bound is computed.
    """
    for means in ([[0.5], [0.0]], [[0.9, 0.1, 0.2], [0.1, 0.6, 0.1], [0.3, 0.2, 0.8], [0, 0, 0.1]]):
        instance = ff.Instance(means)
        arms, clients = instance.shape
        found = ff.error_probability(instance, "fedelim0", delta=delta, trials=100).joint
        proved = zeta(4) * (1 + 1 / clients) * (arms - 1) / (64 * arms**2) * delta**2
        assert found.estimate < found.bound < 1.1 * proved


def test_bad_input_is_one_line():
    instance = ff.Instance([[0.5], [0.0]])
    refused(lambda: ff.error_probability(instance, delta=1.5), "delta", "between 0 and 1")
    refused(lambda: ff.error_probability(instance, delta=0.1, trials=10), "trials", "from 100")
    refused(lambda: ff.error_probability(instance, delta=0.1, radius="wide"), "radius 'wide'")
    refused(lambda: ff.error_probability(instance, "fedelm", delta=0.1), "fedelm", "fedelim")
    refused(lambda: ff.error_probability(instance, delta=0.1, seed=-1), "seed")
    refused(
        lambda: ff.error_probability("synthetic", delta=1e-300),
        "delta = 1e-300: too small for the error probabilities of 3 clients, at least 3e-300",
    )


def test_the_command_prints_a_table_and_json(capsys):
    command = ["errors", "synthetic", "--delta", "0.1,0.01", "--trials", "200"]
    assert cli.run(command) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[3].split()[0] == "0.1"  # a row for each delta and answer
    for word in ("client 0", "client 2", "server", "any", "0.01", "effective"):
        assert word in text
    assert cli.run([*command, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 10
    assert rows[-1]["answer"] == "any"
    assert 0 < rows[-1]["estimate"] < rows[4]["estimate"] < 1e-5
    assert cli.run(["errors", "synthetic", "--delta", "7"]) == 2


def test_the_table_of_true_errors_comes_from_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(true_errors, "DELTAS", (0.1, 0.01))
    monkeypatch.setattr(true_errors, "TRIALS", 1000)
    frame = true_errors.read_or_measure(tmp_path, ["synthetic"])
    assert frame.equals(pl.read_parquet(tmp_path / "true-errors.parquet"))
    assert frame.shape[0] == 10
    assert list(true_errors.charts(frame)) == ["synthetic-errors"]
    rows = true_errors.errors_table(frame).frame.to_dicts()
    exponent = rows[0]["exponent"]
    ends = frame.filter(pl.col("answer") == "any").sort("delta")["log10"]
    assert exponent == pytest.approx(ends[1] - ends[0], abs=0.01)
    assert 1.7 < exponent < 2.6
    assert any(row["doubts"] for row in rows)  # 200 trials are few


def test_tilts_of_movielens_never_tie_for_the_best_arm() -> None:
    """Ratings take ten values: tilted toward a wrong answer, two arms may pay the same."""
    found = ff.error_probability("movielens", "fedelim", delta=0.1, trials=100)
    assert len(found.frame) > 38
