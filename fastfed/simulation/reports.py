"""Reports that a server has received by a round, for the replay of a trial.

With full participation and exact numbers the last report of every client is that of the round
itself. Otherwise clients may be absent, and noise of earlier reports stays in the sums.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastfed.kernels.random.presence import presence_table, share_of
from fastfed.model.setting import Setting
from fastfed.simulation.reference_uplink import LaplaceWire, Wire, server_alpha

Ints = npt.NDArray[np.int64]


class Reports:
    """Reports of a trial at the rounds of one schedule."""

    def __init__(self, setting: Setting, trial: int, rounds: Ints, line: Wire) -> None:
        self._setting, self._line, self._rounds = setting, line, rounds
        present = np.zeros((len(rounds), setting.instance.shape[1]), np.bool_)
        share = share_of(setting.participation.probability)
        presence_table(np.uint64(setting.seed), trial, rounds, share, present)
        # before the first round, and after each: the last report of a client, and their number
        steps = np.maximum.accumulate(np.where(present, rounds[:, None], 0), axis=0)
        none = np.zeros((1, present.shape[1]), np.int64)
        self._present = present
        self._last = np.concatenate([none, steps])
        self._count = np.concatenate([none, np.cumsum(present, axis=0, dtype=np.int64)])

    def _place(self, n: int | Ints) -> Ints:
        return np.searchsorted(self._rounds, n, side="right")

    def last(self, n: int) -> Ints:
        """Return the step of the last report of each client up to round n."""
        return self._last[self._place(n)]

    def sent(self, until: Ints) -> int:
        """Count the messages of all cells, (K, M), each up to its own step."""
        return int(np.take_along_axis(self._count, self._place(until), axis=0).sum())

    def noise(self, k: int, m: int, n: int) -> float:
        """Return the noise in the sum of arm k that client m has reported up to round n."""
        if not isinstance(self._line, LaplaceWire):
            return 0.0
        until = self._place(n)
        rounds = self._rounds[:until][self._present[:until, m]]
        return sum(self._line.noise(k, m, one) for one in rounds.tolist())

    def alpha(self, question: int, n: int) -> float:
        """Return the radius of the server's values at round n."""
        counts = self._count[self._place(n)]
        return server_alpha(self._setting, question, n, self.last(n), counts)
