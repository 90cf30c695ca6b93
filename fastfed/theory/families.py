"""One-parameter exponential families of rewards: divergences between two means.

In an exponential family with variance function V the divergence d(mu, x) between two members has
the derivative (x - mu) / V(x) in x. `cost` is the divergence d(mu, mu + e) of a change e of the
mean. `move` is the change e that minimises d(mu, mu + e) - r e for a price r. Both avoid
cancellation, so small gaps lose no digits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastfed.model.rewards import Bernoulli, Gaussian, Poisson, Rewards

Floats = npt.NDArray[np.float64]

_SERIES = 0.02  # below it, nine terms of t - log(1 + t) are exact to the last digit


class Family(ABC):
    """One-parameter exponential family; arrays have one value for each cell of a row."""

    low: float = -np.inf
    high: float = np.inf
    """Limits of the mean. Alternative instances have means strictly between them."""

    @abstractmethod
    def cost(self, means: Floats, change: Floats) -> Floats:
        """Return d(mu, mu + change)."""

    @abstractmethod
    def move(self, means: Floats, price: Floats) -> Floats:
        """Return the change e that minimises d(mu, mu + e) - price e."""

    @abstractmethod
    def variance(self, values: Floats) -> Floats:
        """Return V at these means."""


@dataclass(frozen=True)
class BernoulliFamily(Family):
    """Rewards 0 and 1: V(x) = x (1 - x)."""

    low = 0.0
    high = 1.0

    def cost(self, means: Floats, change: Floats) -> Floats:
        return _entropy(means, change) + _entropy(1.0 - means, -change)

    def move(self, means: Floats, price: Floats) -> Floats:
        """Solve e = price (mu + e)(1 - mu - e), a quadratic, without cancellation."""
        variance = means * (1.0 - means)
        linear = 1.0 - price * (1.0 - 2.0 * means)
        root = np.sqrt(linear**2 + 4.0 * price**2 * variance)
        with np.errstate(divide="ignore", invalid="ignore"):
            near = 2.0 * price * variance / (linear + root)
            far = (root - linear) / (2.0 * price)
        return np.asarray(np.where(linear > 0.0, near, np.where(root > 0.0, far, 0.0)))

    def variance(self, values: Floats) -> Floats:
        return values * (1.0 - values)


@dataclass(frozen=True)
class PoissonFamily(Family):
    """Counts: V(x) = x."""

    low = 0.0

    def cost(self, means: Floats, change: Floats) -> Floats:
        return _entropy(means, change)

    def move(self, means: Floats, price: Floats) -> Floats:
        """Return mu price / (1 - price), or infinity for prices of 1 or more."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(price < 1.0, means * price / (1.0 - price), np.inf))

    def variance(self, values: Floats) -> Floats:
        return values


def gaussian_variances(rewards: Rewards, shape: tuple[int, int]) -> Floats | None:
    """Return the variance of each cell of Gaussian rewards, or None for other rewards."""
    if not isinstance(rewards, Gaussian):
        return None
    return np.broadcast_to(np.asarray(rewards.sigma, dtype=np.float64) ** 2, shape)


def family_of(rewards: Rewards) -> Family | None:
    """Return the family of Bernoulli or Poisson rewards, or None for other rewards."""
    if isinstance(rewards, Bernoulli):
        return BernoulliFamily()
    return PoissonFamily() if isinstance(rewards, Poisson) else None


def _entropy(mass: Floats, change: Floats) -> Floats:
    """Return mass h(change / mass) with h(t) = t - log(1 + t), and change where mass is 0."""
    held = mass > 0.0
    t = change / np.where(held, mass, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = t - np.log1p(np.maximum(t, -1.0))
    series = np.zeros_like(t)
    for power in range(10, 1, -1):
        series = (1.0 if power % 2 == 0 else -1.0) / power + t * series
    h = np.where(np.abs(t) < _SERIES, t * t * series, plain)
    return np.asarray(np.where(held, mass * h, change))
