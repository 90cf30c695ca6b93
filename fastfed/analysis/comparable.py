"""Schedules whose mean costs may be compared, and the trials that compare them.

A schedule promises right answers in all but a share delta of its trials. What a trial costs in
which it fails says nothing about the price of an answer: a trial that did not end has no cost, a
radius that is too small is cheap and wrong, and a trial that loses the best arm may cost 100,000
times as much as the others, with a share that hundreds of trials do not show. Four rules keep
comparisons fair, wherever a cheapest schedule is named:

1. A schedule that fails in more than a share delta of its trials is *excluded*, and named with its
   share. To fail is to answer wrongly or not to end. More means significantly more: the exact 95 %
   interval (Clopper-Pearson) of the share lies above delta.
2. The others are compared over the trials that all of them answered rightly, so that every mean,
   difference, crossover and interval belongs to the same trials.
3. The number of these trials is said.
4. Below 3 / delta trials nothing is separated. From there on, a schedule that fails with
   probability delta shows no failure with a probability below 5 %: (1 - delta)^(3 / delta) < e^-3.

`fastfed.analysis.intervals` proves that costs with right answers have light tails, for schedules
that eliminate as the paper's do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastfed.analysis.intervals import clopper_pearson
from fastfed.analysis.moments import Moments

if TYPE_CHECKING:
    import polars as pl

_MOST_NAMED = 3  # excluded schedules in one line


@dataclass(frozen=True)
class Failures:
    """Trials in which a schedule failed, and the share that is allowed."""

    wrong: int
    """Trials that ended with a wrong answer."""
    unended: int
    trials: int
    allowed: float

    @property
    def share(self) -> float:
        """The share of trials in which the schedule failed."""
        return (self.wrong + self.unended) / self.trials

    @property
    def too_many(self) -> bool:
        """Tell whether the share is significantly above the allowed one."""
        return clopper_pearson(self.wrong + self.unended, self.trials)[0] > self.allowed

    @property
    def rate(self) -> str:
        """The share in percent, with its interval."""
        low, high = clopper_pearson(self.wrong + self.unended, self.trials)
        return f"{100 * self.share:.3g} % [{100 * low:.3g}, {100 * high:.3g}]"

    def __str__(self) -> str:
        low, high = clopper_pearson(self.wrong + self.unended, self.trials)
        what = ["did not end"] if self.unended else []
        what = ["are wrong", *what] if self.wrong or not what else what
        return (
            f"{100 * self.share:.3g} % of {self.trials:,} trials {' or '.join(what)} (95 % "
            f"interval {100 * low:.3g} to {100 * high:.3g} %, delta allows "
            f"{100 * self.allowed:.3g} %)"
        )


@dataclass(frozen=True)
class Comparable:
    """Schedules that may be compared: those that fail in no more trials than delta allows."""

    schedules: tuple[str, ...]
    excluded: dict[str, Failures]
    never_right: tuple[str, ...]
    """Schedules with too few trials to be excluded, none of them with right answers, or without
    trials."""


def failures(moments: Moments, schedule: str, delta: float) -> Failures:
    """Count the trials in which a schedule failed."""
    trials = moments.trials(schedule)
    unended = trials - moments.ended(schedule)
    return Failures(moments.errors(schedule) - unended, unended, trials, delta)


Allowed = float | Mapping[str, float]
"""A delta for all schedules, or one for each."""


def excluded(moments: Moments, schedules: Iterable[str], delta: Allowed) -> dict[str, Failures]:
    """Return the schedules that fail in more trials than ``delta`` allows."""
    counts = {
        name: failures(moments, name, delta[name] if isinstance(delta, Mapping) else delta)
        for name in schedules
        if moments.trials(name)
    }
    return {name: one for name, one in counts.items() if one.too_many}


def excluded_rows(summary: pl.DataFrame) -> list[Failures | None]:
    """Return why each row of a summary is excluded; None for a row that is not."""
    columns = ("trials", "truncated", "error_rate", "delta")
    counts = (
        Failures(round(rate * trials) - unended, unended, trials, delta)
        for trials, unended, rate, delta in summary.select(columns).iter_rows()
    )
    return [one if one.too_many else None for one in counts]


def excluded_text(every: Sequence[Mapping[str, Failures]], what: str) -> list[str]:
    """Name the schedules that are excluded from some cells or groups, each with its worst share.

    ``every`` has those that are excluded from each cell or group, ``what`` the word for these.
    """
    found: dict[str, list[Failures]] = {}
    for cell in every:
        for name, why in cell.items():
            found.setdefault(name, []).append(why)
    named: dict[int, list[str]] = {}
    for name, some in found.items():
        worst = max(some, key=lambda one: one.share)
        named.setdefault(len(some), []).append(f"{name} {worst.rate}")
    return [
        f"excluded from {count} of {len(every)} {what}, more trials err or do not end than delta "
        f"allows: {'; '.join(names[:_MOST_NAMED])}"
        + (f" and {len(names) - _MOST_NAMED} more" if names[_MOST_NAMED:] else "")
        for count, names in named.items()
    ]


def few_text(least: Sequence[tuple[int, int]], what: str) -> list[str]:
    """Return a line for the cells or groups in which nothing is separated.

    ``least`` has the trials of each, and the number below which nothing is separated.
    """
    few = [needed for trials, needed in least if 0 < trials < needed]
    if not few:
        return []
    return [
        f"too few trials to separate anything in {len(few)} of {len(least)} {what}: 3 / delta are "
        f"needed, up to {max(few):,}"
    ]


def least_trials(delta: Allowed) -> int:
    """Return the number of trials below which nothing is separated: 3 / delta."""
    least = min(delta.values()) if isinstance(delta, Mapping) else delta
    return math.ceil(3 / least * (1 - 1e-12))


def comparable(
    moments: Moments, delta: Allowed, schedules: Iterable[str] | None = None
) -> Comparable:
    """Choose the schedules that may be compared."""
    names = moments.schedules if schedules is None else tuple(schedules)
    out = excluded(moments, names, delta)
    left = [name for name in names if name not in out]
    kept = tuple(name for name in left if moments.errors(name) < moments.trials(name))
    return Comparable(kept, out, tuple(name for name in left if name not in kept))


def common_trials(
    collect: Callable[[Moments], None],
    first: Moments,
    schedules: Sequence[str],
    partners: Sequence[str] = (),
) -> Moments:
    """Sum the trials that all of some schedules answered rightly, by another pass over the trials.

    Without partners no pass is needed if no schedule ever failed.
    """
    if not partners and first.never_failed:
        return first
    found = Moments(first.schedules, partners, first.columns, schedules)
    collect(found)
    return found
