"""The grid: what is run, what is kept, what is refused, and what the Parquet says."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from scipy import stats

import fastfed as ff
from fastfed import cli, executors
from fastfed.errors import InputError
from fastfed.store import Cell, Store, spec_hash

ROOT = Path(__file__).resolve().parents[1]
engine = importlib.import_module("fastfed.sweep")  # `fastfed.sweep` itself is the function
SMALL = ff.Instance([[0.9, 0.1], [0.1, 0.4]], name="small")
OTHER = ff.Instance([[0.1, 0.2], [0.6, 0.9], [0.3, 0.1]], name="other")
KEYS = ["instance", "delta", "sigma", "schedule", "trial"]
Call = tuple[str, float, tuple[str, ...], int, int]


def run(out: Path, **options: Any) -> pl.DataFrame:
    """A small sweep; its summary."""
    grid = {"instances": [SMALL], "deltas": [0.1], "costs": [0, 10], "trials": 20, "threads": 1,
            "schedules": ["fedelim", "fedelim0"]}
    return ff.sweep(out=out, **{**grid, **options})


def rows(out: Path) -> pl.DataFrame:
    return pl.read_parquet(out / "trials" / "*.parquet").sort(KEYS)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).digest()
            for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


def assert_whole(frame: pl.DataFrame, cells: int, trials: int) -> None:
    """None missing, none twice."""
    assert frame.height == cells * trials
    assert frame.select(KEYS).unique().height == frame.height
    assert sorted(set(frame["trial"])) == list(range(trials))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """What is computed from here on: (instance, delta, schedules, first, end)."""
    seen: list[Call] = []
    real = executors.compute

    def spy(task: executors.Task, control: Any = None) -> tuple[bytes, int]:
        seen.append((task.cell.instance, task.cell.delta, task.schedules, task.first,
                     task.first + task.count))
        return real(task, control)

    monkeypatch.setattr(executors, "compute", spy)
    return seen


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of five trials, whatever the speed."""
    assert callable(engine._Planner._size)
    monkeypatch.setattr(engine._Planner, "_size", lambda self, instance, workers: 5)


# The grid


def test_default_grid_is_the_papers() -> None:
    spec = engine.make_spec({})
    assert spec.instances == ("synthetic",)
    assert spec.deltas == (0.1, 0.05, 0.01, 0.005, 0.001)
    assert spec.costs == (0.0, 10.0, 100.0)
    assert set(spec.schedules) == {"fedelim", "fedelim0", "periodic:5",
                                   *(f"periodic:{10**e}" for e in range(6))}
    assert (spec.trials, spec.seed) == (10_000, 0)


def test_grid_is_the_product(out: Path) -> None:
    summary = run(out, instances=[SMALL, OTHER], deltas=[0.1, 0.01], sigma=[1.0, 2.0],
                  schedules=["fedelim"], periods=[1, 7], trials=6)
    assert_whole(rows(out), 2 * 2 * 2 * 3, 6)
    assert summary.height == 2 * 2 * 2 * 3 * 2
    assert set(summary["schedule"]) == {"fedelim", "periodic:1", "periodic:7"}
    assert set(summary["sigma"]) == {1.0, 2.0}


def test_duplicates_in_the_grid_are_run_once(out: Path, calls: list[Call]) -> None:
    run(out, instances=[SMALL, SMALL], deltas=[0.1, 0.1], costs=[1, 1.0], sigma=[1.0, 1])
    assert len(calls) == 1
    assert_whole(rows(out), 2, 20)


def test_rows_are_those_of_simulate(out: Path) -> None:
    """The schedules run alone or together, in parts or at once: the same walks."""
    names = ["fedelim", "fedelim0", "periodic:100", "exponential:1.5", "at:1,5,25,125"]
    run(out, instances=["synthetic"], deltas=[0.1, 0.01], schedules=names, trials=30, seed=9,
        threads=2)
    for delta in (0.1, 0.01):
        expected = ff.simulate(ff.Instance.load("synthetic"), names, delta=delta, trials=30,
                               seed=9, threads=1).frame
        assert rows(out).filter(pl.col("delta") == delta).equals(expected.sort(KEYS))


