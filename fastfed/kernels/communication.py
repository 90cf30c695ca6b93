"""Where each schedule stands: its next communication time, and how many an interval holds."""

from __future__ import annotations

import numpy as np

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.memory import (
    ALIVE,
    BEGIN,
    END,
    GAVE_UP,
    INDEX,
    LAST,
    NEVER,
    NEXT,
    PERIOD,
    SENT,
    TALKS,
    WINNER,
)


@inner
def begin(s, talks):
    """Put schedule s before its first time."""
    plan, listed, state = talks.plan, talks.listed, talks.state
    if plan[s, PERIOD] > 0:
        first = plan[s, PERIOD] if plan[s, PERIOD] <= plan[s, LAST] else NEVER
    else:
        first = listed[plan[s, BEGIN]] if plan[s, BEGIN] < plan[s, END] else NEVER
    state[s, NEXT] = first
    state[s, INDEX] = plan[s, BEGIN]


@inlined
def advance(s, b, talks):
    """Move schedule s, whose next time is at most b, to its first time past b; how many times that
    passes."""
    plan, listed, state = talks.plan, talks.listed, talks.state
    time = state[s, NEXT]
    period = plan[s, PERIOD]
    if period > 0:
        until = min(b, plan[s, LAST])
        count = until - time + 1 if period == 1 else (until - time) // period + 1
        time += count * period
        state[s, NEXT] = time if time <= plan[s, LAST] else NEVER
        return count
    low, high = state[s, INDEX], plan[s, END]
    while low < high:
        middle = (low + high) // 2
        if listed[middle] <= b:
            low = middle + 1
        else:
            high = middle
    count = low - state[s, INDEX]
    state[s, INDEX] = low
    state[s, NEXT] = listed[low] if low < plan[s, END] else NEVER
    return count


@inlined
def talk_once(s, n, clients, talks):
    """Communication time n of schedule s: every client sends a scalar for every arm alive."""
    plan, listed, state = talks.plan, talks.listed, talks.state
    state[s, SENT] += clients * state[s, ALIVE]
    state[s, TALKS] += 1
    if plan[s, PERIOD] > 0:
        state[s, NEXT] = n + plan[s, PERIOD] if n < plan[s, LAST] else NEVER
    else:
        state[s, INDEX] += 1
        more = state[s, INDEX] < plan[s, END]
        state[s, NEXT] = listed[state[s, INDEX]] if more else NEVER


@inlined
def talk_through(s, b, clients, talks):
    """All communication times of schedule s up to b, at none of which an arm is eliminated."""
    count = advance(s, b, talks)
    talks.state[s, SENT] += count * clients * talks.state[s, ALIVE]
    talks.state[s, TALKS] += count


@inner
def conclude(s, n, talks):
    """After an elimination at n, if the goal is the best arm. Algorithm 1, lines 13-15 and 23-25:
    the last arm is declared, and pulled no more.

    Not in the paper: if all arms that are left tie (`problem.instance.TIE`), the best was lost. No
    answer that could still be given would be right, and to tell arms apart that do not differ may
    take for ever, so the schedule is given up here.
    """
    state, out_at, ties = talks.state, talks.out_at, talks.rule.ties
    last = np.int64(-1)
    for k in range(out_at.shape[1]):
        if out_at[s, k] == NEVER:
            if last >= 0 and ties[k] != ties[last]:
                return
            last = k
    if state[s, ALIVE] == 1:
        out_at[s, last] = n
        state[s, WINNER] = last
    else:
        state[s, GAVE_UP] = n
    state[s, NEXT] = NEVER
