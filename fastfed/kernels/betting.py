"""Capitals of the radius `betting`: their tables, and the certificate of a pair in an interval.

docs/explanation/betting.md has the rule, its proof, and the proof of the certificate. A pass keeps
for each arm the logarithms of its capitals: D = 2 G numbers, one for each of G bets that rewards
lie above the centre, one for each that they lie below it; with the goal eps:E G more, for bets that
they lie below the centre plus E. The capital of pair (j, k) with bet g is that of j above times
that of k below. Between two changes of the centres, logarithms are linear in the counts of values
(at a client) or in the sums of single clients (at the server).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastfed.capital import MOST_STAKE
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import larger, smaller
from fastfed.kernels.memory import BAR, DRAWN, NEVER, ORIGIN, Floats, Int, Ints, ints

# columns of `Ledger.marks`: the step and the slot at which the present centres begin, and the power
# of two at or after which the next comparison changes them; the bet for which no pair was certified
# the last time
SINCE, SLOT, CHANGE_AT, CRITICAL = range(4)
_BAR = BAR + math.log(2.0)  # of `permuted`
_SMALL = 0.08  # up to here logarithms are computed by a series
_THIRD, _SEVENTH, _NINTH = 1.0 / 3.0, 1.0 / 7.0, 1.0 / 9.0
# rows of `Ledger.ends`: the capitals of a pair at both ends of an interval, and the levels that
# they stay below
_X1, _X2, _LEVEL = range(3)


class Bets(NamedTuple):
    """The radius `betting` in a setting, as kernels read it."""

    bets: Floats  # (G,)
    kinds: Int  # the number of capitals of an arm for each bet: 3 with the goal eps, else 2
    slack: Any  # E of the goal eps:E, scaled
    client_level: Any  # ln(1 / a) of a pair at a client
    levels: Floats  # (Q,) and in each question of the server
    # rewards are scaled to [0, 1] by (X + n low[m]) unit, X a sum that leaves out the origin
    low: Floats  # (M,)
    unit: Any
    support: Floats  # (V,) all values, scaled
    numbers: Floats  # (V,) 1, 2, ...
    place: Ints  # (K, M, V) where in the support each value of a cell is, the last value last
    weights: Floats  # (Q, K, M) p: the server's value of an arm
    shares: Floats  # (Q, K, M) p over the largest p of the question


class Ledger(NamedTuple):
    """Memory of the capitals of a pass."""

    logs: Floats  # (slots, K, D) at the nodes that have been drawn
    base: Floats  # (K, D) where the present centres began
    table: Floats  # (V, D) of a reward, at a client
    slope: Floats  # (K, M, D) of a reward's size, at the server,
    fixed: Floats  # (K, D) and of a step
    steep: Floats  # (D,) the steepest slope, in units of sums
    start: Floats  # (K, M) sums where the present centres began,
    centre: Floats  # (K, M) and centres, at the server
    stakes: Floats  # (G,) bets, cut down to what the centres allow
    ends: Floats  # (3, G) scratch of certificates
    highest: Floats  # (2, G) the highest capitals of any arm at both ends
    marks: Ints  # (4,)
    won: Any  # (2, K, K) j has beaten k; or would have with the slack


def make_ledger(rules: Bets, slots: int, arms: int, clients: int) -> Ledger:
    """Make the memory of a thread."""
    count = len(rules.bets)
    width = int(rules.kinds) * count
    return Ledger(
        np.zeros((slots, arms, width)),
        np.zeros((arms, width)),
        np.zeros((len(rules.support), width)),
        np.zeros((arms, clients, width)),
        np.zeros((arms, width)),
        np.zeros(width),
        np.zeros((arms, clients)),
        np.zeros((arms, clients)),
        np.zeros(count),
        np.zeros((3, count)),
        np.zeros((2, count)),
        ints(4),
        np.zeros((2, arms, arms), np.bool_),
    )


# ---- centres and tables ------------------------------------------------------------------------


@inner
def begin(view, s):
    """Set all capitals to 1, and all centres to 1/2."""
    ledger = view.ledger
    arms, width = ledger.base.shape
    for k in range(arms):
        for d in range(width):
            ledger.base[k, d] = ledger.logs[ORIGIN, k, d] = 0.0
        for j in range(arms):
            ledger.won[0, k, j] = ledger.won[1, k, j] = False
        for m in range(view.scope.lo, view.scope.hi):
            ledger.start[k, m] = 0.0
    ledger.marks[SINCE], ledger.marks[SLOT], ledger.marks[CHANGE_AT] = 0, ORIGIN, 1
    _fill_tables(view, np.int64(0), s)


@inner
def recentre(view, s, n, slot):
    """Choose centres after the comparison at n, from the sums there."""
    ledger, alive = view.ledger, view.schedules.eliminated_at[s]
    ledger.marks[SINCE], ledger.marks[SLOT] = n, slot
    while ledger.marks[CHANGE_AT] <= n:
        ledger.marks[CHANGE_AT] *= 2
    for k in range(alive.shape[0]):
        if alive[k] == NEVER:
            for d in range(ledger.base.shape[1]):
                ledger.base[k, d] = ledger.logs[slot, k, d]
            for m in range(view.scope.lo, view.scope.hi):
                ledger.start[k, m] = view.walks.value[slot, k, m]
    _fill_tables(view, n, s)


@inner
def _fill_tables(view, n, s):
    """Fill the tables of a client, or of the server; n = 0: all centres are 1/2."""
    leading, alive = 0.5, view.schedules.eliminated_at[s]
    if n > 0:
        leading = -np.inf
        for k in range(alive.shape[0]):
            if alive[k] == NEVER:
                leading = larger(leading, _value(view, k, n))
    if view.local:
        _fill_client(view, leading)
    else:
        _fill_server(view, n, alive, leading)


@inlined
def _mean(view, k, m, n):
    """Return the mean of a cell where the centres begin, scaled to [0, 1]."""
    rules = view.rules
    return (view.ledger.start[k, m] / float(n) + rules.low[m]) * rules.unit


@inner
def _value(view, k, n):
    """Return the mean over clients of an arm where the centres begin."""
    if view.local:
        return _mean(view, k, view.scope.lo, n)
    total = 0.0
    for m in range(view.scope.lo, view.scope.hi):
        if view.weights[k, m] > 0.0:
            total += view.weights[k, m] * _mean(view, k, m, n)
    return total


@inlined
def _log(u):
    """Return ln(1 + u), small ones by the series of 2 artanh(u / (2 + u)): that is faster.

    The first term that is left out is 2e-17 of the result.
    """
    if abs(u) > _SMALL:
        return math.log(1.0 + u)
    z = u / (2.0 + u)
    square = z * z
    series = _THIRD + square * (0.2 + square * (_SEVENTH + square * _NINTH))
    return 2.0 * z * (1.0 + square * series)


@inner
def _fill_client(view, centre):
    """Fill the logarithms of what each value multiplies the capitals by; they are concave in it."""
    rules, ledger = view.rules, view.ledger
    bets, table, support = rules.bets, ledger.table, rules.support
    count, last = bets.shape[0], support.shape[0] - 1
    for v in range(support.shape[0]):
        away = support[v] - centre
        for g in range(count):
            table[v, g] = _log(bets[g] * away)
            table[v, count + g] = _log(-bets[g] * away)
            if rules.kinds == 3:
                table[v, 2 * count + g] = _log(bets[g] * (rules.slack - away))
    for d in range(table.shape[1]):
        first = abs(table[1, d] - table[0, d]) / (support[1] - support[0])
        final = abs(table[last, d] - table[last - 1, d]) / (support[last] - support[last - 1])
        ledger.steep[d] = larger(first, final) * rules.unit


@inner
def _fill_server(view, n, alive, leading):
    """Fill the centres and the chords of all cells."""
    rules, ledger, scope = view.rules, view.ledger, view.scope
    count, reach = rules.bets.shape[0], 0.0
    for k in range(alive.shape[0]):
        if alive[k] == NEVER:
            lift = leading - _value(view, k, n) if n > 0 else leading
            for m in range(scope.lo, scope.hi):
                if view.shares[k, m] > 0.0:
                    centre = lift + (_mean(view, k, m, n) if n > 0 else 0.0)
                    ledger.centre[k, m] = centre
                    widest = larger(abs(centre), abs(1.0 - centre))
                    reach = larger(reach, view.shares[k, m] * widest)
    for g in range(count):  # no reward takes more than MOST_STAKE of a capital
        ledger.stakes[g] = smaller(rules.bets[g], MOST_STAKE / reach)
    for d in range(ledger.steep.shape[0]):
        ledger.steep[d] = 0.0
    for k in range(alive.shape[0]):
        if alive[k] == NEVER:
            for d in range(ledger.steep.shape[0]):
                ledger.fixed[k, d] = 0.0
            for m in range(scope.lo, scope.hi):
                share = view.shares[k, m]
                if share > 0.0:
                    centre, per_sum = ledger.centre[k, m], rules.unit / scope.weights[k, m]
                    _fill_chords(ledger, k, m, share, centre, 0, per_sum)
                    _fill_chords(ledger, k, m, -share, centre, count, per_sum)
                    if rules.kinds == 3:
                        low = centre + rules.slack
                        _fill_chords(ledger, k, m, -share, low, 2 * count, per_sum)


@inlined
def _fill_chords(ledger, k, m, share, centre, begin, per_sum):
    """Fill the chords of one cell and one kind of bets; those that rewards lie below have -share.

    At a reward of 0 a capital is multiplied by 1 - bet share centre, at a reward of 1 by as much
    plus bet share.
    """
    stakes, slope, fixed = ledger.stakes, ledger.slope[k, m], ledger.fixed[k]
    for g in range(stakes.shape[0]):
        less = stakes[g] * share * centre
        rise = _log(stakes[g] * share / (1.0 - less))
        slope[begin + g] = rise
        fixed[begin + g] += _log(-less)
        ledger.steep[begin + g] = larger(ledger.steep[begin + g], abs(rise) * per_sum)


# ---- logarithms of capitals at a node ----------------------------------------------------------


@inner
def fill_logs(view, s, n, slot, depth):
    """Compute the capitals at a node of the undecided arms that are drawn at ``depth``."""
    tree, alive = view.tree, view.schedules.eliminated_at[s]
    for i in range(tree.frame[depth, DRAWN]):
        k = np.int64(tree.drawn[depth, i])
        if alive[k] == NEVER:
            if view.local:
                _fill_from_counts(view, k, n, slot)
            else:
                _fill_from_sums(view, k, n, slot)


@inner
def _fill_from_counts(view, k, n, slot):
    ledger, counts, m = view.ledger, view.memory.counts, view.scope.lo
    logs, table, kinds = ledger.logs[slot, k], ledger.table, view.rewards.kinds[k, m]
    before, place = ledger.marks[SLOT], view.rules.place[k, m]
    left = n - ledger.marks[SINCE]
    for d in range(logs.shape[0]):
        logs[d] = ledger.base[k, d]
    for v in range(kinds):
        times = counts[slot, m, k, v] - counts[before, m, k, v]
        if times > 0:
            left -= times
            _add(logs, table[place[v]], float(times))
    _add(logs, table[place[kinds]], float(left))


@inner
def _fill_from_sums(view, k, n, slot):
    ledger, value, rules = view.ledger, view.walks.value, view.rules
    logs, steps = ledger.logs[slot, k], float(n - ledger.marks[SINCE])
    for d in range(logs.shape[0]):
        logs[d] = ledger.base[k, d] + steps * ledger.fixed[k, d]
    for m in range(view.scope.lo, view.scope.hi):
        if view.shares[k, m] > 0.0:
            total = (value[slot, k, m] - ledger.start[k, m] + steps * rules.low[m]) * rules.unit
            _add(logs, ledger.slope[k, m], total)


@inlined
def _add(logs, one, times):
    for d in range(logs.shape[0]):
        logs[d] += times * one[d]


# ---- pairs -------------------------------------------------------------------------------------


@inner
def beats(ledger, slot, j, k, begin, level):
    """Tell whether the mean capital of pair (j, k) reaches its level at a node."""
    above, below = ledger.logs[slot, j], ledger.logs[slot, k]
    count = ledger.stakes.shape[0]
    top = -np.inf
    for g in range(count):
        top = larger(top, above[g] + below[begin + g])
    if top < level:
        return False
    total = 0.0
    for g in range(count):
        total += math.exp(above[g] + below[begin + g] - top)
    return top + math.log(total / float(count)) >= level


class Terms(NamedTuple):
    """The terms on which pairs are certified in an interval."""

    left: Int  # slots of its ends
    right: Int
    least: Any  # of `permuted.stays_below`, for one bet
    slack: Any
    level: Any
    most: Any  # the level plus ln(G): that of the sum of the capitals


@inlined
def terms_of(view, left, right, least, slack):
    """Return the terms of an interval; ``least`` and ``slack`` are those of `certificate_bound`.

    Each of G bets has a G-th of the tolerance. A client's logarithms are not linear in the reward:
    their distances from the mean may be twice the steepest slope times those of the rewards.
    """
    size = math.log(float(view.rules.bets.shape[0]))
    if slack < 0.0:
        curved = view.local and view.rules.support.shape[0] > 2
        least *= 2.0 if curved else 1.0
    else:
        least *= (_BAR + size) / _BAR
        slack *= (_BAR + size) / _BAR
    return Terms(left, right, least, slack, view.level, view.level + size)


@inner
def certified(ledger, terms, above, k, begin, spread):
    """Tell whether arm k is certified not to be beaten by an arm with the capitals ``above``.

    These are at both ends. ``spread`` is what `certificate_bound` says of the two arms. Let each
    bet's capital be certified to stay below a level of its own, the least that is possible. Then
    the mean of the capitals stays below the mean of these levels. No level of a single bet may
    exceed G times that of the pair: the bet that failed last is tried before anything else. Most
    pairs are far away, and all their bets stay below the level of the pair itself.
    """
    ends, (above_1, above_2), marks = ledger.ends, above, ledger.marks
    below_1, below_2 = ledger.logs[terms.left, k], ledger.logs[terms.right, k]
    g = marks[CRITICAL]
    x1, x2 = above_1[g] + below_1[begin + g], above_2[g] + below_2[begin + g]
    if not _stays(ledger, terms, begin, spread, g, terms.most - x1, terms.most - x2):
        return False
    for g in range(ends.shape[1]):
        ends[_X1, g] = above_1[g] + below_1[begin + g]
        ends[_X2, g] = above_2[g] + below_2[begin + g]
    safe = True
    for g in range(ends.shape[1]):
        d1, d2 = terms.level - ends[_X1, g], terms.level - ends[_X2, g]
        safe &= _stays(ledger, terms, begin, spread, g, d1, d2)
    return safe or _sum_of_levels(ledger, terms, begin, spread) < terms.most


@inlined
def _stays(ledger, terms, begin, spread, g, d1, d2):
    """Tell whether a bet's logarithm stays below a level that is d1 and d2 above it at the ends.

    As `permuted.stays_below`: a slack below 0 is the form that is certain, which has none.
    """
    one, other, up, down = spread[0], spread[1], ledger.steep[g], ledger.steep[begin + g]
    if terms.slack < 0.0:
        return smaller(d1, d2) > terms.least * (up * one + down * other)
    wide = terms.least * (up * up * one + down * down * other)
    needed = wide + terms.slack * larger(up, down) * larger(d1, d2)
    return (smaller(d1, d2) > 0.0) & (d1 * d2 >= needed)


@inner
def _sum_of_levels(ledger, terms, begin, spread):
    """Return the logarithm of the sum of the least levels that the bets' capitals stay below.

    With distances e and e + apart from the two ends, `_stays` asks for e (e + apart) >= wide +
    slack (e + apart). That is a quadratic equation for the least e.
    """
    ends, (one, other), count = ledger.ends, spread, ledger.stakes.shape[0]
    highest = np.int64(0)
    for g in range(count):
        x1, x2, up, down = ends[_X1, g], ends[_X2, g], ledger.steep[g], ledger.steep[begin + g]
        if terms.slack < 0.0:
            e = terms.least * (up * one + down * other)
        else:
            apart, slack = abs(x1 - x2), terms.slack * larger(up, down)
            wide, half = terms.least * (up * up * one + down * down * other), 0.5 * (slack + apart)
            e = 0.5 * (slack - apart) + math.sqrt(half * half + wide)
        ends[_LEVEL, g] = larger(x1, x2) + e
        if ends[_LEVEL, g] > ends[_LEVEL, highest]:
            highest = np.int64(g)
    ledger.marks[CRITICAL] = highest
    top, total = ends[_LEVEL, highest], 0.0
    if top >= terms.most:
        return top
    for g in range(count):
        total += math.exp(ends[_LEVEL, g] - top)
    return top + math.log(total)
