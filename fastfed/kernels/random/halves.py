"""Random halves: the number of s marked items in the first half of 2 N, in random order.

This is the symmetric hypergeometric law, p(k) = C(s, k) C(2 N - s, N - k) / C(2 N, N), and it is
drawn as a pure function of an address from a word, 21 spare bits (see `words`), and, rarely,
further words. Let s <= N (otherwise the unmarked items are counted) and t = k - s / 2, which is a
whole number or, for odd s, half of one. The law is symmetric in t.

N up to 64: inversion. Cumulative probabilities, the likeliest outcome first, are tabulated as
thresholds for a 64-bit word. N is a power of two here, elsewhere it is any whole number.

Up to 64 marked items: s random bits have a binomial number k of ones, and p(k) differs from that
law by the factor C(2 N - s, N - k), largest in the middle. So k is accepted with probability
C(2 N - s, N - k) / C(2 N - s, N - floor(s / 2)), which is the product of

    (c - i) / (c + 1 + i)  over i = 0 .. |t| - 1,              c = N - s / 2,            s even,
    (c - i) / (c + 2 + i)  over i = 0 .. |t| - 3/2,            c = N - (s + 1) / 2,      s odd,

and at least 1 - t^2 / (N - s / 2 + 1), because a product of numbers 1 - x_i in [0, 1] is at least
1 - sum x_i, and the x_i add up to at most that. 71 % are accepted in the worst case, s = N = 64.

More: a rounded normal. With A = s / 2 and B = N - A, ln p(t) = const - H(A, t) - H(B, t), where
H(c, t) = ln Gamma(c + t + 1) + ln Gamma(c - t + 1). Its second derivative is psi'(c + 1 + t) +
psi'(c + 1 - t) >= 2 psi'(c + 1), because the trigamma function psi' is convex. Since psi'(z) >=
1 / z + 1 / (2 z^2) >= 1 / (z - 0.4) for z >= 2.5, it follows, with p scaled to be 1 at t = 0, that

    p(t) <= exp(-t^2 / (2 v)),    1 / (2 v) = 1 / (A + 0.6) + 1 / (B + 0.6).

Let sigma = sqrt(v), x = (sigma + 1/4) Z with a standard normal Z, and t the whole number (or half
of an odd one) nearest to x, so that |x| <= |t| + 1/2. Then

    Z^2 / 2 - t^2 / (2 v) <= (|t| + 1/2)^2 / (2 (sigma + 1/4)^2) - t^2 / (2 sigma^2)
                          <= 1 / (4 sigma + 1/2)

(a parabola in |t| with its top at |t| = v / (sigma + 1/8)). So p(t) exp(Z^2 / 2 - 1 / (4 sigma +
1/2)) is a probability, and to accept t with it gives the law, exactly. About 1 - 0.5 / sigma are
accepted, 84 % in the worst case. ln p(t) comes from a table of ln Gamma, or, where an argument is
not below 1024, from Stirling's series: with q = (t / c)^2,

    H(c, t) - H(c, 0) = t^2 / c (1 + sum over i >= 1 of q^i / ((i + 1) (2 i + 1)))
                        - (q + q^2 / 2 + q^3 / 3 + q^4 / 4 + ...) / 2
                        + q / (6 c) (1 + q + q^2 + ...) - q / (30 c^3) + ...

Most draws need none of this. On the other side psi'(z) <= 1 / (z - 1/2), so that with C = c + 1/2
and |t| <= C / 2 the rise of H is at most t^2 / C (1 + (2/9) (t / C)^2). Put |t| <= |x| + 1/2 into
it: for |Z| < 2 and sigma > 2.8 the probability of acceptance is at least 1 - `shortfall` / sigma
(the tests compare the two), and a uniform below that needs no logarithm.

Nearly a half (`near_half`): d of T items, where d is near T / 2. Where s items are few, everything
holds as above with C(T - s, d - k) in place of C(2 N - s, N - k). Otherwise psi'(k + 1) + psi'(s -
k + 1) >= 2 psi'(s / 2 + 1) for every k, again by convexity, and likewise for the other two cells:
the logarithm of p bends at least as much as that of exp(-t^2 / (2 v)), with the same v, all over.
So the hat fits around the place m where p is largest among real numbers. That is mu = (s + 1)
(d + 1) / (T + 2) - 1/2 up to a slope b of ln p there, |b| <= 1 / (12 (c + 1/2)^2) with c the
smallest cell at mu, because psi(z + 1) is between ln(z + 1/2) and ln(z + 1/2) + 1 / (24 (z +
1/2)^2). A slope moves the top of the parabola: with e = |b| (sigma + 1/4)^2 the bound becomes
(1 + 2 e)^2 / (4 sigma + 1/2), and e < 0.01 for s > 64 and |2 d - T| <= T / 10. ln p is counted from
the whole number nearest to mu, where it is at most 0.15 / v smaller than at mu.

How far a draw may be from the law, in total variation; HALF_ERROR + HALF_ERROR_A_SIGMA sigma covers
every branch:

* tables: each of at most 64 thresholds is rounded by 2^-65 at most: 2^-59;
* ones among bits: the words are exact, the product of some 64 factors has a relative error of
  130 x 2^-53, the uniform that is compared with it one of 2^-53; the acceptance is above 0.7:
  3e-14;
* normal: ln p(t) + Z^2 / 2 is wrong by at most 3e-13 where |Z| < 5 (the tests compare it with 60
  digits), which moves the law by at most as much; beyond that lie 6e-7 of all draws, where it is
  wrong by at most 1e-11. The normal has 2^53 places in each layer of its ziggurat, so they are at
  most 2^-50 apart, and x is rounded by no more than that relative to its size: the border of a cell
  may be off by 2^-49, where the cell is 1 / (sigma + 1/4) wide in Z, and a cell has two borders.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types, uint64
from numba.extending import intrinsic

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.random.discrete import hypergeometric, hypergeometric_cells, log_ratio
from fastfed.kernels.random.normal import further_words, normal_from, unit
from fastfed.kernels.random.words import SPARE_UNIT

HALF_ERROR = 4e-13
HALF_ERROR_A_SIGMA = 2.0**-48

_TABULATED = 64  # half of the longest interval that has a table
_BITS = 64  # marked items whose places are the bits of one word
_ATTEMPTS = 16  # then the general hypergeometric variate is drawn instead: 0.3^16 is 4e-9
_UNDECIDED = np.int64(-1)
_TAG = 53  # attempt i for value v at step n, at most 2^52, stands at n + (16 (v + 1) + i) 2^53
_STREAMS = 62  # so many values have a tag
_ACCURATE = 2**44  # up to so many items mu is right to 0.01


def _thresholds() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Tabulate, for N = 1, 2, 4, .. and s <= N, the thresholds of the i likeliest outcomes.

    A row has i = 1 .. s. The second array has the start of the row of (N, s), at [N + s].
    """
    rows: list[int] = []
    begin = np.zeros(2 * _TABULATED + 1, np.int64)
    half = 1
    while half <= _TABULATED:
        for s in range(1, half + 1):
            # rows of N begin at N + 1, and those of 2 N at 2 N + 1, after the last one, N + N
            begin[half + s] = len(rows)
            reached = Fraction(0)
            for i in range(s):
                k = s // 2 + ((i + 1) // 2 if i % 2 else -(i // 2))
                ways = math.comb(s, k) * math.comb(2 * half - s, half - k)
                reached += Fraction(ways, math.comb(2 * half, half))
                rows.append(min(round(reached * 2**64), 2**64 - 1))
        half *= 2
    return np.array(rows, np.uint64), begin


