"""Algorithms that decide in rounds: rows, borders of a round, and the walks they share."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from algorithms import NAMES, WRONG, Reckless, Uniform, misspells, target_falls, writes_into_sums
from helpers import BOUNDS, SMALL, refused
from lucb import LUCB

import fastfed as ff
from fastfed.simulation.job import Job, new_control
from fastfed.simulation.walks import values_at, walk

SERVER = ["global_steps", "global_arm", "uplinks", "rounds"]
INSTANCES = {
    "gaussian": ff.Instance([[0.9, 0.1, 0.2], [0.1, 0.4, 0.9], [0.3, 0.2, 0.1]], name="three"),
    "cells": ff.Instance(
        [[0.9, 0.1], [0.1, 0.4]], rewards=ff.Gaussian(sigma=[[0.5, 1.0], [2.0, 1.5]])
    ),
    "bernoulli": ff.Instance([[0.9, 0.2], [0.4, 0.8]], rewards=ff.Bernoulli()),
    "poisson": ff.Instance([[1.9, 1.2], [1.2, 2.0]], rewards=ff.Poisson(sigma=1)),
}


@pytest.fixture(autouse=True)
def own_families(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test defines."""
    monkeypatch.setattr(ff.Schedule, "families", dict(ff.Schedule.families))


def of(frame: pl.DataFrame, schedule: str) -> pl.DataFrame:
    return frame.filter(pl.col("schedule") == schedule)


COMPILED = [
    name if name in ("gaussian", "bernoulli") else pytest.param(name, marks=pytest.mark.slow)
    for name in INSTANCES
]
"""The other rewards are compiled for these tests and a few more."""


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("base", [2, 1.5])
def test_server_of_rounds_is_that_of_the_schedule(name: str, base: float) -> None:
    """On the same walks both servers eliminate the same arms at the same steps."""
    pair = [f"exponential:{base}", f"rounds:{base}"]
    done = ff.simulate(INSTANCES[name], pair, delta=0.1, trials=100, seed=3)
    schedule, algorithm = (of(done.frame, one).select(SERVER) for one in pair)
    assert schedule.equals(algorithm)
    assert (of(done.frame, pair[0])["pulls"] <= of(done.frame, pair[1])["pulls"]).all()
    assert (of(done.frame, pair[1])["skip_error"] == 0).all()


def test_clients_of_rounds_decide_at_the_next_round() -> None:
    """A client of `rounds:2` ends at a power of two at or after the step of FedElim's."""
    done = ff.simulate(INSTANCES["gaussian"], ["fedelim", "rounds:2"], delta=0.1, trials=200)
    every, rounds = (
        of(done.frame, one)["local_steps"].to_numpy() for one in ("fedelim", "rounds:2")
    )
    assert (np.log2(rounds) % 1 == 0).all()
    assert (rounds >= every).all()


@pytest.mark.parametrize(
    ("name", "pulls", "uplinks", "rounds"),
    [
        ("rounds:2", 1_044_480, 762, 94),
        ("phases", 90_888, 433, 56),
        ("halving:600", 3_555, 90, 12),
        ("oracle", 113_862, 549, 61),
    ],
)
def test_plain_rows_are_those_of_this_version(
    name: str, pulls: int, uplinks: int, rounds: int
) -> None:
    """Decisions as Python runs them; what compiled code decides is compared with them below."""
    frame = ff.simulate(
        INSTANCES["gaussian"], name, delta=0.1, trials=6, seed=1, engine="python"
    ).frame
    assert frame.select("pulls", "uplinks", "rounds").sum().row(0) == (pulls, uplinks, rounds)


def rows_by_engine(instance: ff.Instance, schedules: Any, trials: int) -> list[pl.DataFrame]:
    """Run compiled and plain decisions."""
    options = {"delta": 0.1, "trials": trials, "seed": 1}
    return [
        ff.simulate(instance, schedules, engine=engine, **options).frame
        for engine in ("auto", "python")
    ]


