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
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import SMALL, Call, refused, rows, run, snapshot, typed

import fastfed as ff
from fastfed.analysis.trials import samples
from fastfed.cli import app as cli
from fastfed.errors import InputError
from fastfed.storage import checked_parquet
from fastfed.storage.folder import Store
from fastfed.storage.summary_cache import stored_summary


def parts(folder: Path) -> list[Path]:
    return sorted((folder / "trials").glob("*.parquet"))


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
        try:
            Store(folder).verify()
        except InputError as error:
            assert path.name in str(error)  # noqa: PT017
        else:
            silent.append(bit)
    assert silent == []
    path.write_bytes(content)
    Store(folder).verify()


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


def sweep_again(folder: Path) -> list[str]:
    return typed(f"sweep --spec {folder}/sweep.json --out {folder} --quiet --threads 1")


def questions(folder: Path) -> list[list[str]]:
    """Return commands that read a folder."""
    return [
        ["summary", str(folder)],
        ["check", str(folder)],
        ["best", str(folder)],
        ["plot", str(folder)],
        ["report", str(folder)],
        ["replay", str(folder), "--wrong"],
        ["merge", str(folder), "--out", f"{folder}2"],
        sweep_again(folder),
    ]


def test_a_damaged_part_is_refused_until_it_is_moved_away(
    folder: Path, calls: list[Call], capsys: pytest.CaptureFixture[str]
) -> None:
    path, whole = parts(folder)[0], rows(folder)
    path.write_bytes(flipped(path.read_bytes(), 1000))
    before = snapshot(folder)
    for command in (*questions(folder), ["merge", f"{folder}2", "--out", str(folder)]):
        if command[1] == f"{folder}2":
            run(Path(command[1]))
        assert cli.run(command) == 2, command
        told = capsys.readouterr()
        assert told.err == (
            f"fastfed: {path}: damaged (its content does not fit its checksum); move it away, and "
            "the same sweep makes it again\n"
        )
        assert told.out == ""
        assert snapshot(folder) == before
    path.unlink()
    assert cli.run(["summary", str(folder), "--format", "json"]) == 0
    assert {row["trials"] for row in json.loads(capsys.readouterr().out)} == {10}
    calls.clear()
    assert cli.run(sweep_again(folder)) == 0
    assert calls == [("small", 0.1, ("fedelim", "fedelim0"), 0, 10)]
    assert rows(folder).equals(whole)


def test_a_part_with_an_instance_of_a_million_clients_is_read(tmp_path: Path) -> None:
    """Arrow reads no text of more than 100 MB by itself, but an index may be as long."""
    about = json.dumps("x" * 100_000_001).encode()
    rows = checked_parquet.encode(pa.table({"trial": [0]}))
    made = checked_parquet.write(tmp_path / "part.parquet", rows, about)
    assert checked_parquet.open_file(tmp_path / "part.parquet") == made


# Parts that cannot be read, or are none


