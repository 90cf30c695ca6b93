"""Schedules whose mean costs may be compared, and the trials that compare them.

A trial that did not end has no cost, and the trials that do end are the easy ones. So a mean over
the trials that a schedule ended is lower than its mean cost. Three rules keep comparisons fair:

1. A schedule answers wrongly or not at all in at most a share delta of its trials: that is its
   guarantee. A schedule that leaves more trials unended is *excluded*. It has no place among the
   cheapest, and is named with the share of trials that it left. More means significantly more: the
   exact 95 % interval (Clopper-Pearson) of the share lies above delta.
2. The others are compared over the trials that all of them ended, so that every mean, difference,
   crossover and interval belongs to the same trials.
3. The number of these trials is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fastfed.analysis.intervals import clopper_pearson
from fastfed.analysis.moments import Moments


@dataclass(frozen=True)
class Unended:
    """Trials that a schedule did not end, and the share that is allowed."""

    unended: int
    trials: int
    allowed: float

    @property
    def share(self) -> float:
        """The share of unended trials."""
        return self.unended / self.trials

    @property
    def too_many(self) -> bool:
        """Tell whether the share is significantly above the allowed one."""
        return clopper_pearson(self.unended, self.trials)[0] > self.allowed

    def __str__(self) -> str:
        low, high = clopper_pearson(self.unended, self.trials)
        return (
            f"{100 * self.share:.3g} % of {self.trials:,} trials did not end (95 % interval "
            f"{100 * low:.3g} to {100 * high:.3g} %, delta allows {100 * self.allowed:.3g} %)"
        )


@dataclass(frozen=True)
class Comparable:
    """Schedules that may be compared, and their sums over the trials that all of them ended.

    A schedule may be compared if it does not leave more trials undecided than delta allows.
    """

    schedules: tuple[str, ...]
    moments: Moments
    trials: int
    """How many trials all of them ended."""
    excluded: dict[str, Unended]
    never_ended: tuple[str, ...]
    """Schedules with too few trials to be excluded, none of which ended, or without trials."""


def unended(moments: Moments, schedule: str, delta: float) -> Unended:
    """Count the trials that a schedule did not end."""
    trials = moments.trials(schedule)
    return Unended(trials - moments.ended(schedule), trials, delta)


Allowed = float | Mapping[str, float]
"""A delta for all schedules, or one for each."""


def excluded(moments: Moments, schedules: Iterable[str], delta: Allowed) -> dict[str, Unended]:
    """Return the schedules that leave more trials unended than ``delta`` allows."""
    counts = {
        name: unended(moments, name, delta[name] if isinstance(delta, Mapping) else delta)
        for name in schedules
        if moments.trials(name)
    }
    return {name: one for name, one in counts.items() if one.too_many}


def excluded_text(every: Sequence[Mapping[str, Unended]], what: str) -> list[str]:
    """Return a line for each schedule that is excluded from some cells or groups.

    ``every`` has those that are excluded from each cell or group, ``what`` the word for these.
    """
    found: dict[str, list[Unended]] = {}
    for some in every:
        for name, why in some.items():
            found.setdefault(name, []).append(why)
    return [
        f"excluded from {len(some)} of {len(every)} {what}: {name}, "
        f"{max(some, key=lambda one: one.share)}"
        for name, some in found.items()
    ]


def comparable(
    moments: Moments, delta: Allowed, schedules: Iterable[str] | None = None
) -> Comparable:
    """Choose the schedules that may be compared, and the trials that compare them."""
    names = moments.schedules if schedules is None else tuple(schedules)
    out = excluded(moments, names, delta)
    kept = tuple(name for name in names if name not in out and moments.ended(name))
    shared = moments.common(kept)
    return Comparable(
        kept,
        shared,
        shared.ended(kept[0]) if kept else 0,
        out,
        tuple(name for name in names if name not in out and not moments.ended(name)),
    )
