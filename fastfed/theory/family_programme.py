"""T* for exponential families that are not Gaussian: min sum w subject to F_c(w) >= 1.

For the time of clients that pull side by side, the largest sum over a group takes the place of the
sum, as in `fastfed.theory.gaussian_programme`.

F_c(w) is the least of sum w_x d(mu_x, mu_x + e_x) over the changes e that close the gap of
half-space c (`fastfed.theory.alternatives`). The changes follow from a price per unit of gap, the
root of a monotone function. F_c is concave and homogeneous, and its gradient is d_c, the
divergences of the cheapest point.

*Both values are proved without reference to the iteration.* Upper: the Lagrangian at any price is
at most F_c, and F_c rises with w, so w_x divided by the least F_c among its rows is feasible.
Lower: changes that close a gap are alternatives, so sum_x w_x d_cx >= 1 for every feasible w, and
multipliers l >= 0 with sum_c l_c d_cx <= p_m for every cell x of group m, where the p have the sum
1, prove that the minimum is at least sum l.

*Rounds of linear rows.* At any w, rows A_cx = w_x^2 d_cx / F_c^2 agree with 1 / F_c in value and
slope. The programme of these rows (`fastfed.theory.gaussian_programme`) gives the next w; for
Gaussian rewards the first round would end it. Most instances need five to twenty.

*Cutting planes.* Means near 0 or 1 bend F_c so sharply that the rounds may circle. Then all
alternatives found so far make a linear programme. Its optimum is a lower value, and the next w is
halfway between its solution and the best feasible one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fastfed.theory.alternatives import HalfSpaces
from fastfed.theory.families import Family
from fastfed.theory.gaussian_programme import Ints, Solution, largest_sum, solve_rows, with_data

Floats = npt.NDArray[np.float64]

_SHARES, _ROUNDS = (1.0, 0.5), (20, 30)  # of the way to the next w, and how many rounds with each
_STEPS = 200  # of the inner programme, which need not be solved exactly
_FLOOR = 1e-24  # every row keeps this share of the multipliers: new rows may need it again
_LEAST = 1e-12  # of a row, for each of its cells: a change of 0 would leave it without pulls
_CUTS = 150  # rounds of cutting planes
_MOST_ENTRIES = 20_000  # of the half-spaces, for cutting planes
_LOOSE = 1.5  # a cut that is satisfied so well is dropped


def solve_family(
    spaces: HalfSpaces, family: Family, means: Floats, tolerance: float, groups: Ints | None = None
) -> tuple[float, float, Floats]:
    """Return a lower value of the minimum, an upper value, and the pulls (cells,) that attain it.

    ``groups`` has the group of each cell; None: one group, whose minimum is T*.
    """
    spaces = _reachable(spaces, family, means)
    if not len(spaces.gaps):
        return 0.0, 0.0, np.zeros(len(means))
    one = np.zeros(len(means), np.int64)
    search = _Search(spaces, family, means, tolerance, one if groups is None else groups)
    search.by_rows()
    if not search.done and spaces.moves.nnz <= _MOST_ENTRIES:
        search.by_cuts()
    return search.lower, search.upper, search.allocation


def _reachable(spaces: HalfSpaces, family: Family, means: Floats) -> HalfSpaces:
    """Leave out half-spaces without an instance of the family, as with a threshold above 1."""
    limits = np.where(spaces.moves.data > 0, family.high, family.low)
    room = np.abs(spaces.moves.data) * np.abs(limits - means[spaces.cells])
    kept = np.add.reduceat(room, spaces.moves.indptr[:-1]) > spaces.gaps * (1.0 + 1e-12)
    return HalfSpaces(spaces.moves[kept], spaces.gaps[kept])


class _Search:
    """The best values so far, and the alternatives that prove the lower one."""

    def __init__(
        self, spaces: HalfSpaces, family: Family, means: Floats, tolerance: float, groups: Ints
    ) -> None:
        self.spaces, self.tolerance, self.groups = spaces, tolerance, groups
        self.cheapest = CheapestPoints(spaces, family, means)
        self.by_cell = sparse.csc_array(spaces.moves)
        self.used = np.diff(self.by_cell.indptr) > 0
        self.lower, self.upper, self.allocation = 0.0, math.inf, np.zeros(len(means))
        self.cuts: list[sparse.csr_array] = []

    @property
    def done(self) -> bool:
        return self.upper <= self.lower * (1.0 + self.tolerance)

    def by_rows(self) -> None:
        """Solve programmes of linear rows that agree with the constraints at the last pulls."""
        count = len(self.spaces.gaps)
        shares, pulls = np.full(count, 1.0 / count), self.cheapest.first_guess()
        for share in np.repeat(_SHARES, _ROUNDS).tolist():
            values, divergences = self._visit(pulls)
            price = with_data(self.spaces.moves, divergences).T @ shares
            price = price / self._dearest(price)[self.groups]
            dearest = np.maximum.reduceat(price[self.spaces.cells], self.spaces.moves.indptr[:-1])
            self.lower = max(self.lower, float((shares / dearest).sum()))
            if self.done:
                return
            scaled = pulls[self.spaces.cells] / self.spaces.per_entry(values)
            found = self._inner(scaled * np.maximum(scaled * divergences, _LEAST), shares)
            shares = np.maximum(found.multipliers, _FLOOR)
            shares /= shares.sum()
            pulls = pulls ** (1.0 - share) * found.allocation**share

    def _inner(self, data: Floats, shares: Floats) -> Solution:
        rows = with_data(self.spaces.moves, data)
        return solve_rows(rows, 0.1 * self.tolerance, shares, _STEPS, self.groups)

    def _dearest(self, price: Floats) -> Floats:
        """Return multipliers of the groups in proportion to their dearest cells, with sum 1."""
        found = np.zeros(self.groups.max() + 1)
        np.maximum.at(found, self.groups, price)
        return np.asarray(np.where(found > 0.0, found, 1.0) / max(found.sum(), 1e-300))

    def by_cuts(self) -> None:
        """Solve linear programmes of the alternatives found, each with more of them."""
        for _ in range(_CUTS):
            scale = self.allocation[self.used]
            rows = sparse.vstack(self.cuts, format="csr")[:, self.used]
            rows = rows[np.isfinite(rows.sum(axis=1))] @ sparse.diags_array(scale)
            found = self._cheapest_allocation(rows, scale)
            if found is None:
                return
            x, prices = found
            dearest = np.zeros(self.groups.max() + 1)
            np.maximum.at(dearest, self.groups[self.used], rows.T @ prices / scale)
            self.lower = max(self.lower, float(prices.sum() / dearest.sum()))
            if self.done:
                return
            self.cuts = [cut[cut[:, self.used] @ (scale * x) < _LOOSE] for cut in self.cuts]
            pulls = np.zeros(len(self.allocation))
            pulls[self.used] = 0.5 * scale * (1.0 + x)
            self._visit(pulls)

    def _cheapest_allocation(
        self, rows: sparse.csr_array, scale: Floats
    ) -> tuple[Floats, Floats] | None:
        """Minimise the largest sum of scale x over a group, subject to rows x >= 1.

        Return x and the multipliers of the rows; None if the solver fails.
        """
        from scipy.optimize import linprog

        cells, group = len(scale), self.groups[self.used]
        count, total = int(self.groups.max()) + 1, float(scale.sum())
        sums = sparse.csr_array((scale / total, (group, np.arange(cells))), shape=(count, cells))
        largest = sparse.csr_array(-np.ones((count, 1)))
        held = sparse.csr_array((rows.shape[0], 1))
        solve: Any = linprog  # its stubs know no sparse arrays
        found = solve(
            np.append(np.zeros(cells), 1.0),
            sparse.vstack([sparse.hstack([-rows, held]), sparse.hstack([sums, largest])]),
            np.append(-np.ones(rows.shape[0]), np.zeros(count)),
        )
        if found.x is None or found.status != 0:
            return None
        return found.x[:cells], np.maximum(-found.ineqlin.marginals[: rows.shape[0]], 0.0)

    def _visit(self, pulls: Floats) -> tuple[Floats, Floats]:
        """Find the cheapest points at these pulls, and keep what they prove."""
        values, divergences = self.cheapest(pulls)
        needed = np.maximum.reduceat(
            1.0 / values[self.by_cell.indices], self.by_cell.indptr[:-1][self.used]
        )
        feasible = pulls[self.used] * needed
        if (largest := largest_sum(self.groups[self.used], feasible)) < self.upper:
            self.upper = largest
            self.allocation = np.zeros(len(pulls))
            self.allocation[self.used] = feasible
        self.cuts.append(with_data(self.spaces.moves, divergences))
        return values, divergences


class CheapestPoints:
    """The cheapest point of each half-space, for given pulls; prices are kept for the next."""

    def __init__(self, spaces: HalfSpaces, family: Family, means: Floats) -> None:
        self.spaces, self.family = spaces, family
        self.a = spaces.moves.data
        self.means = means[spaces.cells]
        # no change exceeds what would close the gap alone, or leaves the family
        most = spaces.per_entry(spaces.gaps) / np.abs(self.a)
        self.least = np.maximum(np.where(self.a < 0, -most, 0.0), family.low - self.means)
        self.most = np.minimum(np.where(self.a > 0, most, 0.0), family.high - self.means)
        self.prices = np.zeros(len(spaces.gaps))

    def first_guess(self) -> Floats:
        """Return pulls of the right order: those that each half-space needs by itself."""
        middle = self.means + 0.5 * np.where(self.a > 0, self.most, self.least)
        scaled = self.a / self.spaces.per_entry(self.spaces.gaps)
        rows = with_data(
            self.spaces.moves, 2.0 * scaled**2 * np.maximum(self.family.variance(middle), 1e-300)
        )
        return solve_rows(rows, 1e-2, None, _STEPS).allocation

    def __call__(self, pulls: Floats) -> tuple[Floats, Floats]:
        """Return a lower value of each F, and the divergences of a point in each half-space."""
        weights = pulls[self.spaces.cells]
        low, high = self._bracket(weights)
        below, above = self._changes(low, weights), self._changes(high, weights)
        short = self.spaces.gaps - self._closed(below)
        # on the line between both, the point that closes the gap
        step = self._closed(above) - self._closed(below)
        share = np.divide(short, step, out=np.zeros_like(short), where=step > 0)
        point = below + self.spaces.per_entry(np.clip(share, 0.0, 1.0)) * (above - below)
        self.prices = low
        floor = self._summed(weights * self.family.cost(self.means, below)) + low * short
        return floor, self.family.cost(self.means, point)

    def _bracket(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return prices just below and just above those that close the gaps."""
        low, high = np.zeros_like(self.prices), 2.0 * self.prices
        start = self.spaces.gaps / self._summed(
            self.a**2 * np.maximum(self.family.variance(self.means), 1e-9) / weights
        )
        high = np.where(high > 0, high, start)
        while (short := self._closed(self._changes(high, weights)) < self.spaces.gaps).any():
            low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
        for middle in self._middles(low, high):
            short = self._closed(self._changes(middle, weights)) < self.spaces.gaps
            low[short], high[~short] = middle[short], middle[~short]
        return low, high

    @staticmethod
    def _middles(low: Floats, high: Floats) -> Iterator[Floats]:
        while True:
            middle = 0.5 * (low + high)
            if not ((middle > low) & (middle < high) & (high - low > 1e-14 * high)).any():
                return
            yield middle

    def _changes(self, prices: Floats, weights: Floats) -> Floats:
        move = self.family.move(self.means, self.spaces.per_entry(prices) * self.a / weights)
        return np.clip(move, self.least, self.most)

    def _closed(self, changes: Floats) -> Floats:
        return self._summed(self.a * changes)

    def _summed(self, entries: Floats) -> Floats:
        return np.asarray(np.add.reduceat(entries, self.spaces.moves.indptr[:-1]))
