"""Alternatives: the instances on which the right answer is another one.

The value of arm k in a question is the sum over clients of W_km mu_km (`fastfed.model.weights`): a
client's own question has weight 1 on that client, the paper's server has W = 1/M. The answer of a
goal changes when an arm that is out reaches an arm that is in, or when an arm reaches the
threshold. Each such change is a half-space of instances mu + e,

    sum over cells of a_km e_km >= gap,

with a = W_km for the arm that has to rise and -W_km for the arm that has to fall. Every alternative
lies in one of these half-spaces, and each half-space is the closure of alternatives inside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fastfed.model.goals import Best, Goal, Threshold, Top
from fastfed.model.instance import Instance

Floats = npt.NDArray[np.float64]


class HalfSpaces(NamedTuple):
    """Half-spaces that cover all alternatives; cells are numbered k M + m."""

    moves: sparse.csr_array  # (rows, K M): a
    gaps: Floats  # (rows,), above 0

    @property
    def cells(self) -> npt.NDArray[np.int64]:
        """The cell of each stored entry of ``moves``."""
        return np.asarray(self.moves.indices, dtype=np.int64)

    def per_entry(self, rows: Floats) -> Floats:
        """Repeat the value of each row for each of its stored entries."""
        return np.repeat(rows, np.diff(self.moves.indptr))


def no_half_spaces(goal: Goal) -> str | None:
    """Return the reason why a goal has no half-spaces, or None if it has."""
    if isinstance(goal, Best | Top) or (isinstance(goal, Threshold) and goal.slack == 0.0):
        return None
    return f"goal {goal}: several answers can be right, and no T* is known"


def half_spaces(instance: Instance, goal: Goal) -> HalfSpaces:
    """Build the half-spaces of the alternatives.

    Parameters
    ----------
    instance
        Means, and the questions of the server and of the clients.
    goal
        `Best`, `Top` or `Threshold` without slack.

    Returns
    -------
    HalfSpaces
        One row for each question and each way in which its answer can change.
    """
    threshold = goal.tau if isinstance(goal, Threshold) else 0.0
    arms, clients = instance.shape
    blocks, gaps = [], []
    for values, shares in _questions(instance):
        there = np.flatnonzero(~np.isnan(values))
        changes = _changes(values[there], goal)
        arm, client = np.nonzero(shares[there])
        weights = sparse.csr_array(
            (shares[there[arm], client], (arm, there[arm] * clients + client)),
            shape=(len(there), arms * clients),
        )
        moves = sparse.csr_array(changes @ weights)
        moves.sort_indices()
        blocks.append(moves)
        gaps.append(-(changes @ (values[there] - threshold)))
    return HalfSpaces(sparse.vstack(blocks, format="csr"), np.concatenate(gaps))


def _questions(instance: Instance) -> Iterator[tuple[Floats, Floats]]:
    """Yield the values (K,) and the weights (K, M) of each question, clients first."""
    if instance.questions.local:
        for m in range(instance.shape[1]):
            shares = np.zeros(instance.shape)
            shares[:, m] = 1.0
            yield instance.means[:, m], shares
    yield from zip(instance.values, instance.questions.shares, strict=True)


def _changes(values: Floats, goal: Goal) -> sparse.csr_array:
    """Return the ways to make one answer wrong, one in each row of a matrix with K columns.

    An arm whose mean rises has 1, one whose mean falls -1, all others 0.
    """
    chosen = goal.right(values).must
    arms = np.arange(len(values))
    if isinstance(goal, Threshold):
        return sparse.csr_array(
            (np.where(chosen, -1.0, 1.0), (arms, arms)), shape=(len(arms), len(arms))
        )
    falling, rising = (index.ravel() for index in np.meshgrid(arms[chosen], arms[~chosen]))
    count = np.arange(len(rising))
    return sparse.csr_array(
        (
            np.repeat([1.0, -1.0], len(count)),
            (np.tile(count, 2), np.concatenate([rising, falling])),
        ),
        shape=(len(count), len(arms)),
    )
