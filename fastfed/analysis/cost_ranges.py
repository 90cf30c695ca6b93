"""Ranges of the cost C: where a quadratic is not positive, unions and intersections."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Interval = tuple[float, float]
"""From, to; ends may be infinite."""


def where_not_positive(a: float, b: float, c: float) -> list[Interval]:
    """Return the C with a C^2 + 2 b C + c <= 0: at most two intervals."""
    if a == 0:
        if b == 0:
            return [(-math.inf, math.inf)] if c <= 0 else []
        root = -c / (2 * b)
        return [(-math.inf, root) if b > 0 else (root, math.inf)]
    discriminant = b * b - a * c
    if discriminant < 0:
        return [] if a > 0 else [(-math.inf, math.inf)]
    # without cancellation: the larger root in absolute value first, the other from their product
    q = -(b + math.copysign(math.sqrt(discriminant), b))
    low, high = sorted([q / a, c / q if q else 0.0])
    return [(low, high)] if a > 0 else [(-math.inf, low), (high, math.inf)]


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the same set as intervals that do not touch, in order."""
    found: list[Interval] = []
    for low, high in sorted(intervals):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def common(one: Sequence[Interval], other: Sequence[Interval]) -> list[Interval]:
    """Return the intersection of two sets of intervals, in order."""
    both = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return sorted((low, high) for low, high in both if low <= high)


def holds(cost: float, where: Iterable[Interval]) -> bool:
    """Tell whether a cost lies in one of the intervals."""
    return any(low <= cost <= high for low, high in where)
