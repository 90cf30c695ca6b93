"""Sweeps on the workers of a Dask cluster. The only module that knows Dask."""

from __future__ import annotations

import os
import re
import stat
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from fastfed.errors import InputError
from fastfed.sweeps import task as tasks
from fastfed.sweeps.task import Bundle, Done, Plan
from fastfed.validation import shown

if TYPE_CHECKING:
    from fastfed.sweeps.grid import Grid

_AHEAD = 2  # tasks in flight for each thread of the cluster: one runs, one waits on its worker
_LOOK_SECONDS = 2.0  # between looks at who is in the cluster
_CONNECT_SECONDS = 10  # after which a scheduler that does not answer is given up
_QUIET_SECONDS = 30.0  # without any result, after which it is said what is waited for


class Dask:
    """The workers of a Dask cluster, with one task for each of their threads.

    Workers need no shared disk: rows come back to this client, which alone knows the folder.

    ``cluster`` is a `distributed.Client`, or an address for a client that lives as long as the
    run: a scheduler's, as in tcp://host:8786, or local:4 for a cluster of four processes here.
    A local cluster talks through TLS with keys made for this run, so that nobody else on the
    machine can send it work; its ``dashboard``, which anybody here could look at, is off unless
    it is asked for. ``say`` is told how things stand, and what is waited for when nothing comes.
    """

    workers = 0

    def __init__(
        self,
        cluster: Any,
        say: Callable[[str], object] = lambda line: None,
        *,
        dashboard: bool = False,
    ) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise InputError(
                "Dask is not installed: pip install 'fastfed[dask]', in a clone pip "
                "install '.[dask]'"
            ) from None
        if isinstance(cluster, str):
            _checked_address(cluster)
            if dashboard and not cluster.startswith("local:"):
                raise InputError(
                    f"a dashboard with Dask address {cluster!r}: that cluster has its "
                    "own or none; only for local:N is one made here"
                )
        elif not isinstance(cluster, Client) or cluster.asynchronous:
            raise InputError(
                f"client = {cluster!r}: must be a dask.distributed.Client that is not asynchronous"
            )
        self._cluster, self._say, self._dashboard = cluster, say, dashboard
        self._known: set[str] = set()

    @property
    def _is_local(self) -> bool:
        return isinstance(self._cluster, str) and self._cluster.startswith("local:")

    def refuse_early(self, grid: Grid) -> None:
        if self._is_local:
            _keys()
            _refuse_shared()
        elif isinstance(self._cluster, str):
            _refuse_other_servers(self._cluster)

    def run(self, plan: Plan) -> Iterator[Done | None]:
        with _connected(self._cluster, self._dashboard) as client:
            self._scheduler = client.scheduler.address
            self._look(client)
            served = client.scheduler_info().get("services", {})
            seen = self._dashboard if self._is_local else "dashboard" in served
            self._say(
                f"Dask at {self._scheduler}, {self.workers} worker threads"
                f"{'' if self.workers else ' (waiting for the first)'}, "
                f"dashboard: {client.dashboard_link if seen else 'none'}"
            )
            started: dict[str, tuple[Any, Bundle]] = {}
            try:
                yield from self._feed(client, plan, started)
            finally:
                for future, _ in started.values():
                    future.release()  # the scheduler forgets what nobody waits for

    def _feed(
        self, client: Any, plan: Plan, started: dict[str, tuple[Any, Bundle]]
    ) -> Iterator[Done | None]:
        finished: SimpleQueue[Any] = SimpleQueue()
        looked = heard = time.monotonic()
        patience = _QUIET_SECONDS
        while True:
            if time.monotonic() - looked > _LOOK_SECONDS:
                self._look(client)
                looked = time.monotonic()
            # with no worker at all a task still waits: clusters that adapt start workers for it
            while len(started) < max(1, _AHEAD * self.workers):
                bundle = plan.next_bundle(max(1, self.workers))
                if bundle is None:
                    break
                future = client.submit(_on_worker, bundle, pure=False)
                started[future.key] = future, bundle
                future.add_done_callback(finished.put)
            if not started:
                return
            try:
                future = finished.get(timeout=0.1)
            except Empty:
                if client.status != "running":
                    raise _lost(self._scheduler) from None
                if time.monotonic() - heard > patience:
                    self._say(f"no result for {patience:.0f} s: {self._waiting_for(client)}")
                    patience *= 2
                yield None
                continue
            heard, patience = time.monotonic(), _QUIET_SECONDS
            done = _collect(future, started.pop(future.key)[1], self._scheduler)
            future.release()
            plan.record(done)
            yield done

    def _waiting_for(self, client: Any) -> str:
        """Describe what the run may be waiting for."""
        try:
            workers = client.scheduler_info()["workers"].values()
        except Exception:
            raise _lost(self._scheduler) from None
        paused = sum(worker.get("status") == "paused" for worker in workers)
        if not workers:
            return "the cluster has no worker; waiting for one"
        if paused:
            return (
                f"{paused} of {len(workers)} workers are paused because their memory is "
                "nearly full; waiting for them, or for others to join"
            )
        return f"waiting for tasks on {len(workers)} workers"

    def _look(self, client: Any) -> None:
        """Count the worker threads; refuse workers that would compute other rows."""
        try:
            threads = client.nthreads()
            new = [address for address in threads if address not in self._known]
            replies = client.run(_asking(), workers=new, on_error="return") if new else {}
        except Exception:
            raise _lost(self._scheduler) from None
        if self._is_local and not client.cluster.workers:
            raise InputError(
                f"Dask address {self._cluster!r}: its worker processes have ended and cannot be "
                "started again; finished parts are kept, and the same command goes on from there"
            )
        for address, theirs in replies.items():
            if not isinstance(theirs, OSError):  # else it has gone since
                _refuse_other_versions(address, theirs)
        self._known.update(new)
        self.workers = sum(threads.values())


