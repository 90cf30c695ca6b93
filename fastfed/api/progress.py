"""Progress of a run: a bar on a terminal, a line now and then elsewhere.

Both go to stderr. The bar is gone when the run ends or is interrupted, so that what follows stands
where it should. The first run on a machine compiles for some ten seconds, and says so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fastfed import console
from fastfed.text import printable, short

if TYPE_CHECKING:
    from fastfed.sweeps.run import Run, Written

LINE_SECONDS = 30.0
"""Off a terminal, one line in that time."""
COMPILING = "compiling"
UNITS = ("trials", "cells")
"""Units in which progress is counted, where no cell is named."""

Parts = Iterator[tuple["Run", "Written | None"]]


def watch(parts: Parts, show: bool) -> Run:
    """Run a sweep to its end, with progress if ``show``; its last state."""
    last: Run | None = None
    with _display(show, "starting") as display:
        begin = time.perf_counter()
        for last, _ in parts:
            now = last.progress
            seconds = max(time.perf_counter() - begin, 1e-9)
            display(
                printable(now.cell) or "reading",
                now.trials_done,
                now.trials_planned,
                f"{now.workers} workers, {now.in_flight} tasks, "
                f"{now.trials_done / seconds:,.0f} trials/s, "
                f"{short(now.pulls / seconds)} pulls/s",
            )
    assert last is not None  # every sweep reports at least once
    return last


@contextmanager
def reporting(
    progress: bool | Callable[[int, int], object], total: int, unit: str = "trials"
) -> Iterator[Callable[[int], object]]:
    """Make the function to call with the number of trials, or other units, that are done."""
    if callable(progress):
        told = 0

        def tell(done: int) -> None:
            nonlocal told
            if done > told:
                told = done
                progress(done, total)

        yield tell
        return
    with _display(progress, unit) as display:
        yield lambda done: display(unit, done, total, "")


Display = Callable[[str, int, int, str], object]
"""(what is run, how much is done, of how much, how fast)"""


@contextmanager
def _display(show: bool, first: str) -> Iterator[Display]:
    if not show or sys.stderr is None:
        yield lambda what, done, total, speed: None
    elif sys.stderr.isatty():
        with _bar(first) as display:
            yield display
    else:
        yield _lines()


@contextmanager
def _bar(first: str) -> Iterator[Display]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    # transient: Ctrl-C would else leave a copy of the line below the one that shows ^C
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(COMPILING if compiling() else first, total=None, speed="")
        yield lambda what, done, total, speed: bar.update(
            task,
            description=COMPILING if compiling() else what,
            total=total,
            completed=done,
            speed=speed,
        )


def _lines() -> Display:
    told = time.perf_counter()

    def display(what: str, done: int, total: int, speed: str) -> None:
        nonlocal told
        now = time.perf_counter()
        if now - told >= LINE_SECONDS:
            told = now
            unit = what if what in UNITS else UNITS[0]
            doing = COMPILING if compiling() else what if what not in UNITS else ""
            console.say(", ".join(filter(None, [f"{done:,} of {total:,} {unit}", doing, speed])))

    return display


def compiling() -> bool:
    """Tell whether kernels are being compiled just now, without loading them."""
    module: Any = sys.modules.get("fastfed.kernels.compiling")
    return module is not None and bool(module.under_way())
