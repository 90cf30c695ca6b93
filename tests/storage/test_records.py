"""Content of sweep.json, and of parts where it is lost or was read too early."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastfed as ff


def sweep(out: Path, delta: float, **more: Any) -> ff.Sweep:
    given = {"trials": 20, "schedules": ["fedelim"], "threads": 1, "progress": False}
    return ff.sweep(deltas=[delta], out=out, **{**given, **more})


def test_one_of_two_commands_brings_a_lost_record_back(tmp_path: Path) -> None:
    for delta in (0.1, 0.05):
        before = sweep(tmp_path, delta).summary([1])
    (tmp_path / "sweep.json").unlink()
    with pytest.raises(ff.InputError, match="takes over the trials that are there"):
        ff.open_sweep(tmp_path)
    parts = sorted((tmp_path / "trials").iterdir())
    sweep(tmp_path, 0.05)
    assert sorted((tmp_path / "trials").iterdir()) == parts
    assert ff.open_sweep(tmp_path).summary([1]).sort("delta").equals(before.sort("delta"))


def test_a_lost_record_does_not_let_rows_of_another_seed_in(tmp_path: Path) -> None:
    sweep(tmp_path, 0.1)
    (tmp_path / "sweep.json").unlink()
    with pytest.raises(ff.InputError, match=r"rows of another sweep .*seed 0"):
        sweep(tmp_path, 0.1, seed=1)


def test_a_folder_may_grow_before_it_is_asked(tmp_path: Path) -> None:
    sweep(tmp_path, 0.1)
    opened = ff.open_sweep(tmp_path)
    sweep(tmp_path, 0.05)
    assert sorted(opened.summary([1])["delta"]) == [0.05, 0.1]


def test_a_file_that_is_named_like_a_built_in_instance(tmp_path: Path) -> None:
    file = tmp_path / "synthetic.toml"
    file.write_text("means = [[0.9, 0.5], [0.1, 0.2]]")
    sweep(tmp_path / "out", 0.1, instances=[str(file)])
    file.unlink()
    assert ff.open_sweep(tmp_path / "out").instances["synthetic"].shape == (2, 2)


def test_names_that_no_folder_can_have_are_refused() -> None:
    with pytest.raises(ff.InputError, match="too long"):
        ff.open_sweep("x" * 5000)


def test_rows_of_an_older_version_have_all_columns() -> None:
    sweep = ff.open_sweep(Path(__file__).parents[1] / "fixtures" / "format2")
    assert sweep.wrong().is_empty()
    row = sweep.scan().head(1).collect().row(0, named=True)
    assert (row["participation"], row["busiest"]) == ("full", None)
