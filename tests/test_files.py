"""Files that appear whole or not at all, and reading that neither hangs nor follows a trap."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers import SMALL, refused, run

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.errors import InputError
from fastfed.files import checked_folder, read_regular, replacing, valid_unicode


def test_a_library_never_meets_the_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polars would tell of it in 68 lines."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)

    def write() -> None:
        with replacing(tmp_path / "x.parquet") as file:
            pl.DataFrame({"x": np.arange(10)}).write_parquet(file)

    refused(write, "x.parquet: cannot be written (No space left on device)")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_disk_that_is_really_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def into_full(path: object, flags: int, *rest: int) -> int:
        if str(path).endswith(".partial"):
            return real("/dev/full", os.O_WRONLY)
        return real(path, flags, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", into_full)

    def write() -> None:
        with replacing(tmp_path / "x") as file:
            file.write(b"x" * 100_000)

    refused(write, "No space left on device")


def test_two_writers_of_one_name_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with replacing(path) as one:
        one.write(b"one")
        with replacing(path) as other:
            other.write(b"other")
        assert path.read_bytes() == b"other"
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="needs flock")
def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """Also by names with brackets, and not what a living one is writing, or others made."""
    path = tmp_path / "x[1].html"
    killed = (
        "import os, sys; from pathlib import Path; from fastfed.files import replacing\n"
        "with replacing(Path(sys.argv[1]), lambda: os.kill(os.getpid(), 9)) as file: "
        "file.write(b'x')"
    )
    for _ in range(2):
        subprocess.run([sys.executable, "-c", killed, str(path)], check=False)
    others = [tmp_path / f".{name}.partial" for name in ("x[1].html", "x1.html.01234567")]
    for other in others:
        other.write_bytes(b"mine")
    left = {*tmp_path.iterdir()} - {*others}
    assert len(left) == 1, "the second has removed what the first left"

    def write_again() -> None:
        with replacing(path) as file:
            file.write(b"beside")
        assert left < {*tmp_path.iterdir()}, "a living process may be writing it"

    with replacing(tmp_path / "y", write_again) as file:
        file.write(b"y")
    with replacing(path) as file:
        file.write(b"alone")
    assert {*tmp_path.iterdir()} == {path, tmp_path / "y", *others}


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "x").symlink_to(precious)
    with replacing(tmp_path / "x") as file:
        file.write(b"new")
    assert precious.read_text() == "mine"
    assert (tmp_path / "x").read_bytes() == b"new"


def test_what_is_checked_last_can_stop_a_file(tmp_path: Path) -> None:
    def stop() -> None:
        assert len(list(tmp_path.iterdir())) == 1, "all is on the disk but the name"
        raise InputError("lost")

    def write() -> None:
        with replacing(tmp_path / "x", stop) as file:
            file.write(b"new")

    refused(write, "lost")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "a pipe or device, not a file"),
        (Path.mkdir, "a folder, not a file"),
        (lambda path: path.symlink_to("/dev/zero"), "a pipe or device"),
        (lambda path: path.write_bytes(b"x" * 11), "11 bytes, more than 10"),
    ],
)
def test_only_regular_files_are_read(tmp_path: Path, make: object, said: str) -> None:
    make(tmp_path / "x")  # type: ignore[operator]
    with pytest.raises(OSError, match=said):
        read_regular(tmp_path / "x", 10)


@pytest.mark.parametrize("out", ["", " ", "\t"])
def test_an_empty_folder_name_is_refused(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(lambda: run(out), "must have a name")  # type: ignore[arg-type]
    for command in (["sweep"], ["merge", "a"]):
        assert cli.run([*command, "--out", out]) == 2
        told = capsys.readouterr().err
        assert "must have a name" in told
        assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    assert checked_folder(".") == Path()


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names of any bytes")
def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    """They are names like others: parts are found again, nothing is put aside."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff"))
    folder.mkdir()
    SMALL.save(folder / "small.toml")
    odd = folder / os.fsdecode(b"b\xfe.toml")
    text = (folder / "small.toml").read_text(encoding="utf-8")
    odd.write_text(text.replace('name = "small"\n', ""), encoding="utf-8")  # the file's is taken
    for trials in (10, 20):
        ff.sweep(
            instances=[str(odd)],
            deltas=[0.1],
            schedules=["fedelim"],
            trials=trials,
            threads=1,
            out=folder / "results",
        )
    names = sorted(path.name for path in (folder / "results" / "trials").iterdir())
    assert len(names) == 2
    assert all(name.endswith(".parquet") for name in names)
    assert valid_unicode("b\udcfe") == r"b\udcfe"
    assert ff.check(folder / "results").frame["instance"].unique().to_list() == [r"b\udcfe"]
    refused(
        lambda: run(tmp_path / "x", instances=[ff.Instance(SMALL.means, name="\udcff")]),
        "not valid Unicode",
    )


def test_forty_thousand_names_are_compared_once() -> None:
    """Each with each would take minutes: 800 million comparisons."""
    code = (
        "import numpy as np, fastfed as ff\n"
        "means = np.linspace(0, 1, 40_000)[:, None]\n"
        "ff.Instance(means, arms=[f'arm {i}' for i in range(40_000)])\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    refused(lambda: ff.Instance([[1.0], [0.0], [0.5]], arms=["b", "a", "b"]), "'b' is given twice")
