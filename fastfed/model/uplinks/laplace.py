"""Private reports: `laplace:EPS`.

At each round a client sends, for each arm that the server still considers, the sum of the rewards
since the last round plus a Laplace variate with the scale b = R / EPS. R is the range of the
rewards: their largest value less their smallest one, over all arms and clients.

**Privacy.** Each reward enters one message, and changes it by R at most. So the density of that
message changes by a factor of e^EPS at most, and no other message changes: each message depends on
rewards of its own, on its own noise, and on the sets of arms, which follow from earlier messages.
All messages of a trial together are EPS-differentially private in one reward (Dwork, McSherry,
Nissim and Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006; parallel
composition). What the server says is computed from messages, and as private. The clients' own
answers stay with them and are not protected; nor is the number of pulls of an arm that a client
goes on pulling for itself. Noise in double precision is a simulation of the scheme: its low bits
would tell more (Mironov, "On significance of the least significant bits for differential privacy",
CCS 2012).

**Why delta holds.** Let S be the lead of an arm over a better one, in sums over clients with the
weights w_m, after n steps and r_m reports of client m. Less its mean, which is not positive, it has
the terms of 2 n rewards of each client, sigma w_m-sub-Gaussian, and 2 r_m variates of the scale
w_m b. E exp(l w Z) is 1 / (1 - l^2 w^2 b^2) for a variate Z with the scale b. So for
0 < l < 1 / (b max w)

    exp(l S - l^2 sigma^2 n sum w_m^2 + 2 sum r_m ln(1 - l^2 w_m^2 b^2))

is a supermartingale from round to round, whenever the rounds take place, and whoever takes part.
So is its weighted mean over a list of l, and Ville's inequality bounds the probability that it ever
reaches 1 / a by a (`fastfed.capital`). The budget a is that of a radius per pair: delta / 2 over
the number of pairs that can cause an error. With a threshold one arm is compared with a line: half
of the terms, both signs, delta / 4 over the number of arms.

The rule takes the place of the radius at the server. Clients have theirs as before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed import capital
from fastfed.confidence import Confidence
from fastfed.errors import InputError
from fastfed.model.part_options import option
from fastfed.model.uplinks.base import Uplink

if TYPE_CHECKING:
    from fastfed.model.setting import Setting


class Rule(NamedTuple):
    """The numbers of the server's rule in a setting."""

    scale: float  # b
    slopes: npt.NDArray[np.float64]
    charges: npt.NDArray[np.float64]  # the negative logarithms of their weights
    rate: float  # the variance proxy of a step of what is compared
    budget: float
    arms: int  # the noisy arms of a comparison
    factor: float  # the boundary of a lead, over that of what is compared

    def boundary(
        self, n: int, reports: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]
    ) -> float:
        """Return the boundary of leads after n steps and so many reports of each client."""
        costs = self.charges + 0.5 * self.slopes**2 * self.rate * n
        for count, weight in zip(reports.tolist(), weights.tolist(), strict=True):
            costs += (
                count
                * self.arms
                * np.array([capital.laplace_cost(one, weight * self.scale) for one in self.slopes])
            )
        return self.factor * capital.root(self.slopes, costs, self.budget)


@dataclass(frozen=True, eq=False)
class Laplace(Uplink):
    """Sums of new rewards with Laplace noise, which are EPS-differentially private in a reward.

    For bounded rewards: Bernoulli, finite and observed ones.

    Parameters
    ----------
    epsilon
        The privacy parameter EPS; smaller ones hide more, and take more pulls.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Laplace(1))
    'laplace:1'
    """

    epsilon: float = field(metadata=option("EPS", 1e-6, 1e6))

    family = "laplace"
    example = "laplace:1"
    rank = 3
    visits_rounds = True

    def widened(self, server: Confidence) -> Confidence:
        return server

    def refuse(self, setting: Setting) -> None:
        if not math.isfinite(setting.instance.rewards.range):
            raise InputError(
                f"uplink {self}: noise hides a reward only if rewards are bounded, and those of "
                f"{setting.instance.name} are not; use bernoulli or finite rewards"
            )

    def rule(self, setting: Setting) -> Rule:
        """Make the numbers of the server's rule."""
        instance, goal = setting.instance, setting.goal
        arms, clients = instance.shape
        questions = instance.questions
        scale = instance.rewards.range / self.epsilon
        noisy = 2 if goal.compares else 1
        delta = 0.5 * setting.delta * questions.server_share
        budget = delta / goal.pairs(arms) if goal.compares else 0.5 * delta / arms
        rate = noisy * clients * setting.sigma**2  # the squares of the weights add up to M
        noise = scale * float(np.max(questions.factors))
        slopes, charges = map(
            np.array, capital.slopes(rate, noise, budget, setting.radius.tuned_at)
        )
        return Rule(scale, slopes, charges, rate, budget, noisy, 2.0 / noisy)

    def kernel(self, setting: Setting) -> Any:
        from fastfed.kernels.uplinks.laplace import LaplaceUplink

        return LaplaceUplink(*self.rule(setting))
