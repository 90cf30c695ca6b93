"""The steps at which adaptive schedules communicate: those of seven significant binary digits.

Between 2^t and 2^(t+1) lie PARTS steps of the grid, and below 2 PARTS every step is on it. To wait
for the next step of the grid makes a time later by 1 / PARTS at most, and by half of that on
average. A simulation reaches a step of the grid by six halvings of an octave, however large the
step is.

A *place* counts the steps of the grid from 0 on. The first two functions use integers only, so that
Numba can compile them as they stand.
"""

from __future__ import annotations

PARTS = 64


def step_at(place: int) -> int:
    """Return the step of the grid at ``place``."""
    shift = max(place // PARTS - 1, 0)
    return (place - shift * PARTS) << shift


def place_until(n: int) -> int:
    """Return the place of the last step of the grid at or before n."""
    shift = 0
    while n >> shift >= 2 * PARTS:
        shift += 1
    return shift * PARTS + (n >> shift)


def place_from(n: int) -> int:
    """Return the place of the first step of the grid at or after n >= 1."""
    return place_until(n - 1) + 1
