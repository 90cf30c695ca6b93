"""The adaptive schedule by itself: its name, its grid, and its rule against a plain search."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers import refused

import fastfed as ff
from fastfed.confidence import MAX_STEPS
from fastfed.model.goals import Goal
from fastfed.model.radii import Radius
from fastfed.simulation.reference import next_time
from fastfed.timegrid import PARTS, place_from, place_until, step_at


def test_the_grid_has_every_small_step_and_64_in_an_octave() -> None:
    steps = [step_at(place) for place in range(3000)]
    assert steps[: 2 * PARTS] == list(range(2 * PARTS))
    assert steps == sorted(set(steps))
    for t in range(7, 40):
        assert sum(2**t <= step < 2 ** (t + 1) for step in steps) == PARTS
    for n in [*range(1, 700), *range(10**6, 10**6 + 40), 2**52, 2**52 - 1]:
        before, after = step_at(place_until(n)), step_at(place_from(n))
        assert before <= n <= after
        assert step_at(place_until(n) + 1) > n > step_at(place_from(n) - 1)
        assert after - n <= n / PARTS


def test_there_is_no_list_of_times() -> None:
    refused(lambda: ff.Adaptive().times(100), "chooses them in each trial")
    refused(lambda: ff.bounds("synthetic", adaptive="fedelim"), "fedelim", "adaptive:8")


def test_the_first_time_is_where_the_radius_falls_to_first() -> None:
    server = Radius.parse("paper").at_server(4, 3, 0.01, 1.5)
    for first in (0.1, 1.0, 2.0, 100.0):
        n = ff.Adaptive(first=first).first_time(server, 1.5)
        assert 2 * server.alpha(n) <= first * 1.5
        before = place_until(n) - 1
        assert n == 1 or 2 * server.alpha(step_at(before)) > first * 1.5


@pytest.mark.parametrize("goal", ["best", "top:3", "eps:0.2", "threshold:0.3"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_next_time_is_what_a_plain_search_finds(goal: str, share: float) -> None:
    """The least step of the grid at which enough arms would be decided by the goal's own rule."""
    rng = np.random.default_rng(3)
    radius = "paper" if goal.startswith("threshold") else "mixture-pairs"
    server = Radius.parse(radius).at_server(6, 2, 0.1, 0.5)
    rule = Goal.parse(goal)
    schedule = ff.Adaptive(5, 1.2, share=share)
    reasons = set()
    for _ in range(60):
        n = int(10 ** rng.uniform(1, 4))
        means = dict(enumerate((0.3 + rng.normal(0, 1, 6) * 10 ** rng.uniform(-2, 0.5)).tolist()))
        found = next_time(schedule, n, means, server, rule, set())
        places = range(place_from(math.ceil(1.2 * n)), place_until(5 * n) + 1)
        wanted = max(1, math.ceil(share * 5))
        enough = [
            step_at(place)
            for place in places
            if sum(map(len, rule.decide(means, server.alpha(step_at(place)), set()))) >= wanted
        ]
        assert found.step == (enough[0] if enough else step_at(places[-1]))
        assert found.wanted == wanted
        reasons.add(found.reason)
    assert reasons == {"", "LO", "HI"}


def test_times_grow_within_their_factors() -> None:
    """Whatever the means say, up to the last step that there is."""
    for schedule in (ff.Adaptive(), ff.Adaptive(1.01, 1.005), ff.Adaptive(1e6)):
        for n in (1, 2, 7, 130, 10**6, MAX_STEPS):
            for decided in (0, 10):
                after = schedule.next_time(n, 5, lambda _, count=decided: count).step
                assert after > n
                assert after >= schedule.lo * n or after > MAX_STEPS
                assert after <= schedule.growth * n
