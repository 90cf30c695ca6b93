"""The boundary g of a pass: quick bounds from a table, the formula only where they do not decide.

A curve is a NamedTuple class with what its g is made of. A pass asks four things of it: `exact` is
the formula, `boundary_below` and `boundary_between` are lower bounds on it, and `reaches` decides
whether a lead is g or more, as the formula does. `tabulate` fills its table, once for all trials.

The paper's curve (`PaperCurve`). g(n) = sqrt(unit n L), L = log_c + 2 ln n, unit = 8 walks scale^2.
An octave, from 2^(t-1) to 2^t, has PARTS parts whose left ends p have their L in a table. With u =
(n - p) / p, 0 <= u <= 1 / PARTS, Taylor's alternating series brackets the rest:

    u - u^2 / 2 <= ln(n / p) <= u - u^2 / 2 + u^3 / 3.

The bracket is u^3 / (3 L) of g wide: 3e-5 at most (L > 2.7, for 8 K M / delta > 16), 3e-6 for a
usual L. A bound is moved outwards by 2^-48 of itself, 16 units in the last place, past the few
roundings on the way to it and in the formula.

Any other curve (`ConcaveCurve`, `OwnCurve`) needs only that g is concave. Between two nodes of a
table it then lies above their chord, and below the chords of the neighbouring nodes, continued.
With GRID = 64 parts in an octave the chord is 1 / (32 64^2) = 8e-6 of g away, the upper line twice
that. These bounds are moved outwards by 2^-42, because a user's formula may round more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import cfunc
from numba.core.errors import NumbaError

from fastfed import radius
from fastfed.errors import InputError
from fastfed.kernels.compiling import entry_point, inlined, inner
from fastfed.kernels.generic import generic
from fastfed.radius import GRID, GRID_BITS, PAPER, Confidence

LEVELS = 54  # octaves, up to 2^53

PART_BITS = 4
PARTS = 1 << PART_BITS
_DOWN, _UP = 1.0 - 2.0**-48, 1.0 + 2.0**-48
_FAR_DOWN, _FAR_UP = 1.0 - 2.0**-42, 1.0 + 2.0**-42
CHORD = 1.0 - 2.0**-50  # rounds a chord down, below the rounding errors of what made it

boundary = inner(radius.boundary)
exponent = inner(radius.exponent)


@inlined
def octave(n):
    """The level of n >= 1: 2^(level-1) <= n < 2^level."""
    level = np.int64(1)
    while n >> level > 0:
        level += 1
    return level


# ---- what a pass asks --------------------------------------------------------------------------


@generic
def exact(curve, n):
    """g(n) by the formula; n >= 1 is a float."""


@generic
def boundary_below(curve, n, level):
    """A lower bound on g(n); 2^(level-1) <= n < 2^level."""


@generic
def boundary_between(curve, a, b, g_a, g_b, level, noise):
    """A lower bound on g in the middle of (a, b], given lower bounds at its ends; ``noise`` is that
    of a step, and bounds need not be much nearer than it."""


@generic
def reaches(curve, lead, n, level):
    """Whether lead >= g(n), as the formula decides it; 2^(level-1) <= n < 2^level."""


@generic
def fill_table(curve):
    """Fill the table of a curve that was just made."""


@entry_point
def tabulate(curve):
    """`fill_table`, for Python."""
    fill_table(curve)


@inlined
def boundary_above(curve, n):
    """An upper bound on g(n), and so on all that comes before n: a concave g that stays positive
    never falls."""
    return _FAR_UP * exact(curve, float(n))


# ---- the paper's -------------------------------------------------------------------------------


class PaperCurve(NamedTuple):
    """The boundary g of a pass with the paper's radius."""

    walks: Any  # over how many clients the pass sums
    unit: Any  # 8 walks scale^2
    log_c: Any
    scale: Any
    logs: Any  # (LEVELS, PARTS) logs[t, i] is L at the left end of part i of octave t


@fill_table.of(PaperCurve)
def _fill_logs(curve):
    for t in range(1, curve.logs.shape[0]):
        for i in range(PARTS):
            p = float(1 << (t - 1)) * (1.0 + float(i) / PARTS)
            curve.logs[t, i] = curve.log_c + 2.0 * math.log(p)


@exact.of(PaperCurve)
def _paper_exact(curve, n):
    return boundary(n, curve.walks, curve.log_c, curve.scale)


@inlined
def _log_below(n, level, logs):
    """A lower bound on L, and u; 2^(level-1) <= n < 2^level."""
    start = 1 << (level - 1)
    part = ((n - start) << PART_BITS) >> (level - 1)
    p = float(start) * (1.0 + float(part) / PARTS)
    u = (float(n) - p) / p
    return logs[level, part] + u * (2.0 - u), u


@boundary_below.of(PaperCurve)
def _paper_below(curve, n, level):
    low, _ = _log_below(n, level, curve.logs)
    return _DOWN * math.sqrt(curve.unit * float(n) * low)


@boundary_between.of(PaperCurve)
def _paper_between(curve, a, b, g_a, g_b, level, noise):
    """From the bounds at the ends, if they are near.

    g'' = -g (L^2 + 4) / (4 n^2 L^2), so |g''| >= g / (4 n^2), which falls with n: the arc stands at
    least (b - a)^2 g(b) / (32 b^2) above its chord. That is off by a further factor (b - a) / b;
    where that is more than ``noise``, the noise of a step, and so might matter, the table gives the
    bound: it costs a division and a root more.
    """
    share = float(b - a) / float(b)
    arc = share * share * g_b
    if arc * share > noise:
        return boundary_below(curve, (a + b) >> 1, level)
    return _DOWN * (0.5 * (g_a + g_b) + 0.03125 * arc)


