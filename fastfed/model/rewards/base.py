"""The interface of a reward distribution."""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastfed.confidence import MAX_STEPS
from fastfed.errors import InputError
from fastfed.model.part import Part

if TYPE_CHECKING:
    from fastfed.model.setting import Setting

Floats = npt.NDArray[np.float64]


class Rewards(Part):
    """The law of one reward at each arm and client. ``means`` is always the instance's K x M."""

    kind = "rewards"

    @classmethod
    def table_keys(cls) -> list[str]:
        """List the parameters of the class: attributes that a file's table of rewards has, too."""
        return list(inspect.signature(cls).parameters)

    @property
    def table(self) -> dict[str, Any]:
        """The values of the parameters, without those that are None."""
        values = {name: getattr(self, name) for name in self.table_keys()}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def key(self) -> object:
        values = [(name, np.asarray(value)) for name, value in self.table.items()]
        return self.family, *((name, one.shape, one.tobytes()) for name, one in values)

    @property
    def own_means(self) -> Floats | None:
        """The means, if they follow from the law itself; None if they must be given."""
        return None

    def check(self, means: Floats) -> None:
        """Raise an InputError if these means cannot be those of such rewards."""

    def sum_error(self, setting: Setting, steps: Floats, pulls: npt.NDArray[np.int64]) -> Floats:
        """Bound the probability that the rounding of sums changes a decision of each trial.

        The bound is 0 where sums are exact, as those of whole numbers are, and where none is known.
        """
        return np.zeros_like(steps)

    @property
    def spine_is_dear(self) -> bool:
        """Tell whether jobs that differ in delta alone should draw walks at powers of two once."""
        return False

    @abstractmethod
    def draw(self, means: Floats, rng: np.random.Generator) -> Callable[[int, int], float]:
        """Return a function of (arm, client) that draws one reward, for the reference."""

    @property
    def default_sigma(self) -> float:
        """The confidence scale that a run takes by default: 1 for bounded rewards, as in the paper.

        The paper uses its radii unchanged.
        """
        return 1.0

    @property
    def proxy_sigma(self) -> float:
        """The scale for which the guarantee is sure: half the range, by Hoeffding's lemma."""
        if math.isinf(self.range):
            raise InputError(
                f"sigma = 'proxy': {self.family} rewards are not sub-Gaussian, so no scale makes "
                "the guarantee sure; give a number"
            )
        return self.range / 2

    @property
    def range(self) -> float:
        """The largest reward less the smallest, known without a look at rewards; or infinite."""
        return math.inf

    @property
    def noise(self) -> float | None:
        """The standard deviation of Gaussian rewards, if it is the same everywhere; otherwise None.

        The paper's lower bound is for such rewards.
        """
        return None

    @property
    def most_steps(self) -> int:
        """The last step up to which the walks can be followed exactly."""
        return MAX_STEPS

    def fingerprint(self, means: Floats) -> bytes:
        """Return the parameters of the walks, in a form that is equal on all machines."""
        values = (np.asarray(value, np.float64) for value in self.table.values())
        return b"".join([means.tobytes(), *(one.tobytes() for one in values)])

    def scaled(self, factor: float) -> Rewards:
        """Return the distribution for means multiplied by ``factor``."""
        return self

    # What follows is for rare events (`fastfed.theory.tilts`). A law without it runs all the same,
    # and is refused by `error_probability`.

    def part(self, arms: Sequence[int], clients: Sequence[int]) -> Rewards:
        """Return the distribution of these arms at these clients alone."""
        return self

    def support(self, means: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and the largest reward, (K, M) each; infinite where there is none."""
        raise self._cannot_be_tilted()

    def cumulants(self, means: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return psi(theta) = ln E exp(theta (reward - mean)) and its first two derivatives.

        Thetas have the shape (..., K, M).
        """
        raise self._cannot_be_tilted()

    def tilted(self, means: Floats, theta: Floats) -> tuple[Floats | None, Rewards]:
        """Return the means and the distribution of rewards reweighted by exp(theta x).

        theta has the shape (K, M). The means are None where they follow from the distribution.
        """
        raise self._cannot_be_tilted()

    def _cannot_be_tilted(self) -> InputError:
        return InputError(
            f"{self.family} rewards: error_probability cannot tilt them; their class "
            "would have to say support, cumulants and tilted"
        )
