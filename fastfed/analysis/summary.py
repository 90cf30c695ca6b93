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

import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.analysis.columns import column_types
from fastfed.analysis.intervals import clopper_pearson
from fastfed.analysis.moments import Moments, Sums
from fastfed.analysis.prices import PULLS, Cost, Given, Prices, Unit, columns_of, costs_of
from fastfed.analysis.quantiles import SHARES, CellQuantiles, measures
from fastfed.analysis.trials import Aligned, Batch, Trials, blocks
from fastfed.model.cell import Cell
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

_TOGETHER = 2**16
"""Rows of small cells that are added up together."""
_ALL = tuple(COUNTS)
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
    schedules: Sequence[Schedule], paired: Sequence[str] = _ALL, columns: Sequence[str] = _ALL
) -> Moments:
    """Make sums in which every schedule is paired with the yardstick, by some of the columns."""
    partners = [one for one in (yardstick_of(schedules),) if one]
    return Moments([str(one) for one in schedules], partners, columns, paired=paired)


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

    def frame(self, costs: Sequence[Cost]) -> pl.DataFrame:
        """Make one row per cell, schedule that has trials, and cost, of an uplink and of a bit."""
        import polars as pl

        shape = (*self.present.shape, len(costs))
        there = np.broadcast_to(self.present[..., None] > 0, shape)
        cell, schedule, cost = np.nonzero(there)
        texts = {
            **{
                name: ([getattr(one, name) for one in self.cells], cell)
                for name in ("instance", *DEFAULTS)
            },
            "schedule": (self.schedules, schedule),
            "prices": (
                [str(unit.base) if unit.base != PULLS else None for _, unit in costs],
                cost,
            ),
        }
        numbers = {
            **self._always(),
            "delta": np.array([[one.delta] for one in self.cells]),
            "sigma": np.array([[one.sigma] for one in self.cells]),
        }
        with np.errstate(all="ignore"):
            at_costs = [self._at(*one) for one in costs]
        of_costs = {
            name: np.stack([one[name] for one in at_costs], axis=-1) for name in at_costs[0]
        }
        columns: dict[str, Any] = {}
        for name, kind in column_types(SUMMARY_COLUMNS).items():
            if name in texts:
                different, places = texts[name]
                columns[name] = pl.Series(different, dtype=kind).gather(places)
            else:
                values = of_costs[name] if name in of_costs else numbers[name][..., None]
                columns[name] = np.broadcast_to(values, shape)[there]
        return to_frame(columns)

    def _at(self, cost: float, unit: Unit) -> dict[str, _Floats]:
        """Make the columns that depend on the cost; NaN where they are not known."""
        total = unit.total(cost)
        known = sum(_dot(self.own.mean, one) for one in (unit.alone, unit.base))
        found = {
            **self._ratio(total),
            **self._described(
                "communication", unit.communication(cost), cost * self.quantiles[unit.alone]
            ),
            **self._described("total", total, self.quantiles[total]),
        }
        found = {name: np.where(np.isnan(known), np.nan, values) for name, values in found.items()}
        free = {"cost": np.nan, "bit_cost": np.nan, unit.column: cost}
        return found | {name: np.full(self.present.shape, one) for name, one in free.items()}

    def _always(self) -> dict[str, npt.NDArray[Any]]:
        """Make the columns that no cost changes."""
        trials, ended = self.present, self.own.count
        some = np.maximum(trials, 1)
        found: dict[str, npt.NDArray[Any]] = {
            "trials": trials,
            "ended": ended,
            "truncated": trials - ended,
            **self._described("pulls", PULLS, self.quantiles[PULLS]),
            "quantile_error": self.quantile_error,
        }
        for name in COUNTS:
            if name != "pulls":
                mean, _, sem = self._moments(Prices.of({name: 1.0}))
                found |= {f"{name}_mean": mean, f"{name}_sem": sem}
        for name, counts in (("truncated", trials - ended), ("error", self.wrong)):
            pairs = zip(counts.ravel().tolist(), some.ravel().tolist(), strict=True)
            ends = np.array([clopper_pearson(*one) for one in pairs]).reshape(*trials.shape, 2)
            found[f"{name}_rate"] = counts / some
            found[f"{name}_low"], found[f"{name}_high"] = ends[..., 0], ends[..., 1]
        return found

    def _ratio(self, prices: Prices) -> dict[str, _Floats]:
        """Make the columns of the ratio to FedElim0, as `fastfed.analysis.moments.Paired` does."""
        none = np.full(self.present.shape, np.nan)
        if self.pairs is None:
            return {"ratio_to_fedelim0": none, "ratio_sem": none}
        count, mean, scatter = self.pairs.count, self.pairs.mean, self.pairs.scatter
        own, half = len(self.paired), slice(len(self.paired), None)
        y, d = (_dot(one, prices, self.paired) for one in (mean[..., :own], mean[..., half]))
        yy, yd, dd = (
            _form(one, prices, self.paired)
            for one in (
                scatter[..., :own, :own],
                scatter[..., :own, half],
                scatter[..., half, half],
            )
        )
        ratio = (y + d) / y
        a = 1.0 - ratio
        left = np.maximum(0.0, dd + 2 * a * yd + a * a * yy)
        sem = np.sqrt(left / (count - 1) / count) / abs(y)
        return {
            "ratio_to_fedelim0": np.where(y != 0, ratio, np.nan),
            "ratio_sem": np.where((y != 0) & (count > 1), sem, np.nan),
        }

    def _moments(self, prices: Prices) -> tuple[_Floats, _Floats, _Floats]:
        """Return mean, standard deviation and standard error of a cost; NaN if not known."""
        count = self.own.count
        mean = np.where(count > 0, _dot(self.own.mean, prices), np.nan)
        scatter = np.where(count > 1, _form(self.own.scatter, prices), np.nan)
        std = np.sqrt(np.maximum(0.0, scatter / np.maximum(count - 1, 1)))
        return mean, std, std / np.sqrt(np.maximum(count, 1))

    def _described(self, name: str, prices: Prices, quantiles: _Floats) -> dict[str, _Floats]:
        found = (*self._moments(prices), *np.moveaxis(quantiles, -1, 0))
        return dict(zip((f"{name}_{how}" for how in _STATISTICS), found, strict=True))


