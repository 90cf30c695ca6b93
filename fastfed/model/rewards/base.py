"""The interface of a reward distribution."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

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
    table_keys: ClassVar[frozenset[str]] = frozenset()
    """What else a file's table of rewards may say."""

    unknown_text = (
        "{kind} {given}{nearest}: must be one of {known}; gaussian:0.5 has the standard deviation "
        "0.5"
    )
    no_option_text = "{family} takes no value"

    @property
    def own_means(self) -> Floats | None:
        """The means, if they follow from the law itself; None if they must be given."""
        return None

    @classmethod
    def known(cls) -> str:
        """List the names, for messages."""
        return ", ".join(one.family for one in cls.families.values() if one.grammar)

    @abstractmethod
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
    @abstractmethod
    def default_sigma(self) -> float:
        """The confidence scale that a run takes if it is not told otherwise."""

    @property
    @abstractmethod
    def proxy_sigma(self) -> float:
        """The scale for which the guarantee is sure, or a refusal where there is none."""

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

    @abstractmethod
    def fingerprint(self, means: Floats) -> bytes:
        """Return the parameters of the walks, in a form that is equal on all machines."""

    @abstractmethod
    def scaled(self, factor: float) -> Rewards:
        """Return the distribution for means multiplied by ``factor``."""

    @abstractmethod
    def toml(self) -> str:
        """Write the lines of a TOML table of rewards, without its kind."""

    # What follows is for rare events (`fastfed.theory.tilts`). A law without it runs all the same,
    # and is refused by `error_probability`.

    def part(self, arms: Sequence[int], clients: Sequence[int]) -> Rewards:
        """Return the distribution of these arms at these clients alone."""
        raise self._cannot_be_tilted()

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
            "would have to say part, support, cumulants and tilted"
        )
