"""A client's pass where few pairs of arms are in doubt: each pair is followed by itself.

A pass keeps lists of schedules and of arms for every interval. A client has one schedule, every
step, and most of its intervals have one pair in doubt: there the lists cost more than the draws. A
duel is the pass of one pair, on the same walks and by the same bound, kept in registers. It finds
the first step at which one arm leads the other by g or more; that is all a pair can do. Several
duels in one interval do not disturb each other: an arm that falls ends the others it is in, so the
earliest falls are carried out first, those of one step together.

A duel quarters its intervals, as one block of words does (see `normal`): it draws the middle, and
then the middle of each half that is still in doubt.
"""

from __future__ import annotations

import math

import numpy as np

from fastfed.kernels.boundary import CHORD, boundary_between, reaches
from fastfed.kernels.communication import advance, declare
from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.laws.walk import split
from fastfed.kernels.memory import (
    ALIVE,
    BAR,
    LEFT,
    NEVER,
    RIGHT,
    ROUNDS,
    SAFE_PAIRS,
    UPLINKS,
    A,
    B,
)
from fastfed.kernels.random.normal import is_power_of_four, normal_from, quarter_words


@inlined
def _safe(lead_a, lead_b, g_a, g_b, least):
    """Whether a pair with these leads at the ends stays below g in between, whoever leads, by the
    bridge's bound (see `elimination`). Without branches: either way is as likely."""
    up_a, up_b, down_a, down_b = g_a - lead_a, g_b - lead_b, g_a + lead_a, g_b + lead_b
    inside = (min(up_a, up_b) > 0.0) & (min(down_a, down_b) > 0.0)
    return inside & (min(up_a * up_b, down_a * down_b) >= least)


@inlined
def _push(top, a, b, x_a, y_a, g_a, x_b, y_b, g_b, span, edge):
    span[top, 0], span[top, 1] = a, b
    edge[top, 0], edge[top, 1], edge[top, 2] = x_a, y_a, g_a
    edge[top, 3], edge[top, 4], edge[top, 5] = x_b, y_b, g_b


