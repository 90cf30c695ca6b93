"""Sweeps on a Dask cluster: the same rows, whatever happens to the cluster."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import polars as pl
import pytest
from dask import config as dask_config
from dask_sweeps import (
    GRID,
    OPTIONS,
    PATIENCE,
    TRIALS,
    cluster_elsewhere,
    collect_sockets,
    left_sockets,  # noqa: F401
    one_line,
    only_new_garbage,  # noqa: F401
)
from distributed import Client, LocalCluster, Security
from helpers import SMALL, rows

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.errors import InputError
from fastfed.model.schedules import FedElim
from fastfed.model.setting import Setting
from fastfed.storage.folder import Store
from fastfed.sweeps import dask
from fastfed.sweeps.planner import Planner
from fastfed.sweeps.task import Task

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).resolve().parents[2]
engine = importlib.import_module("fastfed.sweeps.run")
api = importlib.import_module("fastfed.api.sweep")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """Return the rows that threads give."""
    out = tmp_path_factory.mktemp("threads") / "results"
    ff.sweep(out=out, threads=2, **OPTIONS)
    return rows(out)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    """Two processes; what a test does to them it undoes."""
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
        ) as local,
        Client(local, set_as_default=False) as client,
    ):
        yield client
    collect_sockets()


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty parts, whatever the speed."""
    monkeypatch.setitem(api.SWEEP, "part_size", 100)


# The same rows


def test_threads_a_cluster_and_shards_give_the_same_rows(
    tmp_path: Path, expected: pl.DataFrame, cluster: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    address = cluster.scheduler.address
    assert cli.run(["sweep", *GRID[:-1], "--out", str(tmp_path / "dask"), "--dask", address]) == 0
    assert f"Dask at {address}, 2 worker threads" in one_line(capsys.readouterr().err)
    shards = [str(tmp_path / f"shard-{i}") for i in range(1, 5)]
    for i, shard in enumerate(shards, 1):
        assert cli.run(["sweep", *GRID, "--out", shard, "--shard", f"{i}/4"]) == 0
    assert cli.run(["merge", *shards, "--out", str(tmp_path / "merged")]) == 0
    assert rows(tmp_path / "dask").equals(expected)
    assert rows(tmp_path / "merged").equals(expected)


def test_tls_with_certificates_of_the_configuration(out: Path, expected: pl.DataFrame) -> None:
    keys = Security.temporary()
    names = {"ca-file": "ca_file", "client.cert": "client_cert", "client.key": "client_key"}
    config = {
        f"distributed.comm.tls.{name}": getattr(keys, f"tls_{attribute}")
        for name, attribute in names.items()
    }
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        host="127.0.0.1",
        security=keys,
        dashboard_address="127.0.0.1:0",
        memory_limit=0,
    ) as local:
        address = local.scheduler_address
        assert address.startswith("tls://")
        with dask_config.set(config):
            assert cli.run(["sweep", *GRID, "--out", str(out), "--dask", address]) == 0
    assert rows(out).equals(expected)


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


def pids(cluster: Client) -> list[int]:
    """Return the processes of the workers that answer."""
    replies = cluster.run(os.getpid, on_error="return").values()
    return [reply for reply in replies if isinstance(reply, int)]


@pytest.mark.usefixtures("small_parts")
def test_a_worker_killed_in_mid_sweep(cluster: Client, out: Path, expected: pl.DataFrame) -> None:
    victim = min(pids(cluster))
    parts = ff.sweep_parts(out=out, client=cluster, **OPTIONS)
    while next(parts)[1] is None:
        pass
    os.kill(victim, signal.SIGKILL)
    list(parts)
    assert rows(out).equals(expected)
    patience = time.monotonic() + PATIENCE
    while victim in (alive := pids(cluster)) or len(alive) < 2:
        assert time.monotonic() < patience, f"{alive}: {victim} was killed"
        time.sleep(0.05)


@pytest.mark.usefixtures("small_parts")
def test_the_scheduler_killed_in_mid_sweep(
    tmp_path: Path,
    out: Path,
    expected: pl.DataFrame,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with cluster_elsewhere(tmp_path) as (address, scheduler):
        real = Planner.record

        def record(planner: Planner, done: dask.Done) -> None:
            """Kill it when three parts are written: no clock decides how far the sweep gets."""
            real(planner, done)
            if len(list(out.glob("trials/*.parquet"))) == 3:
                scheduler.kill()
                scheduler.wait()

        with monkeypatch.context() as patch:
            patch.setattr(Planner, "record", record)
            status = cli.run(["sweep", *GRID, "--out", str(out), "--dask", address])
    assert status == 2
    assert f"Dask scheduler {address}: connection lost; finished parts are kept" in one_line(
        capfd.readouterr().err
    )
    held = Store(out)
    assert 0 < len(held.parts()) < 40
    held.verify()
    assert cli.run(["sweep", *GRID, "--out", str(out), "--threads", "2"]) == 0
    assert {part.path for part in held.parts()} <= {part.path for part in Store(out).parts()}
    assert rows(out).equals(expected)


def spoil(name: str, value: Any) -> None:
    """On a worker: fail where trial 500 of delta 0.01 is asked for, or be whole again."""
    from fastfed.sweeps import task as tasks

    real = getattr(tasks, "real_compute", tasks.compute)
    tasks.real_compute = real  # type: ignore[attr-defined]

    def compute(task: tasks.Task, control: Any = None) -> Any:
        if task.setting.delta == 0.01 and task.first == 500:
            raise ZeroDivisionError("no luck")
        return real(task, control)

    tasks.compute = compute if value else real


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
    assert f"Dask worker {stranger} has numba 0.0, this client has {numba.__version__}" in one_line(
        capsys.readouterr().err
    )
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


# Who is waited for


def test_it_is_said_what_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """First there is no worker, then one that has paused because its memory is full."""
    monkeypatch.setattr(dask, "_QUIET_SECONDS", 0.2)

    def heard(client: Client) -> str:
        said: list[str] = []
        run = dask.Dask(client, said.append).run(Endless())
        while len(said) < 2:
            next(run)
        run.close()
        assert said[1].startswith("no result for ")
        return said[1]

    with (
        LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            host="127.0.0.1",
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
        ) as local,
        Client(local, set_as_default=False) as client,
    ):
        assert "the cluster has no worker" in heard(client)
        local.scale(1)
        client.wait_for_workers(1)
        client.run(pause)
        while {one["status"] for one in client.scheduler_info()["workers"].values()} != {"paused"}:
            time.sleep(0.01)
        assert "waiting for tasks on 1 workers, of which 1 are paused" in heard(client)


class Endless:
    """A plan with one task, which no worker gets to."""

    def __init__(self) -> None:
        self.asked = 0

    def next_bundle(self, workers: int) -> dask.Bundle | None:
        self.asked += 1
        task = Task(Setting.of(SMALL, delta=0.1), (FedElim(),), 0, 1)
        return dask.Bundle((task,), 1.0) if self.asked == 1 else None

    def record(self, done: dask.Done) -> None:
        raise AssertionError("nothing is done")


def pause(dask_worker: Any) -> None:
    from distributed.core import Status

    dask_worker.status = Status.paused


def test_a_dashboard_or_a_worker_at_the_address(
    cluster: Client, out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "_CONNECT_SECONDS", 2)
    port = urllib.parse.urlparse(cluster.dashboard_link).port
    for address in (f"tcp://127.0.0.1:{port}", min(cluster.nthreads())):
        assert cli.run(["sweep", *GRID, "--out", str(out), "--dask", address]) == 2
        assert f"Dask address '{address}': " in one_line(capsys.readouterr().err)
