"""The table that a sweep prints: short, the cheapest schedules first, with the way to the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from made_up_trials import summary_frame

from fastfed.display.sweep_text import MOST, sweep_text
from fastfed.display.tables import summary_text

HERE = Path("my results")


def shown(*rows: dict[str, Any]) -> list[str]:
    return sweep_text(summary_frame(*rows), {}, HERE).splitlines()


def schedules(lines: list[str]) -> list[str]:
    """Return the first word of each row that is a schedule."""
    return [word for line in lines for word in line.split() if word.startswith("periodic:")]


def grid(periods: int, deltas: int, costs: int) -> list[dict[str, Any]]:
    """Make rows in the order of a summary; the longer the period, the cheaper."""
    return [
        {
            "delta": 0.1 / (1 + delta),
            "schedule": f"periodic:{period}",
            "cost": float(cost),
            "total_mean": 1e4 - period,
            "truncated_low": 0.0,
        }
        for delta in range(deltas)
        for period in range(1, periods + 1)
        for cost in range(costs)
    ]


def test_few_rows_are_all_shown() -> None:
    frame = summary_frame(*grid(MOST // 4, 2, 2))
    assert len(frame) == MOST
    assert sweep_text(frame, {}, HERE) == summary_text(frame, {})


def test_of_many_rows_the_cheapest_of_each_cell_and_cost() -> None:
    lines = shown(*grid(9, 5, 3))
    assert schedules(lines) == ["periodic:9"] * 15
    assert lines[-3:] == [
        "Shown: the schedule with the lowest mean total cost of each cell and C.",
        "All 135 rows: fastfed summary 'my results'",
        "Significant differences: fastfed best 'my results'",
    ]


def test_in_python_methods_show_the_rest() -> None:
    lines = sweep_text(summary_frame(*grid(9, 5, 3)), {}).splitlines()
    assert lines[-2:] == [
        "All 135 rows: sweep.summary()",
        "Significant differences: sweep.best()",
    ]


def test_several_of_each_where_there_is_room_the_cheapest_first() -> None:
    lines = shown(*grid(61, 1, 3))
    assert schedules(lines) == [f"periodic:{61 - place}" for place in range(8)] * 3
    assert lines[-3].startswith("Shown: the 8 schedules with")


def test_never_more_rows_than_fit_on_a_screen() -> None:
    lines = shown(*grid(3, 20, 3))
    assert len(schedules(lines)) == MOST
    assert lines[-3].startswith(f"Shown: the first {MOST} of 60 rows with the schedule with the")


def test_a_schedule_that_leaves_too_many_trials_unended_is_not_the_cheapest() -> None:
    rows = grid(30, 1, 1)
    rows[-1] |= {"truncated": 60, "truncated_rate": 0.6, "truncated_low": 0.5}
    rows[-2] |= {"total_mean": None}
    lines = shown(*rows)
    assert lines[0].startswith("note: some trials did not end, up to 60 of 1,000")
    assert schedules(lines)[0] == "periodic:28"
