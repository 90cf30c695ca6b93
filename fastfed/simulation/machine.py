"""The threads and the memory of this machine, and how trials that run at a time share them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Share(NamedTuple):
    """Memory and threads: what a task can use, or what it is given."""

    memory: int  # bytes, for one trial at a time
    threads: int  # that share the clients of a trial


class Machine(Generic[T]):
    """The free threads and the free memory of this machine.

    Tasks take their share when they start, and give it back at their end. Rows do not depend on it.
    """

    def __init__(self, threads: int) -> None:
        self._threads, self._memory = threads, physical_memory()
        self._running = 0
        self._next: tuple[T, Share] | None = None

    def at_once(self, need: Share) -> int:
        """Return how many tasks with this need can run at a time: at least one."""
        return int(max(1, min(self._threads, self._memory // max(need.memory, 1))))

    def start(self, offer: Callable[[], tuple[T, Share] | None]) -> list[tuple[T, Share]]:
        """Take tasks while a thread and their memory are free; return them with their shares.

        ``offer`` returns the next task with its need, or None if there is none at present. A task
        that does not fit waits here until others have ended. If there are fewer tasks than free
        threads, then each may have several.
        """
        taken: list[tuple[T, Share]] = []
        while len(taken) < self._threads:
            self._next = self._next or offer()
            if self._next is None:
                break
            need = self._next[1]
            if need.memory > self._memory and (taken or self._running):
                break
            self._memory -= need.memory
            taken.append(self._next)
            self._next = None
        self._running += len(taken)
        return [
            (task, self._given(need, len(taken) - before))
            for before, (task, need) in enumerate(taken)
        ]

    def _given(self, need: Share, tasks: int) -> Share:
        """Return the share of the first of so many tasks, between which free threads are shared."""
        threads = min(need.threads, self._threads // tasks)
        self._threads -= threads
        return Share(need.memory, threads)

    def end(self, share: Share) -> None:
        """Take back the share of a task that has ended."""
        self._running -= 1
        self._memory += share.memory
        self._threads += share.threads


def physical_memory() -> float:
    """Return the bytes of memory of this machine; infinity where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf
