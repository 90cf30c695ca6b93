"""Federations of very many clients: memory, and the rows of clients followed to the end."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fastfed as ff
from fastfed.simulation import job as jobs
from fastfed.simulation import machine as machines
from fastfed.simulation.job import Job, run_all_blocks


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
@pytest.mark.parametrize(
    "choice", [{}, {"goal": "top:2", "uplink": "dither:1"}, {"goal": "eps:0.1"}], ids=str
)
def test_memory_is_known_before_it_is_made(instance: ff.Instance, choice: dict[str, str]) -> None:
    job = Job.of(instance, ["fedelim", "periodic:7", "adaptive"], delta=0.1, **choice)
    assert job.need() == jobs.size_of(job.space())


def test_memory_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job.of(federation(2_000), ["fedelim"], delta=0.01)
    needed = jobs.size_of(job.space())
    monkeypatch.setattr(machines, "physical_memory", lambda: needed - 1.0)
    said = re.escape(f"3 arms x 2,000 clients: a trial takes up to {needed:,} bytes")
    with pytest.raises(ff.InputError, match=said) as caught:
        job.space()
    assert "\n" not in str(caught.value)


def test_threads_that_do_not_fit_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory for two threads and a half: two run."""
    job = Job.of(federation(10), ["fedelim"], delta=0.01)
    memory = 2.5 * jobs.size_of(job.space())
    monkeypatch.setattr(machines, "physical_memory", lambda: memory)
    running, most = set(), []
    start = machines.in_thread

    def counted(function, *arguments):
        future = start(function, *arguments)
        running.add(future)
        most.append(sum(not one.done() for one in running))
        return future

    monkeypatch.setattr(machines, "in_thread", counted)
    assert sum(block.trials for (block,) in run_all_blocks([job], 0, 5, threads=8)) == 5
    assert 1 <= max(most) <= 2
    assert jobs.Machine(8).at_once(job.need()) == 2