def _checked_address(address: str) -> None:
    kind, _, count = address.partition(":")
    if kind == "local" and re.fullmatch("[1-9][0-9]{0,3}", count):
        return
    if not re.fullmatch(r"(tcp|tls|ws|wss|ucx)://[^/\s]+:[0-9]+/?", address):
        raise InputError(
            f"Dask address {shown(address)}: must be a scheduler's, as in "
            "tcp://host:8786, or local:4 for four worker processes here"
        )


@contextmanager
def _connected(cluster: Any, dashboard: bool = False) -> Iterator[Any]:
    """Yield a client of the cluster; close it if it was made for an address."""
    if not isinstance(cluster, str):
        yield cluster
        return
    import logging

    from distributed import Client

    for name in ("distributed", "distributed.client"):  # what matters is raised, in one line
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        where = cluster
        if cluster.startswith("local:"):
            where = stack.enter_context(
                _local_cluster(int(cluster.removeprefix("local:")), dashboard)
            )
        else:
            _refuse_other_servers(cluster)
        try:
            client = stack.enter_context(
                Client(where, timeout=_CONNECT_SECONDS, set_as_default=False)
            )
        except Exception as error:
            raise _no_scheduler(cluster, error) from None
        try:
            yield client
        except KeyboardInterrupt:
            stack.pop_all()  # closing would wait for tasks, and all ends with this process anyway
            raise


@contextmanager
def _local_cluster(workers: int, dashboard: bool) -> Iterator[Any]:
    """Start a cluster of processes on this machine that only this process can use.

    Without TLS every user of the machine could send it tasks, that is, run code as the user who
    started it: its ports are open to all on the loopback interface. Dask imports modules from its
    scratch folder, so that folder lies in a private one instead of in the shared default.
    """
    import logging

    import dask
    from distributed import LocalCluster

    security = _keys()
    config: dict[str, Any] = {}
    if not dashboard:  # the web servers cannot be left out, but they can serve nothing
        config = {f"distributed.{role}.http.routes": [] for role in ("scheduler", "worker")}
    with _private_folder() as folder, ExitStack() as stack:
        stack.enter_context(dask.config.set({**config, "temporary-directory": folder}))
        stack.enter_context(_worker_environment(folder))
        try:
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=0,
                    host="127.0.0.1",
                    security=security,
                    silence_logs=logging.CRITICAL,
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": dashboard},
                    preload=[__name__],  # whose `dask_setup` each worker calls
                )
            )
        except Exception as error:
            raise InputError(
                f"Dask address 'local:{workers}': the cluster did not start ({_reason(error)})"
            ) from None
        yield cluster


