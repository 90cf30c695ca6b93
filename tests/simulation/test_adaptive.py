"""Times that the server chooses: engines, reference, replay and bounds agree about them."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest
from helpers import BOUNDS
from polars.testing import assert_frame_equal
from scipy.stats import binom

import fastfed as ff

CHOSEN = ["adaptive", "adaptive:8", "adaptive:2,1.3,1,0"]
FOUR = ff.Instance([[0.9, 0.6], [0.4, 0.5], [0.2, -0.3], [0.0, 0.1]])


def test_rows_of_other_schedules_beside_it_are_unchanged() -> None:
    """All columns but the bounds on errors, which depend on the schedules of a run."""
    others = ["fedelim", "fedelim0", "periodic:7", "exponential:1.5", "at:5,25,125,3125"]
    for options in ({}, {"goal": "top:2"}):
        run = {"delta": 0.05, "trials": 60, "seed": 3, **options}
        alone = ff.simulate(FOUR, others, **run).frame.drop(BOUNDS)
        beside = ff.simulate(FOUR, [others[0], *CHOSEN, *others[1:]], **run).frame.drop(BOUNDS)
        assert_frame_equal(beside.filter(pl.col("schedule").is_in(others)), alone)
        chosen = ff.simulate(FOUR, CHOSEN[1], **run).frame.drop(BOUNDS)
        assert_frame_equal(beside.filter(pl.col("schedule") == CHOSEN[1]), chosen)


def test_skipping_adds_nothing_to_the_error_of_the_servers_pass() -> None:
    """A client's verdicts are those of any schedule; the server's pass has none."""
    frame = ff.simulate("synthetic", ["fedelim", "adaptive"], delta=0.01, trials=50).frame
    errors = frame.group_by("trial").agg(pl.col("skip_error").n_unique())
    assert (errors["skip_error"] == 1).all()  # FedElim's times are all visited as well


def test_a_lone_arm_costs_nothing() -> None:
    frame = ff.simulate([[0.5, 0.1]], "adaptive", delta=0.1, trials=2).frame
    assert frame["pulls"].to_list() == [0, 0]
    assert frame["rounds"].to_list() == [0, 0]


def test_a_first_time_past_the_end_is_never_used() -> None:
    frame = ff.simulate(
        [[0.9], [0.1]], "adaptive:4,1.1,0.01", delta=0.1, trials=3, max_steps=50
    ).frame
    assert frame["truncated"].all()
    assert frame["rounds"].to_list() == [0, 0, 0]


@pytest.mark.parametrize(
    ("goal", "uplink"),
    [
        ("best", "exact"),
        ("top:2", "exact"),
        pytest.param("best", "round:0.1", marks=pytest.mark.slow),
    ],
)
def test_a_replay_shows_each_choice(goal: str, uplink: str) -> None:
    """Choices lead from one round to the next, and the last line adds up to the row."""
    for trial in range(3):
        told = ff.replay(FOUR, "adaptive", delta=0.1, trial=trial, goal=goal, uplink=uplink)
        chosen = [event for event in told.events if event.event.startswith("next at")]
        nexts = [int(event.event.split()[2].replace(",", "")) for event in chosen]
        steps = [event.step for event in chosen]
        assert steps[1:] == nexts[:-1]
        assert told.row["rounds"] == len(steps) + 1
        assert told.row["global_steps"] == nexts[-1]
        assert (told.events[-1].pulls, told.events[-1].uplinks) == (
            told.row["pulls"],
            told.row["uplinks"],
        )
        for event, after in zip(chosen, nexts, strict=True):
            assert event.arm or "(HI)" in event.event
            if event.arm and goal == "best" and "," not in event.arm:
                assert event.leader - event.mean >= event.threshold
            assert after > event.step


def test_costs_stay_within_their_bounds() -> None:
    """On the good event; more than 0.1 + 5 standard errors of 400 trials has probability 3e-7."""
    for radius in ("paper", "mixture-pairs"):
        for name in CHOSEN:
            found = ff.bounds(FOUR, delta=0.05, radius=radius, adaptive=name)
            assert found.adaptive is not None
            frame = ff.simulate(FOUR, name, delta=0.05, radius=radius, trials=400).frame
            for bound in (found.adaptive.sharp, found.adaptive.summed, found.adaptive.as_stated):
                assert (frame["pulls"] > bound.pulls).mean() <= 0.1 + 5 * 0.3 / 20
                assert (frame["uplinks"] > bound.uplinks).mean() <= 0.1 + 5 * 0.3 / 20
            assert found.adaptive.sharp.pulls <= found.adaptive.summed.pulls
            assert found.adaptive.summed.pulls <= found.adaptive.as_stated.pulls


def test_a_sweep_with_chosen_times(tmp_path: Path) -> None:
    """Names with commas, the summary, the check and the report know the schedule."""
    names = ["adaptive", "adaptive:8,1.2", "fedelim", "fedelim0"]
    grid = {"instances": "synthetic", "deltas": [0.1], "costs": [10], "schedules": names}
    sweep = ff.sweep(**grid, trials=40, out=tmp_path / "results", progress=False)
    assert sorted(sweep.summary()["schedule"].unique()) == names
    claims = sweep.check().frame.filter(pl.col("schedule") == "adaptive")["claim"].to_list()
    assert {"pulls <= 4T + n_1 MK", "uplinks <= sharp"} <= set(claims)
    sweep.report(tmp_path / "report.html")
    assert "adaptive" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert_frame_equal(
        sweep.scan().collect().filter(pl.col("schedule") == "adaptive").drop(BOUNDS),
        ff.simulate("synthetic", "adaptive", delta=0.1, trials=40).frame.drop(BOUNDS),
    )


# ---- statistics --------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("radius", ["paper", "stitched-pairs", "mixture-pairs"])
@pytest.mark.parametrize("uplink", ["exact", "dither:2", "round:0.5"])
def test_error_rates_stay_below_delta_where_leads_hover(radius: str, uplink: str) -> None:
    """Two arms that nearly tie: leads hover, and the server may choose when to look.

    A rate of delta would give so many errors with probability below 1e-6.
    """
    instance = ff.Instance([[0.03, 0.03], [0.0, 0.0]])
    count, delta = 2000, 0.3
    for name in ("adaptive", "adaptive:1.02,1.01,1e6,0"):
        frame = ff.simulate(
            instance, name, delta=delta, radius=radius, uplink=uplink, trials=count, max_steps=20000
        ).frame
        wrong = int((~frame["correct"] & ~frame["truncated"]).sum())
        assert binom.sf(wrong - 1, count, delta) > 1e-6


@pytest.mark.statistical
def test_leads_that_hover_would_break_a_radius_that_is_too_narrow() -> None:
    """The instance of the test above can tell: at 0.4 of the scale more than half are wrong."""
    frame = ff.simulate(
        [[0.03, 0.03], [0.0, 0.0]], "adaptive", delta=0.3, radius="mixture-pairs", sigma=0.4,
        trials=2000, max_steps=20000,
    ).frame  # fmt: skip
    wrong = int((~frame["correct"] & ~frame["truncated"]).sum())
    assert binom.sf(wrong - 1, 2000, 0.3) < 1e-6


@pytest.mark.statistical
def test_error_probability_agrees_with_counting() -> None:
    """At a small confidence scale, where errors can be counted; five standard errors."""
    instance = ff.Instance([[0.4, 0.4], [0.0, 0.1]])
    run = {"delta": 0.3, "sigma": 0.25}
    found = ff.error_probability(instance, "adaptive", trials=4000, **run)
    frame = ff.simulate(instance, "adaptive", trials=20_000, seed=4, **run).frame
    counted = float((frame["global_arm"] != instance.global_best).mean())
    assert counted > 1e-3
    spread = math.hypot(found.server.standard_error, math.sqrt(counted / 20_000))
    assert abs(found.server.estimate - counted) < 5 * spread
    assert found.server.estimate <= found.server.bound
