"""The presence of a client in a communication round, as a pure function of its address.

The key of the generator is (seed, 2); dithers have (seed, 1) and all rewards (seed, 0), so that no
word serves twice. One block, of the counter (n, trial, slot, 0), serves the clients 4 slot ..
4 slot + 3 in the round at step n. Schedules that share a step share its clients.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from fastfed.kernels.compiling import kernel
from fastfed.kernels.random.philox import philox

_KEY = uint64(2)
BITS = 53
"""A probability is a whole number of units 2^-BITS."""


def share_of(probability: float) -> np.uint64:
    """Return a probability, times 2^BITS."""
    return np.uint64(round(probability * 2**BITS))


@kernel
def presence_words(seed, trial, slot, n):
    """Return the words of clients 4 slot .. 4 slot + 3 in the round at step n."""
    return philox(seed, _KEY, uint64(n), uint64(trial), uint64(slot), uint64(0))


@kernel
def presence_from(word, share):
    """Tell whether the client of a word takes part; ``share`` is its probability, times 2^BITS."""
    return word >> uint64(64 - BITS) < uint64(share)


@kernel
def presence_of(seed, trial, client, n, share):
    """Tell whether a client takes part in the round at step n."""
    return presence_from(presence_words(seed, trial, client >> 2, n)[client & 3], share)


@kernel
def presence_table(seed, trial, rounds, share, out):
    """Set out[i, m] to whether client m takes part in the round at step rounds[i]."""
    for i in range(out.shape[0]):
        for m in range(out.shape[1]):
            out[i, m] = presence_of(seed, trial, m, rounds[i], share)
