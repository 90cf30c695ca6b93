"""Built-in algorithms against their reference, and against delta where errors happen."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fastfed as ff
from fastfed.model.schedules.algorithm import Algorithm, Answer, RadiusNumbers, Seen
from fastfed.model.schedules.oracle import optimal_allocation
from fastfed.model.setting import Setting

FALSE_ALARM = 1e-6
EASY = ff.Instance([[1.4, 0.2], [0.0, 1.0], [0.3, 0.1]], name="easy")
COINS = ff.Instance([[0.9, 0.2], [0.1, 0.7]], rewards=ff.Bernoulli(), name="coins")
NAMES = ("rounds:2", "phases", "halving:120", "oracle")


@cache
def prepared(
    instance: ff.Instance, name: str, delta: float, sigma: float | None
) -> tuple[Algorithm, Setting, Any]:
    """Return an algorithm, its setting and what it prepares, which all trials share."""
    algorithm = ff.Schedule.parse(name)
    assert isinstance(algorithm, Algorithm)
    setting = Setting.of(instance, delta=delta, sigma=sigma)
    return algorithm, setting, algorithm.prepare(setting)


def step_by_step(
    instance: ff.Instance, name: str, delta: float, rng: Any, sigma: float | None = None
) -> tuple[int, int, int, bool]:
    """Run a trial with independent rewards, pull by pull.

    Returns pulls, uplinks, rounds, and whether an answer is wrong.
    """
    algorithm, setting, told = prepared(instance, name, delta, sigma)
    arms, clients = instance.shape
    counts, sums = np.zeros((arms, clients), np.int64), np.zeros((arms, clients))
    received_counts, received_sums = counts.copy(), sums.copy()
    answer = Answer(
        counts.copy(), np.ones((arms, clients), bool), np.full(clients, -1), np.full(1, -1)
    )
    memory = np.zeros(algorithm.memory(arms, clients))
    pulls = uplinks = rounds = number = 0
    while True:
        seen = Seen(
            number, counts, sums, received_counts, received_sums, delta, setting.sigma,
            np.full(clients, 1 / clients), np.full((arms, clients), 1 / clients),
            np.ones((arms, clients), bool), RadiusNumbers.of(setting.radii.client),
            RadiusNumbers.of(setting.radii.server), setting.last_step, algorithm.options,
            told, memory, np.zeros((0, 0)),
        )  # fmt: skip
        algorithm.decide(seen, answer)
        if (answer.local_arms != -1).all() and answer.global_arm[0] != -1:
            local_right = (answer.local_arms == instance.local_best).all()
            right = local_right and answer.global_arm[0] == instance.global_best
            return pulls, uplinks, rounds, not right
        before = uplinks
        for k in range(arms):
            for m in range(clients):
                new = int(answer.targets[k, m] - counts[k, m])
                if not new:
                    continue
                mean = instance.means[k, m]
                if isinstance(instance.rewards, ff.Gaussian):
                    sums[k, m] += rng.normal(mean, 1.0, new).sum()
                else:
                    sums[k, m] += (rng.random(new) < mean).sum()
                counts[k, m] += new
                pulls += new
                if answer.sent[k, m]:
                    uplinks += 1
                    received_counts[k, m], received_sums[k, m] = counts[k, m], sums[k, m]
        rounds += uplinks > before
        number += 1
        answer.sent[:] = True


@pytest.mark.statistical
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("instance", [EASY, COINS], ids=str)
def test_rows_have_the_law_of_independent_rewards(name: str, instance: ff.Instance) -> None:
    """Two-sample tests of three columns, each with a false alarm of 1e-6 at most."""
    rng = np.random.default_rng(17)
    reference = np.array([step_by_step(instance, name, 0.2, rng) for _ in range(300)]).T
    rows = ff.simulate(instance, name, delta=0.2, trials=3000, seed=5).frame
    for column, values in zip(("pulls", "uplinks", "rounds"), reference[:3], strict=True):
        found = rows[column].to_numpy()
        assert stats.ks_2samp(values, found).pvalue > FALSE_ALARM, column


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "scale"), [("phases", 0.25), ("oracle", 0.25), ("rounds:2", 0.3)])
def test_errors_are_those_of_independent_rewards(name: str, scale: float) -> None:
    """At a small confidence scale many answers are wrong, in equal shares of both programs.

    Fisher's exact test of two counts has a false alarm of 1e-6 at most.
    """
    rng = np.random.default_rng(18)
    hard = ff.Instance(0.4 * EASY.means)
    wrong = sum(step_by_step(hard, name, 0.5, rng, scale)[3] for _ in range(200))
    rows = ff.simulate(hard, name, delta=0.5, trials=4000, seed=6, sigma=scale).frame
    counted = int((~rows["correct"]).sum())
    assert 100 < counted < 3900
    table = [[wrong, 200 - wrong], [counted, 4000 - counted]]
    assert stats.fisher_exact(table).pvalue > FALSE_ALARM


# gaps are small, so that a trial looks often before the truth shows
BROKEN = {
    "ties among rivals": ff.Instance([[0.01, 0.01], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]),
    "one client dominates": ff.Instance([[0.5, -0.04, -0.04], [0.0, 0.0, 0.0], [0.0, 0.01, 0.01]]),
    "two arms": ff.Instance([[0.01], [0.0]]),
}


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "least"), [("phases", 20), ("oracle", 1)])
def test_errors_stay_below_delta_where_they_happen(name: str, least: int) -> None:
    """Each count of errors exceeds its quantile with probability 1e-6 if the error rate is delta.

    Delta is large, so that errors happen: without any the test would say nothing.
    """
    delta, trials, happened = 0.6, 4000, 0
    for instance in BROKEN.values():
        rows = ff.simulate(instance, name, delta=delta, trials=trials, seed=8).frame
        assert not rows["truncated"].any()
        errors = trials - int(rows["correct"].sum())
        assert errors <= stats.binom.isf(FALSE_ALARM, trials, delta)
        happened += errors
    assert happened >= least


def test_allocation_of_the_oracle_is_that_of_t_star() -> None:
    for name in ("synthetic", "random:4,5,3"):
        instance = ff.Instance.load(name)
        weights = np.full(instance.shape, 1 / instance.shape[1])
        found = optimal_allocation(instance.means, instance.averages, weights, 1.0)
        known = ff.bounds(instance, delta=0.01)
        assert known.T_star * (1 - 1e-6) <= found.sum() <= known.T_star * (1 + 2e-3)


def test_a_lost_best_arm_comes_back() -> None:
    """In this trial two rivals that tie lead for a while, and the best arm is proven worse."""
    tied = BROKEN["ties among rivals"]
    row = ff.simulate(tied, "phases", delta=0.6, trials=1, first=2895, seed=8, engine="python")
    assert not row.frame["truncated"].any()
