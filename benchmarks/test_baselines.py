"""The same trials as a user would run them without fastfed, in the same run, on one thread.

fastfed's own times for them are the hardness group of `test_trials.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import baselines
import numpy as np
import pytest

from fastfed import Instance, simulate

DELTA = 0.01
MEANS = "synthetic, fedelim, delta 0.01: means times"


@dataclass(frozen=True)
class Expected:
    """fastfed's pulls a trial."""

    mean: float
    variance: float
    trials: int

    def check(self, pulls: np.ndarray) -> np.ndarray:
        """Refuse pulls whose mean is more than five standard errors away, or a factor of two.

        The standard error of a single trial is wide.
        """
        error = math.sqrt(self.variance / len(pulls) + self.variance / self.trials)
        assert abs(pulls.mean() - self.mean) < 5 * error, (pulls.mean(), self.mean, error)
        assert 0.5 < pulls.mean() / self.mean < 2, (pulls.mean(), self.mean)
        return pulls


@cache
def expected(factor: str) -> tuple[np.ndarray, Expected]:
    """Return the synthetic means times a factor, and fastfed's pulls on them."""
    instance = Instance.load(f"scaled:synthetic,{factor}")
    pulls = simulate(instance, delta=DELTA, trials=4_000).frame["pulls"].to_numpy()
    return np.array(instance.means), Expected(pulls.mean(), pulls.var(), len(pulls))


def checked(name: str, factor: str, trials: int) -> Callable[[], np.ndarray]:
    """Make a warmed-up call of a baseline that raises unless its mean pulls are fastfed's.

    The check is part of the timed call and takes some microseconds. So neither the table nor the
    JSON has a time of a call that was not checked.
    """
    run = getattr(baselines, name)
    means, fastfed = expected(factor)
    run(expected("1")[0], DELTA, 1)
    return lambda: fastfed.check(run(means, DELTA, trials))


def told(pulls: np.ndarray, seconds: float, factor: str) -> dict[str, object]:
    """Return the time of a trial from the cost of a pull.

    The few trials of a baseline may have more or fewer pulls than the mean. The cost of a pull is
    measured, and a trial takes that many times fastfed's mean pulls.
    """
    mean = expected(factor)[1].mean
    return {
        "trials": len(pulls),
        "pulls_a_second": pulls.sum() / seconds,
        "nanoseconds_a_pull": seconds / pulls.sum() * 1e9,
        "trials_a_second": pulls.sum() / seconds / mean,
        "microseconds_a_trial": seconds / pulls.sum() * mean * 1e6,
        "pulls_a_trial": mean,
        "pulls_a_trial_as_measured": pulls.mean(),
        "microseconds_a_trial_is": "measured time a pull x fastfed's mean pulls a trial",
    }


@pytest.mark.benchmark(group=f"baselines, {MEANS} 1")
@pytest.mark.parametrize(
    ("name", "trials"),
    [
        pytest.param("literal", 20, id="literal"),
        pytest.param("numpy_batch", 100, id="numpy_batch"),
        pytest.param("numba_plain", 50, id="numba_plain"),
        pytest.param("numba_stepper", 50, id="numba_stepper"),
    ],
)
def test_baseline(benchmark: Any, measure: Any, name: str, trials: int) -> None:
    pulls, seconds = measure(checked(name, "1", trials))
    benchmark.extra_info.update(told(pulls, seconds, "1"))


@pytest.mark.benchmark(group=f"the tight stepper, {MEANS}")
@pytest.mark.parametrize(
    ("factor", "trials", "rounds"),
    [pytest.param("0.1", 10, None, id="0.1"), pytest.param("0.01", 1, 1, id="0.01")],
)
def test_stepper_on_harder_means(
    benchmark: Any, measure: Any, factor: str, trials: int, rounds: int | None
) -> None:
    pulls, seconds = measure(checked("numba_stepper", factor, trials), rounds=rounds)
    benchmark.extra_info.update(told(pulls, seconds, factor))
