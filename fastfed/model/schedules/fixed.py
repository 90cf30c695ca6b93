"""Schedules whose times are known before a trial. A new family is a class like those below."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from fastfed.confidence import MAX_STEPS
from fastfed.errors import InputError
from fastfed.model.part_options import option
from fastfed.model.schedules.base import MOST_TIMES, Schedule
from fastfed.validation import MOST_BASE, as_whole, shown


@dataclass(frozen=True, eq=False, repr=False)
class Periodic(Schedule):
    """Communication every H steps: n = H, 2H, 3H, ...

    The related work starts at 1, H + 1; the paper's bounds and this package use multiples of H.

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

    period: int = field(metadata=option("period H", 1, MAX_STEPS, whole=True))

    family = "periodic"
    grammar = "periodic:100"


class FedElim0(Periodic):
    """At every step: the paper's FedElim0.

    Examples
    --------
    >>> import fastfed as ff
    >>> ff.FedElim0().times(3).tolist()
    [1, 2, 3]
    """

    family = "fedelim0"
    rank = 1

    def __init__(self) -> None:
        super().__init__(1)


@dataclass(frozen=True, eq=False, repr=False)
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

    base: float = field(metadata=option("base lambda", 1.0, MOST_BASE, above=True))

    family = "exponential"
    grammar = "exponential:1.5"
    example = "exponential:1.5, or fedelim0 for every step"

    def check_options(self) -> None:
        if math.log(MAX_STEPS) / math.log(self.base) > MOST_TIMES:
            raise InputError(
                f"base lambda = {self.base!r}: so near 1 that it communicates at nearly every "
                "step; take fedelim0"
            )

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

    family = "fedelim"
    rank = 0

    def __init__(self) -> None:
        super().__init__(2.0)


class SuperExponential(Schedule):
    """Communication at n = 2^(2^t): 2, 4, 16, 256, 65536 and 2^32.

    The next time, 2^64, is after the end of every trial.

    Examples
    --------
    >>> import fastfed as ff
    >>> ff.SuperExponential().times(1000).tolist()
    [2, 4, 16, 256]
    """

    family = "superexponential"

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

    family = "at"
    grammar = "at:1,5,25"

    @classmethod
    def from_options(cls, options: str) -> Self:
        return cls(options.split(","))  # type: ignore[arg-type]

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

    @property
    def name(self) -> str:
        return "at:" + ",".join(map(str, self._times))

    def times(self, until: int) -> npt.NDArray[np.int64]:
        return np.array([time for time in self._times if time <= until], dtype=np.int64)
