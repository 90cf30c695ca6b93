"""`replay`: one trial event by event, whose last line adds up to its row."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from helpers import refused

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
        uplinks = rounds = 0
        for n in Schedule.parse(schedule).times(end).tolist():
            considered = [arm for arm in NAMED.arms if left_at.get(arm, end) >= n]
            uplinks += len(NAMED.clients) * len(considered)
            rounds += 1
        assert (told.row["uplinks"], told.row["rounds"]) == (uplinks, rounds)


def test_pulls_counted_by_hand():
    """An arm is pulled at a client until both the client and the server have let go of it."""
    for trial in range(20):
        told = ff.replay(NAMED, "periodic:10", delta=0.1, seed=9, trial=trial)
        left = {(e.actor, e.arm): e.step for e in told.events}
        assert len(left) == len(told.events) == 3 * 3  # two clients and the server, three arms
        pulls = sum(
            max(left[f"client {m}", arm], left["server", arm])
            for m in NAMED.clients
            for arm in NAMED.arms
        )
        assert told.row["pulls"] == pulls
        # and so far, at every event
        for event in told.events:
            assert event.pulls == sum(
                min(event.step, max(left[f"client {m}", arm], left["server", arm]))
                for m in NAMED.clients
                for arm in NAMED.arms
            )


def test_events_obey_algorithm_1():
    """Eliminated: at least 2 alpha behind the leader. Declared: the last one, who leads."""
    for trial in range(10):
        told = ff.replay(NAMED, "fedelim", delta=0.1, seed=5, trial=trial)
        declared = {e.actor: e.arm for e in told.events if e.event == "declared"}
        assert set(declared) == {"client north", "client south", "server"}
        assert (declared["server"] == NAMED.arms[NAMED.global_best]) == (
            told.row["global_arm"] == NAMED.global_best
        )
        for e in told.events:
            radius = alpha_global if e.actor == "server" else alpha_local
            assert e.threshold == pytest.approx(2 * radius(e.step, 3, 2, 0.1))
            if e.event == "eliminated":
                assert e.leader - e.mean >= e.threshold * (1 - 1e-12)
            else:
                assert e.event == "declared"
                assert e.leader - e.mean < e.threshold
        assert [e.step for e in told.events] == sorted(e.step for e in told.events)
        assert [e.pulls for e in told.events] == sorted(e.pulls for e in told.events)
        assert [e.uplinks for e in told.events] == sorted(e.uplinks for e in told.events)


def test_events_are_those_of_the_reference():
    for trial in range(4):
        told = ff.replay(NAMED, "exponential:1.5", delta=0.2, seed=5, trial=trial)
        printed = reference.fedelim(
            NAMED, Schedule.parse("exponential:1.5"), 0.2, reference.walk_rewards(NAMED, 5, trial)
        )
        found = [(e.step, e.actor, e.arm) for e in told.events if e.event == "eliminated"]
        names = [("server" if m is None else f"client {NAMED.clients[m]}") for m in (0, 1, None)]
        assert found == [
            (n, names[2 if m is None else m], NAMED.arms[k]) for n, m, k in printed.eliminations
        ]


def test_frame():
    told = ff.replay(NAMED, delta=0.1)
    frame = told.frame
    assert frame.columns == [
        "step",
        "actor",
        "event",
        "arm",
        "mean",
        "leader",
        "threshold",
        "pulls",
        "uplinks",
    ]
    assert [frame[name].dtype for name in ("step", "actor", "mean", "pulls", "uplinks")] == [
        pl.Int64,
        pl.String,
        pl.Float64,
        pl.Int64,
        pl.Int64,
    ]
    assert len(frame) == len(told.events)
    assert frame["arm"].unique().sort().to_list() == ["ant", "bee", "cat"]


def test_text():
    text = str(ff.replay(NAMED, "periodic:10", delta=0.1, seed=3, trial=12))
    lines = text.splitlines()
    assert lines[0] == (
        "animals, periodic:10, delta 0.1, seed 3, trial 12; rewards: Gaussian(sigma=1.0)"
    )
    assert "client north" in text
    assert "server" in text
    assert "declared" in text
    row = ff.replay(NAMED, "periodic:10", delta=0.1, seed=3, trial=12).row
    assert lines[-1] == (
        f"in all: {row['pulls']:,} pulls (busiest client: {row['busiest']:,}), "
        f"{row['uplinks']:,} uplinks, {row['downlinks']:,} downlinks, {row['rounds']:,} rounds, "
        f"{row['steps']:,} steps, every answer right"
    )
    assert lines[-2].startswith("An arm is eliminated when")
    assert len(lines) == 9 + 4
    # columns line up
    assert len({len(line) for line in lines[1:-2]}) == 1


def test_text_of_a_wrong_answer():
    frame = ff.simulate(NAMED, delta=0.1, trials=50, sigma=0.1).frame
    trial = frame.filter(~pl.col("correct") & ~pl.col("truncated"))["trial"][0]
    told = ff.replay(NAMED, delta=0.1, sigma=0.1, trial=trial)
    assert str(told).endswith("not every answer right")


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


def test_a_cut_with_events_before_it():
    """Clients that are done before the server's last time say so; those after it do not."""
    inst = ff.Instance([[3.0, 0.0], [0.0, 2.9]])
    seen = set()
    for trial in range(30):
        told = ff.replay(inst, "at:1,12", delta=0.1, trial=trial)
        assert told.row["truncated"]
        done = [e.actor for e in told.events if e.event == "declared"]
        assert len(told.events) == 2 * len(done) + 1
        assert all(e.step <= 12 for e in told.events)
        seen.add(len(done))
    assert seen >= {0, 1}


def test_a_lone_arm():
    told = ff.replay(ff.Instance([[1.0, 2.0]]), delta=0.1)
    assert [(e.step, e.actor, e.event, e.arm, e.pulls, e.uplinks) for e in told.events] == [
        (1, actor, "declared", "0", 0, 0) for actor in ("client 0", "client 1", "server")
    ]
    assert (told.row["pulls"], told.row["uplinks"], told.row["correct"]) == (0, 0, True)
    assert told.frame["mean"].to_list() == [None] * 3
    assert "every answer right" in str(told)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"trial": -1}, ["trial = -1", "whole number from 0"]),
        ({"trial": 0.5}, ["trial = 0.5", "whole number"]),
        ({"trial": None}, ["trial = None", "whole number"]),
    ],
)
def test_bad_input(options, words):
    refused(lambda: ff.replay(NAMED, delta=0.1, **options), *words)


def test_means_are_those_of_the_walk():
    told = ff.replay(NAMED, delta=0.1, seed=6)
    event = next(e for e in told.events if e.actor == "client north" and e.event == "eliminated")
    k = NAMED.arms.index(event.arm)
    reward = reference.walk_rewards(NAMED, 6, 0)
    mean = np.mean([reward(k, 0, n) for n in range(1, event.step + 1)])
    assert event.mean == pytest.approx(mean)
