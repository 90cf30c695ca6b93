"""T* against closed forms, general solvers, published numbers, and its own certificate."""

from __future__ import annotations

import math

import numpy as np
import programmes
import pytest

import fastfed as ff
from fastfed.theory.characteristic import characteristic_time

# Reda, Vakili and Kaufmann (NeurIPS 2022): their instance with six arms and three clients
PUBLISHED = [
    [0.06150741, -0.16780146, -0.50157774],
    [0.12841435, 0.16983301, -0.14581079],
    [0.44593143, -0.28573457, 0.00899003],
    [-0.03677541, 0.30114023, 0.28868022],
    [0.03044202, 0.07429638, -0.17442043],
    [-0.38916074, -0.06835319, 0.03071738],
]


def questions(clients):
    """Each client's own question and the server's."""
    return np.vstack([np.eye(clients), np.full((1, clients), 1 / clients)])


def assert_certified(found, tolerance=1e-6):
    assert found.note == ""
    assert found.lower <= found.upper <= found.lower * (1 + tolerance)
    assert found.allocation.sum() == pytest.approx(found.upper, rel=1e-12)


def test_synthetic_is_the_closed_form_in_which_only_the_server_binds():
    """U + v = 3 Delta^2 / 2 for cells of arms 0 to 2 and of arm 3; minimise 9 / u + 3 / v."""
    gap = 0.5 - 1.1 / 3
    found = characteristic_time(ff.Instance.load("synthetic"), ff.Best())
    assert_certified(found)
    assert found.lower == pytest.approx((3 + math.sqrt(3)) ** 2 / (1.5 * gap**2), rel=1e-9)
    assert found.lower == pytest.approx(839.711, abs=1e-3)
    assert found.allocation[:3] == pytest.approx(np.full((3, 3), 59.15), abs=5e-3)
    assert found.allocation[3] == pytest.approx(np.full(3, 102.45), abs=5e-3)


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        (ff.Instance.load("bernoulli").means, 9024.43),
        (ff.Instance.load("random:20,38,1").means, 1.0144e7),
    ],
)
def test_known_values_with_unit_noise(means, expected):
    found = characteristic_time(ff.Instance(means), ff.Best())
    assert_certified(found)
    assert found.lower == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 50))]
)
def test_slsqp_finds_the_same_value(seed):
    rng = np.random.default_rng(seed)
    arms, clients = rng.integers(2, 6), rng.integers(1, 6)
    means = rng.random((arms, clients))
    sigma = np.exp(rng.normal(size=means.shape) / 2) if seed % 2 else np.ones(means.shape)
    weights = rng.dirichlet(np.ones(clients)) if seed % 4 > 1 else np.full(clients, 1 / clients)
    found = characteristic_time(ff.Instance(means, ff.Gaussian(sigma), weights=weights), ff.Best())
    assert_certified(found)
    other = programmes.gaussian(means, sigma**2, np.vstack([np.eye(clients), weights]))
    assert found.lower == pytest.approx(other, rel=1e-5)


def test_published_oracle_of_personalised_questions():
    """They print T* ln(1 / (2.4 delta)) with every cell rounded up."""
    found = characteristic_time(ff.Instance.personalised(PUBLISHED, alpha=0.5), ff.Best())
    assert_certified(found)
    assert found.lower == pytest.approx(768.0, abs=0.05)
    for delta, printed in ((0.1, 1104), (0.01, 2875), (1e-5, 8180)):
        pulls = np.ceil(found.allocation * math.log(1 / (2.4 * delta))).sum()
        assert abs(pulls - printed) <= 2  # their optimum is rounded, too


def test_both_values_meet_on_ten_thousand_cells():
    found = characteristic_time(ff.Instance.load("random:100,100,1"), ff.Best())
    assert_certified(found)
    assert found.allocation.min() > 0


@pytest.mark.parametrize("goal", [ff.Top(1), ff.Top(2), ff.Threshold(0.4)])
def test_allocation_is_feasible_for_every_change_of_the_answer(goal):
    """The dense constraints of each goal, written out here once more."""
    rng = np.random.default_rng(5)
    means = rng.random((4, 3))
    found = characteristic_time(ff.Instance(means), goal)
    assert_certified(found)
    worst = np.inf
    for weights in questions(3):
        values = means @ weights
        spread = (weights**2 / found.allocation).sum(axis=1)
        if isinstance(goal, ff.Threshold):
            worst = min(worst, *((values - goal.tau) ** 2 / (2 * spread)))
            continue
        order = np.argsort(-values)
        for i in order[: goal.count]:
            for j in order[goal.count :]:
                worst = min(worst, (values[i] - values[j]) ** 2 / (2 * (spread[i] + spread[j])))
    assert worst == pytest.approx(1, abs=1e-6)


def test_ties_are_refused():
    with pytest.raises(ff.InputError, match="tie"):
        characteristic_time(ff.Instance([[0.5], [0.5]]), ff.Best())


def test_top_one_is_best():
    instance = ff.Instance.load("random:5,4,2")
    best, top = (characteristic_time(instance, goal) for goal in (ff.Best(), ff.Top(1)))
    assert top.lower == pytest.approx(best.lower, rel=1e-6)


