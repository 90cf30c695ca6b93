"""What the law of the rewards has to answer for itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.problem.rewards.rounding import Spent
from fastfed.radius import MAX_STEPS

Floats = npt.NDArray[np.float64]


class Rewards(ABC):
    """The law of one reward at each arm and client. ``means`` is always the instance's K x M."""

    kind: ClassVar[str]
    """What files call it."""
    options: ClassVar[frozenset[str]] = frozenset()
    """What else a file's table of rewards may say."""

    @property
    def own_means(self) -> Floats | None:
        """The means, if they follow from the law itself; None if they must be given."""
        return None

    @abstractmethod
    def check(self, means: Floats) -> None:
        """Raise an InputError if these means cannot be those of such rewards."""

    @abstractmethod
    def kernel_law(self, means: Floats) -> Any:
        """The law as the kernels know it, from a file of `fastfed.kernels.laws`."""

    def sum_error(self, means: Floats, spent: Spent, centred: bool) -> Floats:
        """A bound on the probability that the rounding of sums changes a decision of a trial;
        ``centred``: what all means share never enters the sums, not even in messages. 0 where sums
        are exact, as those of whole numbers are, and where no bound is known."""
        return np.zeros_like(spent.steps)

    @abstractmethod
    def draw(self, means: Floats, rng: np.random.Generator) -> Callable[[int, int], float]:
        """(arm, client) -> one reward from a NumPy generator: for the reference."""

    @property
    @abstractmethod
    def default_sigma(self) -> float:
        """The confidence scale that a run takes if it is not told otherwise."""

    @property
    @abstractmethod
    def proxy_sigma(self) -> float:
        """The scale for which the guarantee is sure, or a refusal where there is none."""

    @property
    def noise(self) -> float | None:
        """The standard deviation, if it is the same everywhere and the rewards are Gaussian:
        what the paper's lower bound is about."""
        return None

    @property
    def most_steps(self) -> int:
        """The last step up to which the walks can be followed exactly."""
        return MAX_STEPS

    @abstractmethod
    def fingerprint(self, means: Floats) -> bytes:
        """All that the walks depend on, as the user gave it: the same on every machine."""

    @abstractmethod
    def scaled(self, factor: float) -> Rewards:
        """The law that goes with means multiplied by ``factor``."""

    @abstractmethod
    def toml(self) -> str:
        """The lines of a file's table of rewards, less its kind."""

    # What follows is for rare events (`fastfed.theory.tilts`). A law without it runs all the same,
    # and is refused by `error_probability`.

    def part(self, arms: Sequence[int], clients: Sequence[int]) -> Rewards:
        """The law of these arms at these clients alone."""
        raise self._cannot_be_tilted()

    def support(self, means: Floats) -> tuple[Floats, Floats]:
        """The smallest and the largest reward, (K, M) each; infinite where there is none."""
        raise self._cannot_be_tilted()

    def cumulants(self, means: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """psi(theta) = ln E exp(theta (reward - mean)) and its first two derivatives, for thetas
        of shape (..., K, M)."""
        raise self._cannot_be_tilted()

    def tilted(self, means: Floats, theta: Floats) -> tuple[Floats | None, Rewards]:
        """Means and law of the rewards reweighted by exp(theta x), theta (K, M); the means are
        None where they follow from the law."""
        raise self._cannot_be_tilted()

    def _cannot_be_tilted(self) -> InputError:
        return InputError(
            f"{self.kind} rewards: error_probability cannot tilt them; their class "
            "would have to say part, support, cumulants and tilted"
        )
