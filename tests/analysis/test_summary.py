"""Summaries against NumPy and SciPy by hand, and whatever the batches."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from made_up_trials import Cells, summarise, summary_of
from scipy import stats

import fastfed as ff
from fastfed.analysis import quantiles
from fastfed.analysis.summary import (
    _threads,
    checked_costs,
    not_ended_text,
    summary,
    to_frame,
    yardstick_of,
)
from fastfed.display.tables import summary_table
from fastfed.errors import InputError
from fastfed.model.schedules import Schedule

STATISTICS = ("mean", "std", "sem", "q05", "q50", "q95")
Columns = dict[str, np.ndarray]


def summary_text(*arguments: Any, **options: Any) -> str:
    return summary_table(*arguments, **options).text()


def made_up(rng: np.random.Generator, trials: int, cut: float = 0.1) -> Columns:
    truncated = rng.random(trials) < cut
    return {
        "trial": np.arange(trials),
        "pulls": rng.integers(1_000, 100_000, trials),
        "uplinks": rng.integers(10, 500, trials),
        "truncated": truncated,
        "correct": (rng.random(trials) > 0.1) & ~truncated,
    }


def plain(pulls: np.ndarray, first: int = 0) -> Columns:
    """Trials that ended well and without an uplink."""
    none = np.zeros(len(pulls), bool)
    return {
        "trial": first + np.arange(len(pulls)),
        "pulls": pulls,
        "uplinks": none.astype(int),
        "correct": ~none,
        "truncated": none,
    }


def cut_up(
    batch: dict[str, Columns], parts: int, rng: np.random.Generator
) -> list[dict[str, Columns]]:
    """Cut the same trials into batches of any size."""
    last = max(int(columns["trial"].max()) for columns in batch.values()) + 1
    edges = [0, *sorted(rng.integers(0, last, parts - 1).tolist()), last]
    batches = []
    for low, high in pairwise(edges):
        here = {}
        for name, columns in batch.items():
            keep = (columns["trial"] >= low) & (columns["trial"] < high)
            here[name] = {key: values[keep] for key, values in columns.items()}
        batches.append(here)
    return batches


def test_rows_by_hand() -> None:
    rng = np.random.default_rng(4)
    mine, yard = made_up(rng, 200), made_up(rng, 200)
    costs = [0.0, 2.5, 100.0]
    rows = [
        row
        for row in summary_of([{"fedelim": mine, "fedelim0": yard}], ["fedelim", "fedelim0"], costs)
        if row["schedule"] == "fedelim"
    ]
    assert [row["cost"] for row in rows] == costs
    ended, both = ~mine["truncated"], ~mine["truncated"] & ~yard["truncated"]
    assert 0 < ended.sum() < 200
    for cost, row in zip(costs, rows, strict=True):
        columns = {
            "pulls": mine["pulls"],
            "communication": cost * mine["uplinks"],
            "total": mine["pulls"] + cost * mine["uplinks"],
        }
        for name, values in columns.items():
            expected = [
                values[ended].mean(),
                values[ended].std(ddof=1),
                stats.sem(values[ended]),
                *np.quantile(values, [0.05, 0.5, 0.95]),
            ]
            assert [row[f"{name}_{s}"] for s in STATISTICS] == pytest.approx(expected, rel=1e-12)
        wrong = int((~mine["correct"]).sum())
        interval = stats.binomtest(wrong, 200).proportion_ci(method="exact")
        assert row["error_rate"] == wrong / 200
        assert (row["error_low"], row["error_high"]) == pytest.approx(
            (interval.low, interval.high), rel=1e-9
        )
        cut = 200 - int(ended.sum())
        assert (row["trials"], row["ended"], row["truncated"]) == (200, 200 - cut, cut)
        interval = stats.binomtest(cut, 200).proportion_ci(method="exact")
        assert row["truncated_rate"] == cut / 200
        assert (row["truncated_low"], row["truncated_high"]) == pytest.approx(
            (interval.low, interval.high), rel=1e-9
        )
        x = columns["total"][both]
        y = (yard["pulls"] + cost * yard["uplinks"])[both]
        assert row["ratio_to_fedelim0"] == pytest.approx(x.mean() / y.mean(), rel=1e-12)
        residual = x - x.mean() / y.mean() * y
        assert row["ratio_sem"] == pytest.approx(stats.sem(residual) / y.mean(), rel=1e-9)


def test_one_endless_trial_ruins_no_mean() -> None:
    pulls = np.arange(1000, 2000)
    columns = plain(pulls)
    columns["pulls"] = np.append(pulls[:-1], 2**60)
    columns["truncated"] = np.arange(1000) == 999
    (row,) = summary_of([{"fedelim": columns}], ["fedelim"], [0.0])
    assert row["total_mean"] == pulls[:-1].mean()
    assert row["error_rate"] == 0.001  # correct or not: it has not given every answer
    assert (row["ended"], row["truncated"]) == (999, 1)
    assert row["total_q95"] == np.quantile(columns["pulls"].astype(float), 0.95)


def test_no_trial_ended() -> None:
    columns = plain(np.array([5, 7]))
    columns["truncated"] = np.ones(2, bool)
    (row,) = summary_of([{"fedelim": columns}], ["fedelim"], [1.0])
    assert (row["total_mean"], row["total_sem"], row["ended"]) == (None, None, 0)
    assert (row["total_q50"], row["truncated_rate"], row["error_rate"]) == (6.0, 1.0, 1.0)
    assert "2 of 2" in summary_text(to_frame([row]))


def test_a_warning_stands_above_the_table() -> None:
    rng = np.random.default_rng(3)
    for cut, first in ((0.1, "note: some trials did not end, up to "), (0.0, "all rows: ")):
        rows = summary_of([{"fedelim": made_up(rng, 300, cut)}], ["fedelim"], [1.0])
        frame = to_frame(rows)
        assert summary_text(frame).startswith(first)
        assert (not_ended_text(frame) == "") == (cut == 0)


def test_cells_share_memory_whatever_the_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads keep the trials of a cell each: 2,000 rows of each cell here."""
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    trials: Any = Cells([[], []], ["fedelim", "fedelim0"])
    some = [*trials.held().items()]
    for rows, threads in ((2**22, 4), (4_001, 2), (3_999, 1), (10, 1)):
        monkeypatch.setattr("fastfed.analysis.summary._MOST_ROWS", rows)
        assert _threads(trials, some) == threads


