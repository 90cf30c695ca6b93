"""Successive elimination on skipping walks: one pass for a client, the same pass for the server.

A pass follows the sums S_k(n) of K arms over the clients lo .. hi - 1 (one client for a local
pass, all of them for the server's) and, for each of several schedules at once, removes arm k at a
communication time n where max_j S_j(n) - S_k(n) >= g(n) (Algorithm 1, lines 11 and 21, in sums).
A client "talks to itself" at every step: its pass is the server's with one client and period 1.

How it gets by with a logarithm of the steps. The spine visits n = 1, 2, 4, ...; between two of
its nodes lies a dyadic tree of intervals (a, b], whose middles `walk.split` can draw at any time
and in any order. In each interval, for each schedule:

* no communication time in (a, b]: nothing can happen;
* b is the only one: Algorithm 1's own check at b, nothing in between matters;
* others inside: if it is (nearly) certain that no pair of arms crosses g, the interval is
  skipped, otherwise it is split and both halves are looked at, in order.

"Nearly certain", Gaussian rewards: g is concave, so it lies above its chord, and the walk of a
pair, S_j - S_k, sits inside a Brownian motion of variance rate v = 2 (hi - lo) noise^2. Between
its two known ends that is a bridge, and it crosses a line that is d1 above it at a and d2 above it
at b with probability exactly exp(-2 d1 d2 / (v (b - a))) (see Karatzas and Shreve, Brownian Motion
and Stochastic Calculus, 4.3.40). Pairs below the tolerance are safe in (a, b]; the other pairs are
in doubt. Only the arms of pairs in doubt are drawn and compared further down: a safe pair needs no
second look anywhere inside (a, b], and whom else an arm might still fall to is safe, too. Every
safe verdict is counted, and count x tolerance bounds the total variation between these trials and
step-by-step ones (union bound): it is carried to each row as `skip_error`.

"Nearly certain", rewards with finite support: inside (a, b], N = b - a long, the order of each
arm's known rewards is a uniformly random permutation. By Hoeffding (1963, Theorem 4) sums without
replacement have no larger moments than sums with it, so Bernstein's inequality holds for them: n
steps in, q = min(n, N - n), the pair is d above its own chord with probability at most
exp(-d^2 / (2 (q V + d R / 3))), V the sum of the variances of its arms' rewards in the interval
(over clients, too), R the range of a reward. The distance to g is nowhere below the smaller of d1
and d2, q nowhere above N / 2, and the N - 1 steps inside cost ln N in the exponent.

A pass of one client and every step, Gaussian rewards, hands an interval with few pairs in doubt to
`duel`.

With skipping off every pair is in doubt until nothing is left to split: each step is visited, on
the same walk, by this code alone.

Glossary: S sums over clients, X single walks, g boundary, d distance to it; depth 0 is the spine
interval, depth i + 1 a half of depth i. Slots hold the values at a node: 0 .. 52 the spine nodes
2^0 .. 2^52, ORIGIN the start n = 0, MIDDLE + i the middle that made depth i + 1, STEP + i the i-th
step of an interval that is walked.

"""

from __future__ import annotations

import math

import numpy as np

from fastfed.kernels.boundary import CHORD, boundary_below, boundary_between, reaches
from fastfed.kernels.communication import advance, begin, declare
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.laws.counts import STRETCH
from fastfed.kernels.laws.duel import settle_by_duels
from fastfed.kernels.laws.finite import (
    extend_spine_counts,
    measure_variance,
    shuffle_interval,
    split_interval_counts,
)
from fastfed.kernels.laws.walk import extended, split
from fastfed.kernels.memory import (
    ALIVE,
    BAR,
    DRAWN,
    DUELS,
    END,
    INDEX,
    IS_RIGHT,
    LAST,
    LEFT,
    MIDDLE,
    NEVER,
    NEXT,
    ORIGIN,
    PERIOD,
    RIGHT,
    ROUNDS,
    SAFE_PAIRS,
    SPINE,
    STEP,
    TALKERS,
    UPLINKS,
    WINNER,
    A,
    B,
)
from fastfed.kernels.random.normal import is_power_of_four, normal_from, quarter_words, spine_words

_LEAF = 4  # an interval in doubt that is no longer than this is walked


