"""The goal of all arms with means above a threshold.

Each arm by itself: it is called above or below TAU, by the sign, as soon as its mean is alpha - E
or more away from TAU.

Why it is right. On the good event (`base`) an arm with mu >= TAU + E has a mean above TAU + E -
alpha at every step, so it is never called below; in the same way for mu <= TAU - E. An arm in
between may be called either way. Every arm is judged alone, so there are no pairs, and radii per
pair do not apply.

When an arm is settled. |mean - TAU| > |mu - TAU| - alpha, which is alpha - E or more once 2 alpha
<= |mu - TAU| + E: the gap is 2 (|mu - TAU| + E). With E = 0 and mu = TAU it is 0, and such an
arm would never be settled.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fastfed.errors import InputError
from fastfed.model.goals.base import (
    MOST,
    Decision,
    Flags,
    Floats,
    Goal,
    Means,
    Numbers,
    Right,
    tolerance,
)
from fastfed.model.part_options import option
from fastfed.model.weights import ALIKE, ArmScales

if TYPE_CHECKING:
    from fastfed.model.setting import Setting


@dataclass(frozen=True, eq=False)
class Threshold(Goal):
    """The set of arms with means above ``tau``.

    An arm whose mean is within ``slack`` of ``tau`` may be accepted or rejected.

    Parameters
    ----------
    tau
        TAU.
    slack
        E, at least 0. With 0 no mean may be equal to TAU.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Threshold(0.5, 0.05))
    'threshold:0.5,0.05'
    >>> done = ff.simulate([[0.9], [0.8], [0.1]], delta=0.1, trials=5, goal="threshold:0.5")
    >>> done.frame["global_answer"].to_list()[0]
    [0, 1]
    """

    tau: float = field(metadata=option("TAU", -MOST, MOST))
    slack: float = field(default=0.0, metadata=option("E", 0.0, MOST))

    family = "threshold"
    covered = True
    example = "threshold:0.5,0.05"
    rank = 3
    gap_text = "(twice the smallest distance from the threshold, E included)"
    one_arm = False
    compares = False

    @property
    def numbers(self) -> Numbers:
        """The goal's own numbers; even a lone arm is compared with TAU."""
        return Numbers("threshold", 0, self.tau, self.slack)

    def refuse(self, setting: Setting) -> None:
        if setting.radius.pairs:
            raise InputError(
                f"goal {self} with radius {setting.radius}: thresholds have no pairs of arms; "
                "take a radius per arm, as in paper, stitched or mixture"
            )
        super().refuse(setting)

    def tied(self, values: Floats) -> Flags:
        near = np.abs(values - self.tau) <= self._rounding(values)
        return np.asarray(near & (self.slack == 0.0))

    def tie_text(self, values: Floats, arms: str, where: str) -> str:
        away = float(np.nanmax(np.abs(values - self.tau)))
        slack = away / 10 if away > self._rounding(values) else 0.01
        return (
            f"goal {self}: exactly {self.tau:.12g} is paid by {arms} at {where}, and no trial "
            f"would ever end; with {self},E, as in {self},{slack:.3g}, such an arm may be called "
            "either way"
        )

    def _rounding(self, values: Floats) -> Any:
        """Return the largest distance from the threshold that is none."""
        return tolerance(np.concatenate([values, np.full_like(values[:1], self.tau)]))

    def gaps(self, values: Floats) -> Floats:
        return np.asarray(
            np.where(np.isnan(values), np.inf, 2.0 * (np.abs(values - self.tau) + self.slack))
        )

    def bound_scales(self, values: Floats, scales: ArmScales) -> Floats:
        """Return the scale of each arm: arms are judged alone."""
        return np.array([scales.arm(k) for k in range(len(values))])

    def right(self, values: Floats) -> Right:
        # decimal means that are just E away may be off by a rounding error
        edge = np.maximum(self.slack - self._rounding(values), 0.5 * self.slack)
        return Right(values - self.tau >= edge, ~(self.tau - values < edge))

    def decide(
        self, means: Means, alpha: float, accepted: Set[int], scales: ArmScales = ALIKE
    ) -> Decision:
        called = {
            k
            for k, mean in means.items()
            if abs(mean - self.tau) >= alpha * scales.arm(k) - self.slack
        }
        above = {k for k in called if means[k] >= self.tau}
        return Decision(above, called - above)