def unreadable(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Deny the permission to read, also to root."""
    real = os.open

    def denied(name: object, *rest: object, **more: object) -> int:
        if Path(os.fspath(name)) == path:  # type: ignore[call-overload]
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", denied)


def test_denied_permission_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, before = parts(folder)[0], snapshot(folder)
    unreadable(monkeypatch, path)
    for command in questions(folder):
        assert cli.run(command) == 2
        told = capsys.readouterr().err
        assert told == f"fastfed: {path}: cannot be read (Permission denied)\n"
    monkeypatch.undo()
    assert snapshot(folder) == before


def test_denied_folder_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", denied)
    with pytest.raises(InputError, match=r"trials: cannot be read \(Permission denied\)"):
        Store(folder).parts()


@pytest.mark.parametrize("name", ["trials/pipe.parquet", "sweep.json", "summary.parquet", ".lock"])
def test_pipes_do_not_make_us_wait(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    status = cli.run(["summary", str(folder)])
    assert status == (2 if name in ("trials/pipe.parquet", "sweep.json") else 0)
    again = cli.run([*sweep_again(folder), "--trials", "30"])
    assert again == (0 if name == "summary.parquet" else 2)
    told = capsys.readouterr().err
    assert name == "summary.parquet" or str(folder / name) in told


def test_a_huge_sparse_file_is_not_read(folder: Path) -> None:
    path = folder / "trials" / "huge.parquet"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(InputError, match=r"huge\.parquet: .*1,099,511,627,776 bytes"):
        Store(folder).parts()


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
def test_trials_other_than_the_index_says_do_not_count(
    folder: Path, change: Callable[[pa.Table], pa.Table]
) -> None:
    path = parts(folder)[0]
    rewritten(path, change)
    with pytest.raises(InputError, match=f"{path.name}: damaged"):
        stored_summary(folder)


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
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            refused(lambda: stored_summary(folder), "damaged (")
        path.write_bytes(content)


def test_a_record_beyond_the_limit_is_not_read(folder: Path) -> None:
    with (folder / "sweep.json").open("r+b") as file:
        file.truncate(2**31)
    with pytest.raises(InputError, match=r"2,147,483,648 bytes, more than 268,435,456"):
        Store(folder).record()


# Parts in the wrong place


def test_a_part_of_another_sweep_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "other", seed=1)
    stray = parts(tmp_path / "other")[0]
    shutil.copy(stray, folder / "trials")
    before = snapshot(folder)
    for command in questions(folder):
        assert cli.run(command) == 2
        told = capsys.readouterr().err
        assert f"{folder}/trials/{stray.name}: rows of another sweep" in told
        assert "seed 1" in told
        assert told.count("\n") == 1
    assert snapshot(folder) == before


def test_a_renamed_part_counts_and_is_not_overwritten(folder: Path, calls: list[Call]) -> None:
    """The part of trials 0 to 9 under the name of 10 to 19, whose own is lost."""
    whole = rows(folder)
    first, second = parts(folder)
    second.unlink()
    content = first.read_bytes()
    first.rename(second)
    calls.clear()
    assert cli.run(sweep_again(folder)) == 0
    assert calls == [("small", 0.1, ("fedelim", "fedelim0"), 10, 20)]
    assert second.read_bytes() == content
    assert rows(folder).equals(whole)


def test_a_copy_of_a_part_is_refused_with_both_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, before = parts(folder)[0], snapshot(folder)
    copy = Path(shutil.copy(first, folder / "trials" / "z.parquet"))
    for command in questions(folder):
        assert cli.run(command) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert first.name in told
        assert "z.parquet: both have trials 0 to 9 of small" in told
    copy.unlink()
    assert snapshot(folder) == before


# The size of things


def test_a_part_is_read_once_for_all_its_schedules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing grows with the square of the number of schedules."""
    run(tmp_path / "results", periods=list(range(2, 40)))
    read: list[Path] = []
    real = checked_parquet.read_group

    def counted(opened: checked_parquet.Opened, *what: Any) -> pa.Table:
        read.append(opened.path)
        return real(opened, *what)

    monkeypatch.setattr(checked_parquet, "read_group", counted)
    (tmp_path / "results" / "summary.parquet").unlink()
    stored_summary(tmp_path / "results")
    assert len([path for path in read if path.parent.name == "trials"]) == 1


def test_batches_are_aligned_and_follow_the_parts(tmp_path: Path) -> None:
    out = tmp_path / "results"
    run(out, schedules=["fedelim"], trials=20, part_size=8)
    run(out, schedules=["fedelim0"], trials=30, part_size=10)
    store = Store(out)
    (cell,) = store.held()
    seen: dict[str, list[int]] = {"fedelim": [], "fedelim0": []}
    batches = list(store.batches(cell, ["fedelim", "fedelim0"], ["trial", "pulls"]))
    assert [len(batch["fedelim0"]["trial"]) for batch in batches] == [8, 2, 6, 4, 10]
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
    assert [len(columns["trial"]) for columns in cut] == [10, 3]
    assert np.concatenate([columns["trial"] for columns in cut]).tolist() == list(range(13))
