"""The generator is Philox, bit for bit; the normals made of it are normal.

Statistical tests: fixed seeds, false-alarm probability 1e-6 each. None can fail by chance again,
because the generator is a pure function of its address.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fastfed.kernels.compiling import from_python, kernel
from fastfed.kernels.random import normal
from fastfed.kernels.random.philox import philox as inner_philox

ALARM = 1e-6
WORD = 2**64

philox, standard_normal, normal_from, further_words = map(
    from_python, (inner_philox, normal.standard_normal, normal.normal_from, normal.further_words)
)


def words(counter, key) -> list[int]:
    return [int(w) for w in philox(*(np.uint64(k) for k in key), *(np.uint64(c) for c in counter))]


def numpy_words(counter, key) -> list[int]:
    """NumPy adds one to the 256-bit counter, its lowest word first, before it draws."""
    before = (sum(c << (64 * i) for i, c in enumerate(counter)) - 1) % 2**256
    parts = np.array([before >> (64 * i) & (WORD - 1) for i in range(4)], dtype=np.uint64)
    generator = np.random.Philox(counter=parts, key=np.array(key, dtype=np.uint64))
    return generator.random_raw(4).tolist()


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        (
            [0] * 4,
            [0] * 2,
            [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B],
        ),
        (
            [WORD - 1] * 4,
            [WORD - 1] * 2,
            [0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0],
        ),
        (
            [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89],
            [0x452821E638D01377, 0xBE5466CF34E90C6C],
            [0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6],
        ),
    ],
)
def test_known_answers_of_random123(counter, key, answer):
    """philox4x64-10 in the kat_vectors of its authors."""
    assert words(counter, key) == answer


word = st.sampled_from([0, 1, 2**31, 2**32, 2**63, WORD - 1]) | st.integers(0, WORD - 1)


@given(st.lists(word, min_size=4, max_size=4), st.lists(word, min_size=2, max_size=2))
def test_equal_to_numpy(counter, key):
    assert words(counter, key) == numpy_words(counter, key)


def place_of(arm: int, n: int) -> tuple[int, int, int]:
    """(c, slot, index of the word) of a normal, as `normal` describes the layout."""
    if n & (n - 1) == 0:
        return n, arm // 4, arm % 4
    s = 1
    while n % (4 * s) == 0:
        s *= 4
    a = n - n % (4 * s)
    return a + 3 * s, arm, (n - a) // s - 1


def test_addresses_of_the_documented_layout():
    """Check counter = (c, trial, client 2^32 + slot, attempt) and key = (seed, 0)."""
    seed, trial, client = 2**63 + 7, 2**41 + 12, 2**20 + 5
    for n in [*range(1, 70), 2**40 - 4, 2**40 + 4, 3 * 2**40, 3 * 2**41, 2**52 - 1, 2**52]:
        for arm in (0, 3, 6):
            c, slot, index = place_of(arm, n)
            block = numpy_words([c, trial, client * 2**32 + slot, 0], [seed, 0])
            address = (np.uint64(seed), trial, client, arm, n)
            assert standard_normal(*address) == normal_from(np.uint64(block[index]), *address)
    further = further_words(np.uint64(seed), trial, client, 3, 12, 2)
    assert [int(w) for w in further] == numpy_words([12, trial, client * 2**32 + 3, 2], [seed, 0])


def test_no_two_addresses_share_a_word():
    places = [place_of(arm, n) for arm in range(9) for n in range(1, 2049)]
    assert len(set(places)) == len(places)


@kernel
def _fill(out, seed, first):
    """One normal an address: 8 arms x 64 steps x 4 clients x 2 seeds x as many trials as needed."""
    for i in range(out.size):
        j = first + i
        arm = j & 7
        n = 1 + ((j >> 3) & 63)
        client = (j >> 9) & 3
        out[i] = standard_normal(seed + np.uint64((j >> 11) & 1), j >> 12, client, arm, n)


@pytest.fixture(scope="module")
def draws() -> np.ndarray:
    out = np.empty(8_000_000)
    _fill(out, np.uint64(20_240_607), 0)
    return out


@pytest.mark.statistical
def test_frequencies_in_2000_equal_cells(draws):
    """Finer than Kolmogorov-Smirnov: a ziggurat's wedges go wrong layer by layer."""
    edges = stats.norm.ppf(np.linspace(0, 1, 2001))
    counts, _ = np.histogram(draws, bins=edges)
    assert stats.chisquare(counts).pvalue > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("sigmas", [3.6541528853610088, 4.0, 5.0])
def test_tail_counts(draws, sigmas, sign):
    expected = draws.size * stats.norm.sf(sigmas)
    count = int((sign * draws > sigmas).sum())
    assert stats.poisson.cdf(count, expected) > ALARM / 2
    assert stats.poisson.sf(count - 1, expected) > ALARM / 2


@kernel
def _fill_tail(out, word):
    for trial in range(out.size):
        out[trial] = normal_from(word, np.uint64(1), trial, 0, 0, 1)


@pytest.mark.statistical
@pytest.mark.parametrize("sign", [-1, 1])
def test_law_of_the_tail(sign):
    """Draw 400,000 variates from the tail only.

    Beyond 3.65 sigma a separate branch makes the draws. A first word at the very end of layer 0
    always leads there.
    """
    start = 3.6541528853610088
    place = 2**52 - 1 if sign > 0 else 2**52  # 53 bits in two's complement: nearly 1, or -1
    tail = np.empty(400_000)
    _fill_tail(tail, np.uint64(place << 11))
    assert (sign * tail > start).all()
    uniform = 1 - stats.norm.sf(sign * tail) / stats.norm.sf(start)
    assert stats.kstest(uniform, "uniform").pvalue > ALARM


def test_neighbouring_addresses_are_independent():
    """Correlation of Z, and of Z^2, with the normal whose address differs in one coordinate."""
    count = 60_000
    seed = 99

    def column(seed=seed, client=1, arm=2, n=5) -> np.ndarray:
        return np.array(
            [standard_normal(np.uint64(seed), trial, client, arm, n) for trial in range(count)]
        )

    here = column()
    others = {
        "seed": column(seed=seed + 1),
        "client": column(client=2),
        "arm in its block": column(arm=3),
        "arm in another block": column(arm=6),
        "step": column(n=6),
        "twice the step": column(n=10),
        "trial": np.roll(here, 1),
    }
    limit = stats.norm.isf(ALARM / (2 * len(others)) / 2) / np.sqrt(count)
    for what, there in others.items():
        assert abs(np.mean(here * there)) < limit, what
        assert abs(np.mean((here**2 - 1) * (there**2 - 1))) / 2 < 1.2 * limit, what
