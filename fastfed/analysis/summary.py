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

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING

from fastfed.analysis.columns import column_types
from fastfed.analysis.intervals import clopper_pearson
from fastfed.analysis.moments import Moments
from fastfed.analysis.prices import PULLS, Cost, Given, Prices, Unit, costs_of
from fastfed.analysis.quantiles import CellQuantiles, Quantiles
from fastfed.analysis.trials import Batch, Trials, collect
from fastfed.model.choices import DEFAULTS
from fastfed.model.counts import COUNTS
from fastfed.model.schedules import Schedule
from fastfed.validation import checked_costs

if TYPE_CHECKING:
    import polars as pl

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
    *(
        f"{what}_{how}"
        for what in ("pulls", "communication", "total")
        for how in ("mean", "std", "sem", "q05", "q50", "q95")
    ),
    *(f"{name}_{how}" for name in COUNTS if name != "pulls" for how in ("mean", "sem")),
    "quantile_error",
    "error_rate",
    "error_low",
    "error_high",
    "ratio_to_fedelim0",
    "ratio_sem",
)
"""``quantile_error`` is the largest relative error of the quantiles: 0 up to 262,144 trials."""

Costs = Sequence[float] | float
"""Costs of an uplink or of a bit, one or several."""


def yardstick_of(schedules: Iterable[Schedule]) -> str | None:
    """Find the schedule that communicates at every step, with which the others are compared.

    It is FedElim0, or periodic:1, which has the same times.
    """
    every_step = [one for one in schedules if one.every_step]
    return str(min(every_step, key=lambda one: one.sort_key)) if every_step else None


def paired_moments(
    schedules: Sequence[Schedule], columns: Sequence[str] = tuple(COUNTS)
) -> Moments:
    """Make sums in which every schedule is paired with the yardstick."""
    yardstick = yardstick_of(schedules)
    return Moments([str(one) for one in schedules], [yardstick] if yardstick else [], columns)


class Summary:
    """The summary of one cell, from the sums and quantiles of its trials."""

    def __init__(self, moments: Moments, quantiles: CellQuantiles, yardstick: str | None) -> None:
        self.moments, self.quantiles, self.yardstick = moments, quantiles, yardstick

    def rows(self) -> Iterator[dict[str, object]]:
        """Make one row per schedule that has trials and per cost, of an uplink and of a bit."""
        for schedule in self.moments.schedules:
            quantiles = self.quantiles[schedule]
            if quantiles.count:
                always = self._always(schedule, quantiles)
                for cost, unit in self.quantiles.costs:
                    fixed = str(unit.base) if unit.base != PULLS else None
                    costs = {unit.column: cost, "prices": fixed}
                    yield always | costs | self._at(schedule, cost, unit)

    def _at(self, schedule: str, cost: float, unit: Unit) -> dict[str, float | None]:
        """Make the columns of a summary row that depend on the cost, where they are known."""
        total, quantiles = unit.total(cost), self.quantiles[schedule]
        if not all(self.moments.has_cost(schedule, one) for one in (unit.alone, unit.base)):
            return {}
        sent = [cost * one for one in quantiles.of(unit.alone)]
        return {
            **self._ratio(schedule, total),
            **self._described("communication", schedule, unit.communication(cost), sent),
            **self._described("total", schedule, total, quantiles.of(total)),
        }

    def _always(self, schedule: str, quantiles: Quantiles) -> dict[str, object]:
        """Make the columns of a summary row that no cost changes."""
        moments = self.moments
        trials, errors, ended = (
            f(schedule) for f in (moments.trials, moments.errors, moments.ended)
        )
        low, high = clopper_pearson(errors, trials)
        cut_low, cut_high = clopper_pearson(trials - ended, trials)
        return {
            "schedule": schedule,
            "trials": trials,
            "ended": ended,
            "truncated": trials - ended,
            "truncated_rate": (trials - ended) / trials,
            "truncated_low": cut_low,
            "truncated_high": cut_high,
            **self._described("pulls", schedule, PULLS, quantiles.of(PULLS)),
            **{
                f"{name}_{how}": find(schedule, Prices.of({name: 1.0}))
                for name in COUNTS
                if name != "pulls"
                for how, find in (("mean", moments.mean), ("sem", moments.sem))
            },
            "quantile_error": quantiles.error,
            "error_rate": errors / trials,
            "error_low": low,
            "error_high": high,
        }

    def _ratio(self, schedule: str, prices: Prices) -> dict[str, float | None]:
        """Make the columns of the ratio to FedElim0, where it is there and has a cost."""
        other = self.yardstick
        if other is None or not self.moments.has_cost(other, prices):
            return {}
        pair = self.moments.pair(schedule, other, prices)
        return {"ratio_to_fedelim0": pair.ratio, "ratio_sem": pair.ratio_sem}

    def _described(
        self, name: str, schedule: str, prices: Prices, quantiles: Sequence[float]
    ) -> dict[str, float | None]:
        low, middle, high = quantiles
        return {
            f"{name}_mean": self.moments.mean(schedule, prices),
            f"{name}_std": self.moments.std(schedule, prices),
            f"{name}_sem": self.moments.sem(schedule, prices),
            f"{name}_q05": low,
            f"{name}_q50": middle,
            f"{name}_q95": high,
        }


def summary_of(
    batches: Iterable[Batch], schedules: Sequence[str | Schedule], costs: Sequence[Cost]
) -> list[dict[str, object]]:
    """Make the summary rows of one cell, without the columns that name the cell.

    A row has only the columns that are known; `to_frame` makes null of the others.
    """
    parts = [Schedule.parse(one) for one in schedules]
    moments = paired_moments(parts)
    quantiles = CellQuantiles(moments.schedules, costs)
    collect(batches, moments.schedules, moments, quantiles)
    return list(Summary(moments, quantiles, yardstick_of(parts)).rows())


def summary(
    trials: Trials,
    costs: Sequence[float],
    bit_costs: Sequence[float] = (),
    prices: Given = None,
) -> pl.DataFrame:
    """Summarise all cells: one row per cell, schedule and cost."""
    wanted = costs_of(costs, bit_costs, prices)
    rows: list[dict[str, object]] = []
    for cell, schedules in trials.held().items():
        batches = trials.batches(cell, [str(one) for one in schedules])
        rows += [{**cell.names, **row} for row in summary_of(batches, schedules, wanted)]
    return to_frame(rows)


def relative_error(moments: Moments, schedule: str, prices: Prices) -> float | None:
    """Return the relative standard error of the mean total cost.

    It is None if fewer than two trials ended, if the mean is 0, or if bits have a price and were
    not counted.
    """
    mean, sem = (f(schedule, prices) for f in (moments.mean, moments.sem))
    return None if not mean or sem is None else sem / mean


def to_frame(rows: list[dict[str, object]]) -> pl.DataFrame:
    """Make a frame of summary rows, with the types of `SUMMARY_COLUMNS`."""
    import polars as pl

    return pl.DataFrame(rows, schema=column_types(SUMMARY_COLUMNS))


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
