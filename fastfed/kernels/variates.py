"""Binomial and hypergeometric variates as pure functions of an address, and counts made of them.

A walk of rewards with V values is the vector of how often each value has come so far. It is
extended by a multinomial draw and split by a multivariate hypergeometric one, value by value:

    X(2 half)[v] = X(half)[v] + what falls to v of `half` independent rewards        (extend)
    X(middle)[v] = X(left)[v] + what falls to v of a random half of the interval     (split)

The large draws. All laws here are log-concave, with mode m. At the points m - w and m + w, about
1.7 standard deviations out, the tangents of ln p(k) / p(m) lie above it everywhere; so does the
hat that is 1 between the places where they cross 0 and falls by half every B cells beyond them,
B = ln 2 / slope rounded up. A word picks a cell of the hat by its whole product with the number
of cells, in integers; a second word accepts it with probability p(k) / (p(m) hat(k)), 0.74 on
average. Small means: inversion from 0. Four items or fewer: each is placed by a word of its own.

How p(k) / p(m) keeps its digits. ln n! itself is useless here: at n = 2^40 it is 3e13, its last
bit 4e-3. With t = k - m and Loader's Stirling error d(n) = ln n! - ln(sqrt(2 pi n) n^n e^-n)
("Fast and accurate computation of binomial probabilities", 2000), v = t / (2 c + t) and
r = ln(1 + t / c) - 2 v = 2 (v^3 / 3 + v^5 / 5 + ...),

    ln (c + t)! / c! = t ln c + (t + 1) v + (c + t + 1/2) r + d(c + t) - d(c),

where every term but the first is of the size of the logarithm wanted. The first ones cancel over
the two (binomial) or four (hypergeometric) cells c up to t tilt, with tilt ln of a ratio that is
1 + e / (product of cells), and e = m - n p or m total - good draws is computed without rounding.

What is left of error: 1e-13 or less in ln p(k) / p(m) where that is above -40 (tested against
50 digits, up to counts of 2^52); 2^-64 times the number of cells, 2^-42 at 2^40, from picking
one; 2^-53 where a uniform decides. `p` is taken for the double that it is: that a probability
such as 0.1 is no double shifts a binomial's mean by up to 2^-54 sqrt(n p / q) standard
deviations, 2^-34 at n = 2^40.

Addresses map to counters as in `normal`: (n, trial, client 2^32 + arm, stream 2^32 + position),
position = 1, 2, ... Position 0 is left to the normals. `address` = (seed, trial, client, arm, n).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import uint64

from fastfed.kernels.compiling import kernel
from fastfed.kernels.normal import further_words, unit
from fastfed.kernels.philox import _multiply

_LN2 = math.log(2.0)
_TOUCH = 1.7  # standard deviations from the mode to a tangent: the hat of a normal is least there
_PLACED = 4  # so many items or fewer are placed one by one: the words of one block
_INVERTED = 8.0  # below this mean inversion from 0 is quicker, and cells would be too few to trust
_LONGEST = 128  # of an inversion: 2^-53 is passed long before
_SELECTED = 16  # an interval no longer than this is split item by item
_NO_CELL = 1e300  # a cell so large that it drops out: a binomial has two cells, not four
_TWO_PI = 2.0 * math.pi
_TABLE = 1024
_SHIFT = math.log(_TABLE) - 1.0
# ln n! - shift n, which stays within 380 of 0 and so has its last bit at 6e-14; and ln n - shift
_FACTORIAL = np.array([math.lgamma(n + 1) - _SHIFT * n for n in range(_TABLE)])
_LOG = np.array([0.0] + [math.log(n) - _SHIFT for n in range(1, _TABLE)])


@kernel
def _words(address, stream, position):
    seed, trial, client, arm, n = address
    attempt = (uint64(stream) << uint64(32)) | uint64(position)
    return further_words(seed, trial, client, arm, n, attempt)


@kernel
def _stirling_error(n):
    """d(n), n >= 1."""
    x = 1.0 / (n * n)
    return (1 / 12 - x * (1 / 360 - x * (1 / 1260 - x * (1 / 1680 - x / 1188)))) / n


@kernel
def _log_rise(c, t):  # type: ignore[no-untyped-def]
    """ln (c + t)! / c! - t ln c, for c >= 1, c + t >= 0, all whole."""
    after = c + t
    if max(c, after) < _TABLE:
        before = np.uint32(c)
        return _FACTORIAL[np.uint32(after)] - _FACTORIAL[before] - t * _LOG[before]
    span = after + c
    inverse = 1.0 / (c * after * span)  # one division makes three
    v = t * (c * after * inverse)
    w = v * v
    if w < 0.01:
        x, y = c * span * inverse, after * span * inverse
        r = v * w * (2 / 3 + w * (2 / 5 + w * (2 / 7 + w * (2 / 9 + w * (2 / 11 + w * (
            2 / 13 + w * (2 / 15 + w * (2 / 17))))))))
        d = (x - y) * (1 / 12 - (x * x + x * y + y * y) * (1 / 360))
        return (t + 1.0) * v + (after + 0.5) * r + d
    if after == 0.0:
        return c - 0.5 * math.log(_TWO_PI * c) - _stirling_error(c)
    r = math.log(after / c) - 2.0 * v
    return (t + 1.0) * v + (after + 0.5) * r + (_stirling_error(after) - _stirling_error(c))


@kernel
def log_ratio(c1, c2, c3, c4, tilt, t):
    """ln p(m + t) / p(m) of a law whose cells at m are c1, c2, c3, c4 and at m + t are c1 + t,
    c2 - t, c3 - t, c4 + t."""
    total = _log_rise(c1, t) + _log_rise(c2, -t)
    if c4 < _NO_CELL:
        total += _log_rise(c3, -t) + _log_rise(c4, t)
    return -total - t * tilt


@kernel
def _tangent(c1, c2, c3, c4, tilt, w, slack):  # type: ignore[no-untyped-def]
    """Where to the right of the mode the hat leaves 1, how many cells halve it, and the height
    ln p(m + w) / p(m) of the point it touches."""
    height = log_ratio(c1, c2, c3, c4, tilt, w)
    ratio = (1.0 - w / c2) * (1.0 - w / c3) / ((1.0 + (w + 1.0) / c1) * (1.0 + (w + 1.0) / c4))
    slope = tilt - math.log(ratio)
    return np.int64(w + height / slope + slack) + 1, np.int64(_LN2 / slope + slack) + 1, height


@kernel
def _from_mode(c1, c2, c3, c4, tilt, deviation, address, stream):  # type: ignore[no-untyped-def]
    """A variate's distance from the mode, by rejection from the halving hat."""
    w = float(math.floor(_TOUCH * deviation)) + 1.0
    # in cells, more than a slope that is off by 4e-16 can do
    slack = 1e-9 + 1e-15 * deviation * deviation
    right, halving_right, low_right = _tangent(c1, c2, c3, c4, tilt, w, slack)
    left, halving_left, low_left = _tangent(c2, c1, c4, c3, -tilt, w, slack)
    flat = left + right - 1
    cells = uint64(flat + 2 * (halving_left + halving_right))
    position = 0
    while True:
        position += 1
        words = _words(address, stream, position)
        for i in range(0, 4, 2):
            high, low = _multiply(words[i], cells)
            place = np.int64(high)
            u = unit(words[i + 1])
            lift = 0.0  # ln 1 / hat
            if place < flat:
                t = place - (left - 1)
                # the chord from the mode to where the tangent touches lies below, and ln u < u - 1
                chord = low_right * float(t) if t > 0 else -low_left * float(t)
                if (u - 1.0) * w <= chord and abs(t) <= w:
                    return t
            else:
                place -= flat
                on_right = place < 2 * halving_right
                halving = halving_right if on_right else halving_left
                start = right if on_right else left
                if not on_right:
                    place -= 2 * halving_right
                while place >= halving:  # the second half of a tail is a tail of half the height
                    place = 2 * (place - halving) + np.int64(low >> uint64(63))
                    low <<= uint64(1)
                    start += halving
                    lift += _LN2
                t = start + place if on_right else -(start + place)
            x = float(t)
            if x < -c1 or x > c2 or x > c3 or x < -c4:
                continue
            bound = log_ratio(c1, c2, c3, c4, tilt, x) + lift
            # 1 - 1 / u <= ln u <= u - 1 settles most without a logarithm
            if u - 1.0 <= bound or (u * (1.0 - bound) <= 1.0 and math.log(u) <= bound):
                return t


