"""Sweeps on a Dask cluster: addresses at which there is none, and other bad input."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from dask_sweeps import (
    GRID,
    OPTIONS,
    PATIENCE,
    left_sockets,  # noqa: F401
    one_line,
    only_new_garbage,  # noqa: F401
)

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.errors import InputError
from fastfed.sweeps import dask

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(
    "address",
    [
        "",
        "local",
        "local:",
        "local:4",
        "somewhere",
        "tcp://",
        "tcp://127.0.0.1",
        "http://127.0.0.1:8786",
        "tcp://127.0.0.1:x",
        "8786",
    ],
)
def test_bad_address(address: str, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["sweep", *GRID, "--out", str(out), "--dask", address]) == 2
    error = one_line(capsys.readouterr().err)
    assert f"Dask address {address!r}: must be a scheduler's, as in tcp://host:8786" in error
    assert not out.exists()


def test_nobody_at_the_address(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "_CONNECT_SECONDS", 0.3)
    assert cli.run(["sweep", *GRID, "--out", str(out), "--dask", "tcp://127.0.0.1:9"]) == 2
    assert "'tcp://127.0.0.1:9': no scheduler answers there" in one_line(capsys.readouterr().err)
    assert not out.exists()


def test_a_finished_sweep_asks_no_cluster(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = [*GRID[:-2], "3", "--quiet", "--out", str(out)]
    assert cli.run(["sweep", *few, "--threads", "1"]) == 0
    assert cli.run(["sweep", *few, "--dask", "tcp://127.0.0.1:9"]) == 0
    assert capsys.readouterr().err == ""


@contextlib.contextmanager
def server(reply: bytes | None) -> Iterator[int]:
    """Something that listens and is no scheduler: says nothing, or always the same."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        held = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    held.append(connection)
                    if reply is not None:
                        connection.sendall(reply)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        for connection in held:
            connection.close()


@pytest.mark.parametrize("scheme", ["tcp", "tls", "ucx", "ws"])
@pytest.mark.parametrize(
    "reply",
    [None, b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00" * 64, b"\xff" * 64],
    ids=["silent", "http", "zeros", "ones"],
)
def test_something_else_at_the_address(
    scheme: str,
    reply: bytes | None,
    out: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    garbled = scheme == "tcp" and reply is not None  # is noticed, so nobody need wait to the end
    monkeypatch.setattr(dask, "_CONNECT_SECONDS", PATIENCE if garbled else 1)
    with server(reply) as port:
        address = f"{scheme}://127.0.0.1:{port}"
        assert cli.run(["sweep", *GRID, "--out", str(out), "--dask", address]) == 2
    error = one_line(capsys.readouterr().err)
    assert f"Dask address '{address}': no scheduler answers there" in error
    assert ("tls needs certificates" in error) == (scheme == "tls")
    assert not out.exists()


def test_a_host_that_is_no_name(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "_CONNECT_SECONDS", 0.5)
    for address in (f"tcp://{'x' * 5000}:1", "tcp://[:::1", "tcp://\x1b[2J:1", "tcp://a..b:70000"):
        assert cli.run(["sweep", *GRID, "--out", str(out), "--dask", address]) == 2
        error = one_line(capsys.readouterr().err)
        assert "Dask address" in error
        assert len(error) < 400


def test_threads_or_dask(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sweep", *GRID, "--out", str(out), "--dask", "tcp://host:8786", "--threads", "2"]
    assert cli.run(arguments) == 2
    assert "--threads 2 with --dask tcp://host:8786" in one_line(capsys.readouterr().err)


def test_without_dask(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert cli.run(["sweep", *GRID, "--out", str(out), "--dask", "tcp://host:8786"]) == 2
    assert "pip install 'fastfed[dask]'" in one_line(capsys.readouterr().err)
    assert not out.exists()


def test_what_is_no_client(out: Path) -> None:
    with pytest.raises(InputError, match=r"must be a dask.distributed.Client"):
        ff.sweep(out=out, client=object(), **OPTIONS)


def test_threads_need_no_dask(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    ff.sweep(out=out, threads=1, **{**OPTIONS, "trials": 2})
