"""Folders of sweeps that are damaged, taken or full: one line, and nothing half-written."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_input import assert_one_line, listing, refused_by_command
from helpers import SMALL, typed

import fastfed as ff
from fastfed.cli import app as cli


def _record(folder: Path, **changes: Any) -> None:
    path = folder / "sweep.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _no_rows(folder: Path) -> None:
    for path in (folder / "trials").iterdir():
        path.unlink()


def _replace_by_folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


DAMAGED: dict[str, tuple[Callable[[Path], object], str, str]] = {
    # what happened to the folder, what must be named, which commands refuse it
    "nothing in it": (shutil.rmtree, "sweep.json", "summary"),
    "record is empty": (lambda f: (f / "sweep.json").write_text(""), "JSON", "both"),
    "record is cut": (lambda f: os.truncate(f / "sweep.json", 100), "JSON", "both"),
    "record is binary": (
        lambda f: (f / "sweep.json").write_bytes(b"\xff\xfe\x00"),
        "sweep.json",
        "both",
    ),
    "record is a folder": (lambda f: _replace_by_folder(f / "sweep.json"), "sweep.json", "both"),
    "record was edited": (lambda f: _record(f, seed=1), "edited by hand", "both"),
    "record of other rows": (lambda f: _record(f, rows=0), "version of the rows 0", "both"),
    "trials are a file": (
        lambda f: (shutil.rmtree(f / "trials"), (f / "trials").touch()),
        "trials",
        "both",
    ),
    "lock is a folder": (lambda f: _replace_by_folder(f / ".lock"), "good", "sweep"),
    "part is a folder": (lambda f: (f / "trials/odd.parquet").mkdir(), "odd.parquet", "both"),
}

ROOT_ONLY_CAN = os.geteuid() == 0 if hasattr(os, "geteuid") else False


@pytest.fixture
def folder(place: Path, good: Path) -> Path:
    """Copy a sweep with nothing wrong."""
    return Path(shutil.copytree(good, place / "good"))


@pytest.mark.parametrize(
    ("what", "command"),
    [
        (what, command)
        for what, (_, _, who) in DAMAGED.items()
        for command in ("sweep", "summary")
        if who in (command, "both")
    ],
)
def test_damaged_folder(
    what: str, command: str, folder: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, named, _ = DAMAGED[what]
    damage(folder)
    folder.mkdir(exist_ok=True)
    SMALL.save(place / "small.toml")
    arguments = {
        "sweep": ["sweep", "--instance", "small.toml", "--trials", "7", "--out"],
        "summary": ["summary"],
    }[command]
    refused_by_command([*arguments, str(folder)], named, place, capsys)


@pytest.mark.parametrize(
    "name",
    ["missing", "file.txt", "file.txt/below", "/dev/null", "/proc/self/mem", "folder", "x" * 5000],
    ids=lambda name: name[:20],
)
def test_what_is_no_folder_of_a_sweep(
    name: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused_by_command(["summary", name], name[:100], place, capsys)


@pytest.mark.skipif(ROOT_ONLY_CAN, reason="root may write everywhere")
@pytest.mark.parametrize("where", ["closed", "closed/results"])
def test_folder_that_may_not_be_written(
    place: Path, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "closed").mkdir(mode=0o500)
    status = cli.run(["sweep", "--out", where, "--trials", "3"])
    assert_one_line(status, capsys.readouterr(), "closed")


def test_folder_that_another_sweep_holds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fastfed.storage.folder import Store

    before = listing(folder)
    with Store(folder).lock():
        status = cli.run(
            ["sweep", "--spec", str(folder / "sweep.json"), "--out", str(folder), "--trials", "900"]
        )
    assert_one_line(status, capsys.readouterr(), "another sweep is writing here")
    assert listing(folder) == before


def test_trials_that_are_a_symbolic_link_are_not_written_through(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "x.parquet").write_text("foreign")
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "trials").symlink_to(elsewhere)
    for command in (
        ["sweep", "--trials", "2", "--out", str(linked)],
        ["merge", str(folder), "--out", str(linked)],
    ):
        assert cli.run(command) == 2
        assert "trials: a symbolic link" in capsys.readouterr().err
    with pytest.raises(ff.InputError, match="a symbolic link"):
        ff.simulate([[0.9], [0.1]], "fedelim", delta=0.1, trials=2, threads=1).save(linked)
    (folder / "figures").symlink_to(elsewhere)
    assert cli.run(["plot", str(folder)]) == 2
    assert "figures: a symbolic link" in capsys.readouterr().err
    assert [path.name for path in elsewhere.iterdir()] == ["x.parquet"]


@pytest.mark.parametrize("after", range(8))
@pytest.mark.usefixtures("small_parts")
def test_disk_that_is_full(
    place: Path, after: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills up at the first, second, ... file.

    No half of a file is left, and once there is room the same command goes on.
    """
    SMALL.save("small.toml")
    command = typed(
        "sweep --instance small.toml --delta 0.1,0.2 --trials 10 --threads 1 "
        "--schedule fedelim,fedelim0"
    )
    real, left = os.fsync, after

    def sync(number: int) -> None:
        nonlocal left
        if left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left -= 1
        real(number)

    monkeypatch.setattr(os, "fsync", sync)
    status = cli.run(command)
    assert_one_line(status, capsys.readouterr(), "No space left")
    assert list(place.rglob(".*.partial")) == []
    monkeypatch.setattr(os, "fsync", real)
    assert cli.run(command) == 0
    assert capsys.readouterr().err == ""
    assert cli.run(["summary", "results", "--format", "json"]) == 0
    assert {row["trials"] for row in json.loads(capsys.readouterr().out)} == {10}


def test_summary_file_that_holds_another_table(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["summary", str(folder)]) == 0
    shown = capsys.readouterr().out
    pq.write_table(pa.table({"a": [1, 2]}), folder / "summary.parquet")
    again = ["sweep", "--spec", str(folder / "sweep.json"), "--out"]
    for command in (["summary"], ["plot"], again):
        status = cli.run([*command, str(folder)])
        told = capsys.readouterr()
        assert (status, told.err) == (0, "")
        if command == ["summary"]:
            assert told.out == shown
