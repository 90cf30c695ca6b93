"""Rounding of sums in a trial with Gaussian rewards: a bound on what it may change.

A walk of n steps stays below A(n) = n a + 9 noise sqrt(n), where a is the largest mean in absolute
value, as it is summed (`kernels.rewards.gaussian`). Its spine nodes are rounded by no more than 14
A units of 2^-53 (a node is about twice the one before, so that the errors of all of them add up to
those of the last few); every split adds at most 2 A to that, and all splits together 5 A more. The
difference of two walks is therefore off by at most 2^-52 (2 log2 n + 20) A(n); for the server it is
M times that, and the rounding of its own sum over M clients; the formula of g is off by at most
2^-51 g. Let e(n) be the sum of these.

What happens to an arm at a communication time, given the sums of the others, is decided by its own
sum: the arm leaves where that is low enough, or, with some goals, where it is high enough. Rounding
can only change it where the sum is within e of such a threshold. Look at the arm just before that
time. Let x be its distance from the threshold then, in units of the standard deviation s of what
its sum will change until that time, which is that of one step or more; and let H be the hazard rate
of a standard normal, its density over its tail, which is at most 1 for x <= 0 and at most 1 + x
beyond. The probability that the sum comes to lie within e of the threshold is at most 2 e / s H(x)
times the probability that the arm leaves at that time, because that is the tail beyond x.

The step T at which an arm leaves and the distance x there are correlated, so a mean of e(T) (1 + x)
is not the product of two means. But x needs no mean: times with x > 9 are set aside. At such a time
the sum can only come within e of the threshold if a standard normal exceeds 9, which has the
probability 1.2e-19. At all other times the factor 2 e / s (1 + x) is at most 20 e / s, whatever e
is. An arm leaves once, so that the probabilities add up to at most 20 / s times the mean of e(T):
20 e / s for one threshold, and 40 e / s for an arm at a client, or at the server.

*Left out of the bound.* The normals beyond 9 that were set aside, for two thresholds at every step
of an arm at a client and at the server: together less than 1e-18 times the pulls of a trial, 1e-12
for a million pulls. And the walks that exceed A(n) at a node: 2.3e-19 for each node.

An arm leaves a client no later than at its last pull there, and the server no later than at its
last pull at any client. So the steps at which arms leave add up to at most P, all pulls of the
trial, over all clients, and to at most P / M at the server. A and g are concave: the sum over the
K M places is at most K M times their value at P / (K M), and K times that for the server.

*Weights.* Sums of weighted clients have one more rounding in each term. Their weights add up to M
at most, and the squares of the weights to M, so the rest stands. In a question in which only M' of
the clients have a weight, arms leave by P / M' in all, which is M / M' times as much; the bounds of
several questions add up (`Spent.places`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.confidence import MAX_STEPS

if TYPE_CHECKING:
    from fastfed.model.setting import Setting

Floats = npt.NDArray[np.float64]

_LARGEST_NORMAL = 9.0


class Spent(NamedTuple):
    """The steps and pulls of trials, and upper bounds on their boundaries."""

    steps: Floats
    """Up to which their walks were drawn."""
    mean_pulls: Floats
    """Of an arm at a client."""
    local_g: Floats
    """Upper bounds on g at mean_pulls, at a client"""
    global_g: Floats
    """and at the server."""
    weighted: bool = False
    """Whether clients have weights other than 1."""
    places: float = 1.0
    """The sum over questions of M / M', where M' clients have a weight in the question."""

    @classmethod
    def of(cls, setting: Setting, steps: Floats, pulls: npt.NDArray[np.int64]) -> Spent:
        """Take the boundaries at the next powers of two of the mean pulls.

        g is concave and positive, so it never falls, and the next power of two has a larger g.
        """
        radii, questions = setting.radii, setting.instance.questions
        means = np.maximum(pulls / setting.instance.means.size, 1.0)
        powers = np.minimum(np.frexp(means)[1], MAX_STEPS.bit_length() - 1)
        each, places = np.unique(powers, return_inverse=True)
        at_server = {radii.largest_sums, *radii.sums}
        widest = float(questions.arm_scales.max())
        local_g, global_g = np.array(
            [
                (radii.client.boundary(n), widest * max(one.boundary(n) for one in at_server))
                for n in np.ldexp(1.0, each).tolist()
            ]
        ).T.reshape(2, -1)
        senders = questions.asked.sum(axis=2)
        fewest = np.where(senders > 0, senders, senders.max()).min(axis=1)
        return cls(
            steps,
            means,
            local_g[places].reshape(means.shape),
            global_g[places].reshape(means.shape),
            weighted=not (questions.plain and questions.full),
            places=float((questions.asked.shape[2] / fewest).sum()),
        )


def sum_error(means: Floats, noise: Floats, spent: Spent) -> Floats:
    """Bound the probability that rounding changes a decision on any arm in a trial.

    ``means`` (K, M) are as they are summed, ``noise`` has all standard deviations.
    """
    arms, clients = means.shape
    size = np.abs(means).max() * spent.mean_pulls + _LARGEST_NORMAL * noise.max() * np.sqrt(
        spent.mean_pulls
    )
    digits = 2.0 * np.frexp(spent.steps)[1] + 20.0  # of log2 rounded up: the same on any machine
    locally = 2.0**-52 * digits * size + 2.0**-51 * spent.local_g
    terms = clients + int(spent.weighted)
    globally = 2.0**-52 * clients * (digits + terms) * size + 2.0**-51 * spent.global_g
    off = arms * (clients * locally + spent.places * (globally / math.sqrt(clients)))
    return np.asarray(4.0 * (1.0 + _LARGEST_NORMAL) * off / noise.min())
