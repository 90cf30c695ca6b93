"""Costs of communication schemes on the good event, from the steps that settle each arm.

`fastfed.theory.bounds` has the notation and says where this departs from the paper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fastfed.model.schedules import Adaptive
from fastfed.model.weights import Questions
from fastfed.theory.adaptive import Rounds

PerCell: TypeAlias = Any
"""A number where delta and cost are numbers, else an array whose first axes are their grid."""

_Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Costs:
    """Upper bounds on one trial. ``total`` is pulls + comm unless the paper says less."""

    pulls: PerCell
    uplinks: PerCell
    """Scalars sent, all clients."""
    comm: PerCell
    """C times uplinks."""
    total: PerCell


@dataclass(frozen=True, eq=False)
class Scheme:
    """One communication scheme, bounded on E in three ways."""

    name: str
    """periodic, fedelim, exponential, superexponential or adaptive."""
    parameter: PerCell | None
    """H, lambda or HI; None for super-exponential communication."""
    as_stated: Costs
    """The paper's closed form in T (2T, 3T, T + HMK, ...), slips and all. What it writes as O()
    is derived here."""
    summed: Costs
    """Sums over arms and clients of T_km and T_k; the uplinks are counted correctly."""
    sharp: Costs
    """The same sums of n_km and n_k, at the scheme's own times."""


@dataclass(frozen=True, eq=False)
class Settled:
    """Steps that settle arms on the good event, on a grid of delta and cost.

    Those of the server are for each arm and client: the step until which a question needs the arm
    there, and 0 where the client has no weight in any question.
    """

    T_km: _Floats  # (..., K, M) the paper's closed forms, at the clients
    T_server: _Floats  # (..., K, M) and at the server
    n_km: _Floats  # (..., K, M) the steps themselves
    n_server: _Floats  # (..., K, M)

    @property
    def T(self) -> _Floats:
        """The paper's T: the sum over arms and clients of max(T_km, T_k)."""
        return sum_of_larger(self.T_km, self.T_server)


