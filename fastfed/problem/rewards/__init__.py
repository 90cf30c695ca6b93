"""What a pull pays: the law of one reward at each arm and client, a file each.

`base.Rewards` says what a law has to answer for itself; everything else asks, and knows no law by
name. A new law is a class here, its kernel in `fastfed.kernels.laws`, and a line in `KINDS`.
"""

from __future__ import annotations

from fastfed.problem.rewards.base import Rewards
from fastfed.problem.rewards.finite import Bernoulli, Finite
from fastfed.problem.rewards.gaussian import Gaussian
from fastfed.problem.rewards.poisson import Poisson

KINDS: dict[str, type[Rewards]] = {cls.kind: cls for cls in (Gaussian, Bernoulli, Finite, Poisson)}
"""By the name that files call them."""

__all__ = ["KINDS", "Bernoulli", "Finite", "Gaussian", "Poisson", "Rewards"]
