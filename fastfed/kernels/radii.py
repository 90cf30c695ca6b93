"""The boundary g of a pass: quick bounds from a table, the formula only where they do not decide.

A pass asks four things of its `Boundary`: `exact` is the formula, `boundary_below` and
`boundary_between` are lower bounds on it, and `reaches` decides as the formula does whether a lead
is g or more. `make_radius` fills the table, once for all trials. The kind of the radius is a number
and not a class. So code that is compiled for one radius serves all of them, a user's own included.

The paper's radius: g(n) = sqrt(unit n L), L = log_c + 2 ln n, unit = 8 walks scale^2. An octave,
from 2^(t-1) to 2^t, has PARTS parts whose left ends p have their L in the table. With
u = (n - p) / p, 0 <= u <= 1 / PARTS, Taylor's alternating series brackets the rest:

    u - u^2 / 2 <= ln(n / p) <= u - u^2 / 2 + u^3 / 3.

The bracket is u^3 / (3 L) of g wide: 3e-5 at most (L > 2.7, for 8 K M / delta > 16), 3e-6 for a
typical L. A bound is moved outwards by 2^-48 of itself, 16 units in the last place, past the few
roundings on the way to it and in the formula.

Any other radius needs only that g is concave. Between two nodes of the table it then lies above
their chord, and below the chords of the neighbouring nodes, continued. With GRID = 64 parts in an
octave the chord is 1 / (32 64^2) = 8e-6 of g away, the upper line twice that. These bounds are
moved outwards by 2^-42, because a user's formula may round more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cfunc
from numba.core.errors import NumbaError

from fastfed import confidence as formulas
from fastfed.confidence import GRID, GRID_BITS, OWN, PAPER, Confidence
from fastfed.errors import InputError
from fastfed.kernels.addresses import call_formula
from fastfed.kernels.compiling import entry_point, inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.memory import Floats, Int, Ints
from fastfed.kernels.tuple_references import by_reference

LEVELS = 54  # octaves, up to 2^53

PART_BITS = 4
PARTS = 1 << PART_BITS
_DOWN, _UP = 1.0 - 2.0**-48, 1.0 + 2.0**-48
_FAR_DOWN, _FAR_UP = 1.0 - 2.0**-42, 1.0 + 2.0**-42
CHORD = 1.0 - 2.0**-50  # rounds a chord down, below the rounding errors of what made it

# the table of a radius: the numbers of its formula, from NODES on lower bounds on g at the spine
# nodes 1, 2, 4, ..., and from LOGS on, for the paper's radius, L at the left end of each part of
# each octave. For others g at each node of `confidence.grid` and the slope to the next
WALKS, CONSTANT, SCALE, SHIFT, LIFT, BUDGET, NODES = range(7)
LOGS = NODES + LEVELS
_NODE_COUNT = (LEVELS - 1) * GRID + 1

boundary = inner(formulas.boundary)
exponent = inner(formulas.exponent)


class Boundary(NamedTuple):
    """The boundary g of a pass."""

    kind: Int  # which formula: see `formulas.exponent`
    unit: Any  # g(n)^2 / (n L(n))
    function: Int  # the address of a user's own L(n, budget); 0: a built-in radius
    # all other numbers
    table: Floats


class Boundaries(NamedTuple):
    """The boundaries of the clients, or of the server's questions: they differ in the table.

    Kernels make each `Boundary` of a row. So all have one type, and functions of a boundary are
    compiled once for clients and server.
    """

    kind: Int
    unit: Any
    function: Int
    tables: Floats  # (distinct tables, entries)
    table_of: Ints  # (Q,) the table of each question; (1,) that of all clients


@inlined
def boundary_of(boundaries, q):
    """Return the boundary of question q, or that of the clients: q = 0."""
    table = boundaries.tables[boundaries.table_of[q]]
    return Boundary(boundaries.kind, boundaries.unit, boundaries.function, table)


@inlined
def octave(n):
    """Return the level of n >= 1: 2^(level-1) <= n < 2^level."""
    level = np.int64(1)
    while n >> level > 0:
        level += 1
    return level


@inner
def exact(radius, n):
    """Return g(n) by the formula; n >= 1 is a float."""
    table = radius.table
    if radius.kind == PAPER:
        return boundary(n, table[WALKS], table[CONSTANT], table[SCALE])
    square = radius.unit * n
    if radius.kind == OWN:
        log = call_formula(radius.function, n, table[BUDGET])
    else:
        log = exponent(radius.kind, n, table[CONSTANT], table[SHIFT])
    return math.sqrt(square * log) + table[LIFT] * math.sqrt(square)


@inlined
def _log_below(table, n, level):
    """Return a lower bound on the paper's L, and u; 2^(level-1) <= n < 2^level."""
    start = 1 << (level - 1)
    part = ((n - start) << PART_BITS) >> (level - 1)
    p = float(start) * (1.0 + float(part) / PARTS)
    u = (float(n) - p) / p
    return table[LOGS + (level << PART_BITS) + part] + u * (2.0 - u), u


@inlined
def _node(n, level):
    """Return the place of the last node at or before n, and how far n lies beyond it."""
    start = 1 << (level - 1)
    part = ((n - start) << GRID_BITS) >> (level - 1)
    p = float(start) * (1.0 + float(part) / GRID)
    return LOGS + 2 * (((level - 1) << GRID_BITS) + part), float(n) - p


@inlined
def boundary_below(radius, n, level):
    """Return a lower bound on g(n); 2^(level-1) <= n < 2^level."""
    if radius.kind == PAPER:
        low, _ = _log_below(radius.table, n, level)
        return _DOWN * math.sqrt(radius.unit * float(n) * low)
    node, beyond = _node(n, level)
    return _FAR_DOWN * (radius.table[node] + radius.table[node + 1] * beyond)


