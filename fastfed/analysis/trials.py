"""The interface to rows of trials, in memory or on disk, which are read batch by batch.

`Trials` is all that a summary, an envelope, a check, a report or a claim knows of rows. A result
in memory and a sweep's folder implement it. `collect` reads the trials of a cell once and hands
every batch to all collectors that take part: sums, quantiles, counts of broken bounds.

A batch has, for each schedule, the arrays ``trial`` (ascending), ``pulls``, ``uplinks``,
``correct`` and ``truncated``, and ``bits``, -1 where they were not counted. A trial stands in the
same batch for all its schedules; a schedule may lack some trials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from fastfed.model.cell import Cell
    from fastfed.model.instance import Instance
    from fastfed.model.schedules import Schedule

Batch = Mapping[str, Mapping[str, npt.NDArray[Any]]]
"""Columns of trials, by schedule and by name."""

BATCH_COLUMNS = ("trial", "pulls", "uplinks", "bits", "correct", "truncated")
"""Columns of a batch; without ``bits`` none were counted."""

_Integers = npt.NDArray[np.int64]
_Truths = npt.NDArray[np.bool_]


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
    pulls: _Integers
    uplinks: _Integers
    bits: _Integers
    """-1 where they were not counted."""

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
        shape = (len(schedules), len(trial))
        truths = {one: np.zeros(shape, bool) for one in ("present", "correct", "truncated")}
        counts = {one: np.zeros(shape, np.int64) for one in ("pulls", "uplinks", "bits")}
        for row, name in enumerate(schedules):
            if name in own:
                whole = len(own[name]) == len(trial)
                at = slice(None) if whole else np.searchsorted(trial, own[name])
                known = {"present": True, "bits": -1, **batch[name]}
                for column, values in (truths | counts).items():
                    values[row, at] = known[column]
        present = truths["present"]
        ended = present & ~truths["truncated"]
        wrong = present & ~(truths["correct"] & ended)
        return cls(tuple(schedules), trial, present, ended, wrong, *counts.values())

    def half(self, odd: bool) -> Aligned:
        """Keep the trials with an even, or with an odd number."""
        keep = self.trial % 2 == int(odd)
        arrays = (getattr(self, one.name) for one in fields(self)[1:])
        return Aligned(self.schedules, *(one[..., keep] for one in arrays))


class Collector(Protocol):
    """Something that adds up batches."""

    def add(self, trials: Aligned) -> None:
        """Take account of one batch."""


def collect(batches: Iterable[Batch], schedules: Sequence[str], *collectors: Collector) -> None:
    """Hand every batch to all collectors, so that rows are read once for all of them."""
    for batch in batches:
        aligned = Aligned.of(batch, schedules)
        for one in collectors:
            one.add(aligned)


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
        for batch in self._read():
            yield (aligned := Aligned.of(batch, self._schedules))
            room -= aligned.pulls.size
            kept = [*kept, aligned] if room >= 0 else []
        self._kept = kept if room >= 0 else None


def samples(
    batches: Iterable[Batch], schedule: str, columns: Sequence[str] = BATCH_COLUMNS
) -> dict[str, npt.NDArray[Any]]:
    """Join the columns of one schedule over all batches."""
    parts = [batch[schedule] for batch in batches if schedule in batch]
    return {
        column: np.concatenate([one[column] for one in parts]) if parts else np.zeros(0)
        for column in columns
    }
