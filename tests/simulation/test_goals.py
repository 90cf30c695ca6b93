"""Goals beside the best arm: skip = dense = the rules as printed, and what ties them to `best`.

Statistical tests have fixed seeds and state their false-alarm probability.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from goal_cases import SCHEDULES, cases
from helpers import refused, run
from polars.testing import assert_frame_equal

import fastfed as ff
from fastfed.model.goals.base import Goal
from fastfed.model.setting import Setting
from fastfed.simulation.job import Job


def rows(instance: ff.Instance, goal: str, **options: Any) -> pl.DataFrame:
    """Run trials without a limit; leave out what belongs to the goal or to skipping."""
    given = {"delta": 0.1, "seed": 2, "threads": 1, "max_steps": 2**40, **options}
    return ff.simulate(instance, SCHEDULES, goal=goal, **given).frame.drop("goal", "skip_error")


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_top_1_is_best_row_for_row(scale: float) -> None:
    """Giving up among ties included."""
    tied = ff.Instance([[1.0, 1.0], [0.9, 0.9], [0.9, 0.9], [0.9, 0.9]], name="tied")
    gave_up = 0
    for instance in [tied, *(one for one, _ in cases("top", "gaussian"))]:
        best, top = (rows(instance, goal, trials=20, sigma=scale) for goal in ("best", "top:1"))
        columns = ["global_arm", "global_answer"]
        assert_frame_equal(best.drop(columns), top.drop(columns))
        answers = top["global_answer"].list.first().fill_null(-1)
        assert answers.equals(best["global_arm"], check_names=False)
        gave_up += int(best["truncated"].sum())
    assert gave_up > 0 or scale == 1.0


def test_tiny_eps_is_best_but_where_it_ends() -> None:
    for instance, _ in cases("eps", "gaussian"):
        best, tiny = (rows(instance, one, trials=10, sigma=0.5) for one in ("best", "eps:1e-9"))
        assert_frame_equal(best, tiny)


def test_eps_ends_where_best_would_go_on_for_ever() -> None:
    tied = ff.Instance([[0.5, 0.5], [0.5, 0.5], [0.0, 0.0]])
    rows = ff.simulate(tied, SCHEDULES[:5], delta=0.05, trials=200, goal="eps:0.2").frame
    assert not rows["truncated"].any()
    assert rows["correct"].mean() > 0.95
    assert set(rows["global_arm"]) == {0, 1}
    limit = ff.bounds(tied, 0.05, goal="eps:0.2")
    assert limit.n_k[0] == limit.n_k[1] > limit.n_k[2]
    every_step = rows.filter(pl.col("schedule") == "fedelim0")
    assert every_step["steps"].max() <= max(limit.n_km.max(), limit.n_k.max())
    refused(lambda: ff.simulate(tied, delta=0.05, trials=1), "tie", "arms 0, 1", "eps:0.1")


def test_rows_replay_and_sweep_tell_the_answers(tmp_path) -> None:
    means = [[0.9, 0.7], [0.6, 0.8], [0.1, 0.0], [-0.3, 0.1]]
    instance = ff.Instance(means, name="four")
    frame = ff.simulate(instance, "fedelim", delta=0.1, trials=5, goal="top:2").frame
    assert frame.schema["global_answer"] == pl.List(pl.Int32)
    assert frame["global_answer"].to_list() == [[0, 1]] * 5
    assert (frame["global_arm"] == -1).all()
    assert frame["correct"].all()
    alone = ff.simulate(instance, "fedelim", delta=0.1, trials=5).frame
    assert alone["global_answer"].is_null().all()
    told = ff.replay(instance, "fedelim", delta=0.1, trial=3, goal="top:2")
    assert told.row == frame.row(3, named=True)
    assert "goal top:2" in str(told)
    for actor in ("client 0", "client 1", "server"):
        seen = [(one.event, one.arm) for one in told.events if one.actor == actor]
        assert sorted(seen) == [
            ("accepted", "0"),
            ("accepted", "1"),
            ("rejected", "2"),
            ("rejected", "3"),
        ]
    assert told.events[-1].pulls == told.row["pulls"]
    assert told.events[-1].uplinks == told.row["uplinks"]
    goals = ["best", "top:2", "eps:0.5", "threshold:0.3", "threshold:0.3,0.1"]
    summary = run(tmp_path, instances=[instance], goals=goals, trials=5)
    assert summary["goal"].unique(maintain_order=True).to_list() == goals
    stored = pl.read_parquet(tmp_path / "trials" / "*.parquet")
    kept = stored.filter(goal="top:2", schedule="fedelim").sort("trial")
    assert_frame_equal(kept, frame.with_columns(instance=pl.lit("four")))
    found = ff.check(tmp_path, costs=[10])
    assert not found.violated
    assert set(found.frame["goal"]) == set(goals)
    again = run(tmp_path, instances=[instance], goals=goals, trials=5)
    assert_frame_equal(again, summary)


def test_a_lone_arm_has_a_side_of_the_threshold() -> None:
    lone = ff.Instance([[0.7, 0.9]])
    rows = ff.simulate(
        lone, ["fedelim", "fedelim0"], delta=0.1, trials=20, goal="threshold:0.2"
    ).frame
    assert rows["global_answer"].to_list() == [[0]] * 40
    assert (rows["pulls"] > 0).all()
    assert ff.simulate(lone, delta=0.1, trials=2, goal="eps:0.1").frame["pulls"].to_list() == [0, 0]


@pytest.mark.parametrize("goal", ["top:2", "eps:0.25", "threshold:0.3", "threshold:0.3,0.1"])
def test_bounds_hold_and_are_those_of_the_gaps(goal: str) -> None:
    """On the good event every arm is settled by n_km and n_k.

    The radii are so wide that all of 500 trials lie on the event.
    """
    means = np.array([[0.9, 0.6], [0.5, 0.8], [0.1, 0.0], [-0.1, 0.2]])
    instance, wanted = ff.Instance(means), Goal.parse(goal)
    bound = ff.bounds(instance, 0.01, goal=goal)
    assert (bound.goal, bound.lower) == (goal, None)
    block = Job.of(instance, ["fedelim0"], delta=0.01, goal=goal).run(0, 500, keep_departures=True)
    left = block.departures
    assert left is not None
    assert (left.local_eliminated_at.max(axis=0) <= bound.n_km).all()
    assert (left.global_eliminated_at[:, 0, 0].max(axis=0) <= bound.n_k).all()
    assert left.local_eliminated_at.max() > 0.05 * bound.n_km.max()
    assert block.column("pulls").max() <= bound.T_sharp <= bound.T
    averages = means.mean(axis=1)
    expected = {
        "top:2": [0.7, 0.6, 0.6, 0.6],
        "eps:0.25": [0.5, 0.5, 0.7, 0.7],
        "threshold:0.3": 2 * np.abs(averages - 0.3),
        "threshold:0.3,0.1": 2 * np.abs(averages - 0.3) + 0.2,
    }[goal]
    np.testing.assert_allclose(wanted.server_gaps(instance)[0], expected)


def test_radii_per_pair_share_their_budget_among_the_pairs_that_matter() -> None:
    def radii(arms: int, goal: str) -> Any:
        instance = ff.Instance(np.arange(float(arms))[:, None])
        return Setting.of(instance, delta=0.1, radius="mixture-pairs", goal=goal).radii

    for one in (radii(5, "top:2").server, radii(5, "top:2").client):
        assert one.budget == pytest.approx(0.1 / (2 * 2 * 3))
    assert radii(2, "best").server == radii(2, "top:1").server == radii(2, "eps:1").server
