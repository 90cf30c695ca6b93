"""The interface to rows of trials, in memory or on disk, which are read batch by batch.

`Trials` is all that a summary, an envelope, a check, a report or a claim knows of rows. A result
in memory and a sweep's folder implement it. `collect` reads the trials of a cell once and hands
every batch to all collectors that take part: sums, quantiles, counts of broken bounds.

A batch has, for each schedule, the arrays ``trial`` (ascending), ``correct``, ``truncated`` and the
counted columns, -1 where a count is not known. Rows of older versions may lack counted columns. A
trial stands in the same batch for all its schedules; a schedule may lack some trials. Collectors
get *blocks*: the same trials cut at multiples of `BLOCK`, however files or threads cut them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from fastfed.model.counts import COUNTS

if TYPE_CHECKING:
    from fastfed.model.cell import Cell
    from fastfed.model.instance import Instance
    from fastfed.model.schedules import Schedule

Batch = Mapping[str, Mapping[str, npt.NDArray[Any]]]
"""Columns of trials, by schedule and by name."""

BATCH_COLUMNS = ("trial", *COUNTS, "correct", "truncated")
"""Columns of a batch."""

BLOCK = 2**11
"""Trials of a block."""


def columns_with(counts: Iterable[str]) -> tuple[str, ...]:
    """List the columns of a batch that has some of the counted columns only."""
    return ("trial", *counts, "correct", "truncated")


Key = TypeVar("Key")

_Integers = npt.NDArray[np.int64]
_Truths = npt.NDArray[np.bool_]
_Floats = npt.NDArray[np.float64]


class Trials(Protocol):
    """Rows of trials by cell: a result in memory, or a sweep's folder."""

    @property
    def source(self) -> str:
        """Name of the rows, for messages."""

    @property
    def instances(self) -> Mapping[str, Instance]:
        """The instances of the rows, by name; raise an `InputError` if one cannot be loaded."""

    @property
    def costs(self) -> list[float]:
        """Costs of an uplink that are taken where none are given."""

    @property
    def bit_costs(self) -> list[float]:
        """Costs of a bit that are taken where none are given."""

    @property
    def prices(self) -> Mapping[str, float]:
        """Fixed prices of counted columns that are taken where none are given."""

    def held(self) -> dict[Cell, list[Schedule]]:
        """List the cells that have rows, with the schedules of each."""

    def choices(self, cell: Cell) -> dict[str, Any]:
        """Return the radius, goal and uplink of a cell, as `fastfed.bounds` takes them."""

    def batches(
        self, cell: Cell, schedules: Sequence[str], columns: Sequence[str] = BATCH_COLUMNS
    ) -> Iterator[Batch]:
        """Read the trials of a cell in order, aligned over the schedules."""

    def ranges(self, cell: Cell, schedule: str) -> list[tuple[int, int]]:
        """List the trials [first, end) of a schedule, in order."""


