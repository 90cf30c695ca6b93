"""What the rounding of sums may do to a trial with Gaussian rewards.

A walk of n steps stays below A = n a + 9 noise sqrt(n), where a is the largest mean in absolute
value, as it is summed (`kernels.laws.gaussian`). Its spine nodes are rounded by no more than 14 A
units of 2^-53 (a node is about twice the one before, so that the errors of all of them add up to
those of the last few); every split adds at most 2 A to that, and all splits together 5 A more. The
difference of two walks is therefore off by at most 2^-52 (2 log2 n + 20) A; for the server it is M
times that, and the rounding of its own sum over M clients; the formula of g is off by at most
2^-51 g. Let e be the sum of these.

A decision about a pair can only be changed where its lead is within e of g. Look at the pair just
before a communication time. Let x be the distance from its lead to g then, in units of the standard
deviation s of what the lead will change until that time, which is that of one step or more; and let
H be the hazard rate of a standard normal, its density over its tail, which is at most 1 + |x|. The
probability that the lead comes to lie within e of g is at most 2 e / s H(x) times the probability
that the pair is decided at that time, because that is the tail beyond x. A pair is decided once, so
that over all times these add up to at most 2 e / s times the mean of 1 + |x| where it is decided.
There |x| is at most the largest of N normals in absolute value, whose mean is below
sqrt(2 ln 2 N) < 9 for N <= 2^52. So 20 e / s is enough for a pair, whoever leads. There are
K (K - 1) / 2 pairs at each client and at the server; the bound has twice as many, because some
goals look at every arm by itself as well.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_LARGEST_NORMAL = 9.0


def sum_error(means: Floats, noise: Floats, steps: Floats, boundaries: tuple[Floats, Floats]
              ) -> Floats:
    """A bound on the probability that rounding changes a decision of a trial of so many steps.
    ``means`` (K, M) are as they are summed, ``noise`` has all standard deviations, ``boundaries``
    are upper bounds on g at these steps, at a client and at the server."""
    arms, clients = means.shape
    size = np.abs(means).max() * steps + _LARGEST_NORMAL * noise.max() * np.sqrt(steps)
    digits = 2.0 * np.log2(steps) + 20.0
    locally = 2.0**-52 * digits * size + 2.0**-51 * boundaries[0]
    globally = 2.0**-52 * clients * (digits + clients) * size + 2.0**-51 * boundaries[1]
    off = clients * locally + globally / math.sqrt(clients)  # a server's steps are wider
    each = 2.0 * (1.0 + _LARGEST_NORMAL) / (math.sqrt(2.0) * noise.min())
    return np.asarray(arms * (arms - 1) * each * off)
