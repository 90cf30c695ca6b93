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
        ("synthetic", EIGHT, 100, 89_161, 250_057),
        ("scaled:synthetic,0.01", ["fedelim"], 50, 46_132, 71_784),
        ("random:20,38,1", ["fedelim"], 2, 108_260, 206_385),
        ("bernoulli", ["fedelim"], 20, 4_255, 7_040),
        ("bernoulli", EIGHT, 20, 23_222, 35_958),
        ("movielens", ["fedelim"], 2, 17_217, 29_149),
        ("movielens", EIGHT, 2, 17_237, 32_982),
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
        ("synthetic", EIGHT, 100, 445_153),
        ("random:20,38,1", ["fedelim"], 2, 416_565),
        ("bernoulli", ["fedelim"], 20, 8_017),
        ("bernoulli", EIGHT, 20, 85_446),
        ("movielens", ["fedelim"], 2, 125_904),
        ("movielens", EIGHT, 2, 1_011_127),
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


@pytest.mark.parametrize("name", ["synthetic", "bernoulli"])
def test_arms_that_certainly_leave_are_not_followed_to_their_last_step(name: str) -> None:
    """A time inside an octave takes no more draws than one at its end, if all is decided there."""

    def drawn(time: int) -> int:
        job = Job.of(ff.Instance.load(name), [f"at:{time}"], delta=0.01, sigma=0.1, engine="skip")
        found = job.run(0, 20)
        assert (found.column("rounds") == 1).all()
        return int(found.work[:, 1].sum())

    assert drawn(50_001) == drawn(65_536)


def test_dense_clients_stop_where_their_rows_end() -> None:
    """A client with a small gap was walked to max_steps after the schedule's last time."""
    nearly_tied = ff.Instance([[0.9, 0.5], [0.1, 0.499]])
    near, far = (
        Job.of(nearly_tied, ["at:1,5,25"], delta=0.1, engine="dense", max_steps=most).run(0, 2)
        for most in (1_000, 100_000)
    )
    assert far.work.tolist() == near.work.tolist()
    assert far.ints.tolist() == near.ints.tolist()
