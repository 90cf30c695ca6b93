"""What a pull pays: the law of one reward at each arm and client."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.validation import number, refuse_odd_scale


@dataclass(frozen=True)
class Gaussian:
    """Normal rewards around the mean, standard deviation ``sigma`` for every arm and client."""

    sigma: float = 1.0

    def __post_init__(self) -> None:
        sigma = number("sigma", self.sigma)
        refuse_odd_scale(sigma, self.sigma, "the noise must be finite and above 0")
        object.__setattr__(self, "sigma", sigma)


@dataclass(frozen=True)
class Bernoulli:
    """Rewards 1 and 0, 1 with the mean's probability."""

    def law(self, means: npt.NDArray[np.float64]) -> Finite:
        outside = np.argwhere((means < 0) | (means > 1))
        if len(outside):
            k, m = outside[0]
            raise InputError(f"means[{k}, {m}] = {means[k, m]:g}: a Bernoulli mean is a "
                             "probability, from 0 to 1")
        return Finite([0.0, 1.0], np.stack([1.0 - means, means], axis=-1))


class Finite:
    """Rewards from a finite set of ``values``; ``weights[k, m, v]`` says how often arm k pays
    ``values[v]`` at client m (counts or probabilities, in any unit).

    A cell without any weight is an error unless ``empty`` says what it always pays.
    """

    values: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]

    def __init__(self, values: npt.ArrayLike, weights: npt.ArrayLike,
                 empty: float | None = None) -> None:
        try:
            value = np.array(values, dtype=np.float64)
            weight = np.array(weights, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InputError("values and weights must be numbers, weights all equally long"
                             ) from None
        if value.ndim != 1 or len(value) == 0 or not np.isfinite(value).all():
            raise InputError("values: must be a list of finite numbers, at least one")
        if len(np.unique(value)) != len(value):
            raise InputError("values: a value is given twice; add up its weights")
        if weight.ndim != 3 or weight.shape[2] != len(value) or weight.size == 0:
            raise InputError(f"weights: shape {weight.shape}, must be K x M x {len(value)}, a "
                             "histogram over the values for each arm and client")
        if not np.isfinite(weight).all() or (weight < 0).any():
            raise InputError("weights: must be finite and not negative")
        bare = np.argwhere(weight.sum(axis=2) == 0)
        if len(bare):
            if empty is None:
                k, m = bare[0]
                raise InputError(f"weights[{k}, {m}]: no reward was ever seen there "
                                 f"({len(bare)} such cells); say what an empty cell pays, as in "
                                 "empty=0")
            pays = number("empty", empty)
            if pays not in value:
                value = np.append(value, pays)
                weight = np.concatenate([weight, np.zeros((*weight.shape[:2], 1))], axis=2)
            weight[bare[:, 0], bare[:, 1], int(np.flatnonzero(value == pays)[0])] = 1.0
        order = np.argsort(value)
        self.values, self.weights = value[order], np.ascontiguousarray(weight[:, :, order])
        self.values.setflags(write=False)
        self.weights.setflags(write=False)

    @property
    def means(self) -> npt.NDArray[np.float64]:
        """(K, M)."""
        return np.asarray(self.weights @ self.values / self.weights.sum(axis=2))

    @property
    def range(self) -> float:
        """Largest less smallest value."""
        return float(self.values[-1] - self.values[0])

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Finite) and np.array_equal(self.values, other.values)
                and np.array_equal(self.weights, other.weights))

    def __hash__(self) -> int:
        return hash((self.values.tobytes(), self.weights.tobytes()))

    def __repr__(self) -> str:
        return f"Finite({len(self.values)} values from {self.values[0]:g} to {self.values[-1]:g})"


Rewards = Gaussian | Bernoulli | Finite
