"""The interface of an uplink."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from fastfed.confidence import Confidence
from fastfed.model.part import Part

if TYPE_CHECKING:
    pass


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
    visits_rounds: ClassVar[bool] = False
    """Whether the server visits every round, because each report adds noise of its own."""

    @abstractmethod
    def widened(self, server: Confidence) -> Confidence:
        """Return the radius of what the server receives, from the radius of the true means."""
