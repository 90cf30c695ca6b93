"""Sweeps on the workers of a Dask cluster. The only module that knows Dask."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from queue import Empty, SimpleQueue
from typing import Any

from fastfed.errors import InputError
from fastfed.sweeps.executors import Done, Plan, Task, compute

_AHEAD = 2  # tasks in flight for each thread of the cluster: one runs, one waits on its worker
_LOOK_SECONDS = 2.0  # between looks at who is in the cluster
_CONNECT_SECONDS = 10  # after which a scheduler that does not answer is given up


class Dask:
    """The workers of a Dask cluster, a task for each of their threads. They need no shared disk:
    rows come back to this client, which alone knows the folder.

    ``cluster`` is a `distributed.Client`, or an address for a client that lives as long as the
    run: a scheduler's, as in tcp://host:8786, or local:4 for a cluster of four processes here.
    ``say`` is told once how things stand, with the dashboard's link.
    """

    workers = 0

    def __init__(self, cluster: Any, say: Callable[[str], object] = lambda line: None) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise InputError("Dask is not installed: pip install 'fastfed[dask]'") from None
        if isinstance(cluster, str):
            _checked_address(cluster)
        elif not isinstance(cluster, Client) or cluster.asynchronous:
            raise InputError(f"client = {cluster!r}: must be a dask.distributed.Client that is not "
                             "asynchronous")
        self._cluster, self._say = cluster, say
        self._known: set[str] = set()

    def run(self, plan: Plan) -> Iterator[Done | None]:
        with _connected(self._cluster) as client:
            self._scheduler = client.scheduler.address
            self._look(client)
            shown = "dashboard" in client.scheduler_info().get("services", {})
            self._say(f"Dask at {self._scheduler}, {self.workers} worker threads"
                      f"{'' if self.workers else ' (waiting for the first)'}, "
                      f"dashboard: {client.dashboard_link if shown else 'none'}")
            started: dict[str, tuple[Any, Task]] = {}
            try:
                yield from self._feed(client, plan, started)
            finally:
                for future, _ in started.values():
                    future.release()  # the scheduler forgets what nobody waits for

    def _feed(
        self, client: Any, plan: Plan, started: dict[str, tuple[Any, Task]]
    ) -> Iterator[Done | None]:
        finished: SimpleQueue[Any] = SimpleQueue()
        looked = time.monotonic()
        while True:
            if time.monotonic() - looked > _LOOK_SECONDS:
                self._look(client)
                looked = time.monotonic()
            # with no worker at all a task still waits: clusters that adapt start workers for it
            while len(started) < max(1, _AHEAD * self.workers):
                task = plan.next_task(max(1, self.workers))
                if task is None:
                    break
                future = client.submit(_on_worker, task, pure=False)
                started[future.key] = future, task
                future.add_done_callback(finished.put)
            if not started:
                return
            try:
                future = finished.get(timeout=0.1)
            except Empty:
                if client.status != "running":
                    raise _lost(self._scheduler) from None
                yield None
                continue
            done = _collect(future, started.pop(future.key)[1], self._scheduler)
            future.release()
            plan.record(done)
            yield done

    def _look(self, client: Any) -> None:
        """Count the worker threads; refuse workers that would compute other rows."""
        try:
            threads = client.nthreads()
            new = [address for address in threads if address not in self._known]
            replies = client.run(_asking(), workers=new, on_error="return") if new else {}
        except Exception:
            raise _lost(self._scheduler) from None
        for address, theirs in replies.items():
            if not isinstance(theirs, OSError):  # else it has gone since
                _refuse_stranger(address, theirs)
        self._known.update(new)
        self.workers = sum(threads.values())


def _checked_address(address: str) -> None:
    kind, _, count = address.partition(":")
    if kind == "local" and re.fullmatch("[1-9][0-9]{0,3}", count):
        return
    if not re.fullmatch(r"(tcp|tls|ws|wss|ucx)://[^/\s]+:[0-9]+/?", address):
        raise InputError(f"Dask address {address!r}: must be a scheduler's, as in "
                         "tcp://host:8786, or local:4 for four worker processes here")


@contextmanager
def _connected(cluster: Any) -> Iterator[Any]:
    """A client of the cluster; one that was made for an address is closed again."""
    if not isinstance(cluster, str):
        yield cluster
        return
    import logging
    import os

    from distributed import Client, LocalCluster

    for name in ("distributed", "distributed.client"):  # what matters is raised, in one line
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        where = cluster
        if cluster.startswith("local:"):
            # after Ctrl-C nobody needs to hear that the cluster's semaphores were still there
            quiet = "ignore::UserWarning:multiprocessing.resource_tracker"
            os.environ["PYTHONWARNINGS"] = ",".join(
                filter(None, (os.environ.get("PYTHONWARNINGS"), quiet)))
            where = stack.enter_context(LocalCluster(
                n_workers=int(cluster.removeprefix("local:")), threads_per_worker=1,
                processes=True, memory_limit=0, dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                # a terminal's Ctrl-C reaches the workers too: it is this process that ends them
                preload="import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
            ))
        try:
            client = stack.enter_context(
                Client(where, timeout=_CONNECT_SECONDS, set_as_default=False))
        except (OSError, ValueError) as error:
            raise InputError(f"Dask address {cluster!r}: no scheduler answers there "
                             f"({type(error).__name__})") from None
        try:
            yield client
        except KeyboardInterrupt:
            stack.pop_all()  # closing would wait for tasks, and all ends with this process anyway
            raise


def _on_worker(task: Task) -> tuple[bytes, int, int, float, str, dict[str, object]]:
    """On a worker: the rows of a task, compressed for the way, and who made them."""
    import pyarrow as pa
    from distributed import get_worker

    begin = time.perf_counter()
    table, pulls = compute(task)
    packed = pa.compress(table, codec="zstd", asbytes=True)
    return (packed, len(table), pulls, time.perf_counter() - begin, get_worker().address,
            _asking()())


def _collect(future: Any, task: Task, scheduler: str) -> Done:
    import pyarrow as pa

    try:
        packed, size, pulls, seconds, address, versions = future.result()
    except Exception as error:
        if future.status == "error":
            return Done(task, None, 0, 0.0, error)
        raise _lost(scheduler) from None
    _refuse_stranger(address, versions)  # it may have come after the last look
    table = pa.decompress(packed, decompressed_size=size, codec="zstd", asbytes=True)
    return Done(task, table, pulls, seconds)


def _asking() -> Callable[[], dict[str, object]]:
    """A function that tells what rows depend on. Being local to this one it is sent as code, so
    it also runs where fastfed is absent or another."""

    def versions() -> dict[str, object]:
        try:
            import numba
            import numpy

            from fastfed.sweeps.store import ROWS
            from fastfed.version import __version__
        except ImportError as error:
            return {"fastfed": f"none ({error})"}
        return {"fastfed": __version__, "numpy": numpy.__version__, "numba": numba.__version__,
                "version of the rows": ROWS}

    return versions


def _refuse_stranger(address: str, theirs: dict[str, object] | Exception) -> None:
    if isinstance(theirs, Exception):
        raise InputError(f"Dask worker {address} cannot say what versions it has ({theirs}); "
                         "install the same there as for this client, and the same Python")
    for name, mine in _asking()().items():
        if theirs.get(name) != mine:
            raise InputError(f"Dask worker {address} has {name} {theirs.get(name)}, this client "
                             f"has {mine}: the rows could differ; install the same versions there")


def _lost(scheduler: str) -> InputError:
    return InputError(f"Dask scheduler {scheduler}: connection lost; finished parts are kept, and "
                      "the same command, with Dask or without, goes on from there")
