"""The threads and the memory of this machine, which limit the trials that run at a time."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from fastfed.kernels.trials import Control

T = TypeVar("T")
R = TypeVar("R")

MANY_CELLS = 4_096
"""Cells of an instance, from which on the memory of its trials is looked at before they are run.

A cell takes 1 kB, and 60 kB with 64 values of a reward: fewer cells fit into any machine.
"""

_PATIENCE = 0.3  # seconds for threads to stop when nobody wants their results any more


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

    def run(
        self,
        offer: Callable[[], tuple[T, int] | None],
        perform: Callable[[T, Control], R],
        control: Control,
    ) -> Iterator[R | None]:
        """Perform tasks in threads; yield results as they come, and None while there are none.

        ``offer`` is that of `start`. Leaving the iterator early, by an exception or Ctrl-C in the
        caller, stops the kernels after their current trial.
        """
        started: dict[Future[R], int] = {}  # in the order of the tasks
        try:
            while True:
                for task, need in self.start(offer):
                    started[in_thread(perform, task, control)] = need
                if not started:
                    return
                finished, _ = wait(started, timeout=0.1, return_when=FIRST_COMPLETED)
                for future in finished:
                    if future.exception() is not None:
                        for one in started:  # the first task that has an error, whatever the timing
                            one.result()
                    self.end(started.pop(future))
                    yield future.result()
                if not finished:
                    yield None
        finally:
            control.stop[0] = 1
            # whoever interrupts need not wait for a long trial, or for a compilation
            wait(started, timeout=_PATIENCE)

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
