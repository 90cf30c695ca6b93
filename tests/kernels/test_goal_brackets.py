"""Brackets of `top` and `eps`, on made-up octaves: random walks hardly ever need these rules.

All arms are in play at one client. A pair (k, j) in ``leads`` says that j may lead k by g.
"""

from __future__ import annotations

import numpy as np
import pytest

import fastfed as ff
from fastfed import confidence
from fastfed.kernels.brackets import eps, octaves, top
from fastfed.kernels.compiling import from_python
from fastfed.kernels.goal import TOP, Rule
from fastfed.kernels.memory import ACCEPT, ACCEPTED, NOBODY, OWN, REJECT, Lazy, Octave, make_lazy
from fastfed.kernels.radii import make_radius
from fastfed.simulation.job import Job

LEVEL = 4  # the octave (8, 16]
may_be_decided = from_python(top._may_be_decided)
are_decided = from_python(top._are_decided)
declare = from_python(top._declare)
held_back = from_python(eps._held_back)
depend_on_undecided = from_python(octaves.depend_on_undecided)


def lazy_of(arms: int, leads: list[tuple[int, int]]) -> Lazy:
    made = make_lazy(arms, 1)
    made.notes[OWN] = arms
    for k, j in leads:
        made.by[0, k, j] = True
    return made


def octave_of(arms: int) -> Octave:
    return Octave(0, LEVEL, LEVEL - 1, 1.0, 1.0, 1.0, 0.0, arms, 0.0, 0.0)


def rule_of(wanted: int, arms: int) -> Rule:
    return Rule(np.int64(TOP), np.int64(wanted), np.arange(arms), np.zeros(arms), 0.0)


def sides(wanted: int, arms: int, leads: list[tuple[int, int]]) -> list[int] | None:
    """Return what each arm may be, or None if the bracket fails."""
    lazy = lazy_of(arms, leads)
    drawn = np.arange(arms, dtype=np.uint32)
    told = may_be_decided(rule_of(wanted, arms), drawn, octave_of(arms), lazy)
    return lazy.side[:, 0].tolist() if told else None


def test_an_arm_that_may_be_accepted_counts_as_a_leader() -> None:
    """Two of four: arm 0 may lead 2 and 3, and arm 3 may lead 1, to which 0 is not near."""
    assert sides(2, 4, [(2, 0), (3, 0), (1, 3)]) == [ACCEPT, REJECT, 0, 0]
    assert sides(2, 4, [(2, 0), (1, 3)]) == [0, 0, 0, 0]


def test_an_arm_that_may_be_rejected_counts_as_led() -> None:
    """The mirror image: arm 0 may be behind 2 and 3, and 1 may lead 3."""
    assert sides(2, 4, [(0, 2), (0, 3), (3, 1)]) == [REJECT, ACCEPT, 0, 0]


def test_an_arm_that_may_be_both_fails() -> None:
    assert sides(1, 2, [(0, 1), (1, 0)]) is None


def decided(wanted: int, x: list[float], before: list[int]) -> list[bool]:
    """Tell which arms are certainly decided at the end; all pairs may cross. g(16) is about 37."""
    arms = len(x)
    lazy = lazy_of(arms, [(k, j) for k in range(arms) for j in range(arms) if k != j])
    lazy.side[:, 0] = before
    paper = confidence.Confidence(confidence.PAPER, 1.0, 1.0, False, 0.1, 5.0, 0.0)
    drawn = np.arange(arms, dtype=np.uint32)
    values = np.array(x).reshape(-1, 1)
    radius = make_radius(paper)
    are_decided(rule_of(wanted, arms), radius, values, drawn, octave_of(arms), lazy)
    return (lazy.hi[:, 0] > 0).tolist()


def test_a_leader_that_may_be_rejected_decides_nothing() -> None:
    """Arm 1 leads arm 2 by g, and arm 0 does not. Had 1 been rejected, 2 would be undecided."""
    assert decided(1, [0.0, 20.0, -30.0], [0, 0, REJECT]) == [False, False, True]
    assert decided(1, [0.0, 20.0, -30.0], [0, REJECT, REJECT]) == [False, False, False]


def test_an_arm_behind_that_may_be_accepted_decides_nothing() -> None:
    assert decided(2, [0.0, -20.0, 30.0], [0, 0, ACCEPT]) == [False, False, True]
    assert decided(2, [0.0, -20.0, 30.0], [0, ACCEPT, ACCEPT]) == [False, False, False]


def test_the_last_rejection_accepts_the_others() -> None:
    assert decided(2, [0.0, 40.0, 90.0], [REJECT, ACCEPT, ACCEPT]) == [True, True, True]


@pytest.mark.parametrize(
    ("ties", "told"), [([0, 1, 2], True), ([0, 1, 1], True), ([0, 1, 0], False)]
)
def test_an_accepted_arm_that_ties_with_a_rejected_one_is_no_answer(
    ties: list[int], told: bool
) -> None:
    lazy = make_lazy(3, 1)
    lazy.hi[:], lazy.side[:, 0] = 16, [ACCEPT, REJECT, REJECT]
    state = np.zeros((1, ACCEPTED + 3), np.int64)
    rule = rule_of(1, 3)._replace(ties=np.array(ties))
    assert declare(rule, state, lazy, 0) == told
    assert not told or state[0, ACCEPTED:].tolist() == [1, 0, 0]


def stoppers(x: list[float], victims: list[int]) -> tuple[int, int]:
    """Count the arms that are held back at step 1, where h is 10, and tell who may stop."""
    job = Job.of(ff.Instance(np.eye(len(x))), "fedelim", delta=0.1, goal="eps:0.1")
    space = job.space()
    space.tree.drawn[0] = np.arange(len(x))
    space.walks.value[0, :, 0] = x
    lazy = make_lazy(len(x), 1)
    lazy.winner[0] = NOBODY
    lazy.victim[victims] = True
    octave = Octave(0, 0, 1, 0.0, 10.0, 0.0, 0.0, len(x), 0.0, 0.0)
    rewards, value = job._problem.rewards, space.walks.value
    count = held_back(rewards, value, space.tree, octave, (0.0, 0.0), lazy)
    return int(count), int(lazy.winner[0])


def test_an_arm_that_may_be_out_holds_no_leader_back() -> None:
    assert stoppers([20.0, 15.0, 0.0], []) == (3, NOBODY)
    assert stoppers([20.0, 15.0, 0.0], [1]) == (2, 0)


def test_two_arms_that_may_stop_are_too_many() -> None:
    assert stoppers([20.0, 15.0, 0.0], [0, 1])[0] == -1


def test_a_step_depends_on_the_arms_that_may_be_in_when_its_bracket_begins() -> None:
    lazy = make_lazy(3, 1)
    lazy.lo[:, 0], lazy.hi[:, 0] = [2, 3, -1], [8, 16, 4]  # (4, 8], (8, 16] and (0, 4]
    depend_on_undecided(lazy, 0)
    assert lazy.by[0].tolist() == [[False, True, False], [False, False, False], [True, True, False]]
