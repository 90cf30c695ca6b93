"""Rewards with finite support: a histogram for each arm and client; Bernoulli rewards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.model.arrays import frozen, refuse_cells
from fastfed.model.rewards.base import Floats, Rewards
from fastfed.validation import SCALES, number, numbers, refuse_many_weights, shown

if TYPE_CHECKING:
    from fastfed.model.setting import Setting

# variates of all cells at one power of two, from which on jobs share them. To run each trial by
# itself takes a call from Python, 60 us: as long as some 120 variates at each of 14 powers.
# `movielens` has 1,707; `bernoulli` would have 6, and its trials take 31 us
_DEAR = 500
ABSENT = "absent"
"""In place of the reward of cells without observations: the client does not have the arm."""


class Bernoulli(Rewards):
    """Rewards 1 and 0, 1 with the mean's probability.

    Examples
    --------
    >>> import fastfed as ff
    >>> ff.Instance([[0.9, 0.1], [0.5, 0.6]], ff.Bernoulli()).proxy_sigma
    0.5
    """

    family = "bernoulli"
    rank = 1

    def check(self, means: Floats) -> None:
        rule = "a Bernoulli mean is a probability, from 0 to 1"
        refuse_cells("means", means, (means < 0) | (means > 1), rule)

    def as_finite(self, means: Floats) -> Finite:
        """Return the same distribution as a histogram."""
        return Finite([0.0, 1.0], np.nan_to_num(np.stack([1.0 - means, means], axis=-1)), ABSENT)

    def kernel(self, setting: Setting) -> Any:
        return self.as_finite(setting.instance.means).kernel(setting)

    def draw(self, means: Floats, rng: np.random.Generator) -> Callable[[int, int], float]:
        return self.as_finite(means).draw(means, rng)

    @property
    def range(self) -> float:
        return 1.0

    def support(self, means: Floats) -> tuple[Floats, Floats]:
        return self.as_finite(means).support(means)

    def cumulants(self, means: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        return self.as_finite(means).cumulants(means, theta)

    def tilted(self, means: Floats, theta: Floats) -> tuple[None, Finite]:
        return self.as_finite(means).tilted(means, theta)

    def __repr__(self) -> str:
        return "Bernoulli()"


class Finite(Rewards):
    """Rewards from a finite set of ``values``.

    ``weights[k, m, v]`` says how often arm k pays ``values[v]`` at client m (counts or
    probabilities, in any unit).

    A cell without any weight is an error unless ``empty`` says what it always pays, or that the
    client does not have the arm.

    Parameters
    ----------
    values
        The rewards that there are.
    weights
        K x M x V: arm, client, value.
    empty
        What a cell without any weight pays; "absent": the client does not have the arm.

    Examples
    --------
    >>> import fastfed as ff
    >>> law = ff.Finite([0.0, 1.0, 5.0], [[[1, 2, 1]], [[2, 1, 1]]])
    >>> ff.Instance(rewards=law).means.tolist()
    [[1.75], [1.5]]
    """

    family = "finite"
    grammar = ""
    rank = 2

    values: Floats
    weights: Floats

    def __init__(
        self, values: npt.ArrayLike, weights: npt.ArrayLike, empty: float | str | None = None
    ) -> None:
        rule = "values and weights must be numbers, weights all equally long"
        value, weight = numbers(rule, values), numbers(rule, weights)
        _refuse_odd_values(value)
        _refuse_odd_weights(weight, len(value))
        value, weight = _filled(value, weight, empty)
        order = np.argsort(value)
        self.values = frozen(value[order])
        self.weights = frozen(np.ascontiguousarray(weight[:, :, order]))

    @property
    def own_means(self) -> Floats:
        """The means, (K, M); NaN where the client does not have the arm.

        They are summed value by value, in order: a matrix product would not give the same bits on
        every machine.
        """
        total, weight = np.zeros(self.weights.shape[:2]), np.zeros(self.weights.shape[:2])
        for v, value in enumerate(self.values):
            total += self.weights[:, :, v] * value
            weight += self.weights[:, :, v]
        with np.errstate(invalid="ignore"):
            return total / weight

    @property
    def empty(self) -> str | None:
        """The word of files for arms that some client lacks; None if there are none."""
        return None if self.weights.any(axis=2).all() else ABSENT

    def kernel(self, setting: Setting) -> Any:
        from fastfed.kernels.rewards.finite import finite_rewards

        weights = self.weights.copy()
        weights[~weights.any(axis=2), 0] = 1.0  # tables of cells that are never drawn
        return finite_rewards(self.values, weights, one_origin=self.empty == ABSENT)

    @property
    def spine_is_dear(self) -> bool:
        cells = np.count_nonzero(self.weights.any(axis=2))
        return bool(np.count_nonzero(self.weights) - cells >= _DEAR)

    def draw(self, means: Floats, rng: np.random.Generator) -> Callable[[int, int], float]:
        with np.errstate(invalid="ignore"):  # of cells that are never drawn
            upto = self.weights.cumsum(axis=2) / self.weights.sum(axis=2, keepdims=True)
        return lambda k, m: float(self.values[np.searchsorted(upto[k, m], rng.random(), "right")])

    def fingerprint(self, means: Floats) -> bytes:
        return self.values.tobytes() + self.weights.tobytes()

    def scaled(self, factor: float) -> Finite:
        return Finite(self.values * factor, self.weights, ABSENT)

    def part(self, arms: Sequence[int], clients: Sequence[int]) -> Finite:
        return Finite(self.values, self.weights[np.ix_(arms, clients)], ABSENT)

    def support(self, means: Floats) -> tuple[Floats, Floats]:
        held = self.weights > 0
        return (
            np.where(held, self.values, np.inf).min(axis=2),
            np.where(held, self.values, -np.inf).max(axis=2),
        )

    def cumulants(self, means: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        centred = self.values - means[:, :, None]
        logs = self._reweighted(means, theta)
        top = logs.max(axis=-1, keepdims=True)
        shares = np.exp(logs - top)
        total = shares.sum(axis=-1, keepdims=True)
        shares /= total
        slope = (shares * centred).sum(axis=-1)
        spread = (shares * (centred - slope[..., None]) ** 2).sum(axis=-1)
        return (np.log(total) + top)[..., 0], slope, spread

    def tilted(self, means: Floats, theta: Floats) -> tuple[None, Finite]:
        """Return the same values with other weights."""
        logs = self._reweighted(means, theta)
        return None, Finite(self.values, np.exp(logs - logs.max(axis=2, keepdims=True)))

    def _reweighted(self, means: Floats, theta: Floats) -> Floats:
        """Return ln(weight exp(theta (value - mean))), weights summing to 1, (..., K, M, V)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights / self.weights.sum(axis=2, keepdims=True))
        return np.asarray(logs + theta[..., None] * (self.values - means[:, :, None]))

    @property
    def range(self) -> float:
        """Largest less smallest value."""
        return float(self.values[-1] - self.values[0])

    def __repr__(self) -> str:
        return f"Finite({len(self.values)} values from {self.values[0]:g} to {self.values[-1]:g})"


