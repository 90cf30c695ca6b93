"""Federations of very many clients: memory, and the rows of clients followed to the end."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fastfed as ff
from fastfed.simulation import job as jobs
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


def test_memory_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job.of(federation(1_000), ["fedelim"], delta=0.01)
    needed = jobs.size_of(job.space())
    monkeypatch.setattr(jobs, "physical_memory", lambda: needed - 1.0)
    said = re.escape(f"3 arms x 1,000 clients: a trial takes up to {needed:,} bytes")
    with pytest.raises(ff.InputError, match=said) as caught:
        job.space()
    assert "\n" not in str(caught.value)


def test_threads_that_do_not_fit_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory for two threads and a half: two run."""
    job = Job.of(federation(10), ["fedelim"], delta=0.01)
    memory = 2.5 * jobs.size_of(job.space())
    monkeypatch.setattr(jobs, "physical_memory", lambda: memory)
    started = []
    pool = jobs.ThreadPoolExecutor
    monkeypatch.setattr(
        jobs, "ThreadPoolExecutor", lambda count, **options: started.append(count) or pool(count)
    )
    assert sum(block.trials for (block,) in run_all_blocks([job], 0, 5, workers=8)) == 5
    assert started == [2]
