"""What a pull pays: the law of one reward, given the arm's mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fastfed.errors import InputError


@dataclass(frozen=True)
class Gaussian:
    """Normal rewards around the mean, standard deviation ``sigma`` for every arm and client."""

    sigma: float = 1.0

    def __post_init__(self) -> None:
        sigma = _number("sigma", self.sigma)
        if not (sigma > 0 and math.isfinite(sigma)):
            raise InputError(f"sigma = {self.sigma!r}: the noise must be finite and above 0")
        object.__setattr__(self, "sigma", sigma)


def _number(name: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{name} = {value!r}: must be a number") from None
