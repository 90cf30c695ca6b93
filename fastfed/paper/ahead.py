"""Work beside the trials: one thread computes and draws what does not have to wait for the end.

Python holds its lock for nearly all of this work, and the trials run without it. So one thread is
enough, and it takes time from the trials only where all cores are busy. After the trials the same
work would leave all cores but one idle: on two cores that was 90 of 670 seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any, Self, TypeVar

Found = TypeVar("Found")

# A trial of `movielens` is a call of its own, which needs Python's lock when it returns. Beside a
# thread that never rests, 500 of them took 8.8 s on two threads with Python's own 5 ms, 6.5 s with
# 1 ms and 5.1 s with this; without that thread they took 3.8 s.
_SWITCH_SECONDS = 0.0005


class Stopped(Exception):
    """End of work that nobody waits for any more."""


class Ahead:
    """Pieces of work by name, begun by `start` and fetched by `result`.

    Without ``beside`` there is no thread, and a piece is done when its result is asked for.
    """

    def __init__(self, beside: bool = False) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="fastfed") if beside else None
        self._begun: dict[str, Future[Any]] = {}
        self._stopped = Event()
        self._switch_seconds = sys.getswitchinterval()

    def __enter__(self) -> Self:
        if self._pool is not None:
            sys.setswitchinterval(_SWITCH_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave without waiting; work that is under way ends at its next `check`."""
        if self._pool is not None:
            self._stopped.set()
            self._pool.shutdown(wait=False, cancel_futures=True)
            sys.setswitchinterval(self._switch_seconds)

    def check(self, *_: object) -> None:
        """Raise `Stopped` if nobody waits any more. Long work calls it once a second or so."""
        if self._stopped.is_set():
            raise Stopped

    def start(self, name: str, work: Callable[[], Any]) -> None:
        """Begin a piece of work, after those that were begun before."""
        if self._pool is not None:
            self._begun[name] = self._pool.submit(work)

    def result(self, name: str, work: Callable[[], Found]) -> Found:
        """Return the result of a piece; do it now if it was not begun."""
        begun = self._begun.get(name)
        return work() if begun is None else begun.result()
