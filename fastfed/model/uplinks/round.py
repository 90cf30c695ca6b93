"""Messages of a few bits without dither: `round:C0`, for comparison.

The lattice of a client's mean has the step D(n) = 2 C0 alpha_g(n). What is heard is at most D / 2 =
C0 alpha_g(n) away from the true mean, whatever the rewards are, so the radius (1 + C0) alpha_g(n)
holds wherever alpha_g(n) does: for any radius. The errors of the clients may all have the same
sign, and do not average out: what dither gains. With several questions D follows the smallest of
their radii alpha_g, because all questions share the messages, and every radius becomes (1 + C0)
alpha. In questions with a larger radius that is more than the sure alpha + D / 2: it keeps delta,
and costs pulls. `dither` has no such loss.

Leads are whole numbers of steps, and the threshold is M (1 + C0) / C0 steps, which often is a whole
number as well, as for M = 3 and C0 = 0.1. Rounding errors would then decide. So C0 is taken a hair,
2^-30 of itself, larger than it is written: a lead that equals the threshold reaches it, surely.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fastfed.confidence import Confidence
from fastfed.errors import InputError
from fastfed.model.part_options import option
from fastfed.model.uplinks.lattice import LEAST, MOST, Lattice

if TYPE_CHECKING:
    from fastfed.model.setting import Setting

_HAIR = 1.0 + 2.0**-30


@dataclass(frozen=True, eq=False)
class Round(Lattice):
    """Means rounded to a lattice with the step 2 C0 alpha_g(n), sent as whole numbers.

    Parameters
    ----------
    c0
        The largest error of a message, in units of the server's radius.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Round(0.1))
    'round:0.1'
    """

    c0: float = field(metadata=option("C0", LEAST, MOST))

    family = "round"
    covered = True
    example = "round:1"
    rank = 2
    dithered = False

    def refuse(self, setting: Setting) -> None:
        sizes = setting.instance.questions.candidates.sum(axis=1)
        if sizes.min() != sizes.max():
            raise InputError(
                f"uplink {self}: its step follows one radius, and questions with {sizes.min()} to "
                f"{sizes.max()} arms have several; take dither:1"
            )

    def step(self, n: int, server: Confidence) -> float:
        return 2.0 * self._share * server.alpha(n)

    def widened(self, server: Confidence) -> Confidence:
        return server.scaled(1.0 + self._share)

    def kernel(self, setting: Setting) -> Any:
        from fastfed.kernels.uplinks.lattice import rounded_uplink

        return rounded_uplink(self._share / (1.0 + self._share), setting.radii.message_mass)

    @property
    def _share(self) -> float:
        return _HAIR * self.c0
