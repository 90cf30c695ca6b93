"""Hypergeometric variates of any parameters, as pure functions of an address.

The logarithms of probabilities here are those that `binomial` needs, too.

The walks of rewards with finite support are split by `halves`, which fall back on the variates here
where a draw is far from a half.

Large draws. Ratio of uniforms, as in Stadlober ("The ratio of uniforms approach for generating
discrete random variates", J. Comput. Appl. Math. 31, 1990): with m the mode, a = mean + 1/2 and
2 s = `hat_width`, p(floor x) / p(m) <= min(1, (s / (x - a))^2) for all x, so that for uniforms u
and v the cell floor(a + 2 s (v - 1/2) / u) may be accepted if u^2 <= p(floor x) / p(m). 73 % are.
The hat fits: at large sigma s is sqrt(2 / e) sigma + 0.449, of the 0.449 a normal needs 0.303 and
skewness at most 0.101 more; at small sigma the tests find 0.039 cells to spare, or more.
Means below 16: inversion from 0, which is quicker there. Four items or fewer: each is placed by a
word of its own.

How p(k) / p(m) keeps its digits. ln n! itself is useless: at n = 2^40 it is 3e13, its last bit
4e-3. With t = k - m and Loader's Stirling error d(n) = ln n! - ln(sqrt(2 pi n) n^n e^-n) ("Fast
and accurate computation of binomial probabilities", 2000), v = t / (2 c + t) and
r = ln(1 + t / c) - 2 v = 2 (v^3 / 3 + v^5 / 5 + ...),

    ln (c + t)! / c! = t ln c + (t + 1) v + (c + t + 1/2) r + d(c + t) - d(c),

where no term but the first is much larger than the result. The first ones cancel, over the two
cells of a binomial or the four of a hypergeometric, up to t tilt, tilt = ln(1 + e / product of
two cells), and e, which is m - n p or m total - good draws, is computed without rounding.

What error is left, in total variation: at most VARIATE_ERROR + VARIATE_ERROR_A_SIGMA sigma for a
variate of standard deviation sigma, those of `halves` and `binomial` included.

* ln p(k) / p(m) is wrong by at most 4e-13 where that is above -40 (tested against 60 digits, up to
  counts of 2^52). An acceptance that is wrong by a factor 1 + e moves the law by at most e.
* A uniform has 2^53 values, and x is rounded to 2^-53 of itself, some ten sigma at most. In terms
  of v the cell of a whole number is u / (2 s) wide, with 2 s about 1.7 sigma, and each of its two
  borders may be off by 2^-53, and by as much again for each of ten sigma of x: 2^-47 sigma in all,
  because 1 / u is 3 on average where draws are accepted.
* Inversion: p(0) has a relative error of some 22 units in the last place, each of the up to
  128 factors after it one of 3, so that no cumulative probability is off by more than 5e-14.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from numba import uint64

from fastfed.kernels.compiling import inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.random.normal import unit
from fastfed.kernels.random.philox import multiply_wide
from fastfed.kernels.random.words import words_at

VARIATE_ERROR = 5e-13
VARIATE_ERROR_A_SIGMA = 2.0**-47

_INVERTED = 16.0  # below this mean inversion is quicker: at 15, 75 ns against 90
_LONGEST = 128  # steps of an inversion: at a mean of 16 more have a probability below 1e-60
_PLACED = 4  # items that are placed one by one: the words of one block
NO_CELL = math.inf  # in place of the third and the fourth cell, which a binomial has not

_TABLE = 1024
_SHIFT = math.log(_TABLE) - 1.0


def _shifted_logarithms() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Tabulate ln n! - shift n, and ln n - shift.

    The shift drops out of `log_rise`. It leaves numbers within 380 of 0, whose last bit is 6e-14.
    """
    factorials, logs, total = [0.0], [0.0], Fraction(0)
    for n in range(1, _TABLE):
        total += Fraction(math.log(n)) - Fraction(_SHIFT)
        factorials.append(float(total))
        logs.append(math.log(n) - _SHIFT)
    return np.array(factorials), np.array(logs)


_FACTORIAL, _LOG = _shifted_logarithms()


@inner
def log_rise(c, t):
    """Return ln (c + t)! / c! - t ln c, for whole c >= 1 and c + t >= 0."""
    after = c + t
    if larger(c, after) < _TABLE:
        before = np.uint32(c)
        return _FACTORIAL[np.uint32(after)] - _FACTORIAL[before] - t * _LOG[before]
    if after < 16.0:  # from 1024 or more: as good as impossible, and the series for d ends here
        return 1e3
    span = after + c
    inverse = 1.0 / (c * after * span)  # one division makes three
    v = t * (c * after * inverse)
    w = v * v
    if w < 0.001:
        r = v * w * (2 / 3 + w * (2 / 5 + w * (2 / 7 + w * (2 / 9 + w * (2 / 11)))))
    else:
        r = math.log1p(t / c) - 2.0 * v
    x, y = c * span * inverse, after * span * inverse  # d(n) = 1 / (12 n) - 1 / (360 n^3) + ...
    d = (x - y) * (1 / 12 - (x * x + x * y + y * y) * (1 / 360))
    return (t + 1.0) * v + (after + 0.5) * r + d


