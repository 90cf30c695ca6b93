"""Goals that an instance does not fit: refused in one line."""

from __future__ import annotations

import pytest
from helpers import refused, run

import fastfed as ff

TIED = ff.Instance([[0.5, 0.5], [0.5, 0.5], [0.2, 0.2]], name="tied")
APART = ff.Instance([[0.9, 0.4], [0.5, 0.8], [0.1, 0.0]], name="apart")


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
