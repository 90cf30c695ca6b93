"""Texts and tables of the cheapest schedules."""

from __future__ import annotations

import numpy as np
import pytest
from made_up_trials import CELL, moments_of, simulated
from scipy import stats

from fastfed.analysis.cheapest import Cheapest, envelope
from fastfed.display.cheapest_text import BRACKETS, best_text


def test_text() -> None:
    pulls, uplinks = simulated(np.random.default_rng(17), 2000, 3)
    text = str(Cheapest((envelope(moments_of(pulls, uplinks), CELL),)))
    first, *pieces = text.splitlines()
    foot = next(i for i, line in enumerate(pieces) if not line.startswith(" "))
    pieces, legend = pieces[:foot], pieces[foot:]
    assert first == (
        "here, delta 0.1, sigma 1, 2,000 trials: the cheapest schedule by the cost C of an uplink"
    )
    assert [line.split(": ")[1] for line in pieces if not line.startswith("    ")] == [
        "fedelim0",
        "periodic:10",
        "fedelim",
    ]
    assert pieces[0].startswith("  C from 0 to 0.")
    assert pieces[-1].startswith("  C from ") or "not separable" in pieces[-1]
    assert legend[0] == BRACKETS[0]
    assert len(legend) == (3 if any("not separable" in line for line in pieces) else 1)
    assert str(Cheapest(())) == "no rows yet"


def test_table_for_given_costs() -> None:
    pulls, uplinks = simulated(np.random.default_rng(18), 500, 3)
    moments = moments_of(
        [*pulls, pulls[0]],
        [*uplinks, uplinks[0]],
        names=("fedelim0", "periodic:10", "fedelim", "periodic:1"),
    )
    best = Cheapest((envelope(moments, CELL), envelope(moments, {**CELL, "delta": 0.01})))
    above, head, *rows = best_text(best, [0.0, 1000.0]).splitlines()
    assert above == "all rows: instance here, sigma 1"
    assert head.split()[:3] == ["delta", "C", "cheapest"]
    assert [row.split()[:3] for row in rows] == [
        ["0.1", "0", "fedelim0"],
        ["0.1", "1,000", "fedelim"],
        ["0.01", "0", "fedelim0"],
        ["0.01", "1,000", "fedelim"],
    ]
    assert "fedelim0 (= periodic:1)" in rows[0]
    margin = pulls[1] - pulls[0]
    assert f"{margin.mean():.1f} ± {stats.sem(margin):.1f}" in rows[0]
    assert rows[0].endswith("none")
    assert best_text(Cheapest(()), [1.0]) == "no rows yet"


@pytest.mark.usefixtures("terminal")
def test_long_names_in_the_table_have_keys_below_it() -> None:
    """Three columns of schedules leave too little of a list of times to be recognised."""
    pulls, uplinks = simulated(np.random.default_rng(18), 500, 3)
    long = [
        f"at:1,5,25,125,625,3125,15625,78125,390625,{last},5000000" for last in (1953125, 1953126)
    ]
    best = Cheapest(
        (
            envelope(
                moments_of(pulls, uplinks, names=("fedelim0", *long)),
                {**CELL, "instance": "x" * 60},
            ),
            envelope(moments_of(pulls, uplinks, names=("fedelim0", *long)), CELL),
        )
    )
    lines = best_text(best, [0.0, 1000.0]).splitlines()
    assert lines[-2:] == [f"at#1: {long[0]}", f"at#2: {long[1]}"]
    assert max(map(len, lines)) <= 100
    assert "at#2" in lines[3]
    assert "…" not in "".join(line.partition("0.1")[2] for line in lines[1:-2])
