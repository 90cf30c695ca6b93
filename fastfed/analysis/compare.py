"""Paired comparisons between the values of one choice: radius, uplink, goal, schedule, ...

Rows that differ in one choice and in nothing else form a *group*. Each value of the choice is
compared with a reference value: the ratio and the difference of mean total cost, pulls, uplinks
and bits. Trials are paired by their number. Pairs of different trials are independent, so the
intervals hold whether the two runs share their random numbers or not; sharing makes them short.

**Intervals.** With x the cost under a value and y that under the reference, the interval of the
ratio consists of all r at which the test of `fastfed.analysis.intervals` cannot tell the mean of
x - r y from 0 (Fieller), and that of the difference of all d at which it cannot tell the mean of
x - y - d from 0. Both tests must survive one further trial, the worst that costs allow. Where the
trials in which the two differ are too few or decide nothing, the intervals are extended to 1 and
to 0: no interval excludes equality that the test of the differing trials allows.

**Their number.** With m comparisons in a table every interval has the level 1 - 0.05 / m
(Bonferroni). So all intervals of ratios hold together with a probability of 95 %, and so do all
intervals of differences. A filter that asks for less makes the intervals shorter.

**Trials that fail** say nothing about the price of an answer. As `fastfed.analysis.comparable`
says, a value that fails in more trials than delta allows is excluded and named; the others of its
group are compared over the trials that all of them answered rightly. Below 3 / delta of them
nothing is separated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from fastfed.analysis.columns import column_types
from fastfed.analysis.comparable import (
    Comparable,
    Failures,
    comparable,
    excluded_text,
    few_text,
    least_trials,
)
from fastfed.analysis.intervals import LEAST_DIFFERING, finite, student, with_further
from fastfed.analysis.moments import Moments
from fastfed.analysis.paired import Paired
from fastfed.analysis.prices import BITS, PULLS, UPLINKS, Cost, Given, Prices, columns_of, costs_of
from fastfed.analysis.selection import CHOICES, values_of
from fastfed.analysis.summary import yardstick_of
from fastfed.analysis.trials import Passes, Run, Trials, columns_with, read_runs, runs_of
from fastfed.errors import InputError, nearest
from fastfed.model.choices import DEFAULTS
from fastfed.model.counts import COUNTS
from fastfed.text import listed

if TYPE_CHECKING:
    import polars as pl


CONFIDENCE = 0.95
FOLDER = "sweep"
"""Name of the choice that is compared between two sweeps."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Paired comparisons of the values of one choice; as text, a table.

    Examples
    --------
    >>> import fastfed as ff
    >>> res = ff.simulate([[0.9], [0.1]], ["fedelim", "fedelim0"], delta=0.1, trials=200)
    >>> res.compare(by="schedule", cost=10).frame["measure"].to_list()
    ['total', 'pulls', 'uplinks', 'bits']
    """

    by: str
    """The choice."""
    frame: pl.DataFrame
    """One row per group, value and measure: the columns of the group; the value, under the name of
    the choice; ``reference``; ``measure`` ("total", "pulls", "uplinks" or "bits"), with the
    ``cost`` or ``bit_cost`` of a total; ``mean`` and ``reference_mean``; ``ratio`` and
    ``difference`` with their intervals ``_low`` and ``_high``; ``pairs`` of trials, in ``differ``
    of which the two differ; ``separated``, if the intervals exclude equality."""
    level: float
    """Confidence level of each interval."""
    notes: tuple[str, ...]
    """Values that are excluded, and groups with too few trials."""

    def __str__(self) -> str:
        from fastfed.display.compare_table import compare_table

        return compare_table(self, rest=".frame").text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from fastfed.display.compare_table import compare_table

        return compare_table(self, rest=".frame").html()


@dataclass(frozen=True)
class _Group:
    """Runs that differ in one choice: the values of the choice, by the names of the runs."""

    names: Mapping[str, Any]
    """Values of the other choices."""
    values: Mapping[str, str]
    reference: str
    """The name of the run."""
    deltas: Mapping[str, float]


_Summed = tuple[_Group, Comparable, Moments]
"""A group, the runs that may be compared, and the sums over the trials that compare them."""


def compare(
    trials: Trials | Mapping[str, Trials],
    by: str,
    costs: Sequence[float],
    bit_costs: Sequence[float] = (),
    to: object = None,
    prices: Given = None,
) -> Comparison:
    """Compare the values of a choice, or two sweeps by their names."""
    import polars as pl

    wanted = costs_of(costs, bit_costs, prices)
    priced = dict.fromkeys((*columns_of(wanted), "pulls", "uplinks", "bits"))
    columns = tuple(name for name in COUNTS if name in priced)
    sweeps = trials if isinstance(trials, Mapping) else {"": trials}
    values = list(sweeps) if by == FOLDER else _values(sweeps[""], by)
    groups = _groups(sweeps, by, _reference(by, values, to), columns)
    measures = _measures(wanted)
    excluded: list[dict[str, Failures]] = []
    counts: list[tuple[int, int]] = []
    found: list[tuple[dict[str, Any], Paired, int]] = []
    for group, chosen, moments in groups:
        excluded.append(
            {f"{by} {group.values[name]}": why for name, why in chosen.excluded.items()}
        )
        if group.reference in chosen.schedules and moments.ended(group.reference):
            least = least_trials({name: group.deltas[name] for name in chosen.schedules})
            counts.append((moments.ended(group.reference), least))
            for name in chosen.schedules:
                found += [(*one, least) for one in _pairs(group, name, moments, by, measures)]
    if not excluded:
        raise InputError(
            f"{' and '.join(sweeps)}: no cell of the one has the instance, delta, sigma, radius, "
            "goal and uplink of one of the other"
        )
    if not found:
        out = "; ".join(excluded_text(excluded, "groups"))
        raise InputError(f"by {by}: nothing to compare" + (f"; {out}" if out else ""))
    level = 1 - (1 - CONFIDENCE) / len(found)
    rows = [{**row, **estimates(pairs, level, least)} for row, pairs, least in found]
    front = [name for name in (*CHOICES, FOLDER) if name in rows[0]]
    types = column_types(dict.fromkeys([*front, *rows[0]]))
    frame = pl.DataFrame(rows, schema=types | {by: pl.String})
    frame = frame.cast(dict.fromkeys((by, "reference"), types[by]))
    notes = [*excluded_text(excluded, "groups"), *few_text(counts, "groups")]
    return Comparison(by, frame, level, tuple(notes))


_Measure = tuple[dict[str, Any], Prices]
"""The columns that name a measure, and its prices."""


def _measures(costs: Sequence[Cost]) -> list[_Measure]:
    """List the measures."""
    none = {"cost": None, "bit_cost": None}
    alone = {"pulls": PULLS, "uplinks": UPLINKS, "bits": BITS}
    return [
        *(
            ({"measure": "total", **none, unit.column: cost}, unit.total(cost))
            for cost, unit in costs
        ),
        *(({"measure": name, **none}, prices) for name, prices in alone.items()),
    ]


def _pairs(
    group: _Group, name: str, moments: Moments, by: str, measures: list[_Measure]
) -> Iterator[tuple[dict[str, Any], Paired]]:
    """Pair a run of a group with the reference, by the measures that both have."""
    both = name, group.reference
    for columns, prices in measures:
        if name != group.reference and None not in [moments.mean(one, prices) for one in both]:
            value, reference = (group.values[one] for one in both)
            row = {**group.names, by: value, "reference": reference, **columns}
            yield row, moments.pair(*both, prices)


def estimates(pairs: Paired, level: float, least: int = 0) -> dict[str, Any]:
    """Estimate the ratio and the difference of two mean costs, with intervals of a level.

    Below ``least`` pairs nothing is decided.
    """
    ratio = _ratio_interval(pairs, level)
    span = _difference_interval(pairs, level)
    alpha = (1 - level) / 2
    decided = pairs.pairs >= least and min(pairs.tails()) <= alpha
    if not decided:
        ratio = min(ratio[0], 1.0), max(ratio[1], 1.0)
        span = min(span[0], 0.0), max(span[1], 0.0)
    if not pairs.differ:  # equal in every trial that was seen
        ratio = span = (math.nan, math.nan)
    return {
        "mean": pairs.means[0],
        "reference_mean": pairs.means[1],
        "ratio": pairs.ratio,
        "ratio_low": finite(ratio[0]),
        "ratio_high": finite(ratio[1]),
        "difference": pairs.u,
        "difference_low": finite(span[0]),
        "difference_high": finite(span[1]),
        "pairs": pairs.pairs,
        "differ": pairs.differ,
        "separated": decided and not span[0] <= 0 <= span[1],
    }


def _ratio_interval(pairs: Paired, level: float) -> tuple[float, float]:
    """Return all r at which the mean of x - r y cannot be told from 0 (Fieller)."""
    if pairs.pairs < LEAST_DIFFERING or not pairs.v:
        return 0.0, math.inf
    found = pairs.from_0.undecided(level)
    return (found[0][0], found[-1][1]) if found else (pairs.ratio or 0.0, pairs.ratio or 0.0)


def _difference_interval(pairs: Paired, level: float) -> tuple[float, float]:
    """Return all d at which the mean of x - y - d cannot be told from 0."""
    n = pairs.pairs
    if n < LEAST_DIFFERING:
        return -math.inf, math.inf
    ends = []
    for worst in (pairs.least[0], pairs.most[0]):
        mean, scatter = with_further(n, pairs.u, pairs.uu, worst)
        ends.append(student(mean, math.sqrt(scatter / n / (n + 1)), n + 1, level))
    return ends[0][0], ends[1][1]


def usual_choice(trials: Trials) -> str:
    """Return the choice that is compared where none is named: the first with several values."""
    held = trials.held()
    return next((one for one in DEFAULTS if len(values_of(one, held)) > 1), "schedule")


def _values(trials: Trials, by: str) -> list[Any]:
    """List the values of a choice, of which there must be several."""
    held = trials.held()
    if by not in CHOICES:
        raise InputError(f"by {by}{nearest(by, CHOICES)}: must be one of {', '.join(CHOICES)}")
    values = values_of(by, held)
    if len(values) < 2:
        others = [one for one in CHOICES if len(values_of(one, held)) > 1]
        raise InputError(
            f"by {by}: all rows have {by} {', '.join(map(str, values)) or 'none'}; "
            + (f"they differ in {', '.join(others)}" if others else "no choice has two values")
        )
    return values


def _groups(
    sweeps: Mapping[str, Trials], by: str, reference: str, columns: Sequence[str]
) -> Iterator[_Summed]:
    """Sum up all groups over the trials that all of their runs answered rightly.

    Groups that differ in the schedule alone are read together. A second pass over the trials is
    needed only where some run failed, or lacks trials.
    """
    for names, some in runs_of(sweeps, (by,)):
        found: dict[str, dict[str, str]] = {}
        runs: dict[str, Run] = {}
        for sweep, run in some:
            value = {**run[1].names, "schedule": run[2], FOLDER: sweep}[by]
            name = f"{value}, {run[2]}"
            runs[name] = run
            found.setdefault("" if by == "schedule" else run[2], {})[name] = str(value)
        groups = [
            _Group(
                {**names, "schedule": schedule} if schedule else names,
                values,
                next((one for one in values if values[one] == reference), next(iter(values))),
                {name: runs[name][1].delta for name in values},
            )
            for schedule, values in found.items()
            if len(values) > 1
        ]
        read = {name: runs[name] for one in groups for name in one.values}
        rows = Passes(partial(read_runs, read, columns_with(columns)), list(read))
        sums = [Moments(list(one.values), [one.reference], columns) for one in groups]
        rows.collect(*sums)
        chosen = [comparable(first, one.deltas) for one, first in zip(groups, sums, strict=True)]
        if not all(one.never_failed for one in sums):
            sums = [
                Moments(first.schedules, first.partners, columns, some.schedules)
                for some, first in zip(chosen, sums, strict=True)
            ]
            rows.collect(*sums)
        yield from zip(groups, chosen, sums, strict=True)


def _reference(by: str, values: Sequence[Any], to: object) -> str:
    """Choose the value with which the others are compared."""
    names = list(map(str, values))
    if to is not None:
        wanted = [name for name, value in zip(names, values, strict=True) if _is(value, to)]
        if not wanted:
            raise InputError(
                f"reference {to}{nearest(str(to), names)}: the rows have {by} {listed(names)}"
            )
        return wanted[0]
    if by == "schedule":
        return yardstick_of(values) or names[0]
    return DEFAULTS[by] if DEFAULTS.get(by) in names else names[0]


def _is(value: object, given: object) -> bool:
    """Tell whether a value is the one that was given, by name or as a number."""
    try:
        return value == (float(str(given)) if isinstance(value, float) else given) or str(
            value
        ) == str(given)
    except ValueError:
        return False
