"""Binomial variates of any parameters as pure functions of an address.

The walks of rewards with finite support are extended by them. Let p <= 1/2, otherwise failures are
counted.

Means below INVERTED: inversion from 0, which is quicker there.

Larger means: transformed rejection, as in Hörmann ("The generation of binomial random variates",
J. Stat. Comput. Simul. 46, 1993). With sigma^2 = n p (1 - p), a uniform u in (-1/2, 1/2) and

    G(u) = (2 a / (1/2 - |u|) + b) u + n p + 1/2,     b = 1.15 + 2.53 sigma,
                                                      a = 0.0248 b + 0.01 p - 0.0873,

k = floor G(u) is accepted with probability p(k) / p(m) G'(u) / alpha, where m is the mode and
G'(u) = a / (1/2 - |u|)^2 + b. Three things have to hold, and the tests find each of them to hold
with room to spare, for means of INVERTED and more, up to where the limit of large sigma is reached:

* the hat: that is a probability. Hörmann's alpha is 2.83 sigma + 5.1 sigma / b; 2.83 sigma + 2.02
  is never less and needs no division. (Largest value 0.9945, for large sigma.)
* the box: where |u| <= 0.43 it is at least 0.91 - 4.2 / b. (Least room 0.0079.) So most draws are
  accepted without a look at p(k): 45 % at sigma = 4, 78 % at large sigma.
* the guess: with t = k - m, r = 1 / sigma^2 and e = (n + 1) p - m, as long as |t| <= 6 sigma,
  ln p(k) / p(m) lies within (|t| (|t| + 1) + r t^4) r^2 / 3 of

      -r t (t + 1 - 2 e) / 2 + (1 - 2 p) r^2 t^3 / 6,

  the first terms of its expansion in r. (At most 0.93 of that are needed.) This settles nearly all
  of what is left.

The exact p(k) / p(m) is computed for what remains, by `discrete.log_ratio`. Neither G nor the mode
has to be exact, because a hat may stand anywhere as long as it covers the law.

How far a draw may be from the law, in total variation; VARIATE_ERROR + VARIATE_ERROR_A_SIGMA sigma
of `discrete` covers it:

* ln p(k) / p(m) is wrong by at most 4e-13, and an acceptance that is wrong by a factor 1 + e moves
  the law by at most e.
* The place G(u) of a border between two numbers is rounded by a few units in the last place, and u
  has 2^53 values: in terms of u each border may be off by 2^-53 (2 + |z|), z = (k - n p) / sigma,
  and some 8 sigma of them count: 2^-48 sigma. In the guess, e is off by 2^-53 n p, which moves
  acceptances by at most 2^-50 sigma.
* Inversion: exp(n ln(1 - p)) has a relative error of 22 units in the last place, each of the up to
  128 factors after it one of 4, so that no cumulative probability is off by more than 6e-14.

`p` is taken for the double that it is: the true 0.1 instead of the double next to it would move a
binomial's mean by up to 2^-54 sqrt(n p / (1 - p)) standard deviations, 2^-34 at n = 2^40.
"""

from __future__ import annotations

import math

import numpy as np

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import smaller
from fastfed.kernels.random.discrete import NO_CELL, log_ratio
from fastfed.kernels.random.normal import unit
from fastfed.kernels.random.words import SPARE_UNIT, spare_bits, words_at

INVERTED = 20.0  # at half as many nine values are 18 % slower, at 26 no faster
_LONGEST = 128  # steps of an inversion: at a mean of 20 more have a probability below 1e-58
_INVERSE = 1.0 / np.arange(1.0, _LONGEST + 1.0)
_BOX = 0.07  # 1/2 less the largest |u| in it
_GUESSED = 36.0  # up to so many sigma^2 for t^2


@inner
def binomial(count, p, address, stream):
    """Draw the number of successes in `count` <= 2^52 independent trials of probability p."""
    rare = smaller(p, 1.0 - p)
    if count == 0 or rare <= 0.0:
        return count if p > 0.5 else np.int64(0)
    words = words_at(address, stream, np.int64(1))
    return binomial_from(
        count, p, math.log1p(-rare), (words[0], spare_bits(words[3], np.int64(0))), address, stream
    )