_THRESHOLD, _BEGIN = _thresholds()

_TABLE = 1024
_SHIFT = math.log(_TABLE) - 1.0


def _shifted_log_gammas() -> npt.NDArray[np.float64]:
    """Tabulate ln Gamma(j / 2 + 1) - shift j / 2 at [j].

    The shift drops out of every sum in use. It leaves numbers within 380 of 0, whose last bit is
    6e-14.
    """
    table = [
        Fraction(0),
        Fraction(math.log(math.pi)) / 2 - Fraction(math.log(2)) - Fraction(_SHIFT) / 2,
    ]
    for j in range(2, 2 * _TABLE):
        table.append(table[j - 2] + Fraction(math.log(j / 2)) - Fraction(_SHIFT))
    return np.array([float(value) for value in table])


_LOG_GAMMA = _shifted_log_gammas()


@intrinsic
def ones(typing_context, word):
    """Count the ones in a word, by one machine instruction."""
    signature = types.int64(types.uint64)

    def generate(context, builder, signature, arguments):
        (value,) = arguments
        count = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)])
        return builder.call(count, [value])

    return signature, generate


@inner
def half(marked, length, word, spare, address):
    """Draw the number of `marked` items among the first `length` of 2 `length` items.

    `length` is a power of two, or above 64. `word` is a random word, `spare` has 21 random bits,
    and further words are those of `address`, (seed, trial, client, arm, n).
    """
    few = smaller(marked, 2 * length - marked)
    if few == 0:
        k = np.int64(0)
    elif length <= _TABULATED:
        k = _from_table(few, length, word)
    elif few <= _BITS:
        k = _from_bits(few, 2 * length, length, word, spare, address, np.int64(0))
    else:
        k = _from_normal(few, length, word, spare, address)
    if k == _UNDECIDED:
        k = hypergeometric(few, 2 * length - few, length, address, np.int64(0))
    return k if few == marked else length - k


