"""The study of T*: its limits, the split of FedElim's factor, and the instances that attain 2M."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from made_up_claims import found, optimum_place

import fastfed as ff
from fastfed.model.instance import Instance
from fastfed.paper import optimum, tables
from fastfed.paper.evidence import PAIRS, PAPER, RUNS, run_places
from fastfed.paper.panels import optimum_study
from fastfed.storage.folder import Store


def test_two_arms_attain_the_factor_of_2M() -> None:
    """Compare with the closed form: 8 M^2 / D^2 against 4 M / D^2, D = 0.2."""
    assert (optimum.attaining(2).means == [[0.4, 0], [0, 0.2]]).all()
    for clients in (2, 3, 4, 7, 30):
        instance = optimum.attaining(clients)
        b = ff.bounds(instance, delta=1 / (2.4 * math.e))
        assert b.T_star == pytest.approx(8 * clients**2 / 0.04, rel=2e-6)
        assert float(b.lower) == pytest.approx(4 * clients / 0.04)


def test_the_computed_claims_hold() -> None:
    improved = found("theorem-3-improved", optimum.improvements())
    assert improved.verdict == "holds"
    assert {cell["instance"] for cell in improved.cells} >= {"two arms", "random", "movielens"}
    assert found("within-8-T*", optimum.limits()).verdict == "holds"


@pytest.mark.parametrize("radius", [PAPER, PAIRS])
def test_the_limit_is_that_of_the_radius(radius: str) -> None:
    """`bounds` has the step n with alpha(n) <= gap / 4, four times that of a lead of 2 alpha."""
    instance = Instance.load("random:4,3,2")
    over = []
    for delta in (1e-60, 1e-120, 1e-300):
        steps = ff.bounds(instance, delta=delta, radius=radius).T_sharp / 4
        limit = optimum.limit_of_fedelim0(instance, optimum.LIMITS[radius])
        over.append(float(steps) / (limit * math.log(1 / delta)))
    assert over[0] > over[1] > over[2] > 1
    assert over[2] < 1.08


def test_the_split_multiplies_to_the_whole() -> None:
    split = optimum_place(2.0).split()
    assert split is not None
    assert math.prod(split.values()) == pytest.approx(6.0, rel=1e-3)
    assert split["radius"] == pytest.approx(3.0, rel=1e-3)
    assert split["doubling"] == pytest.approx(1.25, rel=1e-3)
    assert split["proportions"] * split["thresholds"] == pytest.approx(1.6, rel=1e-3)
    one = found("mostly-the-radius", [optimum_place(2.0)])
    assert one.verdict == "holds"
    assert one.value == pytest.approx(2 / 3, rel=1e-3)
    # relative errors of 1e-3 each: at most that of G / F plus that of G
    assert one.sem == pytest.approx(2 / 3 * 1e-3 * (math.sqrt(2) + 1), rel=0.1)


def test_places_of_a_sweep(tmp_path: Path) -> None:
    """Factors are mean pulls over `bounds(...).least_pulls`, on the walks of the same seed."""
    ff.sweep(
        instances="synthetic",
        deltas=[0.1, 1e-6],
        schedules=["fedelim", "fedelim0"],
        radii=[PAPER, PAIRS],
        trials=40,
        out=tmp_path / "s",
        progress=False,
    )
    places = run_places(Store(tmp_path / "s"))
    assert [place.delta for place in places] == [0.1, 1e-6]
    for place in places:
        for run in RUNS:
            schedule, radius = run.split()
            frame = ff.simulate(
                "synthetic", schedule, delta=place.delta, trials=40, radius=radius
            ).frame
            least = ff.bounds("synthetic", delta=place.delta).least_pulls
            assert least is not None
            factor = place.factor(run)
            assert factor is not None
            assert factor[0] == pytest.approx(frame["pulls"].mean() / float(least))
    # all active arms alike need 16 / gap^2 on synthetic, the optimum (3 + sqrt 3)^2 / (1.5 gap^2)
    assert places[0].proportions == pytest.approx(24 / (3 + math.sqrt(3)) ** 2, rel=2e-6)
    drawn = optimum_study(places)
    assert np.all(np.array([line.y for line in drawn.lines[:4]]) > 1)
    text = tables.optimum(places).markdown()
    assert text.count("| synthetic |") == 2
