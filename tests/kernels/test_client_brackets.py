"""Lazy clients: rows of followed clients, whether or not every elimination was located."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from goal_cases import FAMILIES, cases
from helpers import BOUNDS

import fastfed as ff
from fastfed.kernels.trials import ROUNDS
from fastfed.simulation.job import Job

SCHEDULES = ["fedelim", "periodic:50", "superexponential"]
REWARDS = {
    "gaussian": lambda rng, shape: ff.Instance(rng.uniform(0.0, 2.0, shape)),
    "bernoulli": lambda rng, shape: ff.Instance(rng.uniform(0.0, 1.0, shape), ff.Bernoulli()),
    "poisson": lambda rng, shape: ff.Instance(rng.uniform(0.2, 3.0, shape), ff.Poisson(sigma=1.0)),
}


def instance_of(kind: str, seed: int) -> ff.Instance:
    rng = np.random.default_rng(seed)
    return REWARDS[kind](rng, (int(rng.integers(2, 6)), int(rng.integers(1, 5))))


def all_but(compiled: Iterable[str], *others: str) -> list[Any]:
    """Mark kinds of rewards whose kernels default tests do not compile."""
    slow = pytest.mark.slow
    return [pytest.param(kind, marks=slow if kind in others else ()) for kind in compiled]


@pytest.mark.parametrize("kind", all_but(REWARDS, "poisson"))
def test_kept_eliminations_change_no_row(kind: str) -> None:
    """Rows stay the same if eliminations are kept, and so every client is followed."""
    for seed in range(4):
        job = Job.of(instance_of(kind, seed), ["fedelim"], delta=0.1, sigma=0.5, keep_pulls=True)
        lazy, whole = job.run(0, 30), job.run(0, 30, keep_departures=True)
        assert (lazy.ints == whole.ints).all()
        assert (lazy.pulls == whole.pulls).all()
        assert whole.departures is not None
        local, server = (
            whole.departures.local_eliminated_at,
            whole.departures.global_eliminated_at[:, 0, 0],
        )
        assert (lazy.pulls[0] == np.maximum(local, server[:, :, None])).all()


@pytest.mark.parametrize("kind", all_but(REWARDS, "poisson"))
@pytest.mark.parametrize("clients", [1, 2, 12])
def test_eliminations_after_the_servers_are_located(kind: str, clients: int) -> None:
    """300 trials; with 12 clients the server decides long before them."""
    scatter = np.random.default_rng(clients).uniform(-0.05, 0.05, (4, clients))
    means = np.array([[0.9], [0.5], [0.45], [0.2]]) + scatter
    shaped = {"gaussian": None, "bernoulli": ff.Bernoulli(), "poisson": ff.Poisson(sigma=1.0)}
    job = Job.of(
        ff.Instance(means, shaped[kind]), ["fedelim"], delta=0.1, sigma=0.4, keep_pulls=True
    )
    lazy, whole = job.run(0, 300), job.run(0, 300, keep_departures=True)
    assert (lazy.ints == whole.ints).all()
    assert (lazy.pulls == whole.pulls).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scale", [1.0, 0.2])
def test_other_goals_are_bracketed_alike(family: str, scale: float) -> None:
    """Sixteen instances with a goal each; at a fifth of the noise, clients err and abandon."""
    for instance, goal in cases(family, "gaussian"):
        job = Job.of(
            instance, SCHEDULES, delta=0.1, goal=goal, sigma=scale, max_steps=2**40, keep_pulls=True
        )
        lazy, whole = job.run(0, 40), job.run(0, 40, keep_departures=True)
        assert (lazy.ints == whole.ints).all()
        assert (lazy.pulls == whole.pulls).all()


@pytest.mark.parametrize("goal", ["best", "top:1", "top:2"])
def test_a_client_that_may_have_been_abandoned_is_followed(goal: str) -> None:
    """Arms 1 and 2 tie; where an error leaves these two, the client gives up at that step."""
    means = [[0.9, 0.8], [0.5, 0.5], [0.5, 0.5], [0.1, 0.2]]
    if goal == "top:2":
        means = [*means, [0.95, 0.9]]
    job = Job.of(ff.Instance(means), ["fedelim"], delta=0.5, goal=goal, sigma=0.15, keep_pulls=True)
    lazy, whole = job.run(0, 2000), job.run(0, 2000, keep_departures=True)
    assert whole.departures is not None
    assert (whole.departures.local_abandoned_at > 0).sum() > 50
    assert (lazy.ints == whole.ints).all()
    assert (lazy.pulls == whole.pulls).all()


@pytest.mark.parametrize(
    ("goal", "factor"), [("best", 2.0), ("top:1", 1.7), ("eps:0.1", 1.6), ("threshold:0.3", 1.4)]
)
def test_most_eliminations_are_not_located(goal: str, factor: float) -> None:
    job = Job.of(ff.Instance.load("synthetic"), ["fedelim"], delta=0.01, goal=goal)
    lazy, whole = job.run(0, 200), job.run(0, 200, keep_departures=True)
    assert (lazy.ints == whole.ints).all()  # the last declaration of any client among them
    assert factor * lazy.work[:, 1].sum() < whole.work[:, 1].sum()


MANY = {
    "gaussian": lambda means: ff.Instance(means),
    "noise of each cell": lambda means: ff.Instance(means, ff.Gaussian(0.5 + means / 2)),
    "bernoulli": lambda means: ff.Instance(means / 2, ff.Bernoulli()),
}


@pytest.mark.parametrize("kind", all_but(MANY, "noise of each cell"))
def test_many_arms_are_compared_as_few_are(kind: str) -> None:
    """Eleven arms have 110 ordered pairs, of which few are unresolved at a time."""
    instance = MANY[kind](np.random.default_rng(11).uniform(0.0, 2.0, (11, 3)))
    options = {"delta": 0.2, "trials": 8, "seed": 3, "sigma": 0.4, "max_steps": 2**12}
    schedules = ["fedelim", "periodic:7"]
    dense = ff.simulate(instance, schedules, engine="dense", **options).frame.drop(BOUNDS)
    assert ff.simulate(instance, schedules, **options).frame.drop(BOUNDS).equals(dense)


@pytest.mark.parametrize(
    ("goal", "certificates"), [("best", 12), ("top:1", 12), ("eps:0.1", 28), ("threshold:0.3", 8)]
)
def test_clients_follow_chosen_times(goal: str, certificates: int) -> None:
    """The server's own numbers of pulls spare clients, too, if the server chooses its times."""
    job = Job.of(ff.Instance.load("synthetic"), ["adaptive"], delta=0.01, goal=goal)
    lazy, whole = job.run(0, 200), job.run(0, 200, keep_departures=True)
    assert (lazy.ints == whole.ints).all()
    assert 8 * lazy.work[:, 1].sum() < 7 * whole.work[:, 1].sum()
    # six intervals hold a chosen time, with so many certificates of 4 arms at each of three clients
    at_least = 1e-15 * 6 * certificates * 3 * lazy.ints[0, :, ROUNDS]
    assert (lazy.skip_error[0] >= at_least).all()


@pytest.mark.parametrize("schedules", [["periodic:1"], ["periodic:2"], ["periodic:1", "fedelim"]])
def test_values_at_powers_of_two_decide_what_is_due(schedules: list[str]) -> None:
    """Else the choice of a client's passes would depend on what they look at."""
    job = Job.of(ff.Instance([[0.9], [0.6], [0.5]]), schedules, delta=0.1)
    space = job.space()
    for trial in range(20):
        job.run(trial, 1, space=space)
        assert all(due & (due - 1) == 0 for due in space.lazy.due.tolist())
