"""The kernels' bounds on g against the formula that they stand in for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastfed import confidence as radius
from fastfed.kernels import radii as boundary
from fastfed.kernels.compiling import kernel


@kernel
def below(n, level, curve):
    return boundary.boundary_below(curve, n, level)


@kernel
def between(a, b, g_a, g_b, level, curve, noise):
    return boundary.boundary_between(curve, a, b, g_a, g_b, level, noise)


@kernel
def reaches(lead, n, level, curve):
    return boundary.reaches(curve, lead, n, level)


def setting(log_c: float, walks: float, scale: float) -> boundary.Boundary:
    paper = radius.Confidence(radius.PAPER, float(walks), scale, False, 0.01, log_c, 0.0)
    curve: boundary.Boundary = boundary.make_radius(paper)
    return curve


def forged(curve: boundary.Boundary, log_c: float) -> boundary.Boundary:
    """Return the curve with another formula and the same bounds."""
    table = curve.table.copy()
    table[boundary.CONSTANT] = log_c
    return curve._replace(table=table)


steps = st.one_of(
    st.integers(1, 2**52), st.integers(0, 52).map(lambda t: 2**t), st.integers(1, 1000)
)
log_cs = st.floats(math.log(16.0), 60.0)
scales = st.floats(1e-3, 1e3)


@given(n=steps, log_c=log_cs, walks=st.integers(1, 100), scale=scales)
def test_the_bound_is_below_and_near(n, log_c, walks, scale):
    curve = setting(log_c, walks, scale)
    g = radius.boundary(float(n), float(walks), log_c, scale)
    low = below(n, n.bit_length(), curve)
    assert g * (1 - 3e-5) < low < g


@given(
    n=steps,
    log_c=log_cs,
    walks=st.integers(1, 100),
    scale=scales,
    off=st.sampled_from([0.0, 1e-15, -1e-15, 1e-10, -1e-10, 3e-6, -3e-6, 1e-3, -1e-3]),
)
def test_who_reaches_the_boundary_is_decided_by_the_formula(n, log_c, walks, scale, off):
    """At g itself, the next numbers on either side of it, and further off."""
    curve = setting(log_c, walks, scale)
    g = radius.boundary(float(n), float(walks), log_c, scale)
    for lead in (g * (1 + off), math.nextafter(g, 0.0), math.nextafter(g, math.inf)):
        decided = reaches(lead, n, n.bit_length(), curve)
        assert decided == (lead >= g), (lead, g)


@given(
    level=st.integers(3, 52),
    place=st.floats(0.0, 1.0),
    depth=st.integers(0, 49),
    log_c=log_cs,
    walks=st.integers(1, 100),
    noise=scales,
)
def test_the_bound_in_the_middle_of_an_interval(level, place, depth, log_c, walks, noise):
    """Below g, off by a fifth of the noise of one reward, or by what the table is off."""
    length = 2 ** max(1, level - 1 - depth)
    start = 2 ** (level - 1)
    a = start + int(place * (start // length - 1)) * length
    b = a + length
    curve = setting(log_c, walks, noise)
    g_a, g_middle, g_b = (
        radius.boundary(n, float(walks), log_c, noise)
        for n in (float(a), float((a + b) // 2), float(b))
    )
    low = between(a, b, g_a, g_b, level, curve, noise)
    assert low < g_middle
    assert g_middle - low < 0.2 * noise + 3e-5 * g_middle


@pytest.mark.parametrize("walks", [1, 38])
def test_most_decisions_need_no_logarithm(walks):
    """A lead that is off g by 1e-5 is decided without the formula.

    A forged log_c would turn every answer of the formula round.
    """
    log_c = 9.0
    curve = setting(log_c, walks, 1.0)
    for n in (1, 3, 77, 5000, 10**9 + 7, 2**52 - 1):
        g = radius.boundary(float(n), float(walks), log_c, 1.0)
        place = (n, n.bit_length())
        assert reaches(g * (1 + 1e-5), *place, forged(curve, 1e6))
        assert not reaches(g * (1 - 1e-5), *place, forged(curve, -log_c))
