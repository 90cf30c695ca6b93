"""HTML of objects in notebooks: well-formed, escaped, with the objects' own numbers."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from made_up_trials import CELL, envelope_of, simulated, summary_frame

import fastfed as ff
from fastfed.analysis.cheapest import Cheapest
from fastfed.display.table import MOST
from fastfed.display.tables import check_table, summary_table
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
    text = NAMED._repr_html_()
    head, first, second = rows_of(text)
    assert len(head) == 4
    assert first[1:] == ["0.9 ★", "0.2", "0.55 ★"]
    assert second[1:] == ["0.1", "0.8 ★", "0.45"]
    assert "rewards: Gaussian(" in words_of(text)
    assert "<script>alert('x')</script>" in words_of(text)
    assert "<script" not in text


def test_a_large_instance_is_shown_in_part() -> None:
    big = ff.Instance(np.random.default_rng(0).random((500, 60)))
    text = big._repr_html_()
    rows = rows_of(text)
    assert len(rows) == 21
    assert len(rows[0]) == 10
    assert "52 more clients" in words_of(text)
    assert f"the best one overall is arm {big.global_best}" in words_of(text)
    assert len(text) < 60_000


def test_summary() -> None:
    frame = summary_frame({"instance": EVIL}, {"instance": "b", "truncated": 3})
    text = summary_table(frame, {EVIL: NAMED, "b": NAMED}).html()
    head, one, two = rows_of(text)
    assert head[0] == "instance"
    assert "473,427 ± 1,260" in one
    assert "473,427 ± 1,260*" in two
    assert "note: some trials did not end" in words_of(text)
    assert "no rows yet" in summary_table(frame.head(0)).html()


def test_a_result_says_what_it_is_above_its_table() -> None:
    text = ff.simulate(NAMED, delta=0.1, trials=3)._repr_html_()
    assert "3 trials x 1 schedules" in words_of(text)


def test_a_long_summary_says_what_is_left_out() -> None:
    frame = pl.concat([summary_frame({"delta": float(i)}) for i in range(1, 251)])
    text = summary_table(frame, rest="summary()").html()
    assert len(rows_of(text)) == 1 + MOST
    assert f"{MOST} of 250 rows; all of them: summary()" in words_of(text)


@pytest.mark.parametrize(
    ("delta", "cost", "heads"),
    [
        (0.1, 10.0, ["delta", "least pulls", "T"]),
        ([[0.1], [0.01]], [1.0, 1000.0], ["delta", "C", "scheme"]),
    ],
)
def test_bounds(delta: Any, cost: Any, heads: list[str]) -> None:
    found = ff.bounds(NAMED, np.array(delta) if isinstance(delta, list) else delta, cost)
    head, *rows = rows_of(found._repr_html_())
    assert head[:3] == heads
    assert {row[0] for row in rows} <= {"0.1", "0.01"}
    assert len(rows) == (1 if isinstance(delta, float) else 12)


def test_bounds_without_an_optimum_say_why() -> None:
    found = ff.bounds(NAMED, goal="eps:0.1")
    assert "several answers can be right" in words_of(found._repr_html_())


def test_replay_is_no_dump_of_events() -> None:
    told = ff.replay(NAMED, delta=0.1)
    text = told._repr_html_()
    _, *rows = rows_of(text)
    assert len(rows) == len(told.events)
    assert [row[7] for row in rows] == [f"{event.pulls:,}" for event in told.events]
    assert "Event(" not in text
    assert f"{told.row['pulls']:,} pulls" in words_of(text)


def test_a_long_replay_fits_on_a_screen() -> None:
    told = ff.replay(ff.Instance(np.eye(12)[:, :6] + np.linspace(0, 0.4, 12)[:, None]), delta=0.1)
    assert len(told.events) > 60
    assert len(str(told).splitlines()) <= 28
    assert f"of {len(told.events)} rows; all of them: .frame" in words_of(told._repr_html_())


def test_check_counts_verdicts_by_claim_and_names_what_is_violated() -> None:
    line = {
        "instance": EVIL,
        "delta": 0.1,
        "sigma": 1.0,
        **DEFAULTS,
        "schedule": "fedelim",
        "trials": 10,
        "ended": 10,
        "claim": "pulls <= T",
        "cost": None,
        "mean": 5.0,
        "bound": 10.0,
        "tightness": 0.5,
        "verdict": "holds",
        "applies": True,
        "reason": "",
    }
    worse = {**line, "schedule": "fedelim0", "mean": 9.0, "tightness": 0.9}
    broken = {**worse, "claim": "total <= T", "verdict": "violated", "reason": "too dear"}
    found: Any = SimpleNamespace(
        frame=pl.DataFrame([line, worse, {**broken, "cost": 7.0}]),
        counts=lambda: {"holds": 2, "violated": 1},
    )
    text = check_table(found, rest=".frame").html()
    assert rows_of(text) == [
        ["claim", "holds", "violated", "mean", "bound", "/bound", "nearest to it at"],
        ["pulls <= T", "2", "", "9", "10", "0.9", "fedelim0"],
        ["total <= T", "", "1", "9", "10", "0.9", "fedelim0, C 7"],
    ]
    assert "violated: total <= T, fedelim0, C 7; too dear" in words_of(text)
    other = {**broken, "instance": "y" * 80, "verdict": "not enough trials"}
    found.frame = pl.DataFrame([line, {**worse, "verdict": "not refuted"}, {**other, "cost": 7.0}])
    found.counts = lambda: dict.fromkeys(("holds", "not refuted", "not enough trials"), 1)
    head = check_table(found).text().splitlines()[1]
    assert head.split("  ")[-1].endswith("/bound nearest to it at")  # no room for mean and bound
    assert not {"mean", "bound"} & set(head.split())
    assert "3 lines, one for each claim" in words_of(text)


def test_best() -> None:
    pulls, uplinks = simulated(np.random.default_rng(1), 200, 3)
    found = Cheapest((envelope_of(pulls, uplinks, cell={**CELL, "instance": EVIL}),))
    assert "<script>alert('x')</script>" in words_of(found._repr_html_())
    assert "no rows yet" in Cheapest(())._repr_html_()