@kernel
def _product_error(a, b, product):
    """a b - product without rounding, product = a b rounded (Dekker 1971)."""
    big = 134217729.0 * a
    a_high = big - (big - a)
    big = 134217729.0 * b
    b_high = big - (big - b)
    a_low, b_low = a - a_high, b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@kernel
def binomial_cells(count, p):
    """The mode's cells and tilt, as `log_ratio` takes them; 0 < p <= 1/2, count <= 2^52."""
    n = float(count)
    product = n * p
    m = float(math.floor(product + p))
    excess = (m - product) - _product_error(n, p, product)
    return m, n - m, _NO_CELL, _NO_CELL, math.log1p(excess / ((n - m) * p))


@kernel
def hypergeometric_cells(good, draws, total):
    """The same, for good <= draws <= total / 2, total <= 2^53."""
    g, d, n = float(good), float(draws), float(total)
    m = float(math.floor((g + 1.0) * (d + 1.0) / (n + 2.0)))
    # both products overflow, their difference does not
    excess = np.int64(uint64(np.int64(m)) * uint64(total) - uint64(good) * uint64(draws))
    return m, g - m, d - m, n - g - d + m, math.log1p(float(excess) / ((g - m) * (d - m)))


@kernel
def binomial(count, p, address, stream):
    """How many of `count` independent trials succeed, each with probability p; count <= 2^52."""
    if p > 0.5:
        return count - binomial_below(count, 1.0 - p, address, stream)
    return binomial_below(count, p, address, stream)


