"""The common base of uplinks that send whole numbers: a lattice, with a step for each n."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from fastfed.confidence import Confidence
from fastfed.model.uplinks.base import Uplink

LEAST, MOST = 1e-9, 1e6
"""Limits of the option. Smaller steps would need more digits than a double has. With larger steps
no arm could ever be eliminated."""


class Lattice(Uplink):
    """Uplinks that round a mean to a lattice and send a whole number.

    A subclass chooses the lattice step D(n). `fastfed.model.uplinks.messages` has the code.
    """

    dithered: ClassVar[bool]

    @abstractmethod
    def step(self, n: int, server: Confidence) -> float:
        """Return the lattice step D(n); ``server`` is the confidence radius without rounding."""
