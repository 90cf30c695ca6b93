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

**Trials that did not end** have no cost. As `fastfed.analysis.comparable` says, a value that leaves
more trials unended than delta allows is excluded and named; the others of its group are compared
over the trials that all of them ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fastfed.analysis.cheapest import Difference
from fastfed.analysis.columns import column_types
from fastfed.analysis.comparable import Comparable, Unended, comparable, excluded_text
from fastfed.analysis.intervals import LEAST_DIFFERING, difference, finite, paired_tails, student
from fastfed.analysis.moments import (
    BITS,
    PULLS,
    UPLINKS,
    Apart,
    Cost,
    Moments,
    Paired,
    Prices,
    as_float,
    costs_of,
    root,
)
from fastfed.analysis.selection import CHOICES, values_of
from fastfed.analysis.summary import yardstick_of
from fastfed.analysis.trials import Aligned, Batch, Trials, collect
from fastfed.errors import InputError, nearest
from fastfed.model.choices import DEFAULTS
from fastfed.text import listed

if TYPE_CHECKING:
    import polars as pl

    from fastfed.model.cell import Cell

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
    """Values that are excluded, and groups that cannot be compared."""

    def __str__(self) -> str:
        from fastfed.display.compare_table import compare_text

        return compare_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from fastfed.display.compare_table import compare_html

        return compare_html(self)


@dataclass(frozen=True)
class _Group:
    """Sums of rows that differ in one choice: the values of the choice stand for schedules."""

    names: Mapping[str, Any]
    """Values of the other choices."""
    moments: Moments
    deltas: Mapping[str, float]

    @property
    def reference(self) -> str:
        return self.moments.partners[0]


def compare(
    trials: Trials | Mapping[str, Trials],
    by: str,
    costs: Sequence[float],
    bit_costs: Sequence[float] = (),
    to: object = None,
) -> Comparison:
    """Compare the values of a choice, or two sweeps by their names."""
    import polars as pl

    groups = list(
        _groups_of_sweeps(trials, to) if isinstance(trials, Mapping) else _groups(trials, by, to)
    )
    measures = _measures(costs_of(costs, bit_costs))
    excluded: list[dict[str, Unended]] = []
    found: list[tuple[dict[str, Any], Paired]] = []
    for group in groups:
        chosen = comparable(group.moments, group.deltas)
        excluded.append({f"{by} {name}": why for name, why in chosen.excluded.items()})
        if group.reference in chosen.schedules and chosen.trials:
            found += _pairs(group, chosen, by, measures)
    if not found:
        first: dict[str, Unended] = {}
        for name, why in (item for some in excluded for item in some.items()):
            first.setdefault(name, why)
        out = "; ".join(f"{name}: {why}" for name, why in first.items())
        raise InputError(f"by {by}: nothing to compare" + (f"; excluded {out}" if out else ""))
    level = 1 - (1 - CONFIDENCE) / len(found)
    rows = [{**row, **estimates(pairs, level)} for row, pairs in found]
    front = [name for name in (*CHOICES, FOLDER) if name in rows[0]]
    types = column_types(dict.fromkeys([*front, *rows[0]]))
    frame = pl.DataFrame(rows, schema=types | {by: pl.String})
    frame = frame.cast(dict.fromkeys((by, "reference"), types[by]))
    return Comparison(by, frame, level, tuple(excluded_text(excluded, "groups")))


_Measure = tuple[dict[str, Any], Prices, Prices]
"""The columns that name a measure, its prices, and the prices of what must have been counted."""


def _measures(costs: Sequence[Cost]) -> list[_Measure]:
    """List the measures."""
    none = {"cost": None, "bit_cost": None}
    alone = {"pulls": PULLS, "uplinks": UPLINKS, "bits": BITS}
    return [
        *(
            ({"measure": "total", **none, unit.column: cost}, unit.total(cost), unit.alone)
            for cost, unit in costs
        ),
        *(({"measure": name, **none}, prices, prices) for name, prices in alone.items()),
    ]


def _pairs(
    group: _Group, chosen: Comparable, by: str, measures: list[_Measure]
) -> Iterator[tuple[dict[str, Any], Paired]]:
    """Pair each value of a group with the reference, by the measures that both have."""
    moments, reference = chosen.moments, group.reference
    for value in chosen.schedules:
        for columns, prices, counted in measures:
            known = all(moments.has_cost(name, counted) for name in (value, reference))
            if value != reference and known:
                row = {**group.names, by: value, "reference": reference, **columns}
                yield row, moments.pair(value, reference, prices)


def estimates(pairs: Paired, level: float) -> dict[str, Any]:
    """Estimate the ratio and the difference of two mean costs, with intervals of a level."""
    ratio = _ratio_interval(pairs, level)
    span = _difference_interval(pairs, level)
    alpha = (1 - level) / 2
    decided = min(paired_tails(pairs)) <= alpha
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
        "difference": difference(pairs)[0],
        "difference_low": finite(span[0]),
        "difference_high": finite(span[1]),
        "pairs": pairs.count,
        "differ": pairs.differ,
        "separated": decided and not span[0] <= 0 <= span[1],
    }


