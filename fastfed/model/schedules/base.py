"""The base of all schedules.

A schedule is a set of steps n at which every client sends, for each arm that the server still
considers, one scalar. It is "every H steps" (`period` is H), or a list of times, or the server
chooses each time in the trial (`chosen`). Equal schedules have equal names; ``fedelim`` and
``exponential:2`` are two names for the same times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.confidence import MAX_STEPS
from fastfed.errors import InputError
from fastfed.model.part import Part

if TYPE_CHECKING:
    from fastfed.model.setting import Setting

MOST_TIMES = 2**24
"""A list of times longer than this is a periodic schedule in disguise."""


class Timetable(NamedTuple):
    """The communication times of a schedule in a setting; a `Job` joins those of several."""

    period: int  # 0 if the times are listed
    last: int  # the last step at which the schedule may communicate
    listed: npt.NDArray[np.int64]  # of times that are chosen in the trial the first alone
    horizon: int  # the step at which an undecided trial is cut off: it would pull forever
    choice: tuple[float, float, float] = (0.0, 0.0, 0.0)  # HI, LO and SHARE of chosen times

    @property
    def key(self) -> object:
        """Value by which schedules share a pass: two names for the same times have one."""
        return self.period, self.last, self.listed.tobytes(), self.horizon, self.choice


class Schedule(Part):
    """The times at which clients communicate: made by one of the subclasses, or by `parse`.

    Examples
    --------
    >>> import fastfed as ff
    >>> isinstance(ff.Periodic(100), ff.Schedule), str(ff.Periodic(100))
    (True, 'periodic:100')
    """

    kind = "schedule"
    period: int | None = None
    """H if the clients communicate at H, 2H, 3H, ...; None if the times are a list."""
    chosen: ClassVar[bool] = False
    """Whether the server chooses the times in each trial, so that there is no list of them."""
    eliminates: ClassVar[bool] = True
    """Whether arms are eliminated as in the paper; False: by the rules of an `Algorithm`."""
    fixed_budget: ClassVar[bool] = False
    """Whether a trial spends a given number of pulls, and promises nothing about delta."""

    repeats = False

    @property
    def value(self) -> float | None:
        """The option that members of the family are sorted by; None if there is none."""
        return next(map(float, self.option_values), None)

    @property
    def every_step(self) -> bool:
        """Tell whether the clients communicate at every step, as FedElim0 does."""
        return self.period == 1

    @property
    def sort_key(self) -> tuple[int, float, str]:
        """Order of tables and legends: by family, then by value."""
        return list(self.families).index(self.family), self.value or 0.0, self.name

    @property
    def label(self) -> str:
        """The schedule as figures and pages call it: its name, and a note where one is due."""
        return str(self)

    def kernel(self, setting: Setting) -> Any:
        """Make the timetable up to the last step of a trial, for compiled code.

        Parameters
        ----------
        setting
            The setting, which limits the steps.

        Returns
        -------
        Timetable
            The period or the times, the last of them, and the step at which trials are cut off.
        """
        limit = setting.last_step
        if self.period is not None:
            last = limit // self.period * self.period
            return Timetable(self.period, last, np.zeros(0, np.int64), limit)
        times = self.times(MAX_STEPS)
        reached = times[times <= limit]
        return Timetable(0, int(reached.max(initial=0)), reached, min(int(times[-1]), limit))

    def times(self, until: int) -> npt.NDArray[np.int64]:
        """List the communication times.

        Parameters
        ----------
        until
            The last step that is looked at.

        Returns
        -------
        numpy.ndarray
            The times up to and including ``until``, ascending.
        """
        if self.period is None:
            raise TypeError("a schedule without a period lists its times")
        count = until // self.period
        if count > MOST_TIMES:
            raise InputError(f"{self} has {count:,} times up to {until:,}: too many to list")
        return np.arange(1, count + 1, dtype=np.int64) * self.period
