"""The standard normal as a pure function of (seed, trial, client, arm, n).

Marsaglia and Tsang's ziggurat ("The ziggurat method for generating random variables", J. Stat.
Software 5(8), 2000) with 256 layers, fed by Philox: bits 0-7 of a word choose the layer, bits
11-63 the signed place in it. 98.8 % of words are accepted at once; the rest are settled by
further words of the same address, so that the value stays a function of the address.

How addresses map to counters: counter = (c, trial, client 2^32 + slot, attempt), key = (seed, 0).
At n = 2^t, the spine, c = n and one block serves the four arms 4 slot .. 4 slot + 3. All other
steps come in threes, which quarter an interval (a, a + 4 s], s a power of four and a a multiple of
4 s: there slot is the arm, c = a + 3 s (never a power of two, and no two such intervals share it),
and the words of the block serve a + s, a + 2 s and a + 3 s, in this order. So says attempt 0; at
later attempts c = n, slot is the arm, and the block serves that one address.
"""

from __future__ import annotations

import math

import numpy as np
from numba import uint64

from fastfed.kernels.compiling import inner
from fastfed.kernels.random.philox import philox

_LAYERS = 256
_R = 3.6541528853610088  # where the tail begins


def _tables() -> tuple[np.ndarray, np.ndarray]:
    """Tabulate the right edges of the layers, and the ratio of each next inner edge to them."""
    area = _R * math.exp(-_R * _R / 2) + math.sqrt(math.pi / 2) * math.erfc(_R / math.sqrt(2))
    edges = [area / math.exp(-_R * _R / 2), _R]
    while len(edges) < _LAYERS:
        x = edges[-1]
        edges.append(math.sqrt(-2 * math.log(area / x + math.exp(-x * x / 2))))
    edges.append(0.0)
    edge = np.array(edges)
    return edge, edge[1:] / edge[:-1]


_EDGE, _RATIO = _tables()


@inner
def unit(word):
    """Make a uniform of the upper 53 bits: never 0, and 1 only for the largest word."""
    return (np.float64(word >> uint64(11)) + 0.5) * 2.0**-53


@inner
def spine_words(seed, trial, client, slot, n):
    """Return the words of arms 4 slot .. 4 slot + 3 at step n, a power of two."""
    return philox(
        seed,
        uint64(0),
        uint64(n),
        uint64(trial),
        (uint64(client) << uint64(32)) | uint64(slot),
        uint64(0),
    )


@inner
def further_words(seed, trial, client, arm, n, attempt):
    """Return four more words for one arm, attempt = 1, 2, ..."""
    return philox(
        seed,
        uint64(0),
        uint64(n),
        uint64(trial),
        (uint64(client) << uint64(32)) | uint64(arm),
        uint64(attempt),
    )


@inner
def normal_from(word, seed, trial, client, arm, n):
    """Return the standard normal of an address whose first word is ``word``."""
    layer = np.int64(word & uint64(255))
    place = np.float64(np.int64(word) >> 11) * 2.0**-52
    if abs(place) < _RATIO[layer]:
        return place * _EDGE[layer]
    return _settle(layer, place, seed, trial, client, arm, n)


@inner
def _settle(layer, place, seed, trial, client, arm, n):
    """Decide the other 1.2 % of draws: the tail beyond R, or the wedge of a layer."""
    attempt = 0
    while True:
        attempt += 1
        w0, w1, _, _ = further_words(seed, trial, client, arm, n, uint64(attempt))
        if layer == 0:  # Marsaglia's tail: exact
            x = -math.log(unit(w0)) / _R
            if -2.0 * math.log(unit(w1)) >= x * x:
                return -(_R + x) if place < 0.0 else _R + x
            continue
        x = place * _EDGE[layer]
        outer = math.exp(-0.5 * (_EDGE[layer] * _EDGE[layer] - x * x))
        inner = math.exp(-0.5 * (_EDGE[layer + 1] * _EDGE[layer + 1] - x * x))
        if outer + unit(w0) * (inner - outer) < 1.0:
            return x
        layer = np.int64(w1 & uint64(255))
        place = np.float64(np.int64(w1) >> 11) * 2.0**-52
        if abs(place) < _RATIO[layer]:
            return place * _EDGE[layer]


@inner
def quarter_words(seed, trial, client, arm, a, s):
    """Return the words of one arm at the steps a + s, a + 2 s, a + 3 s, and a spare word.

    s is a power of four, and a is a multiple of 4 s.
    """
    return philox(
        seed,
        uint64(0),
        uint64(a + 3 * s),
        uint64(trial),
        (uint64(client) << uint64(32)) | uint64(arm),
        uint64(0),
    )


@inner
def is_power_of_four(s):
    """Tell whether a power of two is a power of four."""
    return s & 0x5555555555555555 != 0


@inner
def standard_normal(seed, trial, client, arm, n):
    """Return the standard normal of one address."""
    if n & (n - 1) == 0:
        word = spine_words(seed, trial, client, arm >> 2, n)[arm & 3]
    else:
        s = n & -n
        if not is_power_of_four(s):
            s >>= 1
        a = n & -(4 * s)
        word = quarter_words(seed, trial, client, arm, a, s)[(n - a) // s - 1]
    return normal_from(word, seed, trial, client, arm, n)
