"""Shards of a sweep, and folders joined: every row once, and only rows that belong together."""

from __future__ import annotations

import json
import os
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import BOUNDS, KEYS, SMALL, rows

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.errors import InputError
from fastfed.model.cell import Cell
from fastfed.storage import checked_parquet
from fastfed.storage import merge as merging
from fastfed.storage.folder import Store
from fastfed.storage.merge import merge
from fastfed.sweeps.shards import Shard

OTHER = ff.Instance([[0.1, 0.9], [0.8, 0.4]], name="small")


def run(out: Path, **options: Any) -> Path:
    grid = {
        "instances": [SMALL],
        "deltas": [0.1, 0.01],
        "costs": [0, 10],
        "trials": 30,
        "schedules": ["fedelim", "fedelim0"],
        "threads": 1,
    }
    ff.sweep(out=out, **{**grid, **options})
    return out


def summary(out: Path) -> pl.DataFrame:
    return pl.read_parquet(out / "summary.parquet")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("whole") / "results")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    for i in range(1, 5):
        run(folder / str(i), shard=f"{i}/4")
    return folder


@pytest.fixture
def shards(swept: Path, tmp_path: Path) -> list[Path]:
    shutil.copytree(swept, tmp_path / "shards")
    return sorted((tmp_path / "shards").iterdir())


