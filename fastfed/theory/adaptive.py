"""Times of the adaptive schedule on the good event: the latest that settles an arm, and how many.

On the good event arm k is settled at the first round at or after n_k (`fastfed.theory.bounds`). Let
t < n_k be the round before, at least n_1, the first. Three things bound that round, t'.

* t' <= HI t, unless LO and the grid ask for more: so t' < HI n_k, or t' = n_1.
* If the server waits for one arm only, which SHARE (K - 1) <= 1 says, it goes by the nearest one.
  The lead of arm k at t is at least Delta_k - 2 alpha(t), so t' is at most the step N(t) at which
  2 alpha falls to that, or LO t. HI t grows with t and N(t) falls: the worst t is where they meet.
  For alpha = c / sqrt(n) that is t' = ((1 + sqrt(HI)) / 2)^2 n_k: 2.25 n_k for HI = 4, and the
  factor 2 of FedElim for HI = 3.34. Other goals than the best arm have the same bound: their gaps
  are chosen so that what decides arm k is at least its gap less 2 alpha(t).
* Rounds grow at least by LO, so of n_1, LO n_1, LO^2 n_1, ... those below n_k are the most rounds
  that can come before n_k.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.confidence import Confidence
from fastfed.model.schedules import Adaptive
from fastfed.model.setting import Setting
from fastfed.timegrid import place_from, place_until, step_at

Floats = npt.NDArray[np.float64]


class Rounds(NamedTuple):
    """The rounds of one delta on the good event."""

    first: float
    latest: Floats  # (Q, K) the latest round at which arm k is settled in each question
    turns: Floats  # (Q, K) the most rounds up to that one


def rounds(
    schedule: Adaptive, server: Confidence, first: int, gaps: Floats, n_k: Floats
) -> tuple[Floats, Floats]:
    """Bound the communication rounds of the adaptive schedule, for arms with these gaps.

    Arm k is eliminated at the first round after step n_k. Return the latest such round of each arm,
    and the largest number of rounds up to it.
    """
    chain = [first]
    while chain[-1] < n_k.max():
        chain.append(_least_next(schedule, chain[-1]))
    latest = [
        _latest(schedule, server, first, gap, int(n), len(gaps))
        for gap, n in zip(gaps.tolist(), n_k.tolist(), strict=True)
    ]
    turns = np.asarray(np.searchsorted(np.array(chain, np.float64), n_k) + 1.0, np.float64)
    return np.array(latest, np.float64), turns


def rounds_on_grid(
    setting: Setting, delta: Floats, n_k: Floats, schedule: Adaptive
) -> list[Rounds]:
    """Bound the rounds of each cell of a grid of deltas; n_k is (..., Q, K)."""
    gaps = setting.goal.server_gaps(setting.instance)
    found: dict[float, Rounds] = {}
    for d, steps in zip(delta.ravel().tolist(), n_k.reshape(-1, *gaps.shape), strict=True):
        if d not in found:
            radii = replace(setting, delta=d).radii
            first = schedule.first_time(radii.server, setting.sigma)
            each = [
                rounds(schedule, radii.of(q), first, own / setting.bound_scales(q), settled)
                for q, (own, settled) in enumerate(zip(gaps, steps, strict=True))
            ]
            latest, turns = zip(*each, strict=True)
            found[d] = Rounds(float(first), np.array(latest), np.array(turns))
    return [found[d] for d in delta.ravel().tolist()]


def _least_next(schedule: Adaptive, n: int) -> int:
    return step_at(place_from(max(n + 1, math.ceil(schedule.lo * n))))


def _most_next(schedule: Adaptive, n: int) -> int:
    return max(_least_next(schedule, n), step_at(place_until(math.floor(schedule.hi * n))))


def _latest(
    schedule: Adaptive, server: Confidence, first: int, gap: float, n_k: int, arms: int
) -> int:
    """Bound the round that settles one arm."""
    if n_k <= first:
        return first
    low, high = place_from(first), place_until(n_k - 1)
    last = step_at(high)
    # n alpha is concave, so alpha falls from the first step on at which it falls
    nearest = schedule.wanted(arms) == 1 and server.alpha(first) >= server.alpha(first + 1)

    def aimed_at(place: int) -> float:
        lead = gap - 2.0 * server.alpha(step_at(place))
        steps = server.resolved_by(2.0 * lead) if lead > 0.0 else math.inf
        return steps if math.isinf(steps) else float(step_at(place_from(int(steps))))

    if not nearest or aimed_at(high) > _most_next(schedule, last):
        return _most_next(schedule, last)
    while low < high:  # the first place from which the aim comes before HI times the step
        middle = (low + high) // 2
        if aimed_at(middle) <= _most_next(schedule, step_at(middle)):
            high = middle
        else:
            low = middle + 1
    worst = max(int(aimed_at(high)), _least_next(schedule, last))
    if step_at(high) > first:
        worst = max(worst, _most_next(schedule, step_at(high - 1)))
    return min(worst, _most_next(schedule, last))
