"""The table that a sweep prints: short, the cheapest schedules first, with the way to the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from made_up_trials import summary_frame

from fastfed.display.sweep_text import MOST, sweep_text

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


def test_one_row_for_each_cell_and_cost_with_fedelim_beside_it() -> None:
    rows = grid(9, 5, 3)
    rows += [{**row, "schedule": "fedelim", "total_mean": 2e4} for row in rows[::27]]
    lines = shown(*rows)
    assert schedules(lines) == ["periodic:9"] * 15
    first = next(line for line in lines if "periodic:9" in line)
    assert "20,000 ± 1,260" in first
    assert first.split()[-1] == "2"  # 20,000 over 9,991
    assert sum("20,000" in line for line in lines) == 5
    assert lines[-3:] == [
        "All 140 rows: fastfed summary 'my results' --all. Every C, over right answers alone: "
        "fastfed best 'my results'",
        "Next, often far cheaper:",
        "  fastfed sweep --spec 'my results/sweep.json' --schedule "
        "fedelim,phases --radius paper,mixture-pairs",
    ]


def test_what_was_tried_is_not_the_next_step() -> None:
    rows = [{**row, "radius": "mixture-pairs"} for row in grid(2, 1, 1)]
    assert "--radius" not in shown(*rows)[-1]
    lines = shown(*rows, {**rows[0], "schedule": "phases"})
    assert lines[-1].startswith("All 3 rows")


def test_in_python_methods_show_the_rest() -> None:
    lines = sweep_text(summary_frame(*grid(9, 5, 3)), {}).splitlines()
    assert lines[-1] == "All 135 rows: summary(). Every C, over right answers alone: best()"


def test_with_many_cells_one_cost_is_shown() -> None:
    lines = shown(*grid(3, 10, 3))
    assert len(schedules(lines)) == 10
    assert "C 1" in lines[0]


def test_never_more_rows_than_fit_on_a_screen() -> None:
    lines = shown(*grid(3, 200, 3))
    assert len(schedules(lines)) == MOST
    assert len(lines) <= 24
    assert any(line.startswith(f"{MOST} of 200 rows; all of them: fastfed best") for line in lines)


def test_a_schedule_that_leaves_too_many_trials_unended_or_errs_is_not_the_cheapest() -> None:
    rows = grid(30, 1, 1)
    rows[-1] |= {"truncated": 600, "truncated_rate": 0.6, "truncated_low": 0.5, "error_rate": 0.6}
    rows[-2] |= {"total_mean": None}
    rows[-3] |= {"error_rate": 0.6, "error_low": 0.5}
    lines = shown(*rows)
    assert lines[0].startswith("note: some trials did not end, up to 600 of 1,000")
    assert schedules(lines)[0] == "periodic:27"
    text = " ".join(" ".join(lines).split())
    assert (
        "excluded from 1 of 1 cells, more trials err or do not end than delta allows: "
        "periodic:28 60 % [56.9, 63.1]; periodic:30 60 % [56.9, 63.1]"
    ) in text
    assert "Every C, over right answers alone: fastfed best 'my results'" in text


def test_where_all_schedules_err_every_cell_has_a_line_without_a_winner() -> None:
    rows = grid(9, 2, 3)
    rows += [{**row, "schedule": "fedelim"} for row in rows[::27]]
    for row in rows:
        row |= {"error_rate": 0.83, "error_low": 0.8, "error_high": 0.86}
    lines = shown(*rows)
    assert sum("no schedule" in line for line in lines) == 6
    assert not schedules([line.partition("excluded from 2 of 2 cells")[0] for line in lines[:9]])
    assert set(schedules(lines)) == {f"periodic:{period}" for period in range(1, 4)}
    assert "] and 7 more " in " ".join(" ".join(lines).split())
