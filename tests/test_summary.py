"""Summaries against NumPy and SciPy by hand."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fastfed as ff
from fastfed.errors import InputError
from fastfed.statistics.summary import (
    Sample,
    checked_costs,
    clopper_pearson,
    describe,
    ratio_of_means,
    summarise,
    summary_rows,
    to_frame,
)

QUANTITIES = ("pulls", "communication", "total")
STATISTICS = ("mean", "std", "sem", "q05", "q50", "q95")


def quantile_by_hand(values: np.ndarray, q: float) -> float:
    """Linear interpolation between order statistics, as in NumPy's and R's default."""
    ordered = sorted(float(x) for x in values)
    position = q * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def made_up(rng: np.random.Generator, trials: int) -> Sample:
    pulls = rng.integers(1_000, 100_000, trials)
    return Sample(range(trials), pulls, rng.integers(10, 500, trials), rng.random(trials) > 0.1,
                  rng.random(trials) > 0.9)


@pytest.mark.parametrize("size", [2, 3, 10, 101, 5000])
def test_describe_by_hand(size: int) -> None:
    values = np.random.default_rng(size).lognormal(10, 1, size)
    found = describe("x", values)
    mean = math.fsum(values) / size
    std = math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (size - 1))
    assert list(found) == [f"x_{name}" for name in STATISTICS]
    assert found["x_mean"] == pytest.approx(mean, rel=1e-12)
    assert found["x_std"] == pytest.approx(std, rel=1e-12)
    assert found["x_sem"] == pytest.approx(stats.sem(values), rel=1e-12)
    for name, q in (("q05", 0.05), ("q50", 0.5), ("q95", 0.95)):
        assert found[f"x_{name}"] == pytest.approx(quantile_by_hand(values, q), rel=1e-12)


def test_describe_one_trial_has_no_spread() -> None:
    found = describe("x", np.array([7.0]))
    assert (found["x_std"], found["x_sem"]) == (None, None)
    assert [found[f"x_{name}"] for name in ("mean", "q05", "q50", "q95")] == [7.0] * 4


def test_describe_equal_values() -> None:
    found = describe("x", np.full(10, 3.0))
    assert (found["x_std"], found["x_sem"]) == (0.0, 0.0)


def test_std_of_large_counts_keeps_its_digits() -> None:
    values = 1e15 + np.array([0.0, 1.0, 2.0, 3.0])
    assert describe("x", values)["x_std"] == pytest.approx(np.std(range(4), ddof=1), rel=1e-9)


@pytest.mark.parametrize(("errors", "trials"), [
    (0, 1), (1, 1), (0, 10), (10, 10), (1, 10), (5, 10), (3, 1000), (0, 10_000), (37, 10_000),
    (999_999, 1_000_000),
])
@pytest.mark.parametrize("level", [0.95, 0.99])
def test_clopper_pearson_is_scipys(errors: int, trials: int, level: float) -> None:
    interval = stats.binomtest(errors, trials).proportion_ci(level, method="exact")
    assert clopper_pearson(errors, trials, level) == pytest.approx(
        (interval.low, interval.high), rel=1e-9, abs=1e-15)


def test_clopper_pearson_by_its_definition() -> None:
    """At either end, what was seen has probability 2.5 %."""
    low, high = clopper_pearson(4, 50)
    assert stats.binom.cdf(4, 50, high) == pytest.approx(0.025, rel=1e-9)
    assert stats.binom.sf(3, 50, low) == pytest.approx(0.025, rel=1e-9)


def test_no_error_is_no_zero() -> None:
    low, high = clopper_pearson(0, 10_000)
    assert low == 0
    assert high == pytest.approx(1 - 0.025 ** (1 / 10_000), rel=1e-9)


@pytest.mark.parametrize("size", [2, 50, 4000])
def test_ratio_and_its_error_by_hand(size: int) -> None:
    rng = np.random.default_rng(size)
    y = rng.lognormal(3, 0.5, size)
    x = 0.7 * y + rng.lognormal(1, 1, size)
    ratio, sem = ratio_of_means(x, y)
    (s_xx, s_xy), (_, s_yy) = np.cov(x, y)
    by_hand = x.mean() / y.mean()
    variance = (s_xx - 2 * by_hand * s_xy + by_hand**2 * s_yy) / size / y.mean() ** 2
    assert ratio == pytest.approx(by_hand, rel=1e-12)
    assert sem == pytest.approx(math.sqrt(variance), rel=1e-7)


def test_ratio_error_against_the_jackknife() -> None:
    """Another estimate of the same quantity; they differ by O(1/n), relatively."""
    rng = np.random.default_rng(1)
    size = 2000
    y = rng.gamma(4, 100, size)
    x = y * rng.uniform(0.5, 1.5, size)
    left_out = (x.sum() - x) / (y.sum() - y)
    jackknife = math.sqrt((size - 1) / size * ((left_out - left_out.mean()) ** 2).sum())
    assert ratio_of_means(x, y)[1] == pytest.approx(jackknife, rel=0.01)


def test_pairing_lowers_the_error() -> None:
    rng = np.random.default_rng(2)
    y = rng.gamma(4, 100, 1000)
    x = 1.1 * y + rng.normal(0, 1, 1000)
    paired = ratio_of_means(x, y)[1]
    assert paired < 0.05 * ratio_of_means(rng.permutation(x), y)[1]


def test_ratio_to_itself_is_one_without_error() -> None:
    y = np.random.default_rng(3).gamma(4, 100, 1000)
    assert ratio_of_means(y, y) == (1.0, 0.0)


def test_ratio_to_nothing() -> None:
    assert all(map(math.isnan, ratio_of_means(np.ones(3), np.zeros(3))))
    ratio, sem = ratio_of_means(np.array([3.0]), np.array([2.0]))
    assert ratio == 1.5
    assert math.isnan(sem)


def test_summary_rows_one_per_cost() -> None:
    rng = np.random.default_rng(4)
    sample, yardstick = made_up(rng, 200), made_up(rng, 200)
    costs = [0.0, 2.5, 100.0]
    rows = summary_rows(sample, yardstick, costs)
    assert [row["cost"] for row in rows] == costs
    for cost, row in zip(costs, rows, strict=True):
        columns = {"pulls": sample.pulls, "communication": cost * sample.uplinks,
                   "total": sample.pulls + cost * sample.uplinks}
        for name, values in columns.items():
            expected = [values.mean(), values.std(ddof=1), stats.sem(values),
                        *np.quantile(values, [0.05, 0.5, 0.95])]
            assert [row[f"{name}_{s}"] for s in STATISTICS] == pytest.approx(expected, rel=1e-12)
        interval = stats.binomtest(sample.errors, 200).proportion_ci(method="exact")
        assert row["error_rate"] == sample.errors / 200
        assert (row["error_low"], row["error_high"]) == pytest.approx(
            (interval.low, interval.high), rel=1e-9)
        assert row["truncated"] == sample.truncated
        assert row["trials"] == 200
        below = yardstick.pulls + cost * yardstick.uplinks
        residual = columns["total"] - row["ratio_to_fedelim0"] * below
        assert row["ratio_to_fedelim0"] == pytest.approx(columns["total"].mean() / below.mean())
        assert row["ratio_sem"] == pytest.approx(stats.sem(residual) / below.mean(), rel=1e-12)


def test_only_common_trials_are_paired() -> None:
    rng = np.random.default_rng(8)
    x, y = rng.integers(100, 200, 30), rng.integers(100, 200, 30)
    none = np.zeros(20, bool)
    one = Sample(np.arange(20), x[:20], none, ~none, none)
    other = Sample(np.arange(10, 30), y[10:], none, ~none, none)
    (row,) = summary_rows(one, other, [3.0])
    ratio = x[10:20].mean() / y[10:20].mean()
    assert row["trials"] == 20
    assert row["pulls_mean"] == x[:20].mean()
    assert row["ratio_to_fedelim0"] == pytest.approx(ratio, rel=1e-12)
    assert row["ratio_sem"] == pytest.approx(
        stats.sem(x[10:20] - ratio * y[10:20]) / y[10:20].mean(), rel=1e-12)


def test_without_yardstick_no_ratio() -> None:
    (row,) = summary_rows(made_up(np.random.default_rng(5), 10), None, [1.0])
    assert (row["ratio_to_fedelim0"], row["ratio_sem"]) == (None, None)


@pytest.fixture(scope="module")
def result() -> ff.Result:
    return ff.simulate(ff.Instance.load("synthetic"), ["fedelim", "fedelim0", "periodic:100"],
                       delta=0.1, trials=300, seed=5, threads=1)


def test_summary_of_a_simulation(result: ff.Result) -> None:
    costs = [0, 10, 100]
    table = result.summary(costs)
    assert table.height == 9
    assert table["instance"].unique().to_list() == ["synthetic"]
    below = result.frame.filter(pl.col("schedule") == "fedelim0").sort("trial")
    for row in table.iter_rows(named=True):
        rows = result.frame.filter(pl.col("schedule") == row["schedule"]).sort("trial")
        total = (rows["pulls"] + row["cost"] * rows["uplinks"]).to_numpy()
        yard = (below["pulls"] + row["cost"] * below["uplinks"]).to_numpy()
        assert row["trials"] == 300
        assert row["total_mean"] == pytest.approx(total.mean(), rel=1e-12)
        assert row["total_sem"] == pytest.approx(stats.sem(total), rel=1e-9)
        ratio = total.mean() / yard.mean()
        assert row["ratio_to_fedelim0"] == pytest.approx(ratio, rel=1e-12)
        assert row["ratio_sem"] == pytest.approx(
            stats.sem(total - ratio * yard) / yard.mean(), rel=1e-9, abs=1e-15)
        assert row["error_rate"] == (~rows["correct"]).sum() / 300


def test_order_of_rows_does_not_matter(result: ff.Result) -> None:
    shuffled = result.frame.sample(fraction=1.0, shuffle=True, seed=6)
    keys = ["schedule", "cost"]
    assert summarise(shuffled, [0, 10]).sort(keys).equals(result.summary([0, 10]).sort(keys))


def test_cells_are_kept_apart(result: ff.Result) -> None:
    other = result.frame.with_columns(pl.lit(0.05).alias("delta"), pl.col("pulls") * 2)
    table = summarise(pl.concat([result.frame, other]), [0])
    means = table.filter(pl.col("schedule") == "fedelim").sort("delta")["pulls_mean"]
    assert means[0] == pytest.approx(2 * means[1])


def test_periodic_1_serves_as_yardstick(result: ff.Result) -> None:
    renamed = result.frame.with_columns(pl.col("schedule").replace("fedelim0", "periodic:1"))
    one, other = result.summary([10]), summarise(renamed, [10])
    assert one["ratio_to_fedelim0"].equals(other["ratio_to_fedelim0"])


def test_one_trial() -> None:
    one = ff.simulate(ff.Instance.load("synthetic"), ["fedelim", "fedelim0"], delta=0.1, trials=1,
                      threads=1).summary([10])
    assert one["total_std"].to_list() == [None, None]
    assert one["trials"].to_list() == [1, 1]


def test_column_types(result: ff.Result) -> None:
    types = result.summary([0]).schema
    counts = {"trials", "truncated"}
    texts = {"instance", "schedule"}
    assert all(types[name] == pl.Int64 for name in counts)
    assert all(types[name] == pl.String for name in texts)
    assert all(types[name] == pl.Float64 for name in set(types) - counts - texts)
    wanted = [f"{q}_{s}" for q in QUANTITIES for s in STATISTICS]
    assert set(wanted) <= set(types)


def test_all_null_columns_keep_their_type(result: ff.Result) -> None:
    alone = result.frame.filter(pl.col("schedule") == "fedelim")
    table = summarise(alone, [0])
    assert table["ratio_to_fedelim0"].to_list() == [None]
    assert table.schema == result.summary([0]).schema


def test_empty_summary_has_every_column(result: ff.Result) -> None:
    assert to_frame([]).height == 0
    assert to_frame([]).schema == result.summary([0]).schema


@pytest.mark.parametrize(("given", "expected"), [
    (["0", "10", 100], [0.0, 10.0, 100.0]), ([1, 1.0, "1"], [1.0]), ([1e-3], [1e-3]),
])
def test_costs(given: list[object], expected: list[float]) -> None:
    assert checked_costs(given) == expected


@pytest.mark.parametrize("given", [[], ["x"], [-1], [math.inf], [math.nan], [None], [[1]]])
def test_costs_refused(given: list[object]) -> None:
    with pytest.raises(InputError, match="cost"):
        checked_costs(given)
