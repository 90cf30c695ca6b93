"""A sweep's folder: parts are complete or absent, and it says what is missing."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastfed.analysis.trials import samples
from fastfed.errors import InputError
from fastfed.files import replacing
from fastfed.model.cell import Cell
from fastfed.model.spec import spec_hash
from fastfed.storage import checked_parquet
from fastfed.storage.folder import Store
from fastfed.storage.manifest import FORMAT, Index, Piece, versions
from fastfed.version import OLDEST_ROWS, ROWS

ROOT = Path(__file__).resolve().parents[2]
CELL = Cell("small", "0" * 64, 0.1, 1.0, 0, "skip", None)


def table(schedules: tuple[str, ...], first: int, count: int) -> pa.Table:
    """Rows as an executor hands them over; pulls tell the trial and the schedule."""
    trial = np.tile(np.arange(first, first + count), len(schedules))
    return pa.table(
        {
            "schedule": np.repeat(schedules, count),
            "trial": trial,
            "pulls": trial * 10 + np.repeat(np.arange(len(schedules)), count),
            "uplinks": trial + 1,
            "bits": 64 * (trial + 1),
            "rounds": trial + 2,
            "steps": trial + 3,
            "correct": trial % 2 == 0,
            "truncated": trial < 0,
            "skip_error": trial * 1e-12,
        }
    )


def add(
    store: Store,
    first: int,
    count: int,
    schedules: tuple[str, ...] = ("fedelim",),
    cell: Cell = CELL,
) -> Path:
    rows = checked_parquet.encode(table(schedules, first, count))
    return store.write_part([Piece(cell, schedules, first, count)], rows).path


def about(path: Path) -> dict[str, Any]:
    """Return the index of a part."""
    found: dict[str, Any] = json.loads(checked_parquet.open_file(path).about)
    return found


def pieces(store: Store) -> list[Piece]:
    return [piece for part in store.parts() for piece in part.pieces]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "results")
    made.trials.mkdir(parents=True)
    return made


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob(".*"))


# Parts


def test_a_part_is_found_again(store: Store) -> None:
    both = ("fedelim", "fedelim0")
    path = add(store, 20, 5, both)
    assert pieces(Store(store.folder)) == pieces(store) == [Piece(CELL, both, 20, 5)]
    assert path.parent == store.trials
    assert hidden(store.folder) == []


def test_a_part_says_what_made_it(store: Store) -> None:
    found = about(add(store, 0, 3))
    assert (found["format"], found["rows"]) == (FORMAT, ROWS)
    assert found["versions"] == versions()
    assert {"fastfed", "python", "numba", "numpy", "polars", "pyarrow"} <= set(versions())
    assert msgspec.convert(found, Index).cells.cells() == [CELL]


def test_pieces_of_many_cells_share_a_file(store: Store) -> None:
    """They are read back piece by piece, by the row groups that have them alone."""
    cells = [replace(CELL, delta=0.1 / (1 + at)) for at in range(300)]
    names = [("fedelim",) if at % 3 else ("fedelim", "fedelim0") for at in range(300)]
    given = [Piece(cell, names[at], at, 200 + at) for at, cell in enumerate(cells)]
    rows = pa.concat_tables([table(one.schedules, one.first, one.count) for one in given])
    path = store.write_part(given, checked_parquet.encode(rows)).path
    again = Store(store.folder)
    assert pieces(again) == given
    size = path.stat().st_size
    assert len(about(path)["cells"]["columns"]) < 8  # those that differ, and no defaults
    read = []
    real = checked_parquet._verify
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checked_parquet, "_verify", lambda *a: read.append(a[2]) or real(*a))
        for one in given[::50]:
            read.clear()
            found = samples(again.batches(one.cell, one.schedules), one.schedules[-1])
            assert found["trial"].tolist() == [*range(one.first, one.end)]
            assert len(read) <= 2
    assert rows.num_rows > 3 * checked_parquet.GROUP_ROWS
    # a damaged row group is noticed by those whose rows it has, and by no others
    content = bytearray(path.read_bytes())
    content[size // 100] ^= 1
    path.write_bytes(content)
    again = Store(store.folder)
    assert len(samples(again.batches(cells[-1], ["fedelim"]), "fedelim")["trial"]) == 499
    with pytest.raises(InputError, match=f"{path.name}: damaged"):
        list(again.batches(cells[0], ["fedelim"]))


def test_a_part_has_the_version_of_its_folder(store: Store, two_parts: Path) -> None:
    """As in a folder of an older version that is merged."""
    store.write_record(msgspec.structs.replace(Store(two_parts).record(), rows=OLDEST_ROWS))
    assert about(add(store, 3, 3))["rows"] == OLDEST_ROWS


def test_a_part_is_zstd_in_row_groups(store: Store) -> None:
    found = pq.read_metadata(add(store, 0, 20_000, ("fedelim", "fedelim0", "periodic:5")))
    assert [found.row_group(g).num_rows for g in range(2)] == [32_768, 60_000 - 32_768]
    assert {
        found.row_group(g).column(c).compression for g in range(2) for c in range(found.num_columns)
    } == {"ZSTD"}


def test_hash_of_a_spec_does_not_depend_on_its_order() -> None:
    assert spec_hash({"a": 1, "b": 2}) == spec_hash({"b": 2, "a": 1})
    assert spec_hash({"a": 1}) != spec_hash({"a": 2})


def test_different_cells_have_different_names() -> None:
    others = {
        "instance": "other",
        "digest": "1" * 64,
        "delta": 0.1000001,
        "sigma": 1.0000001,
        "seed": 1,
        "engine": "dense",
        "max_steps": 10,
    }
    names = {replace(CELL, **{field: value}).id for field, value in others.items()}
    assert len({CELL.id, *names}) == 1 + len(others)


def test_name_of_a_cell_is_a_file_name() -> None:
    odd = replace(CELL, instance="../random:3,4,5 é\n" + "x" * 300)
    assert "/" not in odd.id
    assert odd.id.isascii()
    assert len(odd.id) < 100


def test_schedules_of_one_range_do_not_overwrite_each_other(store: Store) -> None:
    assert add(store, 0, 5, ("fedelim",)) != add(store, 0, 5, ("fedelim0",))
    assert len(Store(store.folder).parts()) == 2


def test_failure_while_writing_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(_: int) -> None:
        raise RuntimeError("half way")

    monkeypatch.setattr(os, "fsync", half)
    with pytest.raises(RuntimeError, match="half way"):
        add(store, 0, 5)
    assert list(store.trials.iterdir()) == []


def test_full_disk_is_bad_luck_told_in_one_line(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"small-.*parquet: cannot be written \(No space left"):
        add(store, 0, 5)
    assert list(store.trials.iterdir()) == []


def test_failure_keeps_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "sweep.json"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with replacing(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert hidden(tmp_path) == []
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_replacing_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    below = replacing(tmp_path / "file" / "sweep.json")
    with pytest.raises(InputError, match="cannot be written"), below as file:
        file.write(b"x")


def test_a_file_is_synced_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, bool]] = []
    path = tmp_path / "part.parquet"
    real_sync, real_replace = os.fsync, os.replace

    def sync(number: int) -> None:
        seen.append(("sync", path.exists()))
        real_sync(number)

    def rename(*names: object) -> None:
        seen.append(("rename", path.exists()))
        real_replace(*names)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    with replacing(path) as file:
        file.write(b"x" * 100_000)
    names = [name for name, _ in seen]
    assert names[0] == "sync"
    assert not seen[0][1]
    assert "rename" not in names or names.index("rename") == 1
    assert names[-1] == "sync", "the folder too"


# What is missing


@pytest.mark.parametrize("seed", range(10))
def test_missing_ranges_against_sets(store: Store, seed: int) -> None:
    rng = np.random.default_rng(seed)
    held: set[int] = set()
    for _ in range(int(rng.integers(0, 9))):
        first, count = int(rng.integers(0, 40)), int(rng.integers(1, 12))
        if held.isdisjoint(range(first, first + count)):
            add(store, first, count)
            held.update(range(first, first + count))
    missing = store.missing(CELL, ["fedelim"], 0, 40)
    assert Store(store.folder).missing(CELL, ["fedelim"], 0, 40) == missing
    gaps = next(iter(missing), ())
    found = [trial for first, end in gaps for trial in range(first, end)]
    assert found == sorted(set(range(40)) - held)
    assert all(end < first for (_, end), (first, _) in pairwise(gaps))


def test_missing_looks_at_one_cell_and_one_schedule(store: Store) -> None:
    other = replace(CELL, delta=0.01)
    add(store, 0, 10, ("fedelim", "periodic:5"))
    add(store, 0, 4, ("fedelim0",))
    names = ["periodic:5", "fedelim0", "periodic:50", "periodic:51"]
    assert store.missing(CELL, names, 0, 10) == {
        ((4, 10),): ["fedelim0"],
        ((0, 10),): ["periodic:50", "periodic:51"],
    }
    assert store.missing(other, ["fedelim"], 3, 10) == {((3, 10),): ["fedelim"]}


def test_samples_are_in_order_and_once(store: Store) -> None:
    both = ("fedelim", "fedelim0")
    for first, count in ((9, 3), (0, 3), (3, 6)):
        add(store, first, count, both)
    found = samples(store.batches(CELL, ["fedelim0"]), "fedelim0")
    assert found["trial"].tolist() == list(range(12))
    assert found["pulls"].tolist() == [10 * trial + 1 for trial in range(12)]
    assert found["correct"].tolist() == [trial % 2 == 0 for trial in range(12)]
    assert samples(store.batches(CELL, ["fedelim"], until=7), "fedelim")["trial"].tolist() == list(
        range(7)
    )
    assert len(samples(store.batches(CELL, ["periodic:5"]), "periodic:5")["trial"]) == 0


# Parts that are none


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def halve(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garbage(path: Path) -> None:
    path.write_bytes(np.random.default_rng(0).bytes(3000))


def text(path: Path) -> None:
    path.write_text("trial,pulls\n0,10\n")


def foreign(path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2, 3]}), path)


def test_a_trial_in_two_parts_is_refused_with_both_names(store: Store) -> None:
    add(store, 0, 10)
    add(store, 10, 10, ("fedelim0",))  # another schedule
    one, other = add(store, 10, 10), add(store, 19, 3, ("fedelim", "periodic:5"))
    with pytest.raises(InputError, match="both have trials 19 to 19") as told:
        Store(store.folder).parts()
    assert one.name in str(told.value)
    assert other.name in str(told.value)
    other.unlink()
    assert len(Store(store.folder).parts()) == 3


def _with_about(path: Path, index: bytes) -> None:
    """Write a whole file, with its checksum, that has another index."""
    checked_parquet.write(path, checked_parquet.encode(pq.read_table(path)), index)


def other_json(path: Path) -> None:
    _with_about(path, b"[1, 2]")


def _edited(path: Path, **changes: object) -> None:
    _with_about(path, json.dumps({**about(path), **changes}).encode())


def other_version(path: Path) -> None:
    _edited(path, rows=ROWS + 1)


def other_format(path: Path) -> None:
    _edited(path, format=99)


def other_count(path: Path) -> None:
    _edited(path, pieces=[[0, 0, 5, 40_000]])


def no_cell(path: Path) -> None:
    _edited(path, cells={"count": 1, "columns": {"instance": "small"}})


DAMAGE = [
    truncate,
    halve,
    empty,
    garbage,
    text,
    foreign,
    other_json,
    other_version,
    other_format,
    other_count,
    no_cell,
]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_a_part_that_is_none_is_refused_by_name(
    store: Store, damage: Callable[[Path], None]
) -> None:
    add(store, 0, 5)
    bad = add(store, 5, 5)
    damage(bad)
    with pytest.raises(InputError, match=bad.name) as told:
        Store(store.folder).parts()
    other = damage in (other_version, other_format)
    assert ("written by a newer fastfed" in str(told.value)) == other
    assert ("move it away" in str(told.value)) != other


def test_truncated_anywhere(store: Store) -> None:
    path = add(store, 0, 5)
    content = path.read_bytes()
    for length in np.random.default_rng(0).integers(0, len(content), 40):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match=path.name):
            Store(store.folder).parts()


def test_partial_files_are_no_parts(store: Store) -> None:
    path = add(store, 0, 5)
    path.rename(path.with_name(f".{path.name}.partial"))
    assert Store(store.folder).parts() == []


# The record


def test_record_absent(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no sweep\.json in it"):
        Store(tmp_path).record()
    with pytest.raises(InputError, match="no such folder"):
        Store(tmp_path / "nowhere").record()
    assert not (tmp_path / "nowhere").exists()


# The lock


def test_a_second_writer_does_no_harm(store: Store) -> None:
    """It must not clean up after a run that is alive."""
    with store.lock():
        alive = store.trials / ".small.parquet.0123abcd.partial"
        alive.write_bytes(b"being written")
        with (
            pytest.raises(InputError, match="another sweep is writing here"),
            Store(store.folder).lock(),
        ):
            pass
        assert alive.read_bytes() == b"being written"


def test_lock_cleans_up_after_killed_runs(store: Store) -> None:
    left = [
        store.folder / ".sweep.json.0123abcd.partial",
        store.folder / ".summary.parquet.0123abcd.partial",
        store.trials / ".a.parquet.0123abcd.partial",
    ]
    kept = [
        store.folder / "notes.partial",
        store.trials / "mine.txt",
        store.folder / ".hidden",
        store.folder / ".download.partial",
        store.folder / ".config" / ".download.partial",
        store.folder / ".a.parquet.0123abcd.partial",
        store.folder / "nested" / "trials" / ".a.parquet.0123abcd.partial",
        store.trials / "below" / ".a.parquet.0123abcd.partial",
    ]
    for path in (*left, *kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    part = add(store, 0, 5)
    digest = hashlib.sha256(part.read_bytes()).digest()
    with store.lock():
        assert [path for path in left if path.exists()] == []
        assert [path for path in kept if not path.exists()] == []
    assert hashlib.sha256(part.read_bytes()).digest() == digest


def test_lock_makes_the_folder(tmp_path: Path) -> None:
    store = Store(tmp_path / "a" / "b")
    with store.lock():
        assert store.trials.is_dir()


@pytest.mark.parametrize("where", ["file", "file/below", "file/below/deep"])
def test_lock_where_no_folder_can_be(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="file"), Store(tmp_path / where).lock():
        pass
    assert (tmp_path / "file").read_text() == "mine"
