"""Files of a sweep: its folder, its summary, and its Parquet files in other readers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from helpers import KEYS, SMALL, Call, assert_whole, rows, run
from scipy import stats

import fastfed as ff
from fastfed.model.cell import Cell
from fastfed.model.choices import DEFAULTS
from fastfed.model.spec import spec_hash
from fastfed.storage.folder import Store
from fastfed.storage.summary_cache import stored_summary

# The folder


def test_folder_holds_what_is_promised(out: Path) -> None:
    run(out)
    assert {path.name for path in out.iterdir()} - {".lock"} == {
        "sweep.json",
        "summary.parquet",
        "trials",
    }
    assert {path.suffix for path in (out / "trials").iterdir()} == {".parquet"}
    record = json.loads((out / "sweep.json").read_text())
    assert record["seed"] == 0
    assert record["spec"]["trials"] == 20
    assert record["spec_hash"] == spec_hash(record["spec"])
    assert record["versions"]["fastfed"] == ff.__version__
    assert record["cells"]["count"] == 1
    cell = record["cells"]["columns"]
    (part,) = (out / "trials").iterdir()
    assert part.name.startswith(f"{Store(out).record().cells[0].id}-")
    assert (cell["instance"], cell["digest"], cell["delta"]) == ("small", SMALL.digest, 0.1)
    assert "radius" not in cell  # it is the default


def test_cell_of_a_row_tells_all_that_it_depends_on(out: Path) -> None:
    run(out, seed=4, max_steps=99, sigma=2.0)
    (cell,) = Store(out).held()
    assert cell == Cell("small", SMALL.digest, 0.1, 2.0, 4, cell.engine, 99)


# The summary


def test_sweep_returns_its_summary(out: Path) -> None:
    summary = run(out, costs=[3, 0])
    assert summary.equals(pl.read_parquet(out / "summary.parquet"))
    assert summary.equals(stored_summary(out))
    assert sorted(set(summary["cost"])) == [0.0, 3.0]


def test_costs_never_cost_a_simulation(out: Path, calls: list[Call]) -> None:
    run(out)
    calls.clear()
    new = run(out, costs=[1, 2, 3])
    assert calls == []
    assert sorted(set(new["cost"])) == [1.0, 2.0, 3.0]
    frame = rows(out).filter(pl.col("schedule") == "fedelim")
    found = new.filter(pl.col("schedule") == "fedelim", pl.col("cost") == 3)["total_mean"].item()
    assert found == pytest.approx((frame["pulls"] + 3 * frame["uplinks"]).mean())
    stored = stored_summary(out)  # of all costs that were ever asked for
    assert sorted(set(stored["cost"])) == [0.0, 1.0, 2.0, 3.0, 10.0]
    assert stored.filter(pl.col("cost").is_in([1.0, 2.0, 3.0])).equals(new)


def test_costs_of_bits_are_kept(out: Path, calls: list[Call]) -> None:
    """In the spec and the summary; figures and checks go on with the costs of an uplink."""
    run(out, bit_costs=[0.5])
    record = json.loads((out / "sweep.json").read_text())
    assert record["spec"]["bit_cost"] == [0.5]
    stored = pl.read_parquet(out / "summary.parquet")
    opened = ff.open_sweep(out)
    assert opened.summary().equals(stored)
    assert set(stored["bit_cost"]) == {None, 0.5}
    frame = rows(out).filter(schedule="fedelim")
    assert stored.filter(schedule="fedelim", bit_cost=0.5)["total_mean"].item() == pytest.approx(
        (frame["pulls"] + 0.5 * frame["bits"]).mean()
    )
    assert opened.plot_frame()["bit_cost"].is_null().all()
    assert not opened.check().violated
    calls.clear()
    copied = opened.save(out.with_name("copy"))
    assert copied.summary().equals(stored)
    run(out, bit_costs=[2.0])
    assert calls == []
    assert set(ff.open_sweep(out).summary()["bit_cost"]) == {None, 0.5, 2.0}


@pytest.mark.usefixtures("small_parts")
def test_ratio_only_of_trials_that_both_have(out: Path) -> None:
    """Parts may be away at different places: what is paired must be the same trial."""
    run(out, schedules=["fedelim"])
    run(out, schedules=["fedelim0"])
    for first, name in (("05", "fedelim"), ("10", "fedelim0")):
        for path in (out / "trials").glob(f"*-00000000{first}-*"):
            if pl.read_parquet(path)["schedule"][0] == name:
                path.unlink()
    one, zero = (rows(out).filter(pl.col("schedule") == s) for s in ("fedelim", "fedelim0"))
    assert one.height == zero.height == 15
    both = one.join(zero, on="trial", suffix="_0")
    assert both.height == 10
    x, y = both["pulls"].to_numpy(), both["pulls_0"].to_numpy()
    row = stored_summary(out, [0]).row(0, named=True)
    assert row["schedule"] == "fedelim"
    if row["ratio_sem"] is not None:
        ratio = x.mean() / y.mean()
        assert row["ratio_to_fedelim0"] == pytest.approx(ratio)
        assert row["ratio_sem"] == pytest.approx(stats.sem(x - ratio * y) / y.mean())


# What others read


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder of several parts, cells and schedules, in two runs."""
    out = tmp_path_factory.mktemp("made") / "results"
    options: dict[str, Any] = {
        "instances": ["synthetic", SMALL],
        "deltas": [0.3, 0.1],
        "costs": [0, 10, 100],
        "schedules": ["fedelim", "fedelim0", "periodic:100"],
        "max_steps": 2500,
        "threads": 2,
    }
    run(out, trials=150, **options)
    run(out, trials=400, **options)
    return out


