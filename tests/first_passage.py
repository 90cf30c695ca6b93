"""The probability of a wrong answer with two arms, by numbers instead of by chance.

With K = 2 and one client only the difference of the two walks matters. It starts at 0; at every
look (a step at which it is compared with the boundary) it is absorbed above g (the better arm is
eliminated, a wrong answer) or below -g (a right one). What follows carries its law from look to
look and adds up what is absorbed above.

* Gaussian rewards: the density between -g and g on Gauss-Legendre nodes, panel by panel. All terms
  are positive, so nothing cancels and a probability of 1e-12 is as exact, relatively, as one of
  1e-3. Halving the panels changes nothing in the digits that tests look at (`tests` show it).
* Bernoulli rewards: the difference lives on whole numbers, and the recursion is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtr

Boundary = Callable[[float], float]
_ORDER = 12
_WIDTH = 3.0  # of a panel, in standard deviations of one step
_FAR = 11.0  # standard deviations: the kernel is below 1e-26 there


def gaussian(
    gap: float, noise: float, boundary: Boundary, looks: Sequence[int], width: float = _WIDTH
) -> float:
    """P(the better arm, ahead by ``gap`` a step, is eliminated at one of the looks)."""
    rate = math.sqrt(2.0) * noise
    nodes, weights = np.zeros(1), np.ones(1)  # weights hold density x quadrature weight
    wrong, before = 0.0, 0
    for n in looks:
        steps = n - before
        spread, drift = rate * math.sqrt(steps), -gap * steps
        g = boundary(n)
        wrong += float(weights @ ndtr((nodes + drift - g) / spread))
        fresh, panel = _panels(-g, g, width * rate)
        weights = panel * _carried(fresh, nodes + drift, weights, spread)
        nodes, before = fresh, n
    return wrong


def _carried(
    fresh: np.ndarray, places: np.ndarray, weights: np.ndarray, spread: float
) -> np.ndarray:
    """Compute the density at the new nodes by Gaussian steps from the old nodes nearby."""
    density = np.zeros(len(fresh))
    low = np.searchsorted(places, fresh - _FAR * spread)
    high = np.searchsorted(places, fresh + _FAR * spread)
    for begin in range(0, len(fresh), 128):
        part = slice(begin, begin + 128)
        near = slice(low[part].min(), high[part].max())
        z = (fresh[part, None] - places[None, near]) / spread
        density[part] = np.exp(-0.5 * z * z) @ weights[near]
    return density / (spread * math.sqrt(2 * math.pi))


def _panels(low: float, high: float, width: float) -> tuple[np.ndarray, np.ndarray]:
    count = max(1, math.ceil((high - low) / width))
    x, w = np.polynomial.legendre.leggauss(_ORDER)
    half = (high - low) / (2 * count)
    middles = low + half * (2 * np.arange(count) + 1)
    return (middles[:, None] + half * x).ravel(), np.tile(half * w, count)


def bernoulli(better: float, worse: float, boundary: Boundary, looks: Sequence[int]) -> float:
    """Return the same for rewards 0 and 1; looks must be all steps up to some step."""
    last = looks[-1]
    looked = set(looks)
    law = np.zeros(2 * last + 1)
    law[last] = 1.0
    up, down = worse * (1 - better), better * (1 - worse)
    place = np.arange(-last, last + 1)
    wrong = 0.0
    for n in range(1, last + 1):
        moved = (1 - up - down) * law
        moved[1:] += up * law[:-1]
        moved[:-1] += down * law[1:]
        law = moved
        if n in looked:
            g = boundary(n)
            wrong += float(law[place >= g].sum())
            law[np.abs(place) >= g] = 0.0
    return wrong
