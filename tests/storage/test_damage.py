"""Files that went bad: no flipped bit, lost byte or misplaced part changes a result silently."""

from __future__ import annotations

import errno
import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import SMALL, Call, rows, run, snapshot, typed

import fastfed as ff
from fastfed.analysis.trials import samples
from fastfed.cli import app as cli
from fastfed.errors import InputError
from fastfed.storage import checked_parquet
from fastfed.storage.folder import Store
from fastfed.storage.merge import merge
from fastfed.storage.summary_cache import stored_summary


def parts(folder: Path) -> list[Path]:
    return sorted((folder / "trials").glob("*.parquet"))


def again(folder: Path, trials: int = 20) -> int:
    return cli.run(
        [
            "sweep",
            "--spec",
            str(folder / "sweep.json"),
            *typed(f"--out {folder} --quiet --threads 1 --trials {trials}"),
        ]
    )


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


# Flipped bits


def test_no_flipped_bit_of_a_part_is_silent(folder: Path) -> None:
    """500 seeded bits: 250 in the pages, 250 in the index, the footer and the bytes after it."""
    path = parts(folder)[0]
    content = path.read_bytes()
    footer = checked_parquet.open_file(path).groups[-1].end
    rng = np.random.default_rng(13)
    bits = [*rng.integers(0, 8 * footer, 250), *rng.integers(8 * footer, 8 * len(content), 250)]
    silent = []
    for bit in map(int, bits):
        path.write_bytes(flipped(content, bit))
        store = Store(folder)
        store.verify()
        if [problem.path for problem in store.problems()] != [path] or len(store.parts()) != 1:
            silent.append(bit)
    assert silent == []
    path.write_bytes(content)
    assert Store(folder).problems() == []


