"""What an uplink is."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from fastfed.choices import Named
from fastfed.radius import Confidence


class Uplink(Named):
    """How a client's empirical means reach the server: as they are, or in a few bits.

    Made by its subclasses, or by the names that options take.

    Examples
    --------
    >>> import fastfed as ff
    >>> isinstance(ff.Exact(), ff.Uplink), str(ff.Dither(0.5))
    (True, 'dither:0.5')
    """

    @abstractmethod
    def widened(self, server: Confidence) -> Confidence:
        """The radius of what the server hears, from the radius of the true means."""

    @abstractmethod
    def kernel(self, server: Confidence) -> Any:
        """The uplink as the kernels know it (`fastfed.kernels.uplinks`), where ``server`` is the
        radius of the true means."""
