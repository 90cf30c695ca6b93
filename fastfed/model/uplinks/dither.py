"""Messages of a few bits with subtractive dither: `dither:KAPPA`.

The lattice of a client's mean has the step D(n) = KAPPA sigma / sqrt(n), which shrinks with the
noise of the mean, so a message is a few bits however large n is. The dither U is uniform on
[-1/2, 1/2), drawn afresh for every arm, client and n, and known to both ends.

**Why it keeps delta.** Whatever the mean is, mean / D + U is uniform modulo 1 given all rewards and
all other dithers. So the error m - mean is uniform on +-D / 2, independent of the rewards and of
the errors of other messages (Schuchman, "Dither signals and their effect on quantization noise",
IEEE Transactions on Communication Technology 12, 1964). A uniform is sub-Gaussian with its own
variance, D^2 / 12. The mean over M clients of what is heard is then sub-Gaussian about the true
mean with

    sigma^2 / (M n) + D^2 / (12 M) = (sigma^2 / (M n)) (1 + KAPPA^2 / 12).

If clients have weights p, both terms have the sum of p^2 in place of 1 / M, and the factor is the
same.

The paper's radius rests on that bound at each n by itself, and on a union over n. So it holds for
what is heard if it is wider by sqrt(1 + KAPPA^2 / 12); for pairs of arms as for arms.

The other radii bound a whole walk at once, and what is heard is no walk: its errors begin anew at
every n, so that the largest of very many of them counts, and a factor is not enough. (Errors at N
times reach sqrt(2 ln N) of their deviations; a law of the iterated logarithm allows sqrt(2 ln ln
N).) There the sure bound is used, that m is nowhere farther than D / 2 from the mean: the radius
becomes alpha + D / 2, whatever the weights of clients, in each of several questions.

**Why the lattice does not follow the messages.** One could also quantise the difference from what
was heard last, q = round((mean - m') / D + U) and m = m' + D (q - U). In law that is the same: for
either scheme the error e of m is uniform, independent of all before, and q is then the whole number
next to (mean - m' + e) / D. But here m follows from mean, n and U alone. No message depends on an
earlier one, and a simulation can jump from one communication to any later one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fastfed.confidence import PAPER, Confidence
from fastfed.model.part_options import option
from fastfed.model.uplinks.lattice import LEAST, MOST, Lattice

if TYPE_CHECKING:
    from fastfed.model.setting import Setting


@dataclass(frozen=True, eq=False)
class Dither(Lattice):
    """Means on a dithered lattice with the step KAPPA sigma / sqrt(n), sent as whole numbers.

    Parameters
    ----------
    kappa
        The step, in units of the standard deviation of a client's mean. Larger steps take fewer
        bits and a wider radius.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Dither(0.5))
    'dither:0.5'
    """

    kappa: float = field(metadata=option("KAPPA", LEAST, MOST))

    family = "dither"
    covered = True
    example = "dither:1"
    rank = 1
    dithered = True

    def step(self, n: int, server: Confidence) -> float:
        return self.kappa * server.sigma / math.sqrt(n)

    def widened(self, server: Confidence) -> Confidence:
        if server.kind == PAPER:
            return server.scaled(math.sqrt(1.0 + self.kappa**2 / 12.0))
        return server.raised(0.5 * self.kappa * server.sigma)

    def kernel(self, setting: Setting) -> Any:
        from fastfed.kernels.uplinks.lattice import dithered_uplink

        radii, widest = setting.radii, float(setting.instance.questions.arm_scales.max())
        # squares of the weights of an arm add up to M s_k^2: see `model.weights`
        clients = radii.clients * widest**2
        return dithered_uplink(self.kappa * setting.sigma, clients, radii.message_mass)
