"""The threads and the memory of this machine, which limit the trials that run at a time."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Machine(Generic[T]):
    """The free threads and the free memory of this machine.

    A task takes a thread and its memory when it starts, and gives them back at its end. Rows do not
    depend on that.
    """

    def __init__(self, threads: int) -> None:
        self._threads, self._memory = threads, physical_memory()
        self._running = 0
        self._next: tuple[T, int] | None = None

    def at_once(self, need: int) -> int:
        """Return how many tasks that need so many bytes can run at a time: at least one."""
        return int(max(1, min(self._threads, self._memory // max(need, 1))))

    def start(self, offer: Callable[[], tuple[T, int] | None]) -> list[tuple[T, int]]:
        """Take tasks while a thread and their memory are free; return them with their bytes.

        ``offer`` returns the next task with its bytes, or None if there is none at present. A task
        that does not fit waits here until others have ended.
        """
        taken: list[tuple[T, int]] = []
        while self._threads > self._running:
            self._next = self._next or offer()
            if self._next is None:
                break
            need = self._next[1]
            if need > self._memory and self._running:
                break
            self._memory -= need
            self._running += 1
            taken.append(self._next)
            self._next = None
        return taken

    def end(self, need: int) -> None:
        """Take back the thread of a task that has ended, and its memory."""
        self._running -= 1
        self._memory += need


def in_thread(function: Callable[..., T], *arguments: Any) -> Future[T]:
    """Call a function in a thread that the process does not wait for at its end.

    A user's own algorithm may loop for ever: after Ctrl-C Python would wait for a pool's threads.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="fastfed", daemon=True).start()
    return future


def physical_memory() -> float:
    """Return the bytes of memory of this machine; infinity where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf
