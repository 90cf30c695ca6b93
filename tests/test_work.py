"""The engine's work, counted instead of timed: what it looks at and draws is fixed by the seed.

A change that makes trials dearer by more than 2 % fails here, on any machine, however busy. One
that makes them cheaper should come with new figures.
"""

from __future__ import annotations

import pytest

import fastfed as ff
from fastfed.kernels import trials
from fastfed.simulate import Job

EIGHT = ["fedelim", *(f"periodic:{10**p}" for p in range(6)), "superexponential"]


@pytest.mark.parametrize(("name", "schedules", "count", "intervals", "draws"), [
    ("synthetic", ["fedelim"], 200, 105_518, 229_197),
    ("synthetic", EIGHT, 100, 116_362, 329_928),
    ("scaled:synthetic,0.01", ["fedelim"], 50, 197_269, 259_058),
    ("random:20,38,1", ["fedelim"], 2, 130_084, 287_442),
    ("bernoulli", ["fedelim"], 20, 11_554, 177_067),
])
def test_work(name: str, schedules: list[str], count: int, intervals: int, draws: int) -> None:
    job = Job(ff.Instance.load(name), schedules, delta=0.01, engine="skip")
    looked, drawn = job.run(0, count).work.sum(axis=0)
    assert looked <= 1.02 * intervals
    assert drawn <= 1.02 * draws


def test_one_compiled_signature_for_each_kind_of_rewards() -> None:
    """Gaussian and finite rewards are two kernels; nothing else may make a third."""
    for name in ("synthetic", "scaled:synthetic,0.5", "bernoulli"):
        for schedules in (["fedelim"], EIGHT):
            for delta in (0.1, 0.01):
                for keep in (False, True):
                    Job(ff.Instance.load(name), schedules, delta=delta, keep_pulls=keep).run(0, 1)
    assert len(trials.run_trials.signatures) == 2  # type: ignore[attr-defined]
