"""HTML of objects in notebooks: well-formed, escaped, with the objects' own numbers."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from made_up_trials import CELL, moments_of, simulated, summary_frame

import fastfed as ff
from fastfed.analysis.cheapest import Cheapest, envelope
from fastfed.display.notebook import (
    best_html,
    bounds_html,
    check_html,
    instance_html,
    replay_html,
    summary_html,
)
from fastfed.model.choices import DEFAULTS

EVIL = "<script>alert('x')</script> & \"q\" \x1b[31m"
NAMED = ff.Instance(
    [[0.9, 0.2], [0.1, 0.8]], arms=[EVIL, "b"], clients=[EVIL, "north"], name=EVIL, description=EVIL
)


def rows_of(text: str) -> list[list[str]]:
    """Return the rows of a table; the text must be well-formed and hold no other element."""
    tree = ElementTree.fromstring(text)
    assert {node.tag for node in tree.iter()} <= {
        "div",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "small",
        "pre",
    }
    assert "\x1b" not in text
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


def words_of(text: str) -> str:
    return "\n".join("".join(node.itertext()) for node in ElementTree.fromstring(text))


def test_instance_marks_the_best_arms() -> None:
    text = instance_html(NAMED)
    head, first, second = rows_of(text)
    assert len(head) == 4
    assert first[1:] == ["0.9 ★", "0.2", "0.55 ★"]
    assert second[1:] == ["0.1", "0.8 ★", "0.45"]
    assert "rewards: Gaussian(" in words_of(text)
    assert "<script>alert('x')</script>" in words_of(text)
    assert "<script" not in text


def test_a_large_instance_is_shown_in_part() -> None:
    big = ff.Instance(np.random.default_rng(0).random((500, 60)))
    text = instance_html(big)
    rows = rows_of(text)
    assert len(rows) == 31
    assert "48 more" in rows[0][-2]
    assert f"the best one overall is arm {big.global_best}" in words_of(text)
    assert len(text) < 60_000


def test_summary() -> None:
    text = summary_html(
        summary_frame({"instance": EVIL}, {"instance": "b", "truncated": 3}),
        {EVIL: NAMED, "b": NAMED},
        title="12 trials of <b>",
    )
    head, one, two = rows_of(text)
    assert head[0] == "instance"
    assert "473,427 ± 1,260" in one
    assert "473,427 ± 1,260*" in two
    assert "note: some trials did not end" in words_of(text)
    assert "12 trials of <b>" in words_of(text)
    assert "no rows yet" in summary_html(summary_frame({}).head(0))


def test_a_long_summary_says_what_is_left_out() -> None:
    frame = pl.concat([summary_frame({"delta": float(i)}) for i in range(1, 251)])
    rows = rows_of(summary_html(frame))
    assert len(rows) == 1 + 100 + 1
    assert "150 more rows" in rows[-1][0]


@pytest.mark.parametrize(
    ("delta", "cost", "count"), [(0.1, 10.0, 3), ([[0.1], [0.01]], [1.0, 1000.0], 12)]
)
def test_bounds(delta: Any, cost: Any, count: int) -> None:
    found = ff.bounds(NAMED, np.array(delta) if isinstance(delta, list) else delta, cost)
    text = bounds_html(found)
    head, *rows = rows_of(text)
    rows, optimum = rows[:count], rows[count:]
    assert head[:3] == ["delta", "C", "scheme"]
    assert {row[0] for row in rows} <= {"0.1", "0.01"}
    # the allocation as a heat map: a row for each arm, the largest cell darkest
    assert optimum[0][0] == "arm"
    assert [row[-1] for row in optimum[1:]] == ["400", "400"]
    assert text.count("rgba(76,120,168,0.80)") == 4


def test_bounds_without_an_optimum_say_why() -> None:
    found = ff.bounds(NAMED, goal="eps:0.1")
    assert "several answers can be right" in words_of(bounds_html(found))


def test_replay_is_no_dump_of_events() -> None:
    told = ff.replay(NAMED, delta=0.1)
    text = replay_html(told)
    _, *rows = rows_of(text)
    assert len(rows) == len(told.events)
    assert [row[7] for row in rows] == [f"{event.pulls:,}" for event in told.events]
    assert "Event(" not in text
    assert f"{told.row['pulls']:,} pulls" in words_of(text)


def test_check_shows_violations_first_and_says_of_what_intervals_are() -> None:
    line = {
        "instance": EVIL,
        "delta": 0.1,
        "sigma": 1.0,
        **DEFAULTS,
        "schedule": "fedelim",
        "claim": "pulls",
        "cost": None,
        "mean": 5.0,
        "bound": 7.0,
        "outside": 0.5,
        "low": 0.1,
        "high": 0.7,
        "verdict": "holds",
        "reason": "",
    }
    other = {**line, "verdict": "violated", "outside": None, "cost": 1000.0}
    found: Any = SimpleNamespace(
        frame=pl.DataFrame([line, other]), counts=lambda: {"holds": 1, "violated": 1}
    )
    _, first, second = rows_of(check_html(found))
    assert first[-2:] == ["violated", ""]
    assert first[5] == "1,000"
    assert first[8] == "mean: 0.1 to 0.7"
    assert second[8] == "share outside: 0.1 to 0.7"
    found.frame = pl.DataFrame([line, {**line, "radius": "mixture"}])
    assert {row[1] for row in rows_of(check_html(found))[1:]} == {"paper", "mixture"}


def test_best() -> None:
    pulls, uplinks = simulated(np.random.default_rng(1), 200, 3)
    found = Cheapest((envelope(moments_of(pulls, uplinks), {**CELL, "instance": EVIL}),))
    assert "<script>alert('x')</script>" in words_of(best_html(found))
    assert "no rows yet" in best_html(Cheapest(()))
