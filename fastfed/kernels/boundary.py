"""The boundary g with few logarithms: bounds from a table, the formula only where they decide not.

g(n) = sqrt(unit n L), L = log_c + 2 ln n, unit = 8 walks scale^2 (`confidence`). An octave, from
2^(t-1) to 2^t, has PARTS parts whose left ends p have their L in a table, made once for all trials.
With u = (n - p) / p, 0 <= u <= 1 / PARTS, Taylor's alternating series brackets the rest:

    u - u^2 / 2 <= ln(n / p) <= u - u^2 / 2 + u^3 / 3.

The bracket is u^3 / (3 L) of g wide: 3e-5 at most (L > 2.7, for 8 K M / delta > 16), 3e-6 for a
usual L. A bound is moved outwards by 2^-48 of itself, 16 units in the last place, past the few
roundings on the way to it and in the formula.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from fastfed import radius
from fastfed.kernels.compiling import inlined, inner, kernel

LEVELS = 54  # octaves, up to 2^53

PART_BITS = 4
PARTS = 1 << PART_BITS
_DOWN, _UP = 1.0 - 2.0**-48, 1.0 + 2.0**-48
CHORD = 1.0 - 2.0**-50  # rounds a chord down, below the rounding errors of what made it

boundary = kernel(radius.boundary)


class Curve(NamedTuple):
    """The boundary g of a pass."""

    walks: Any  # over how many clients the pass sums
    unit: Any  # 8 walks scale^2
    log_c: Any
    scale: Any
    logs: Any  # (LEVELS, PARTS) see `tabulate_logs`


@inlined
def make_curve(walks, log_c, scale, logs):
    """The paper's boundary for sums over so many clients; ``logs`` must have been tabulated."""
    return Curve(walks, 8.0 * walks * scale * scale, log_c, scale, logs)


@inner
def tabulate_logs(logs, log_c):
    """logs[t, i] = L at the left end of part i of the octave that begins at 2^(t-1)."""
    for t in range(1, logs.shape[0]):
        for i in range(PARTS):
            p = float(1 << (t - 1)) * (1.0 + float(i) / PARTS)
            logs[t, i] = log_c + 2.0 * math.log(p)


@inlined
def _log_below(n, level, logs):
    """A lower bound on L, and u; 2^(level-1) <= n < 2^level."""
    start = 1 << (level - 1)
    part = ((n - start) << PART_BITS) >> (level - 1)
    p = float(start) * (1.0 + float(part) / PARTS)
    u = (float(n) - p) / p
    return logs[level, part] + u * (2.0 - u), u


@inlined
def boundary_below(n, level, curve):
    """A lower bound on g(n); 2^(level-1) <= n < 2^level."""
    low, _ = _log_below(n, level, curve.logs)
    return _DOWN * math.sqrt(curve.unit * float(n) * low)


@inlined
def boundary_between(a, b, g_a, g_b, level, curve, noise):
    """A lower bound on g in the middle of (a, b], from lower bounds at its ends if they are near.

    g'' = -g (L^2 + 4) / (4 n^2 L^2), so |g''| >= g / (4 n^2), which falls with n: the arc stands at
    least (b - a)^2 g(b) / (32 b^2) above its chord. That is off by a further factor (b - a) / b;
    where that is more than ``noise``, the noise of a step, and so might matter, the table gives the
    bound: it costs a division and a root more.
    """
    share = float(b - a) / float(b)
    arc = share * share * g_b
    if arc * share > noise:
        return boundary_below((a + b) >> 1, level, curve)
    return _DOWN * (0.5 * (g_a + g_b) + 0.03125 * arc)


@inner
def reaches(lead, n, level, curve):
    """Whether lead >= g(n), as the formula decides it; 2^(level-1) <= n < 2^level."""
    low, u = _log_below(n, level, curve.logs)
    high = low + (2.0 / 3.0) * u * u * u
    square = curve.unit * float(n)
    if lead < _DOWN * math.sqrt(square * low):
        return False
    if lead >= _UP * math.sqrt(square * high):
        return True
    return lead >= boundary(float(n), curve.walks, curve.log_c, curve.scale)
