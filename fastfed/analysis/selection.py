"""Filters: the rows of some cells and schedules, as if there were no others.

A `Selection` is itself `Trials`, so that every question can be asked of it. Its answers are those
of a sweep that has run these cells and schedules and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from fastfed.analysis.trials import Trials
from fastfed.errors import InputError, nearest
from fastfed.model.cell import CELL, Cell
from fastfed.model.choices import DEFAULTS, ChoiceFilters, base_of
from fastfed.model.instance import Instance
from fastfed.model.schedules import Schedule
from fastfed.model.spec import as_list
from fastfed.text import listed
from fastfed.validation import checked_delta, checked_sigma

Held = Mapping[Cell, Sequence[Schedule]]
"""Cells that have rows, with their schedules."""

CHOICES = (*CELL, "schedule")
"""The columns by which rows are filtered and compared."""


class _Where(TypedDict, total=False):
    instance: str | Sequence[str] | None
    sigma: float | Sequence[float] | None


class Where(_Where, ChoiceFilters, total=False):
    """Values of the choices beside schedule and delta, one or several of each; None: all."""


class Which(Where, total=False):
    """Values of all choices."""

    schedule: str | Schedule | Sequence[str | Schedule] | None
    delta: float | Sequence[float] | None


ALL: dict[str, Any] = dict.fromkeys(Which.__annotations__)
"""Defaults of `Which` and `Where`."""


class Selection:
    """Some of the cells and schedules of `Trials`."""

    def __init__(self, trials: Trials, held: Held) -> None:
        self.unfiltered, self._held = trials, held
        # but for the instances, all that is asked of a cell is asked of the trials
        self.source, self.costs, self.bit_costs = trials.source, trials.costs, trials.bit_costs
        self.prices = trials.prices
        self.choices, self.batches, self.ranges = trials.choices, trials.batches, trials.ranges

    @property
    def instances(self) -> Mapping[str, Instance]:
        """Instances of the rows, by name."""
        every = self.unfiltered.instances
        return {cell.instance: every[cell.instance] for cell in self._held}

    def held(self) -> dict[Cell, list[Schedule]]:
        """List the cells that are selected, with the schedules of each."""
        return {cell: list(schedules) for cell, schedules in self._held.items()}


def select(trials: Trials, which: Mapping[str, Any]) -> Selection:
    """Select the cells and schedules that have the wanted values; refuse what no row has."""
    held = trials.held()
    if not held:
        raise InputError(f"{trials.source}: nothing to select, the sweep has no rows yet")
    wanted = {
        key: _wanted(key, given, values_of(key, held))
        for key, given in which.items()
        if given is not None
    }
    found: dict[Cell, list[Schedule]] = {}
    for cell, schedules in held.items():
        of_cell = {**cell.names, "schedule": None}
        if all(of_cell[key] in values for key, values in wanted.items() if key != "schedule"):
            some = [one for one in schedules if one in wanted.get("schedule", schedules)]
            if some:
                found[cell] = some
    if not found:
        asked = ", ".join(f"{key} {' or '.join(map(str, some))}" for key, some in wanted.items())
        raise InputError(f"{trials.source}: no rows have all of {asked}; leave one of them out")
    return Selection(trials, found)


def every_schedule(trials: Trials) -> list[str]:
    """List all schedules of the rows, also those that filters leave out."""
    while isinstance(trials, Selection):
        trials = trials.unfiltered
    return list(map(str, values_of("schedule", trials.held())))


def values_of(key: str, held: Held) -> list[Any]:
    """List the different values of a choice, in the order of the rows."""
    if key == "schedule":
        return list(dict.fromkeys(one for schedules in held.values() for one in schedules))
    return list(dict.fromkeys(getattr(cell, key) for cell in held))


def _wanted(key: str, given: Any, known: Sequence[Any]) -> list[Any]:
    """Read the wanted values of a choice; each must be known."""
    found = []
    for value in as_list(given):
        # a user's own radius is known by a name that cannot be parsed
        one = value if value in known else _READ[key](value)
        if one not in known:
            names = list(map(str, known))
            raise InputError(
                f"{key} {one}{nearest(str(one), names)}: the rows have {key} {listed(names)}"
            )
        found.append(known[known.index(one)])
    if not found:
        raise InputError(f"no {key} is chosen: give at least one, as in {known[0]}")
    return found


def _named(kind: str) -> Callable[[Any], str]:
    """Return a reader of canonical names of a kind."""
    return lambda value: str(base_of(kind).parse(value))


_READ: dict[str, Callable[[Any], Any]] = {
    "instance": str,
    "delta": checked_delta,
    "sigma": checked_sigma,
    "schedule": Schedule.parse,
    **{kind: _named(kind) for kind in DEFAULTS},
}
