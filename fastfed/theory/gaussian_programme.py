"""The programme min sum 1 / u subject to A u <= 1, with a value proved on either side.

A has nonnegative entries and one column for each cell. The dual is the maximum over l >= 0 of
(sum over cells of sqrt(A' l))^2 / sum l, attained with u = 1 / sqrt(A' l). Every l proves a lower
value. Every u > 0 becomes feasible when u_x is divided by the largest (A u)_c among the rows c of
cell x, which gives an upper value.

The iteration l <- l (A u)^2, normalised, raises the dual until both values meet. Near the optimum
it multiplies errors of ln l by I - P, where P is similar to a positive semidefinite matrix and has
row sums 1 on the rows that bind. So no error grows. A step costs two products with A, which is
sparse.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats = npt.NDArray[np.float64]

_EVERY = 10  # steps between two upper values, which cost as much as a step


class Solution(NamedTuple):
    """Lower and upper bounds on the minimum, and the point that attains the upper one."""

    lower: float
    upper: float
    allocation: Floats  # (cells,): 1 / u of a feasible u, with sum ``upper``
    multipliers: Floats  # (rows,): l, with sum 1


def solve_rows(
    A: sparse.csr_array,
    tolerance: float,
    multipliers: Floats | None = None,
    most_steps: int = 50_000,
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
    """
    by_cell = sparse.csr_array(A.T)
    used = np.diff(by_cell.indptr) > 0
    if not used.any():
        return Solution(0.0, 0.0, np.zeros(len(used)), np.zeros(A.shape[0]))
    by_cell, A = by_cell[used], A[:, used]
    shares = np.full(A.shape[0], 1.0 / A.shape[0]) if multipliers is None else multipliers
    lower, upper, feasible = 0.0, math.inf, np.zeros(A.shape[1])
    for step in range(most_steps + 1):
        pulls = np.sqrt(by_cell @ shares)
        total = float(pulls.sum())
        loads = A @ (1.0 / pulls)
        lower = max(lower, total * total)
        if step % _EVERY == 0 or step == most_steps:
            scaled = pulls * np.maximum.reduceat(loads[by_cell.indices], by_cell.indptr[:-1])
            if scaled.sum() < upper:
                upper, feasible = float(scaled.sum()), scaled
            if upper <= lower * (1.0 + tolerance):
                break
        shares = shares * loads**2
        shares /= shares.sum()
    allocation = np.zeros(len(used))
    allocation[used] = feasible
    return Solution(lower, upper, allocation, shares)


def with_data(pattern: sparse.csr_array, data: Floats) -> sparse.csr_array:
    """Return a matrix with the entries of ``pattern`` in the same places."""
    return sparse.csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)
