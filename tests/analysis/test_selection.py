"""Filters: a filtered result or sweep answers as one that has run nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers import BOUNDS, OTHER, SMALL, refused

import fastfed as ff
from fastfed.api.answers import Answers

GRID: dict[str, Any] = {
    "instances": [SMALL, OTHER],
    "deltas": [0.1, 0.05],
    "schedules": ["fedelim", "fedelim0", "periodic:10"],
    "radii": ["paper", "mixture"],
    "trials": 60,
    "threads": 1,
    "progress": False,
}
ORDER = ["instance", "delta", "radius", "schedule", "trial"]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> ff.Sweep:
    return ff.sweep(**GRID, out=tmp_path_factory.mktemp("selection") / "all")


@pytest.fixture(scope="module")
def result() -> ff.Result:
    return ff.simulate(
        SMALL, GRID["schedules"], delta=GRID["deltas"], trials=60, threads=1, keep_pulls=True
    )


@pytest.mark.parametrize(
    ("which", "alone"),
    [
        ({"delta": 0.05}, {"deltas": [0.05]}),
        ({"schedule": ["fedelim", "periodic:10"]}, {"schedules": ["fedelim", "periodic:10"]}),
        (
            {"instance": "other", "radius": "mixture", "schedule": "fedelim0"},
            {"instances": [OTHER], "radii": ["mixture"], "schedules": ["fedelim0"]},
        ),
    ],
)
def test_a_filtered_sweep_answers_as_one_that_ran_nothing_else(
    swept: ff.Sweep, which: dict[str, Any], alone: dict[str, Any], tmp_path: Path
) -> None:
    some, only = swept.filter(**which), ff.sweep(**{**GRID, **alone}, out=tmp_path / "alone")
    bounds = ["skip_error", "draw_error"]  # may depend on the schedules that run together
    assert some.frame.drop(bounds).sort(ORDER).equals(only.frame.drop(bounds).sort(ORDER))
    assert some.summary([0, 10]).equals(only.summary([0, 10]))
    assert some.best(costs=[5]).equals(only.best(costs=[5]))
    assert some.check().frame.equals(only.check().frame)
    assert str(some) == str(only)
    assert some.report(tmp_path / "report.html").stat().st_size > 0


def test_a_filtered_result_is_a_result(result: ff.Result) -> None:
    some = result.filter(delta=0.05, schedule=["periodic:10", "fedelim"])
    assert isinstance(some, ff.Result)
    rows = result.frame.filter(
        pl.col("delta") == 0.05, pl.col("schedule").is_in(["fedelim", "periodic:10"])
    )
    assert some.frame.equals(rows)
    assert some.pulls.shape == (2, 60, 2, 2)
    assert (some.pulls == result.pulls[1][[0, 2]]).all()
    told, expected = some.replay(3, "fedelim").row, rows.row(3, named=True)
    assert {name: told[name] for name in told if name not in BOUNDS} == {
        name: expected[name] for name in expected if name not in BOUNDS
    }
    assert result.filter() == result


def test_filters_of_filters(swept: ff.Sweep, result: ff.Result) -> None:
    every: list[Answers] = [swept, result]
    for one in every:
        twice = one.filter(schedule=["fedelim", "fedelim0"]).filter(delta=0.1)
        both = one.filter(schedule=["fedelim", "fedelim0"], delta=0.1)
        assert twice.frame.equals(both.frame)
        refused(lambda twice=twice: twice.filter(delta=0.05), "delta 0.05", "delta 0.1")  # type: ignore[misc]


def test_values_that_no_row_has(swept: ff.Sweep, tmp_path: Path) -> None:
    refused(lambda: swept.filter(delta=0.2), "delta 0.2", "0.1, 0.05")
    refused(lambda: swept.filter(schedule="fedelm"), "fedelm", "fedelim")
    refused(lambda: swept.filter(schedule="periodic:11"), "periodic:11", "did you mean")
    refused(lambda: swept.filter(instance=["small", "smal"]), "smal", "did you mean 'small'")
    refused(lambda: swept.filter(radius=[]), "no radius is chosen")
    many = ff.simulate(SMALL, [f"periodic:{h}" for h in range(1, 31)], delta=0.1, trials=2)
    refused(lambda: many.filter(schedule="fedelim"), "periodic:12 and 18 more")
    with pytest.raises(TypeError, match="radus"):
        swept.filter(radus="paper")  # type: ignore[call-arg]
    refused(lambda: swept.filter(delta=0.1).save(tmp_path / "copy"), "filtered", "save the whole")


def test_cells_of_different_grids(tmp_path: Path) -> None:
    """Values that stand only in different cells select nothing, and that is said."""
    for delta, radius in ((0.1, "paper"), (0.05, "mixture")):
        options = {**GRID, "instances": [SMALL], "deltas": [delta], "radii": [radius]}
        swept = ff.sweep(**options, out=tmp_path / "two")
    assert swept.filter(delta=[0.1, 0.05], radius="paper").frame["delta"].unique().to_list() == [
        0.1
    ]
    refused(lambda: swept.filter(delta=0.05, radius="paper"), "no rows have all of", "delta 0.05")