@dataclass(frozen=True, eq=False)
class Aligned:
    """A batch as arrays of (schedule, trial), zero where a schedule lacks a trial."""

    schedules: tuple[str, ...]
    trial: _Integers
    present: _Truths
    ended: _Truths
    wrong: _Truths
    """Present, and not all answers are right. A trial that did not end has not given them all."""
    columns: tuple[str, ...]
    """Counted columns that the trials have,"""
    counts: _Floats
    """(schedule, column, trial) and their values; NaN where a count is not known."""

    def values(self, columns: Sequence[str]) -> _Floats:
        """Return the values (schedule, column, trial) of columns, NaN if the trials lack one."""
        if tuple(columns) == self.columns:
            return self.counts
        found = np.full((*self.counts.shape[:-2], len(columns), self.counts.shape[-1]), np.nan)
        for place, name in enumerate(columns):
            if name in self.columns:
                found[..., place, :] = self.counts[..., self.columns.index(name), :]
        return found

    @property
    def right(self) -> _Truths:
        """Present, ended, and all answers are right."""
        return self.present & ~self.wrong

    @classmethod
    def of(cls, batch: Batch, schedules: Sequence[str]) -> Aligned:
        """Line up a batch; schedules that it does not have get no trials."""
        own = {
            name: np.asarray(batch[name]["trial"], dtype=np.int64)
            for name in schedules
            if name in batch
        }
        numbers = list(own.values())
        trial = numbers[0] if numbers else np.zeros(0, np.int64)
        if any(not np.array_equal(trial, other) for other in numbers[1:]):
            trial = np.unique(np.concatenate(numbers))
        held = {column for rows in batch.values() for column in rows}
        columns = tuple(name for name in COUNTS if name in held)
        counts = np.full((len(schedules), len(columns), len(trial)), -1.0)
        present, correct, truncated = np.zeros((3, len(schedules), len(trial)), bool)
        for row, name in enumerate(schedules):
            if name in own:
                whole = len(own[name]) == len(trial)
                at = slice(None) if whole else np.searchsorted(trial, own[name])
                rows = batch[name]
                present[row, at] = True
                correct[row, at], truncated[row, at] = rows["correct"], rows["truncated"]
                for place, column in enumerate(columns):
                    counts[row, place, at] = rows.get(column, -1)
        ended = present & ~truncated
        wrong = present & ~(correct & ended)
        counts[counts < 0] = np.nan
        return cls(tuple(schedules), trial, present, ended, wrong, columns, counts)

    def only(self, schedules: Sequence[str]) -> Aligned:
        """Keep some of the schedules."""
        if tuple(schedules) == self.schedules:
            return self
        at = [self.schedules.index(name) for name in schedules]
        present, ended, wrong = (one[at] for one in (self.present, self.ended, self.wrong))
        counts = self.counts[at]
        return Aligned(tuple(schedules), self.trial, present, ended, wrong, self.columns, counts)

    def half(self, odd: bool) -> Aligned:
        """Keep the trials with an even, or with an odd number."""
        keep = self.trial % 2 == int(odd)
        present, ended, wrong = (one[:, keep] for one in (self.present, self.ended, self.wrong))
        counts, trial = self.counts[..., keep], self.trial[keep]
        return Aligned(self.schedules, trial, present, ended, wrong, self.columns, counts)


class Collector(Protocol):
    """Something that adds up batches."""

    def add(self, trials: Aligned) -> None:
        """Take account of one batch."""


