"""The uplink of one trial with both its ends, played step by step: for the reference.

Client and server have nothing in common but the rules, the dither and the bits that go over the
wire. Each keeps its own account of what has been heard so far, and they never look at each other's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fastfed.capital import laplace
from fastfed.confidence import Confidence, common_steps
from fastfed.errors import InputError
from fastfed.kernels.uplinks.exact import BITS_OF_A_SCALAR
from fastfed.model.setting import Setting
from fastfed.model.uplinks import Laplace, Lattice
from fastfed.model.uplinks import messages as letters

Ints = npt.NDArray[np.int64]
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


class LaplaceWire(Wire):
    """Messages are sums of new rewards, with noise."""

    def __init__(self, scale: float, dither: Dithers) -> None:
        self._scale, self._dither = scale, dither
        self._told: dict[tuple[int, int], float] = {}  # the clients' account of the sums they sent
        self._heard: dict[tuple[int, int], float] = {}  # the server's of what it received

    def send(self, k: int, m: int, n: int, mean: float) -> tuple[float, int]:
        new = mean * n - self._told.get((k, m), 0.0)
        self._told[k, m] = mean * n
        self._heard[k, m] = self._heard.get((k, m), 0.0) + new + self.noise(k, m, n)
        return self._heard[k, m] / n, BITS_OF_A_SCALAR

    def noise(self, k: int, m: int, n: int) -> float:
        """Return the noise of one message."""
        return self._scale * laplace(self._dither(k, m, n))


def server_alpha(setting: Setting, q: int, n: int, last: Ints, reports: Ints) -> float:
    """Return the radius of the server's values in question q at round n.

    The last report of each client came after ``last`` steps, and it has sent so many ``reports``.
    """
    questions = setting.instance.questions
    if isinstance(setting.uplink, Laplace):
        g = setting.uplink.rule(setting).boundary(n, reports, questions.factors[q, 0])
        return g / (2.0 * n * float(questions.factor_sums[q]))
    if not questions.full:  # all clients report
        return setting.radii.of(q).alpha(n)
    return setting.radii.of(q).alpha(common_steps(questions.factors[q, 0], last))


def wire(setting: Setting, dither: Dithers | None) -> Wire:
    """Return the wire of a setting's uplink."""
    uplink = setting.uplink
    if not isinstance(uplink, Lattice | Laplace):
        return Wire()
    if dither is None and (isinstance(uplink, Laplace) or uplink.dithered):
        raise InputError(
            f"uplink {uplink}: needs dither, a function of (arm, client, n) such as "
            "walks.dithers(seed, trial)"
        )
    shared = dither or (lambda k, m, n: 0.0)
    if isinstance(uplink, Laplace):
        return LaplaceWire(uplink.rule(setting).scale, shared)
    return LatticeWire(uplink, setting.radii.means, shared)
