"""Distribution of the end of a pass and of its errors, against exact numbers.

With two arms (top, eps) or one arm (threshold) and one client, a pass is one walk that leaves a
strip. `first_passage.exits` carries the density of the walk from step to step. A million trials are
compared with it by a chi-square test. The test has a cell for each step whose expected count is 25
or more, separately for right and wrong answers, and one cell for the rest. The false-alarm
probability is 1e-7 for each case.
"""

from __future__ import annotations

import math

import first_passage
import numpy as np
import pytest
from scipy import stats

import fastfed as ff
from fastfed.model.radii import Radius
from fastfed.simulation.job import Job

pytestmark = pytest.mark.slow

TRIALS, CHUNK = 1_000_000, 100_000
DELTA, SCALE, STEPS = 0.3, 0.5, 4000

CASES = [
    ("top:1", [[0.5], [0.0]]),
    ("eps:0.1", [[0.5], [0.0]]),
    ("eps:0.4", [[0.15], [0.0]]),
    ("threshold:0.25", [[0.6]]),
    ("threshold:0.25,0.15", [[0.3]]),
    ("threshold:0.5,0.1", [[0.1]]),
]


def strip(goal: str, means: list[list[float]]) -> tuple[float, float, first_passage.Boundary]:
    """Drift, noise and boundary of the one walk."""
    confidence = Radius.parse("paper").at_client(len(means), 1, DELTA, SCALE)
    family, _, options = goal.partition(":")
    numbers = [float(one) for one in options.split(",")]
    if family == "threshold":
        tau, slack = (*numbers, 0.0)[:2]
        return means[0][0] - tau, 1.0, lambda n: n * (confidence.alpha(n) - slack)
    slack = numbers[0] if family == "eps" else 0.0
    return (
        means[0][0] - means[1][0],
        math.sqrt(2.0),
        lambda n: n * (2 * confidence.alpha(n) - slack),
    )


@pytest.mark.parametrize(("goal", "means"), CASES, ids=[one[0] for one in CASES])
def test_a_pass_ends_when_numerical_integration_says(goal: str, means: list[list[float]]) -> None:
    drift, rate, boundary = strip(goal, means)
    steps = range(1, STEPS + 1)
    last = next((n for n in steps if boundary(n) <= 0.0), None)
    if last is None:  # as far as a trial in ten million goes, at least
        last = next(n for n in steps if n > 40 and n * drift > boundary(n) + 6 * rate * n**0.5)
    expected = TRIALS * first_passage.exits(drift, rate, boundary, range(1, last + 1))
    assert expected.sum() == pytest.approx(TRIALS, rel=1e-6)
    job = Job.of(ff.Instance(means), ["fedelim"], delta=DELTA, sigma=SCALE, seed=9, goal=goal)
    seen = np.zeros((last + 1, 2))
    errors = 0
    for first in range(0, TRIALS, CHUNK):
        block = job.run(first, CHUNK, keep_departures=True)
        left = block.departures
        assert left is not None
        ends = left.local_eliminated_at[:, :, 0].max(axis=1)
        up = left.local_accepted[:, 0, 0] if not job.goal.one_arm else left.local_arms[:, 0] == 0
        errors += int(block.column("local_errors").sum())
        np.add.at(seen, (np.minimum(ends, last), np.where(up, 0, 1)), 1)
    flat, counts = expected.ravel(), seen[1:].ravel()
    many = flat >= 25
    flat, counts = (np.append(one[many], one[~many].sum()) for one in (flat, counts))
    value = float(((counts - flat) ** 2 / np.maximum(flat, 1.0)).sum())
    assert many.sum() > 20
    assert stats.chi2(len(flat) - 1).sf(value) > 5e-8
    # the answers that the two sides stand for: the first arm, and the second, or none at all
    right = job.goal.right(np.array(means)[:, 0])
    answers = ({0}, set() if len(means) == 1 else {1})
    wrong = sum(expected[:, side].sum() for side in (0, 1) if not right.allows(answers[side]))
    assert abs(errors - wrong) <= 5.5 * math.sqrt(wrong)


def test_the_grid_does_not_matter() -> None:
    drift, rate, boundary = strip("eps:0.1", [[0.5], [0.0]])
    coarse, fine = (
        first_passage.exits(drift, rate, boundary, range(1, 80), width) for width in (3.0, 1.5)
    )
    np.testing.assert_allclose(coarse, fine, rtol=1e-9, atol=1e-15)