def _dot(values: _Floats, prices: Prices, columns: Sequence[str] = _ALL) -> _Floats:
    """Add up prices times values (..., column), the same for any number of cells."""
    paid = (price * values[..., columns.index(name)] for name, price in prices.items)
    return np.asarray(sum(paid, np.zeros(values.shape[:-1])))


def _form(scatter: _Floats, prices: Prices, columns: Sequence[str] = _ALL) -> _Floats:
    """Return the scatter of a cost from that of the columns, (..., column, column)."""
    paid = (
        x * y * scatter[..., columns.index(one), columns.index(other)]
        for one, x in prices.items
        for other, y in prices.items
    )
    return np.asarray(sum(paid, np.zeros(scatter.shape[:-2])))


def summary(
    trials: Trials,
    costs: Sequence[float],
    bit_costs: Sequence[float] = (),
    prices: Given = None,
) -> pl.DataFrame:
    """Summarise all cells: one row per cell, schedule and cost.

    Small cells that have the same trials are added up together.
    """
    import polars as pl

    wanted = costs_of(costs, bit_costs, prices)
    frames: list[pl.DataFrame] = []
    waiting: list[tuple[Cell, Batch]] = []
    shape: Any = None

    def flush() -> None:
        if waiting:
            frames.append(_together(waiting, shape[0], wanted).frame(wanted))
            waiting.clear()

    for cell, schedules in trials.held().items():
        names = [str(one) for one in schedules]
        read = blocks(trials.batches(cell, names))
        some = [*islice(read, 2)]
        here = _shape(some[0], names) if len(some) == 1 else None
        if here is None or here != shape or len(waiting) * _size(some[0]) > _TOGETHER:
            flush()
        shape = here
        if here is not None:
            waiting.append((cell, some[0]))
        elif some:
            frames.append(_alone(cell, schedules, chain(some, read), wanted).frame(wanted))
    flush()
    return pl.concat(frames) if frames else to_frame([])


