"""Poisson rewards: how many events a pull sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fastfed.errors import InputError
from fastfed.model.arrays import frozen, refuse_cells
from fastfed.model.part import plain
from fastfed.model.rewards.base import Floats, Rewards
from fastfed.validation import number, refuse_odd_scale

if TYPE_CHECKING:
    from fastfed.model.setting import Setting

MOST = 1024.0
"""No mean is larger: the events of 2^41 steps can then still be counted one by one."""


class Poisson(Rewards):
    """Counts with the mean's intensity: 0, 1, 2, ...

    Poisson rewards are not sub-Gaussian, so no scale of the confidence radii makes the paper's
    guarantee sure. ``sigma``, the scale to be used all the same, must therefore be stated.

    Parameters
    ----------
    sigma
        The scale of the confidence radii.

    Examples
    --------
    >>> import fastfed as ff
    >>> ff.Instance([[3.0], [1.0]], ff.Poisson(sigma=2.0)).default_sigma
    2.0
    """

    family = "poisson"
    grammar = "poisson[:SIGMA]"
    rank = 3

    sigma: float

    def __init__(self, sigma: float | None = None) -> None:
        if sigma is None:
            raise InputError(
                "sigma: missing; Poisson rewards are not sub-Gaussian, so state the "
                "scale of the confidence radii, as in Poisson(sigma=2)"
            )
        self.sigma = number("sigma", sigma)
        refuse_odd_scale(self.sigma, sigma, "the confidence scale must be finite and above 0")

    def check(self, means: Floats) -> None:
        rule = f"a Poisson mean lies from 0 to {MOST:g}"
        refuse_cells("means", means, (means < 0) | (means > MOST), rule)

    def kernel(self, setting: Setting) -> Any:
        from fastfed.kernels.rewards.poisson import PoissonRewards

        return PoissonRewards(frozen(np.nan_to_num(setting.instance.means)))

    def draw(self, means: Floats, rng: np.random.Generator) -> Callable[[int, int], float]:
        return lambda k, m: float(rng.poisson(means[k, m]))

    @property
    def default_sigma(self) -> float:
        return self.sigma

    @property
    def most_steps(self) -> int:
        return 2**41

    def support(self, means: Floats) -> tuple[Floats, Floats]:
        return np.zeros(means.shape), np.where(means > 0, np.inf, 0.0)

    def cumulants(self, means: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        rise = means * np.expm1(theta)
        return rise - means * theta, rise, rise + means

    def tilted(self, means: Floats, theta: Floats) -> tuple[Floats, Poisson]:
        """Return the tilted rewards: Poisson with other means."""
        return means * np.exp(theta), self

    @property
    def name(self) -> str:
        return f"{self.family}:{plain(self.sigma)}"

    def __repr__(self) -> str:
        return f"Poisson(sigma={self.sigma!r})"
