"""Trial rows to summary rows: means with their errors, quantiles, error rates, paired ratios.

Prices enter here and nowhere before (`fastfed.analysis.prices`). The cost of an uplink, C, is free:
communication cost = C x uplinks, total cost = pulls + C x uplinks + other counts at fixed prices.
Or a bit has a cost c: communication cost = c x bits. A row of a summary has either a ``cost`` or a
``bit_cost``, and the other is null. Where bits were not counted in every trial (see
`fastfed.kernels.uplinks`), their mean is null, and so is what is made of it.

Some trials never end, and are given up (`truncated`): if the server loses its best arm by mistake
and the others tie, nothing can separate them. Their cost has no mean. So means, standard
deviations, standard errors and ratios are over the trials that *ended*, ``ended`` in number, and
beside them stand the number and the share of the others with an exact interval. Quantiles are
over all trials: one that was given up counts with what it had spent by then, so a quantile that
lies among such trials is a lower bound. In the error rate such a trial counts as wrong, because it
has not given all the answers.

Rows come in batches (`fastfed.analysis.moments`), whether from files or from memory. One pass
over them is enough, memory stays flat, and every bit of the result is independent of the batches.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.analysis.columns import column_types
from fastfed.analysis.intervals import clopper_pearson
from fastfed.analysis.moments import Moments, Sums
from fastfed.analysis.prices import PULLS, Cost, Given, Prices, Unit, columns_of, costs_of
from fastfed.analysis.quantiles import CellQuantiles
from fastfed.analysis.trials import Trials, collect
from fastfed.model.cell import CELL, Cell
from fastfed.model.choices import DEFAULTS
from fastfed.model.counts import COUNTS
from fastfed.model.schedules import Schedule
from fastfed.validation import checked_costs

if TYPE_CHECKING:
    import polars as pl

_STATISTICS = ("mean", "std", "sem", "q05", "q50", "q95")

SUMMARY_COLUMNS = (
    "instance",
    "schedule",
    "delta",
    "sigma",
    *DEFAULTS,
    "cost",
    "bit_cost",
    "prices",
    "trials",
    "ended",
    "truncated",
    "truncated_rate",
    "truncated_low",
    "truncated_high",
    *(f"{what}_{how}" for what in ("pulls", "communication", "total") for how in _STATISTICS),
    *(f"{name}_{how}" for name in COUNTS if name != "pulls" for how in ("mean", "sem")),
    "quantile_error",
    "error_rate",
    "error_low",
    "error_high",
    "ratio_to_fedelim0",
    "ratio_sem",
)
"""``quantile_error`` is the largest relative error of the quantiles: 0 up to 262,144 trials."""

_AT_ONCE = 1_000
"""Cells whose sums are in memory at a time: 20 MB."""
_MOST_ROWS = 2**22
"""Rows of cells that are summarised side by side: 100 MB."""

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]

Costs = Sequence[float] | float
"""Costs of an uplink or of a bit, one or several."""


def yardstick_of(schedules: Iterable[Schedule]) -> str | None:
    """Find the schedule that communicates at every step, with which the others are compared.

    It is FedElim0, or periodic:1, which has the same times.
    """
    every_step = [one for one in schedules if one.every_step]
    return str(min(every_step, key=lambda one: one.sort_key)) if every_step else None


def paired_moments(
    schedules: Sequence[Schedule],
    paired: Sequence[str] = tuple(COUNTS),
    columns: Sequence[str] = tuple(COUNTS),
) -> Moments:
    """Make sums in which every schedule is paired with the yardstick, by some of the columns."""
    partners = [one for one in (yardstick_of(schedules),) if one]
    return Moments([str(one) for one in schedules], partners, columns, paired=paired)


_Found = tuple[dict[Prices, list[float]], float]
"""Quantiles of a schedule, and their largest relative error."""


class _Cells(NamedTuple):
    """Sums and quantiles of cells that have the same schedules: arrays of (cell, schedule)."""

    cells: Sequence[Cell]
    schedules: Sequence[str]
    present: _Integers
    wrong: _Integers
    own: Sums
    pairs: Sums | None
    """Of the yardstick's counts, then of the schedule's less the yardstick's,"""
    paired: Sequence[str]
    """in these columns."""
    quantiles: Mapping[Prices, _Floats]
    """(cell, schedule, share)"""
    quantile_error: _Floats

    @classmethod
    def of(cls, some: Sequence[tuple[Cell, Moments, list[_Found]]]) -> _Cells:
        """Put the sums of several cells side by side."""
        cells, moments, found = zip(*some, strict=True)
        sums, names = [one.sums for one in moments], moments[0].schedules
        return cls(
            cells,
            names,
            np.stack([one.present for one in sums]),
            np.stack([one.wrong for one in sums]),
            Sums.stacked([one.own for one in sums]),
            Sums.stacked([one.pairs[0].sums for one in sums]) if moments[0].partners else None,
            moments[0].paired,
            {
                prices: np.array([[each[prices] for each, _ in cell] for cell in found])
                for prices in found[0][0][0]
            },
            np.array([[error for _, error in cell] for cell in found]),
        )

    def frame(self, costs: Sequence[Cost]) -> pl.DataFrame:
        """Make one row per cell, schedule that has trials, and cost, of an uplink and of a bit."""
        shape = (*self.present.shape, len(costs))
        there = np.broadcast_to(self.present[..., None] > 0, shape)
        cell, schedule, cost = (one.tolist() for one in np.nonzero(there))
        of_cells = {name: [getattr(one, name) for one in self.cells] for name in CELL}
        base = [str(unit.base) if unit.base != PULLS else None for _, unit in costs]
        columns: dict[str, Any] = {
            **{name: [values[place] for place in cell] for name, values in of_cells.items()},
            "schedule": [self.schedules[place] for place in schedule],
            "prices": [base[place] for place in cost],
        }
        with np.errstate(all="ignore"):
            at_costs = [self._at(*one) for one in costs]
            always = self._always()
        for name in SUMMARY_COLUMNS:
            if name in always:
                columns[name] = np.broadcast_to(always[name][..., None], shape)[there]
            elif name not in columns:
                columns[name] = np.stack([one[name] for one in at_costs], axis=-1)[there]
        return to_frame({name: columns[name] for name in SUMMARY_COLUMNS})

    def _at(self, cost: float, unit: Unit) -> dict[str, _Floats]:
        """Make the columns that depend on the cost; NaN where they are not known."""
        total = unit.total(cost)
        known = sum(self.own.dot(one.along(COUNTS)) for one in (unit.alone, unit.base))
        sent, spent = cost * self.quantiles[unit.alone], self.quantiles[total]
        found = {
            **self._ratio(total),
            **self._described("communication", unit.communication(cost), sent),
            **self._described("total", total, spent),
        }
        found = {name: np.where(np.isnan(known), np.nan, values) for name, values in found.items()}
        free = {"cost": np.nan, "bit_cost": np.nan, unit.column: cost}
        return found | {name: np.full(self.present.shape, one) for name, one in free.items()}

    def _always(self) -> dict[str, npt.NDArray[Any]]:
        """Make the columns that no cost changes."""
        trials, ended = self.present, self.own.count
        found: dict[str, npt.NDArray[Any]] = {
            "trials": trials,
            "ended": ended,
            "truncated": trials - ended,
            "quantile_error": self.quantile_error,
            **self._described("pulls", PULLS, self.quantiles[PULLS]),
        }
        for name in COUNTS:
            if name != "pulls":
                mean, _, sem = self._moments(Prices.of({name: 1.0}))
                found |= {f"{name}_mean": mean, f"{name}_sem": sem}
        some = np.maximum(trials, 1)
        for name, counts in (("truncated", trials - ended), ("error", self.wrong)):
            pairs = zip(counts.ravel().tolist(), some.ravel().tolist(), strict=True)
            ends = np.array([clopper_pearson(*one) for one in pairs]).reshape(*trials.shape, 2)
            found[f"{name}_rate"] = counts / some
            found[f"{name}_low"], found[f"{name}_high"] = ends[..., 0], ends[..., 1]
        return found

    def _ratio(self, prices: Prices) -> dict[str, _Floats]:
        """Make the columns of the ratio to FedElim0, as `fastfed.analysis.paired` does."""
        none = np.full(self.present.shape, np.nan)
        if self.pairs is None:
            return {"ratio_to_fedelim0": none, "ratio_sem": none}
        paid, count = prices.along(self.paired), self.pairs.count
        y, d = np.concatenate([paid, 0 * paid]), np.concatenate([0 * paid, paid])
        mean = self.pairs.dot(y)
        t = self.pairs.dot(d) / mean
        dd, yd, yy = (self.pairs.form(*each) for each in ((d, d), (y, d), (y, y)))
        sem = np.sqrt(np.maximum(0.0, dd - 2 * t * yd + t * t * yy) / (count - 1) / count)
        return {
            "ratio_to_fedelim0": np.where(mean != 0, 1 + t, np.nan),
            "ratio_sem": np.where((mean != 0) & (count > 1), sem / abs(mean), np.nan),
        }

    def _moments(self, prices: Prices) -> tuple[_Floats, _Floats, _Floats]:
        """Return mean, standard deviation and standard error of a cost; NaN if not known."""
        count, paid = self.own.count, prices.along(COUNTS)
        mean = np.where(count > 0, self.own.dot(paid), np.nan)
        scatter = np.where(count > 1, self.own.form(paid, paid), np.nan)
        std = np.sqrt(np.maximum(0.0, scatter / np.maximum(count - 1, 1)))
        return mean, std, std / np.sqrt(np.maximum(count, 1))

    def _described(self, name: str, prices: Prices, quantiles: _Floats) -> dict[str, _Floats]:
        found = (*self._moments(prices), *np.moveaxis(quantiles, -1, 0))
        return dict(zip((f"{name}_{how}" for how in _STATISTICS), found, strict=True))