def test_every_flipped_bit_is_seen_between_two_reads(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes that are used are those that were verified, also when a file rots later on.

    They stay in memory, or are verified again where they are too many.
    """
    path = parts(folder)[0]
    content = path.read_bytes()
    held = Store(folder)
    (cell,) = held.held()
    whole = samples(held.batches(cell, ["fedelim"]), "fedelim")
    monkeypatch.setattr("fastfed.storage.folder._MOST_HELD", 0)
    store = Store(folder)
    store.parts()
    path.write_bytes(flipped(content, 8 * len(content) // 2))
    found = samples(held.batches(cell, ["fedelim"]), "fedelim")
    assert all(np.array_equal(found[name], whole[name]) for name in whole)
    for bit in map(int, np.random.default_rng(5).integers(0, 8 * len(content), 50)):
        path.write_bytes(flipped(content, bit))
        with pytest.raises(InputError, match=r"parquet: (damaged|not a file|changed while)"):
            list(store.batches(cell, ["fedelim"]))


def test_flipped_bits_of_the_summary_are_mended_from_the_rows(folder: Path) -> None:
    path = folder / "summary.parquet"
    content, summary = path.read_bytes(), stored_summary(folder)
    for bit in map(int, np.random.default_rng(6).integers(0, 8 * len(content), 60)):
        path.write_bytes(flipped(content, bit))
        assert stored_summary(folder).equals(summary)


def test_every_flipped_bit_of_the_record_is_refused(folder: Path) -> None:
    path = folder / "sweep.json"
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), 29):
        path.write_bytes(flipped(content, bit))
        with pytest.raises(InputError, match=r"sweep\.json: "):
            Store(folder).record()


def test_pages_have_checksums_for_other_readers(folder: Path) -> None:
    """Arrow itself notices, without our checksum: 20 bits in the pages of the column of pulls."""
    path = parts(folder)[0]
    group = pq.read_metadata(path).row_group(0)
    names = [group.column(i).path_in_schema for i in range(group.num_columns)]
    column = group.column(names.index("pulls"))
    content = path.read_bytes()
    last = column.data_page_offset + column.total_compressed_size
    noticed = 0
    for byte in range(last - 20, last):
        changed = pa.BufferReader(flipped(content, 8 * byte))
        try:
            pq.read_table(changed, columns=["pulls"], page_checksum_verification=True)
        except OSError as error:
            noticed += "CRC" in str(error)
    assert noticed == 20


@pytest.mark.parametrize("command", ["summary", "check", "plot", "report"])
def test_a_damaged_part_is_named_by_whoever_reads(
    folder: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = parts(folder)[0]
    path.write_bytes(flipped(path.read_bytes(), 1000))
    before = snapshot(folder)
    costs = [] if command == "report" else ["--cost", "10"]
    assert cli.run([command, str(folder), *costs]) == 1
    told = capsys.readouterr()
    assert told.err == f"fastfed: {path}: damaged (its content does not fit its checksum)\n"
    assert told.out
    assert before.items() <= snapshot(folder).items()
    if command == "summary":
        assert cli.run([command, str(folder), "--format", "json"]) == 1
        assert {row["trials"] for row in json.loads(capsys.readouterr().out)} == {10}


def test_a_damaged_part_is_put_aside_and_done_again(
    folder: Path, calls: list[Call], capsys: pytest.CaptureFixture[str]
) -> None:
    whole, path = rows(folder), parts(folder)[1]
    for turn in (1, 2):
        bad = flipped(path.read_bytes(), 3000 + turn)
        path.write_bytes(bad)
        calls.clear()
        assert again(folder) == 0
        assert calls == [("small", 0.1, ("fedelim", "fedelim0"), 10, 20)]
        assert str(path) in capsys.readouterr().err
        assert rows(folder).equals(whole)
        aside = path.with_name(path.name + (".damaged" if turn == 1 else "-2.damaged"))
        assert aside.read_bytes() == bad, "nothing is lost, nor overwritten"
        assert again(folder) == 0
        assert capsys.readouterr().err == ""


def test_a_part_with_an_instance_of_a_million_clients_is_read(tmp_path: Path) -> None:
    """Arrow reads no text of more than 100 MB by itself, but an index may be as long."""
    about = json.dumps("x" * 100_000_001).encode()
    rows = checked_parquet.encode(pa.table({"trial": [0]}))
    made = checked_parquet.write(tmp_path / "part.parquet", rows, about)
    assert checked_parquet.open_file(tmp_path / "part.parquet") == made


def test_plain_readers_read_parts(folder: Path) -> None:
    import duckdb
    import pandas as pd

    pattern = str(folder / "trials" / "*.parquet")
    assert pl.scan_parquet(pattern).filter(pl.col("trial") >= 5).collect().height == 30
    assert duckdb.sql(f"select count(*) from '{pattern}' where trial >= 5").fetchall() == [(30,)]
    assert sum(len(pd.read_parquet(path)) for path in parts(folder)) == 40


# Parts that cannot be read, or are none


def unreadable(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Deny the permission to read, also to root."""
    real = os.open

    def denied(name: object, *rest: object, **more: object) -> int:
        if Path(os.fspath(name)) == path:  # type: ignore[call-overload]
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", denied)


def test_denied_permission_is_told_and_nothing_is_moved(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, before = parts(folder)[0], snapshot(folder)
    unreadable(monkeypatch, path)
    for command, status in (
        (["summary", str(folder)], 1),
        (["check", str(folder)], 1),
        (["sweep", "--spec", str(folder / "sweep.json"), "--out", str(folder), "--quiet"], 2),
    ):
        assert cli.run(command) == status
        told = capsys.readouterr().err
        assert told == f"fastfed: {path}: cannot be read (Permission denied)\n"
    monkeypatch.undo()
    assert snapshot(folder) == before


def test_denied_folder_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(InputError, match=r"trials: cannot be read \(Permission denied\)"):
        Store(folder).parts()


@pytest.mark.parametrize("name", ["trials/pipe.parquet", "sweep.json", "summary.parquet", ".lock"])
def test_pipes_do_not_make_us_wait(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    status = cli.run(["summary", str(folder)])
    assert status == {"trials/pipe.parquet": 1, "sweep.json": 2}.get(name, 0)
    assert again(folder, 30) in ((0,) if name == "summary.parquet" else (2,))
    told = capsys.readouterr().err
    assert name == "summary.parquet" or str(folder / name) in told


def test_a_huge_sparse_file_is_not_read(folder: Path) -> None:
    path = folder / "trials" / "huge.parquet"
    with path.open("wb") as file:
        file.truncate(2**40)
    (problem,) = Store(folder).problems()
    assert "1,099,511,627,776 bytes" in str(problem)


def rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Write a whole file, with its checksum, that has other rows under the same footer."""
    encoded = checked_parquet.encode(change(pq.read_table(path)))
    checked_parquet.write(path, encoded, checked_parquet.open_file(path).about)


def with_column(table: pa.Table, name: str, values: np.ndarray) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), pa.array(values))


@pytest.mark.parametrize(
    "change",
    [
        lambda t: with_column(t, "trial", np.tile([*range(9), 8], 2)),
        lambda t: with_column(t, "trial", np.tile(np.arange(10, 20), 2)),
        lambda t: t.drop_columns(["trial"]),
        lambda t: t.slice(0, 19),
        lambda t: pa.concat_tables([t, t]),
    ],
    ids=["twice", "others", "no trials", "short", "long"],
)
def test_trials_other_than_the_footer_says_do_not_count(
    folder: Path, change: Callable[[pa.Table], pa.Table], capsys: pytest.CaptureFixture[str]
) -> None:
    whole, path = rows(folder), parts(folder)[0]
    rewritten(path, change)
    store = Store(folder)
    store.verify()
    assert [problem.path for problem in store.problems()] == [path]
    (cell,) = store.held()
    assert store.missing(cell, ["fedelim"], 0, 20) == {((0, 10),): ["fedelim"]}
    assert again(folder) == 0
    assert rows(folder).equals(whole)


@pytest.mark.parametrize("column", ["pulls", "uplinks", "trial", "correct"])
def test_forged_columns_are_refused_without_a_warning(column: str, folder: Path) -> None:
    """NaN where whole numbers belong: of another type, or as values that are not there."""
    count = pq.read_table(parts(folder)[0]).num_rows
    forged = (pa.array(np.full(count, np.nan)), pa.nulls(count))
    for values in forged:
        path = parts(folder)[0]
        content = path.read_bytes()

        def change(table: pa.Table, values: pa.Array = values) -> pa.Table:
            at = table.schema.get_field_index(column)
            kind = values.type if values.null_count == 0 else table.schema.field(at).type
            return table.set_column(at, column, values.cast(kind))

        rewritten(path, change)
        store = Store(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            stored_summary(store)
            assert "damaged (" in str(store.problems()[0])
        path.write_bytes(content)


def test_a_record_beyond_the_limit_is_not_read(folder: Path) -> None:
    with (folder / "sweep.json").open("r+b") as file:
        file.truncate(2**31)
    with pytest.raises(InputError, match=r"2,147,483,648 bytes, more than 268,435,456"):
        Store(folder).record()


# Parts in the wrong place


def test_a_part_of_another_sweep_under_its_own_name_is_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "other", seed=1)
    stray = parts(tmp_path / "other")[0]
    summary = stored_summary(folder)
    shutil.copy(stray, folder / "trials")
    assert stored_summary(folder).equals(summary)
    assert cli.run(["summary", str(folder)]) == 1
    told = capsys.readouterr().err
    assert f"{folder}/trials/{stray.name}: rows of another sweep" in told
    assert "seed 1" in told
    assert again(folder) == 2
    assert (folder / "trials" / stray.name).exists()


def test_a_renamed_part_counts_and_is_not_overwritten(folder: Path, calls: list[Call]) -> None:
    """The part of trials 0 to 9 under the name of 10 to 19, whose own is lost."""
    whole = rows(folder)
    first, second = parts(folder)
    second.unlink()
    content = first.read_bytes()
    first.rename(second)
    calls.clear()
    assert again(folder) == 0
    assert calls == [("small", 0.1, ("fedelim", "fedelim0"), 10, 20)]
    assert second.read_bytes() == content
    assert rows(folder).equals(whole)


def test_a_copy_of_a_part_is_refused_with_both_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, before = parts(folder)[0], snapshot(folder)
    copy = Path(shutil.copy(first, folder / "trials" / "z.parquet"))
    spec = str(folder / "sweep.json")
    for command in (
        ["summary", str(folder), "--cost", "7"],
        ["sweep", "--spec", spec, "--out", str(folder), "--quiet"],
        ["merge", str(folder), "--out", f"{folder}2"],
    ):
        assert cli.run(command) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert first.name in told
        assert "z.parquet: both have trials 0 to 9 of small" in told
    copy.unlink()
    assert snapshot(folder) == before


@pytest.fixture
def overlapping(folder: Path, tmp_path: Path) -> Path:
    """Trials 8 to 15 and 16 to 19 in the folder "rest", in parts of 8."""
    run(tmp_path / "rest", part_size=8)
    parts(tmp_path / "rest")[0].unlink()
    parts(folder)[1].unlink()
    return folder


def test_merge_takes_the_rest_of_an_overlapping_part(
    overlapping: Path, two_parts: Path, tmp_path: Path
) -> None:
    merged = merge([tmp_path / "rest"], overlapping)
    assert merged.missing == 0
    assert rows(overlapping).equals(rows(two_parts))
    assert Store(overlapping).problems() == []


def test_nothing_but_damaged_parts_and_no_record(folder: Path, tmp_path: Path) -> None:
    """There is nothing to go by: the sweep is done again, and nothing is lost."""
    whole = rows(folder)
    shutil.copy(folder / "sweep.json", tmp_path / "spec.json")
    (folder / "sweep.json").unlink()
    for path in parts(folder):
        path.write_bytes(b"")
    assert cli.run(["summary", str(folder)]) == 2
    assert (
        cli.run(
            [
                "sweep",
                "--spec",
                str(tmp_path / "spec.json"),
                "--out",
                str(folder),
                "--quiet",
                "--threads",
                "1",
            ]
        )
        == 0
    )
    assert rows(folder).equals(whole)
    assert len(list((folder / "trials").glob("*.damaged"))) == 2


# Merging


def test_merge_deletes_nothing(
    folder: Path,
    two_parts: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, (first, second) = rows(folder), parts(folder)
    bad = first.read_bytes()[:-30]
    first.write_bytes(bad)
    assert cli.run(["merge", str(two_parts), "--out", str(folder)]) == 1
    assert f"fastfed: {first}: damaged" in capsys.readouterr().err
    assert first.with_name(f"{first.name}.damaged").read_bytes() == bad
    assert rows(folder).equals(whole)
    with monkeypatch.context() as patch:
        unreadable(patch, second)
        assert cli.run(["merge", str(two_parts), "--out", str(folder)]) == 2
    assert f"{second}: cannot be read (Permission denied)" in capsys.readouterr().err
    assert second.exists()


def test_merge_leaves_damaged_parts_of_its_sources_out(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = parts(folder)[0]
    path.write_bytes(flipped(path.read_bytes(), 2000))
    merged = merge([folder], tmp_path / "all")
    assert len(merged.left_out) == 1
    assert str(path) in merged.left_out[0]
    assert merged.missing == 20
    assert rows(tmp_path / "all").height == 20


# The size of things


def test_a_part_is_read_once_for_all_its_schedules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing grows with the square of the number of schedules."""
    run(tmp_path / "results", periods=list(range(2, 40)))
    read: list[Path] = []
    real = checked_parquet._pages

    def counted(file: Any, opened: checked_parquet.Opened, number: int) -> tuple[int, bytes]:
        read.append(opened.path)
        return real(file, opened, number)

    monkeypatch.setattr(checked_parquet, "_pages", counted)
    (tmp_path / "results" / "summary.parquet").unlink()
    stored_summary(tmp_path / "results")
    assert len([path for path in read if path.parent.name == "trials"]) == 1


@pytest.mark.parametrize(
    ("most", "lengths", "until"), [(1, [8, 2, 6, 4, 10], [10, 3]), (2**16, [20, 10], [13])]
)
def test_batches_are_aligned_and_follow_the_parts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    lengths: list[int],
    until: list[int],
) -> None:
    monkeypatch.setattr("fastfed.storage.folder._BATCH_ROWS", most)
    out = tmp_path / "results"
    run(out, schedules=["fedelim"], trials=20, part_size=8)
    run(out, schedules=["fedelim0"], trials=30, part_size=10)
    store = Store(out)
    (cell,) = store.held()
    seen: dict[str, list[int]] = {"fedelim": [], "fedelim0": []}
    batches = list(store.batches(cell, ["fedelim", "fedelim0"], ["trial", "pulls"]))
    assert [len(batch["fedelim0"]["trial"]) for batch in batches] == lengths
    for batch in batches:
        trials = [columns["trial"].tolist() for columns in batch.values()]
        assert all(one == trials[0] for one in trials), "the same trials for every schedule"
        for name, columns in batch.items():
            seen[name] += columns["pulls"].tolist()
    for name, count in (("fedelim", 20), ("fedelim0", 30)):
        assert (
            seen[name]
            == ff.simulate(SMALL, name, delta=0.1, trials=count, threads=1).frame["pulls"].to_list()
        )
    cut = [batch["fedelim0"] for batch in store.batches(cell, ["fedelim0"], ["trial"], until=13)]
    assert [len(columns["trial"]) for columns in cut] == until
    assert np.concatenate([columns["trial"] for columns in cut]).tolist() == list(range(13))
