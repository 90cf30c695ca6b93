"""Federations of very many clients: memory, and the rows of clients followed to the end."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fastfed as ff
from fastfed.simulation import job as jobs
from fastfed.simulation import machine as machines
from fastfed.simulation.job import Job, run_all_blocks
from fastfed.simulation.rows import Block


def federation(clients: int) -> ff.Instance:
    """Three arms; clients' means scatter around those of the server."""
    scatter = np.random.default_rng(1).uniform(-0.15, 0.15, (3, clients))
    return ff.Instance(np.array([[0.9], [0.5], [0.1]]) + scatter)


def test_rows_of_many_clients_are_those_of_every_client_followed() -> None:
    job = Job.of(federation(50_000), ["fedelim"], delta=0.01, keep_pulls=True)
    lazy, whole = job.run(0, 1), job.run(0, 1, keep_departures=True)
    assert (lazy.ints == whole.ints).all()
    assert (lazy.pulls == whole.pulls).all()


def _laws() -> list[ff.Instance]:
    rng = np.random.default_rng(2)
    means = np.array([[0.8], [0.5], [0.2]]) + rng.uniform(-0.1, 0.1, (3, 9_000))
    weights = np.stack([1 - means, rng.uniform(0, 0.02, means.shape), means], axis=2)
    return [
        ff.Instance(means, name="gaussian"),
        ff.Instance(means, ff.Gaussian(rng.uniform(0.3, 1, means.shape)), name="noises"),
        ff.Instance(means, ff.Bernoulli(), name="bernoulli"),
        ff.Instance(rewards=ff.Finite([0.0, 0.4, 1.0], weights), name="finite"),
        ff.Instance(means, ff.Poisson(sigma=1.0), name="poisson"),
    ]


@pytest.mark.parametrize("instance", _laws(), ids=lambda one: one.name)
@pytest.mark.parametrize("whole", [False, True])
def test_a_trial_on_several_threads_is_the_same(
    instance: ff.Instance, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The three blocks of its clients share nothing but what the server left them."""
    made = []
    plain = jobs.beside
    monkeypatch.setattr(jobs, "beside", lambda *held: made.append(1) or plain(*held))
    job = Job.of(instance, ["fedelim", "periodic:7"], delta=0.1, keep_pulls=True)
    alone = job.run(0, 1, keep_departures=whole)
    assert not made
    shared = job.run(0, 1, keep_departures=whole, threads=8)
    assert len(made) == 3
    for name in ("ints", "skip_error", "draw_error", "pulls", "work"):
        np.testing.assert_array_equal(getattr(shared, name), getattr(alone, name))
    if whole:
        for name, found in vars(shared.departures).items():
            np.testing.assert_array_equal(found, getattr(alone.departures, name))


@pytest.mark.parametrize("choice", [{"goal": "top:2"}, {"uplink": "dither:0.5"}], ids=str)
def test_other_choices_on_several_threads(choice: dict[str, str]) -> None:
    job = Job.of(federation(9_000), ["fedelim"], delta=0.1, keep_pulls=True, **choice)
    alone, shared = job.run(0, 1), job.run(0, 1, threads=2)
    np.testing.assert_array_equal(shared.ints, alone.ints)
    np.testing.assert_array_equal(shared.pulls, alone.pulls)
    np.testing.assert_array_equal(shared.skip_error, alone.skip_error)


def test_threads_without_a_trial_of_their_own_help_the_others() -> None:
    given = []

    class Noted(Job):
        def run(self, *arguments: object, threads: int = 1, **options: object) -> Block:
            given.append(threads)
            return super().run(*arguments, threads=threads, **options)

    job = Noted.of(federation(21_000), ["fedelim"], delta=0.1)
    for trials in (1, 2, 3, 8):
        list(run_all_blocks([job], 0, trials, threads=6))
    assert given[:12] == [6] + 2 * [3] + 3 * [2] + 6 * [1]
    assert len(given) == 14  # the last two have what is free: it depends on who ends first


def test_trials_of_one_call_share_the_threads_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []
    plain = jobs.beside
    monkeypatch.setattr(jobs, "beside", lambda *held: made.append(1) or plain(*held))
    job = Job.of(federation(9_000), ["fedelim"], delta=0.1, keep_pulls=True)
    alone = job.run(5, 3, keep_departures=True)
    assert not made
    shared = job.run(5, 3, keep_departures=True, threads=2)
    assert len(made) == 6
    for name in ("ints", "skip_error", "draw_error", "pulls", "work"):
        np.testing.assert_array_equal(getattr(shared, name), getattr(alone, name))
    assert shared.first == 5
    stopped = jobs.new_control()
    stopped.stop[0] = 1
    assert job.run(5, 3, stopped, threads=2).trials == 1


@pytest.mark.parametrize("instance", _laws(), ids=lambda one: one.name)
@pytest.mark.parametrize(
    "choice", [{}, {"goal": "top:2", "uplink": "dither:1"}, {"goal": "eps:0.1"}], ids=str
)
def test_memory_is_known_before_it_is_made(instance: ff.Instance, choice: dict[str, str]) -> None:
    job = Job.of(instance, ["fedelim", "periodic:7", "adaptive"], delta=0.1, **choice)
    assert job.need() == (jobs.size_of(job.space()), 3)


def test_threads_share_no_small_trial() -> None:
    """Nor one of an algorithm in rounds."""
    assert Job.of(federation(4_096), ["fedelim"], delta=0.1).need().threads == 1
    assert Job.of(federation(4_097), ["fedelim"], delta=0.1).need().threads == 2
    assert Job.of(federation(9_000), ["rounds:2"], delta=0.1).need().threads == 1


def test_memory_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job.of(federation(1_000), ["fedelim"], delta=0.01)
    needed = jobs.size_of(job.space())
    monkeypatch.setattr(machines, "physical_memory", lambda: needed - 1.0)
    said = re.escape(f"3 arms x 1,000 clients: a trial takes up to {needed:,} bytes")
    with pytest.raises(ff.InputError, match=said) as caught:
        job.space()
    assert "\n" not in str(caught.value)


def test_threads_that_do_not_fit_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory for two threads and a half: two run."""
    job = Job.of(federation(10), ["fedelim"], delta=0.01)
    memory = 2.5 * jobs.size_of(job.space())
    monkeypatch.setattr(machines, "physical_memory", lambda: memory)
    started = []
    pool = jobs.ThreadPoolExecutor
    monkeypatch.setattr(
        jobs, "ThreadPoolExecutor", lambda count, **options: started.append(count) or pool(count)
    )
    assert sum(block.trials for (block,) in run_all_blocks([job], 0, 5, threads=8)) == 5
    assert started == [2]
