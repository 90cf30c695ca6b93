"""No run whose guarantee holds may pull less, on average, than T* kl(delta, 1 - delta)."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import fastfed as ff
from fastfed.model.radii import Radius
from fastfed.theory.lower_bounds import not_delta_pac, over_least_pulls

GAUSSIAN = ff.Instance([[0.9, 0.1], [0.2, 0.7], [0.0, 0.3]], name="gaussian")
CELLS = ff.Instance(
    [[0.9, 0.1], [0.2, 0.7], [0.0, 0.3]],
    ff.Gaussian([[0.2, 1.0], [0.5, 0.3], [1.0, 0.4]]),
    name="cells",
)
BERNOULLI = ff.Instance([[0.97, 0.05], [0.3, 0.6]], ff.Bernoulli(), name="coins")
LAWS = [(GAUSSIAN, None), (CELLS, None), (BERNOULLI, "proxy")]
RADII = ["paper", "stitched", "mixture:30", "stitched-pairs", "mixture-pairs:30"]
DELTAS = [0.1, 1e-6]


@pytest.mark.statistical
@pytest.mark.parametrize(("law", "radius", "delta"), list(product(LAWS, RADII, DELTAS)))
def test_no_run_is_below_its_bound(
    law: tuple[ff.Instance, str | None], radius: str, delta: float
) -> None:
    """30 settings, two schedules each: the mean must not lie 6 standard errors below the bound.

    A run that sat at the bound itself would fail with probability 1e-9 each.
    """
    instance, sigma = law
    done = ff.simulate(
        instance, ["fedelim0", "fedelim"], delta=delta, trials=400, radius=radius, sigma=sigma
    )
    bound = ff.bounds(instance, delta, sigma=sigma, radius=radius)
    assert not_delta_pac(instance, bound.sigma, Radius.parse(radius)) is None
    for name in ("fedelim0", "fedelim"):
        pulls = done.frame.filter(schedule=name)["pulls"].to_numpy()
        error = pulls.std(ddof=1) / np.sqrt(len(pulls))
        assert pulls.mean() + 6 * error > bound.least_pulls


def test_bounds_promise_nothing_that_a_run_undercuts() -> None:
    """Theorem 3 is not about Bernoulli rewards: by its formula this run would need 122 pulls."""
    instance = ff.Instance([[0.97, 0.95], [0.03, 0.05]], ff.Bernoulli())
    found = ff.bounds(instance, 1e-6, sigma="proxy", radius="mixture-pairs:30")
    done = ff.simulate(
        instance, "fedelim0", delta=1e-6, trials=2000, sigma="proxy", radius="mixture-pairs:30"
    )
    pulls = done.frame["pulls"]
    assert pulls.mean() < 100
    assert found.lower is None
    assert found.least_pulls < pulls.mean()
    assert "Theorem 3 is about Gaussian rewards of one variance" in found.notes


@pytest.mark.parametrize(
    ("instance", "sigma", "radius", "reason"),
    [
        (GAUSSIAN, 0.9, "paper", "scale 0.9, these rewards need 1: not delta-PAC"),
        (CELLS, 0.9, "paper", "scale 0.9, these rewards need 1: not delta-PAC"),
        (BERNOULLI, 0.4, "paper", "scale 0.4, these rewards need 0.5: not delta-PAC"),
        (ff.Instance([[3.0], [1.0]], ff.Poisson(sigma=2.0)), 2.0, "paper", "poisson rewards: no"),
    ],
)
def test_a_run_without_a_guarantee_is_held_against_nothing(
    instance: ff.Instance, sigma: float, radius: str, reason: str
) -> None:
    found = not_delta_pac(instance, sigma, Radius.parse(radius))
    assert found is not None
    assert found.startswith(reason)
    where = {"delta": 0.1, "sigma": sigma, "radius": radius, "goal": "best"}
    assert over_least_pulls(instance, 100.0, where) is None


def test_an_own_radius_is_not_known_to_be_delta_pac() -> None:
    own = ff.Radius(lambda n, a: 1.0, name="mine")
    assert not_delta_pac(GAUSSIAN, 1.0, own) == "radius mine: not known to be delta-PAC"


def test_the_printed_summary_has_mean_pulls_over_the_least() -> None:
    done = ff.simulate(GAUSSIAN, ["fedelim0", "fedelim"], delta=0.01, trials=50)
    assert "x T*" in str(done)
    row = done.summary().row(0, named=True)
    ratio = over_least_pulls(GAUSSIAN, row["pulls_mean"], row)
    assert ratio == pytest.approx(row["pulls_mean"] / ff.bounds(GAUSSIAN, 0.01).least_pulls)
    assert ratio > 1
    assert "x T*" not in str(ff.simulate(GAUSSIAN, delta=0.01, trials=5, sigma=0.5))


@pytest.mark.parametrize("seed", range(12))
def test_factors_between_the_optimum_theorem_3_and_fedelim0(seed: int) -> None:
    """As delta falls, FedElim0 is within 2 and 8 times T*, and T* within 2 M times Theorem 3."""
    rng = np.random.default_rng(seed)
    instance = ff.Instance(rng.random((rng.integers(2, 7), rng.integers(1, 7))))
    clients = instance.shape[1]
    found = ff.bounds(instance, 1e-300)
    local, server = instance.local_gaps**2, instance.global_gaps[:, None] ** 2
    fedelim0 = np.maximum(8 / local, 8 / (clients * server)).sum()
    theorem = np.maximum(2 / local, 2 / (clients**2 * server)).sum()
    assert fedelim0 / found.T_star * (1 + 1e-6) >= 2
    assert fedelim0 / found.T_star <= 8
    assert found.T_star / theorem * (1 + 1e-6) >= 1
    assert found.T_star / theorem <= 2 * clients
    assert found.lower == pytest.approx(theorem * np.log(1 / 2.4e-300), rel=1e-9)


def test_theorem_3_can_be_improved_by_twice_the_number_of_clients() -> None:
    """Local gaps of 0.4 and 0.2 at two clients, a gap of 0.1 at the server: 800 against 200."""
    found = ff.bounds([[0.4, 0.0], [0.0, 0.2]], 0.01)
    assert found.T_star == pytest.approx(800, rel=1e-6)
    assert found.lower / np.log(1 / 0.024) == pytest.approx(200, rel=1e-9)
