"""Rows depend on nothing but the setting: not on threads, order, or the schedules beside them.

Every comparison is of whole numbers that must be equal.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from helpers import BOUNDS, EIGHT
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import fastfed as ff
from fastfed.simulation.job import Job, run_together

# --- rows do not depend on how they are run


def synthetic(**options) -> ff.Result:
    given = {
        "schedules": EIGHT,
        "delta": 0.1,
        "trials": 300,
        "seed": 5,
        "keep_pulls": True,
        **options,
    }
    return ff.simulate(ff.Instance.load("synthetic"), **given)


@pytest.fixture(scope="module")
def whole() -> ff.Result:
    return synthetic(threads=1)


@settings(max_examples=20)
@given(
    st.permutations(EIGHT),
    st.integers(1, 8),
    st.integers(0, 290),
    st.integers(1, 10),
    st.sampled_from([1, 2, 7, None]),
)
def test_any_part_of_a_run_has_its_rows(whole, order, some, first, trials, threads):
    """Some schedules in any order, some trials, any number of threads."""
    part = synthetic(schedules=order[:some], first=first, trials=trials, threads=threads)
    keys, end = ["schedule", "trial"], first + trials
    here = pl.col("trial").is_between(first, end, closed="left")
    expected = whole.frame.filter(pl.col("schedule").is_in(order[:some]), here)
    assert_frame_equal(part.frame.sort(keys), expected.sort(keys))
    places = [EIGHT.index(name) for name in order[:some]]
    np.testing.assert_array_equal(part.pulls, whole.pulls[places, first:end])


@pytest.mark.parametrize("engine", ["skip", "dense"])
def test_threads_share_the_blocks_of_a_run(engine):
    one, many = (synthetic(threads=n, engine=engine, trials=100) for n in (1, 7))
    assert_frame_equal(one.frame, many.frame)
    np.testing.assert_array_equal(one.pulls, many.pulls)


RATED = ff.Instance(
    rewards=ff.Finite(np.arange(6) / 2, np.random.default_rng(3).integers(0, 9, (5, 3, 6)) + 0.25),
    name="rated",
)


@pytest.mark.parametrize("keep_pulls", [False, True])
def test_several_deltas_on_one_spine_give_the_rows_of_each_alone(monkeypatch, keep_pulls):
    """All columns, with `skip_error` and `draw_error`, and the counted work."""
    deltas = [0.01, 0.3, 0.1]
    given = {"trials": 40, "seed": 5, "keep_pulls": keep_pulls}
    assert not RATED.rewards.spine_is_dear
    alone = [ff.simulate(RATED, EIGHT, delta=delta, **given) for delta in deltas]
    monkeypatch.setattr("fastfed.model.rewards.finite._DEAR", 0)
    assert RATED.rewards.spine_is_dear
    for threads in (1, 3):
        together = ff.simulate(RATED, EIGHT, delta=deltas, threads=threads, **given)
        assert_frame_equal(together.frame, pl.concat([one.frame for one in alone]))
        for one, block in zip(alone, together.blocks, strict=True):
            np.testing.assert_array_equal(block.work, one.block.work)
            np.testing.assert_array_equal(block.pulls, one.block.pulls)


def test_jobs_on_one_spine_draw_it_once():
    """A job uses what the job before it has drawn: spoilt counts spoil its rows."""
    few, many = (Job.of(RATED, EIGHT, delta=delta) for delta in (0.3, 0.01))
    space = many.space()
    alone = many.run(7, 1, None, space)
    few.run(7, 1, None, space)
    drawn = space.rewards.made.copy()
    assert (drawn > 4).all()
    np.testing.assert_array_equal(many.run(7, 1, None, space).ints, alone.ints)
    space.walks.value[:5] += 100.0 * np.arange(5)[:, None]
    assert (many.run(7, 1, None, space).ints != alone.ints).any()
    np.testing.assert_array_equal(many.run(6, 1, None, space).ints, many.run(6, 1).ints)


def test_deltas_that_need_other_numbers_of_passes_share_no_memory(monkeypatch):
    """At the smaller delta no schedule has a time, so that one pass serves both."""
    monkeypatch.setattr("fastfed.model.rewards.finite._DEAR", 0)
    schedules, calls = ["adaptive:4,1.1,2", "adaptive:4,1.1,1"], []
    jobs = [Job.of(RATED, schedules, delta=delta, max_steps=60) for delta in (1e-60, 0.3)]
    assert [len(job._horizon) for job in jobs] == [1, 2]
    assert all(job.spine_is_dear for job in jobs)
    monkeypatch.setattr(Job, "run", lambda *given: calls.append(given))
    run_together(jobs, 3, 5)
    assert [(job, first, count) for job, first, count, _ in calls] == [(one, 3, 5) for one in jobs]


@pytest.mark.parametrize("arms", [63, 64, 70])
def test_schedules_share_comparisons_only_if_their_arms_fit_into_a_number(arms):
    instance = ff.Instance(np.linspace(0, 4, arms)[:, None] * [1.0, 0.5])
    options = {"delta": 0.1, "trials": 3, "seed": 1}
    among = ff.simulate(instance, EIGHT, **options).frame
    alone = [ff.simulate(instance, name, **options).frame for name in EIGHT]
    assert_frame_equal(among.drop(BOUNDS), pl.concat(alone).drop(BOUNDS))


def test_two_names_for_the_same_times_give_the_same_rows():
    result = synthetic(schedules=["fedelim", "periodic:1", "exponential:2", "fedelim0", "at:1,2,3"])
    rows = {name: part.drop("schedule") for (name,), part in result.frame.group_by("schedule")}
    assert_frame_equal(rows["fedelim"], rows["exponential:2"])
    assert_frame_equal(rows["fedelim0"], rows["periodic:1"])
    np.testing.assert_array_equal(result.pulls[[0, 3]], result.pulls[[2, 1]])
    assert not rows["fedelim"].equals(rows["fedelim0"])


def test_seeds_and_trials_differ():
    first, *others = (
        synthetic(schedules="fedelim0", seed=seed).frame["pulls"]
        for seed in (5, 6, 5 + 2**63, 2**64 - 1)
    )
    assert first.n_unique() > 250
    assert all((first != other).mean() > 0.95 for other in others)


EVERY_WAY = """
import numpy as np
import fastfed as ff
from fastfed.kernels import trials as kernel
for inst in (ff.Instance([[1.0]]), ff.Instance(np.asfortranarray([[1.0, 2.0], [0.0, 1.0]])),
             ff.Instance([[1], [0]], ff.Gaussian(2)), ff.Instance.load("synthetic")):
    for options in ({"engine": "dense", "threads": 1}, {"sigma": 2}, {"keep_pulls": True},
                    {"max_steps": 10}, {"seed": 2**64 - 1}, {"delta": np.float32(0.5)}):
        for names in ("fedelim", ["periodic:3"], ["at:1,2", "superexponential", "fedelim0"]):
            ff.simulate(inst, names, **{"delta": 0.1, "trials": 2, **options})
ff.replay(ff.Instance([[1.0], [0.0]]), delta=0.1, trial=3)
print(len(kernel.run_trials.signatures))
"""


@pytest.mark.process
def test_one_compiled_kernel_serves_every_run():
    """One signature, and so one compilation, serves every shape, schedule, engine and option.

    The test runs in its own process, in which no other test has compiled anything.
    """
    done = subprocess.run([sys.executable, "-c", EVERY_WAY], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "1\n"
