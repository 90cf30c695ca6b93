"""The next communication time of schedules that choose it when they communicate.

The times of most schedules are known before a trial. Those of `fastfed.model.schedules.Adaptive`
are not: at each communication round the server chooses the next one from what it has received. A
pass treats such a schedule as one whose only time is the next. An interval that has the time inside
is split down to it. Nothing is certified on the way, because nothing can be decided before the
time. So the rows of the schedule are the same with and without skipping, and skipping adds nothing
to their error. Lazy clients may follow such a schedule's own eliminations: `intervals_around`.

Clients' passes, and those of servers without such a schedule, have `FixedTimes`, for which the
functions below compile to nothing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastfed import timegrid
from fastfed.confidence import MAX_STEPS
from fastfed.kernels.compiling import inner
from fastfed.kernels.decisions import mark
from fastfed.kernels.dispatch import generic_with_default
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.memory import (
    ABANDONED,
    ALIVE,
    LAST,
    NEVER,
    NEXT,
    NOBODY,
    TIMES_USED,
    WINNER,
    Flag,
    Floats,
    Int,
    Ints,
    Schedules,
    Tree,
)
from fastfed.kernels.radii import exact

HI, LO, SHARE = range(3)
_LATEST = float(2 * MAX_STEPS)
PLACES = timegrid.place_until(2 * MAX_STEPS) + 1
"""The number of places of the grid that a choice may compare."""
HALVINGS = timegrid.PARTS.bit_length() - 1
"""The number of halvings that reach a step of the grid from its octave."""

step_at = inner(timegrid.step_at)
place_until = inner(timegrid.place_until)


class FixedTimes(NamedTuple):
    """Schedules whose times are all known before the trial."""

    nothing: Any  # (), which takes no room in a call


class ChosenTimes(NamedTuple):
    """Schedules of which some choose their times in the trial."""

    options: Floats  # (S, 3) HI, LO and SHARE; HI is 0 where all times are known
    # (places,) the server's g at each step of the grid, 0 where it was not asked for so far: all
    # trials of a job fill it with the same values, on whatever thread
    bounds: Floats


@generic_with_default
def is_chosen(chosen: Any, s: Int) -> Flag:
    """Tell whether schedule s chooses its times."""
    return False


@generic_with_default
def choose_next(
    chosen: Any,
    schedules: Schedules,
    tree: Tree,
    radius: Any,
    sums: Floats,
    scales: Floats,
    at: Any,
) -> None:
    """Set the next time of a schedule that chooses it, after the decisions of a round."""


@generic_with_default
def intervals_around(chosen: Any, state: Ints) -> Int:
    """Bound the dyadic intervals that hold a chosen time of any schedule strictly inside.

    ``state`` is that of the server, after its pass. See docs/explanation/skipping.md.
    """
    return np.int64(0)


@is_chosen.of(ChosenTimes)
def _is_chosen(chosen, s):
    return chosen.options[s, HI] > 0.0


@intervals_around.of(ChosenTimes)
def _intervals_around(chosen, state):
    times = np.int64(0)
    for s in range(state.shape[0]):
        if chosen.options[s, HI] > 0.0:
            times += state[s, TIMES_USED]
    return HALVINGS * times


@choose_next.of(ChosenTimes)
def _choose_next(chosen, schedules, tree, radius, sums, scales, at):
    state, s = schedules.state, at.s
    if chosen.options[s, HI] > 0.0 and state[s, WINNER] == NOBODY and state[s, ABANDONED] == 0:
        _choose(chosen, schedules, tree, radius, sums, scales, at)


@inner
def _choose(chosen, schedules, tree, radius, sums, scales, at):
    """Follow `model.schedules.Adaptive.next_time`, in sums: the least place that is enough."""
    s, n, options, bounds = at.s, at.n, chosen.options[at.s], chosen.bounds
    wanted = larger(1, math.ceil(options[SHARE] * float(schedules.state[s, ALIVE] - 1)))
    least = larger(n + 1, np.int64(math.ceil(options[LO] * float(n))))
    most = np.int64(math.floor(smaller(options[HI] * float(n), _LATEST)))
    low = place_until(least - 1) + 1
    high = larger(low, place_until(most))
    while low < high:
        middle = (low + high) // 2
        later = float(step_at(middle))
        if bounds[middle] == 0.0:
            bounds[middle] = exact(radius, later)
        bar = bounds[middle] * (float(n) / later)
        if mark(schedules.rule, schedules, tree, sums, scales, bar, at) >= wanted:
            high = middle
        else:
            low = middle + 1
    time = step_at(low)
    schedules.state[s, NEXT] = time if time <= schedules.times[s, LAST] else NEVER
