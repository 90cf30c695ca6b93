"""The boundary g of a pass: quick bounds from a table, the formula only where they do not decide.

A radius is a NamedTuple class with the numbers that make its g. A pass asks four things of it:
`exact` is the formula, `boundary_below` and `boundary_between` are lower bounds on it, and
`reaches` decides as the formula does whether a lead is g or more. `tabulate` fills its table, once
for all trials.

The paper's radius (`PaperRadius`): g(n) = sqrt(unit n L), L = log_c + 2 ln n, unit = 8 walks
scale^2. An octave, from 2^(t-1) to 2^t, has PARTS parts whose left ends p have their L in a table.
With u = (n - p) / p, 0 <= u <= 1 / PARTS, Taylor's alternating series brackets the rest:

    u - u^2 / 2 <= ln(n / p) <= u - u^2 / 2 + u^3 / 3.

The bracket is u^3 / (3 L) of g wide: 3e-5 at most (L > 2.7, for 8 K M / delta > 16), 3e-6 for a
typical L. A bound is moved outwards by 2^-48 of itself, 16 units in the last place, past the few
roundings on the way to it and in the formula.

Any other radius (`ConcaveRadius`, `OwnRadius`) needs only that g is concave. Between two nodes of a
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

from fastfed import confidence as formulas
from fastfed.confidence import GRID, GRID_BITS, PAPER, Confidence
from fastfed.errors import InputError
from fastfed.kernels.compiling import entry_point, inlined, inner
from fastfed.kernels.dispatch import generic, generic_with_default

LEVELS = 54  # octaves, up to 2^53

PART_BITS = 4
PARTS = 1 << PART_BITS
_DOWN, _UP = 1.0 - 2.0**-48, 1.0 + 2.0**-48
_FAR_DOWN, _FAR_UP = 1.0 - 2.0**-42, 1.0 + 2.0**-42
CHORD = 1.0 - 2.0**-50  # rounds a chord down, below the rounding errors of what made it

boundary = inner(formulas.boundary)
exponent = inner(formulas.exponent)


@inlined
def octave(n):
    """Return the level of n >= 1: 2^(level-1) <= n < 2^level."""
    level = np.int64(1)
    while n >> level > 0:
        level += 1
    return level


# ---- what a pass asks --------------------------------------------------------------------------


@generic
def exact(radius, n):
    """Return g(n) by the formula; n >= 1 is a float."""


@generic
def boundary_below(radius, n, level):
    """Return a lower bound on g(n); 2^(level-1) <= n < 2^level."""


@generic_with_default
def boundary_at_node(radius, level):
    """Return `boundary_below` at the spine node 2^level."""
    return boundary_below(radius, np.int64(1) << level, level + 1)


@generic
def boundary_between(radius, a, b, g_a, g_b, level, noise):
    """Return a lower bound on g in the middle of (a, b], given lower bounds at its ends.

    ``noise`` is that of a step, and bounds need not be much nearer than it.
    """


@generic
def reaches(radius, lead, n, level):
    """Tell whether lead >= g(n), as the formula decides it; 2^(level-1) <= n < 2^level."""


@generic
def fill_table(radius):
    """Fill the table of a radius that was just made."""


@entry_point
def tabulate(radius):
    """Call `fill_table` from Python."""
    fill_table(radius)


@inlined
def boundary_above(radius, n):
    """Return an upper bound on g(n) and all that comes before n.

    A concave g that stays positive never falls.
    """
    return _FAR_UP * exact(radius, float(n))


# ---- the paper's -------------------------------------------------------------------------------


class PaperRadius(NamedTuple):
    """The boundary g of a pass with the paper's radius."""

    walks: Any  # over how many clients the pass sums
    unit: Any  # 8 walks scale^2
    log_c: Any
    scale: Any
    # (LEVELS, PARTS + 1) logs[t, i] is L at the left end of part i of octave t; in the last column
    # is the lower bound on g at the start of the octave, a spine node: a root less for each look
    logs: Any


@fill_table.of(PaperRadius)
def _fill_logs(radius):
    for t in range(1, radius.logs.shape[0]):
        for i in range(PARTS):
            p = float(1 << (t - 1)) * (1.0 + float(i) / PARTS)
            radius.logs[t, i] = radius.log_c + 2.0 * math.log(p)
        radius.logs[t, PARTS] = boundary_below(radius, np.int64(1) << (t - 1), t)


@exact.of(PaperRadius)
def _paper_exact(radius, n):
    return boundary(n, radius.walks, radius.log_c, radius.scale)


@inlined
def _log_below(n, level, logs):
    """Return a lower bound on L, and u; 2^(level-1) <= n < 2^level."""
    start = 1 << (level - 1)
    part = ((n - start) << PART_BITS) >> (level - 1)
    p = float(start) * (1.0 + float(part) / PARTS)
    u = (float(n) - p) / p
    return logs[level, part] + u * (2.0 - u), u


@boundary_below.of(PaperRadius)
def _paper_below(radius, n, level):
    low, _ = _log_below(n, level, radius.logs)
    return _DOWN * math.sqrt(radius.unit * float(n) * low)


@boundary_at_node.of(PaperRadius)
def _paper_at_node(radius, level):
    return radius.logs[level + 1, PARTS]


