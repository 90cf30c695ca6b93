"""Radii of users and built-in ones: rows, replays and refusals.

`test_engines.py` compares engines with every radius; `test_validity.py` tests their promise.
"""

from __future__ import annotations

import math

import pytest
from helpers import BOUNDS, SMALL, refused, run
from polars.testing import assert_frame_equal

import fastfed as ff
from fastfed.model.radii import Radius

SCHEDULES = ["fedelim", "fedelim0", "periodic:7", "exponential:1.5"]


def union(n: float, a: float) -> float:
    """Compute the paper's radius, as a user's function might."""
    return math.log(4.0 / a) + 2.0 * math.log(n)


def test_an_own_radius_with_the_papers_formula_gives_the_papers_rows():
    same = [
        ff.simulate(SMALL, SCHEDULES, delta=0.05, trials=50, radius=radius, threads=1).frame
        for radius in ("paper", ff.Radius(union, name="union"))
    ]
    assert_frame_equal(*(frame.drop("radius", *BOUNDS) for frame in same))
    assert same[1]["radius"].unique().to_list() == ["union"]


def test_a_replay_names_its_radius_and_adds_up():
    told = ff.replay(SMALL, "fedelim", delta=0.1, trial=3, radius="mixture-pairs")
    row = ff.simulate(
        SMALL, "fedelim", delta=0.1, trials=4, threads=1, radius="mixture-pairs"
    ).frame.row(3, named=True)
    assert told.row == row
    assert "mixture-pairs" in str(told)
    first = told.events[0]
    confidence = Radius.parse("mixture-pairs")
    at = confidence.at_server if first.actor == "server" else confidence.at_client
    assert first.threshold == pytest.approx(2 * at(2, 2, 0.1, 1.0).alpha(first.step))


def unsupported(n, a):
    return 5.0 if sorted({"x": n}.items(), key=str) else a


def test_bad_radii_are_one_line(tmp_path):
    def simulate(radius):
        return lambda: ff.simulate(SMALL, "fedelim", delta=0.1, trials=1, radius=radius)

    refused(simulate("mixtur"), "radius 'mixtur'", "'mixture'")
    refused(simulate("mixture:0"), "mixture: N = '0'", "1 to 2^52")
    refused(simulate("mixture:x"), "mixture: N = 'x'", "1 to 2^52")
    refused(simulate("stitched:3"), "stitched takes no option")
    refused(simulate(3), "radius 3")
    refused(simulate(ff.Radius(lambda n, a: math.nan)), "L(1) = nan")
    refused(simulate(ff.Radius(lambda n, a: 5.0 - n / 10)), "L(50) = 0")
    refused(simulate(ff.Radius(lambda n, a: 1.0 + n * n)), "not concave at n = ")
    falling = ff.Radius(lambda n, a: (1e9 * (1.0 - 0.99 * (n / 2.0**53) ** 2)) ** 2 / n)
    refused(simulate(falling), "falls to ")
    refused(simulate(ff.Radius(lambda n, a: 1 / (n - n))), "L(1)", "ZeroDivisionError")
    refused(simulate(ff.Radius(unsupported)), "Numba cannot compile")
    refused(lambda: ff.Radius(3), "radius 3")
    refused(lambda: ff.Radius(union, name="mixture:3"), "taken by a built-in")
    refused(lambda: ff.Radius(union, name="a,b"), "commas")
    refused(lambda: run(tmp_path, radii=[ff.Radius(union)]), "radius own", "by name only")
    refused(lambda: run(tmp_path, radii=[]), "no radii")