@inner
def run_pass(problem, values, plan, listed, trial, lo, hi, log_c, logs, space, state, out_at):
    """Eliminate arms by the sums over clients lo .. hi - 1 until each schedule has one left or
    has talked for the last time. Fills `state` and `out_at` (S, K), the step at which each arm
    left (NEVER if it did not)."""
    value, words, total, known, frame, g, talkers, arms, drawn, doubt, work = space[:11]
    counts, squares, variance, steps, rest = space[11:16]
    pairs, span, edge = space.pairs, space.span, space.edge
    seed, means, noise, shares, scale, _, _, skip = problem
    clients = hi - lo
    walks = float(clients)
    unit = 8.0 * walks * scale * scale
    one_by_one = skip and plan.shape[0] == 1 and clients == 1 and plan[0, PERIOD] == 1
    _begin(plan, listed, state, out_at)
    frame[0, B], frame[0, RIGHT] = 0, ORIGIN
    listed_arms = np.int64(0)
    for level in range(SPINE):
        running_arms = _running_arms(state)
        if running_arms == 0:
            return
        if running_arms != listed_arms:  # on most levels nobody has fallen
            _list_arms(frame, talkers, arms, drawn, doubt, state, out_at)
            listed_arms = running_arms
        frame[0, A], frame[0, LEFT] = frame[0, B], frame[0, RIGHT]
        frame[0, B], frame[0, RIGHT] = 1 << level, level
        if values is None:
            _extend_spine(seed, trial, means, noise, lo, hi, level, frame, drawn, known, value,
                          total, work)
        else:
            extend_spine_counts(seed, trial, values, shares, lo, hi, level, frame, drawn, known,
                                counts, value, squares, total, work)
        g[0, 0] = g[0, 1]
        g[0, 1] = boundary_below(1 << level, level + 1, logs, unit)
        depth = np.int64(0)
        while True:
            # settle the interval for every schedule that can be settled
            a, b = frame[depth, A], frame[depth, B]
            if values is None:
                finite, stretch = False, _LEAF
                least, slack = walks * noise * noise * float(b - a) * BAR, 0.0
            else:
                finite, stretch = True, STRETCH
                bar = BAR + math.log(float(b - a))
                least = float(b - a) * bar
                slack = 2.0 / 3.0 * bar * (values[values.shape[0] - 1] - values[0])
                if skip:
                    measure_variance(lo, hi, depth, frame, drawn, value, squares, variance)
            left_over = np.int64(0)
            duels = values is None and one_by_one and b - a >= _LEAF and b <= plan[0, LAST]
            for i in range(frame[depth, TALKERS]):
                s = talkers[depth, i]
                if state[s, NEXT] > b:
                    continue
                work[0] += 1
                if state[s, NEXT] == b:
                    # b anew from memory: with b itself LLVM computes the logarithm of a fall at b
                    # ahead of the loop, for every interval: FedElim0 5 to 10 % slower
                    _talk(s, i, depth, frame[depth, RIGHT], frame[depth, B], g[depth, 1], logs,
                          unit, walks, log_c, scale, plan, listed, arms, total, state, out_at)
                    continue
                doubts = _pairs_in_doubt(s, i, depth, left_over, skip, finite, least, slack, frame,
                                         g, arms, total, variance, state, out_at, doubt, pairs)
                if doubts == 0:
                    count = advance(s, b, plan, listed, state)
                    state[s, UPLINKS] += count * clients * state[s, ALIVE]
                    state[s, ROUNDS] += count
                elif duels and doubts <= DUELS:
                    settle_by_duels(doubts, seed, trial, lo, noise, depth, level, logs, unit, log_c,
                                    scale, plan, listed, frame, g, value, pairs, span, edge, work,
                                    state, out_at)
                else:
                    talkers[depth + 1, left_over] = s
                    left_over += 1
            frame[depth + 1, TALKERS] = left_over
            if left_over > 0:
                _collect(depth, frame, arms, drawn, doubt)
                if b - a > stretch:  # split it for the others
                    g[depth + 1, 0] = g[depth, 0]
                    g[depth + 1, 1] = boundary_between(
                        a, b, g[depth, 0], g[depth, 1], level, logs, unit, noise)
                    if values is None:
                        _draw_middles(seed, trial, noise, lo, hi, depth, frame, drawn, words, value,
                                      total, work)
                    else:
                        split_interval_counts(seed, trial, values, lo, hi, depth, frame, drawn,
                                              counts, value, squares, total, work)
                    _open_left(depth, frame)
                    depth += 1
                    continue
                # or walk it step by step
                if values is None:
                    _draw_steps(seed, trial, noise, lo, hi, depth, frame, drawn, value, total, work)
                else:
                    shuffle_interval(seed, trial, values, lo, hi, depth, frame, drawn, counts,
                                     value, total, steps, rest, work)
                rise = (g[depth, 1] - g[depth, 0]) / float(b - a)
                for i in range(left_over):
                    s = talkers[depth + 1, i]
                    while state[s, NEXT] <= b:
                        n = state[s, NEXT]
                        chord = (g[depth, 0] + rise * float(n - a)) * CHORD
                        _talk(s, i, depth + 1, STEP + n - a, n, chord, logs, unit, walks, log_c,
                              scale, plan, listed, arms, total, state, out_at)
            # or go on to the interval that follows it
            while depth > 0 and frame[depth, IS_RIGHT] == 1:
                depth -= 1
            if depth == 0:
                break
            frame[depth, A] = b
            frame[depth, B] = frame[depth - 1, B]
            frame[depth, LEFT] = frame[depth, RIGHT]
            frame[depth, RIGHT] = frame[depth - 1, RIGHT]
            frame[depth, IS_RIGHT] = 1
            g[depth, 0] = g[depth, 1]
            g[depth, 1] = g[depth - 1, 1]