@kernel
def binomial_below(count, p, address, stream):
    """`binomial` for p <= 1/2."""
    n = float(count)
    if count == 0 or p <= 0.0:
        return np.int64(0)
    if n * p >= _INVERTED:
        c1, c2, c3, c4, tilt = binomial_cells(count, p)
        deviation = math.sqrt(n * p * (1.0 - p))
        return np.int64(c1) + _from_mode(c1, c2, c3, c4, tilt, deviation, address, stream)
    odds = p / (1.0 - p)
    share = math.exp(n * math.log1p(-p))
    u = unit(_words(address, stream, 1)[0])
    k = 0
    while u > share and k < min(count, _LONGEST):
        u -= share
        share *= odds * (n - k) / (k + 1.0)
        k += 1
    return np.int64(k)


@kernel
def hypergeometric(good, bad, draws, address, stream):
    """How many of `draws` items, drawn at random out of good + bad <= 2^53, are good."""
    total = good + bad
    few = min(good, bad)
    # fewer than half of the items are of the kind counted, fewer than half are drawn
    k = _hypergeometric_below(few, min(draws, total - draws), total, address, stream)
    if draws > total - draws:
        k = few - k
    return k if good <= bad else draws - k


@kernel
def hypergeometric_half(successes, total, address, stream):
    """How many of `successes` are in the first half of `total` items in random order."""
    return hypergeometric(successes, total - successes, total // 2, address, stream)


@kernel
def _hypergeometric_below(kind, draws, total, address, stream):
    """`hypergeometric` with neither `kind` nor `draws` above total / 2."""
    good = min(kind, draws)  # the law is the same with the two exchanged
    draws = max(kind, draws)
    if good == 0:
        return np.int64(0)
    if good <= _PLACED:
        words = _words(address, stream, 1)
        k = np.int64(0)
        for i in range(good):
            high, _ = _multiply(words[i], uint64(total - i))
            if np.int64(high) < draws - k:
                k += 1
        return k
    g, d, n = float(good), float(draws), float(total)
    if g * d >= _INVERTED * n:
        c1, c2, c3, c4, tilt = hypergeometric_cells(good, draws, total)
        deviation = math.sqrt(g * (d / n) * (1.0 - g / n) * (1.0 - d / n))
        return np.int64(c1) + _from_mode(c1, c2, c3, c4, tilt, deviation, address, stream)
    # p(0) = (n - g)! (n - d)! / (n! (n - d - g)!)
    share = math.exp(_log_rise(n, -g) - _log_rise(n - d, -g) + g * math.log1p(-d / n))
    u = unit(_words(address, stream, 1)[0])
    k = 0
    while u > share and k < min(good, _LONGEST):
        u -= share
        share *= (g - k) * (d - k) / ((k + 1.0) * (n - g - d + k + 1.0))
        k += 1
    return np.int64(k)


def shares(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Of what is left when values 0 .. v - 1 have had theirs, the share of value v; weights
    (..., V), in any unit. The last value with a weight gets exactly 1."""
    left = np.cumsum(weights[..., ::-1], axis=-1)[..., ::-1]
    return np.divide(weights, left, out=np.zeros_like(left), where=weights > 0)


@kernel
def extend_counts(before, shares, half, address, out):
    """out = before + how `half` further rewards fall on the values; all (V,)."""
    left = half
    for v in range(shares.shape[0]):
        count = np.int64(0)
        if left > 0 and shares[v] > 0.0:
            count = binomial(left, shares[v], address, v) if shares[v] < 1.0 else left
        out[v] = before[v] + count
        left -= count


@kernel
def split_counts(left, right, half, address, out):
    """out = the counts in the middle of an interval of 2 half steps, from those at its ends."""
    if 2 * half <= _SELECTED:
        _select(left, right, half, address, out)
        return
    items, draws = 2 * half, half
    for v in range(left.shape[0]):
        good = right[v] - left[v]
        count = np.int64(0)
        if good > 0 and draws > 0:
            count = hypergeometric(good, items - good, draws, address, v)
        out[v] = left[v] + count
        items -= good
        draws -= count


@kernel
def _select(left, right, half, address, out):
    """`split_counts`, item by item. Four picks come from one word: the low half of a product is
    as good as a fresh word that is shorter by the bits of the factor, 2^-48 after 16 15 14 13."""
    items, draws = 2 * half, half
    words = _words(address, 0, 1)
    word = uint64(0)
    picked = 0
    for v in range(left.shape[0]):
        count = np.int64(0)
        for _ in range(right[v] - left[v]):
            if picked & 3 == 0:
                word = words[picked >> 2]
            high, word = _multiply(word, uint64(items))
            if np.int64(high) < draws:
                count += 1
                draws -= 1
            items -= 1
            picked += 1
        out[v] = left[v] + count
