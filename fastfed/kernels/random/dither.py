"""The dither of a message: a uniform in (-1/2, 1/2), as a pure function of its address.

Client and server both know it, and it is independent of all rewards. The key of the generator is
(seed, 1) where every other word of a trial has the key (seed, 0), so that no word serves twice.
One block, of the counter (n, trial, client 2^32 + slot, 0), serves the arms 4 slot .. 4 slot + 3.
"""

from __future__ import annotations

from numba import uint64

from fastfed.kernels.compiling import kernel
from fastfed.kernels.random.normal import unit
from fastfed.kernels.random.philox import philox

_KEY = uint64(1)


@kernel
def dither_words(seed, trial, client, slot, n):
    """Return the words of arms 4 slot .. 4 slot + 3 at step n."""
    return philox(
        seed,
        _KEY,
        uint64(n),
        uint64(trial),
        (uint64(client) << uint64(32)) | uint64(slot),
        uint64(0),
    )


@kernel
def dither_from(word):
    """Return the dither that a word gives."""
    return unit(word) - 0.5


@kernel
def dither_of(seed, trial, client, arm, n):
    """Return the dither of one arm's message at step n."""
    return dither_from(dither_words(seed, trial, client, arm >> 2, n)[arm & 3])