@inlined
def boundary_at_node(radius, level):
    """Return `boundary_below` at the spine node 2^level, a root less for each look."""
    return radius.table[NODES + level]


@inlined
def boundary_between(radius, a, b, g_a, g_b, level, noise):
    """Return a lower bound on g in the middle of (a, b], given lower bounds at its ends.

    ``noise`` is that of a step: a bound that is wrong by less costs next to nothing. For the
    paper's radius g'' = -g (L^2 + 4) / (4 n^2 L^2), so |g''| >= g / (4 n^2), which falls with
    n: the arc stands at least (b - a)^2 g(b) / (32 b^2) above its chord. That is off by a
    further factor (b - a) / b; where that is more than ``noise``, and so might matter, the
    table gives the bound: it costs a division and a root more.
    """
    if radius.kind == PAPER:
        share = float(b - a) / float(b)
        arc = share * share * g_b
        if arc * share <= noise:
            return _DOWN * (0.5 * (g_a + g_b) + 0.03125 * arc)
    return boundary_below(radius, (a + b) >> 1, level)


@inner
def reaches(radius, lead, n, level):
    """Tell whether lead >= g(n), as the formula decides it; 2^(level-1) <= n < 2^level."""
    if radius.kind == PAPER:
        low, u = _log_below(radius.table, n, level)
        square = radius.unit * float(n)
        if lead < _DOWN * math.sqrt(square * low):
            return False
        if lead >= _UP * math.sqrt(square * (low + (2.0 / 3.0) * u * u * u)):
            return True
    else:
        below, above = _between_chords(radius.table, n, level)
        if lead < below:
            return False
        if lead >= above:
            return True
    return lead >= exact(radius, float(n))


@inlined
def _between_chords(table, n, level):
    """Bound g at n: from below by its chord, from above by the two neighbouring chords."""
    node, beyond = _node(n, level)
    short_of = float(1 << (level - 1)) / GRID - beyond
    before = table[node] + table[larger(node - 2, LOGS) + 1] * beyond
    after = table[node + 2] - table[node + 3] * short_of
    chord = table[node] + table[node + 1] * beyond
    return _FAR_DOWN * chord, _FAR_UP * smaller(before, after)


@inlined
def boundary_above(radius, n):
    """Return an upper bound on g(n) and all that comes before n.

    A concave g that stays positive never falls.
    """
    return _FAR_UP * exact(radius, float(n))


# ---- from a formula to its radius --------------------------------------------------------------


@entry_point
def tabulate(radius):
    """Fill the table of any radius but the paper's, from its formula's numbers, which are in it."""
    radius = by_reference(radius)
    table = radius.table
    for j in range(_NODE_COUNT):
        start = float(1 << (j >> GRID_BITS))
        table[LOGS + 2 * j] = exact(radius, start * (1.0 + float(j & (GRID - 1)) / GRID))
    for j in range(_NODE_COUNT - 1):
        step = float(1 << (j >> GRID_BITS)) / GRID
        here = LOGS + 2 * j
        table[here + 1] = (table[here + 2] - table[here]) / step
    last = LOGS + 2 * (_NODE_COUNT - 1)
    table[last + 1] = table[last - 1]
    for level in range(LEVELS - 1):
        table[NODES + level] = boundary_below(radius, np.int64(1) << level, level + 1)


@cache
def _paper_logs() -> tuple[Any, Any]:
    """Return the powers of two, and the logarithms of all entries: the same for every radius."""
    starts = np.ldexp(1.0, np.arange(LEVELS - 1))
    parts = np.outer(starts, 1.0 + np.arange(PARTS) / PARTS).ravel()
    return starts, np.array([math.log(p) for p in parts.tolist()])  # NumPy's may round otherwise


def _tabulate_paper(radius: Boundary) -> None:
    """Fill the table of the paper's radius: few entries, which nothing has to be compiled for."""
    table = radius.table
    starts, logs = _paper_logs()
    table[LOGS + PARTS :] = table[CONSTANT] + 2.0 * logs
    at_starts = table[LOGS + PARTS :: PARTS]
    table[NODES:LOGS][: LEVELS - 1] = _DOWN * np.sqrt(radius.unit * starts * at_starts)


@lru_cache(maxsize=16)
def make_radius(confidence: Confidence) -> Boundary:
    """Make the boundary of a pass from the formula of a radius, and fill its table.

    The last ones are kept: a table takes 0.25 ms, as long as a few trials of one client, and
    `fastfed.theory.importance_sampling` makes a hundred jobs with the same radius.
    """
    own = confidence.function is not None
    entries = LEVELS * PARTS if confidence.kind == PAPER else 2 * _NODE_COUNT
    table = np.zeros(LOGS + entries)
    table[[WALKS, CONSTANT, SCALE]] = confidence.walks, confidence.constant, confidence.sigma
    table[[SHIFT, LIFT, BUDGET]] = confidence.shift, confidence.lift, confidence.budget
    radius = Boundary(
        np.int64(OWN if own else confidence.kind),
        confidence.unit,
        np.int64(_compiled(confidence.function).address if confidence.function else 0),
        table,
    )
    (_tabulate_paper if radius.kind == PAPER else tabulate)(radius)
    return radius


def make_boundaries(radii: Sequence[Confidence]) -> Boundaries:
    """Make the boundaries of some radii, with one table for equal ones."""
    distinct = list(dict.fromkeys(radii))
    made = [make_radius(one) for one in distinct]
    places = {one: place for place, one in enumerate(distinct)}
    return Boundaries(
        made[0].kind,
        made[0].unit,
        made[0].function,
        np.stack([one.table for one in made]),
        np.array([places[one] for one in radii], np.int64),
    )


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
