"""Messages on a lattice: the encoding of a mean as a whole number and as bits, and the way back.

A client sends its mean of an arm after n rewards to the server. Both know three numbers: the step D
of a lattice; a dither U in [-1/2, 1/2), which is 0 for messages without dither; and m', the mean
that the server received in the round before (0 before the first round). The lattice consists of the
points D (Q - U) for whole numbers Q. The server receives the lattice point nearest to the mean:

    Q = round(mean / D + U),      m = D (Q - U).

The client sends the distance of Q from the number that the server expects,

    q = Q - round(m' / D + U),

which is small whenever the mean has not moved by many steps. `round` is to the nearest whole
number, halves up.

The numbers q = 0, -1, 1, -2, 2, ... are sent as 1, 2, 3, 4, 5, ... (zig-zag) in the Elias gamma
code: as many zeros as the number has binary digits after the first, then its digits. So 0 takes 1
bit, -1 and 1 take 3, up to 3 in absolute value 5, and in general 2 b + 1, where b is the number of
binary digits of |q|. No number is too large, so nothing ever saturates, and no code word begins
with another, so messages need no separator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator


def nearest(mean: float, step: float, dither: float) -> int:
    """Return Q, the number of the lattice point that is nearest to a mean."""
    return math.floor(mean / step + dither + 0.5)


def point(place: int, step: float, dither: float) -> float:
    """Return the point of the lattice that Q stands for."""
    return step * (place - dither)


def message(mean: float, before: float, step: float, dither: float) -> int:
    """Return q, the number that the client sends; ``before`` is the mean that the server knows."""
    return nearest(mean, step, dither) - nearest(before, step, dither)


def received(sent: int, before: float, step: float, dither: float) -> float:
    """Return m, the mean that the server receives when q is sent."""
    return point(sent + nearest(before, step, dither), step, dither)


def bits_of(sent: int) -> int:
    """Return the length of q in bits."""
    return 2 * abs(sent).bit_length() + 1


def written(sent: int) -> str:
    """Write q in bits, as text of "0" and "1"."""
    number = 2 * sent + 1 if sent > 0 else max(1, -2 * sent)
    digits = f"{number:b}"
    return "0" * (len(digits) - 1) + digits


def read(bits: Iterator[str]) -> int:
    """Read the next q from a stream of bits."""
    zeros = 0
    while next(bits) == "0":
        zeros += 1
    number = int("1" + "".join(next(bits) for _ in range(zeros)), 2)
    if number == 1:
        return 0
    return number // 2 if number % 2 else -number // 2
