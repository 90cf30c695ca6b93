"""sweep.json and the footers of parts, damaged in every way: one line, never a traceback."""

from __future__ import annotations

import copy
import io
import json
import os
import traceback
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from helpers import run, snapshot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastfed.cli import app as cli
from fastfed.errors import InputError
from fastfed.model.cell import Cell
from fastfed.model.choices import DEFAULTS
from fastfed.model.spec import spec_hash
from fastfed.storage import checked_parquet
from fastfed.storage.manifest import FORMAT, OLDEST_FORMAT, with_checksum
from fastfed.storage.summary_cache import stored_summary
from fastfed.version import OLDEST_ROWS, ROWS

CASES = int(os.environ.get("FASTFED_FUZZ", "150"))


@pytest.fixture(scope="module", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Thousands of files are written here, and none needs to survive a power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


def told(*command: str) -> tuple[int, str]:
    """Exit status and stderr of a command, which must raise and warn of nothing."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            status = cli.run(list(command))
        except Exception:
            raise AssertionError(traceback.format_exc()) from None
    return status, err.getvalue()


def record(folder: Path) -> dict[str, Any]:
    """Read the record without its checksum."""
    content: dict[str, Any] = json.loads((folder / "sweep.json").read_text())
    del content["checksum"]
    return content


def put_record(folder: Path, content: Any) -> None:
    """Write a record with its checksum: it can be changed."""
    text = json.dumps(content).encode()
    (folder / "sweep.json").write_bytes(with_checksum(text) if text.endswith(b"}") else text)


def first_part(folder: Path) -> Path:
    return min((folder / "trials").iterdir())


def footer(folder: Path) -> dict[str, Any]:
    about: dict[str, Any] = json.loads(checked_parquet.open_file(first_part(folder)).about)
    return about


def put_footer(folder: Path, about: bytes) -> None:
    """Write a whole part, with its checksum, that has another footer."""
    path = first_part(folder)
    checked_parquet.write(path, checked_parquet.encode(pq.read_table(path)), about)


def paths_in(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    found = [path] if path else []
    items = (
        content.items()
        if isinstance(content, dict)
        else (enumerate(content) if isinstance(content, list) else ())
    )
    for key, value in items:
        found += paths_in(value, (*path, key))
    return found


def changed(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Copy a record with another value at a place, or with nothing there."""
    whole = copy.deepcopy(content)
    inner = whole
    for key in path[:-1]:
        inner = inner[key]
    if value is MISSING:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    if isinstance(whole.get("spec"), dict) and path[0] == "spec":
        whole["spec_hash"] = spec_hash(whole["spec"])  # so that the change itself is looked at
    return whole


MISSING = object()
WRONG = [
    MISSING,
    None,
    True,
    -1,
    0,
    1.5,
    1e30,
    10**30,
    "",
    "x",
    "\x1b[31m\n",
    [],
    [None],
    {},
    {"x": 1},
    [[[]]],
]


def test_every_place_of_the_record_with_every_wrong_value(folder: Path) -> None:
    """Named in one line, or harmless: never a traceback, never another result."""
    good = record(folder)
    before = stored_summary(folder, [10.0])
    tried = refused = 0
    for path in paths_in(good):
        for value in WRONG:
            put_record(folder, changed(good, path, value))
            tried += 1
            try:
                assert stored_summary(folder, [10.0]).equals(before), (path, value)
            except InputError as error:
                refused += 1
                assert str(error).count("\n") == 0, (path, value)  # noqa: PT017
    assert tried > 500
    assert refused > 0.6 * tried


def test_every_place_of_a_footer_with_every_wrong_value(folder: Path) -> None:
    about = footer(folder)
    content, before = first_part(folder).read_bytes(), stored_summary(folder, [10.0])
    tried = refused = 0
    for path in paths_in(about):
        for value in WRONG[:: 1 if len(path) < 2 else 3]:
            first_part(folder).write_bytes(content)
            put_footer(folder, json.dumps(changed(about, path, value)).encode())
            tried += 1
            try:
                assert stored_summary(folder, [10.0]).equals(before), (path, value)
            except InputError as error:
                refused += 1
                assert str(error).count("\n") == 0, (path, value)  # noqa: PT017
    assert tried > 200
    assert refused > 0.6 * tried


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": FORMAT + 97}, "newer fastfed"),
        ({"rows": ROWS + 1}, "newer fastfed"),
        ({"format": OLDEST_FORMAT - 1}, "older fastfed"),
        ({"rows": OLDEST_ROWS - 1}, "older fastfed"),
    ],
)
def test_other_versions_are_called_so_and_left_alone(
    folder: Path, change: dict[str, int], said: str
) -> None:
    put_footer(folder, json.dumps({**footer(folder), **change}).encode())
    before = snapshot(folder)
    sweep = ["sweep", "--spec", str(folder / "sweep.json"), "--out", str(folder), "--quiet"]
    for command in (["summary", str(folder)], sweep):
        status, err = told(*command)
        assert (status, err.count("\n")) == (2, 1)
        assert said in err
        assert "move it away" not in err
    put_record(folder, {**record(folder), **change})
    for command in (
        ["summary", str(folder)],
        ["check", str(folder)],
        ["merge", str(folder), "--out", f"{folder}2"],
    ):
        status, err = told(*command)
        assert (status, err.count("\n")) == (2, 1)
        assert said in err
        assert "move it away" not in err
    assert {**snapshot(folder), "sweep.json": b""} == {**before, "sweep.json": b""}