@pytest.mark.parametrize(
    "name", ["rounds:2", *(pytest.param(one, marks=pytest.mark.slow) for one in NAMES[1:])]
)
@pytest.mark.parametrize("rewards", ["gaussian", "bernoulli"])
def test_compiled_and_plain_rows_are_equal(name: str, rewards: str) -> None:
    compiled, plain = rows_by_engine(INSTANCES[rewards], ["fedelim", name], 12)
    assert compiled.equals(plain)


def test_sums_are_those_of_the_walks() -> None:
    """An algorithm sees the values that `walk` looks up, at the counts that it chose."""
    found: list[Any] = []

    class Looks(ff.Algorithm):
        family = "looks"

        @staticmethod
        def decide(seen: Any, answer: Any) -> None:
            found.append((seen.counts.copy(), seen.sums.copy(), seen.received_sums.copy()))
            answer.targets[:] = [[3, 100], [7, 2]]
            answer.sent[0, 0] = False
            if seen.round:
                answer.targets[0, 0] = 9
            if seen.round == 2:
                answer.global_arm[0] = answer.local_arms[:] = 0

    row = ff.simulate(
        SMALL, Looks(), delta=0.1, trials=1, first=5, seed=9, engine="python"
    ).frame.row(0, named=True)
    look = walk(SMALL, 9, 5)
    counts, sums, received = found[2]
    assert counts.tolist() == [[9, 100], [7, 2]]
    for k in range(2):
        for m in range(2):
            assert sums[k, m] == look(k, m, int(counts[k, m]))
            assert received[k, m] == (0.0 if k == m == 0 else sums[k, m])
    assert row["pulls"] == 118
    assert (row["uplinks"], row["rounds"], row["bits"]) == (3, 1, 192)
    assert (row["busiest"], row["downlinks"]) == (102, 2)
    assert (row["steps"], row["global_steps"], row["local_steps"]) == (100, 100, 100)
    assert row["local_errors"] == 1
    assert not row["correct"]


RATED = ff.Finite(
    [0.0, 0.5, 1.0, 5.0], [[[1, 2, 1, 3], [0, 1, 0, 0]], [[2, 1, 0, 0], [4, 1, 3, 2]]]
)


