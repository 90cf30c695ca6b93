"""Certificates that a pair of arms with finite rewards stays below the boundary.

Inside an interval (a, b], N = b - a long, with known ends the rewards of each arm at each client (a
cell) are known values in a uniformly random order. For a pair of arms let W_n, n = 0 .. N, be the
difference of their sums, over the clients of the pass, less its own chord (the rewards of a client
that has a weight are those rewards times the weight): W_0 = W_N = 0. Let d1
and d2 > 0 be the distances of the pair below g at the two ends. g is concave, so to cross it the
pair must reach its chord: W_n >= d1 + (d2 - d1) n / N for some n, 0 < n < N.

For the cells of the pair (its two arms at each client) let V be the sum of the variances of their
rewards in the interval, or of mean squares about any other points, which are no smaller; R the
largest of their ranges; Q the sum of range^2 / 4. With c = 1 + 2 / N,

    P(crossing) <= exp(-d1 d2 / (3/4 c N V + 2/3 R d2)) + exp(-d1 d2 / (3/4 c N V + 2/3 R d1)),
    P(crossing) <= 2 exp(-2 d1 d2 / (c N Q)).

Proof. First n <= N / 2. Take one cell, with values x_i in their random order, mean x, and partial
sums W_n of x_i - x. The mean of those left after n - 1 steps is x - W_(n-1) / (N - n + 1), so that
Z_n = N W_n / (N - n) is a martingale with the jumps

    Z_n - Z_(n-1) = N / (N - n) (x_n - the mean of those left).

In terms of Z the line reads d1 + d2 s_n, with s_n = n / (N - n) <= 1. A jump is at most N / (N - n)
times the range, so at most 2 R, and its conditional variance is (N / (N - n))^2 times the variance
of the N - n + 1 values left. That is at most N V_cell / (N - n + 1), because their squared
distances from x are among all the squared distances from x. Summed over the steps 1 .. n: with
m = N - i, the term 1 / (m^2 (m + 1)) is 1 + 1 / (2 m + 1) <= c times the integral of u^-3 from m to
m + 1, and N^3 times these integrals add up to N (s + s^2 / 2). So the variances of the jumps add
up to at most c N V_cell (s_n + s_n^2 / 2) <= 3/2 c N V_cell s_n.

Cells are independent, and a pair's Z is a sum or difference of theirs. By Bernstein's bound on the
moment generating function of each jump, for 0 < l < 3 / (2 R),

    exp(l Z_n - l^2 3/2 c N V s_n / (2 (1 - 2/3 l R)))

is at most a supermartingale that starts at 1. With l = d2 / (3/4 c N V + 2/3 R d2) the subtracted
term is l d2 s_n, so where Z_n reaches d1 + d2 s_n the supermartingale is at least exp(l d1). By
Ville's inequality this ever happens with probability at most exp(-l d1).

For n >= N / 2 read the interval backwards: a permutation read backwards has the same law, W changes
its sign (the bounds hold for both signs), and d1 and d2 change places.

The second form: by Hoeffding's lemma a jump's moment generating function is at most exp(l^2 / 2
(N / (N - n))^2 range^2 / 4). Here 1 / m^2 is 1 + 1 / m <= c times the integral of u^-2 from m to
m + 1, N^2 times these integrals add up to N s_n, and l = 2 d2 / (c N Q) gives exp(-2 d1 d2 / (c N
Q)) for each half.

So a pair is certified up to a tolerance of e^-BAR if

    d1 d2 >= (BAR + ln 2) (3/4 c N V + 2/3 R max(d1, d2))                             (SQUARES)
or  d1 d2 >= (BAR + ln 2) 1/2 c N Q                                                   (RANGES)
or  min(d1, d2) > D,                                                                  (DISTANCES)

where D is the sum over the pair's cells of the distances of the rewards above their mean: no order
of them can bring W above D, and the chord is nowhere below the smaller of d1 and d2. The last form
wins in short intervals (up to some 64 steps for one client), the first in long ones where rewards
vary little within their range, the second for coins that are nearly fair. A Brownian bridge of the
same variance would have 1/2 N V in place of 3/4 c N V, and no R.
"""

from __future__ import annotations

import math

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.memory import BAR

# what of the rewards in an interval each form needs to know, summed over the cells of an arm: the
# squared distances from their mean (N V), the squared ranges / 4 (Q), the distances above the mean
SQUARES, RANGES, DISTANCES = range(3)

_BAR = BAR + math.log(2.0)
_CERTAIN = -1.0  # slack of the third form, which has no use for one
_ROUNDED_UP = 1.0 + 1e-9  # past the rounding of sums


@inner
def choose_bound(length, squares, reach, ranges, distances):
    """Choose the form that needs the smallest distance d1 = d2, for a pair with these sums.

    Return it with (least, slack) for `stays_below`.
    """
    shares = 1.0 + 2.0 / float(length)
    by_squares = 0.75 * _BAR * shares
    slack = (2.0 / 3.0) * _BAR * reach
    by_ranges = 0.5 * _BAR * shares * float(length)
    # the distances asked for: d^2 = by_squares squares + slack d, and so on
    first = 0.5 * slack + math.sqrt(0.25 * slack * slack + by_squares * squares)
    second = math.sqrt(by_ranges * ranges)
    if distances <= smaller(first, second):
        return DISTANCES, _ROUNDED_UP, _CERTAIN
    if second <= first:
        return RANGES, by_ranges, 0.0
    return SQUARES, by_squares, slack


@inlined
def stays_below(d1, d2, least, slack, spread):
    """Tell whether a pair stays below g, up to the tolerance.

    ``spread`` is the sum of its arms' entries for the form that was chosen.
    """
    if slack < 0.0:
        return smaller(d1, d2) > least * spread
    return d1 * d2 >= least * spread + slack * larger(d1, d2)


@inlined
def both_stay_below(up, down, length, sums):
    """Tell whether a pair stays below g whichever arm leads, by any of the three forms.

    ``up`` and ``down`` are its distances from g at the two ends with either arm in front, ``sums``
    (squares, reach, ranges, distances) those of its cells.
    """
    squares, reach, ranges, distances = sums
    nearest = smaller(smaller(up[0], up[1]), smaller(down[0], down[1]))
    if nearest <= 0.0:
        return False
    if nearest > _ROUNDED_UP * distances:
        return True
    shares = _BAR * (1.0 + 2.0 / float(length))
    upward, downward = up[0] * up[1], down[0] * down[1]
    if smaller(upward, downward) >= 0.5 * shares * float(length) * ranges:
        return True
    least, slack = 0.75 * shares * squares, (2.0 / 3.0) * _BAR * reach
    return (upward >= least + slack * larger(up[0], up[1])) & (
        downward >= least + slack * larger(down[0], down[1])
    )