class Schemes:
    """Costs of each scheme, from the steps that settle arms."""

    def __init__(self, C: _Floats, settled: Settled, questions: Questions, asked: bool) -> None:
        self.C, self.T, self.questions = C, settled.T, questions
        self.T_km, self.T_server = settled.T_km, settled.T_server
        self.n_km, self.n_server = settled.n_km, settled.n_server
        self.sends = questions.asked.any(axis=0).astype(np.float64)  # (K, M)
        self.cells = float(self.sends.sum())
        self.asked = float(asked)

    def fedelim(self) -> Scheme:
        """Bound FedElim: Theorem 4."""
        general = self.exponential(2.0)
        # Departure, for `summed`: n = 1, 2, ..., 2^t* are t* + 1 uplinks for each arm and client;
        # the proof counts t*, and so does eq. (comm-cost-under-FedElim), here as stated.
        uplinks = self._sent(np.ceil(np.log2(np.maximum(self.T_server, 1.0))))
        stated = self._costs(2.0 * self.T, uplinks, 3.0 * self.T)
        return Scheme("fedelim", general.parameter, stated, general.summed, general.sharp)

    def exponential(self, base: float) -> Scheme:
        """Bound the times ceil(base^t): eqs. (lambda-analogue-1) to (-3)."""
        turns = np.log2(np.maximum(self.T_server, 1.0)) / math.log2(base)
        return self._scheme(
            "exponential",
            np.full(self.C.shape, base),
            self._costs(base * self.T, self._sent(turns) + self.cells),
            # base T_k holds with the ceil(), too: the time before was whole and below T_k.
            # Departure: + 1 for the uplink at t = 0, as for FedElim.
            self._summed(self.T_km, base * self.T_server, np.ceil(turns) + 1.0),
            _exponential_times(base, float(self.n_server.max())),
        )

    def periodic(self, period: _Floats) -> Scheme:
        """Bound the times H, 2H, 3H, ...: eqs. (periodic-1) to (-3)."""
        H = period[..., None, None]

        def summed(locally: _Floats, globally: _Floats) -> Costs:
            turns = np.ceil(globally / H)
            return self._summed(locally, turns * H, turns)

        stated = self._costs(self.T + period * self.cells, self.T / period + self.cells)
        return Scheme(
            "periodic",
            period[()],
            stated,
            summed(self.T_km, self.T_server),
            summed(self.n_km, self.n_server),
        )

    def superexponential(self) -> Scheme:
        """Bound times 2^(2^t). Departure: the paper has only O(T^2) and O(C ln ln T).

        The first time at or after T_k > 2 is 2^(2^t) with 2^(2^(t-1)) < T_k, so below T_k^2, and
        it is turn t + 1 with t = ceil(log2 log2 T_k). For T_k <= 2 it is 2, the first turn. In
        closed form, sum max(2, x^2) <= (sum x)^2 = T^2 over two or more x >= 1.
        """

        def turns(T: _Floats) -> _Floats:
            return np.asarray(np.log2(np.log2(np.maximum(T, 2.0))))

        return self._scheme(
            "superexponential",
            None,
            self._costs(self.T**2, self.cells * (turns(self.T) + 2.0)),  # ceil(x) + 1 < x + 2
            self._summed(
                self.T_km,
                self.sends * np.maximum(2.0, self.T_server**2),
                np.ceil(turns(self.T_server)) + 1.0,
            ),
            np.array([2.0**2**t for t in range(10)]),  # the last is above 1e150
        )

    def adaptive(self, schedule: Adaptive, found: Sequence[Rounds]) -> Scheme:
        """Bound times that the server chooses (`theory.adaptive`), one `Rounds` for each cell.

        Departure: the paper has no such scheme; ``as_stated`` is what it would state.
        """
        first = np.reshape([one.first for one in found], self.C.shape)
        shape, asked = self.T_server.shape, self.questions.asked
        latest = np.reshape([self.questions.latest(one.latest) for one in found], shape)
        # each question chooses its own times, and may share none of them with the others
        most = np.reshape([(one.turns[:, :, None] * asked).sum(axis=0) for one in found], shape)
        n_1, each = first[..., None, None], asked.sum(axis=0)
        turns = np.log(np.maximum(self.T_server / n_1, 1.0)) / math.log(schedule.lo)
        growth = schedule.growth
        return Scheme(
            "adaptive",
            np.full(self.C.shape, schedule.hi)[()],
            self._costs(growth * self.T + first * self.cells, self._sent(each * (turns + 2.0))),
            self._summed(
                self.T_km,
                self.sends * np.maximum(n_1, growth * self.T_server),
                each * (np.ceil(turns) + 1.0),
            ),
            self._summed(self.n_km, latest, most),
        )

    def _scheme(
        self, name: str, parameter: _Floats | None, stated: Costs, summed: Costs, times: _Floats
    ) -> Scheme:
        """Make a scheme; `sharp` comes from a list of times, the last at or after every n_k."""
        turn = np.searchsorted(times, self.n_server)
        sharp = self._summed(self.n_km, self.sends * times[turn], (turn + 1).astype(np.float64))
        return Scheme(name, None if parameter is None else parameter[()], stated, summed, sharp)

    def _summed(self, locally: _Floats, globally: _Floats, turns: _Floats) -> Costs:
        """Return the costs if arms are pulled until the later step and sent ``turns`` times."""
        return self._costs(sum_of_larger(locally, globally), self._sent(turns))

    def _sent(self, turns: _Floats) -> _Floats:
        """Add up messages of all arms and clients, (..., K, M), without clients that send none."""
        return np.asarray((self.sends * turns).sum(axis=(-2, -1)))

    def _costs(self, pulls: _Floats, uplinks: _Floats, total: _Floats | None = None) -> Costs:
        # a lone arm costs nothing if nothing is asked of it, whatever the formulas add to T
        comm = self.C * uplinks
        total = pulls + comm if total is None else total
        return Costs(*((self.asked * value)[()] for value in (pulls, uplinks, comm, total)))


def sum_of_larger(locally: _Floats, globally: _Floats) -> _Floats:
    """Add up the larger of two steps over arms and clients."""
    return np.asarray(np.maximum(locally, globally).sum(axis=(-2, -1)))


def _exponential_times(base: float, until: float) -> _Floats:
    """List the times of `Exponential`, as floats, to the first at or after ``until``."""
    times = [1.0]
    while times[-1] < until:
        times.append(float(math.ceil(base ** len(times))))
    return np.unique(times)
