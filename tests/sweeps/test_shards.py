"""Shards that are still to run, and how a scheduler is told them."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import SMALL, Call, refused
from hypothesis import given
from hypothesis import strategies as st

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.model.cell import Cell
from fastfed.sweeps.shards import Shard, as_ranges, missing_shards


def shard(folder: Path, index: int) -> None:
    ff.sweep(
        instances=SMALL,
        deltas=[0.1, 0.05],
        schedules=["fedelim", "fedelim0"],
        trials=30,
        shard=f"{index}/5",
        out=folder,
        threads=1,
        progress=False,
    )


def test_missing_shards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for index in (2, 5):
        shard(tmp_path / str(index), index)
    both = [str(tmp_path / "2"), str(tmp_path / "5")]
    assert missing_shards(both, 5) == missing_shards(both, None) == [1, 3, 4]
    assert missing_shards(both[:1], 5) == [1, 3, 4, 5]
    assert cli.run(["missing", *both, "--shards", "5"]) == 0
    assert capsys.readouterr().out == "1,3-4\n"
    for index in (1, 3, 4):
        shard(tmp_path / "2", index)  # into the same folder
    assert missing_shards(both, 5) == []
    refused(lambda: missing_shards(both, None), "how many shards", "--shards")
    assert cli.run(["missing", *both, "--shards", "5"]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "no shard is missing" in shown.err
    refused(lambda: missing_shards(both, 0), "shards", "0")


def test_a_shard_computes_no_more_than_its_share(tmp_path: Path, calls: list[Call]) -> None:
    for index in (1, 3, 5, 2, 4):
        calls.clear()
        shard(tmp_path, index)
        assert [end - first for *_, first, end in calls] == [6, 6]


@given(st.integers(1, 40), st.integers(1, 100), st.floats(0.01, 0.5))
def test_shares_cover_a_cell_and_are_disjoint(count: int, trials: int, delta: float) -> None:
    cell = Cell("small", "", delta, 1.0, 0, "auto")
    shares = [Shard(index, count).share(cell, trials) for index in range(1, count + 1)]
    assert sorted(n for first, end in shares for n in range(first, end)) == [*range(trials)]


def test_ranges() -> None:
    assert as_ranges([]) == ""
    assert as_ranges([1, 2, 3, 7, 9, 10]) == "1-3,7,9-10"