@pytest.mark.usefixtures("small_parts")
def test_rows_do_not_depend_on_parts_and_threads(tmp_path: Path) -> None:
    for threads in (1, 3):
        run(tmp_path / str(threads), trials=33, threads=threads)
    assert len(list((tmp_path / "1" / "trials").iterdir())) > 4
    assert rows(tmp_path / "1").equals(rows(tmp_path / "3"))
    assert rows(tmp_path / "1").equals(
        ff.simulate(SMALL, ["fedelim", "fedelim0"], delta=0.1, trials=33).frame.sort(KEYS))


def test_options_reach_the_rows(out: Path) -> None:
    run(out, sigma=2.0, max_steps=50, engine="dense", seed=2**64 - 1)
    expected = ff.simulate(SMALL, ["fedelim", "fedelim0"], delta=0.1, trials=20, sigma=2.0,
                           max_steps=50, engine="dense", seed=2**64 - 1, threads=1).frame
    assert rows(out).equals(expected.sort(KEYS))
    assert rows(out)["truncated"].all()


def test_folder_holds_what_is_promised(out: Path) -> None:
    run(out)
    assert {path.name for path in out.iterdir()} - {".lock"} == {
        "sweep.json", "summary.parquet", "trials"}
    assert {path.suffix for path in (out / "trials").iterdir()} == {".parquet"}
    record = json.loads((out / "sweep.json").read_text())
    assert record["seed"] == 0
    assert record["spec"]["trials"] == 20
    assert record["spec_hash"] == spec_hash(record["spec"])
    assert record["versions"]["fastfed"] == ff.__version__
    (cell,) = record["cells"]
    assert (cell["instance"], cell["digest"], cell["delta"]) == ("small", SMALL.digest, 0.1)


def test_sweep_returns_its_summary(out: Path) -> None:
    summary = run(out, costs=[3, 0])
    assert summary.equals(pl.read_parquet(out / "summary.parquet"))
    assert summary.equals(engine.stored_summary(out))
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
    assert engine.stored_summary(out).equals(new)


@pytest.mark.usefixtures("small_parts")
def test_parts_come_one_by_one(out: Path) -> None:
    seen = []
    for state, part in ff.sweep_parts(instances=SMALL, deltas=[0.1], schedules=["fedelim"],
                                      trials=20, out=out, threads=1):
        if part is not None:
            assert part.path.exists()
            assert pq.read_metadata(part.path).num_rows == part.count
            seen.append((part.first, part.count))
            assert state.progress.trials_done >= sum(count for _, count in seen)
            assert state.progress.trials_planned == 20
    assert sum(count for _, count in seen) == 20
    assert state.progress.trials_done == 20
    assert state.progress.pulls == rows(out)["pulls"].sum()


@pytest.mark.usefixtures("small_parts")
def test_leaving_early_keeps_what_is_there(out: Path) -> None:
    options: dict[str, Any] = {"instances": SMALL, "deltas": [0.1], "schedules": ["fedelim"],
                               "trials": 40, "out": out, "threads": 1}
    parts = ff.sweep_parts(**options)
    first = next(part for _, part in parts if part is not None)
    parts.close()
    before = snapshot(out / "trials")
    assert first.path.name in before
    ff.sweep(**options)
    assert before.items() <= snapshot(out / "trials").items()
    assert_whole(rows(out), 1, 40)


# Resume


def test_the_same_again_does_nothing(out: Path, calls: list[Call]) -> None:
    first = run(out)
    calls.clear()
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.*") if path.name != ".lock"}
    assert run(out).equals(first)
    assert calls == []
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_more_trials_add_only_theirs(out: Path, calls: list[Call]) -> None:
    run(out)
    before = snapshot(out / "trials")
    calls.clear()
    run(out, trials=50)
    assert calls == [("small", 0.1, ("fedelim", "fedelim0"), 20, 50)]
    assert before.items() <= snapshot(out / "trials").items()
    assert_whole(rows(out), 2, 50)


def test_fewer_trials_take_nothing_away(out: Path, calls: list[Call]) -> None:
    run(out)
    before = snapshot(out / "trials")
    calls.clear()
    run(out, trials=5)
    assert calls == []
    assert snapshot(out / "trials") == before


