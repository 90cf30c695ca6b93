"""The programme min max over groups of sum 1 / u subject to A u <= 1, with proved values.

A has nonnegative entries and one column for each cell. Cells are in groups, and the largest sum of
1 / u over a group is to be least. One group of all cells gives T*; a group for each client gives
the time of clients that pull side by side.

*Dual.* Multipliers p of the groups, with sum 1, make the objective sum p_m / u. By Cauchy-Schwarz
its minimum is at least (sum over cells of sqrt(p_m (A' l)_x))^2 / sum l for every l >= 0. The best
p is proportional to B_m^2, where B_m is the sum of sqrt(A' l) over the cells of group m. So every l
proves the lower value sum over groups of B_m^2 / sum l, attained with u = B_m / (G sqrt(A' l)) and
G = sum B_m^2. Every u > 0 becomes feasible when u_x is divided by the largest (A u)_c among the
rows c of cell x, which gives an upper value.

The iteration l <- l (A u)^2, normalised, raises the dual until both values meet. Near the optimum
it multiplies errors of ln l by I - P + P', where P is similar to a positive semidefinite matrix and
has row sums 1 on the rows that bind. P' is what P leaves after an average over each group, so that
P - P' is positive semidefinite and at most P. So no error grows. A step costs two products with A,
which is sparse.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_EVERY = 10  # steps between two upper values, which cost as much as a step


class Solution(NamedTuple):
    """Lower and upper bounds on the minimum, and the point that attains the upper one."""

    lower: float
    upper: float
    allocation: Floats  # (cells,): 1 / u of a feasible u; ``upper`` is the largest sum of a group
    multipliers: Floats  # (rows,): l, with sum 1


def solve_rows(
    A: sparse.csr_array,
    tolerance: float,
    multipliers: Floats | None = None,
    most_steps: int = 50_000,
    groups: Ints | None = None,
) -> Solution:
    """Solve the programme; cells without a row get 0.

    Parameters
    ----------
    A
        (rows, cells), nonnegative.
    tolerance
        The relative distance between both values at which the iteration stops.
    multipliers
        The l to start from, all positive with sum 1. None: equal ones.
    most_steps
        The number of steps after which it stops all the same.
    groups
        (cells,): the number of each cell's group. None: one group.
    """
    by_cell = sparse.csr_array(A.T)
    used = np.diff(by_cell.indptr) > 0
    if not used.any():
        return Solution(0.0, 0.0, np.zeros(len(used)), np.zeros(A.shape[0]))
    by_cell, A = by_cell[used], A[:, used]
    group = np.zeros(A.shape[1], np.int64) if groups is None else groups[used]
    shares = np.full(A.shape[0], 1.0 / A.shape[0]) if multipliers is None else multipliers
    lower, upper, feasible = 0.0, math.inf, np.zeros(A.shape[1])
    for step in range(most_steps + 1):
        roots = np.sqrt(by_cell @ shares)
        sums = np.bincount(group, roots)
        total = float((sums**2).sum())
        pulls = roots * (total / sums[group])
        loads = A @ (1.0 / pulls)
        lower = max(lower, total)
        if step % _EVERY == 0 or step == most_steps:
            scaled = pulls * np.maximum.reduceat(loads[by_cell.indices], by_cell.indptr[:-1])
            if (largest := largest_sum(group, scaled)) < upper:
                upper, feasible = largest, scaled
            if upper <= lower * (1.0 + tolerance):
                break
        shares = shares * loads**2
        shares /= shares.sum()
    allocation = np.zeros(len(used))
    allocation[used] = feasible
    return Solution(lower, upper, allocation, shares)


def largest_sum(groups: Ints, pulls: Floats) -> float:
    """Return the largest sum of pulls over a group."""
    return float(np.bincount(groups, pulls).max())


def with_data(pattern: sparse.csr_array, data: Floats) -> sparse.csr_array:
    """Return a matrix with the entries of ``pattern`` in the same places."""
    return sparse.csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)