def blocks(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Cut batches, which are in order, anew: at trial numbers that are multiples of `BLOCK`."""
    waiting: list[Batch] = []
    now = -1
    for batch in batches:
        for number in _numbers(batch):
            if number != now and waiting:
                yield _joined(waiting)
                waiting = []
            now = number
            waiting.append({name: _part(rows, number) for name, rows in batch.items()})
    if waiting:
        yield _joined(waiting)


def _numbers(batch: Batch) -> list[int]:
    """List the blocks of which a batch has rows, in order; trials may have gaps."""
    every = (rows["trial"] // BLOCK for rows in batch.values())
    return sorted({n for one in every for n in one[np.diff(one, prepend=-1) != 0].tolist()})


def _part(rows: Mapping[str, npt.NDArray[Any]], number: int) -> Mapping[str, npt.NDArray[Any]]:
    """Keep the rows of one block."""
    low, high = np.searchsorted(rows["trial"], [number * BLOCK, (number + 1) * BLOCK])
    return {name: values[low:high] for name, values in rows.items()}


def _joined(parts: Sequence[Batch]) -> Batch:
    """Join parts of one block, in order."""
    if len(parts) == 1:
        return parts[0]
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: samples(parts, name) for name in names}


def collect(batches: Iterable[Batch], schedules: Sequence[str], *collectors: Collector) -> None:
    """Hand every block to all collectors, so that rows are read once for all of them."""
    for batch in blocks(batches):
        aligned = Aligned.of(batch, schedules)
        for one in collectors:
            one.add(aligned)


def side_by_side(streams: Mapping[Key, Iterator[Batch]]) -> Iterator[dict[Key, Batch]]:
    """Read several streams of batches at once: the same block of trials stands in one item.

    At any time one block of each stream is in memory.
    """
    cut = {key: blocks(stream) for key, stream in streams.items()}
    waiting: dict[Key, Batch] = {}
    while True:
        for key, stream in cut.items():
            if key not in waiting and (batch := next(stream, None)) is not None:
                waiting[key] = batch
        if not waiting:
            return
        first = min(map(_number, waiting.values()))
        yield {
            key: waiting.pop(key)
            for key in streams
            if key in waiting and _number(waiting[key]) == first
        }


def _number(block: Batch) -> int:
    """Return the number of a block."""
    return min(int(rows["trial"][0]) // BLOCK for rows in block.values() if len(rows["trial"]))


Run = tuple[Trials, "Cell", str]
"""A schedule of a cell, and the rows that have it."""


def runs_of(
    sweeps: Mapping[str, Trials], but: Sequence[str]
) -> Iterator[tuple[dict[str, Any], list[tuple[str, Run]]]]:
    """Put the runs of cells together that differ in nothing but some choices.

    Yield the other choices of these cells, and the runs, each with the name of its sweep.
    """
    found: dict[tuple[Any, ...], list[tuple[str, Run]]] = {}
    for name, trials in sweeps.items():
        for cell, schedules in trials.held().items():
            key = tuple(item for item in cell.names.items() if item[0] not in but)
            runs = [(name, (trials, cell, str(one))) for one in schedules]
            found.setdefault(key, []).extend(runs)
    yield from ((dict(key), runs) for key, runs in found.items())


def read_runs(runs: Mapping[str, Run], columns: Sequence[str]) -> Iterator[Batch]:
    """Read runs side by side, by their names, as if they were schedules of one cell."""
    cells: dict[tuple[int, Cell], tuple[Trials, dict[str, str]]] = {}
    for run, (trials, cell, schedule) in runs.items():
        cells.setdefault((id(trials), cell), (trials, {}))[1][schedule] = run
    streams = {
        key: trials.batches(key[1], list(names), columns) for key, (trials, names) in cells.items()
    }
    for batches in side_by_side(streams):
        yield {
            cells[key][1][name]: rows
            for key, batch in batches.items()
            for name, rows in batch.items()
        }


class Passes:
    """Several passes over the batches of a cell, which are read once if they are small."""

    MOST = 2**20
    """Rows that are kept: 28 MB."""

    def __init__(self, read: Callable[[], Iterable[Batch]], schedules: Sequence[str]) -> None:
        self._read, self._schedules = read, schedules
        self._kept: list[Aligned] | None = None

    def collect(self, *collectors: Collector) -> None:
        """Hand every batch to all collectors."""
        for aligned in self._batches() if self._kept is None else self._kept:
            for one in collectors:
                one.add(aligned)

    def _batches(self) -> Iterator[Aligned]:
        """Read the batches, and keep them if all are read and there is room."""
        kept: list[Aligned] = []
        room = self.MOST
        for batch in blocks(self._read()):
            yield (aligned := Aligned.of(batch, self._schedules))
            room -= aligned.present.size
            kept = [*kept, aligned] if room >= 0 else []
        self._kept = kept if room >= 0 else None


def samples(
    batches: Iterable[Batch], schedule: str, columns: Sequence[str] | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Join the columns of one schedule over all batches; None: all that they have."""
    parts = [batch[schedule] for batch in batches if schedule in batch]
    if columns is None:
        columns = tuple(parts[0]) if parts else BATCH_COLUMNS
    return {
        column: np.concatenate([one[column] for one in parts]) if parts else np.zeros(0)
        for column in columns
    }
