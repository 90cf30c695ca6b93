"""Reward distributions, one file each.

`base.Rewards` says what a law has to answer for itself; everything else asks, and knows no law by
name. A new law is a class here and its kernel in `fastfed.kernels.rewards`.
"""

from __future__ import annotations

from fastfed.model.rewards.base import Rewards
from fastfed.model.rewards.finite import Bernoulli, Finite
from fastfed.model.rewards.gaussian import Gaussian
from fastfed.model.rewards.poisson import Poisson

__all__ = ["Bernoulli", "Finite", "Gaussian", "Poisson", "Rewards"]