@pytest.mark.parametrize("trials", [1, 2, 3, 10, 11, 21, 1000])
def test_exact_quantiles_are_those_of_numpy(trials: int) -> None:
    """Bit for bit, costs with fractions and ties as well."""
    rng = np.random.default_rng(trials)
    for scale in (0.1, 1.0, 1e12):
        values = scale * np.stack([rng.lognormal(size=trials), rng.integers(1, 5, trials)])
        expected = np.quantile(values, quantiles.SHARES, axis=-1).T
        assert np.array_equal(quantiles.exact_quantiles(values), expected)


@pytest.mark.parametrize("exact", [quantiles.EXACT, 300])
def test_batches_do_not_matter(exact: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit, with every kind of batch, on both sides of the border of exact quantiles."""
    monkeypatch.setattr(quantiles, "EXACT", exact)
    rng = np.random.default_rng(11)
    batch = {
        name: made_up(rng, trials)
        for name, trials in (
            ("fedelim", 1000),
            ("fedelim0", 1000),
            ("periodic:10", 700),
            ("at:1,9", 1000),
        )
    }
    whole = summary_of([batch], list(batch), [0.0, 0.1, 1e4])
    for parts in (2, 3, 17, 400):
        assert summary_of(cut_up(batch, parts, rng), list(batch), [0.0, 0.1, 1e4]) == whole
    assert {row["quantile_error"] for row in whole} == {
        0.0 if exact > 1000 else quantiles.SKETCH_ERROR
    }


@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_cells_that_are_added_up_together_are_as_if_alone(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit: whole cells, some of another size, and some that did not end or lack a trial."""
    monkeypatch.setattr("fastfed.analysis.summary._AT_ONCE", at_once)
    rng = np.random.default_rng(21)
    names, costs = ["fedelim", "fedelim0", "at:1,9"], [0.0, 0.3, 1e4]
    cells = []
    for trials, cut in [(10, 0.0)] * 5 + [(10, 0.5)] * 2 + [(3000, 0.0), (7, 0.0), (7, 0.0)]:
        batch = {name: made_up(rng, trials, cut) for name in rng.permutation(names)}
        if rng.random() < 0.2:
            del batch["at:1,9"]
        cells.append([batch])
    trials: Any = Cells(cells, names)
    together = summary(trials, costs).to_dicts()
    alone = [row for one in cells for row in summary_of(one, names, costs)]
    assert len(together) == len(alone) > 70
    for one, other in zip(together, alone, strict=True):
        assert one | {"delta": 0.1} == other | {"delta": 0.1}
    assert len({row["delta"] for row in together}) == len(cells)


def test_the_sketch_is_as_good_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(12)
    columns = plain(rng.lognormal(10, 2, 5001).astype(np.int64))
    columns["uplinks"] = rng.integers(0, 3, 5001)
    (exact,) = summary_of([{"fedelim": columns}], ["fedelim"], [0.3])
    monkeypatch.setattr(quantiles, "EXACT", 100)
    (sketch,) = summary_of([{"fedelim": columns}], ["fedelim"], [0.3])
    for name, values in (
        ("pulls", columns["pulls"]),
        ("communication", 0.3 * columns["uplinks"]),
        ("total", columns["pulls"] + 0.3 * columns["uplinks"]),
    ):
        for key, share in (("q05", 0.05), ("q50", 0.5), ("q95", 0.95)):
            # the order statistic of that rank
            rank = np.sort(values)[round(share * 5000)]
            assert sketch[f"{name}_{key}"] == pytest.approx(
                rank, rel=quantiles.SKETCH_ERROR * (1 + 1e-9)
            )
    same = [key for key in exact if "_q" not in key and key != "quantile_error"]
    assert [exact[key] for key in same] == [sketch[key] for key in same]


def test_large_counts_keep_every_digit() -> None:
    (row,) = summary_of([{"fedelim": plain(2**50 + np.arange(4))}], ["fedelim"], [0.0])
    assert row["pulls_std"] == np.std(range(4), ddof=1)
    assert row["pulls_mean"] == 2.0**50 + 1.5


def test_only_common_trials_are_paired() -> None:
    rng = np.random.default_rng(8)
    x, y = rng.integers(100, 200, 30), rng.integers(100, 200, 30)
    row = summary_of(
        [{"fedelim": plain(x[:20]), "fedelim0": plain(y[10:], 10)}], ["fedelim", "fedelim0"], [3.0]
    )[0]
    ratio = x[10:20].mean() / y[10:20].mean()
    assert row["trials"] == 20
    assert row["pulls_mean"] == x[:20].mean()
    assert row["ratio_to_fedelim0"] == pytest.approx(ratio, rel=1e-12)
    assert row["ratio_sem"] == pytest.approx(
        stats.sem(x[10:20] - ratio * y[10:20]) / y[10:20].mean(), rel=1e-12
    )


def test_without_yardstick_no_ratio() -> None:
    (row,) = summary_of([{"fedelim": made_up(np.random.default_rng(5), 10)}], ["fedelim"], [1.0])
    frame = to_frame([row])
    assert (frame["ratio_to_fedelim0"][0], frame["ratio_sem"][0]) == (None, None)


def yardstick(*names: str) -> str | None:
    return yardstick_of(map(Schedule.parse, names))


def test_the_yardstick_talks_at_every_step() -> None:
    """FedElim0 under either of its names, the first of them first, and nobody else."""
    assert yardstick("periodic:1", "fedelim", "fedelim0") == "fedelim0"
    assert yardstick("fedelim", "periodic:10", "periodic:1") == "periodic:1"
    assert yardstick("fedelim", "periodic:10", "at:1") is None


@pytest.fixture(scope="module")
def result() -> ff.Result:
    names = ["fedelim", "fedelim0", "periodic:100"]
    return ff.simulate("synthetic", names, delta=0.1, trials=300, seed=5, threads=1)


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
    """The ratios are those to FedElim0, which are not all 1, and none is missing."""
    renamed = result.frame.with_columns(pl.col("schedule").replace("fedelim0", "periodic:1"))
    one, other = result.summary([10]), summarise(renamed, [10])
    assert other["ratio_to_fedelim0"].null_count() == 0
    assert (other.filter(schedule="fedelim")["ratio_to_fedelim0"] < 0.9).all()
    for column in ("ratio_to_fedelim0", "ratio_sem"):
        assert one[column].equals(other[column])


def test_one_trial() -> None:
    one = ff.simulate("synthetic", ["fedelim", "fedelim0"], delta=0.1, trials=1).summary([10])
    assert one["total_std"].to_list() == [None, None]
    assert one["trials"].to_list() == [1, 1]


def test_types_of_columns_do_not_depend_on_rows(result: ff.Result) -> None:
    alone = summarise(result.frame.filter(pl.col("schedule") == "fedelim"), [0])
    assert alone["ratio_to_fedelim0"].to_list() == [None]
    assert alone.schema == to_frame([]).schema == result.summary([0]).schema


@pytest.mark.parametrize(
    ("given", "expected"),
    [(["0", "10", 100], [0.0, 10.0, 100.0]), ([1, 1.0, "1"], [1.0]), ([1e-3], [1e-3])],
)
def test_costs(given: list[object], expected: list[float]) -> None:
    assert checked_costs(given) == expected


@pytest.mark.parametrize("given", [[], ["x"], [-1], [math.inf], [math.nan], [None], [[1]]])
def test_costs_refused(given: list[object]) -> None:
    with pytest.raises(InputError, match="cost"):
        checked_costs(given)