@inner
def near_half(marked, total, draws, word, spare, address, stream):
    """Draw the number of `marked` items among `draws` of `total`, `draws` near total / 2.

    If it is not near enough, the general variate is used. Values of one address have different
    streams.
    """
    few = smaller(marked, total - marked)
    excess = abs(2 * draws - total)
    if few == 0:
        k = np.int64(0)
    elif few <= _BITS and 2.0 * float(excess) * float(excess) <= float(total) and stream < _STREAMS:
        k = _from_bits(few, total, draws, word, spare, address, stream)
    elif few > _BITS and 10 * excess <= total <= _ACCURATE and stream < _STREAMS:
        k = _from_near_normal(few, total, draws, word, spare, address, stream)
    else:
        k = _UNDECIDED
    if k == _UNDECIDED:
        k = hypergeometric(few, total - few, draws, address, stream)
    return k if few == marked else draws - k


@inlined
def _from_table(s, length, word):
    row = _BEGIN[np.uint64(length + s)]
    i = np.int64(0)
    while i < s and word >= _THRESHOLD[np.uint64(row + i)]:
        i += 1
    step = (i + 1) >> 1
    return (s >> 1) + (step if i & 1 else -step)


@inner
def log_share_of(s, length, k):
    """Return ln p(k), scaled to be 0 at k = s / 2."""
    t = float(k) - 0.5 * float(s)
    square = t * t
    rest = 2 * length - s
    a = larger(k, s - k)
    b = larger(length - k, rest - length + k)
    if a < _TABLE:
        rise = (
            _LOG_GAMMA[np.uint64(2 * k)]
            + _LOG_GAMMA[np.uint64(2 * (s - k))]
            - 2.0 * _LOG_GAMMA[np.uint64(s)]
        )
    else:
        rise = _log_rise(0.5 * float(s), square)
    if b < _TABLE:
        return -(
            rise
            + _LOG_GAMMA[np.uint64(2 * (length - k))]
            + _LOG_GAMMA[np.uint64(2 * (rest - length + k))]
            - 2.0 * _LOG_GAMMA[np.uint64(rest)]
        )
    return -(rise + _log_rise(0.5 * float(rest), square))


@inner
def shortfall(z):
    """Bound sigma (1 - the probability of acceptance) from above, for 0 <= z = |Z| < 2."""
    return 0.4 + z * (0.6 + z * (0.3 + 0.03 * z * z))


@inlined
def _log_rise(c, square):
    """Return H(c, t) - H(c, 0) by Stirling's series, from the square of t."""
    w = 1.0 / c
    q = square * w * w
    main = 1 / 45 + q * (1 / 66 + q * (1 / 91 + q * (1 / 120 + q / 153)))
    main = square * w * (1.0 + q * (1 / 6 + q * (1 / 15 + q * (1 / 28 + q * main))))
    root = q * (0.5 + q * (0.25 + q * (1 / 6 + q * (0.125 + q * (0.1 + q * (1 / 12))))))
    return main - root + w * q * (1 / 6 * (1.0 + q * (1.0 + q * (1.0 + q))) - w * w * (1 / 30))


@inlined
def _share_of_bits(rest, twice):
    """Return C(rest, j) over the largest such number, where twice = |2 j - rest|."""
    odd = rest & 1
    c = float((rest - odd) >> 1)
    over, under = 1.0, 1.0
    for i in range(twice >> 1):
        over *= c - float(i)
        under *= c + 1.0 + float(odd + i)
        if under > 1e200:
            over *= 1e-200
            under *= 1e-200
    return over / under


@inlined
def _tagged(n, stream, attempt):
    return n + ((_ATTEMPTS * (stream + 1) + attempt) << _TAG)


@inlined
def _further(address, stream, attempt):
    seed, trial, client, arm, n = address
    return further_words(seed, trial, client, arm, _tagged(n, stream, attempt), uint64(0))