@inner
def duel(seed, trial, m, noise, j, k, a, b, x_a, y_a, x_b, y_b, g_a, g_b, level, logs, unit, log_c,
         scale, span, edge, work):
    """The first step in (a, b] at which j, whose sum is x, leads k, whose sum is y, by g or more,
    or minus the first at which k leads j so, or 0; and the number of safe verdicts."""
    least = noise * noise * BAR
    looks, draws, safe = 0, 0, 0
    top, one = np.uint64(0), np.uint64(1)
    fallen = np.int64(0)
    if not is_power_of_four(b - a):  # its middle is a first or third quarter point
        half = (b - a) >> 1
        middle = a + half
        spread = noise * math.sqrt(0.5 * float(half))
        v1, _, v3, _ = quarter_words(seed, trial, m, j, middle & -(4 * half), half)
        w1, _, w3, _ = quarter_words(seed, trial, m, k, middle & -(4 * half), half)
        third = middle & (2 * half) != 0
        z_x = normal_from(v3 if third else v1, seed, trial, m, j, middle)
        z_y = normal_from(w3 if third else w1, seed, trial, m, k, middle)
        x, y = split(x_a, x_b, spread, z_x), split(y_a, y_b, spread, z_y)
        g = boundary_between(a, b, g_a, g_b, level, logs, unit, noise)
        _push(top, middle, b, x, y, g, x_b, y_b, g_b, span, edge)
        top += one
        draws += 2
        b, x_b, y_b, g_b = middle, x, y, g
    while True:
        s = (b - a) >> 2
        v1, v2, v3, _ = quarter_words(seed, trial, m, j, a, s)
        w1, w2, w3, _ = quarter_words(seed, trial, m, k, a, s)
        spread = noise * math.sqrt(float(s))
        narrow = noise * math.sqrt(0.5 * float(s))
        x2 = split(x_a, x_b, spread, normal_from(v2, seed, trial, m, j, a + 2 * s))
        y2 = split(y_a, y_b, spread, normal_from(w2, seed, trial, m, k, a + 2 * s))
        draws += 2
        if s == 1:
            x1 = split(x_a, x2, narrow, normal_from(v1, seed, trial, m, j, a + 1))
            y1 = split(y_a, y2, narrow, normal_from(w1, seed, trial, m, k, a + 1))
            x3 = split(x2, x_b, narrow, normal_from(v3, seed, trial, m, j, a + 3))
            y3 = split(y2, y_b, narrow, normal_from(w3, seed, trial, m, k, a + 3))
            draws += 4
            rise = 0.25 * (g_b - g_a)
            lead1, lead2, lead3, lead4 = x1 - y1, x2 - y2, x3 - y3, x_b - y_b
            if ((abs(lead1) >= CHORD * (g_a + rise)) | (abs(lead2) >= CHORD * (g_a + 2.0 * rise))
                    | (abs(lead3) >= CHORD * (g_a + 3.0 * rise)) | (abs(lead4) >= g_b)):
                for i in range(1, 5):
                    lead = lead1 if i == 1 else lead2 if i == 2 else lead3 if i == 3 else lead4
                    octave = level + ((a + i) >> level)
                    if reaches(abs(lead), a + i, octave, logs, unit, 1.0, log_c, scale):
                        fallen = a + i if lead > 0.0 else -(a + i)
                        break
                if fallen != 0:
                    break
        else:
            g2 = boundary_between(a, b, g_a, g_b, level, logs, unit, noise)
            bound = least * float(s)
            left = _safe(x_a - y_a, x2 - y2, g_a, g2, 2.0 * bound)
            right = _safe(x2 - y2, x_b - y_b, g2, g_b, 2.0 * bound)
            looks += 2
            safe += 2 * (np.int64(left) + np.int64(right))
            if not right:
                x3 = split(x2, x_b, narrow, normal_from(v3, seed, trial, m, j, a + 3 * s))
                y3 = split(y2, y_b, narrow, normal_from(w3, seed, trial, m, k, a + 3 * s))
                g3 = boundary_between(a + 2 * s, b, g2, g_b, level, logs, unit, noise)
                safe3 = _safe(x2 - y2, x3 - y3, g2, g3, bound)
                safe4 = _safe(x3 - y3, x_b - y_b, g3, g_b, bound)
                draws += 2
                looks += 2
                safe += 2 * (np.int64(safe3) + np.int64(safe4))
                _push(top, a + 3 * s, b, x3, y3, g3, x_b, y_b, g_b, span, edge)
                top += np.uint64(not safe4)
                _push(top, a + 2 * s, a + 3 * s, x2, y2, g2, x3, y3, g3, span, edge)
                top += np.uint64(not safe3)
            if not left:
                x1 = split(x_a, x2, narrow, normal_from(v1, seed, trial, m, j, a + s))
                y1 = split(y_a, y2, narrow, normal_from(w1, seed, trial, m, k, a + s))
                g1 = boundary_between(a, a + 2 * s, g_a, g2, level, logs, unit, noise)
                safe1 = _safe(x_a - y_a, x1 - y1, g_a, g1, bound)
                safe2 = _safe(x1 - y1, x2 - y2, g1, g2, bound)
                draws += 2
                looks += 2
                safe += 2 * (np.int64(safe1) + np.int64(safe2))
                _push(top, a + s, a + 2 * s, x1, y1, g1, x2, y2, g2, span, edge)
                top += np.uint64(not safe2)
                if not safe1:
                    b, x_b, y_b, g_b = a + s, x1, y1, g1
                    continue
        if top == 0:
            break
        top -= one
        a, b = span[top, 0], span[top, 1]
        x_a, y_a, g_a = edge[top, 0], edge[top, 1], edge[top, 2]
        x_b, y_b, g_b = edge[top, 3], edge[top, 4], edge[top, 5]
    work[0] += looks
    work[1] += draws
    return fallen, safe


@inner
def settle_by_duels(count, seed, trial, m, noise, depth, level, logs, unit, log_c, scale, plan,
                    listed, frame, g, value, pairs, span, edge, work, state, out_at):
    """Carry the one schedule through the interval at `depth`, where `count` pairs are in doubt."""
    s = np.uint32(0)
    a, b = frame[depth, A], frame[depth, B]
    left, right = frame[depth, LEFT], frame[depth, RIGHT]
    for p in range(count):
        j, k = pairs[p, 0], pairs[p, 1]
        pairs[p, 2], safe = duel(
            seed, trial, m, noise, j, k, a, b, value[left, j, m], value[left, k, m],
            value[right, j, m], value[right, k, m], g[depth, 0], g[depth, 1], level, logs, unit,
            log_c, scale, span, edge, work)
        state[s, SAFE_PAIRS] += safe
        if pairs[p, 2] < 0:
            pairs[p, 0], pairs[p, 1], pairs[p, 2] = k, j, -pairs[p, 2]
    n = a
    while n < b and state[s, ALIVE] > 1:
        n = b  # or the next step at which an arm falls
        for p in range(count):
            if pairs[p, 2] > 0 and out_at[s, pairs[p, 0]] == out_at[s, pairs[p, 1]] == NEVER:
                n = min(n, pairs[p, 2])
        passed = advance(s, n, plan, listed, state)
        state[s, ROUNDS] += passed
        state[s, UPLINKS] += passed * state[s, ALIVE]
        for p in range(count):
            if pairs[p, 2] == n and out_at[s, pairs[p, 0]] >= n and out_at[s, pairs[p, 1]] == NEVER:
                out_at[s, pairs[p, 1]] = n
                state[s, ALIVE] -= 1
        if state[s, ALIVE] == 1:
            declare(s, n, state, out_at)
