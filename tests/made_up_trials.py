"""Trials made up from random numbers, and their moments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from fastfed.analysis.cheapest import Envelope, envelope
from fastfed.analysis.moments import Halves, Moments
from fastfed.analysis.paired import Paired
from fastfed.analysis.prices import UPLINK
from fastfed.analysis.summary import SUMMARY_COLUMNS, summary, to_frame
from fastfed.analysis.trials import BATCH_COLUMNS, Batch, Passes, collect
from fastfed.model.cell import CELL as COLUMNS_OF_A_CELL
from fastfed.model.cell import Cell
from fastfed.model.choices import DEFAULTS
from fastfed.model.instance import Instance
from fastfed.model.schedules import Schedule

CELL = {"instance": "here", "delta": 0.1, "sigma": 1.0}


NAMES = ("fedelim0", "periodic:10", "fedelim", "superexponential", "at:1")


def moments_of(
    pulls: Any,
    uplinks: Any,
    ended: Any = None,
    names: tuple[str, ...] = NAMES,
    parts: int = 1,
    right: Any = None,
) -> Moments:
    """Moments of trials (schedule, trial), in a number of batches."""
    batches = _batches(pulls, uplinks, ended, names, parts, right)
    names = tuple(batches[0])
    collect(batches, names, moments := Moments(names, names))
    return moments


def envelope_of(
    pulls: Any,
    uplinks: Any,
    ended: Any = None,
    names: tuple[str, ...] = NAMES,
    parts: int = 1,
    right: Any = None,
    cell: dict[str, Any] = CELL,
) -> Envelope:
    """Find the cheapest of trials (schedule, trial)."""
    batches = _batches(pulls, uplinks, ended, names, parts, right)
    names = tuple(batches[0])
    rows = Passes(lambda: batches, names)
    rows.collect(first := Moments(names))
    return envelope(first, rows.collect, cell)


def _batches(
    pulls: Any, uplinks: Any, ended: Any, names: tuple[str, ...], parts: int, right: Any
) -> list[Batch]:
    pulls, uplinks = (np.asarray(a, dtype=np.int64) for a in (pulls, uplinks))
    names = names[: len(pulls)]
    ended = np.full(pulls.shape, True) if ended is None else np.asarray(ended)
    right = np.full(pulls.shape, True) if right is None else np.asarray(right)
    return [
        {
            name: {
                "trial": part,
                "pulls": pulls[i, part],
                "uplinks": uplinks[i, part],
                "correct": right[i, part],
                "truncated": ~ended[i, part],
            }
            for i, name in enumerate(names)
        }
        for part in np.array_split(np.arange(pulls.shape[1]), parts)
    ]


def apart(moments: Moments) -> Paired:
    """Return the cost of the second schedule less that of the first."""
    first, second = NAMES[:2]
    return moments.apart(second, first, UPLINK)


def halves_of(batch: Batch, names: Sequence[str]) -> Halves:
    """Add up the even and the odd trials of one batch, with every pair of schedules."""
    halves = Halves(names, names)
    collect([batch], names, halves)
    return halves


def frame_batch(frame: pl.DataFrame) -> Batch:
    """Rows of one cell as one batch."""
    return {
        str(schedule): {
            name: trials[name].fill_null(-1).to_numpy()
            if name == "bits"
            else trials[name].to_numpy()
            for name in BATCH_COLUMNS
        }
        for (schedule,), trials in frame.sort("trial", maintain_order=True).group_by(
            ["schedule"], maintain_order=True
        )
    }


def summarise(frame: pl.DataFrame, costs: Sequence[float]) -> pl.DataFrame:
    """Summary of trial rows, cell by cell."""
    rows: list[dict[str, object]] = []
    for key, part in frame.group_by(list(COLUMNS_OF_A_CELL), maintain_order=True):
        names = part["schedule"].unique(maintain_order=True).to_list()
        head = dict(zip(COLUMNS_OF_A_CELL, key, strict=True))
        rows += [{**row, **head} for row in summary_of([frame_batch(part)], names, costs)]
    return to_frame(rows)


class Cells:
    """Trials of cells with the same schedules, each given as batches."""

    source = "made up"

    def __init__(
        self, cells: Sequence[Iterable[Batch]], schedules: Sequence[str], instance: str = "here"
    ) -> None:
        deltas = [0.1 / (1 + place) for place in range(len(cells))]
        keys = [Cell(instance, "", delta, 1.0, 0, "auto") for delta in deltas]
        self._cells, self._schedules = dict(zip(keys, cells, strict=True)), schedules

    @property
    def instances(self) -> dict[str, Instance]:
        return {cell.instance: Instance.load(cell.instance) for cell in self._cells}

    def choices(self, cell: Cell) -> dict[str, str]:
        return cell.choices

    def held(self) -> dict[Cell, list[Schedule]]:
        return dict.fromkeys(self._cells, Schedule.parse_all(self._schedules))

    def ranges(self, *_: Any) -> list[tuple[int, int]]:
        return [(0, 1000)]

    def batches(self, cell: Cell, *_: Any) -> Iterator[Batch]:
        return iter(self._cells[cell])


def summary_of(
    batches: Iterable[Batch], schedules: Sequence[str], costs: Sequence[float]
) -> list[dict[str, Any]]:
    """Rows of the summary of one cell."""
    trials: Any = Cells([batches], schedules)
    return summary(trials, costs).to_dicts()


def simulated(rng: np.random.Generator, trials: int, schedules: int = 4) -> tuple[Any, Any]:
    """Costs that share a trial's luck: fewer uplinks for more pulls."""
    luck = rng.lognormal(0, 0.4, trials)
    pulls = np.stack(
        [1000 * (1 + 0.3 * i) * luck * rng.lognormal(0, 0.05, trials) for i in range(schedules)]
    )
    uplinks = np.stack(
        [500 / 3**i * luck * rng.lognormal(0, 0.05, trials) for i in range(schedules)]
    )
    return pulls.astype(np.int64), uplinks.astype(np.int64)


def summary_frame(*rows: dict[str, object]) -> pl.DataFrame:
    """Summary rows with made-up numbers; what is given stands in place of the usual."""
    usual: dict[str, object] = {
        **dict.fromkeys(SUMMARY_COLUMNS, 1.0),
        "instance": "here",
        "schedule": "fedelim",
        "delta": 0.1,
        **DEFAULTS,
        "sigma": 1.0,
        "cost": 10.0,
        "bit_cost": None,
        "prices": None,
        "trials": 1000,
        "total_mean": 473427.3,
        "total_sem": 1260.2,
        "pulls_mean": 400000.0,
        "error_rate": 0.0012,
        "error_low": 0.00033,
        "error_high": 0.0031,
        "ratio_to_fedelim0": 0.73,
        "truncated": 0,
    }
    return pl.DataFrame([{**usual, **row} for row in rows])
