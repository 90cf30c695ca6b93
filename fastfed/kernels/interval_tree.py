"""The tree of intervals of a pass: an interval of the spine, its halves, their halves."""

from __future__ import annotations

from typing import Any

from fastfed.kernels.compiling import inlined
from fastfed.kernels.memory import IS_RIGHT, LEFT, MIDDLE, RIGHT, A, B, Floats, Int, Ints, Tree
from fastfed.kernels.radii import boundary_between


@inlined
def open_left(tree: Tree, depth: Int, level: Int, radius: Any, noise: Any) -> None:
    """Open the left half of the interval at ``depth``, at depth + 1."""
    frame, g, below = tree.frame, tree.g, depth + 1
    a, b = frame[depth, A], frame[depth, B]
    frame[below, A] = a
    frame[below, B] = (a + b) // 2
    frame[below, LEFT] = frame[depth, LEFT]
    frame[below, RIGHT] = MIDDLE + depth
    frame[below, IS_RIGHT] = 0
    g[below, 0] = g[depth, 0]
    g[below, 1] = boundary_between(radius, a, b, g[depth, 0], g[depth, 1], level, noise)


@inlined
def next_interval(frame: Ints, g: Floats, depth: Int) -> Int:
    """Open the interval that follows the one at ``depth``, and return its depth; 0: none does."""
    b = frame[depth, B]
    while depth > 0 and frame[depth, IS_RIGHT] == 1:
        depth -= 1
    if depth == 0:
        return depth
    frame[depth, A] = b
    frame[depth, B] = frame[depth - 1, B]
    frame[depth, LEFT] = frame[depth, RIGHT]
    frame[depth, RIGHT] = frame[depth - 1, RIGHT]
    frame[depth, IS_RIGHT] = 1
    g[depth, 0] = g[depth, 1]
    g[depth, 1] = g[depth - 1, 1]
    return depth
