"""The radii are the paper's, and the boundaries are the radii in sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fastfed import radius

DELTAS = [1e-6, 0.01, 0.5]


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("n", [1, 2, 17, 10**6, 2**52])
def test_radii_as_printed(n, delta):
    K, M = 4, 3
    assert radius.alpha_local(n, K, M, delta) == pytest.approx(
        math.sqrt(2 * math.log(8 * K * M * n**2 / delta) / n), rel=1e-14)
    assert radius.alpha_global(n, K, M, delta) == pytest.approx(
        math.sqrt(2 * math.log(8 * K * n**2 / delta) / (M * n)), rel=1e-14)


def test_radii_by_hand():
    """K = 4, M = 3, n = 100, delta = 0.01: ln(9.6e7) and ln(3.2e7)."""
    assert radius.alpha_local(100, 4, 3, 0.01) == pytest.approx(
        math.sqrt(2 * 18.37985874943211 / 100), rel=1e-12)
    assert radius.alpha_global(100, 4, 3, 0.01) == pytest.approx(
        math.sqrt(2 * 17.281246460764 / 300), rel=1e-12)


def test_sigma_is_a_scale():
    assert radius.alpha_local(7, 4, 3, 0.1, 2.5) == pytest.approx(
        2.5 * radius.alpha_local(7, 4, 3, 0.1))
    assert radius.alpha_global(7, 4, 3, 0.1, 2.5) == pytest.approx(
        2.5 * radius.alpha_global(7, 4, 3, 0.1))


@pytest.mark.parametrize("n", [1, 3, 1000, 2**52])
def test_boundaries_are_radii_in_sums(n):
    """A lead of g(n) in sums is a lead of 2 alpha(n) in means."""
    K, M, delta, sigma = 5, 7, 0.05, 1.5
    local = radius.boundary(n, 1, radius.local_log(K, M, delta), sigma)
    assert local / n == pytest.approx(2 * radius.alpha_local(n, K, M, delta, sigma), rel=1e-14)
    server = radius.boundary(n, M, radius.global_log(K, delta), sigma)
    assert server / (n * M) == pytest.approx(
        2 * radius.alpha_global(n, K, M, delta, sigma), rel=1e-14)


@pytest.mark.parametrize("log_c", [math.log(8 / 0.999), 5.0, 40.0])
def test_boundaries_rise_and_are_concave(log_c):
    """What skipping rests on: between two steps the boundary lies above its chord."""
    rng = np.random.default_rng(2)
    for _ in range(2000):
        a, b = np.sort(np.exp(rng.uniform(0, math.log(2.0**52), 2)))
        share = rng.uniform()
        middle = radius.boundary(a + share * (b - a), 3, log_c, 1.0)
        ends = [radius.boundary(x, 3, log_c, 1.0) for x in (a, b)]
        assert ends[0] <= ends[1]
        assert middle >= ((1 - share) * ends[0] + share * ends[1]) * (1 - 1e-12)


@pytest.mark.parametrize("gap", [3.0, 1.0, 0.3, 0.02, 1e-3, 1e-5])
@pytest.mark.parametrize("walks", [1, 6])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_resolved_by_is_the_first_step_that_resolves(gap, walks, sigma):
    log_c = radius.local_log(4, 3, 0.01)
    n = radius.resolved_by(gap, walks, log_c, sigma)
    assert n == int(n) >= 1
    assert radius.radius(n, walks, log_c, sigma) <= gap / 4
    if n > 1:
        assert radius.radius(n - 1, walks, log_c, sigma) > gap / 4
    # and from there on
    assert all(radius.radius(n * f, walks, log_c, sigma) <= gap / 4 for f in (1.5, 2, 10, 1e6))


def test_resolved_by_at_the_edges():
    assert radius.resolved_by(math.inf, 1, 5.0, 1.0) == 1
    assert radius.resolved_by(1e9, 1, 5.0, 1.0) == 1
    assert radius.resolved_by(1e-200, 1, 5.0, 1.0) == math.inf
    assert radius.resolved_by(5e-324, 1, 5.0, 1.0) == math.inf
    assert 1e16 < radius.resolved_by(1e-7, 1, 5.0, 1.0) < 1e18


def test_resolved_by_where_the_gap_dwarfs_the_scale():
    """gap / sigma past 1e154: its square is no double any more."""
    assert radius.resolved_by(1.0, 1, 5.0, 1e-200) == 1
    assert radius.resolved_by(1e200, 1, 5.0, 1.0) == 1
