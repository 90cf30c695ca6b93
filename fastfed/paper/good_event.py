"""Frequency of the good event E: every empirical mean stays within its radius at every step.

The simulator's own walks are followed step by step, for all arms and clients, up to the step
`HORIZON`. The paper's own inequality bounds the rest. An arm at a client leaves its radius at step
n with probability at most 2 exp(-L), L = ln(8 K M n^2 / delta), and so does an arm at the server.
So the sum over all arms, clients and n > N is at most (delta / 2) sum 1/n^2 < delta / (2 N).

One run serves all deltas. |mean - mu| <= alpha(n) means delta <= D with ln D = ln(8 K M n^2) - n
(mean - mu)^2 / (2 sigma^2). A run is on E for every delta up to the least D of the run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfed.analysis.verdicts import share
from fastfed.model.instance import Instance
from fastfed.simulation.walks import values_at

HORIZON = 256


def good_event(
    instance: Instance,
    deltas: Sequence[float],
    runs: int,
    sigma: float | None = None,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Measure the share of runs that leave the event by `HORIZON`: a cell for each delta.

    ``sigma`` is the confidence scale (None: the instance's own), ``seed`` that of the walks.
    """
    scale = instance.default_sigma if sigma is None else sigma
    least = least_delta(instance, runs, scale, seed)
    cells = []
    for delta in deltas:
        left = int((least < math.log(delta)).sum())
        limit = delta * (1 - 1 / (2 * HORIZON))  # the rest is what may happen beyond
        cells.append({"instance": instance.name, "delta": delta, **share(left, 0, runs, limit)})
    return cells


def least_delta(instance: Instance, runs: int, scale: float, seed: int) -> npt.NDArray[np.float64]:
    """Return ln of the least D of each run, which is on the good event for smaller deltas."""
    arms, clients = instance.shape
    trials = np.arange(runs)
    least = np.full(runs, math.inf)
    for n in range(1, HORIZON + 1):
        sums = values_at(instance, seed, trials, np.full((runs, arms, clients), n))
        off = sums / n - instance.means
        local = math.log(8 * arms * clients * n**2) - n * off**2 / (2 * scale**2)
        server = math.log(8 * arms * n**2) - clients * n * off.mean(axis=2) ** 2 / (2 * scale**2)
        least = np.minimum(least, np.minimum(local.min(axis=(1, 2)), server.min(axis=1)))
    return least
