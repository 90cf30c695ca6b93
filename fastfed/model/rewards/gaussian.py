"""Normal rewards, with one noise for all or one for each arm and client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.model.arrays import frozen, refuse_cells
from fastfed.model.part import plain
from fastfed.model.rewards.base import Floats, Rewards
from fastfed.model.rewards.rounding import Spent, sum_error
from fastfed.validation import SCALES, number, numbers, refuse_odd_scale, shown

if TYPE_CHECKING:
    from fastfed.model.setting import Setting


class Gaussian(Rewards):
    """Normal rewards around the mean.

    Parameters
    ----------
    sigma
        Their standard deviation: a number for every arm and client, or a K x M array with one
        for each.

    Examples
    --------
    >>> import fastfed as ff
    >>> ff.Instance([[0.9, 0.1], [0.5, 0.6]], ff.Gaussian(2.0))
    <Instance custom: 2 arms x 2 clients, Gaussian(sigma=2.0)>
    """

    family = "gaussian"
    grammar = "gaussian[:SIGMA]"
    rank = 0

    sigma: float | Floats

    def __init__(self, sigma: npt.ArrayLike = 1.0) -> None:
        if isinstance(sigma, list | tuple) or (isinstance(sigma, np.ndarray) and sigma.ndim):
            self.sigma = _checked_array(sigma)
        else:
            scale = number("sigma", sigma)
            refuse_odd_scale(scale, sigma, "the noise must be finite and above 0")
            self.sigma = scale

    def check(self, means: Floats) -> None:
        if isinstance(self.sigma, np.ndarray) and self.sigma.shape != means.shape:
            raise InputError(
                f"sigma: {_shape(self.sigma.shape)} for means that are "
                f"{_shape(means.shape)}; give one for each arm and client"
            )

    def kernel(self, setting: Setting) -> Any:
        from fastfed.kernels.rewards.gaussian import GaussianRewards, centred
        from fastfed.kernels.rewards.gaussian_noises import GaussianCellsRewards

        instance = setting.instance
        means = centred(instance.means)
        if isinstance(self.sigma, float) and instance.questions.full:
            return GaussianRewards(means, self.sigma)
        noise = np.broadcast_to(np.asarray(self.sigma), instance.shape)
        return GaussianCellsRewards(means, frozen(noise.copy()), float(noise.min()))

    def sum_error(self, setting: Setting, steps: Floats, pulls: npt.NDArray[np.int64]) -> Floats:
        from fastfed.kernels.rewards.gaussian import centred

        # what all means share never enters sums, but it is a part of messages on a lattice
        means, exact = setting.instance.means, str(setting.uplink) == "exact"
        summed = centred(means)[:-1] if exact else np.nan_to_num(means)
        return sum_error(summed, np.asarray(self.sigma), Spent.of(setting, steps, pulls))

    def draw(self, means: Floats, rng: np.random.Generator) -> Callable[[int, int], float]:
        noise = np.broadcast_to(self.sigma, means.shape)
        return lambda k, m: float(rng.normal(means[k, m], noise[k, m]))

    @property
    def default_sigma(self) -> float:
        """The noise; of several the largest, with which every radius holds."""
        return float(np.max(self.sigma))

    @property
    def proxy_sigma(self) -> float:
        return self.default_sigma

    @property
    def noise(self) -> float | None:
        return self.sigma if isinstance(self.sigma, float) else None

    def part(self, arms: Sequence[int], clients: Sequence[int]) -> Gaussian:
        if isinstance(self.sigma, float):
            return self
        return Gaussian(self.sigma[np.ix_(arms, clients)])

    def support(self, means: Floats) -> tuple[Floats, Floats]:
        return np.full(means.shape, -np.inf), np.full(means.shape, np.inf)

    def cumulants(self, means: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        rate = np.broadcast_to(np.asarray(self.sigma) ** 2, theta.shape)
        return 0.5 * rate * theta**2, rate * theta, rate

    def tilted(self, means: Floats, theta: Floats) -> tuple[Floats, Gaussian]:
        """Return the tilted rewards: other means, the same noise."""
        return means + np.asarray(self.sigma) ** 2 * theta, self

    @property
    def name(self) -> str:
        if isinstance(self.sigma, float):
            return self.family if self.sigma == 1.0 else f"{self.family}:{plain(self.sigma)}"
        return self.family

    def __repr__(self) -> str:
        if isinstance(self.sigma, float):
            return f"Gaussian(sigma={self.sigma!r})"
        return (
            f"Gaussian(sigma={_shape(self.sigma.shape)}, from {self.sigma.min():g} to "
            f"{self.sigma.max():g})"
        )


def _checked_array(sigma: npt.ArrayLike) -> Floats:
    array = numbers("sigma: must be a number, or K x M numbers, one for each arm and client", sigma)
    if array.ndim != 2 or array.size == 0:
        raise InputError(
            f"sigma = {shown(sigma)}: {array.ndim}-dimensional, must be a number or "
            "K x M numbers, one for each arm and client"
        )
    least, most = SCALES
    rule = f"the noise must be finite and above 0, from {least:g} to {most:g}"
    refuse_cells("sigma", array, ~((array >= least) & (array <= most)), rule)
    return frozen(np.ascontiguousarray(array))


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