def dask_setup(worker: Any) -> None:
    """Leave Ctrl-C, which a terminal sends to the workers too, to the process that ends them."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _private_folder() -> tempfile.TemporaryDirectory[str]:
    """Make a folder that only this user can enter, and that is removed with all that is in it."""
    _refuse_shared()
    return tempfile.TemporaryDirectory(prefix="fastfed-", ignore_cleanup_errors=True)


def _refuse_shared() -> None:
    """Refuse temporary files where other users can replace what they do not own."""
    if not hasattr(os, "getuid"):
        return
    parent = Path(tempfile.gettempdir())
    found = parent.stat()
    open_to_all = found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX
    if open_to_all or found.st_uid not in (0, os.getuid()):
        raise InputError(
            f"folder {parent} for temporary files: other users can replace what stands in it; "
            "set TMPDIR to a folder of your own"
        )


@contextmanager
def _worker_environment(folder: str) -> Iterator[None]:
    """Set the environment that processes of a local cluster start with, and put it back."""
    # after Ctrl-C nobody needs to hear that the cluster's semaphores were still there
    quiet = "ignore::UserWarning:multiprocessing.resource_tracker"
    given = {
        "TMPDIR": folder,
        "PYTHONSAFEPATH": "1",  # or a worker would look for modules in the current folder first
        "PYTHONWARNINGS": ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), quiet))),
    }
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _keys() -> Any:
    """Make the TLS keys for one run of a local cluster."""
    from distributed import Security

    try:
        return Security.temporary()
    except ImportError:
        raise InputError(
            "a local Dask cluster makes its keys with cryptography, which is not "
            "installed: pip install 'fastfed[dask]', in a clone pip install "
            "'.[dask]'"
        ) from None


def _refuse_other_servers(address: str) -> None:
    """Refuse an address at which no Dask scheduler answers in time.

    Dask's own client would wait forever for a server that speaks another protocol, or none.
    """
    import asyncio

    from distributed import Security
    from distributed.core import rpc

    async def ask() -> Any:
        arguments = Security().get_connection_args("client")
        async with rpc(address, timeout=_CONNECT_SECONDS, connection_args=arguments) as server:
            return await server.identity()

    def answer() -> None:
        try:
            heard.put(asyncio.run(asyncio.wait_for(ask(), _CONNECT_SECONDS)))
        except BaseException as error:
            heard.put(_no_scheduler(address, error))  # without the frames that hold the socket

    heard: SimpleQueue[Any] = SimpleQueue()
    Thread(target=answer, daemon=True).start()  # so a name server that hangs is not waited for
    try:
        found = heard.get(timeout=_CONNECT_SECONDS + 2)
    except Empty:
        raise _no_scheduler(address, TimeoutError()) from None
    if isinstance(found, InputError):
        raise found
    if not isinstance(found, dict) or found.get("type") != "Scheduler":
        kind = found.get("type") if isinstance(found, dict) else None
        who = f"a {kind}" if kind else "something else"
        raise InputError(f"Dask address {shown(address)}: {who} answers there, not a scheduler")


def _no_scheduler(address: str, error: BaseException) -> InputError:
    reason = " ".join(str(error).split())
    if address.startswith("tls:") and "ssl_context" in reason:
        what = "tls needs certificates; name them in Dask's configuration (distributed.comm.tls)"
    elif address.startswith("ucx:") and isinstance(error, TypeError | ImportError):
        what = "ucx is not installed here; use tcp, or install ucxx's support for Dask"
    elif isinstance(error, MemoryError | struct.error) or "allowed dimension" in reason:
        # the first bytes of any other language, read as the lengths of Dask's messages
        what = "something answers there, but it is no Dask scheduler"
    else:
        what = f"no scheduler answers there ({_reason(error)})"
    return InputError(f"Dask address {shown(address)}: {what}")


def _reason(error: BaseException) -> str:
    """Name an error in one short line, also one without a text of its own."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:160] if text else type(error).__name__


def _on_worker(bundle: Bundle) -> tuple[Done, str, dict[str, object]]:
    """Run a bundle on a worker; return its rows, and the worker's name and versions."""
    from distributed import get_worker

    done = replace(tasks.perform(bundle), bundle=_NOTHING, table=None)
    return done, get_worker().address, _asking()()


_NOTHING = Bundle((), 0.0)


def _collect(future: Any, bundle: Bundle, scheduler: str) -> Done:
    try:
        done, address, versions = future.result()
    except Exception as error:
        if future.status == "error":
            every = range(len(bundle.tasks))
            return Done(bundle, len(every), failures=dict.fromkeys(every, error))
        raise _lost(scheduler) from None
    _refuse_other_versions(address, versions)  # it may have come after the last look
    assert isinstance(done, Done)
    return replace(done, bundle=bundle)


def _asking() -> Callable[[], dict[str, object]]:
    """Make a function that returns the versions on which rows depend.

    The function is local, so Dask sends its code. It also runs where fastfed is missing or has
    another version.
    """

    def versions() -> dict[str, object]:
        try:
            import numba
            import numpy

            from fastfed.version import ROWS, __version__
        except ImportError as error:
            return {"fastfed": f"none ({error})"}
        return {
            "fastfed": __version__,
            "numpy": numpy.__version__,
            "numba": numba.__version__,
            "version of the rows": ROWS,
        }

    return versions


def _refuse_other_versions(address: str, theirs: dict[str, object] | Exception) -> None:
    if isinstance(theirs, Exception):
        raise InputError(
            f"Dask worker {address} cannot say what versions it has ({theirs}); "
            "install the same there as for this client, and the same Python"
        )
    for name, mine in _asking()().items():
        if theirs.get(name) != mine:
            raise InputError(
                f"Dask worker {address} has {name} {theirs.get(name)}, this client "
                f"has {mine}: the rows could differ; install the same versions there"
            )


def _lost(scheduler: str) -> InputError:
    return InputError(
        f"Dask scheduler {scheduler}: connection lost; finished parts are kept, and "
        "the same command, with Dask or without, goes on from there"
    )
