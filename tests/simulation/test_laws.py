"""Rows have the distribution of Algorithm 1 with independent rewards, where errors happen.

The reference draws rewards, dithers and presence from a NumPy generator, the engine from its own
walks, so the two samples are independent. Confidence scales are below the noise: many answers are
wrong. Seeds are fixed; each test has a false-alarm probability of ALARM = 1e-6, split evenly over
its comparisons.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import fastfed as ff
from fastfed.model.goals.base import Goal
from fastfed.model.schedules import Schedule
from fastfed.simulation import reference

pytestmark = pytest.mark.statistical

ALARM = 1e-6
MOST = 2_000  # steps: a trial that lost the best of two arms may go on for millions
COUNTS = ("pulls", "uplinks", "rounds", "steps", "busiest", "downlinks", "bits", "local_errors")
Sample = dict[str, np.ndarray]

EASY = ff.Instance([[1.7, -1.2], [0.3, 2.4], [-2.0, 0.5]], name="easy")
CLOSE = ff.Instance([[0.9, 0.2], [0.3, 1.0], [0.5, 0.4]], ff.Gaussian(1.5), name="close")
FOUR = ff.Instance([[1.8, 0.4], [0.6, 1.6], [0.0, -0.4], [-1.0, 0.2]], name="four")
ONE = ff.Instance([[0.9, 0.5], [-0.3, 0.4], [0.0, -0.2]], name="one")
TWO = ff.Instance([[0.8, 0.0], [0.0, 0.9]], name="two")
EVENTS = ff.Instance([[4.0, 1.0], [1.0, 6.0]], ff.Poisson(sigma=1.0), name="events")
CELLS = ff.Instance([[1.5, 0.1], [0.2, 1.9]], ff.Gaussian([[1.0, 0.3], [0.5, 2.0]]), name="cells")
VALUES = ff.Instance(
    rewards=ff.Finite(
        [0.0, 0.5, 1.0, 2.0], [[[1, 2, 1, 3], [3, 1, 0, 0]], [[2, 1, 1, 0], [1] * 4]]
    ),
    name="values",
)
COINS = ff.Instance([[0.95, 0.1], [0.4, 0.9]], ff.Bernoulli(), name="coins")
ASKED = FOUR.weighted([[2, 1], [0, 1]])

CASES: list[tuple[ff.Instance, str, float, float, dict[str, str]]] = [
    (EASY, "fedelim", 0.1, 0.15, {}),
    (CLOSE, "periodic:10", 0.3, 0.15, {}),
    (CLOSE, "fedelim0", 0.3, 0.2, {}),
    (FOUR, "exponential:1.5", 0.3, 0.3, {"goal": "top:2"}),
    (FOUR, "exponential:1.5", 0.3, 0.25, {"goal": "eps:0.3"}),
    (ONE, "exponential:1.5", 0.3, 0.3, {"goal": "threshold:0.2"}),
    (ONE, "exponential:1.5", 0.3, 0.3, {"goal": "threshold:0.2,0.1"}),
    (EVENTS, "fedelim", 0.3, 0.15, {}),
    (CELLS, "periodic:7", 0.3, 0.15, {}),
    (VALUES, "periodic:3", 0.3, 0.25, {}),
    (COINS, "periodic:3", 0.3, 0.15, {}),
    (TWO, "fedelim", 0.3, 0.3, {"radius": "stitched"}),
    (TWO, "fedelim", 0.3, 0.3, {"radius": "mixture"}),
    (TWO, "fedelim", 0.3, 0.4, {"radius": "stitched-pairs"}),
    (TWO, "fedelim", 0.3, 0.5, {"radius": "mixture-pairs"}),
    (TWO, "fedelim", 0.3, 0.25, {"uplink": "dither:2"}),
    (TWO, "periodic:3", 0.3, 0.25, {"uplink": "round:0.3"}),
    (TWO, "periodic:3", 0.3, 0.4, {"radius": "mixture", "participation": "random:0.5"}),
    (FOUR.weighted([3, 1]), "fedelim", 0.5, 0.3, {}),
    (ASKED, "periodic:3", 0.5, 0.3, {}),
    (FOUR.weighted([1, 2]), "adaptive", 0.3, 0.3, {}),
]


def independent_presence(probability: float, rng: np.random.Generator) -> reference.Presence:
    """Return a function of (client, n) that draws from a NumPy generator who takes part."""
    drawn: dict[tuple[int, int], bool] = {}

    def presence(m: int, n: int) -> bool:
        if (m, n) not in drawn:
            drawn[m, n] = bool(rng.random() < probability)
        return drawn[m, n]

    return presence


def printed(
    instance: ff.Instance, schedule: str, delta: float, scale: float, choices: dict[str, str]
) -> Sample:
    """Draw 500 trials of the reference."""
    rng, goal = np.random.default_rng(77), Goal.parse(choices.get("goal", "best"))
    probability = float(choices.get("participation", ":1").partition(":")[2])
    reward = reference.independent_rewards(instance, rng)
    drawn: dict[str, list[Any]] = {name: [] for name in (*COUNTS, "correct")}
    for _ in range(500):
        out = reference.fedelim(
            instance,
            Schedule.parse(schedule),
            delta,
            reward,
            sigma=scale * instance.default_sigma,
            max_steps=MOST,
            dither=reference.independent_dithers(rng),
            presence=independent_presence(probability, rng),
            **choices,  # type: ignore[arg-type]
        )
        wrong = sum(
            not goal.right(instance.means[:, m]).allows(answer)
            for m, answer in out.local_answers.items()
        )
        right = not wrong and all(
            goal.right(instance.values[q]).allows(out.server_answers.get(q, set()))
            for q in range(len(instance.questions))
        )
        for name in COUNTS[:-1]:
            drawn[name].append(np.sum(getattr(out, name)))
        drawn["local_errors"].append(wrong)
        drawn["correct"].append(right and not out.truncated)
    return {name: np.array(values) for name, values in drawn.items()}


def simulated(
    instance: ff.Instance, schedule: str, delta: float, scale: float, choices: dict[str, str]
) -> Sample:
    """Draw 5,000 trials by skipping."""
    sigma = scale * instance.default_sigma
    frame = ff.simulate(
        instance,
        schedule,
        delta=delta,
        trials=5000,
        seed=4,
        engine="skip",
        sigma=sigma,
        max_steps=MOST,
        **choices,
    ).frame
    return {name: frame[name].to_numpy() for name in (*COUNTS, "correct")}


def p_values(ours: Sample, theirs: Sample) -> dict[str, float]:
    """Compare counts by Kolmogorov-Smirnov tests, and the shares of wrong answers by Fisher's."""
    found = {
        name: stats.ks_2samp(ours[name], theirs[name], method="asymp").pvalue
        for name in COUNTS
        if name != "bits" or theirs["bits"].any()  # which the reference does not count of `exact`
    }
    table = [[int(one["correct"].sum()), int((~one["correct"]).sum())] for one in (ours, theirs)]
    return {**found, "correct": stats.fisher_exact(table).pvalue}


@pytest.mark.parametrize("case", CASES, ids=lambda one: f"{one[0].name}-{one[1]}-{one[4]}")
def test_rows_are_distributed_as_with_independent_rewards(case: Any) -> None:
    ours = simulated(*case)
    assert 0.02 < (~ours["correct"]).mean() < 0.98
    found = p_values(ours, printed(*case))
    assert min(found.values()) > ALARM / len(found), found


def test_the_comparison_would_notice() -> None:
    """A confidence scale 10 % off, or a third of the delta, does not pass."""
    case = (EASY, "fedelim", 0.1, 1.0, dict[str, str]())
    theirs = printed(*case)
    assert min(p_values(simulated(*case), theirs).values()) > ALARM
    for other in ((EASY, "fedelim", 0.1, 1.1, {}), (EASY, "fedelim", 0.03, 1.0, {})):
        assert min(p_values(simulated(*other), theirs).values()) < ALARM
