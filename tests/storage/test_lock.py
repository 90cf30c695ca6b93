"""One writer for a folder: who holds it is said, and its loss is noticed."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from helpers import SMALL, assert_whole, rows

import fastfed as ff
from fastfed.errors import InputError
from fastfed.storage.folder import Store
from fastfed.storage.lock import Lock
from fastfed.text import printable

ELSEWHERE = "process 4711 on elsewhere\nanother\n"


def tried(folder: Path) -> str:
    """Hold the folder for a moment; what was said if that was refused."""
    try:
        with Lock(folder):
            return ""
    except InputError as error:
        return str(error)


def test_who_holds_it_is_said(tmp_path: Path) -> None:
    with Lock(tmp_path):
        said = tried(tmp_path)
    assert f"another sweep is writing here (process {os.getpid()} on {socket.gethostname()}" in said
    assert list(tmp_path.iterdir()) == []
    assert tried(tmp_path) == ""


def test_a_file_system_without_flock_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    said = tried(tmp_path)
    assert "has no flock (No locks available)" in said
    assert "sweep into a folder on another disk" in said


def test_of_many_one_at_a_time_gets_it(tmp_path: Path) -> None:
    barrier = threading.Barrier(4)
    kept: list[tuple[float, float]] = []  # from when to when somebody was sure to hold it

    def contend(_: int) -> None:
        barrier.wait()
        with suppress(InputError), Lock(tmp_path) as mine:
            since = time.perf_counter()
            time.sleep(0.01)
            until = time.perf_counter()
            mine.check()  # it was held until then
            kept.append((since, until))

    for _ in range(20):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(contend, range(4)))
    for (_, end), (since, _) in pairwise(sorted(kept)):
        assert end <= since, "two at a time believed to hold it"
    assert len(kept) >= 20
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_process_left_is_no_reason_to_wait(tmp_path: Path) -> None:
    """A flock ends with its process, on this host or another."""
    (tmp_path / ".lock").write_text(ELSEWHERE)
    assert tried(tmp_path) == ""


@pytest.mark.parametrize("content", [b"", b"garbage", b"[]", b"\xff" * 100, b"[" * 5000])
def test_a_lock_file_that_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".lock").write_bytes(content)
    assert tried(tmp_path) == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"process \x1b[31m1\xff\nforged", r"(process \x1b[31m1�)"), (b"0" * 2000, "here; wait")],
)
def test_a_holder_that_forges_its_name(tmp_path: Path, content: bytes, said: str) -> None:
    with Lock(tmp_path):
        (tmp_path / ".lock").write_bytes(content)
        assert said in printable(tried(tmp_path))


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners of files")
def test_the_file_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".lock").write_text("theirs")
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert ".lock: belongs to another user; sweep into a folder of yours" in tried(tmp_path)
    assert (tmp_path / ".lock").read_text() == "theirs"


def test_a_symbolic_link_is_not_followed_and_its_target_not_emptied(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / ".lock").symlink_to(precious)
    assert "a symbolic link" in tried(tmp_path / "results")
    (tmp_path / "results" / ".lock").unlink()
    (tmp_path / "results" / ".lock").symlink_to(tmp_path / "nowhere")
    assert "a symbolic link" in tried(tmp_path / "results")
    assert precious.read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_a_hard_link_is_refused_and_the_other_file_stays(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    os.link(precious, tmp_path / "results" / ".lock")
    assert "a hard link; remove it" in tried(tmp_path / "results")
    assert precious.read_text() == "mine"


@pytest.mark.parametrize("loss", ["removed", "replaced", "overwritten"])
def test_a_lost_lock_stops_its_sweep_before_the_next_file(tmp_path: Path, loss: str) -> None:
    """Two sweeps that both believe to be alone would write the same trials twice."""
    out = tmp_path / "results"
    options = {
        "instances": [SMALL],
        "deltas": [0.1],
        "schedules": ["fedelim"],
        "trials": 60,
        "threads": 1,
        "out": out,
        "part_size": 10,
    }
    parts = ff.sweep_parts(**options)
    first = next(part for _, part in parts if part is not None)
    if loss == "overwritten":
        (out / ".lock").write_text(ELSEWHERE)
    else:
        (out / ".lock").unlink()
    if loss == "replaced":
        ff.sweep(**options)  # by somebody else, while the first still runs
    with pytest.raises(InputError, match=r"\.lock: was removed or taken"):
        for _ in parts:
            pass
    assert first.path.exists()
    assert list(out.rglob("*.partial")) == []
    (out / ".lock").unlink(missing_ok=True)
    ff.sweep(**options)
    assert_whole(rows(out), 1, 60)
    Store(out).verify()


def test_second_process_sees_a_live_owner_after_a_kill(tmp_path: Path) -> None:
    """A flock dies with its process, so the same command can be given again at once."""
    code = (
        "import os, signal, sys; from pathlib import Path; "
        "from fastfed.storage.lock import Lock; Lock(Path(sys.argv[1])).__enter__(); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert f" on {socket.gethostname()}" in (tmp_path / ".lock").read_text()
    assert tried(tmp_path) == ""