@inner
def _paper_reaches(curve, lead, n, level):
    low, u = _log_below(n, level, curve.logs)
    high = low + (2.0 / 3.0) * u * u * u
    square = curve.unit * float(n)
    if lead < _DOWN * math.sqrt(square * low):
        return False
    if lead >= _UP * math.sqrt(square * high):
        return True
    return lead >= exact(curve, float(n))


@reaches.of(PaperCurve)
def _(curve, lead, n, level):
    return _paper_reaches(curve, lead, n, level)


# ---- any concave one ---------------------------------------------------------------------------


class ConcaveCurve(NamedTuple):
    """The boundary g of a pass with another built-in radius."""

    kind: Any  # which formula: see `radius.exponent`
    unit: Any
    constant: Any
    shift: Any
    lift: Any  # added to the root of L
    table: Any  # (nodes, 2) g at each node of `radius.grid`, and the slope from there to the next


class OwnCurve(NamedTuple):
    """The boundary g of a pass with a user's own radius."""

    function: Any  # a Numba cfunc: (n, budget) -> L(n)
    budget: Any
    unit: Any
    lift: Any
    table: Any  # as for ConcaveCurve


@exact.of(ConcaveCurve)
def _concave_exact(curve, n):
    square = curve.unit * n
    root = math.sqrt(square * exponent(curve.kind, n, curve.constant, curve.shift))
    return root + curve.lift * math.sqrt(square)


@exact.of(OwnCurve)
def _own_exact(curve, n):
    square = curve.unit * n
    return math.sqrt(square * curve.function(n, curve.budget)) + curve.lift * math.sqrt(square)


def _fill_chords(curve):
    table = curve.table
    nodes = table.shape[0]
    for j in range(nodes):
        start = float(1 << (j >> GRID_BITS))
        table[j, 0] = exact(curve, start * (1.0 + float(j & (GRID - 1)) / GRID))
    for j in range(nodes - 1):
        step = float(1 << (j >> GRID_BITS)) / GRID
        table[j, 1] = (table[j + 1, 0] - table[j, 0]) / step
    table[nodes - 1, 1] = table[nodes - 2, 1]


@inlined
def _node(n, level):
    """The last node at or before n, and how far n lies beyond it."""
    start = 1 << (level - 1)
    part = ((n - start) << GRID_BITS) >> (level - 1)
    p = float(start) * (1.0 + float(part) / GRID)
    return ((level - 1) << GRID_BITS) + part, float(n) - p


def _concave_below(curve, n, level):
    node, beyond = _node(n, level)
    return _FAR_DOWN * (curve.table[node, 0] + curve.table[node, 1] * beyond)


def _concave_between(curve, a, b, g_a, g_b, level, noise):
    return boundary_below(curve, (a + b) >> 1, level)


@inner
def _concave_reaches(curve, lead, n, level):
    """The chord from below; from above the chord before, and the chord after, continued to n."""
    table = curve.table
    node, beyond = _node(n, level)
    if lead < _FAR_DOWN * (table[node, 0] + table[node, 1] * beyond):
        return False
    short_of = float(1 << (level - 1)) / GRID - beyond
    before = table[node, 0] + table[max(node - 1, 0), 1] * beyond
    after = table[node + 1, 0] - table[node + 1, 1] * short_of
    if lead >= _FAR_UP * min(before, after):
        return True
    return lead >= exact(curve, float(n))


def _reaches(curve, lead, n, level):
    return _concave_reaches(curve, lead, n, level)


for _class in (ConcaveCurve, OwnCurve):
    fill_table.of(_class)(_fill_chords)
    boundary_below.of(_class)(_concave_below)
    boundary_between.of(_class)(_concave_between)
    reaches.of(_class)(_reaches)


# ---- from a radius to its curve ----------------------------------------------------------------


def make_curve(confidence: Confidence) -> Any:
    """The curve of a radius, with its table filled."""
    curve: Any
    if confidence.kind == PAPER:
        curve = PaperCurve(
            confidence.walks,
            confidence.unit,
            confidence.constant,
            confidence.sigma,
            np.zeros((LEVELS, PARTS)),
        )
    else:
        table = np.zeros(((LEVELS - 1) * GRID + 1, 2))
        if confidence.function is None:
            curve = ConcaveCurve(
                np.int64(confidence.kind),
                confidence.unit,
                confidence.constant,
                confidence.shift,
                confidence.lift,
                table,
            )
        else:
            curve = OwnCurve(
                _compiled(confidence.function),
                confidence.budget,
                confidence.unit,
                confidence.lift,
                table,
            )
    tabulate(curve)
    return curve


@cache
def _compiled(function: Callable[[float, float], float]) -> Any:
    """A user's L as a C function, which kernels can call without being compiled anew for it."""
    try:
        return cfunc("float64(float64, float64)", error_model="numpy")(function)
    except (NumbaError, TypeError, ValueError, NotImplementedError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"radius function {getattr(function, '__name__', 'given')}: Numba cannot "
            f"compile it for two floats ({reason[:160]})"
        ) from None
