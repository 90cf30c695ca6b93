"""The engine's work, counted instead of timed: what it looks at and draws is fixed by the seed.

A change that makes trials dearer by more than 2 % fails here, on any machine, however busy. One
that makes them cheaper should come with new figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import fastfed as ff
from fastfed.kernels.memory import SKIP_TOLERANCE
from fastfed.simulation.job import Job

EIGHT = ["fedelim", *(f"periodic:{10**p}" for p in range(6)), "superexponential"]


HARD = ff.Instance(0.01 * np.array([[0.9, 0.5], [0.4, 0.7], [0.2, -0.3], [-0.4, 0.1]]))
TWO = ["fedelim", "periodic:1000"]


@pytest.mark.parametrize(
    ("instance", "schedules", "goal", "count", "intervals", "draws", "verdicts"),
    [
        ("synthetic", ["fedelim"], "best", 200, 40_717, 96_935, 96_225),
        ("synthetic", EIGHT, "best", 100, 89_161, 250_057, 445_153),
        ("scaled:synthetic,0.01", ["fedelim"], "best", 50, 46_132, 71_784, 82_795),
        ("random:20,38,1", ["fedelim"], "best", 2, 108_260, 206_385, 416_565),
        ("bernoulli", ["fedelim"], "best", 20, 4_255, 7_040, 8_017),
        ("bernoulli", EIGHT, "best", 20, 23_222, 35_958, 85_446),
        ("movielens", ["fedelim"], "best", 2, 17_217, 29_149, 125_904),
        ("movielens", EIGHT, "best", 2, 17_237, 32_982, 1_011_127),
        (HARD, TWO, "top:2", 20, 67_200, 101_229, 79_306),
        (HARD, TWO, "eps:0.0031", 20, 56_785, 95_471, 73_135),
        (HARD, TWO, "threshold:0.0031", 20, 104_492, 79_913, 290_189),
    ],
)
def test_work_and_verdicts(
    instance: str | ff.Instance,
    schedules: list[str],
    goal: str,
    count: int,
    intervals: int,
    draws: int,
    verdicts: int,
) -> None:
    """`skip_error` is the exact number of certificates times 1e-15.

    A certificate that is used and not counted would make the bound too small. No other test would
    notice.
    """
    made = ff.Instance.load(instance) if isinstance(instance, str) else instance
    seed = 0 if made is not HARD else 2
    options = {"delta": 0.01, "engine": "skip", "goal": goal, "seed": seed}
    block = Job.of(made, schedules, **options).run(0, count)
    looked, drawn = block.work.sum(axis=0)
    assert looked <= 1.02 * intervals
    assert drawn <= 1.02 * draws
    assert round(block.skip_error.sum() / SKIP_TOLERANCE) == verdicts


MEANS = np.array([[0.5, 0.1], [0.1, 0.4]])
SMALLER: dict[str, Callable[[float], Job]] = {
    goal: lambda factor, goal=goal: Job.of(
        ff.Instance(100 * factor * HARD.means), TWO, delta=0.01, goal=goal.format(0.31 * factor)
    )
    for goal in ("best", "top:2", "eps:{:.6g}", "threshold:{:.6g}")
}
SMALLER["coins"] = lambda factor: Job.of(
    ff.Instance(0.5 + factor * (MEANS - 0.3), ff.Bernoulli()), TWO, delta=0.01
)
SMALLER["noise of each cell"] = lambda factor: Job.of(
    ff.Instance(factor * MEANS, ff.Gaussian([[1.0, 0.5], [0.7, 0.9]])), TWO, delta=0.01
)
SMALLER["poisson"] = lambda factor: Job.of(
    ff.Instance(1 + factor * MEANS, ff.Poisson(1.5)), TWO, delta=0.01
)
SMALLER["betting"] = lambda factor: Job.of(
    ff.Instance(0.5 + factor * (MEANS - 0.3), ff.Bernoulli()),
    TWO,
    delta=0.01,
    radius="betting:24",
    max_steps=2**40,
)
OTHER_KERNELS = ("noise of each cell", "poisson", "betting")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[pytest.mark.slow] if kind in OTHER_KERNELS else [])
        for kind in SMALLER
    ],
)
def test_work_grows_as_a_logarithm_of_the_pulls(kind: str) -> None:
    """Multiply all gaps by 0.1, 0.01 and 0.001: draws grow by a power of the pulls below 0.2."""
    blocks = [SMALLER[kind](factor).run(0, 40) for factor in (0.1, 0.001)]
    (pulls, draws), (more, later) = (
        (block.column("pulls").mean(), block.work[:, 1].mean()) for block in blocks
    )
    assert more > 2500 * pulls
    assert math.log(later / draws) / math.log(more / pulls) < 0.2


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
