"""The paper's uplink: a message is a real number, which arrives as it was sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastfed.confidence import Confidence
from fastfed.model.uplinks.base import Uplink

if TYPE_CHECKING:
    from fastfed.model.setting import Setting


@dataclass(frozen=True, eq=False)
class Exact(Uplink):
    """Every message is one scalar, counted as 64 bits.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Exact())
    'exact'
    """

    family = "exact"
    covered = True
    rank = 0

    def widened(self, server: Confidence) -> Confidence:
        return server

    def kernel(self, setting: Setting) -> Any:
        from fastfed.kernels.uplinks.exact import exact_uplink

        return exact_uplink()