def test_every_reader_reads_the_same(made: Path) -> None:
    pattern = str(made / "trials" / "*.parquet")
    polars = pl.scan_parquet(pattern).collect().sort(KEYS)
    assert_whole(polars, 2 * 2 * 3, 400)
    arrow = pyarrow.dataset.dataset(made / "trials", format="parquet").to_table()
    duck = duckdb.sql(f"select * from '{pattern}'").to_arrow_table()
    pandas = pd.read_parquet(made / "trials")
    assert list(pandas.columns) == arrow.column_names == duck.column_names == polars.columns
    assert pl.from_arrow(arrow).sort(KEYS).equals(polars)
    assert pl.from_arrow(duck).sort(KEYS).equals(polars)
    ordered = pandas.sort_values(KEYS)
    for name in polars.columns:
        assert ordered[name].tolist() == polars[name].to_list(), name


def test_column_types_are_plain_and_as_promised(made: Path) -> None:
    expected = {
        "instance": "string",
        "schedule": "string",
        "delta": "double",
        "seed": "uint64",
        "trial": "int64",
        "pulls": "int64",
        "uplinks": "int64",
        "bits": "int64",
        "rounds": "int64",
        "steps": "int64",
        "busiest": "int64",
        "downlinks": "int64",
        "local_steps": "int64",
        "global_steps": "int64",
        "global_arm": "int32",
        "local_errors": "int32",
        "correct": "bool",
        "truncated": "bool",
        "skip_error": "double",
        "draw_error": "double",
        "sigma": "double",
        "radius": "string",
        "goal": "string",
        "uplink": "string",
        "participation": "string",
        "global_answer": "list<element: int32>",
    }
    for path in (made / "trials").iterdir():
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
        assert {field.name: str(field.type) for field in schema} == expected


def test_summary_against_duckdb_from_the_parquet_alone(made: Path) -> None:
    statistics = ", ".join(
        f"avg({x}) filter (not truncated) {name}_mean, "
        f"stddev_samp({x}) filter (not truncated) {name}_std, "
        f"{name}_std / sqrt(ended) {name}_sem, quantile_cont({x}, 0.05) {name}_q05, "
        f"quantile_cont({x}, 0.5) {name}_q50, quantile_cont({x}, 0.95) {name}_q95"
        for name, x in (
            ("pulls", "pulls::double"),
            ("communication", "cost * uplinks"),
            ("total", "total"),
        )
    )
    expected = duckdb.sql(f"""
        with costs as (select unnest([0, 10, 100])::double cost),
        trials as (select *, pulls + cost * uplinks total
                   from '{made}/trials/*.parquet', costs),
        paired as (select a.*, b.total below, not (a.truncated or b.truncated) both_ended
                   from trials a join trials b
                   using (instance, delta, sigma, cost, trial) where b.schedule = 'fedelim0'),
        ratios as (select *, sum(total * both_ended::int) over cell
                             / sum(below * both_ended::int) over cell ratio from paired
                   window cell as (partition by instance, delta, sigma, cost, schedule))
        select instance, schedule, delta, sigma, cost, count(*) trials,
               count(*) filter (not truncated) ended, {statistics},
               avg((not correct)::int) error_rate, sum((not correct)::int)::bigint errors,
               any_value(ratio) ratio_to_fedelim0,
               stddev_samp(total - ratio * below) filter (both_ended)
                   / sqrt(count(*) filter (both_ended)) / avg(below) filter (both_ended) ratio_sem,
               sum(truncated::int)::bigint truncated, avg(truncated::int) truncated_rate,
               avg(uplinks) filter (not truncated) uplinks_mean,
               stddev_samp(uplinks) filter (not truncated) / sqrt(ended) uplinks_sem,
               avg(bits) filter (not truncated) bits_mean,
               stddev_samp(bits) filter (not truncated) / sqrt(ended) bits_sem, 0 quantile_error
        from ratios group by all""").pl()
    keys = ["instance", "schedule", "delta", "sigma", "cost"]
    expected = expected.sort(keys)
    found = pl.read_parquet(made / "summary.parquet").sort(keys)
    assert found.height == expected.height == 2 * 2 * 3 * 3
    intervals = {"error": "errors", "truncated": "truncated"}
    for name, counted in intervals.items():
        for low, high, count in zip(
            found[f"{name}_low"], found[f"{name}_high"], expected[counted], strict=True
        ):
            interval = stats.binomtest(int(count), 400).proportion_ci(method="exact")
            assert (low, high) == pytest.approx((interval.low, interval.high), rel=1e-9)
    others = ("rounds", "steps", "busiest", "downlinks")
    assert set(found.columns) - set(expected.columns) == {
        *DEFAULTS,
        "bit_cost",
        "prices",
        *(name for name in found.columns if name.rpartition("_")[0] in others),
        *(f"{name}_{end}" for name in intervals for end in ("low", "high")),
    }
    for name in set(found.columns) & set(expected.columns):
        if name in ("instance", "schedule"):
            assert found[name].equals(expected[name])
        else:
            np.testing.assert_allclose(
                found[name].to_numpy(),
                expected[name].to_numpy(),
                rtol=1e-9,
                atol=1e-12,
                err_msg=name,
            )
    assert found["truncated"].sum() > 0
    assert expected["errors"].sum() > 0