@inner
def _begin(plan, listed, state, out_at):
    schedules, arms = out_at.shape
    for s in range(schedules):
        for k in range(arms):
            out_at[s, k] = NEVER
        begin(s, plan, listed, state)
        state[s, ALIVE] = arms
        state[s, WINNER] = -1
        state[s, UPLINKS] = 0
        state[s, ROUNDS] = 0
        state[s, SAFE_PAIRS] = 0
        if arms == 1:
            state[s, NEXT] = NEVER


@inlined
def _running_arms(state):
    """The number of arms alive, summed over the schedules that still run."""
    count = 0
    for s in range(state.shape[0]):
        if state[s, NEXT] < NEVER:
            count += state[s, ALIVE]
    return count


@inner
def _list_arms(frame, talkers, arms, drawn, doubt, state, out_at):
    """List at depth 0 the schedules that still run, and the arms of each."""
    schedules, arm_count = out_at.shape
    for k in range(arm_count):
        doubt[k] = False
    running = 0
    for s in range(schedules):
        if state[s, NEXT] == NEVER:
            continue
        count = 0
        for k in range(arm_count):
            if out_at[s, k] == NEVER:
                arms[0, running, count] = k
                doubt[k] = True
                count += 1
        arms[0, running, arm_count] = count
        talkers[0, running] = s
        running += 1
    count = 0
    for k in range(arm_count):
        if doubt[k]:
            drawn[0, count] = k
            count += 1
    frame[0, IS_RIGHT] = 0
    frame[0, TALKERS] = running
    frame[0, DRAWN] = count


@inner
def _extend_spine(
    seed, trial, means, noise, lo, hi, level, frame, drawn, known, value, total, work
):
    """Draw X(2^level), and whatever spine node below is missing, for the arms of depth 0."""
    for i in range(frame[0, DRAWN]):
        total[level, drawn[0, i]] = 0.0
    for m in range(lo, hi):
        block = -1
        words = (np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0))
        for i in range(frame[0, DRAWN]):
            k = np.int64(drawn[0, i])
            for t in range(known[k, m], level + 1):
                if t < level or k >> 2 != block:
                    words = spine_words(seed, trial, m, k >> 2, 1 << t)
                    block = k >> 2 if t == level else -1
                z = normal_from(words[k & 3], seed, trial, m, k, 1 << t)
                if t == 0:
                    value[0, k, m] = means[k, m] + noise * z
                else:
                    half = float(1 << (t - 1))
                    value[t, k, m] = extended(value[t - 1, k, m], means[k, m], noise, half, z)
                work[1] += 1
            known[k, m] = max(known[k, m], level + 1)
            total[level, k] += value[level, k, m]


@inlined
def _talk(s, i, depth, slot, n, g_below, logs, unit, walks, log_c, scale, plan, listed, arms, total,
          state, out_at):
    """Communication time n of schedule s: Algorithm 1, lines 8-15 and 17-25."""
    state[s, UPLINKS] += np.int64(walks) * state[s, ALIVE]
    state[s, ROUNDS] += 1
    if plan[s, PERIOD] > 0:
        state[s, NEXT] = n + plan[s, PERIOD] if n < plan[s, LAST] else NEVER
    else:
        state[s, INDEX] += 1
        more = state[s, INDEX] < plan[s, END]
        state[s, NEXT] = listed[state[s, INDEX]] if more else NEVER
    best = -np.inf
    worst = np.inf
    for j in range(arms[depth, i, out_at.shape[1]]):
        k = arms[depth, i, j]
        if out_at[s, k] == NEVER:
            best = max(best, total[slot, k])
            worst = min(worst, total[slot, k])
    if best - worst >= g_below:
        _eliminate(s, i, depth, slot, n, best, logs, unit, walks, log_c, scale, arms, total, state,
                   out_at)


