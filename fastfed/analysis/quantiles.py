"""Quantiles of trials that arrive in batches.

Up to `EXACT` trials are kept, and their quantiles are exact: linear interpolation between order
statistics, as NumPy and R do by default. Beyond that memory stays flat: a value is counted in the
bucket that its leading `LEAD` bits name, and a quantile is the middle of the bucket that it lies
in, off by at most `SKETCH_ERROR` of itself. Which of the two applies depends on the number of
trials alone, and buckets hold counts: the answer does not depend on batches or their order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fastfed.analysis.prices import BITS, PULLS, UPLINKS, Cost, Prices
from fastfed.analysis.trials import Aligned
from fastfed.model.counts import COUNTS

EXACT = 2**18
"""So many trials are kept as they are: 6 MB of pulls, uplinks and bits for each schedule."""
LEAD = 12
SKETCH_ERROR = 2.0 ** -(LEAD + 1)
"""The largest relative error of a quantile of more trials: a bucket is 2^-LEAD wide, relatively."""

SHARES = (0.05, 0.5, 0.95)
"""The shares that summaries and reports show."""

_LEAST = int(np.float64(0.5).view(np.int64)) >> (52 - LEAD)
_Floats = npt.NDArray[np.float64]


class Quantiles:
    """Quantiles, at the shares `SHARES`, of several costs of one schedule.

    Bits have quantiles only where they were counted.
    """

    def __init__(self, measures: Sequence[Prices]) -> None:
        self.count = 0
        self._kept: list[Mapping[str, _Floats]] | None = []
        self._buckets = {prices: _Buckets() for prices in measures}

    @property
    def error(self) -> float:
        """The largest relative error: 0 while all trials are kept."""
        return 0.0 if self._kept is not None else SKETCH_ERROR

    def add(self, counts: Mapping[str, _Floats]) -> None:
        self.count += len(next(iter(counts.values())))
        waiting = [*(self._kept or ()), counts]
        if self._kept is not None and self.count <= EXACT:
            self._kept = waiting
            return
        self._kept = None
        for batch in waiting:
            for prices, buckets in self._buckets.items():
                buckets.add(prices.spent(batch))

    def found(self) -> dict[Prices, list[float]]:
        """Return the quantiles of every cost; NaN without trials."""
        if not self.count:
            return dict.fromkeys(self._buckets, [math.nan] * len(SHARES))
        if self._kept is None:
            return {prices: one.quantiles(SHARES) for prices, one in self._buckets.items()}
        counts = {name: np.concatenate([one[name] for one in self._kept]) for name in self._kept[0]}
        with np.errstate(over="ignore", invalid="ignore"):
            found = exact_quantiles(np.stack([prices.spent(counts) for prices in self._buckets]))
        return dict(zip(self._buckets, found.tolist(), strict=True))


def exact_quantiles(values: _Floats) -> _Floats:
    """Sort values (..., trial) in place; return their quantiles (..., share).

    They are those of `numpy.quantile`, which takes three times as long for a few trials.
    """
    values.sort(axis=-1)
    last = values.shape[-1] - 1
    at = np.array(SHARES) * last
    low = at.astype(np.int64)
    below, above, part = values[..., low], values[..., np.minimum(low + 1, last)], at - low
    step = above - below
    return np.asarray(np.where(part < 0.5, below + step * part, above - step * (1 - part)))


class CellQuantiles:
    """Quantiles of every schedule of a cell, by name: of pulls, uplinks, bits and total costs.

    Total costs are those at each of ``costs``.
    """

    def __init__(self, schedules: Sequence[str], costs: Sequence[Cost]) -> None:
        totals = (unit.total(cost) for cost, unit in costs)
        wanted = tuple(dict.fromkeys([PULLS, UPLINKS, BITS, *totals]))
        self._columns = tuple(name for name in COUNTS if any(name in one.names for one in wanted))
        self._of = {name: Quantiles(wanted) for name in schedules}

    def __getitem__(self, schedule: str) -> Quantiles:
        return self._of[schedule]

    def add(self, trials: Aligned) -> None:
        """Add a batch."""
        counts = np.fmax(trials.values(self._columns), 0.0)
        for row, name in enumerate(trials.schedules):
            here = trials.present[row]
            here = counts[row] if here.all() else counts[row][:, here]
            self._of[name].add(dict(zip(self._columns, here, strict=True)))


class _Buckets:
    """Counts of values by the leading bits of their doubles, which sort as the values do.

    Values below 1/2 count as 0.
    """

    def __init__(self) -> None:
        self._first = 0
        self._counts = np.zeros(0, np.int64)

    def add(self, values: _Floats) -> None:
        if not len(values):
            return
        keys = np.maximum((values.view(np.int64) >> (52 - LEAD)) - _LEAST, 0)
        low, high = int(keys.min()), int(keys.max())
        end = self._first + len(self._counts)
        if not len(self._counts):
            self._first, self._counts = low, np.zeros(high - low + 1, np.int64)
        elif low < self._first or high >= end:
            self._counts = np.pad(self._counts, (max(0, self._first - low), max(0, high + 1 - end)))
            self._first = min(low, self._first)
        found = np.bincount(keys - low)
        self._counts[low - self._first : low - self._first + len(found)] += found

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Return the middle of the bucket that holds the value of that rank."""
        until = np.cumsum(self._counts)
        ranks = np.asarray(shares) * (until[-1] - 1)
        keys = self._first + np.searchsorted(until, ranks, side="right")
        edges = np.stack([keys, keys + 1]) + _LEAST << (52 - LEAD)
        low, high = edges.view(np.float64)
        middle = np.where(keys == 0, 0.0, low + (high - low) / 2)
        return [float(one) for one in middle]