@inner
def _from_bits(s, total, draws, word, spare, address, stream):
    low, width = SPARE_UNIT * float(spare), SPARE_UNIT
    rest = total - s
    middle = 0.5 * float(rest) + 1.0
    for attempt in range(1, _ATTEMPTS):
        k = ones(word >> uint64(_BITS - s))
        twice = abs(2 * (draws - k) - rest)
        t = 0.5 * float(twice)
        if (low + width) * middle <= middle - t * t:
            return k
        share = _share_of_bits(rest, twice)
        if low + width <= share:
            return k
        words = _further(address, stream, attempt)
        if low < share and low + width * unit(words[2]) < share:
            return k
        word, low, width = words[0], unit(words[1]), 0.0
    return _UNDECIDED


@inner
def _from_normal(s, length, word, spare, address):
    seed, trial, client, arm, n = address
    low, width = SPARE_UNIT * float(spare), SPARE_UNIT
    stream = np.int64(0)
    a = 0.5 * float(s) + 0.6
    b = float(length) + 1.2 - a
    sigma = math.sqrt(a * b * (0.5 / (float(length) + 1.2)))
    # x is moved so that `floor` finds the nearest of the whole numbers, or of halves of odd ones
    shift = 0.5 if s & 1 == 0 else 1.0
    for attempt in range(_ATTEMPTS):
        z = normal_from(word, seed, trial, client, arm, _tagged(n, stream, attempt))
        k = np.int64(math.floor((sigma + 0.25) * z + shift)) + (s >> 1)
        square = z * z
        share = -1.0
        if square < 4.0 and (1.0 - width - low) * sigma >= shortfall(abs(z)):
            return k
        if 0 <= k <= s:
            log_share = log_share_of(s, length, k) + 0.5 * square - 1.0 / (4.0 * sigma + 0.5)
            share = math.exp(log_share)
            if low + width <= share:
                return k
        words = _further(address, stream, attempt)
        if low < share and low + width * unit(words[2]) < share:
            return k
        word, low, width = words[0], unit(words[1]), 0.0
    return _UNDECIDED


@inner
def near_shortfall(z, sigma, lean):
    """Bound the `shortfall` of `near_half`; lean = |2 d - T| / T."""
    return shortfall(z) + 0.1 + lean * z * z * (0.5 * z + 0.6 * sigma * lean)


@inner
def near_log_share(s, total, draws, t):
    """Return ln p(k) less ln p at the whole number nearest to mu, t away from there."""
    cells = hypergeometric_cells(smaller(s, draws), larger(s, draws), total)
    return log_ratio(cells[0], cells[1], cells[2], cells[3], cells[4], t)


@inner
def _from_near_normal(s, total, draws, word, spare, address, stream):
    if 2 * draws <= total:
        return _from_near_normal_below(s, total, draws, word, spare, address, stream)
    # what is not drawn is less than half
    k = _from_near_normal_below(s, total, total - draws, word, spare, address, stream)
    return k if k == _UNDECIDED else s - k


@inner
def _from_near_normal_below(s, total, draws, word, spare, address, stream):
    seed, trial, client, arm, n = address
    low, width = SPARE_UNIT * float(spare), SPARE_UNIT
    a = 0.5 * float(s) + 0.6
    b = 0.5 * float(total) + 1.2 - a
    v = a * b / (float(total) + 2.4)
    sigma = math.sqrt(v)
    nearest = float(s + 1) * (float(draws + 1) / float(total + 2))  # mu + 1/2
    lean = float(total - 2 * draws) / float(total)
    for attempt in range(_ATTEMPTS):
        z = normal_from(word, seed, trial, client, arm, _tagged(n, stream, attempt))
        k = np.int64(math.floor((sigma + 0.25) * z + nearest))
        square = z * z
        share = -1.0
        if square < 4.0 and (1.0 - width - low) * sigma >= near_shortfall(abs(z), sigma, lean):
            return k
        if 0 <= k <= smaller(s, draws):
            t = float(k - np.int64(math.floor(nearest)))
            share = math.exp(
                near_log_share(s, total, draws, t)
                + 0.5 * square
                - 0.15 / v
                - 1.0404 / (4.0 * sigma + 0.5)
            )
            if low + width <= share:
                return k
        words = _further(address, stream, attempt)
        if low < share and low + width * unit(words[2]) < share:
            return k
        word, low, width = words[0], unit(words[1]), 0.0
    return _UNDECIDED