@inner
def binomial_from(count, p, log_rest, word_and_spare, address, stream):
    """Draw a binomial variate from a word and spare bits: see `words`.

    Further words are those of the address, in `stream`, from position 2 on. log_rest is ln(1 -
    min(p, 1 - p)).
    """
    word, spare = word_and_spare
    rare = smaller(p, 1.0 - p)
    if float(count) * rare < INVERTED:
        k = inverted_binomial(count, rare, log_rest, word)
    else:
        k = _by_rejection(count, rare, word, spare, address, stream)
    return k if p <= 0.5 else count - k


@inlined
def inverted_binomial(count, p, log_q, word):
    """Draw a binomial variate by inversion of one word; p <= 1/2, log_q = ln(1 - p)."""
    n = float(count)
    odds = p / (1.0 - p)
    share = math.exp(n * log_q)
    u = unit(word)
    most = smaller(count, _LONGEST)
    k = np.int64(0)
    while u > share and k < most:
        u -= share
        share *= odds * (n - float(k)) * _INVERSE[np.uint64(k)]
        k += 1
    return k


@inner
def hat(variance, p):
    """Return a, b and alpha of the hat."""
    sigma = math.sqrt(variance)
    b = 1.15 + 2.53 * sigma
    return 0.0248 * b + 0.01 * p - 0.0873, b, 2.83 * sigma + 2.02


@inner
def box(b):
    """Return b times the least probability of acceptance in the box."""
    return 0.91 * b - 4.2


@inner
def guess(t, rate, excess, p):
    """Approximate ln p(m + t) / p(m); return that and a bound on its error.

    rate is 1 / sigma^2, and excess is (n + 1) p - m.
    """
    step = t * rate
    square = t * t
    value = step * (square * rate * (1.0 - 2.0 * p) * (1 / 6) - 0.5 * (t + 1.0 - 2.0 * excess))
    return value, (square + abs(t) + square * square * rate) * rate * rate * (1 / 3)


@inner
def _by_rejection(count, p, word, spare, address, stream):
    n = float(count)
    product = n * p
    mode = np.floor(product + p)
    variance = product * (1.0 - p)
    a, b, alpha = hat(variance, p)
    low, width = SPARE_UNIT * float(spare), SPARE_UNIT
    position = np.int64(1)
    while True:
        u = unit(word) - 0.5
        near = 0.5 - abs(u)
        inverse = 1.0 / (near * variance)  # one division makes two
        over_near = variance * inverse
        t = np.floor((2.0 * a * over_near + b) * u + (product - mode) + 0.5)
        high = low + width
        if near >= _BOX and high * b <= box(b):
            return np.int64(mode) + np.int64(t)
        share = -1.0
        if -mode <= t <= n - mode:
            slope = a * over_near * over_near + b
            value, off = guess(t, near * inverse, product + p - mode, p)
            if t * t > _GUESSED * variance or off > 1.0:
                low_share, high_share = 0.0, alpha
            else:
                low_share = slope * math.exp(value)
                high_share = low_share * (1.0 + off + off * off)
                low_share *= 1.0 - off
            if high * alpha <= low_share:
                return np.int64(mode) + np.int64(t)
            if low * alpha < high_share:
                share = slope / alpha * exact_share(count, p, t)
                if high <= share:
                    return np.int64(mode) + np.int64(t)
        position += 1
        words = words_at(address, stream, position)
        if low < share and low + width * unit(words[2]) < share:
            return np.int64(mode) + np.int64(t)
        word, low, width = words[0], unit(words[1]), 0.0


@inner
def exact_share(count, p, t):
    """Return p(m + t) / p(m)."""
    c1, c2, c3, c4, tilt = binomial_cells(count, p)
    return math.exp(log_ratio(c1, c2, c3, c4, tilt, t))


@inner
def binomial_cells(count, p):
    """Return the cells at the mode, and the tilt; 0 < p <= 1/2."""
    n = float(count)
    product = n * p
    m = float(math.floor(product + p))
    excess = (m - product) - _product_error(n, p, product)
    return m, n - m, NO_CELL, NO_CELL, math.log1p(excess / ((n - m) * p))


@inner
def _product_error(a, b, product):
    """Return a b - product, exactly, where product is a b rounded (Dekker 1971)."""
    big = 134217729.0 * a
    a_high = big - (big - a)
    big = 134217729.0 * b
    b_high = big - (big - b)
    a_low, b_low = a - a_high, b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
