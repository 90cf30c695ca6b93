"""Reports with Laplace noise: `fastfed.model.uplinks.laplace` has the scheme and its proof.

At each round a client sends, for each arm, the sum of its new rewards and a Laplace variate. So the
server knows X and the noise of all reports so far, and the boundary is that of `fastfed.capital`:
after n steps and r_m reports of client m a pair of arms has for the slope l the cost

    l^2 rate n / 2 + pulled sum_m r_m laplace_cost(l w_m b),   pulled = 2,

because both arms are noisy; one arm against a line has half the rate, and pulled = 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed import capital
from fastfed.kernels.compiling import inner
from fastfed.kernels.memory import DRAWN, SENT
from fastfed.kernels.random.dither import dither_from, dither_words
from fastfed.kernels.uplinks import hooks
from fastfed.kernels.uplinks.exact import BITS_OF_A_SCALAR

laplace = inner(capital.laplace)
laplace_cost = inner(capital.laplace_cost)
root = inner(capital.root)


class LaplaceMemory(NamedTuple):
    """The costs of the slopes."""

    costs: Any  # (M, slopes) of one report of each client, in the question that is asked
    spent: Any  # (slopes,) of all reports and steps


class LaplaceUplink(NamedTuple):
    """An uplink whose messages are sums of new rewards with Laplace noise."""

    scale: Any  # b
    slopes: Any  # (slopes,)
    charges: Any  # (slopes,) the negative logarithms of their weights
    rate: Any  # the variance proxy of a step of the lead, or of the sum of one arm
    budget: Any  # a
    pulled: Any  # the noisy arms of a comparison: 2, or 1 against a line
    # the boundary of a lead, over that of what is compared: goals without leads compare with g / 2
    factor: Any

    def memory(self, schedules: int, arms: int, clients: int) -> LaplaceMemory:
        count = len(self.slopes)
        return LaplaceMemory(np.zeros((clients, count)), np.zeros(count))


@hooks.begin_reports.of(LaplaceUplink)
def _begin_reports(uplink, received, scope, s):
    costs, slopes = received.uplink.costs, uplink.slopes
    for m in range(scope.lo, scope.hi):
        for j in range(slopes.shape[0]):
            costs[m, j] = uplink.pulled * laplace_cost(
                slopes[j], scope.weights[0, m] * uplink.scale
            )


@hooks.add_noise.of(LaplaceUplink)
def _add_noise(uplink, received, scope, held, m, n):
    count = held.tree.frame[0, DRAWN]
    _add_all(uplink.scale, received.noise, held.tree.drawn[0], count, scope, m, n)


@inner
def _add_all(scale, noise, arms, count, scope, m, n):
    """Add a variate to the sum of each arm of a list of this length."""
    block = np.int64(-1)
    words = (np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0))
    for j in range(count):
        k = np.int64(arms[j])
        if k >> 2 != block:
            block = k >> 2
            words = dither_words(scope.seed, scope.trial, m, block, n)
        noise[k, m] += scale * laplace(dither_from(words[k & 3]))


@hooks.bar_at.of(LaplaceUplink)
def _bar_at(uplink, received, radius, n, steps):
    slopes, spent = uplink.slopes, received.uplink.spent
    for j in range(slopes.shape[0]):
        spent[j] = uplink.charges[j] + 0.5 * slopes[j] * slopes[j] * uplink.rate * float(n)
    for m in range(received.sent.shape[0]):
        for j in range(slopes.shape[0]):
            spent[j] += float(received.sent[m]) * received.uplink.costs[m, j]
    return uplink.factor * root(slopes, spent, uplink.budget)


@hooks.bits_sent.of(LaplaceUplink)
def _bits_sent(uplink, schedules, s):
    return BITS_OF_A_SCALAR * schedules.state[s, SENT]
