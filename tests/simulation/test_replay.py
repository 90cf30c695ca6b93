"""`replay`: one trial event by event, whose last line adds up to its row."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import fastfed as ff
from fastfed.confidence import alpha_global, alpha_local
from fastfed.model.schedules import Schedule
from fastfed.simulation import reference

NAMED = ff.Instance(
    [[1.0, -0.2], [0.1, 0.9], [0.6, 0.7]],
    arms=["ant", "bee", "cat"],
    clients=["north", "south"],
    name="animals",
)
SCHEDULES = [
    "fedelim",
    "fedelim0",
    "periodic:10",
    "exponential:1.5",
    "superexponential",
    "at:1,5,25,125,625,3125",
]


@pytest.mark.parametrize("trial", [7312, 2**40])
def test_any_trial_of_any_run(trial):
    """A trial far down a run of thousands, alone; equal to the run's own row where there is one."""
    told = ff.replay(ff.Instance.load("synthetic"), "fedelim", delta=0.01, seed=0, trial=trial)
    assert told.row["trial"] == trial
    assert told.events[-1].pulls == told.row["pulls"]
    if trial == 7312:
        frame = ff.simulate(ff.Instance.load("synthetic"), delta=0.01, trials=7313, seed=0).frame
        assert told.row == frame.row(7312, named=True)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_uplinks_counted_by_hand(schedule):
    """Every client sends one scalar for each arm that is active at the server.

    Clients send at each communication time until the server declares.
    """
    for trial in range(20):
        told = ff.replay(NAMED, schedule, delta=0.1, seed=9, trial=trial)
        left_at = {e.arm: e.step for e in told.events if e.actor == "server"}
        end = told.row["global_steps"]
        active = [
            sum(left_at.get(arm, end) >= n for arm in NAMED.arms)
            for n in Schedule.parse(schedule).times(end).tolist()
        ]
        assert (told.row["uplinks"], told.row["rounds"]) == (2 * sum(active), len(active))


def test_pulls_counted_by_hand():
    """An arm is pulled at a client until both the client and the server have let go of it."""
    for trial in range(20):
        told = ff.replay(NAMED, "periodic:10", delta=0.1, seed=9, trial=trial)
        left = {(e.actor, e.arm): e.step for e in told.events}
        assert len(left) == len(told.events) == 3 * 3  # two clients and the server, three arms
        ends = [
            max(left[f"client {m}", arm], left["server", arm])
            for m in NAMED.clients
            for arm in NAMED.arms
        ]
        assert told.row["pulls"] == sum(ends)
        for event in told.events:  # and so far, at every event
            assert event.pulls == sum(min(event.step, end) for end in ends)


def test_events_obey_algorithm_1():
    """Eliminated: at least 2 alpha behind the leader. Declared: the last one, who leads."""
    for trial in range(10):
        told = ff.replay(NAMED, "fedelim", delta=0.1, seed=5, trial=trial)
        declared = {e.actor: e.arm for e in told.events if e.event == "declared"}
        assert set(declared) == {"client north", "client south", "server"}
        assert NAMED.arms.index(declared["server"]) == told.row["global_arm"]
        for e in told.events:
            radius = alpha_global if e.actor == "server" else alpha_local
            assert e.threshold == pytest.approx(2 * radius(e.step, 3, 2, 0.1))
            assert e.event in ("eliminated", "declared")
            reached = e.leader - e.mean >= e.threshold * (1 - 1e-12)
            assert reached == (e.event == "eliminated")
        order = [(e.step, e.pulls, e.uplinks) for e in told.events]
        assert all(a <= b for pair in pairwise(order) for a, b in zip(*pair, strict=True))


def test_frame_and_text():
    told = ff.replay(NAMED, "periodic:10", delta=0.1, seed=3, trial=12)
    columns = "step actor event arm mean leader threshold pulls uplinks"
    assert told.frame.columns == columns.split()
    assert len(told.frame) == len(told.events)
    assert told.frame["arm"].unique().sort().to_list() == ["ant", "bee", "cat"]
    lines, row = str(told).splitlines(), told.row
    assert lines[0] == (
        "animals, periodic:10, delta 0.1, seed 3, trial 12; rewards: Gaussian(sigma=1.0)"
    )
    assert lines[-1] == (
        f"in all: {row['pulls']:,} pulls (busiest client: {row['busiest']:,}), "
        f"{row['uplinks']:,} uplinks, {row['downlinks']:,} downlinks, {row['rounds']:,} rounds, "
        f"{row['steps']:,} steps, every answer right"
    )
    assert lines[-2].startswith("An arm is eliminated when")
    assert len(lines) == 9 + 4
    # columns line up
    assert len({len(line) for line in lines[1:-2]}) == 1
    frame = ff.simulate(NAMED, delta=0.1, trials=50, sigma=0.1).frame
    trial = frame.filter(~pl.col("correct") & ~pl.col("truncated"))["trial"][0]
    wrong = ff.replay(NAMED, delta=0.1, sigma=0.1, trial=trial)
    assert str(wrong).endswith("not every answer right")


@pytest.mark.parametrize(
    ("schedule", "max_steps"),
    [("fedelim", 20), ("periodic:7", 20), ("at:2,3,11", None), ("at:2,3,99", 20)],
)
def test_a_trial_that_is_cut_off(schedule, max_steps):
    """It ends with its cut, and what was spent until then is the row's."""
    options = {"delta": 1e-6, "seed": 1, "max_steps": max_steps}
    told = ff.replay(NAMED, schedule, trial=3, **options)
    cut = 11 if max_steps is None else 20
    last = told.events[-1]
    assert (last.actor, last.event, last.step) == ("trial", "truncated", cut)
    assert (last.pulls, last.uplinks) == (told.row["pulls"], told.row["uplinks"])
    assert last.uplinks == 2 * 3 * len(Schedule.parse(schedule).times(cut))
    assert last.pulls == 6 * cut
    assert str(told).endswith("truncated")
    assert told.frame["mean"][-1] is None


def test_a_lone_arm():
    told = ff.replay(ff.Instance([[1.0, 2.0]]), delta=0.1)
    assert [(e.step, e.actor, e.event, e.arm, e.pulls, e.uplinks) for e in told.events] == [
        (1, actor, "declared", "0", 0, 0) for actor in ("client 0", "client 1", "server")
    ]
    assert (told.row["pulls"], told.row["uplinks"], told.row["correct"]) == (0, 0, True)
    assert told.frame["mean"].to_list() == [None] * 3
    assert "every answer right" in str(told)


def test_means_are_those_of_the_walk():
    told = ff.replay(NAMED, delta=0.1, seed=6)
    event = next(e for e in told.events if e.actor == "client north" and e.event == "eliminated")
    k = NAMED.arms.index(event.arm)
    reward = reference.walk_rewards(NAMED, 6, 0)
    mean = np.mean([reward(k, 0, n) for n in range(1, event.step + 1)])
    assert event.mean == pytest.approx(mean)
