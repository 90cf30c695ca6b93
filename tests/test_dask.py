"""Sweeps on a Dask cluster: the same rows, whatever happens to the cluster."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import polars as pl
import pytest
from distributed import Client, LocalCluster
from helpers import rows

import fastfed as ff
from fastfed import cli
from fastfed.errors import InputError
from fastfed.sweeps import dask
from fastfed.sweeps.store import Store

ROOT = Path(__file__).resolve().parents[1]
engine = importlib.import_module("fastfed.sweeps.run")  # `fastfed.sweep` itself is the function
TRIALS = 2_000
GRID = ["--instance", "random:3,2,1", "--delta", "0.1,0.01", "--schedule", "fedelim,fedelim0",
        "--trials", str(TRIALS), "--quiet"]
OPTIONS: dict[str, Any] = {
    "instances": "random:3,2,1", "deltas": [0.1, 0.01], "schedules": ["fedelim", "fedelim0"],
    "trials": TRIALS,
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """The rows that threads give."""
    out = tmp_path_factory.mktemp("threads") / "results"
    ff.sweep(out=out, threads=2, **OPTIONS)
    return rows(out)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    """Two processes; what a test does to them it undoes."""
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
                      dashboard_address="127.0.0.1:0", memory_limit=0) as local, Client(
                          local, set_as_default=False) as client:
        yield client


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty parts, whatever the speed."""
    monkeypatch.setattr(engine._Planner, "_size", lambda self, instance, workers: 100)


def one_line(error: str) -> str:
    assert error.startswith("fastfed: ")
    assert error.count("\n") == 1
    return error


# The same rows


def test_threads_a_local_cluster_and_shards_give_the_same_rows(
    tmp_path: Path, expected: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["sweep", *GRID[:-1], "--out", str(tmp_path / "dask"), "--dask", "local:3"]) == 0
    error = one_line(capsys.readouterr().err)
    assert "3 worker threads" in error
    assert "dashboard: http://127.0.0.1:" in error
    shards = [str(tmp_path / f"shard-{i}") for i in range(1, 5)]
    for i, shard in enumerate(shards, 1):
        assert cli.run(["sweep", *GRID, "--out", shard, "--shard", f"{i}/4"]) == 0
    assert cli.run(["merge", *shards, "--out", str(tmp_path / "merged")]) == 0
    assert rows(tmp_path / "dask").equals(expected)
    assert rows(tmp_path / "merged").equals(expected)


def test_workers_of_a_local_cluster_leave_ctrl_c_to_their_master() -> None:
    """A terminal sends it to all of them; who dies of it fills the screen with its traceback."""
    with dask._connected("local:1") as client:
        ignored = client.run(lambda: signal.getsignal(signal.SIGINT) is signal.SIG_IGN)
    assert list(ignored.values()) == [True]


@pytest.mark.usefixtures("small_parts")
def test_any_client_with_few_tasks_in_flight(
    cluster: Client, out: Path, expected: pl.DataFrame
) -> None:
    parts, in_flight = 0, 0
    for run, part in ff.sweep_parts(out=out, client=cluster, **OPTIONS):
        parts += part is not None
        in_flight = max(in_flight, run.progress.in_flight)
    assert parts == 40
    assert in_flight <= 2 * 2
    assert run.progress.workers == 2
    assert (run.progress.in_flight, run.progress.trials_done) == (0, 2 * TRIALS)
    assert rows(out).equals(expected)


def test_a_target_is_reached_with_the_same_rows(cluster: Client, tmp_path: Path) -> None:
    options = {**OPTIONS, "target_rse": 0.012}
    ff.sweep(out=tmp_path / "threads", threads=2, **options)
    ff.sweep(out=tmp_path / "dask", client=cluster, **options)
    assert rows(tmp_path / "threads").equals(rows(tmp_path / "dask"))


# What may happen to a cluster


@pytest.mark.usefixtures("small_parts")
def test_a_worker_killed_in_mid_sweep(cluster: Client, out: Path, expected: pl.DataFrame) -> None:
    victim = min(cluster.run(os.getpid).values())
    parts = ff.sweep_parts(out=out, client=cluster, **OPTIONS)
    while next(parts)[1] is None:
        pass
    os.kill(victim, signal.SIGKILL)
    list(parts)
    assert rows(out).equals(expected)
    cluster.wait_for_workers(2)
    assert victim not in cluster.run(os.getpid).values()


CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=2, processes=True, host="127.0.0.1",
                      dashboard_address="127.0.0.1:0", memory_limit=0) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@pytest.mark.usefixtures("small_parts")