@pytest.mark.parametrize(("more", "expected"), [
    ({"deltas": [0.1, 0.05]}, ("small", 0.05, ("fedelim", "fedelim0"), 0, 20)),
    ({"deltas": [0.05]}, ("small", 0.05, ("fedelim", "fedelim0"), 0, 20)),
    ({"schedules": ["fedelim", "periodic:3", "fedelim0"]}, ("small", 0.1, ("periodic:3",), 0, 20)),
    ({"schedules": ["fedelim"], "periods": [3]}, ("small", 0.1, ("periodic:3",), 0, 20)),
    ({"instances": [OTHER, SMALL]}, ("other", 0.1, ("fedelim", "fedelim0"), 0, 20)),
    ({"sigma": [1.0, 2.0]}, ("small", 0.1, ("fedelim", "fedelim0"), 0, 20)),
], ids=["delta", "only another delta", "schedule", "period", "instance", "sigma"])
def test_more_of_the_grid_adds_only_its_own(
    out: Path, calls: list[Call], more: dict[str, Any], expected: Call
) -> None:
    run(out)
    before = snapshot(out / "trials")
    calls.clear()
    run(out, **more)
    assert calls == [expected]
    assert before.items() <= snapshot(out / "trials").items()
    assert rows(out).select(KEYS).unique().height == rows(out).height
    summary = engine.stored_summary(out)
    assert set(summary["trials"]) == {20}
    assert summary.height == 2 * rows(out).select(KEYS[:-1]).unique().height


def test_schedules_added_later_see_the_same_walks(tmp_path: Path) -> None:
    run(tmp_path / "bit by bit", schedules=["fedelim"])
    run(tmp_path / "bit by bit", schedules=["fedelim0", "periodic:4"], trials=30)
    run(tmp_path / "bit by bit", schedules=["fedelim", "periodic:4"], trials=30)
    run(tmp_path / "at once", schedules=["fedelim", "fedelim0", "periodic:4"], trials=30)
    assert rows(tmp_path / "bit by bit").equals(rows(tmp_path / "at once"))
    keys = ["schedule", "cost"]
    assert engine.stored_summary(tmp_path / "bit by bit").sort(keys).equals(
        engine.stored_summary(tmp_path / "at once").sort(keys))


@pytest.mark.usefixtures("small_parts")
def test_a_part_that_went_is_done_again(out: Path, calls: list[Call]) -> None:
    run(out)
    before = rows(out)
    calls.clear()
    next((out / "trials").glob("*-0000000010-*")).unlink()
    run(out)
    assert calls == [("small", 0.1, ("fedelim", "fedelim0"), 10, 15)]
    assert rows(out).equals(before)


