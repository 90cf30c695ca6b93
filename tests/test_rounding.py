"""Rounding of sums: large means that all arms share do not matter, and where rounding does matter
the rows say so."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import fastfed as ff

# multiples of 2^-8, so that 1e9 can be added to them exactly
MEANS = np.array([[128, 0], [102, 77], [0, 26]]) / 256
NOISE = np.array([[1.0, 0.5], [0.75, 1.0], [1.25, 0.5]])
SCHEDULES = ["fedelim", "fedelim0", "periodic:7"]


def rows(means: np.ndarray, noise: object = 1.0, **options: object) -> pl.DataFrame:
    instance = ff.Instance(means, ff.Gaussian(noise), name="shifted")
    return ff.simulate(instance, SCHEDULES, **{"trials": 1500, "delta": 0.05, "seed": 1, "sigma": 1,
                                               **options}).frame


@pytest.mark.parametrize("noise", [1.0, NOISE], ids=["one noise", "a noise for each cell"])
@pytest.mark.parametrize("shift", [1e3, -1e6, 1e9])
def test_what_all_means_share_does_not_matter(noise: object, shift: float) -> None:
    """With sums of the rewards as they are, 24 of 4,000 rows changed for 1e9."""
    assert rows(MEANS + shift, noise).equals(rows(MEANS, noise))


@pytest.mark.long
@pytest.mark.parametrize("goal", ["top:2", "eps:0.25", "threshold"])
def test_nor_for_other_goals(goal: str) -> None:
    shift = 2.0**30
    near, far = ((f"threshold:{tau}" if goal == "threshold" else goal)
                 for tau in (0.1875, shift + 0.1875))
    found = [rows(MEANS + by, goal=name, trials=300).drop("goal", "global_answer")
             for by, name in ((0.0, near), (shift, far))]
    assert found[0].equals(found[1])


def test_rows_tell_where_rounding_matters() -> None:
    """Clients whose means lie far apart leave sums large, and some decisions change. The share of
    rows that do is below the mean of `draw_error`, which says it."""
    apart, together = rows(MEANS + np.array([[1e9, -1e9]])), rows(MEANS)
    changed = (apart["pulls"] != together["pulls"]).mean()
    assert 0 < changed < apart["draw_error"].mean()
    assert apart["draw_error"].max() <= 1
    assert together["draw_error"].mean() < 1e-6


def test_the_bound_is_small_for_usual_means() -> None:
    found = ff.simulate("synthetic", ["fedelim", "fedelim0"], delta=0.01, trials=50).frame
    assert found["draw_error"].min() > 0
    assert found["draw_error"].mean() < 1e-6
