"""A target for the error: trials are added until it is reached, and no longer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers import OTHER, SMALL, Call, rows, run
from scipy import stats

from fastfed.sweeps import planner
from fastfed.sweeps.grid import Grid
from fastfed.sweeps.run import iterate


def rse(frame: pl.DataFrame, costs: list[float]) -> float:
    """Return the largest relative standard error of the mean total cost.

    The maximum is over schedules and costs.
    """
    worst = 0.0
    for name in frame["schedule"].unique():
        one = frame.filter(pl.col("schedule") == name)
        for cost in costs:
            total = (one["pulls"] + cost * one["uplinks"]).to_numpy().astype(float)
            worst = max(worst, float(stats.sem(total) / total.mean()))
    return worst


@pytest.fixture
def short_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planner._FIRST_STAGE > 16
    monkeypatch.setattr(planner, "_FIRST_STAGE", 16)


@pytest.mark.usefixtures("short_stages", "small_parts")
def test_target_is_reached_with_the_same_rows_on_any_threads(tmp_path: Path) -> None:
    target, costs = 0.05, [0.0, 10.0]
    options: dict[str, Any] = {
        "target_rse": target,
        "costs": costs,
        "trials": 1000,
        "instances": [SMALL, OTHER],
        "deltas": [0.1, 0.001],
    }
    for threads in (1, 3):
        run(tmp_path / str(threads), threads=threads, **options)
    assert rows(tmp_path / "1").equals(rows(tmp_path / "3"))
    sizes = set()
    for _, cell in rows(tmp_path / "1").group_by("instance", "delta"):
        trials = cell["trial"].n_unique()
        sizes.add(trials)
        assert 16 <= trials < 1000
        assert rse(cell, costs) < target
        if trials > 16:
            assert rse(cell.filter(pl.col("trial") < trials // 2), costs) >= target
    assert sizes != {16}


@pytest.mark.usefixtures("short_stages", "small_parts")
def test_costs_of_bits_count_too(tmp_path: Path) -> None:
    """With costs of a bit that outweigh the pulls by far, another number of trials is enough."""

    def trials(folder: str, **options: Any) -> tuple[int, float]:
        run(
            tmp_path / folder,
            target_rse=0.05,
            trials=1000,
            instances=[SMALL],
            deltas=[0.1],
            costs=[0.0],
            schedules=["fedelim", "fedelim0"],
            **options,
        )
        found = rows(tmp_path / folder)
        spent = [one["pulls"] + 1e6 * one["bits"] for _, one in found.group_by("schedule")]
        return found["trial"].n_unique(), max(stats.sem(one) / one.mean() for one in spent)

    without, with_bits = trials("without"), trials("with", bit_costs=[1e6])
    assert without[1] >= 0.05 > with_bits[1]
    assert without[0] < with_bits[0] < 1000


@pytest.mark.usefixtures("short_stages")
def test_target_does_not_wait_for_a_schedule_that_seldom_ends(tmp_path: Path) -> None:
    """`at:500,900` ends about one trial in ten: the few that end have a large standard error."""
    counts = {}
    for folder, names in (("without", ["fedelim0"]), ("with", ["fedelim0", "at:500,900"])):
        run(tmp_path / folder, target_rse=0.03, trials=1000, costs=[0.0], schedules=names)
        counts[folder] = rows(tmp_path / folder)["trial"].n_unique()
    seldom = rows(tmp_path / "with").filter(pl.col("schedule") == "at:500,900")
    assert seldom["truncated"].mean() > 0.5
    assert counts["with"] == counts["without"] < 100


@pytest.mark.usefixtures("short_stages")
def test_trials_cap_the_target(out: Path, calls: list[Call]) -> None:
    summary = run(out, target_rse=1e-6, trials=50)
    assert set(summary["trials"]) == {50}
    calls.clear()
    run(out, target_rse=1e-6, trials=50)
    assert calls == []
    run(out, target_rse=1e-6, trials=60)
    assert {(first, end) for *_, first, end in calls} == {(50, 60)}


@pytest.mark.usefixtures("short_stages")
def test_target_with_rows_at_hand_needs_no_more(out: Path, calls: list[Call]) -> None:
    run(out, trials=300)
    calls.clear()
    run(out, target_rse=0.05, trials=1000)
    assert calls == []


@pytest.mark.usefixtures("short_stages", "small_parts")
def test_target_after_a_kill_gives_the_same_rows(tmp_path: Path) -> None:
    options: dict[str, Any] = {"target_rse": 0.05, "trials": 1000, "deltas": [0.1, 0.01]}
    run(tmp_path / "whole", **options)
    parts = iterate(
        Grid.of(
            {
                "instance": [SMALL],
                "delta": [0.1, 0.01],
                "cost": [0, 10],
                "trials": 1000,
                "schedule": ["fedelim", "fedelim0"],
                "target_rse": 0.05,
            }
        ),
        tmp_path / "cut",
        threads=1,
        part_size=5,
    )
    for _ in range(8):
        next(parts)
    parts.close()
    run(tmp_path / "cut", **options)
    assert rows(tmp_path / "cut").equals(rows(tmp_path / "whole"))