@inner
def _eliminate(s, i, depth, slot, n, best, logs, unit, walks, log_c, scale, arms, total, state,
               out_at):
    """Every arm whose distance from the leader is g or more falls, all at once."""
    arm_count = out_at.shape[1]
    level = np.int64(1)
    while n >> level > 0:
        level += 1
    for j in range(arms[depth, i, arm_count]):
        k = arms[depth, i, j]
        if out_at[s, k] == NEVER and reaches(
                best - total[slot, k], n, level, logs, unit, walks, log_c, scale):
            out_at[s, k] = n
            state[s, ALIVE] -= 1
    if state[s, ALIVE] == 1:
        declare(s, n, state, out_at)


@inlined
def _safe(finite, d_a, d_b, least, slack, variance):
    """Whether a pair at these distances from g at the ends stays below it in between."""
    if d_b <= 0.0 or d_a <= 0.0:
        return False
    if finite:
        d = min(d_a, d_b)
        return d * d >= least * variance + slack * d
    return d_a * d_b >= least


@inlined
def _pairs_in_doubt(
    s, i, depth, slot, skip, finite, least, slack, frame, g, arms, total, variance, state, out_at,
    doubt, pairs,
):
    """The number of pairs that might cross g in the interval, the first DUELS of which are listed
    in `pairs`; their arms are listed at [depth + 1, slot]. `least` and `slack` are those of
    `_safe`."""
    arm_count = out_at.shape[1]
    count = arms[depth, i, arm_count]
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    g_a, g_b = g[depth, 0], g[depth, 1]
    if skip and count == 2:  # most looks are at two arms
        k, rival = arms[depth, i, 0], arms[depth, i, 1]
        if out_at[s, k] < NEVER or out_at[s, rival] < NEVER:
            return 0
        lead_a, lead_b = total[left, k] - total[left, rival], total[right, k] - total[right, rival]
        spread = variance[k] + variance[rival]
        ahead = _safe(finite, g_a - lead_a, g_b - lead_b, least, slack, spread)
        behind = _safe(finite, g_a + lead_a, g_b + lead_b, least, slack, spread)
        state[s, SAFE_PAIRS] += np.int64(ahead) + np.int64(behind)
        if ahead and behind:
            return 0
        arms[depth + 1, slot, 0], arms[depth + 1, slot, 1] = k, rival
        arms[depth + 1, slot, arm_count] = 2
        pairs[0, 0], pairs[0, 1] = k, rival
        return 1
    alive = 0
    best_a = best_b = -np.inf
    worst_a = worst_b = np.inf
    widest = 0.0
    for j in range(count):
        k = arms[depth, i, j]
        doubt[k] = False
        if out_at[s, k] == NEVER:
            doubt[k] = not skip
            alive += 1
            best_a, worst_a = max(best_a, total[left, k]), min(worst_a, total[left, k])
            best_b, worst_b = max(best_b, total[right, k]), min(worst_b, total[right, k])
            widest = max(widest, variance[k])
    doubts = 0
    if not skip:
        doubts = alive * (alive - 1) // 2
    elif _safe(finite, g_a - (best_a - worst_a), g_b - (best_b - worst_b), least, slack,
               2.0 * widest):
        state[s, SAFE_PAIRS] += alive * (alive - 1)
    else:
        for j in range(count):
            k = arms[depth, i, j]
            if out_at[s, k] < NEVER:
                continue
            lift_a, lift_b = g_a + total[left, k], g_b + total[right, k]
            # the leaders at either end are at least as near to crossing as any one rival
            if _safe(finite, lift_a - best_a, lift_b - best_b, least, slack, variance[k] + widest):
                state[s, SAFE_PAIRS] += alive - 1
                continue
            for r in range(count):
                rival = arms[depth, i, r]
                if rival == k or out_at[s, rival] < NEVER:
                    continue
                if _safe(finite, lift_a - total[left, rival], lift_b - total[right, rival], least,
                         slack, variance[k] + variance[rival]):
                    state[s, SAFE_PAIRS] += 1
                    continue
                doubt[k] = doubt[rival] = True
                listed = False
                for p in range(min(doubts, DUELS)):
                    listed |= pairs[p, 0] == k and pairs[p, 1] == rival
                if not listed:
                    if doubts < DUELS:
                        pairs[doubts, 0], pairs[doubts, 1] = rival, k
                    doubts += 1
    if doubts == 0:
        return 0
    found = 0
    for j in range(count):
        k = arms[depth, i, j]
        if doubt[k]:
            arms[depth + 1, slot, found] = k
            found += 1
    arms[depth + 1, slot, arm_count] = found
    return doubts