def _shape(block: Batch, names: Sequence[str]) -> tuple[Any, ...] | None:
    """Return what cells have in common that are added up together; None: a cell is by itself.

    Every schedule has the same trials without a gap, and all trials ended.
    """
    first: Mapping[str, Any] = block.get(names[0], {"trial": ()})
    count = len(first["trial"])
    for name in names:
        rows = block.get(name)
        if rows is None or not count or len(rows["trial"]) != count or rows["truncated"].any():
            return None
        if rows["trial"][0] != first["trial"][0] or rows["trial"][-1] - rows["trial"][0] >= count:
            return None
    return (tuple(names), tuple(first), count)


def _size(block: Batch) -> int:
    return sum(len(rows["trial"]) for rows in block.values())


def _together(
    some: Sequence[tuple[Cell, Batch]], names: Sequence[str], costs: Sequence[Cost]
) -> _Cells:
    """Add up cells of the same shape."""
    shape = (len(some), len(names), -1)

    def joined(column: str) -> npt.NDArray[Any]:
        return np.concatenate([one[name][column] for _, one in some for name in names])

    columns = {one: joined(one).reshape(shape) for one in some[0][1][names[0]]}
    ended = ~columns["truncated"]
    held = tuple(one for one in COUNTS if one in columns)
    counts = np.stack([columns[one] for one in held], axis=-2).astype(np.float64)
    counts[counts < 0] = np.nan
    here, wrong = np.ones_like(ended), ~columns["correct"]
    aligned = Aligned(tuple(names), columns["trial"], here, ended, wrong, held, counts)
    values = np.moveaxis(np.fmax(aligned.values(_ALL), 0.0), -2, 0)
    spent = dict(zip(COUNTS, values, strict=True))
    with np.errstate(over="ignore", invalid="ignore"):
        found = {
            one: np.moveaxis(np.quantile(one.spent(spent), SHARES, axis=-1), 0, -1)
            for one in measures(costs)
        }
    paired = columns_of(costs)
    sums = _added_up(aligned, yardstick_of(map(Schedule.parse, names)), paired)
    cells, errors = [cell for cell, _ in some], np.zeros(ended.shape[:2])
    return _Cells(cells, names, *sums, paired, found, errors)


def _alone(
    cell: Cell, schedules: Sequence[Schedule], read: Iterable[Batch], costs: Sequence[Cost]
) -> _Cells:
    """Add up the blocks of one cell."""
    names, yardstick = [str(one) for one in schedules], yardstick_of(schedules)
    quantiles, paired = CellQuantiles(names, costs), columns_of(costs)
    sums: Any = None
    for block in read:
        aligned = Aligned.of(block, names)
        quantiles.add(aligned)
        new = _added_up(aligned, yardstick, paired)
        both = zip(sums or new, new, strict=True)
        sums = new if sums is None else tuple(a if a is None else a + b for a, b in both)
    none = [math.nan] * len(SHARES)
    each = [quantiles[name] for name in names]
    found = {
        one: np.array([[its.of(one) if its.count else none for its in each]])
        for one in measures(costs)
    }
    present, wrong, own, pairs = sums
    errors = np.array([[its.error for its in each]])
    return _Cells([cell], names, present, wrong, own, pairs, paired, found, errors)


def _added_up(
    trials: Aligned, yardstick: str | None, paired: Sequence[str]
) -> tuple[_Integers, _Integers, Sums, Sums | None]:
    """Sum a block of trials, of one or several cells: the fields of `_Cells`."""
    shape = (-1, *trials.ended.shape[-2:])
    ended = trials.ended.reshape(shape)
    values, some = (
        one.reshape(-1, *one.shape[-3:]) for one in (trials.values(_ALL), trials.values(paired))
    )
    pairs = None
    if yardstick is not None:
        row = trials.schedules.index(yardstick)
        beside = some[:, row : row + 1]
        pairs = Sums.of(ended & ended[:, row : row + 1], beside, some - beside)
    present, wrong = (one.reshape(shape).sum(axis=-1) for one in (trials.present, trials.wrong))
    return present, wrong, Sums.of(ended, values), pairs


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
