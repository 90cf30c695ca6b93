"""Prices by the names of counts: against the rows themselves, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from helpers import refused

import fastfed as ff
from fastfed.model.counts import COUNTS

INSTANCE = ff.Instance([[0.9, 0.2], [0.1, 0.8]])
SCHEDULES = ["fedelim", "fedelim0", "adaptive"]


@pytest.fixture(scope="module")
def result() -> ff.Result:
    return ff.simulate(INSTANCE, SCHEDULES, delta=0.1, trials=80, seed=4)


@pytest.mark.parametrize(
    "prices",
    [
        {},
        {"rounds": 50, "downlinks": 1},
        {"pulls": 0, "busiest": 1, "rounds": 20},
        {"bits": 0.25, "steps": 2},
    ],
)
def test_totals_are_those_of_the_rows(result: ff.Result, prices: dict[str, float]) -> None:
    paid = {"pulls": 1.0, **prices}
    rows = result.frame.with_columns(
        total=sum(pl.col(name) * price for name, price in paid.items()) + 10 * pl.col("uplinks")
    )
    wanted = rows.group_by("schedule", maintain_order=True).agg(
        mean=pl.col("total").mean(), std=pl.col("total").std(), q=pl.col("total").median()
    )
    found = result.summary(costs=[10], prices=prices)
    assert found["schedule"].to_list() == wanted["schedule"].to_list()
    for column, name in (("total_mean", "mean"), ("total_std", "std"), ("total_q50", "q")):
        np.testing.assert_allclose(found[column], wanted[name], rtol=1e-12)
    best = result.best(costs=[10], prices=prices)
    means = dict(wanted.select("schedule", "mean").iter_rows())
    assert best["winner"].to_list() == [min(means, key=means.__getitem__)]
    ratios = result.compare(by="schedule", cost=10, prices=prices).frame.filter(measure="total")
    for row in ratios.iter_rows(named=True):
        assert row["ratio"] == pytest.approx(means[row["schedule"]] / means[row["reference"]])


def test_every_count_has_a_mean(result: ff.Result) -> None:
    rows = result.frame.filter(schedule="fedelim")
    found = result.summary(costs=[0]).row(0, named=True)
    for name in COUNTS:
        assert found[f"{name}_mean"] == pytest.approx(rows[name].mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        ({"round": 1}, "did you mean 'rounds'?"),
        ({"rounds": -1}, "price of rounds = -1"),
        ({"rounds": float("nan")}, "price of rounds = nan"),
        ({"rounds": "many"}, "must be a number"),
        ({"uplinks": 3}, "give it once"),
        ([("rounds", 1)], "must map columns to numbers"),
    ],
)
def test_odd_prices_are_refused(result: ff.Result, prices: Any, words: str) -> None:
    refused(lambda: result.summary(costs=[1], prices=prices), words)
    refused(lambda: result.best(costs=[1], prices=prices), words)


def test_one_winner_over_other_choices(tmp_path: Path) -> None:
    """Against brute force: the least mean over all schedules and radii."""
    sweep = ff.sweep(
        instances=[INSTANCE],
        deltas=[0.1, 0.01],
        schedules=["fedelim", "fedelim0"],
        radii=["paper", "mixture"],
        trials=60,
        out=tmp_path,
        progress=False,
    )
    found = sweep.best(costs=[5], over=["radius"])
    assert found["delta"].to_list() == [0.1, 0.01]
    rows = sweep.frame.with_columns(total=pl.col("pulls") + 5 * pl.col("uplinks"))
    for row in found.iter_rows(named=True):
        part = rows.filter(delta=row["delta"])
        good = part.group_by("trial").agg(pl.col("correct").all()).filter("correct")
        means = (
            part.join(good.select("trial"), on="trial")
            .group_by("schedule", "radius")
            .agg(pl.col("total").mean())
            .sort("total")
        )
        least, second = means.rows()[:2]
        assert (row["winner"], row["radius"]) == least[:2]
        assert row["total_mean"] == pytest.approx(least[2], rel=1e-12)
        assert row["margin"] == pytest.approx(second[2] - least[2], rel=1e-9)
        assert row["runner_up"] == ", ".join(second[:2])
    assert "mixture" in str(sweep.best(over="radius"))
    for choice, words in (("delta", "another delta"), ("radiu", "did you mean 'radius'?")):
        refused(lambda over=choice: sweep.best(over=[over]), words)
