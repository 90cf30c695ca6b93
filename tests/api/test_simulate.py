"""`simulate`: its rows and their types, what it refuses, where trials are cut off, its summary."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers import refused
from polars.testing import assert_frame_equal

import fastfed as ff
from fastfed.model.counts import COUNTS
from fastfed.model.schedules import Schedule
from fastfed.simulation import reference
from fastfed.simulation.job import Job, new_control, run_all_blocks


def small(**options) -> ff.Result:
    given = {
        "instance": ff.Instance([[1.0, 0.0], [0.0, 2.0]]),
        "schedules": "fedelim",
        "delta": 0.1,
        "trials": 5,
        **options,
    }
    return ff.simulate(given.pop("instance"), given.pop("schedules"), **given)


# --- rows


def test_only_the_answer_of_several_arms_may_be_missing():
    """Types of columns are those of the reference page (`tests/test_docs.py`)."""
    frame = small(schedules=["fedelim", "periodic:3"]).frame
    assert frame.drop("global_answer").null_count().sum_horizontal().item() == 0
    assert frame["global_answer"].null_count() == frame.height  # one answer, in global_arm


def test_one_row_per_schedule_and_trial_in_order():
    inst = ff.Instance([[1.0, 0.0], [0.0, 2.0]], ff.Gaussian(0.5), name="two")
    options = {"instance": inst, "schedules": ["periodic:3", "fedelim"], "trials": 4}
    frame = small(**options, seed=2**64 - 1, delta=0.05).frame
    assert frame["schedule"].to_list() == ["periodic:3"] * 4 + ["fedelim"] * 4
    assert frame["trial"].to_list() == [0, 1, 2, 3] * 2
    expected = {"instance": "two", "seed": 2**64 - 1, "delta": 0.05, "sigma": 0.5}
    assert frame.select(*expected).unique().rows(named=True) == [expected]
    assert small(instance=inst, sigma=0.7).frame["sigma"].unique().to_list() == [0.7]


def test_schedules_as_objects_names_or_one():
    objects = [ff.FedElim(), ff.FedElim0(), ff.Periodic(5), ff.Exponential(1.5), ff.At([1, 9])]
    assert_frame_equal(
        small(schedules=[str(one) for one in objects]).frame, small(schedules=objects).frame
    )
    assert_frame_equal(small(schedules="fedelim").frame, small(schedules=ff.FedElim()).frame)
    inst = ff.Instance([[1.0, 0.0], [0.0, 2.0]])
    assert_frame_equal(ff.simulate(inst, delta=0.1, trials=5).frame, small().frame)


def test_pulls_are_kept_only_when_asked():
    kept = small(schedules=["fedelim", "fedelim0"], keep_pulls=True)
    assert kept.pulls.shape == (2, 5, 2, 2)
    assert kept.pulls.dtype == np.int64
    refused(lambda: small().pulls, "keep_pulls=True")


def test_the_busiest_client_is_that_of_the_kept_pulls():
    """Rows with kept pulls have the most pulls of a client, and lazy rows have the same."""
    schedules = ["fedelim", "periodic:7", "adaptive", "rounds:2"]
    kept = ff.simulate("synthetic", schedules, delta=0.1, trials=40, seed=2, keep_pulls=True)
    expected = kept.pulls.sum(axis=2).max(axis=2)
    assert kept.frame["busiest"].to_list() == expected.ravel().tolist()
    lazy = ff.simulate("synthetic", schedules, delta=0.1, trials=40, seed=2)
    assert_frame_equal(lazy.frame, kept.frame)


def test_a_downlink_is_a_change_of_the_arms_or_a_chosen_time():
    result = small(schedules=["fedelim0", "adaptive", "rounds:2"], trials=30)
    rows = {name: result.frame.filter(schedule=name) for name in map(str, result.job.schedules)}
    assert (rows["fedelim0"]["downlinks"] == 2).all()  # one of two arms leaves: both clients hear
    for name in ("adaptive", "rounds:2"):
        assert (rows[name]["downlinks"] == 2 * rows[name]["rounds"]).all()


def test_engines_by_name():
    assert small().engine == "skip"
    assert small(engine="skip").engine == "skip"
    assert small(engine="dense").engine == "dense"
    assert "fedelim" not in repr(small())
    assert "5 trials x 1 schedules" in repr(small())


def test_numbers_as_people_write_them():
    plain = small(trials=3, seed=7, max_steps=1000).frame
    assert_frame_equal(plain, small(trials=3.0, seed=np.int64(7), max_steps="1e3").frame)
    assert_frame_equal(plain, small(trials="3", seed="7", max_steps=1000, delta="0.1").frame)


def test_the_confidence_scale_is_not_the_noise():
    """Scaling means, noise and confidence alike changes nothing but rounding."""
    inst = ff.Instance([[1.0, 0.0], [0.0, 2.0]])
    loud = ff.Instance(inst.means * 4, ff.Gaussian(4.0))
    columns = ["pulls", "uplinks", "steps", "correct"]
    assert_frame_equal(
        small(trials=50).frame.select(columns),
        small(instance=loud, trials=50).frame.select(columns),
    )
    assert_frame_equal(
        small(trials=50, sigma=2).frame.select(columns),
        small(instance=loud, trials=50, sigma=8).frame.select(columns),
    )
    assert (small(trials=50, sigma=2).frame["pulls"] > small(trials=50).frame["pulls"]).all()


# --- a lone arm


@pytest.mark.parametrize("engine", ["skip", "dense"])
@pytest.mark.parametrize("schedule", ["fedelim", "fedelim0", "periodic:7", "at:5"])
def test_a_lone_arm_is_declared_without_a_pull(schedule, engine):
    inst = ff.Instance([[0.3, 0.4, -2.0]])
    result = small(instance=inst, schedules=schedule, engine=engine, keep_pulls=True)
    frame = result.frame
    zeros = (*COUNTS, "local_steps", "global_steps", "global_arm", "local_errors", "skip_error")
    assert not frame.select(zeros).to_numpy().any()
    assert frame["correct"].all()
    assert not frame["truncated"].any()
    assert result.pulls.sum() == 0
    printed = reference.fedelim(inst, Schedule.parse(schedule), 0.1, lambda k, m, n: 1 / 0)
    assert (printed.pulls.sum(), printed.uplinks, printed.steps, printed.truncated) == (0, 0, 0, 0)
    assert (printed.local_arms, printed.global_arm) == ({0: 0, 1: 0, 2: 0}, 0)


# --- cut off


@pytest.mark.parametrize("engine", ["skip", "dense"])
def test_a_trial_that_ends_in_time_is_not_cut_off(engine):
    free = small(engine=engine, trials=30, keep_pulls=True)
    last = free.frame["steps"].max()
    tight = small(engine=engine, trials=30, max_steps=last, keep_pulls=True)
    assert_frame_equal(free.frame, tight.frame)
    np.testing.assert_array_equal(free.pulls, tight.pulls)
    cut = small(engine=engine, trials=30, max_steps=last - 1).frame
    longest = free.frame["steps"] == last
    assert cut["truncated"].to_list() == longest.to_list()
    assert_frame_equal(cut.filter(~longest), free.frame.filter(~longest))


@pytest.mark.parametrize("engine", ["skip", "dense"])
def test_times_that_run_out_cut_trials_off_there(engine):
    """The server never decides after its last time; the clients do not wait for it."""
    inst = ff.Instance([[2.0, 0.0], [0.0, 1.9]])
    result = small(instance=inst, schedules="at:1,4,30", engine=engine, trials=40, keep_pulls=True)
    frame = result.frame
    assert frame["truncated"].all()
    assert (frame["global_arm"] == -1).all()
    assert (frame["rounds"] == 3).all()
    assert (frame["uplinks"] == 3 * 2 * 2).all()
    assert (result.pulls == 30).all()
    for column in ("steps", "global_steps"):
        assert (frame[column] == 30).all()
    # local ends are capped at 30 too
    local = small(instance=inst, schedules="fedelim", engine=engine, trials=40).frame["local_steps"]
    assert frame["local_steps"].to_list() == local.clip(0, 30).to_list()
    assert (local <= 30).any()
    assert (local > 30).any()


def test_the_server_may_decide_and_a_client_not():
    """Cut off with the server done: its answer stands, the row is truncated all the same."""
    inst = ff.Instance([[9.0, 0.05], [0.0, 0.0]])
    frame = small(instance=inst, max_steps=64, trials=40).frame
    assert frame["truncated"].all()
    assert (frame["global_arm"] == 0).all()
    assert not frame["correct"].any()
    assert (frame["global_steps"] < 64).all()
    assert (frame["local_steps"] == 64).all()


TIED = ff.Instance([[1.0, 1.0], [0.9, 0.9], [0.9, 0.9], [0.9, 0.9]], name="tied")


@pytest.mark.parametrize("schedule", ["fedelim", "periodic:3", "at:2", "at:1,4,64"])
def test_a_trial_given_up_is_told_as_its_row_says(schedule):
    """Compare an abandoned trial with the reference on the same walk, and with its replay.

    The cases: clients that abandon their pass while others go on, the server, communication times
    that run out, and a cut-off.
    """
    options = {"delta": 0.3, "sigma": 0.4, "seed": 1, "max_steps": 500}
    frame = ff.simulate(TIED, schedule, trials=40, **options).frame
    assert frame["truncated"].sum() > 3
    for row in frame.filter("truncated").head(8).iter_rows(named=True):
        told = reference.fedelim(
            TIED,
            Schedule.parse(schedule),
            0.3,
            reference.walk_rewards(TIED, 1, row["trial"]),
            sigma=0.4,
            max_steps=500,
        )
        assert (told.pulls.sum(), told.uplinks, told.steps, told.truncated) == (
            row["pulls"],
            row["uplinks"],
            row["steps"],
            True,
        )
        story = ff.replay(TIED, schedule, trial=row["trial"], **options)
        last = story.events[-1]
        assert (last.event, last.step, last.pulls, last.uplinks) == (
            "truncated",
            row["steps"],
            row["pulls"],
            row["uplinks"],
        )
        assert all(one.step <= last.step for one in story.events)


def test_a_client_cut_off_after_the_server_has_decided():
    story = ff.replay(ff.Instance([[9.0, 0.05], [0.0, 0.0]]), "fedelim", delta=0.1, max_steps=64)
    assert (story.events[-1].event, story.events[-1].step) == ("truncated", 64)
    assert story.events[-1].pulls == story.row["pulls"]


@pytest.mark.slow  # a compile for Poisson rewards
def test_rare_events_are_skipped():
    """A Poisson pair with hardly any event in an interval cannot cross there."""
    inst = ff.Instance([[1e-6], [3e-6]], ff.Poisson(sigma=1e-3))
    job = Job.of(inst, ["fedelim"], delta=0.1, seed=1, engine="skip")
    assert job.run(0, 4).work[:, 1].max() < 5_000


def test_a_trial_of_2_to_the_40_steps():
    """Far beyond stepping: three gaps of 1e-5, pulls of the order of 8 ln(...) / gap^2."""
    frame = small(instance=ff.Instance([[1e-5, 0], [0, 2e-5]]), trials=20).frame
    assert frame["correct"].all()
    assert frame["steps"].is_between(1e11, 1e14).all()
    assert (frame["skip_error"] < 1e-9).all()


def test_a_scale_that_the_gap_dwarfs():
    """The first step decides where gap / sigma exceeds the square root of the largest double."""
    far_apart = ff.Instance(1e60 * np.array([[0.0], [1.0]]))
    frame = small(instance=far_apart, sigma=1e-100).frame
    assert (frame["steps"] == 1).all()


# --- bad input: one line that names the value and the rule


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0}, ["delta = 0", "between 0 and 1"]),
        ({"delta": 1}, ["delta = 1", "between 0 and 1"]),
        ({"delta": math.nan}, ["delta = nan", "between 0 and 1"]),
        ({"delta": "small"}, ["delta = 'small'", "number"]),
        ({"delta": None}, ["delta = None", "number"]),
        ({"sigma": 0}, ["sigma = 0", "above 0"]),
        ({"sigma": math.nan}, ["sigma = nan", "above 0"]),
        ({"sigma": math.inf}, ["sigma = inf", "finite"]),
        ({"sigma": 1e-170}, ["sigma = 1e-170", "from 1e-100 to 1e+100", "another unit"]),
        ({"sigma": 1e101}, ["sigma = 1e+101", "from 1e-100 to 1e+100", "another unit"]),
        ({"sigma": "x"}, ["sigma = 'x'", "number"]),
        ({"trials": 0}, ["trials = 0", "whole number from 1"]),
        ({"trials": 2.5}, ["trials = 2.5", "whole number from 1"]),
        ({"trials": "many"}, ["trials = 'many'", "whole number from 1"]),
        ({"trials": None}, ["trials = None", "whole number from 1"]),
        ({"trials": 2**40}, ["trials = 1099511627776", "2^32"]),
        ({"trials": True}, ["trials = True", "whole number"]),
        ({"seed": -1}, ["seed = -1", "whole number from 0"]),
        ({"seed": 2**64}, ["seed = 18446744073709551616", "whole number"]),
        ({"seed": 0.5}, ["seed = 0.5", "whole number"]),
        ({"threads": 0}, ["threads = 0", "whole number from 1"]),
        ({"max_steps": 0}, ["max_steps = 0", "whole number from 1"]),
        ({"max_steps": 2**52 + 1}, ["max_steps", "2^52"]),
        ({"max_steps": 1.5}, ["max_steps = 1.5", "whole number"]),
        ({"engine": "fast"}, ["engine 'fast'", "auto, skip, dense"]),
        ({"engine": "dence"}, ["did you mean 'dense'"]),
        ({"schedules": []}, ["no schedules"]),
        ({"schedules": ["fedelim", "fedelim"]}, ["fedelim", "twice"]),
        ({"instance": 5}, ["fastfed.Instance", "a name, a file"]),
    ],
)
def test_bad_input_is_one_clear_line(options, words):
    refused(lambda: small(**options), *words)


@pytest.mark.parametrize("value", [10**400, -(10**400)], ids=["10^400", "-10^400"])
def test_whole_numbers_past_the_doubles(value):
    refused(lambda: small(delta=value), "delta")
    refused(lambda: small(sigma=value), "sigma")
    refused(lambda: small(trials=value), "trials")
    refused(lambda: ff.Gaussian(value), "sigma")
    refused(lambda: ff.Exponential(value), "lambda")


def test_gaps_too_small_to_end_are_named():
    """Past 2^52 steps: refused before anything runs, and which gap it is."""
    local = ff.Instance([[1.0, 0.0], [1.0 - 1e-7, 1.0]], clients=["north", "south"])
    refused(lambda: small(instance=local), "gap 1e-07", "client north", "max_steps")
    average = ff.Instance([[1.0, 0.0], [0.0, 1.0 + 1e-7]])
    refused(lambda: small(instance=average), "gap 5e-08", "mean over clients", "max_steps")
    # a wider radius, or a smaller delta, can be what makes a gap too small
    fine = ff.Instance([[1e-5], [0.0]])
    assert small(instance=fine).frame["correct"].all()
    refused(lambda: small(instance=fine, sigma=1000), "gap 1e-05")


def test_gaps_too_small_to_end_run_with_max_steps():
    tiny = ff.Instance([[1.0], [1.0 - 1e-9]])
    frame = small(instance=tiny, max_steps=10**6).frame
    assert frame["truncated"].all()
    assert (frame["steps"] == 10**6).all()


def test_an_instance_so_large_that_pulls_would_overflow_is_cut_off_before():
    inst = ff.Instance.load("random:60,60,1")
    refused(lambda: small(instance=inst, max_steps=2**52), "max_steps", "4503599627370496")


# --- progress, and stopping


def test_progress_is_reported_to_a_function():
    seen: list[tuple[int, int]] = []
    small(trials=500, threads=2, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (500, 500)
    assert [total for _, total in seen] == [500] * len(seen)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_a_bar_goes_to_stderr(capfd):
    rows = small(progress=True).frame
    out, _ = capfd.readouterr()
    assert out == ""
    assert_frame_equal(rows, small().frame)
    assert capfd.readouterr() == ("", "")


def test_leaving_early_tells_the_kernels_to_stop(monkeypatch):
    """The flag that kernels read after each trial is up once nobody waits for their rows."""
    controls = []
    run = Job.run

    def watched(self, first, count, control):
        controls.append(control)
        return run(self, first, count, control)

    monkeypatch.setattr(Job, "run", watched)
    job = Job.of(ff.Instance.load("synthetic"), "fedelim", delta=0.1)
    blocks = run_all_blocks([job], 0, 10**6, 2)
    next(blocks)
    assert all(control.stop[0] == 0 for control in controls)
    blocks.close()
    assert all(control.stop[0] == 1 for control in controls)


def test_kernels_obey_the_flag_and_count_what_they_did():
    job = Job.of(ff.Instance([[1.0], [0.0]]), "fedelim", delta=0.1)
    control = new_control()
    job.run(0, 7, control)
    assert control.done[0] == 7
    control.stop[0] = 1
    stopped = job.run(0, 7, control)
    assert control.done[0] == 7
    assert not stopped.ints.any()