@pytest.mark.parametrize("schedule", ["rounds:2", pytest.param("oracle", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "instance", [ff.Instance(rewards=RATED), INSTANCES["bernoulli"]], ids=["finite", "bernoulli"]
)
def test_spines_that_are_kept_between_rounds_give_the_same_sums(
    instance: ff.Instance, schedule: str
) -> None:
    """At every round, in every trial of a batch, the sums are those of walks from nothing."""
    job, trials, rounds = Job.of(instance, schedule, delta=1e-3, seed=7), np.arange(4, 24), 0

    def see(number: int, batch: Any) -> None:
        nonlocal rounds
        rounds = number
        expected = values_at(instance, 7, trials, batch.counts)
        np.testing.assert_array_equal(batch.sums, expected)

    job.runners[0].run(int(trials[0]), len(trials), new_control(), see)
    assert rounds > 5


def test_parameters_names_and_decorator() -> None:
    assert str(Uniform()) == "uniform-test"
    assert str(Uniform(3)) == str(Uniform(rounds=3)) == "uniform-test:3"
    assert ff.Schedule.parse("uniform-test:3") == Uniform(3)
    refused(lambda: Uniform(1, 2), "uniform-test", "takes rounds")
    refused(lambda: Uniform(sizes=2), "uniform-test", "not sizes")
    refused(lambda: Uniform("x"), "uniform-test", "ROUNDS", "number")
    refused(lambda: ff.Schedule.parse("rounds"), "LAMBDA is missing", "rounds:2")
    refused(lambda: ff.Schedule.parse("rounds:1"), "rounds", "above 1")

    @ff.Algorithm.define("one-pull", pulls=1.0)
    def one_pull(seen: Any, answer: Any) -> None:
        """Pull each arm, and guess."""
        answer.targets[:] = int(seen.options.pulls)
        if seen.round:
            answer.local_arms[:] = 0
            answer.global_arm[0] = 1

    done = ff.simulate(SMALL, ["one-pull", one_pull(4)], delta=0.1, trials=3)
    assert done.frame["schedule"].to_list() == ["one-pull"] * 3 + ["one-pull:4"] * 3
    assert done.frame["pulls"].to_list() == [4] * 3 + [16] * 3


@pytest.mark.parametrize("engine", [pytest.param("auto", marks=pytest.mark.slow), "python"])
@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: one.__name__)
def test_wrong_algorithms_are_refused_in_one_line(wrong: Any, engine: str) -> None:
    made = ff.Algorithm.define(wrong.__name__.replace("_", "-"))(wrong)()
    refused(
        lambda: ff.simulate(SMALL, made, delta=0.1, trials=2, engine=engine),
        f"algorithm {made}",
        *WRONG[wrong],
    )


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("trials", [4, 80])
def test_broken_rule_is_that_of_the_lowest_trial(threads: int, trials: int) -> None:
    """Trial 3 fails at round 1 and trial 0 at round 3: trial 0 is named, however trials run."""
    fails_at = {walk(SMALL, 0, 0)(0, 0, 1): 3, walk(SMALL, 0, 3)(0, 0, 1): 1}

    @ff.Algorithm.define("fails-at-its-own-round", memory=1)
    def fails(seen: Any, answer: Any) -> None:
        answer.targets[:] = seen.counts + 1
        if seen.round == 1:
            seen.memory[0] = fails_at.get(seen.sums[0, 0], 9)
        if seen.round and seen.round == seen.memory[0]:
            answer.targets[:] = 0
        if seen.round == 5:
            answer.local_arms[:] = answer.global_arm[:] = 0

    with pytest.raises(ff.InputError, match="round 3 of trial 0: target 0"):
        ff.simulate(SMALL, fails(), delta=0.1, trials=trials, engine="python", threads=threads)


def test_compiled_code_is_refused_in_one_line() -> None:
    """Two refusals that only the compiler can make, and one at the border of a round."""
    for wrong in (misspells, writes_into_sums, target_falls):
        made = ff.Algorithm.define(wrong.__name__)(wrong)()
        refused(lambda made=made: ff.simulate(SMALL, made, delta=0.1, trials=2), str(made))


@pytest.mark.slow
def test_indices_and_casts_of_compiled_code_are_checked() -> None:
    """Code without checks writes beyond its arrays, and makes integers of what is none."""

    def run(use: int) -> ff.Result:
        return ff.simulate(SMALL, Reckless(use), delta=0.1, trials=6, max_steps=100)

    for use in range(5):
        refused(lambda use=use: run(use), f"reckless-test:{use}, round 0: IndexError", "index")
    for use in range(5, 10):
        refused(lambda use=use: run(use), f"reckless-test:{use}, round 0: ValueError", "integer")
    assert run(10).frame["pulls"].to_list() == [4] * 6


def test_memory_and_prepare_of_a_user_are_refused_in_one_line() -> None:
    class Raises(Uniform):
        family = "raises-test"

        def prepare(self, setting: Any) -> Any:
            return {}["gone"]

    negative = ff.Algorithm.define("negative-test", memory=-3)(Uniform.decide)
    wrong = {Raises(): ("prepare", "KeyError: 'gone'"), negative(): ("memory", "-3")}
    for made, words in wrong.items():
        refused(
            lambda made=made: ff.simulate(SMALL, made, delta=0.1, trials=1, engine="python"),
            f"algorithm {made}",
            *words,
        )


@pytest.mark.parametrize("name", ["oracle", "phases"])
def test_needs_beyond_all_integers_end_at_the_limit(name: str) -> None:
    """With a scale of 1e20 the oracle wants more pulls than an integer holds: it did not end."""
    done = ff.simulate(
        ff.Instance(SMALL.means, rewards=ff.Gaussian(1e20)),
        name,
        delta=0.1,
        trials=2,
        max_steps=2**52,
        engine="python",
    )
    assert done.frame["truncated"].to_list() == [True, True]
    assert done.frame["steps"].to_list() == [2**52, 2**52]


@pytest.mark.parametrize("gap", [1e-160, 1e-310])
def test_gaps_whose_squares_vanish_make_no_warning(gap: float) -> None:
    """The oracle's needs were infinite, and T* overflowed with a warning of NumPy."""
    instance = ff.Instance([[gap, 0.3], [0.0, 0.1]])
    with warnings.catch_warnings(action="error"):
        names = ["oracle", "rounds:2", "halving:1000"]
        rows = ff.simulate(instance, names, delta=0.1, trials=2, max_steps=100, engine="python")
        text = str(rows)
    assert rows.frame["truncated"].to_list()[:4] == [True] * 4
    assert "x T*" not in text


def test_limit_truncates_if_it_is_given() -> None:
    done = ff.simulate(
        SMALL, ["fedelim", "rounds:2"], delta=0.01, trials=20, max_steps=100, keep_pulls=True
    )
    rows = of(done.frame, "rounds:2")
    assert rows["truncated"].all()
    assert not rows["correct"].any()
    assert rows["steps"].to_list() == [100] * 20
    assert done.pulls[1].max() == 100
    assert rows["pulls"].to_list() == done.pulls[1].sum(axis=(1, 2)).tolist()
    assert rows["uplinks"].to_list() == of(done.frame, "fedelim")["uplinks"].to_list()


def test_goals_uplinks_and_radii_that_do_not_fit_are_refused() -> None:
    def run(**options: Any) -> None:
        ff.simulate(SMALL, ["fedelim", "rounds:2"], delta=0.1, trials=1, **options)

    refused(lambda: run(goal="threshold:0.45"), "rounds:2", "one arm", "threshold:0.45")
    refused(lambda: run(uplink="dither:1"), "rounds:2", "exact", "dither:1")
    own = ff.Radius(lambda n, a: np.log(4 / a) + 2 * np.log(n), name="own")
    refused(lambda: run(radius=own), "rounds:2", "function")
    refused(lambda: ff.error_probability(SMALL, "rounds:2", delta=0.1), "rounds:2", "simulate")


def test_weights_of_clients_are_followed() -> None:
    """A client without a weight sends nothing, and several questions are refused."""
    weighted = INSTANCES["gaussian"].weighted([7, 3, 0])
    done = ff.simulate(weighted, "rounds:2", delta=0.1, trials=5, engine="python")
    assert (done.frame["uplinks"] % 2 == 0).all()  # of two clients, for every arm that is alive
    assert done.frame["correct"].all()
    several = INSTANCES["gaussian"].weighted([[1, 0, 0], [0, 1, 0]])
    refused(
        lambda: ff.simulate(several, "phases", delta=0.1, trials=1), "phases", "one row of weights"
    )


def test_one_arm_and_ties_among_rivals() -> None:
    lone = ff.simulate([[0.5, 0.2]], ["fedelim", "rounds:2"], delta=0.1, trials=2).frame
    one, two = (of(lone, name).drop("schedule", *BOUNDS) for name in ("fedelim", "rounds:2"))
    assert one.equals(two)
    # the best arm is lost in some trials, and two arms that tie are left: abandoned, as FedElim
    tied = ff.Instance([[0.5], [0.0], [0.0]])
    done = ff.simulate(tied, ["fedelim", "rounds:2"], delta=0.9, sigma=0.05, trials=400, seed=2)
    pair = [of(done.frame, one).select(*SERVER, "truncated") for one in ("fedelim", "rounds:2")]
    assert pair[0]["truncated"].any()
    assert pair[0].equals(pair[1])


def test_every_question_takes_an_algorithm(tmp_path: Path) -> None:
    """Summary, best, wrong, plot, report, save, sweep, check and replay."""
    names = ["fedelim", "rounds:2", "uniform-test"]
    done = ff.simulate(SMALL, names, delta=0.1, trials=40)
    assert set(done.summary(costs=[10])["schedule"]) == set(names)
    assert done.best(costs=[0, 10]) is not None
    assert done.wrong().filter(pl.col("schedule") == "uniform-test").height > 0
    saved = done.save(tmp_path / "saved")
    assert saved.scan().collect().height == 120
    run = ff.sweep(
        instances=[SMALL], deltas=[0.1], costs=[10], schedules=[*names[:2], Uniform()], trials=40,
        out=tmp_path / "saved", progress=False,
    )  # fmt: skip
    assert (
        run.scan().sort("schedule", "trial").collect().equals(done.frame.sort("schedule", "trial"))
    )
    assert "algorithm of its own rules" in str(run.check().frame["reason"].to_list())
    run.report(tmp_path / "report.html")
    assert "uniform-test" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert run.plot(x="delta", y="pulls") is not None


def test_replay_goes_round_by_round() -> None:
    story = ff.replay(SMALL, "rounds:2", delta=0.1, trial=4)
    rounds = [one for one in story.events if one.event.startswith("round")]
    assert [one.event for one in rounds] == [f"round {i}" for i in range(len(rounds))]
    assert [one.step for one in rounds[1:]] == [2**i for i in range(len(rounds) - 1)]
    declared = {one.actor: one.arm for one in story.events if one.event == "declared"}
    assert declared == {"client 0": "0", "client 1": "1", "server": "0"}
    assert (story.events[-1].pulls, story.events[-1].uplinks) == (
        story.row["pulls"],
        story.row["uplinks"],
    )
    cut = ff.replay(SMALL, "rounds:2", delta=0.01, trial=4, max_steps=50)
    assert (cut.events[-1].event, cut.events[-1].pulls) == ("truncated", cut.row["pulls"])


def test_lucb_of_a_reader_of_the_page_runs() -> None:
    """LUCB, written from the page alone in under 60 lines."""
    frames = rows_by_engine(INSTANCES["gaussian"], ["fedelim", LUCB()], 8)
    assert frames[0].equals(frames[1])
    assert of(frames[0], "lucb")["correct"].all()
    refused(
        lambda: ff.simulate(SMALL, LUCB(), delta=0.1, trials=1, radius="mixture-pairs"),
        "algorithm lucb: counts differ",
    )
    assert len(Path(inspect.getfile(LUCB)).read_text(encoding="utf-8").splitlines()) < 60


@pytest.mark.process
def test_built_in_decisions_are_kept_on_disk() -> None:
    """A second process loads them, and they may make arrays."""
    program = (
        "import sys, fastfed as ff\n"
        "from fastfed.kernels import user_functions as own\n"
        "from fastfed.simulation.algorithms import _loop_of\n"
        "done = ff.simulate([[0.9], [0.1]], sys.argv[1], delta=0.1, trials=2, threads=1)\n"
        "stats = own._compiled(_loop_of, type(ff.Schedule.parse(sys.argv[1])).decide).stats\n"
        "print(sum(stats.cache_misses.values()), done.frame['pulls'].sum())"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", program, "oracle"], check=True, capture_output=True, text=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert told[1][0] == "0"
    assert told[0][1] == told[1][1]


@pytest.mark.process
@pytest.mark.parametrize(
    "call",
    [
        "simulate([[0.9], [0.1]], 'endless', delta=0.1",
        "sweep(instances='synthetic', schedules='endless', deltas=[0.1]",
    ],
)
def test_endless_decision_ends_with_one_interrupt(call: str, tmp_path: Path) -> None:
    """Python waited for the thread of the decision: only a second Ctrl-C ended the process."""
    program = (
        "import fastfed as ff\n"
        "@ff.Algorithm.define('endless')\n"
        "def endless(seen, answer):\n"
        "    print('deciding', flush=True)\n"
        "    while True: pass\n"
        f"ff.{call}, trials=2, threads=1, engine='python')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "deciding\n", process.stderr.read()
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(180) in (-signal.SIGINT, 1)
        finally:
            process.kill()


def test_no_trials_give_no_rows() -> None:
    """A sweep runs none at first, to compile: every sweep of an algorithm failed there."""
    found = Job.of(SMALL, ["fedelim", "rounds:2"], delta=0.1).run(3, 0)
    assert found.trials == 0