def summary(
    trials: Trials,
    costs: Sequence[float],
    bit_costs: Sequence[float] = (),
    prices: Given = None,
) -> pl.DataFrame:
    """Summarise all cells: one row per cell, schedule and cost."""
    import polars as pl

    frames = [*summaries(trials, costs, bit_costs, prices)]
    return pl.concat(frames) if frames else to_frame([])


def summaries(
    trials: Trials,
    costs: Sequence[float],
    bit_costs: Sequence[float] = (),
    prices: Given = None,
) -> Iterator[pl.DataFrame]:
    """Summarise some cells after the other, so that memory does not grow with their number."""
    wanted = costs_of(costs, bit_costs, prices)
    left = iter(trials.held().items())
    while some := [*islice(left, _AT_ONCE)]:
        pool = ThreadPoolExecutor(_threads(trials, some))
        try:
            summed = pool.map(lambda item: _summed(trials, wanted, *item), some)
            for _, cells in groupby(summed, key=lambda one: one[1].schedules):
                yield _Cells.of([*cells]).frame(wanted)
        finally:
            pool.shutdown(cancel_futures=True)


def _threads(trials: Trials, some: Sequence[tuple[Cell, Sequence[Schedule]]]) -> int:
    """Return the number of threads; each may hold the trials of a cell for their quantiles."""
    most = max(
        sum(end - first for one in names for first, end in trials.ranges(cell, str(one)))
        for cell, names in some
    )
    return max(1, min(4, os.cpu_count() or 1, _MOST_ROWS // max(1, most)))


def _summed(
    trials: Trials, wanted: Sequence[Cost], cell: Cell, schedules: Sequence[Schedule]
) -> tuple[Cell, Moments, list[_Found]]:
    """Return the sums and quantiles of a cell."""
    moments = paired_moments(schedules, columns_of(wanted))
    quantiles = CellQuantiles(moments.schedules, wanted)
    collect(trials.batches(cell, moments.schedules), moments.schedules, moments, quantiles)
    found = [(one.found(), one.error) for one in map(quantiles.__getitem__, moments.schedules)]
    return cell, moments, found


def relative_error(moments: Moments, schedule: str, prices: Prices) -> float | None:
    """Return the relative standard error of the mean total cost.

    It is None if fewer than two trials ended, if the mean is 0, or if bits have a price and were
    not counted.
    """
    mean, sem = (f(schedule, prices) for f in (moments.mean, moments.sem))
    return None if not mean or sem is None else sem / mean


def to_frame(content: Any) -> pl.DataFrame:
    """Make a frame of rows or columns, with the types of `SUMMARY_COLUMNS` and null for NaN."""
    import polars as pl

    return pl.DataFrame(content, schema=column_types(SUMMARY_COLUMNS), nan_to_null=True)


def wanted_costs(
    costs: Costs | None,
    bit_costs: Costs | None,
    usual: Sequence[float],
    usual_bits: Sequence[float] = (),
) -> tuple[list[float], list[float]]:
    """Return the costs of an uplink and those of a bit.

    If neither is given, both have their defaults. If only one is given, the other is empty.
    """
    if costs is None and bit_costs is None:
        return list(usual), list(usual_bits)
    of_uplinks, of_bits = (
        [] if one is None or (isinstance(one, Sized) and not len(one)) else checked_costs(one, of)
        for one, of in ((costs, "an uplink"), (bit_costs, "a bit"))
    )
    return of_uplinks if of_uplinks or of_bits else checked_costs([]), of_bits


def not_ended_text(frame: pl.DataFrame) -> str:
    """Write the note above a summary in which some trials did not end; empty if all ended."""
    import polars as pl

    some = frame.filter(pl.col("truncated") > 0)
    if not len(some):
        return ""
    worst = some.row(int(some["truncated_rate"].arg_max() or 0), named=True)
    return (
        f"note: some trials did not end, up to {worst['truncated']:,} of {worst['trials']:,} "
        f"(95 % interval {worst['truncated_low']:.2g} to {worst['truncated_high']:.2g}), "
        "marked *;\n      means are over those that ended, quantiles over all; error rates "
        "count the others as wrong"
    )