def _ratio_interval(pairs: Paired, level: float) -> tuple[float, float]:
    """Return all r at which the mean of x - r y cannot be told from 0 (Fieller)."""
    n, scale = pairs.count, pairs.scale
    if n < LEAST_DIFFERING or not pairs.y:
        return 0.0, math.inf
    # pulls + C sent of `Difference`, with x for pulls, -y for what is sent, and r for C
    sums, products = (pairs.x, -pairs.y), (pairs.xx, -pairs.xy, pairs.yy)
    apart = Apart(n, n, sums, products, (pairs.x_most, 0), (0, pairs.y_most))
    found = Difference.of(apart, scale).undecided(level)
    return (found[0][0], found[-1][1]) if found else (pairs.ratio or 0.0, pairs.ratio or 0.0)


def _difference_interval(pairs: Paired, level: float) -> tuple[float, float]:
    """Return all d at which the mean of x - y - d cannot be told from 0."""
    n = pairs.count
    if n < LEAST_DIFFERING:
        return -math.inf, math.inf
    total, squares = pairs.x - pairs.y, pairs.xx - 2 * pairs.xy + pairs.yy
    ends = []
    for worst in (-pairs.y_most, pairs.x_most):
        s, q, k = total + worst, squares + worst * worst, n + 1
        sem = root(k * q - s * s, (k * pairs.scale) ** 2 * (k - 1))
        ends.append(student(as_float(s, k * pairs.scale), sem, k, level))
    return ends[0][0], ends[1][1]


def _groups(trials: Trials, by: str, to: object) -> Iterator[_Group]:
    """Sum up the rows of one sweep, group by group."""
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
    reference = _reference(by, values, to)
    if by == "schedule":
        for cell, schedules in held.items():
            names = list(map(str, schedules))
            sums = Moments(names, [reference] if reference in names else names[:1])
            collect(trials.batches(cell, names), names, sums)
            yield _Group(cell.names, sums, dict.fromkeys(names, cell.delta))
        return
    every = ((str(getattr(cell, by)), trials, cell) for cell in held)
    for other, cells in _together(by, every):
        yield from _paired(other, cells, reference)


def _groups_of_sweeps(sweeps: Mapping[str, Trials], to: object) -> Iterator[_Group]:
    """Sum up the rows of several sweeps: cells of equal names form a group."""
    reference = _reference(FOLDER, list(sweeps), to)
    every = ((name, trials, cell) for name, trials in sweeps.items() for cell in trials.held())
    shared = [(names, some) for names, some in _together(FOLDER, every) if len(some) > 1]
    if not shared:
        raise InputError(
            f"{' and '.join(sweeps)}: no cell of the one has the instance, delta, sigma, radius, "
            "goal and uplink of one of the other"
        )
    for names, some in shared:
        yield from _paired(names, some, reference)


def _together(
    by: str, cells: Iterable[tuple[str, Trials, Cell]]
) -> Iterator[tuple[dict[str, Any], dict[str, tuple[Trials, Cell]]]]:
    """Yield the names that cells have in common besides a choice, with the cells by its values."""
    found: dict[tuple[Any, ...], dict[str, tuple[Trials, Cell]]] = {}
    for value, trials, cell in cells:
        key = tuple(item for item in cell.names.items() if item[0] != by)
        found.setdefault(key, {})[value] = (trials, cell)
    return ((dict(key), some) for key, some in found.items())


def _paired(
    names: Mapping[str, Any], cells: Mapping[str, tuple[Trials, Cell]], reference: str
) -> Iterator[_Group]:
    """Yield a group for each schedule that several of the cells have."""
    held = {
        value: [str(one) for one in trials.held()[cell]] for value, (trials, cell) in cells.items()
    }
    schedules = list(dict.fromkeys(name for some in held.values() for name in some))
    shared = {name: [value for value in cells if name in held[value]] for name in schedules}
    sums = {
        name: Moments(some, [reference] if reference in some else some[:1])
        for name, some in shared.items()
        if len(some) > 1
    }
    streams = {
        value: trials.batches(cell, [name for name in held[value] if name in sums])
        for value, (trials, cell) in cells.items()
    }
    for batches in _aligned(streams):
        for name, moments in sums.items():
            mine = {value: batch[name] for value, batch in batches.items() if name in batch}
            moments.add(Aligned.of(mine, moments.schedules))
    for name, moments in sums.items():
        deltas = {value: cells[value][1].delta for value in moments.schedules}
        yield _Group({**names, "schedule": name}, moments, deltas)


def _aligned(streams: Mapping[str, Iterator[Batch]]) -> Iterator[dict[str, Batch]]:
    """Read several streams of batches side by side: the same trials stand in the same item.

    At any time one batch of each stream is in memory.
    """
    waiting: dict[str, Batch] = {}
    while True:
        for value, stream in streams.items():
            if value not in waiting and (batch := next(stream, None)) is not None:
                waiting[value] = batch
        if not waiting:
            return
        end = min(max(int(rows["trial"][-1]) for rows in one.values()) for one in waiting.values())
        item: dict[str, Batch] = {}
        rest: dict[str, Batch] = {}
        for value, batch in waiting.items():
            ready, later = {}, {}
            for name, rows in batch.items():
                cut = int(np.searchsorted(rows["trial"], end, side="right"))
                ready[name] = {column: cells[:cut] for column, cells in rows.items()}
                if cut < len(rows["trial"]):
                    later[name] = {column: cells[cut:] for column, cells in rows.items()}
            item[value] = ready
            if later:
                rest[value] = later
        waiting = rest
        yield item


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
