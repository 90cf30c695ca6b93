"""When the clients talk to the server.

A schedule is a set of steps n at which every client sends, for each arm that the server still
considers, one scalar. It is either "every H steps" (`period` is H) or a list of times. Equal
schedules have equal names; ``fedelim`` and ``exponential:2`` are two names for the same times.

A new family is a class like those below and an entry in `KINDS`; nothing else has to know it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError, nearest
from fastfed.radius import MAX_STEPS
from fastfed.validation import MOST_BASE, as_whole, number, shown

_MOST_TIMES = 2**24  # a list of times longer than this is a periodic schedule in disguise


class Schedule:
    """The times at which clients talk: made by one of the subclasses, or by `parse`.

    Examples
    --------
    >>> import fastfed as ff
    >>> isinstance(ff.Periodic(100), ff.Schedule), str(ff.Periodic(100))
    (True, 'periodic:100')
    """

    period: int | None = None
    """H if the clients talk at H, 2H, 3H, ...; None if the times are a list."""
    kind: str = ""
    """The family, as its names begin: "fedelim", "periodic", "exponential" and so on."""
    example: str = ""
    """A name of the family that has a value after a colon, as in "periodic:100"; empty if its only
    name is ``kind``."""

    @classmethod
    def read(cls, value: str) -> Schedule:
        """The schedule of this family whose name has ``value`` after the colon; a family without
        values is given an empty text."""
        return cls()

    @property
    def value(self) -> float | None:
        """The number that tells members of the family apart (H, lambda); None if it has none."""
        return None

    @property
    def every_step(self) -> bool:
        """Whether the clients talk at every step: the yardstick of all ratios."""
        return self.period == 1

    @property
    def sort_key(self) -> tuple[int, float, str]:
        """The order of tables and legends: by family as `KINDS` lists them, then by value."""
        return list(KINDS).index(self.kind), self.value or 0.0, str(self)

    @property
    def in_words(self) -> str:
        """The schedule as a legend calls it."""
        return str(self)

    def __str__(self) -> str:
        raise TypeError("a schedule is one of its subclasses")

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
        if count > _MOST_TIMES:
            raise InputError(f"{self} has {count:,} times up to {until:,}: too many to list")
        return np.arange(1, count + 1, dtype=np.int64) * self.period

    def __repr__(self) -> str:
        return f"<Schedule {self}>"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Schedule) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


class Periodic(Schedule):
    """Every H steps: n = H, 2H, 3H, ... (The related work starts at 1, H + 1; the paper's bounds
    and this package use multiples of H.)

    Parameters
    ----------
    period
        H, a whole number from 1 on.

    Examples
    --------
    >>> import fastfed as ff
    >>> ff.Periodic(100).times(350).tolist()
    [100, 200, 300]
    """

    kind = "periodic"
    example = "periodic:100"

    def __init__(self, period: int) -> None:
        whole = as_whole(period)
        if whole is None or not 1 <= whole <= MAX_STEPS:
            raise InputError(
                f"period H = {shown(period)}: must be a whole number from 1 to 2^52, as in "
                "periodic:100"
            )
        self.period: int = whole

    @classmethod
    def read(cls, value: str) -> Schedule:
        return cls(value)  # type: ignore[arg-type]

    @property
    def in_words(self) -> str:
        return "every step" if self.every_step else f"every {self.period:,} steps"

    @property
    def value(self) -> float | None:
        return float(self.period)

    def __str__(self) -> str:
        return f"periodic:{self.period}"


class FedElim0(Periodic):
    """At every step: the paper's FedElim0.

    Examples
    --------
    >>> import fastfed as ff
    >>> ff.FedElim0().times(3).tolist()
    [1, 2, 3]
    """

    kind = "fedelim0"
    example = ""

    def __init__(self) -> None:
        super().__init__(1)

    @classmethod
    def read(cls, value: str) -> Schedule:
        return cls()

    @property
    def in_words(self) -> str:
        return "FedElim0 (every step)"

    def __str__(self) -> str:
        return "fedelim0"


class Exponential(Schedule):
    """At the distinct values of ceil(base^t), t = 0, 1, 2, ...

    Parameters
    ----------
    base
        lambda, a number above 1.

    Examples
    --------
    >>> import fastfed as ff
    >>> ff.Exponential(1.5).times(12).tolist()
    [1, 2, 3, 4, 6, 8, 12]
    """

    kind = "exponential"
    example = "exponential:1.5"

    def __init__(self, base: float) -> None:
        self.base = number("base lambda", base, "must be a number above 1")
        if not (self.base > 1 and math.isfinite(self.base)):
            raise InputError(
                f"base lambda = {base!r}: must be above 1"
                + (", as fedelim0 for talking at every step" if self.base == 1 else "")
            )
        if self.base > MOST_BASE:
            raise InputError(
                f"base lambda = {base!r}: at most {MOST_BASE:g}; it talks at step 1 and never again"
            )
        if math.log(MAX_STEPS) / math.log(self.base) > _MOST_TIMES:
            raise InputError(
                f"base lambda = {base!r}: so near 1 that it talks at nearly every "
                "step; take fedelim0"
            )

    @classmethod
    def read(cls, value: str) -> Schedule:
        return cls(value)  # type: ignore[arg-type]

    @property
    def in_words(self) -> str:
        return f"powers of {_plain(self.base)}"

    @property
    def value(self) -> float | None:
        return self.base

    def __str__(self) -> str:
        return f"exponential:{_plain(self.base)}"

    def times(self, until: int) -> npt.NDArray[np.int64]:
        times: list[int] = []
        t = 0
        while (power := self.base**t) <= until:
            time = math.ceil(power)
            if time <= until and (not times or time > times[-1]):
                times.append(time)
            t += 1
        return np.array(times, dtype=np.int64)


class FedElim(Exponential):
    """At n = 1, 2, 4, 8, ...: the paper's FedElim.

    Examples
    --------
    >>> import fastfed as ff
    >>> ff.FedElim().times(20).tolist()
    [1, 2, 4, 8, 16]
    """

    kind = "fedelim"
    example = ""

    def __init__(self) -> None:
        super().__init__(2.0)

    @classmethod
    def read(cls, value: str) -> Schedule:
        return cls()

    @property
    def in_words(self) -> str:
        return "FedElim"

    def __str__(self) -> str:
        return "fedelim"


class SuperExponential(Schedule):
    """At n = 2^(2^t): 2, 4, 16, 256, 65536, 2^32. The next, 2^64, is past every trial's end.

    Examples
    --------
    >>> import fastfed as ff
    >>> ff.SuperExponential().times(1000).tolist()
    [2, 4, 16, 256]
    """

    kind = "superexponential"

    @property
    def in_words(self) -> str:
        return "super-exponential"

    def __str__(self) -> str:
        return "superexponential"

    def times(self, until: int) -> npt.NDArray[np.int64]:
        return np.array([2**2**t for t in range(6) if 2**2**t <= until], dtype=np.int64)


class At(Schedule):
    """At the given steps, and never again.

    Parameters
    ----------
    times
        Whole numbers from 1 on, in increasing order.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.At([1, 5, 25]))
    'at:1,5,25'
    """

    kind = "at"
    example = "at:1,5,25"

    @classmethod
    def read(cls, value: str) -> Schedule:
        return cls(value.split(","))  # type: ignore[arg-type]

    @property
    def in_words(self) -> str:
        return f"at {','.join(map(str, self._times))}"

    def __init__(self, times: Sequence[int] | Iterable[int]) -> None:
        listed = list(times)
        whole = [as_whole(time) for time in listed]
        for time, value in zip(listed, whole, strict=True):
            if value is None or not 1 <= value <= MAX_STEPS:
                raise InputError(f"time {shown(time)}: times must be whole numbers from 1 to 2^52")
        self._times: tuple[int, ...] = tuple(value for value in whole if value is not None)
        if not listed:
            raise InputError("no times: give at least one, as in at:1,5,25,125")
        for before, after in zip(self._times, self._times[1:], strict=False):
            if after <= before:
                raise InputError(f"times {before}, {after}: must increase")

    def __str__(self) -> str:
        return "at:" + ",".join(map(str, self._times))

    def times(self, until: int) -> npt.NDArray[np.int64]:
        return np.array([time for time in self._times if time <= until], dtype=np.int64)


KINDS: dict[str, type[Schedule]] = {
    one.kind: one for one in (FedElim, FedElim0, Periodic, Exponential, SuperExponential, At)
}
"""All families by the names that theirs begin with, in the order of tables."""


def parse(text: str | Schedule) -> Schedule:
    """A schedule from its name; a schedule is returned as it is."""
    if isinstance(text, Schedule):
        return text
    if not isinstance(text, str):
        raise InputError(f"schedule {text!r}: must be a name, as in 'fedelim', or a Schedule")
    name, colon, value = text.strip().partition(":")
    if name not in KINDS:
        known = sorted(KINDS.values(), key=lambda one: one.example != "")
        raise InputError(
            f"unknown schedule {text!r}{nearest(name, KINDS)}: one of "
            f"{', '.join(one.example or one.kind for one in known)}"
        )
    family = KINDS[name]
    if colon and not family.example:
        raise InputError(f"schedule {text!r}: {name} takes no value")
    if family.example and not value.strip():
        raise InputError(f"schedule {text!r}: needs a value, as in {family.example}")
    return family.read(value)


def parse_all(schedules: Sequence[str | Schedule] | str | Schedule) -> list[Schedule]:
    """Several schedules, each once."""
    given = [schedules] if isinstance(schedules, str | Schedule) else list(schedules)
    parsed = [parse(one) for one in given]
    if not parsed:
        raise InputError("no schedules: give at least one, as in ['fedelim']")
    seen: set[str] = set()
    for name in map(str, parsed):
        if name in seen:
            raise InputError(f"schedule {name} is given twice")
        seen.add(name)
    return parsed


def _plain(number: float) -> str:
    """The shortest text that reads back as ``number``, without a trailing '.0'."""
    return repr(number).removesuffix(".0")