# Shards


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16, 100])
@pytest.mark.parametrize("trials", [1, 5, 30, 10_001])
def test_shares_cover_a_cell_once_and_are_fair(count: int, trials: int) -> None:
    cell = Cell("small", "0" * 64, 0.1, 1.0, 0, "skip", None)
    shares = sorted(Shard(i, count).share(cell, trials) for i in range(1, count + 1))
    assert shares[0][0] == 0
    assert shares[-1][1] == trials
    assert all(a[1] == b[0] for a, b in pairwise(shares))
    assert {end - first for first, end in shares} <= {trials // count, -(-trials // count)}


def test_few_trials_of_many_cells_are_spread() -> None:
    """Spread one trial of each of 400 cells over 4 shards: 100 each on average.

    A shard with less than 50 has a probability of 1e-9.
    """
    cells = [Cell("small", "0" * 64, 0.1, 1.0, seed, "skip", None) for seed in range(400)]
    for i in range(1, 5):
        assert sum(end - first for first, end in (Shard(i, 4).share(c, 1) for c in cells)) > 50


def test_shards_in_one_folder(tmp_path: Path, whole: Path) -> None:
    for i in (2, 1, 3):
        run(tmp_path / "results", shard=f"{i}/3")
        assert rows(tmp_path / "results").height == {2: 40, 1: 80, 3: 120}[i]
    assert rows(tmp_path / "results").equals(rows(whole))
    assert summary(tmp_path / "results").equals(summary(whole))


def test_a_shard_does_not_depend_on_the_size_of_parts(tmp_path: Path) -> None:
    run(tmp_path / "a", shard="2/3")
    run(tmp_path / "b", shard="2/3", part_size=3)
    assert len(Store(tmp_path / "b").parts()) > len(Store(tmp_path / "a").parts())
    assert rows(tmp_path / "a").equals(rows(tmp_path / "b"))


def test_more_shards_than_trials(tmp_path: Path, whole: Path) -> None:
    folders = [run(tmp_path / str(i), trials=2, shard=f"{i}/5") for i in range(1, 6)]
    merge(folders, tmp_path / "all")
    assert rows(tmp_path / "all").equals(rows(whole).filter(pl.col("trial") < 2))


@pytest.mark.parametrize(
    "shard", ["", "3", "0/4", "5/4", "1/0", "0/0", "-1/4", "a/b", "1/2/3", "1.5/4", "1/4x"]
)
def test_bad_shard(shard: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = cli.run(["sweep", "--out", str(tmp_path / "results"), "--shard", shard])
    streams = capsys.readouterr()
    assert status == 2
    assert streams.out == ""
    assert streams.err.startswith(f"fastfed: shard {shard!r}: ")
    assert streams.err.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_no_shard_with_a_target(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="shard 1/2 with target_rse"):
        run(tmp_path / "results", shard="1/2", target_rse=0.1)


# Merging


def test_shards_merged_are_the_whole(
    shards: list[Path], whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "all"
    assert cli.run(["merge", *map(str, shards), "--out", str(out)]) == 0
    assert capsys.readouterr().err == ""
    assert rows(out).equals(rows(whole))
    assert summary(out).equals(summary(whole))
    ours, theirs = (json.loads((folder / "sweep.json").read_text()) for folder in (out, whole))
    assert {**ours, "summary_of": ""} == {**theirs, "summary_of": ""}


def test_merged_folder_is_a_sweeps(shards: list[Path], tmp_path: Path) -> None:
    merge(shards, tmp_path / "all")
    before = rows(tmp_path / "all")
    files = sorted(path.name for path in (tmp_path / "all/trials").iterdir())
    run(tmp_path / "all")
    assert sorted(path.name for path in (tmp_path / "all/trials").iterdir()) == files
    run(tmp_path / "all", trials=40)
    assert rows(tmp_path / "all").filter(pl.col("trial") < 30).equals(before)
    assert rows(tmp_path / "all").height == 4 * 40


def test_again_adds_nothing(shards: list[Path], tmp_path: Path) -> None:
    assert merge(shards, tmp_path / "all").parts == 1
    files = {
        path: path.stat().st_mtime_ns
        for path in (tmp_path / "all").rglob("*.*")
        if path.name != ".lock"
    }
    assert merge(shards, tmp_path / "all").parts == 0
    assert files == {path: path.stat().st_mtime_ns for path in files}


def test_what_is_missing_is_said_and_can_be_computed(
    shards: list[Path], whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "all"
    assert cli.run(["merge", *map(str, shards[:3]), "--out", str(out)]) == 0
    missing = 120 - rows(out).height
    error = capsys.readouterr().err
    assert error.startswith(f"fastfed: {missing} rows of the spec are in none of the folders")
    again = error.partition("with: fastfed ")[2].split()
    assert cli.run([*again, "--quiet"]) == 0
    assert rows(out).equals(rows(whole))


def test_into_one_of_the_folders(shards: list[Path], whole: Path) -> None:
    merge(shards, shards[0])
    assert rows(shards[0]).equals(rows(whole))


def test_into_a_folder_whose_record_went(shards: list[Path], whole: Path) -> None:
    (shards[0] / "sweep.json").unlink()
    merge(shards, shards[0])
    assert rows(shards[0]).equals(rows(whole))


def test_a_folder_that_is_named_twice(shards: list[Path], whole: Path, tmp_path: Path) -> None:
    merge([*shards, *shards], tmp_path / "all")
    assert rows(tmp_path / "all").equals(rows(whole))


def test_killed_merge_goes_on(
    shards: list[Path], whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed when half of the fourth of eight parts is on the disk."""

    class Killed(BaseException):
        pass

    monkeypatch.setattr(merging, "MOST_ROWS", 1)  # a part for every piece
    real = os.fsync

    def sync(number: int) -> None:
        written = len(list((tmp_path / "all/trials").glob("[!.]*.parquet")))
        for partial in (tmp_path / "all/trials").glob(".*.partial") if written == 3 else ():
            os.truncate(partial, partial.stat().st_size // 2)
            shutil.copy(partial, tmp_path / "left")  # a kill removes nothing
            raise Killed
        real(number)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", sync)
        with pytest.raises(Killed):
            merge(shards, tmp_path / "all")
    shutil.move(tmp_path / "left", tmp_path / "all/trials/.left.parquet.0123abcd.partial")
    assert len(Store(tmp_path / "all").parts()) == 3
    Store(tmp_path / "all").verify()
    assert merge(shards, tmp_path / "all").parts == 5
    assert rows(tmp_path / "all").equals(rows(whole))
    assert list((tmp_path / "all").rglob("*.partial")) == []


@pytest.mark.parametrize("order", [1, -1])
def test_overlapping_ranges_are_taken_once(tmp_path: Path, whole: Path, order: int) -> None:
    """Parts that fit nowhere: of 7 and of 11 trials, some schedules in one folder only."""
    for size, name in ((7, "a"), (11, "b")):
        run(tmp_path / name, part_size=size)
    for path in list((tmp_path / "a/trials").iterdir())[::3]:
        path.unlink()
    merge([tmp_path / "a", tmp_path / "b"][::order], tmp_path / "all")
    assert rows(tmp_path / "all").equals(rows(whole))
    assert summary(tmp_path / "all").equals(summary(whole))


def test_schedules_held_apart_are_joined(tmp_path: Path, whole: Path) -> None:
    """One folder has both schedules in one part, the other in two."""
    run(tmp_path / "a", schedules=["fedelim"])
    run(tmp_path / "a")
    merge([tmp_path / "a", whole], tmp_path / "all")
    assert rows(tmp_path / "all").drop(BOUNDS).equals(rows(whole).drop(BOUNDS))


def test_costs_are_united(tmp_path: Path) -> None:
    folders = [run(tmp_path / f"{i}", shard=f"{i}/2", costs=[0, i]) for i in (1, 2)]
    merge(folders, tmp_path / "all")
    assert set(summary(tmp_path / "all")["cost"]) == {0.0, 1.0, 2.0}


# Refusals


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": 1}, "seed 0, .*stranger has seed 1"),
        ({"engine": "dense"}, "engine (auto|skip), .*stranger has engine dense"),
        ({"max_steps": 1000}, "max_steps None, .*stranger has max_steps 1000"),
        ({"instances": [OTHER]}, "another instance called 'small' than .*stranger"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    whole: Path,
    tmp_path: Path,
    options: dict[str, Any],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stranger = run(tmp_path / "stranger", **options)
    with pytest.raises(InputError, match=said):
        merge([whole, stranger], tmp_path / "all")
    assert not (tmp_path / "all").exists()
    before = rows(stranger)
    assert cli.run(["merge", str(whole), "--out", str(stranger)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert rows(stranger).equals(before)


def test_other_requests_are_joined(whole: Path, tmp_path: Path) -> None:
    """As sweeps into one folder are: every trial once, and the same summary."""
    one = run(tmp_path / "one", deltas=[0.1], schedules=["fedelim"], trials=31)
    two = run(tmp_path / "two", instances=["synthetic"], sigma=2.0, trials=2)
    assert merge([whole, one, two], tmp_path / "all").missing == 0
    run(one, deltas=[0.1, 0.01])
    run(one, instances=["synthetic"], sigma=2.0, trials=2)
    assert rows(tmp_path / "all").drop(BOUNDS).equals(rows(one).drop(BOUNDS))
    found, expected = (Store(folder).record() for folder in (tmp_path / "all", one))
    assert {*found.cells} == {*expected.cells}
    assert found.spec.trials == expected.spec.trials == 31


def test_rows_of_another_version_are_refused(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "old")
    record = json.loads((whole / "sweep.json").read_text())
    (tmp_path / "old/sweep.json").write_text(json.dumps({**record, "rows": 0}))
    for folders in ([whole, tmp_path / "old"], [tmp_path / "old"]):
        with pytest.raises(InputError, match=r"older fastfed .*version of the rows 0"):
            merge(folders, tmp_path / "all")


def test_rows_that_contradict_each_other_are_refused(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "wrong")
    path = next((tmp_path / "wrong/trials").iterdir())
    table = pq.read_table(path)
    pulls = table["pulls"].to_numpy().copy()
    pulls[17] += 1
    column = table.schema.get_field_index("pulls")
    wrong = table.set_column(column, table.schema.field(column), pa.array(pulls))
    about = checked_parquet.open_file(path).about
    checked_parquet.write(path, checked_parquet.encode(wrong), about)
    with pytest.raises(InputError, match=r"other rows than in .* for trials 0 to 29"):
        merge([whole, tmp_path / "wrong"], tmp_path / "all")


@pytest.mark.filterwarnings("error")
def test_in_python(shards: list[Path], whole: Path, tmp_path: Path) -> None:
    merged = ff.merge(shards, out=tmp_path / "all")
    assert isinstance(merged, ff.Sweep)
    assert merged.frame.sort(KEYS).equals(rows(whole).sort(KEYS))
    assert merged.merged.missing == 0
    assert ff.open_sweep(whole).merged is None
    copied = ff.merge(str(whole), out=tmp_path / "copy")  # one folder
    assert copied.frame.sort(KEYS).equals(rows(whole).sort(KEYS))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{whole}"], "Missing option '--out'"),
        (["--out", "{new}"], "Missing argument 'DIR'"),
        (["{new}", "--out", "{new}2"], "no such folder"),
        (["{empty}", "--out", "{new}"], "no sweep.json in it"),
        (["{whole}", "--out", "{whole}"], "nothing to merge with it"),
        (["{broken}", "--out", "{new}"], "missing required field `trials`"),
        (["{whole}", "--out", ""], "must have a name"),
    ],
)
def test_bad_input(
    arguments: list[str],
    said: str,
    whole: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {name: tmp_path / name for name in ("new", "empty", "broken")}
    places["empty"].mkdir()
    shutil.copytree(whole, places["broken"])
    record = json.loads((whole / "sweep.json").read_text())
    del record["spec"]["trials"]
    (places["broken"] / "sweep.json").write_text(json.dumps(record))
    given = [argument.format(whole=whole, **places) for argument in arguments]
    assert cli.run(["merge", *given]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("fastfed: ")
    assert said in streams.err
    assert streams.err.count("\n") == 1
    assert not places["new"].exists()


def test_rows_that_only_the_union_of_requests_asks_for_are_not_missing(tmp_path: Path) -> None:
    """A folder with 20 trials of one schedule and 10 of another, all that was asked for."""
    run(tmp_path / "one", schedules=["fedelim"], trials=20)
    run(tmp_path / "one", schedules=["fedelim0"], trials=10)
    assert merge([tmp_path / "one"], tmp_path / "merged").missing == 0
