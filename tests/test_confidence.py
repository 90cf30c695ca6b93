"""The radii are the paper's, and the boundaries are the radii in sums."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest
from helpers import built_in

from fastfed import confidence as radius
from fastfed.errors import InputError
from fastfed.model import radii

DELTAS = [1e-6, 0.01, 0.5]


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("n", [1, 2, 17, 10**6, 2**52])
def test_radii_as_printed(n, delta):
    K, M = 4, 3
    assert radius.alpha_local(n, K, M, delta) == pytest.approx(
        math.sqrt(2 * math.log(8 * K * M * n**2 / delta) / n), rel=1e-14
    )
    assert radius.alpha_global(n, K, M, delta) == pytest.approx(
        math.sqrt(2 * math.log(8 * K * n**2 / delta) / (M * n)), rel=1e-14
    )


@pytest.mark.parametrize("n", [1, 3, 1000, 2**52])
def test_boundaries_are_radii_in_sums(n):
    """A lead of g(n) in sums is a lead of 2 alpha(n) in means."""
    K, M, delta, sigma = 5, 7, 0.05, 1.5
    local = radius.boundary(n, 1, radius.local_log(K, M, delta), sigma)
    assert local / n == pytest.approx(2 * radius.alpha_local(n, K, M, delta, sigma), rel=1e-14)
    server = radius.boundary(n, M, radius.global_log(K, delta), sigma)
    assert server / (n * M) == pytest.approx(
        2 * radius.alpha_global(n, K, M, delta, sigma), rel=1e-14
    )


def test_resolved_by_at_the_edges():
    assert radius.resolved_by(math.inf, 1, 5.0, 1.0) == 1
    assert radius.resolved_by(1e9, 1, 5.0, 1.0) == 1
    assert radius.resolved_by(1e-200, 1, 5.0, 1.0) == math.inf
    assert radius.resolved_by(5e-324, 1, 5.0, 1.0) == math.inf
    assert 1e16 < radius.resolved_by(1e-7, 1, 5.0, 1.0) < 1e18


def test_resolved_by_where_the_gap_dwarfs_the_scale():
    """The square of gap / sigma is no double any more beyond 1e154."""
    assert radius.resolved_by(1.0, 1, 5.0, 1e-200) == 1
    assert radius.resolved_by(1e200, 1, 5.0, 1.0) == 1


OTHERS = [name for name in built_in(radii.Radius) if name not in ("paper", "betting")]


def test_the_formulas_as_published():
    """Howard et al., eq. (2), and Robbins' mixture, from their own pages."""
    n, a = 50.0, 0.02 / 8  # K = 4 arms at one server
    server = radii.Radius.parse("stitched").at_server(4, 3, 0.02, 1.0)
    assert server.budget == a
    assert 2 * n * server.exponent(n) == pytest.approx(
        (1.7 * math.sqrt(n * (math.log(math.log(2 * n)) + 0.72 * math.log(10.4 / a)))) ** 2
    )
    r = 1000 / (2 * math.log(1 / a) + math.log(1 + 2 * math.log(1 / a)))
    mixture = radii.Radius.parse("mixture").at_server(4, 3, 0.02, 1.0)
    sum_now = math.sqrt(2 * n * mixture.exponent(n))  # where the mixture is 1 / a
    assert math.sqrt(r / (n + r)) * math.exp(sum_now**2 / (2 * (n + r))) == pytest.approx(1 / a)


@pytest.mark.parametrize("n", [1.0, 30.0, 1e3, 1e6, 1e12])
def test_a_one_sided_mixture_is_above_its_exact_boundary_and_near(n):
    a = 0.02 / (2 * 3)
    pairs = radii.Radius.parse("mixture-pairs").at_server(4, 3, 0.02, 1.0)
    assert (pairs.budget, pairs.pairs) == (a, True)
    r = pairs.shift

    def mixture(share: float) -> float:
        z = share * math.sqrt(2 * n * pairs.exponent(n) / (n + r))
        return 2 * math.sqrt(r / (n + r)) * math.exp(z * z / 2) * NormalDist().cdf(z)

    assert mixture(1.0) >= 1 / a > mixture(0.99)


def test_the_budgets_add_up_to_delta():
    """Over all arms, or pairs, of all clients and of the server."""
    arms, clients, delta = 5, 7, 0.03
    for name in OTHERS:
        one = radii.Radius.parse(name)
        compared = arms - 1 if one.pairs else arms
        local, server = (at(arms, clients, delta, 1.0) for at in (one.at_client, one.at_server))
        assert compared * (clients * local.budget + server.budget) == pytest.approx(delta)
        assert (local.walks, server.walks) == (1, clients)


@pytest.mark.parametrize("name", ["paper", *OTHERS, "mixture:1", "mixture-pairs:1000000000"])
@pytest.mark.parametrize("delta", [0.999, 0.01, 1e-300])
def test_every_boundary_is_positive_and_concave(name, delta):
    """Skipping rests on this: between two steps the boundary lies above its chord."""
    for at in (radii.Radius.parse(name).at_client, radii.Radius.parse(name).at_server):
        g = at(2, 1, delta, 1.0).boundary
        radii._refuse_bent(name, radius.grid(), [g(n) for n in radius.grid()], delta)
        assert g(1.0) > 0


def test_the_check_finds_a_bend():
    with pytest.raises(InputError, match=r"not concave at n = 1\.5 "):
        radii._refuse_bent("x", [1.0, 1.5, 2.0], [1.0, 1.4, 2.0], 0.1)


@pytest.mark.parametrize("name", ["paper", *OTHERS])
@pytest.mark.parametrize("gap", [8.0, 1.0, 0.03, 1e-4])
def test_resolved_by_is_where_the_radius_passes_a_quarter_of_the_gap(name, gap):
    confidence = radii.Radius.parse(name).at_server(3, 2, 0.05, 1.5)
    n = confidence.resolved_by(gap)
    assert n == int(n)
    assert all(confidence.alpha(n * f) <= gap / 4 for f in (1, 1.5, 2, 1e3, 1e6))
    assert n == 1 or confidence.alpha(n - 1) > gap / 4
    assert confidence.resolved_by(math.inf) == 1
    assert confidence.resolved_by(1e-200) == math.inf


def test_names():
    same = ["mixture:1000", "mixture", " mixture:1e3"]
    assert [str(one) for one in radii.Radius.parse_all(same)] == ["mixture"]
    assert str(radii.Radius.parse("mixture-pairs:5000")) == "mixture-pairs:5000"
    assert (
        radii.Radius.parse("paper") == radii.Radius.parse("paper") != radii.Radius.parse("stitched")
    )
