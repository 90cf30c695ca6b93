"""Reward distributions, one file each.

`base.Rewards` is the interface that a reward distribution implements. No other code depends on a
particular distribution. A new one is a class here and its kernel in `fastfed.kernels.rewards`.
"""

from __future__ import annotations

from fastfed.model.rewards.base import Rewards
from fastfed.model.rewards.finite import Bernoulli, Finite
from fastfed.model.rewards.gaussian import Gaussian
from fastfed.model.rewards.poisson import Poisson

__all__ = ["Bernoulli", "Finite", "Gaussian", "Poisson", "Rewards"]
