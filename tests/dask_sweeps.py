"""A small sweep on a Dask cluster, for several files of tests."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers import typed

TRIALS = 2_000
GRID = typed(
    "--instance random:3,2,1 --delta 0.1,0.01 --schedule fedelim,fedelim0 --trials "
    f"{TRIALS} --quiet"
)
OPTIONS: dict[str, Any] = {
    "instances": "random:3,2,1",
    "deltas": [0.1, 0.01],
    "schedules": ["fedelim", "fedelim0"],
    "trials": TRIALS,
}
PATIENCE = 120  # seconds for what must succeed, also on a machine that has much else to do

CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=2, processes=True, host="127.0.0.1",
                      dashboard_address="127.0.0.1:0", memory_limit=0) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@contextmanager
def cluster_elsewhere(
    folder: Path, modules: Path | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run a cluster in a process of its own, which may know further modules; yield its address."""
    script = folder / "cluster.py"
    script.write_text(CLUSTER)
    root = Path(__file__).resolve().parents[1]
    path = os.pathsep.join(map(str, filter(None, (root, modules))))
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process


def collect_sockets() -> None:
    """Collect the sockets that Dask leaves to the garbage collector.

    The collector is called where its warnings do no harm: in a later test they would be errors.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module", autouse=True)
def only_new_garbage() -> Iterator[None]:
    """Look for garbage only among what the tests of a file make.

    A process that has compiled kernels holds so much that looking at all of it takes 0.7 seconds.
    """
    gc.freeze()
    yield
    gc.unfreeze()
    collect_sockets()


@pytest.fixture(autouse=True)
def left_sockets(only_new_garbage: None) -> Iterator[None]:
    """Collect the sockets of failed connections after every test."""
    yield
    collect_sockets()


def one_line(error: str) -> str:
    assert error.startswith("fastfed: ")
    assert error.count("\n") == 1
    return error
