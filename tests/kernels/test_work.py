"""The engine's work, counted instead of timed: what it looks at and draws is fixed by the seed.

A change that makes trials dearer by more than 2 % fails here, on any machine, however busy. One
that makes them cheaper should come with new figures.
"""

from __future__ import annotations

import pytest

import fastfed as ff
from fastfed.kernels.memory import SKIP_TOLERANCE
from fastfed.simulation.job import Job

EIGHT = ["fedelim", *(f"periodic:{10**p}" for p in range(6)), "superexponential"]


@pytest.mark.parametrize(
    ("name", "schedules", "count", "intervals", "draws"),
    [
        ("synthetic", ["fedelim"], 200, 40_717, 96_935),
        ("synthetic", EIGHT, 100, 91_307, 275_426),
        ("scaled:synthetic,0.01", ["fedelim"], 50, 46_132, 71_784),
        ("random:20,38,1", ["fedelim"], 2, 107_068, 203_005),
        ("bernoulli", ["fedelim"], 20, 4_255, 7_040),
        ("bernoulli", EIGHT, 20, 23_655, 39_156),
        ("movielens", ["fedelim"], 2, 16_786, 28_108),
    ],
)
def test_work(name: str, schedules: list[str], count: int, intervals: int, draws: int) -> None:
    job = Job.of(ff.Instance.load(name), schedules, delta=0.01, engine="skip")
    looked, drawn = job.run(0, count).work.sum(axis=0)
    assert looked <= 1.02 * intervals
    assert drawn <= 1.02 * draws


@pytest.mark.parametrize(
    ("name", "schedules", "count", "verdicts"),
    [
        ("synthetic", ["fedelim"], 200, 96_225),
        ("synthetic", EIGHT, 100, 571_336),
        ("random:20,38,1", ["fedelim"], 2, 464_596),
        ("bernoulli", ["fedelim"], 20, 8_017),
        ("bernoulli", EIGHT, 20, 100_511),
        ("movielens", ["fedelim"], 2, 182_854),
    ],
)
def test_safe_verdicts_are_counted(
    name: str, schedules: list[str], count: int, verdicts: int
) -> None:
    """`skip_error` is the exact number of certificates times 1e-15.

    A certificate that is used and not counted would make the bound too small. No other test would
    notice.
    """
    job = Job.of(ff.Instance.load(name), schedules, delta=0.01, engine="skip")
    assert round(job.run(0, count).skip_error.sum() / SKIP_TOLERANCE) == verdicts
