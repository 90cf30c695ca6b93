"""Sweeps on the workers of a Dask cluster. The only module that knows Dask."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from fastfed.errors import InputError
from fastfed.simulation.machine import in_thread
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

    ``cluster`` is a `distributed.Client`, or the address of a scheduler, as in tcp://host:8786, for
    a client that lives as long as the run. ``say`` is told how things stand, and what is waited for
    when nothing comes.
    """

    workers = 0

    def __init__(self, cluster: Any, say: Callable[[str], object] = lambda line: None) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise InputError(
                "Dask is not installed: pip install 'fastfed[dask]', in a clone pip "
                "install '.[dask]'"
            ) from None
        if isinstance(cluster, str):
            _refuse_no_address(cluster)
        elif not isinstance(cluster, Client) or cluster.asynchronous:
            raise InputError(
                f"client = {cluster!r}: must be a dask.distributed.Client that is not asynchronous"
            )
        self._cluster, self._say = cluster, say
        self._known: set[str] = set()

    def refuse_early(self, grid: Grid) -> None:
        with _connected(self._cluster):
            pass

    def run(self, plan: Plan) -> Iterator[Done | None]:
        with _connected(self._cluster) as client:
            self._scheduler = client.scheduler.address
            self._look(client)
            waiting = "" if self.workers else " (waiting for the first)"
            self._say(f"Dask at {self._scheduler}, {self.workers} worker threads{waiting}")
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
        return f"waiting for tasks on {len(workers)} workers" + (
            f", of which {paused} are paused because their memory is nearly full" if paused else ""
        )

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
                _refuse_other_versions(address, theirs)
        self._known.update(new)
        self.workers = sum(threads.values())


def _refuse_no_address(address: str) -> None:
    if not re.fullmatch(r"(tcp|tls|ws|wss|ucx)://[^/\s]+:[0-9]+/?", address):
        raise InputError(
            f"Dask address {shown(address)}: must be a scheduler's, as in tcp://host:8786; "
            "--threads uses the cores of this machine"
        )


@contextmanager
def _connected(cluster: Any) -> Iterator[Any]:
    """Yield a client of the cluster; close it if it was made for an address."""
    if not isinstance(cluster, str):
        yield cluster
        return
    import logging

    from distributed import Client

    for name in ("distributed", "distributed.client"):  # what matters is raised, in one line
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Dask waits for ever for a name server that hangs, or for a server that speaks nothing
    asked = in_thread(lambda: Client(cluster, timeout=_CONNECT_SECONDS, set_as_default=False))
    try:
        client = asked.result(_CONNECT_SECONDS + 2)
    except Exception as error:
        text = " ".join(f"{type(error).__name__} {error}".split())[:160]
        fix = "start one with `dask scheduler`, or mend the address"
        if cluster.startswith(("tls:", "wss:")):
            fix = "tls needs certificates in Dask's configuration (distributed.comm.tls)"
        raise InputError(
            f"Dask address {shown(cluster)}: no scheduler answers there ({text}); {fix}"
        ) from None
    try:
        yield client
    except KeyboardInterrupt:  # closing would wait for tasks, and all ends with this process anyway
        raise
    except BaseException:
        client.close()
        raise
    client.close()


def _on_worker(bundle: Bundle) -> tuple[Done, str, dict[str, object]]:
    """Run a bundle on a worker; return its rows, and the worker's name and versions."""
    from distributed import get_worker

    done = replace(tasks.perform(bundle), bundle=_NOTHING)
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
