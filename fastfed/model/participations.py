"""Participation: which clients report at a communication round, and what the server makes of it.

In the paper every client reports at every round. Here each client takes part in each round with
probability P, independently of all rewards and of other clients and rounds. A client that is absent
sends nothing. It goes on pulling, and its own answer is not concerned.

**`wait:P`.** The server decides as in the paper, but only at rounds at which all clients (with a
weight in its question) take part. These rounds are chosen independently of the rewards, and every
radius holds at all steps together. So delta holds as it does for any list of rounds.

**`random:P`.** The server keeps the last report of every client, heard at the step n_m, and decides
at every round once it has one of each. The value of arm i is sum_m p_m mean_im(n_m), and its radius
is alpha(N), where N is sum p^2 / sum (p_m^2 / n_m), rounded down: the weighted harmonic mean of
the n_m. Where all clients report, N is n, and the rule is the paper's.

*Why delta holds, for Gaussian rewards.* Let D be the centred difference of the values of two arms,
and let the standard deviations of their rewards be sigma. Given who takes part, D at the rounds is
a Gaussian process, with Var D = 1 / I, I = 1 / (2 sigma^2 sum p_m^2 / n_m). Let r < s be rounds. A
client's centred mean has Cov(mean(n), mean(n')) = Var mean(n') for n <= n', and n_m never falls.
Clients are independent, so Cov(D_r, D_s) = Var D_s = 1 / I_s, and

    Cov(I_r D_r, I_s D_s) = I_r I_s / I_s = I_r.

So I D is a Brownian motion, seen at the times I, which never fall. The mixture and the stitched
boundary hold for a Brownian motion at all times t >= 1 together, in the unit of time in which a
common n is t = n; and the harmonic mean of the n_m is at least 1. Rounding N down makes the radius
of the mean wider, because g(t) / t falls: for mixtures since g is concave and g(0) > 0, for the
stitched boundary if it falls at t = 1, as it does up to a budget of 0.42. For a radius per arm the
same is true of one arm, with half of the variance.

Smaller standard deviations s_im of single arms and clients do no harm. D is then B(t) / t with a
Brownian motion B and t >= I. It is compared with g(I) / I, which is no less than g(t) / t: where D
is beyond the boundary, B(t) >= g(t).

*Where it does not hold.* The paper's radius is a union bound over steps, and many rounds may have
one N; a radius of a user's own promises nothing between whole steps. Other rewards are no Gaussian
process: from round to round the weight of past rewards changes, as n_m is divided by anew, so that
I D is no martingale. And a schedule that chooses its rounds by the data makes the n_m depend on the
rewards. All of these are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from fastfed.confidence import MIXTURE, MIXTURE_ONE_SIDED, STITCHED
from fastfed.errors import InputError
from fastfed.model.part import Part
from fastfed.model.part_options import option
from fastfed.model.rewards import Gaussian
from fastfed.model.uplinks import Lattice

if TYPE_CHECKING:
    from fastfed.model.setting import Setting

LEAST = 1e-6
"""The least probability: with a smaller one hardly any server would ever hear of its clients."""
_BRIEFLY = 1e-6  # a time in which a radius that grows at first still grows


class Participation(Part):
    """The clients that report at a communication round: all of them, or each with a probability.

    Made by its subclasses, or by the names that options take.

    Examples
    --------
    >>> import fastfed as ff
    >>> isinstance(ff.Full(), ff.Participation), str(ff.Wait(0.8))
    (True, 'wait:0.8')
    """

    kind = "participation"
    waits: ClassVar[bool] = True
    """Whether the server decides only at rounds with all clients."""

    @property
    def probability(self) -> float:
        """The probability with which a client takes part in a round."""
        return 1.0

    @property
    def at_random(self) -> bool:
        """Tell whether reports may be missing."""
        return True

    def kernel(self, setting: Setting) -> Any:
        from fastfed.kernels.rounds_server import FullParticipation, at_rounds

        if not self.at_random and not setting.uplink.visits_rounds:
            return FullParticipation(())
        return at_rounds(self.probability, self.waits)


@dataclass(frozen=True, eq=False)
class Full(Participation):
    """All clients report at every round, as in the paper.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Full())
    'full'
    """

    family = "full"
    covered = True
    rank = 0

    @property
    def at_random(self) -> bool:
        return False


class _AtRandom(Participation):
    """Participation with a probability."""

    p: float

    @property
    def probability(self) -> float:
        return self.p

    def refuse(self, setting: Setting) -> None:
        if isinstance(setting.uplink, Lattice):
            raise InputError(
                f"participation {self}: a message of uplink {setting.uplink} is a difference from "
                "the one before, which may be lost; use the uplink exact"
            )


@dataclass(frozen=True, eq=False)
class Wait(_AtRandom):
    """Each client reports with probability P, and the server waits for rounds with all clients.

    Parameters
    ----------
    p
        The probability P, above 0 and at most 1.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Wait(0.8))
    'wait:0.8'
    """

    p: float = field(metadata=option("P", LEAST, 1.0))

    family = "wait"
    example = "wait:0.8"
    rank = 1


@dataclass(frozen=True, eq=False)
class Random(_AtRandom):
    """Each client reports with probability P, and the server decides by the last reports of all.

    For Gaussian rewards, and the radii stitched, mixture, stitched-pairs and mixture-pairs.

    Parameters
    ----------
    p
        The probability P, above 0 and at most 1.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Random(0.8))
    'random:0.8'
    """

    p: float = field(metadata=option("P", LEAST, 1.0))

    family = "random"
    example = "random:0.8"
    rank = 2
    waits = False

    def refuse(self, setting: Setting) -> None:
        super().refuse(setting)
        if not isinstance(setting.instance.rewards, Gaussian):
            raise InputError(
                f"participation {self}: proved for Gaussian rewards alone, because reports of "
                "different ages weigh past rewards anew; use wait:P"
            )
        if setting.radii.client.kind not in (STITCHED, MIXTURE, MIXTURE_ONE_SIDED):
            raise InputError(
                f"participation {self}: not proved for radius {setting.radius}; use stitched, "
                "mixture, stitched-pairs or mixture-pairs, or participation wait:P"
            )
        server = setting.radii.of(0)
        if server.alpha(1.0 + _BRIEFLY) > server.alpha(1.0):
            raise InputError(
                f"participation {self}: not proved for radius {setting.radius} with an error "
                f"probability of {server.budget:g} for a pair; take a smaller delta"
            )
        if setting.uplink.visits_rounds:
            raise InputError(
                f"participation {self}: not proved for uplink {setting.uplink}; use the uplink "
                "exact, or participation wait:P"
            )