def _refuse_odd_values(values: Floats) -> None:
    most = SCALES[1]
    if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
        raise InputError("values: must be a list of finite numbers, at least one")
    if np.abs(values).max() > most:
        raise InputError(
            f"values: {values[np.abs(values).argmax()]:g} is too large, at most "
            f"{most:g}; change the unit of the rewards"
        )
    if len(np.unique(values)) != len(values):
        raise InputError("values: a value is given twice; add up its weights")


def _refuse_odd_weights(weights: Floats, count: int) -> None:
    """Refuse weights that are not a histogram over the values for each arm and client."""
    least, most = SCALES
    if weights.ndim != 3 or weights.shape[2] != count or weights.size == 0:
        raise InputError(
            f"weights: shape {weights.shape}, must be K x M x {count}, a histogram "
            "over the values for each arm and client"
        )
    refuse_many_weights(*weights.shape)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError("weights: must be finite and not negative")
    odd = weights[(weights > 0) & ((weights < least) | (weights > most))]
    if len(odd):
        raise InputError(f"weights: {odd[0]:g} must be 0 or lie from {least:g} to {most:g}")


def _filled(values: Floats, weights: Floats, empty: float | str | None) -> tuple[Floats, Floats]:
    """Return values and weights in which a cell without weights always pays ``empty``."""
    bare = np.argwhere(weights.sum(axis=2) == 0)
    if not len(bare) or empty == ABSENT:
        return values, weights
    if empty is None:
        k, m = bare[0]
        raise InputError(
            f"weights[{k}, {m}]: no reward was ever seen there ({len(bare)} such "
            "cells); say what an empty cell pays, as in empty=0, or empty='absent'"
        )
    pays = number("empty", empty, "must be a number, or 'absent' for arms that a client lacks")
    if not abs(pays) <= SCALES[1]:
        raise InputError(
            f"empty = {shown(empty)}: what an empty cell pays must be finite, at most {SCALES[1]:g}"
        )
    if pays not in values:
        values = np.append(values, pays)
        weights = np.concatenate([weights, np.zeros((*weights.shape[:2], 1))], axis=2)
    weights[bare[:, 0], bare[:, 1], int(np.flatnonzero(values == pays)[0])] = 1.0
    return values, weights