def test_threshold_of_a_lone_cell():
    """One client: its question and the server's are the same, 2 s / (mu - tau)^2 pulls."""
    found = characteristic_time(ff.Instance([[0.8]], ff.Gaussian(2.0)), ff.Threshold(0.5))
    assert found.lower == pytest.approx(2 * 4 / 0.09, rel=1e-6)


def test_nothing_to_ask_costs_nothing():
    found = characteristic_time(ff.Instance([[0.5, 0.5]]), ff.Best())
    assert (found.lower, found.upper, found.allocation.tolist()) == (0.0, 0.0, [[0.0, 0.0]])


def test_clients_without_weight_are_not_pulled_for_the_server():
    means = [[0.9, 0.5], [0.1, 0.6]]
    found = characteristic_time(ff.Instance(means, weights=[1, 0], local=False), ff.Best())
    assert found.lower == pytest.approx(8 / 0.64, rel=1e-6)
    assert found.allocation[:, 1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("rewards", [ff.Bernoulli(), ff.Poisson(sigma=1.0)])
@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 10))]
)
def test_brute_force_over_alternatives_finds_the_same_value(rewards, seed):
    """20 instances: SLSQP over pulls, and over every half-space of alternatives on its own."""
    rng = np.random.default_rng(seed)
    means = 0.02 + 0.96 * rng.random((rng.integers(2, 4), rng.integers(1, 4)))
    bernoulli = isinstance(rewards, ff.Bernoulli)
    found = characteristic_time(ff.Instance(means, rewards), ff.Best())
    assert_certified(found)
    start = characteristic_time(ff.Instance(means, ff.Gaussian(0.5)), ff.Best()).allocation
    other = programmes.family(
        means,
        programmes.bernoulli_kl if bernoulli else programmes.poisson_kl,
        questions(means.shape[1]),
        start,
        1 - 1e-9 if bernoulli else 5.0,
    )
    assert found.lower == pytest.approx(other, rel=2e-4)


def test_one_client_and_two_arms_have_a_closed_form():
    """The cheapest alternative lies where both kl are equal: at 1/2 for means p and 1 - p."""
    p = 0.8
    divergence = math.log(2) + p * math.log(p) + (1 - p) * math.log(1 - p)
    found = characteristic_time(ff.Instance([[p], [1 - p]], ff.Bernoulli()), ff.Best())
    assert found.lower == pytest.approx(1 / divergence, rel=1e-6)


@pytest.mark.parametrize("rewards", [ff.Bernoulli(), ff.Poisson(sigma=1.0)])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))]
)
def test_means_on_the_edge_are_certified_too(rewards, seed):
    """Bernoulli means 0 and 1, Poisson means 0: there the rounds may circle."""
    rng = np.random.default_rng(seed)
    means = rng.random((4, 5))
    means[means == means.max(axis=0)] = 1.0
    means[means == means.min(axis=0)] = 0.0
    instance = ff.Instance(means, rewards)
    assert_certified(characteristic_time(instance, ff.Best()))


def test_small_gaps_of_bernoulli_rewards_agree_with_gaussian_ones():
    """With gaps of 1e-6 around 1/2 both families are one: digits must not cancel."""
    means = 0.5 + 1e-6 * np.random.default_rng(3).random((3, 2))
    bernoulli = characteristic_time(ff.Instance(means, ff.Bernoulli()), ff.Best())
    gaussian = characteristic_time(ff.Instance(means, ff.Gaussian(0.5)), ff.Best())
    assert_certified(bernoulli)
    assert bernoulli.lower == pytest.approx(gaussian.lower, rel=1e-5)


def test_thresholds_that_no_mean_can_cross_cost_nothing():
    assert (
        characteristic_time(ff.Instance([[0.3], [0.6]], ff.Bernoulli()), ff.Threshold(1.5)).lower
        == 0
    )


@pytest.mark.parametrize(
    ("instance", "goal", "reason"),
    [
        (
            ff.Instance(rewards=ff.Finite([0, 1, 2], [[[1, 2, 1]], [[2, 1, 1]]])),
            ff.Best(),
            "finite rewards: the family of alternatives is not given",
        ),
        (ff.Instance([[0.9], [0.1]]), ff.Eps(0.1), "goal eps:0.1: several answers can be right"),
        (
            ff.Instance([[0.9], [0.1]]),
            ff.Threshold(0.5, 0.05),
            "goal threshold:0.5,0.05: several answers can be right",
        ),
    ],
)
def test_no_number_has_a_reason(instance, goal, reason):
    found = characteristic_time(instance, goal)
    assert (found.lower, found.upper, found.allocation) == (None, None, None)
    assert found.note.startswith(reason)
    assert "\n" not in found.note


def test_a_coarse_lower_value_stays_below_t_star():
    """Compare the lower value at the tolerance 0.1, which T* reports, with a finer upper one."""
    gaussian = ff.Instance(PUBLISHED[:4])
    bernoulli = ff.Instance(np.clip(np.array(PUBLISHED[:4]) + 0.5, 0.05, 0.95), ff.Bernoulli())
    for instance in (gaussian, bernoulli):
        coarse, fine = (characteristic_time(instance, ff.Best(), one) for one in (0.1, 1e-6))
        assert coarse.lower < fine.lower <= fine.upper < coarse.upper