@pytest.mark.parametrize("kind", ["truncated", "empty", "garbage", "foreign", "another sweep's"])
@pytest.mark.usefixtures("small_parts")
def test_unreadable_part_is_named_and_done_again(
    tmp_path: Path, out: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    SMALL.save(tmp_path / "small.toml")
    command = ["sweep", "--instance", str(tmp_path / "small.toml"), "--delta", "0.1", "--out",
               str(out), "--schedule", "fedelim,fedelim0", "--trials", "20", "--threads", "1"]
    assert cli.run(command) == 0
    before, table = rows(out), capsys.readouterr().out
    bad = next((out / "trials").glob("*-0000000005-*"))
    if kind == "truncated":
        bad.write_bytes(bad.read_bytes()[:-100])
    elif kind == "empty":
        bad.write_bytes(b"")
    elif kind == "garbage":
        bad.write_bytes(np.random.default_rng(0).bytes(5000))
    elif kind == "foreign":
        pq.write_table(pa.table({"x": [1]}), bad)
    else:
        run(tmp_path / "second", seed=1)
        bad.write_bytes(next((tmp_path / "second" / "trials").glob("*-0000000005-*")).read_bytes())
    assert cli.run(command) == 0
    told = capsys.readouterr()
    assert told.out == table
    assert len(told.err.splitlines()) == 1
    assert told.err.startswith("fastfed: ")
    assert bad.name in told.err
    assert rows(out).equals(before)
    assert cli.run(command) == 0
    assert capsys.readouterr() == (table, "")


def test_part_of_another_sweep_does_not_mix_in(
    tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named, and either refused or put out of the way."""
    run(tmp_path / "second", seed=1)
    run(out)
    before, summary = rows(out), engine.stored_summary(out)
    (stray,) = (tmp_path / "second" / "trials").iterdir()
    (out / "trials" / stray.name).write_bytes(stray.read_bytes())
    status = cli.run(["sweep", "--spec", str(out / "sweep.json"), "--out", str(out), "--quiet"])
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert stray.name in told
    if status == 0:
        assert rows(out).equals(before)
        assert engine.stored_summary(out).equals(summary)
    else:
        assert status == 2


def test_killed_before_the_summary(out: Path) -> None:
    summary = run(out)
    (out / "summary.parquet").unlink()
    assert run(out).equals(summary)
    assert (out / "summary.parquet").exists()
    (out / "summary.parquet").unlink()
    assert engine.stored_summary(out).equals(summary)


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
    row = engine.stored_summary(out, [0]).row(0, named=True)
    assert row["schedule"] == "fedelim"
    if row["ratio_sem"] is not None:
        ratio = x.mean() / y.mean()
        assert row["ratio_to_fedelim0"] == pytest.approx(ratio)
        assert row["ratio_sem"] == pytest.approx(stats.sem(x - ratio * y) / y.mean())


# Refused


@pytest.mark.parametrize(("changed", "named"), [
    ({"seed": 1}, ["seed 0", "seed 1"]),
    ({"engine": "dense"}, ["engine dense"]),
    ({"max_steps": 1000}, ["max_steps None", "max_steps 1000"]),
    ({"instances": [ff.Instance([[0.8, 0.1], [0.1, 0.4]], name="small")]}, ["'small'", "means"]),
    ({"instances": [ff.Instance(SMALL.means, ff.Gaussian(2.0), name="small")]},
     ["'small'", "rewards"]),
], ids=["seed", "engine", "max_steps", "means", "rewards"])
def test_what_does_not_fit_is_refused(
    out: Path, calls: list[Call], changed: dict[str, Any], named: list[str]
) -> None:
    run(out)
    before = snapshot(out)
    calls.clear()
    with pytest.raises(InputError) as told:
        run(out, **changed)
    assert all(part in str(told.value) for part in [str(out), "--out", *named])
    assert calls == []
    assert snapshot(out) == before
    run(out)
    assert snapshot(out) == before


def test_rows_of_another_version_are_refused(out: Path) -> None:
    run(out)
    record = json.loads((out / "sweep.json").read_text())
    (out / "sweep.json").write_text(json.dumps({**record, "rows": record["rows"] - 1}))
    before = snapshot(out)
    with pytest.raises(InputError, match="version of the rows"):
        run(out)
    assert snapshot(out) == before


def test_rows_without_a_record_are_refused(out: Path) -> None:
    run(out)
    (out / "sweep.json").unlink()
    before = snapshot(out)
    with pytest.raises(InputError, match=r"no sweep\.json"):
        run(out)
    assert snapshot(out) == before


def test_two_instances_of_one_name_are_refused(out: Path) -> None:
    with pytest.raises(InputError, match="'small'"):
        run(out, instances=[SMALL, ff.Instance(OTHER.means, name="small")])
    assert not out.exists()


def test_a_second_sweep_is_told(out: Path, calls: list[Call]) -> None:
    run(out)
    before = snapshot(out)
    calls.clear()
    with Store(out).lock(), pytest.raises(InputError, match="another sweep is writing here"):
        run(out, trials=100)
    assert calls == []
    assert snapshot(out) == before


# A target for the error


def rse(frame: pl.DataFrame, costs: list[float]) -> float:
    """The largest relative standard error of the mean total cost, over schedules and costs."""
    worst = 0.0
    for name in frame["schedule"].unique():
        one = frame.filter(pl.col("schedule") == name)
        for cost in costs:
            total = (one["pulls"] + cost * one["uplinks"]).to_numpy().astype(float)
            worst = max(worst, float(stats.sem(total) / total.mean()))
    return worst


@pytest.fixture
def short_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine._FIRST_STAGE > 16
    monkeypatch.setattr(engine, "_FIRST_STAGE", 16)


@pytest.mark.usefixtures("short_stages", "small_parts")
def test_target_is_reached_with_the_same_rows_on_any_threads(tmp_path: Path) -> None:
    target, costs = 0.05, [0.0, 10.0]
    options: dict[str, Any] = {"target_rse": target, "costs": costs, "trials": 1000,
                               "instances": [SMALL, OTHER], "deltas": [0.1, 0.001]}
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
    parts = engine.iterate(engine.make_spec({
        "instance": [SMALL], "delta": [0.1, 0.01], "cost": [0, 10], "trials": 1000,
        "schedule": ["fedelim", "fedelim0"], "target_rse": 0.05}), tmp_path / "cut", threads=1)
    for _ in range(8):
        next(parts)
    parts.close()
    run(tmp_path / "cut", **options)
    assert rows(tmp_path / "cut").equals(rows(tmp_path / "whole"))


# Spec files


SPEC = """
instance = ["synthetic", "random:3,2,1"]
delta = [0.1, 0.05]
cost = [0, 5]
schedule = ["fedelim", "at:1,5,25"]
period = [1, 10]
trials = 12
seed = 3
max_steps = 100_000
"""


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(SPEC)
    return path


def sweep_cli(out: Path, *options: str) -> None:
    assert cli.run(["sweep", "--out", str(out), "--quiet", "--threads", "1", *options]) == 0


def test_spec_file_is_the_command_line_written_down(tmp_path: Path, spec_file: Path) -> None:
    sweep_cli(tmp_path / "a", "--spec", str(spec_file))
    sweep_cli(tmp_path / "b", "--instance", "synthetic", "--instance", "random:3,2,1", "--delta",
              "0.1,0.05", "--cost", "0,5", "--schedule", "fedelim,at:1,5,25", "--period", "1,10",
              "--trials", "12", "--seed", "3", "--max-steps", "1e5")
    assert_whole(rows(tmp_path / "a"), 2 * 2 * 4, 12)
    assert rows(tmp_path / "a").equals(rows(tmp_path / "b"))
    records = [json.loads((tmp_path / name / "sweep.json").read_text()) for name in "ab"]
    assert records[0] == records[1]
    names = {"fedelim", "at:1,5,25", "periodic:1", "periodic:10"}
    assert set(rows(tmp_path / "a")["schedule"]) == names


def test_sweep_json_can_be_fed_back(tmp_path: Path, spec_file: Path, calls: list[Call]) -> None:
    sweep_cli(tmp_path / "a", "--spec", str(spec_file), "--target-rse", "0.5", "--sigma", "2")
    sweep_cli(tmp_path / "b", "--spec", str(tmp_path / "a" / "sweep.json"))
    assert rows(tmp_path / "a").equals(rows(tmp_path / "b"))
    assert (tmp_path / "a" / "sweep.json").read_bytes() == (
        tmp_path / "b" / "sweep.json").read_bytes()
    calls.clear()
    sweep_cli(tmp_path / "a", "--spec", str(tmp_path / "a" / "sweep.json"))
    assert calls == []


def test_instances_made_in_python_can_be_fed_back(tmp_path: Path) -> None:
    odd = ff.Instance(OTHER.means / 3, name="all, \"of\" it: é\n", arms=["a", "b", "ü\\"])
    others = [
        ff.Instance(OTHER.means, ff.Gaussian(1.5), name="noisy"),
        ff.Instance(OTHER.means, ff.Bernoulli(), name="coins"),
        ff.Instance(rewards=ff.Finite([0, 1, 5], [[[1, 1, 1]], [[1, 0, 3]]]), name="histograms"),
    ]
    run(tmp_path / "a", instances=[SMALL, odd, *others])
    assert_whole(rows(tmp_path / "a"), 5 * 2, 20)
    sweep_cli(tmp_path / "b", "--spec", str(tmp_path / "a" / "sweep.json"))
    assert rows(tmp_path / "a").equals(rows(tmp_path / "b"))


@pytest.mark.parametrize(("options", "names", "trials"), [
    (["--trials", "7"], {"fedelim", "at:1,5,25", "periodic:1", "periodic:10"}, 7),
    (["--schedule", "fedelim0"], {"fedelim0"}, 12),
    (["--period", "9", "--schedule", "fedelim"], {"fedelim", "periodic:9"}, 12),
])
def test_options_override_the_spec(
    out: Path, spec_file: Path, options: list[str], names: set[str], trials: int
) -> None:
    sweep_cli(out, "--spec", str(spec_file), "--delta", "0.2", *options)
    assert set(rows(out)["schedule"]) == names
    assert set(rows(out)["delta"]) == {0.2}
    assert_whole(rows(out), 2 * len(names), trials)


# What others read


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of several parts, cells and schedules, made in two goes."""
    out = tmp_path_factory.mktemp("made") / "results"
    options: dict[str, Any] = {
        "instances": ["synthetic", SMALL], "deltas": [0.3, 0.1], "costs": [0, 10, 100],
        "schedules": ["fedelim", "fedelim0", "periodic:100"], "max_steps": 2500, "threads": 2}
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
        "instance": "string", "schedule": "string", "delta": "double", "seed": "uint64",
        "trial": "int64", "pulls": "int64", "uplinks": "int64", "rounds": "int64",
        "steps": "int64", "local_steps": "int64", "global_steps": "int64", "global_arm": "int32",
        "local_errors": "int32", "correct": "bool", "truncated": "bool", "skip_error": "double",
        "sigma": "double"}
    for path in (made / "trials").iterdir():
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
        assert {field.name: str(field.type) for field in schema} == expected


def test_summary_against_duckdb_from_the_parquet_alone(made: Path) -> None:
    statistics = ", ".join(
        f"avg({x}) {name}_mean, stddev_samp({x}) {name}_std, "
        f"stddev_samp({x}) / sqrt(count(*)) {name}_sem, quantile_cont({x}, 0.05) {name}_q05, "
        f"quantile_cont({x}, 0.5) {name}_q50, quantile_cont({x}, 0.95) {name}_q95"
        for name, x in (("pulls", "pulls::double"), ("communication", "cost * uplinks"),
                        ("total", "total")))
    expected = duckdb.sql(f"""
        with costs as (select unnest([0, 10, 100])::double cost),
        trials as (select *, pulls + cost * uplinks total
                   from '{made}/trials/*.parquet', costs),
        paired as (select a.*, b.total below from trials a join trials b
                   using (instance, delta, sigma, cost, trial) where b.schedule = 'fedelim0'),
        ratios as (select *, avg(total) over cell / avg(below) over cell ratio from paired
                   window cell as (partition by instance, delta, sigma, cost, schedule))
        select instance, schedule, delta, sigma, cost, count(*) trials, {statistics},
               avg((not correct)::int) error_rate, sum((not correct)::int)::bigint errors,
               any_value(ratio) ratio_to_fedelim0,
               stddev_samp(total - ratio * below) / sqrt(count(*)) / avg(below) ratio_sem,
               sum(truncated::int)::bigint truncated
        from ratios group by all""").pl()
    keys = ["instance", "schedule", "delta", "sigma", "cost"]
    expected = expected.sort(keys)
    found = pl.read_parquet(made / "summary.parquet").sort(keys)
    assert found.height == expected.height == 2 * 2 * 3 * 3
    for low, high, errors in zip(found["error_low"], found["error_high"], expected["errors"],
                                 strict=True):
        interval = stats.binomtest(int(errors), 400).proportion_ci(method="exact")
        assert (low, high) == pytest.approx((interval.low, interval.high), rel=1e-9)
    assert set(found.columns) - set(expected.columns) == {"error_low", "error_high"}
    for name in set(found.columns) & set(expected.columns):
        if name in ("instance", "schedule"):
            assert found[name].equals(expected[name])
        else:
            np.testing.assert_allclose(found[name].to_numpy(), expected[name].to_numpy(),
                                       rtol=1e-9, atol=1e-12, err_msg=name)
    assert found["truncated"].sum() > 0
    assert expected["errors"].sum() > 0


# A task that raises


def broken(monkeypatch: pytest.MonkeyPatch, first: int, delta: float) -> None:
    real = executors.compute

    def compute(task: executors.Task, control: Any = None) -> tuple[bytes, int]:
        if task.first == first and task.cell.delta == delta:
            raise ZeroDivisionError("the kernel's own words")
        return real(task, control)

    monkeypatch.setattr(executors, "compute", compute)


@pytest.mark.parametrize("options", [
    [], ["--sigma", "2", "--max-steps", "5000"], ["--target-rse", "0.01"],
], ids=["plain", "sigma and max_steps", "target"])
@pytest.mark.usefixtures("small_parts")
def test_a_task_that_raises_is_named_and_the_rest_goes_on(
    tmp_path: Path, out: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    SMALL.save(tmp_path / "my small.toml")
    command = ["sweep", "--instance", str(tmp_path / "my small.toml"), "--delta",
               "0.1,0.0123456789", "--schedule", "fedelim,fedelim0", "--trials", "20", "--seed",
               "5", "--threads", "2", "--out", str(out), *options]
    with pytest.MonkeyPatch.context() as patch:
        broken(patch, 10, 0.0123456789)
        assert cli.run(command) == 1
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert told.startswith("fastfed: ")
    for part in ("my small", "delta 0.012345", "trials 10 to 14", "ZeroDivisionError",
                 "the kernel's own words", "fedelim"):
        assert part in told
    held = rows(out)
    assert held.height == 2 * (20 + 15)
    assert not set(range(10, 15)) & set(held.filter(pl.col("delta") < 0.1)["trial"])
    # the command that it gives shows the trial
    again = shlex.split(told.split("see it again with: ")[1])
    assert again[0] == "fastfed"
    assert cli.run(again[1:]) == 0
    story = capsys.readouterr().out
    # and the same sweep does only what is missing
    assert cli.run(command) == 0
    assert capsys.readouterr().err == ""
    assert_whole(rows(out), 4, 20)
    row = rows(out).filter(pl.col("delta") < 0.1, pl.col("trial") == 10,
                           pl.col("schedule") == "fedelim").row(0, named=True)
    assert f"{row['pulls']:,} pulls, {row['uplinks']:,} uplinks" in story


@pytest.mark.usefixtures("small_parts")
def test_sweep_in_python_raises_at_the_end(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, 5, 0.1)
    with pytest.raises(RuntimeError, match=r"small, delta 0\.1.*trials 5 to 9.*ZeroDivisionError"):
        run(out)
    assert rows(out).height == 2 * 15


# SIGKILL


DRIVER = """
import importlib, os, signal, sys
from fastfed import cli
engine = importlib.import_module("fastfed.sweep")
engine._Planner._size = lambda self, instance, workers: 5
import fastfed.simulate, polars, pyarrow.parquet
left = int(sys.argv[1])  # until the kill: file operations, or none

def counted(real):
    def operation(*arguments):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)
    return operation

if left:
    os.fsync, os.replace = counted(os.fsync), counted(os.replace)
print("ready", flush=True)
sys.exit(cli.run(sys.argv[2:]))
"""


def kills() -> Iterator[tuple[int, float]]:
    """After so many file operations, or so many seconds: seeded, in any order."""
    rng = np.random.default_rng(2023)
    moments = [(int(n), 0.0) for n in rng.integers(1, 16, 4)]
    moments += [(0, float(s)) for s in rng.uniform(0, 0.2, 3)]
    yield from (moments[i] for i in rng.permutation(len(moments)))


def test_killed_again_and_again(tmp_path: Path, out: Path) -> None:
    SMALL.save(tmp_path / "small.toml")
    command = ["sweep", "--instance", str(tmp_path / "small.toml"), "--delta", "0.1,0.01",
               "--schedule", "fedelim,fedelim0", "--trials", "100", "--threads", "2", "--quiet"]
    assert cli.run([*command, "--out", str(tmp_path / "undisturbed")]) == 0
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    killed = 0
    before: dict[str, bytes] = {}
    for operations, seconds in kills():
        with subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(operations), *command, "--out", str(out)],
            env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout.readline() == b"ready\n", process.stderr.read()
            if not operations:
                time.sleep(seconds)
                process.kill()
            errors = process.communicate()[1]
        assert process.returncode in (-signal.SIGKILL, 0), errors.decode()
        assert errors == b""
        killed += process.returncode != 0
        after = snapshot(out / "trials") if out.exists() else {}
        complete = {name: digest for name, digest in after.items() if not name.startswith(".")}
        assert before.items() <= complete.items(), "finished parts stay as they are"
        assert Store(out).parts() == [] or Store(out).unreadable == []
        before = complete
    assert killed >= 4
    assert cli.run([*command, "--out", str(out)]) == 0
    assert before.items() <= snapshot(out / "trials").items()
    assert list(out.rglob(".*.partial")) == []
    assert_whole(rows(out), 4, 100)
    assert rows(out).equals(rows(tmp_path / "undisturbed"))
    assert pl.read_parquet(out / "summary.parquet").equals(
        pl.read_parquet(tmp_path / "undisturbed" / "summary.parquet"))


def test_cell_of_a_row_tells_all_that_it_depends_on(out: Path) -> None:
    run(out, seed=4, max_steps=99, sigma=2.0)
    (part,) = Store(out).parts()
    assert part.cell == Cell("small", SMALL.digest, 0.1, 2.0, 4, part.cell.engine, 99)
