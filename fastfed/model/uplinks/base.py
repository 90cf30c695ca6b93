"""The interface of an uplink."""

from __future__ import annotations

from abc import abstractmethod

from fastfed.confidence import Confidence
from fastfed.model.part import Part


class Uplink(Part):
    """The form in which a client's empirical means reach the server: exact, or in a few bits.

    Made by its subclasses, or by the names that options take.

    Examples
    --------
    >>> import fastfed as ff
    >>> isinstance(ff.Exact(), ff.Uplink), str(ff.Dither(0.5))
    (True, 'dither:0.5')
    """

    kind = "uplink"

    @abstractmethod
    def widened(self, server: Confidence) -> Confidence:
        """Return the radius of what the server receives, from the radius of the true means."""