@boundary_between.of(PaperRadius)
def _paper_between(radius, a, b, g_a, g_b, level, noise):
    """Bound g in the middle of an interval by the bounds at its ends, if these are near.

    g'' = -g (L^2 + 4) / (4 n^2 L^2), so |g''| >= g / (4 n^2), which falls with n: the arc stands at
    least (b - a)^2 g(b) / (32 b^2) above its chord. That is off by a further factor (b - a) / b;
    where that is more than ``noise``, the noise of a step, and so might matter, the table gives the
    bound: it costs a division and a root more.
    """
    share = float(b - a) / float(b)
    arc = share * share * g_b
    if arc * share > noise:
        return boundary_below(radius, (a + b) >> 1, level)
    return _DOWN * (0.5 * (g_a + g_b) + 0.03125 * arc)


@inner
def _paper_reaches(radius, lead, n, level):
    low, u = _log_below(n, level, radius.logs)
    high = low + (2.0 / 3.0) * u * u * u
    square = radius.unit * float(n)
    if lead < _DOWN * math.sqrt(square * low):
        return False
    if lead >= _UP * math.sqrt(square * high):
        return True
    return lead >= exact(radius, float(n))


@reaches.of(PaperRadius)
def _(radius, lead, n, level):
    return _paper_reaches(radius, lead, n, level)


# ---- any concave one ---------------------------------------------------------------------------


class ConcaveRadius(NamedTuple):
    """The boundary g of a pass with another built-in radius."""

    kind: Any  # which formula: see `formulas.exponent`
    unit: Any
    constant: Any
    shift: Any
    lift: Any  # added to the root of L
    table: Any  # (nodes, 2) g at each node of `confidence.grid`, and the slope to the next


class OwnRadius(NamedTuple):
    """The boundary g of a pass with a user's own radius."""

    function: Any  # a Numba cfunc: (n, budget) -> L(n)
    budget: Any
    unit: Any
    lift: Any
    table: Any  # as for ConcaveCurve


@exact.of(ConcaveRadius)
def _concave_exact(radius, n):
    square = radius.unit * n
    root = math.sqrt(square * exponent(radius.kind, n, radius.constant, radius.shift))
    return root + radius.lift * math.sqrt(square)


@exact.of(OwnRadius)
def _own_exact(radius, n):
    square = radius.unit * n
    return math.sqrt(square * radius.function(n, radius.budget)) + radius.lift * math.sqrt(square)


def _fill_chords(radius):
    table = radius.table
    nodes = table.shape[0]
    for j in range(nodes):
        start = float(1 << (j >> GRID_BITS))
        table[j, 0] = exact(radius, start * (1.0 + float(j & (GRID - 1)) / GRID))
    for j in range(nodes - 1):
        step = float(1 << (j >> GRID_BITS)) / GRID
        table[j, 1] = (table[j + 1, 0] - table[j, 0]) / step
    table[nodes - 1, 1] = table[nodes - 2, 1]


@inlined
def _node(n, level):
    """Return the last node at or before n, and how far n lies beyond it."""
    start = 1 << (level - 1)
    part = ((n - start) << GRID_BITS) >> (level - 1)
    p = float(start) * (1.0 + float(part) / GRID)
    return ((level - 1) << GRID_BITS) + part, float(n) - p


def _concave_below(radius, n, level):
    node, beyond = _node(n, level)
    return _FAR_DOWN * (radius.table[node, 0] + radius.table[node, 1] * beyond)


def _concave_between(radius, a, b, g_a, g_b, level, noise):
    return boundary_below(radius, (a + b) >> 1, level)


@inner
def _concave_reaches(radius, lead, n, level):
    """Bound g at n: from below by its chord, from above by the two neighbouring chords."""
    table = radius.table
    node, beyond = _node(n, level)
    if lead < _FAR_DOWN * (table[node, 0] + table[node, 1] * beyond):
        return False
    short_of = float(1 << (level - 1)) / GRID - beyond
    before = table[node, 0] + table[max(node - 1, 0), 1] * beyond
    after = table[node + 1, 0] - table[node + 1, 1] * short_of
    if lead >= _FAR_UP * min(before, after):
        return True
    return lead >= exact(radius, float(n))


def _reaches(radius, lead, n, level):
    return _concave_reaches(radius, lead, n, level)


for _class in (ConcaveRadius, OwnRadius):
    fill_table.of(_class)(_fill_chords)
    boundary_below.of(_class)(_concave_below)
    boundary_between.of(_class)(_concave_between)
    reaches.of(_class)(_reaches)


# ---- from a formula to its radius --------------------------------------------------------------


def make_radius(confidence: Confidence) -> Any:
    """Make the boundary of a pass from the formula of a radius, and fill its table."""
    radius: Any
    if confidence.kind == PAPER:
        radius = PaperRadius(
            confidence.walks,
            confidence.unit,
            confidence.constant,
            confidence.sigma,
            np.zeros((LEVELS, PARTS + 1)),
        )
    else:
        table = np.zeros(((LEVELS - 1) * GRID + 1, 2))
        if confidence.function is None:
            radius = ConcaveRadius(
                np.int64(confidence.kind),
                confidence.unit,
                confidence.constant,
                confidence.shift,
                confidence.lift,
                table,
            )
        else:
            radius = OwnRadius(
                _compiled(confidence.function),
                confidence.budget,
                confidence.unit,
                confidence.lift,
                table,
            )
    tabulate(radius)
    return radius


@cache
def _compiled(function: Callable[[float, float], float]) -> Any:
    """Compile a user's L as a C function, which kernels call without being compiled anew."""
    try:
        return cfunc("float64(float64, float64)", error_model="numpy")(function)
    except (NumbaError, TypeError, ValueError, NotImplementedError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"radius function {getattr(function, '__name__', 'given')}: Numba cannot "
            f"compile it for two floats ({reason[:160]})"
        ) from None
