"""The random words of a discrete variate, as a function of its address.

Addresses map to counters as in `normal`: (n, trial, client 2^32 + arm, stream 2^32 + position),
position = 1, 2, ...; position 0 is left to the normals. `address` is (seed, trial, client, arm,
n), the seed a uint64; values of one reward law are streams 0, 1, ... of one address.

Many variates need one word and a uniform that is compared with a probability of acceptance. A block
of four words serves three of them: the fourth word has 21 spare bits for each. They say that the
uniform lies in an interval of length 2^-21. Nearly always that is below, or above, the probability;
otherwise a further word says where.
"""

from __future__ import annotations

from numba import uint64

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.random.normal import further_words

SPARE = 21  # spare bits of a draw: a third of a word
SPARE_UNIT = 2.0**-SPARE


@inner
def words_at(address, stream, position):
    """Return four words of an address (seed, trial, client, arm, n), in a stream."""
    seed, trial, client, arm, n = address
    attempt = (uint64(stream) << uint64(32)) | uint64(position)
    return further_words(seed, trial, client, arm, n, attempt)


@inlined
def spare_bits(word, place):
    """Return the spare bits of the draw at `place` = 0, 1, 2 from a word that serves three."""
    return (word >> uint64(SPARE * place)) & uint64((1 << SPARE) - 1)