@inlined
def _collect(depth, frame, arms, drawn, doubt):
    """At depth + 1, the union of the arms in doubt over the schedules in doubt."""
    below = depth + 1
    arm_count = doubt.shape[0]
    if frame[below, TALKERS] == 1:
        count = np.int64(arms[below, 0, arm_count])
        for j in range(count):
            drawn[below, j] = arms[below, 0, j]
        frame[below, DRAWN] = count
        return
    for j in range(frame[depth, DRAWN]):
        doubt[drawn[depth, j]] = False
    for i in range(frame[below, TALKERS]):
        for j in range(arms[below, i, arm_count]):
            doubt[arms[below, i, j]] = True
    count = 0
    for j in range(frame[depth, DRAWN]):
        if doubt[drawn[depth, j]]:
            drawn[below, count] = drawn[depth, j]
            count += 1
    frame[below, DRAWN] = count


@inlined
def _draw_middles(seed, trial, noise, lo, hi, depth, frame, drawn, words, value, total, work):
    """X and S in the middle of the interval at `depth`, for the arms that depth + 1 needs.

    The middle shares its block of words with the middles of the two halves (see `normal`): whoever
    comes first makes the block, and `words` keeps the rest.
    """
    slot, left, right = MIDDLE + depth, frame[depth, LEFT], frame[depth, RIGHT]
    a, half = frame[depth, A], (frame[depth, B] - frame[depth, A]) >> 1
    spread = noise * math.sqrt(0.5 * float(half))
    comes_first = not is_power_of_four(half)
    for j in range(frame[depth + 1, DRAWN]):
        k = np.int64(drawn[depth + 1, j])
        sum_over_clients = 0.0
        for m in range(lo, hi):
            if comes_first:
                w1, word, w3, _ = quarter_words(seed, trial, m, k, a, half >> 1)
                words[depth, k, m, 0], words[depth, k, m, 1] = w1, w3
            elif depth == 0:  # a third quarter point: the first two are on the spine
                _, _, word, _ = quarter_words(seed, trial, m, k, np.int64(0), half)
            else:
                word = words[depth - 1, k, m, frame[depth, IS_RIGHT]]
            z = normal_from(word, seed, trial, m, k, a + half)
            x = split(value[left, k, m], value[right, k, m], spread, z)
            value[slot, k, m] = x
            sum_over_clients += x
        total[slot, k] = sum_over_clients
    work[1] += frame[depth + 1, DRAWN] * (hi - lo)


@inlined
def _open_left(depth, frame):
    """The left half of the interval at `depth`, at depth + 1."""
    below = depth + 1
    frame[below, A] = frame[depth, A]
    frame[below, B] = (frame[depth, A] + frame[depth, B]) // 2
    frame[below, LEFT] = frame[depth, LEFT]
    frame[below, RIGHT] = MIDDLE + depth
    frame[below, IS_RIGHT] = 0


@inlined
def _draw_steps(seed, trial, noise, lo, hi, depth, frame, drawn, value, total, work):
    """S at every step of the interval at `depth`, step n in slot STEP + n - a.

    The interval is 4 long, or 2 at the foot of the spine, and its splits are written out.
    """
    below = depth + 1
    a, length = frame[depth, A], frame[depth, B] - frame[depth, A]
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    one, two = noise * math.sqrt(0.5), noise
    for j in range(frame[below, DRAWN]):
        k = np.int64(drawn[below, j])
        s1 = s2 = s3 = 0.0
        for m in range(lo, hi):
            x0, x4 = value[left, k, m], value[right, k, m]
            w1, w2, w3, _ = quarter_words(seed, trial, m, k, a & -4, np.int64(1))
            if length == 2:  # (2, 4]
                s1 += split(x0, x4, one, normal_from(w3, seed, trial, m, k, a + 1))
                continue
            x2 = split(x0, x4, two, normal_from(w2, seed, trial, m, k, a + 2))
            s1 += split(x0, x2, one, normal_from(w1, seed, trial, m, k, a + 1))
            s2 += x2
            s3 += split(x2, x4, one, normal_from(w3, seed, trial, m, k, a + 3))
        total[STEP + 1, k], total[STEP + 2, k], total[STEP + 3, k] = s1, s2, s3
        total[STEP + length, k] = total[right, k]
    work[1] += frame[below, DRAWN] * (hi - lo) * (length - 1)