@inner
def log_ratio(c1, c2, c3, c4, tilt, t):
    """Return ln p(m + t) / p(m) from the cells at m.

    The cells at m are c1, c2, c3, c4, and at m + t they are c1 + t, c2 - t, c3 - t, c4 + t.
    """
    rise = log_rise(c1, t) + log_rise(c2, -t)
    if c4 < NO_CELL:
        rise += log_rise(c3, -t) + log_rise(c4, t)
    return -rise - t * tilt


@inner
def hat_width(variance):
    """Return the width of the ratio-of-uniforms hat, with Euler's number e.

    2 s = sqrt(8 / e) sqrt(variance + 1/2) + 3 - sqrt(12 / e).
    """
    return 1.7155277699214135 * math.sqrt(variance + 0.5) + 0.8989161620588988


@inner
def _from_mode(cells, variance, address, stream):
    """Draw a variate's distance from its mode, by rejection."""
    c1, c2, c3, c4, tilt, mean = cells
    width = hat_width(variance)
    top = smaller(c2, c3) + 1.0
    position = 0
    while True:
        position += 1
        words = words_at(address, stream, position)
        for i in range(0, 4, 2):
            u = unit(words[i])
            x = mean + 0.5 + width * (unit(words[i + 1]) - 0.5) / u
            if x < -c1 or x >= top:
                continue
            t = math.floor(x)
            height = log_ratio(c1, c2, c3, c4, tilt, float(t))
            # u - 1 / u <= 2 ln u <= u (4 - u) - 3 settles most without a logarithm
            if u * (4.0 - u) - 3.0 <= height:
                return t
            if u * (u - height) < 1.0 and 2.0 * math.log(u) <= height:
                return t


@inner
def hypergeometric_cells(good, draws, total):
    """Return the cells at the mode, the tilt, and the mean less the mode.

    Requires good <= draws <= total / 2.
    """
    g, d, n = float(good), float(draws), float(total)
    m = float(math.floor((g + 1.0) * (d + 1.0) / (n + 2.0)))
    # either product may overflow, their difference does not: it is right modulo 2^64, and small
    wrapped = uint64(np.int64(m)) * uint64(total) - uint64(good) * uint64(draws)
    excess = float(np.int64(wrapped))
    tilt = math.log1p(excess / ((g - m) * (d - m)))
    return m, g - m, d - m, n - g - d + m, tilt, -excess / n


@inner
def hypergeometric(good, bad, draws, address, stream):
    """Draw the number of good items among `draws`, taken at random from good + bad <= 2^53."""
    total = good + bad
    few = smaller(good, bad)
    k = _hypergeometric_below(few, smaller(draws, total - draws), total, address, stream)
    if draws > total - draws:  # what was counted is left behind, not drawn
        k = few - k
    return k if good <= bad else draws - k


@inner
def _hypergeometric_below(marked, drawn, total, address, stream):
    """Draw a hypergeometric variate where neither number is above total / 2."""
    good = smaller(marked, drawn)  # the law is the same with the two exchanged
    draws = larger(marked, drawn)
    if good == 0:
        return np.int64(0)
    if good <= _PLACED:
        words = words_at(address, stream, np.int64(1))
        k = np.int64(0)
        for i in range(good):
            high, _ = multiply_wide(words[i], uint64(total - i))
            if np.int64(high) < draws - k:
                k += 1
        return k
    g, d, n = float(good), float(draws), float(total)
    mean = g * (d / n)
    if mean >= _INVERTED:
        cells = hypergeometric_cells(good, draws, total)
        variance = mean * (1.0 - g / n) * (1.0 - d / n)
        return np.int64(cells[0]) + _from_mode(cells, variance, address, stream)
    # p(0) = (n - g)! (n - d)! / (n! (n - d - g)!)
    share = math.exp(log_rise(n, -g) - log_rise(n - d, -g) + g * math.log1p(-d / n))
    u = unit(words_at(address, stream, np.int64(1))[0])
    k = 0
    while u > share and k < smaller(good, _LONGEST):
        u -= share
        share *= (g - k) * (d - k) / ((k + 1.0) * (n - g - d + k + 1.0))
        k += 1
    return np.int64(k)
