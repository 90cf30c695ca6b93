"""Bounds on the rounds of the adaptive schedule, against a plain search."""

from __future__ import annotations

import numpy as np
import pytest

import fastfed as ff
from fastfed.model.radii import Radius
from fastfed.theory.adaptive import rounds
from fastfed.timegrid import place_from, place_until, step_at


@pytest.mark.parametrize("radius", ["paper", "mixture-pairs"])
@pytest.mark.parametrize("hi", [3.0, 4.0, 40.0])
def test_the_bounds_on_rounds_are_what_a_plain_search_finds(radius: str, hi: float) -> None:
    """The latest and the most rounds up to the one that settles an arm, over all rounds before it.

    At round t the arm is at least its gap less 2 alpha(t) behind the leader. It is decided once
    2 alpha falls to that.
    """
    server = Radius.parse(radius).at_server(3, 2, 0.1, 1.0)
    schedule = ff.Adaptive(hi, 1.2)
    first = schedule.first_time(server, 1.0)
    gaps = np.array([2.0, 0.7, 0.31])
    settled = np.array([server.resolved_by(gap) for gap in gaps])
    latest, turns = rounds(schedule, server, first, gaps, settled)
    for gap, n, round_, count in zip(gaps.tolist(), settled.tolist(), latest, turns, strict=True):
        found, most, t = first, 1, first
        for place in range(place_from(first), place_until(int(n) - 1) + 1):
            lead = gap - 2 * server.alpha(step_at(place))
            found = max(
                found,
                schedule.next_time(
                    step_at(place), 3, lambda m, lead=lead: int(2 * server.alpha(m) <= lead)
                ).step,
            )
        while t < n:
            t, most = schedule.next_time(t, 3, lambda _: 3).step, most + 1
        assert (round_, count) == (found, most)
