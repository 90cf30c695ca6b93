"""The uplink of one trial with both its ends, played step by step: for the reference.

Client and server have nothing in common but the rules, the dither and the bits that go over the
wire. Each keeps its own account of what has been heard so far, and they never look at each other's.
"""

from __future__ import annotations

from collections.abc import Callable

from fastfed.confidence import Confidence
from fastfed.errors import InputError
from fastfed.kernels.uplinks.exact import BITS_OF_A_SCALAR
from fastfed.model.uplinks import Lattice, Uplink
from fastfed.model.uplinks import messages as letters

Dithers = Callable[[int, int, int], float]
"""(arm, client, n) -> the dither of that message."""


class Wire:
    """The exact uplink: the server receives the means as they were sent."""

    def send(self, k: int, m: int, n: int, mean: float) -> tuple[float, int]:
        """Return the number that the server receives for arm k of client m at n, and its bits."""
        return mean, BITS_OF_A_SCALAR

    def heard(self, k: int, m: int, n: int, mean: float) -> float:
        """Return the number that the server receives, whatever was sent before."""
        return mean


class LatticeWire(Wire):
    """Messages are whole numbers in a prefix code."""

    def __init__(self, uplink: Lattice, server: Confidence, dither: Dithers) -> None:
        self._uplink, self._radius, self._dither = uplink, server, dither
        self._told: dict[tuple[int, int], float] = {}  # the clients' account of what was heard
        self._heard: dict[tuple[int, int], float] = {}  # the server's

    def send(self, k: int, m: int, n: int, mean: float) -> tuple[float, int]:
        bits = self._client(k, m, n, mean)
        return self._server(k, m, n, bits), len(bits)

    def heard(self, k: int, m: int, n: int, mean: float) -> float:
        step, dither = self._rules(k, m, n)
        return letters.point(letters.nearest(mean, step, dither), step, dither)

    def _client(self, k: int, m: int, n: int, mean: float) -> str:
        step, dither = self._rules(k, m, n)
        before = self._told.get((k, m), 0.0)
        sent = letters.message(mean, before, step, dither)
        self._told[k, m] = letters.received(sent, before, step, dither)
        return letters.written(sent)

    def _server(self, k: int, m: int, n: int, bits: str) -> float:
        step, dither = self._rules(k, m, n)
        sent = letters.read(iter(bits))
        self._heard[k, m] = letters.received(sent, self._heard.get((k, m), 0.0), step, dither)
        return self._heard[k, m]

    def _rules(self, k: int, m: int, n: int) -> tuple[float, float]:
        """Return the step and the dither of a message, which both ends know."""
        return (
            self._uplink.step(n, self._radius),
            self._dither(k, m, n) if self._uplink.dithered else 0.0,
        )


def wire(uplink: Uplink, server: Confidence, dither: Dithers | None) -> Wire:
    """Return the wire of an uplink, where ``server`` is the radius of the true means."""
    if not isinstance(uplink, Lattice):
        return Wire()
    if uplink.dithered and dither is None:
        raise InputError(
            f"uplink {uplink}: needs dither, a function of (arm, client, n) such as "
            "walk_dithers(seed, trial)"
        )
    return LatticeWire(uplink, server, dither or (lambda k, m, n: 0.0))
