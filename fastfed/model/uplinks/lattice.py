"""The common base of uplinks that send whole numbers: a lattice, with a step for each n."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import ClassVar, Self

from fastfed.confidence import Confidence
from fastfed.errors import InputError
from fastfed.model.uplinks.base import Uplink
from fastfed.validation import read_number, shown

LEAST, MOST = 1e-9, 1e6
"""Limits of the option. Smaller steps would need more digits than a double has. With larger steps
no arm could ever be eliminated."""


class Lattice(Uplink):
    """Uplinks that round a mean to a lattice and send a whole number.

    A subclass chooses the lattice step D(n). `fastfed.model.uplinks.messages` has the code.
    """

    dithered: ClassVar[bool]
    option: ClassVar[str]
    """Name of the number after the colon, as in dither:KAPPA; in small letters, of its field."""

    def __post_init__(self) -> None:
        number: object = self._number
        is_number = isinstance(number, Real) and not isinstance(number, bool)
        if not is_number or not LEAST <= float(number) <= MOST:  # type: ignore[arg-type]
            fix = "; exact sends means as they are" if is_number and number == 0 else ""
            raise InputError(
                f"{self.option} {shown(number)} of uplink {self.family}: must be a number from "
                f"{LEAST:g} to {MOST:g}{fix}"
            )
        object.__setattr__(self, self.option.lower(), float(number))  # type: ignore[arg-type]

    @property
    def name(self) -> str:
        """The family and the number, as in dither:0.5; whole numbers have no decimal point."""
        number = self._number
        short = f"{number:g}"
        return f"{self.family}:{short if float(short) == number else repr(number)}"

    @property
    def _number(self) -> float:
        """The number after the colon, which the subclass calls by the name of the option."""
        return getattr(self, self.option.lower())  # type: ignore[no-any-return]

    @abstractmethod
    def step(self, n: int, server: Confidence) -> float:
        """Return the lattice step D(n); ``server`` is the confidence radius without rounding."""

    @classmethod
    def from_options(cls, options: str) -> Self:
        try:
            number = read_number(options)
        except ValueError:
            raise InputError(f"uplink {shown(f'{cls.family}:{options}')}: {cls.missing}") from None
        return cls(number)  # type: ignore[call-arg]