def test_what_a_file_says_cannot_write_on_the_terminal(folder: Path) -> None:
    about = footer(folder)
    cells = {"count": 1, "columns": {"\x1b[31m\n\x1e": 1}}
    put_footer(folder, json.dumps({**about, "cells": cells}).encode())
    status, err = told("summary", str(folder))
    assert (status, err.count("\n")) == (2, 1)
    assert "\x1b" not in err
    assert r"\x1b[31m\n\x1e" in err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        "\x00",
        "[" * 100_000,
        "{}",
        '{"format": 2}',
        '{"format": "2", "rows": 2}',
    ],
)
def test_a_record_that_is_none_says_how_to_mend_it(folder: Path, text: str) -> None:
    (folder / "sweep.json").write_text(text)
    status, err = told("summary", str(folder))
    assert (status, err.count("\n")) == (2, 1)
    assert "sweep.json" in err
    assert "move it away" in err
    (folder / "sweep.json").unlink()
    assert run(folder).height == 4


def test_ids_of_cells_outlive_new_fields() -> None:
    """A field with its default is no part of the id: adding one changes no older cell."""
    cell = Cell("small", "0" * 64, 0.1, 1.0, 0, "skip")
    assert cell == Cell("small", "0" * 64, 0.1, 1.0, 0, "skip", None, **DEFAULTS)
    ids = {cell.id} | {replace(cell, **{name: "other"}).id for name in ("radius", "goal", "uplink")}
    assert len(ids) == 4


# A fuzz: any JSON anywhere


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(-1e30, 1e30)
    | st.text(max_size=8)
    | st.sampled_from([0.1, "fedelim", "periodic:0", "skip", "exact", "NaN", 2**64]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(
    max_examples=CASES,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_fuzz_of_record_and_footers(folder: Path, data: st.DataObject) -> None:
    """Some places of sweep.json or of a footer hold anything.

    The exit status is 0 or 2, with one line. There is no traceback and no warning.
    """
    original = {path: path.read_bytes() for path in (folder / "sweep.json", first_part(folder))}
    in_record = data.draw(st.booleans())
    content = record(folder) if in_record else footer(folder)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(paths_in(content)))
        content = changed(content, path, data.draw(JSON | st.just(MISSING)))
        if not paths_in(content):
            break
    text = json.dumps(content).encode()
    try:
        if in_record:
            put_record(folder, content)
        elif isinstance(content, dict):
            put_footer(folder, text)
        status, err = told("summary", str(folder), "--format", "json")
        assert (status, len(err.splitlines())) in ((0, 0), (2, 1))
        assert err == "" or err.startswith("fastfed: ")
    finally:
        for path, before in original.items():
            path.write_bytes(before)