def test_the_scheduler_killed_in_mid_sweep(
    tmp_path: Path, out: Path, expected: pl.DataFrame, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "cluster.py"
    script.write_text(CLUSTER)
    with subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}) as scheduler:
        assert scheduler.stdout is not None
        address = scheduler.stdout.readline().strip()

        def kill() -> None:
            until = time.monotonic() + 60
            while not list(out.glob("trials/*.parquet")) and time.monotonic() < until:
                time.sleep(0.01)
            scheduler.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        status = cli.run(["sweep", *GRID, "--out", str(out), "--dask", address])
        killer.join()
    assert status == 2
    assert f"Dask scheduler {address}: connection lost; finished parts are kept" in one_line(
        capfd.readouterr().err)
    held = Store(out)
    assert 0 < len(held.parts()) < 40
    assert held.unreadable == []
    assert cli.run(["sweep", *GRID, "--out", str(out), "--threads", "2"]) == 0
    assert {part.path for part in held.parts()} <= {part.path for part in Store(out).parts()}
    assert rows(out).equals(expected)


def spoil(name: str, value: Any) -> None:
    """On a worker: fail where trial 500 of delta 0.01 is asked for, or be whole again."""
    from fastfed.sweeps import dask

    real = getattr(dask, "real_compute", dask.compute)
    dask.real_compute = real  # type: ignore[attr-defined]

    def compute(task: dask.Task, control: Any = None) -> tuple[bytes, int]:
        if task.cell.delta == 0.01 and task.first == 500:
            raise ZeroDivisionError("no luck")
        return real(task, control)

    dask.compute = compute if value else real


@pytest.mark.usefixtures("small_parts")
def test_a_task_that_raises_is_named_and_the_rest_goes_on(
    cluster: Client, out: Path, expected: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["sweep", *GRID, "--out", str(out), "--dask", cluster.scheduler.address]
    cluster.run(spoil, "compute", True)
    try:
        assert cli.run(arguments) == 1
    finally:
        cluster.run(spoil, "compute", False)
    error = one_line(capsys.readouterr().err)
    assert "delta 0.01" in error
    assert "trials 500 to 599: ZeroDivisionError: no luck; see it again with: fastfed" in error
    lacking = (pl.col("delta") == 0.01) & pl.col("trial").is_between(500, 599)
    assert rows(out).equals(expected.filter(~lacking))
    assert cli.run(arguments) == 0
    assert rows(out).equals(expected)


# Who may compute


def pretend(version: str) -> None:
    import numba

    numba.__version__ = version


def hide(hidden: bool) -> None:
    """On a worker: as if fastfed were not installed, or as if it were."""
    modules: Any = sys.modules
    for name in [name for name in modules if name.partition(".")[0] == "fastfed"]:
        del modules[name]
    if hidden:
        modules["fastfed"] = None


def test_a_worker_with_another_version_is_refused_by_name(
    cluster: Client, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stranger = min(cluster.nthreads())
    cluster.run(pretend, "0.0", workers=[stranger])
    try:
        status = cli.run(["sweep", *GRID, "--out", str(out), "--dask", cluster.scheduler.address])
    finally:
        cluster.run(pretend, numba.__version__, workers=[stranger])
    assert status == 2
    assert (f"Dask worker {stranger} has numba 0.0, this client has {numba.__version__}"
            in one_line(capsys.readouterr().err))
    assert Store(out).parts() == []


def test_a_worker_without_fastfed_is_refused_by_name(cluster: Client, out: Path) -> None:
    stranger = min(cluster.nthreads())
    cluster.run(hide, True, workers=[stranger])
    try:
        with pytest.raises(InputError, match=f"Dask worker {stranger} has fastfed none"):
            ff.sweep(out=out, client=cluster, **OPTIONS)
    finally:
        cluster.run(hide, False, workers=[stranger])


@pytest.mark.usefixtures("small_parts")
def test_rows_of_a_worker_that_changed_since_are_refused(cluster: Client, out: Path) -> None:
    parts = ff.sweep_parts(out=out, client=cluster, **OPTIONS)
    while next(parts)[1] is None:
        pass
    cluster.run(pretend, "0.0")
    try:
        with pytest.raises(InputError, match=r"has numba 0\.0"):
            list(parts)
    finally:
        cluster.run(pretend, numba.__version__)
    assert 0 < len(Store(out).parts()) < 40


# Bad input


@pytest.mark.parametrize("address", ["", "local", "local:", "local:0", "local:-1", "local:x",
                                     "local:1.5", "somewhere", "tcp://", "tcp://127.0.0.1",
                                     "http://127.0.0.1:8786", "tcp://127.0.0.1:x", "8786"])
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


def test_threads_or_dask(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sweep", *GRID, "--out", str(out), "--dask", "local:2", "--threads", "2"]
    assert cli.run(arguments) == 2
    assert "--threads 2 with --dask local:2" in one_line(capsys.readouterr().err)


def test_without_dask(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert cli.run(["sweep", *GRID, "--out", str(out), "--dask", "local:2"]) == 2
    assert "pip install 'fastfed[dask]'" in one_line(capsys.readouterr().err)


def test_what_is_no_client(out: Path) -> None:
    with pytest.raises(InputError, match=r"must be a dask.distributed.Client"):
        ff.sweep(out=out, client=object(), **OPTIONS)


def test_threads_need_no_dask(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    ff.sweep(out=out, threads=1, **{**OPTIONS, "trials": 2})
