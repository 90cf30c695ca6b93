"""Arms that not every client has: rows, replays and algorithms leave them alone."""

from __future__ import annotations

import math

import pytest

import fastfed as ff

NAN = math.nan


def test_a_client_with_one_arm_answers_without_a_pull() -> None:
    """The second client pulls for the server alone, and the third for nobody."""
    means = [[1.0, 0.2, NAN], [0.0, NAN, NAN], [NAN, NAN, 0.5]]
    instance = ff.Instance(means, ff.Bernoulli(), weights=[1, 1, 0])
    done = ff.simulate(instance, "fedelim0", delta=0.1, trials=5, keep_pulls=True)
    assert (done.pulls[..., 0, 1] > 0).all()
    assert (done.pulls[..., 2] == 0).all()
    assert done.frame["correct"].all()


@pytest.mark.slow
def test_pulls_of_the_chain() -> None:
    """A plain NumPy stepper takes 365.3 +- 1.0 pulls; false alarm 1e-6 (5 standard errors)."""
    chain = ff.Instance([[1.0, NAN], [0.5, 0.5], [NAN, 0.0]]).own()
    pulls = ff.simulate(
        chain, "fedelim0", delta=0.1, trials=8_000, radius="mixture-pairs:1000", seed=5
    ).frame["pulls"]
    error = math.hypot(1.0, float(pulls.std()) / math.sqrt(8_000))  # type: ignore[arg-type]
    assert abs(float(pulls.mean()) - 365.3) < 5.0 * error  # type: ignore[arg-type]


def test_an_algorithm_that_pulls_an_absent_arm_is_refused() -> None:
    class Greedy(ff.Algorithm):
        family = "greedy-everywhere"

        @staticmethod
        def decide(seen, answer):  # type: ignore[no-untyped-def]
            answer.targets[:] = 1

    with pytest.raises(ff.InputError, match=r"does not have the arm; see seen\.available"):
        ff.simulate(
            ff.Instance([[1.0, NAN], [0.2, 0.5]], ff.Bernoulli()),
            Greedy(),
            delta=0.1,
            trials=1,
            engine="python",
        )
