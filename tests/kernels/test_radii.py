"""The kernels' bounds on g against the formula that they stand in for."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import pytest
from helpers import built_in
from hypothesis import given
from hypothesis import strategies as st

from fastfed import confidence as radius
from fastfed.confidence import Confidence
from fastfed.kernels import radii as boundary
from fastfed.kernels.compiling import kernel
from fastfed.model.radii import Radius

RADII = [name for name in built_in(Radius) if name != "betting"]  # which compares capitals


@kernel
def below(n, level, curve):
    return boundary.boundary_below(curve, n, level)


@kernel
def between(a, b, g_a, g_b, level, curve, noise):
    return boundary.boundary_between(curve, a, b, g_a, g_b, level, noise)


@kernel
def reaches(lead, n, level, curve):
    return boundary.reaches(curve, lead, n, level)


@kernel
def exact(curve, n):
    return boundary.exact(curve, n)


@cache
def curve_of(name: str, delta: float, clients: int, scale: float) -> tuple[Confidence, Any]:
    confidence = Radius.parse(name).at_server(4, clients, delta, scale)
    return confidence, boundary.make_radius(confidence)


def setting(log_c: float, walks: float, scale: float) -> boundary.Boundary:
    paper = radius.Confidence(radius.PAPER, float(walks), scale, False, 0.01, log_c, 0.0)
    curve: boundary.Boundary = boundary.make_radius(paper)
    return curve


steps = st.one_of(
    st.integers(1, 2**52), st.integers(0, 52).map(lambda t: 2**t), st.integers(1, 1000)
)
log_cs = st.floats(math.log(16.0), 60.0)


@given(
    n=steps,
    name=st.sampled_from([*RADII, "mixture:1", "mixture-pairs:4503599627370496"]),
    delta=st.sampled_from([0.999, 0.1, 1e-300]),
    clients=st.sampled_from([1, 3, 100]),
    scale=st.sampled_from([1e-3, 1.3, 1e3]),
    off=st.sampled_from([0.0, 1e-15, -1e-15, 1e-10, -1e-10, 3e-6, -3e-6, 3e-5, -3e-5, 1e-3]),
)
def test_the_table_is_below_and_near_and_the_formula_decides(n, name, delta, clients, scale, off):
    """At g itself, the next numbers on either side of it, and further off."""
    confidence, curve = curve_of(name, delta, clients, scale)
    g, level = exact(curve, float(n)), n.bit_length()
    assert g == pytest.approx(confidence.boundary(float(n)), rel=1e-14)
    assert g * (1 - 3e-5) < below(n, level, curve) < g
    for lead in (g * (1 + off), g, math.nextafter(g, 0.0), math.nextafter(g, math.inf)):
        assert reaches(lead, n, level, curve) == (lead >= g), (lead, g)


@given(
    level=st.integers(3, 52),
    place=st.floats(0.0, 1.0),
    depth=st.integers(0, 49),
    log_c=log_cs,
    walks=st.integers(1, 100),
    noise=st.floats(1e-3, 1e3),
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


def test_the_formula_is_asked_only_where_the_table_does_not_decide():
    """A forged formula would turn every answer round."""
    for name in RADII:
        _, curve = curve_of(name, 0.1, 3, 1.3)
        for n in (1, 3, 200, 12345, 2**40 + 12345):
            g, level = exact(curve, float(n)), n.bit_length()
            assert reaches(g * (1 + 3e-5), n, level, forged(curve, n, 1e6))
            assert not reaches(g * (1 - 3e-5), n, level, forged(curve, n, 1e-6))


def forged(curve: boundary.Boundary, n: int, factor: float) -> boundary.Boundary:
    """Return the curve with another formula and the same bounds."""
    if curve.kind != radius.PAPER:
        return curve._replace(unit=factor * curve.unit)
    table, twice = curve.table.copy(), 2.0 * math.log(n)
    table[boundary.CONSTANT] = factor * (table[boundary.CONSTANT] + twice) - twice
    return curve._replace(table=table)
