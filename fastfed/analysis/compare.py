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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from fastfed.analysis.trials import (
    Aligned,
    Batch,
    Trials,
    blocks,
    columns_with,
    side_by_side,
)
from fastfed.errors import InputError, nearest
from fastfed.model.choices import DEFAULTS
from fastfed.model.counts import COUNTS
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
    """Rows that differ in one choice: the values of the choice stand for schedules."""

    names: Mapping[str, Any]
    """Values of the other choices."""
    values: tuple[str, ...]
    reference: str
    deltas: Mapping[str, float]


_Summed = tuple[_Group, Comparable, Moments]
"""A group, the values that may be compared, and the sums over the trials that compare them."""


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
    groups = (
        _groups_of_sweeps(trials, to, columns)
        if isinstance(trials, Mapping)
        else _groups(trials, by, to, columns)
    )
    measures = _measures(wanted)
    excluded: list[dict[str, Failures]] = []
    counts: list[tuple[int, int]] = []
    found: list[tuple[dict[str, Any], Paired, int]] = []
    for group, chosen, moments in groups:
        excluded.append({f"{by} {name}": why for name, why in chosen.excluded.items()})
        if group.reference in chosen.schedules and moments.ended(group.reference):
            least = least_trials({name: group.deltas[name] for name in chosen.schedules})
            counts.append((moments.ended(group.reference), least))
            for value in chosen.schedules:
                found += [(*one, least) for one in _pairs(group, value, moments, by, measures)]
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
    group: _Group, value: str, moments: Moments, by: str, measures: list[_Measure]
) -> Iterator[tuple[dict[str, Any], Paired]]:
    """Pair a value of a group with the reference, by the measures that both have."""
    for columns, prices in measures:
        known = all(moments.has_cost(name, prices) for name in (value, group.reference))
        if value != group.reference and known:
            row = {**group.names, by: value, "reference": group.reference, **columns}
            yield row, moments.pair(value, group.reference, prices)


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


def _groups(trials: Trials, by: str, to: object, columns: Sequence[str]) -> Iterator[_Summed]:
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
            names = tuple(map(str, schedules))
            own = reference if reference in names else names[0]
            group = _Group(cell.names, names, own, dict.fromkeys(names, cell.delta))
            read = partial(trials.batches, cell, names, columns_with(columns))
            yield from _summed(partial(_alone, read), {"": group}, columns)
        return
    every = ((str(getattr(cell, by)), trials, cell) for cell in held)
    for other, cells in _together(by, every):
        yield from _paired(other, cells, reference, columns)


def _groups_of_sweeps(
    sweeps: Mapping[str, Trials], to: object, columns: Sequence[str]
) -> Iterator[_Summed]:
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
        yield from _paired(names, some, reference, columns)


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
    names: Mapping[str, Any],
    cells: Mapping[str, tuple[Trials, Cell]],
    reference: str,
    columns: Sequence[str],
) -> Iterator[_Summed]:
    """Sum up a group for each schedule that several of the cells have."""
    held = {
        value: [str(one) for one in trials.held()[cell]] for value, (trials, cell) in cells.items()
    }
    groups = {}
    for name in dict.fromkeys(name for some in held.values() for name in some):
        values = tuple(value for value in cells if name in held[value])
        if len(values) > 1:
            deltas = {value: cells[value][1].delta for value in values}
            own = reference if reference in values else values[0]
            groups[name] = _Group({**names, "schedule": name}, values, own, deltas)

    def read() -> Iterator[dict[str, Batch]]:
        """Yield the blocks of each schedule, by the values of the choice."""
        streams = {
            value: trials.batches(cell, [one for one in held[value] if one in groups], wanted)
            for value, (trials, cell) in cells.items()
        }
        for batches in side_by_side(streams):
            yield {
                name: {value: batch[name] for value, batch in batches.items() if name in batch}
                for name in groups
            }

    wanted = columns_with(columns)
    yield from _summed(read, groups, columns)


def _summed(
    read: Callable[[], Iterator[dict[str, Batch]]],
    groups: Mapping[str, _Group],
    columns: Sequence[str],
) -> Iterator[_Summed]:
    """Sum up groups that are read together: over the trials that all answered rightly.

    A second pass over the trials is needed only where some value failed, or lacks trials.
    """
    sums = {key: Moments(one.values, [one.reference], columns) for key, one in groups.items()}
    _add(read, sums)
    chosen = {key: comparable(sums[key], one.deltas) for key, one in groups.items()}
    again = {
        key: Moments(one.values, [one.reference], columns, chosen[key].schedules)
        for key, one in groups.items()
        if not sums[key].never_failed
    }
    if again:
        _add(read, again)
    yield from ((one, chosen[key], again.get(key, sums[key])) for key, one in groups.items())


def _alone(read: Callable[[], Iterable[Batch]]) -> Iterator[dict[str, Batch]]:
    """Read the blocks of one group."""
    return ({"": one} for one in blocks(read()))


def _add(read: Callable[[], Iterator[dict[str, Batch]]], sums: Mapping[str, Moments]) -> None:
    """Add up all blocks."""
    for item in read():
        for key, moments in sums.items():
            moments.add(Aligned.of(item[key], moments.schedules))


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
