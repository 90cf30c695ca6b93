"""Goals by name: names that read back, and goals that are refused in one line."""

from __future__ import annotations

import pytest
from helpers import refused, run

import fastfed as ff
from fastfed.model.goals.base import Goal

TIED = ff.Instance([[0.5, 0.5], [0.5, 0.5], [0.2, 0.2]], name="tied")
APART = ff.Instance([[0.9, 0.4], [0.5, 0.8], [0.1, 0.0]], name="apart")

MALFORMED = [
    ("bst", "did you mean 'best'"),
    ("top", "top:3"),
    ("top:", "top:3"),
    ("top:0", "from 1"),
    ("top:-2", "from 1"),
    ("top:1.5", "whole number"),
    ("top:x", "whole number"),
    ("top:1,2", "takes N, and nothing else"),
    ("topp:2", "did you mean 'top'"),
    ("eps", "eps:0.1"),
    ("eps:", "eps:0.1"),
    ("eps:0", "above 0"),
    ("eps:-0.1", "above 0"),
    ("eps:nan", "at most 1e+100"),
    ("eps:inf", "at most 1e+100"),
    ("eps:x", "number"),
    ("eps:0.1,0.2", "nothing else"),
    ("threshold", "threshold:0.5"),
    ("threshold:", "threshold:0.5"),
    ("threshold:x", "number"),
    ("threshold:nan", "to 1e+100"),
    ("threshold:0.5,-0.1", "E = '-0.1': must be a number from 0"),
    ("threshold:0.5,x", "number"),
    ("threshold:0.5,0.1,0.2", "nothing else"),
    ("threshold:,0.1", "TAU = ''"),
    ("threshold:1e200", "to 1e+100"),
    ("best:1", "takes no option"),
    ("", "must be one of"),
    (None, "must be one of"),
    (3, "must be one of"),
    (True, "must be one of"),
]


@pytest.mark.parametrize(("goal", "words"), MALFORMED, ids=[repr(one[0]) for one in MALFORMED])
def test_malformed_goals_are_one_line(goal, words: str) -> None:
    refused(lambda: ff.simulate(APART, delta=0.1, trials=1, goal=goal), "goal", words)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ff.Top(0), ["top: N = 0", "from 1"]),
        (lambda: ff.Top(1.5), ["top: N = 1.5"]),
        (lambda: ff.Top(True), ["top: N = True"]),
        (lambda: ff.Eps(0), ["eps: E = 0", "above 0"]),
        (lambda: ff.Eps("x"), ["eps: E = 'x'", "number"]),
        (lambda: ff.Eps(True), ["eps: E = True", "number"]),
        (lambda: ff.Threshold(None), ["threshold: TAU = None", "number"]),
        (lambda: ff.Threshold(0.5, -1), ["threshold: E = -1", "from 0"]),
    ],
)
def test_malformed_objects_are_one_line(make, words: list[str]) -> None:
    refused(make, "goal", *words)


@pytest.mark.parametrize(
    ("instance", "goal", "radius", "words"),
    [
        (TIED, "best", "paper", ["tie", "client 0", "arms 0, 1", "0.5", "eps:E"]),
        (TIED, "top:1", "paper", ["top:1", "arms 0, 1", "place 1", "client 0", "0.5", "top:2"]),
        (ff.Instance([[1.0], [1.0]]), "top:1", "paper", ["arms 0, 1", "eps:E"]),
        (APART, "top:3", "paper", ["top:3", "3 arms", "1 to 2"]),
        (APART, "top:12", "paper", ["top:12", "3 arms"]),
        (ff.Instance([[1.0]]), "top:1", "paper", ["1 arm", "best"]),
        (
            TIED,
            "threshold:0.5",
            "paper",
            ["threshold:0.5", "arms 0, 1", "exactly 0.5", "client 0", "threshold:0.5,0.03"],
        ),
        (APART, "threshold:0.8", "paper", ["arm 1", "exactly 0.8", "client 1"]),
        (APART, "threshold:0.65", "paper", ["arms 0, 1", "mean over clients"]),
        (ff.Instance([[0.1 + 0.2], [0.5]]), "threshold:0.3", "paper", ["arm 0", "exactly 0.3"]),
        (APART, "threshold:0.3", "mixture-pairs", ["mixture-pairs", "no pairs", "per arm"]),
        (APART, "threshold:0.3", "stitched-pairs", ["stitched-pairs", "no pairs"]),
        (ff.Instance([[0.5], [0.5 + 1e-9]]), "eps:1e-9", "paper", ["too small", "max_steps"]),
        (APART, "threshold:0.8000000000001,1e-12", "paper", ["too small", "max_steps"]),
    ],
)
def test_instances_that_do_not_fit_are_one_line(
    instance: ff.Instance, goal: str, radius: str, words: list[str], tmp_path
) -> None:
    refused(lambda: ff.simulate(instance, delta=0.1, trials=1, goal=goal, radius=radius), *words)
    refused(lambda: run(tmp_path, instances=[instance], goals=[goal], radii=[radius]), *words)


def test_names_read_back() -> None:
    for goal in (
        ff.Best(),
        ff.Top(7),
        ff.Eps(0.1),
        ff.Eps(1 / 3),
        ff.Eps(1e-30),
        ff.Threshold(0),
        ff.Threshold(-1.5),
        ff.Threshold(0.1, 2 / 7),
        ff.Threshold(1e22),
    ):
        assert Goal.parse(str(goal)) == goal
        assert hash(Goal.parse(str(goal))) == hash(goal)
    assert str(Goal.parse("threshold:0.50,0.0")) == "threshold:0.5"
    assert str(Goal.parse(" top:2")) == "top:2"
    assert [str(ff.Eps(3)), str(ff.Threshold(-0.0))] == ["eps:3", "threshold:0"]
