"""The paper's uplink: a message is a real number, which arrives as it was sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from fastfed.errors import InputError
from fastfed.radius import Confidence
from fastfed.uplinks.base import Uplink
from fastfed.validation import shown


@dataclass(frozen=True)
class Exact(Uplink):
    """Every message is one scalar, counted as 64 bits.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Exact())
    'exact'
    """

    family = "exact"
    grammar = "exact"

    @classmethod
    def from_text(cls, text: str, options: str | None) -> Self:
        if options is not None:
            raise InputError(f"uplink {shown(text)}: exact takes no option; write exact")
        return cls()

    def __str__(self) -> str:
        return self.family

    def widened(self, server: Confidence) -> Confidence:
        return server

    def kernel(self, server: Confidence) -> Any:
        from fastfed.kernels.uplinks.exact import exact_uplink

        return exact_uplink()
