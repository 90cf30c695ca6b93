"""The next communication time of each schedule, and the number of times in an interval."""

from __future__ import annotations

import numpy as np

from fastfed.kernels.compiling import inlined, inner
from fastfed.kernels.extremes import smaller
from fastfed.kernels.memory import (
    ABANDONED,
    ALIVE,
    BEGIN,
    END,
    INDEX,
    LAST,
    NEVER,
    NEXT,
    PERIOD,
    SENT,
    TIMES_USED,
    WINNER,
    Int,
    Ints,
    Schedules,
)


@inner
def begin(s: Int, schedules: Schedules) -> None:
    """Put schedule s before its first time."""
    times, listed, state = schedules.times, schedules.listed, schedules.state
    if times[s, PERIOD] > 0:
        first = times[s, PERIOD] if times[s, PERIOD] <= times[s, LAST] else NEVER
    else:
        first = listed[times[s, BEGIN]] if times[s, BEGIN] < times[s, END] else NEVER
    state[s, NEXT] = first
    state[s, INDEX] = times[s, BEGIN]


@inlined
def advance(s: Int, b: Int, schedules: Schedules) -> Int:
    """Move schedule s, whose next time is at most b, past b; return the number of times passed."""
    times, listed, state = schedules.times, schedules.listed, schedules.state
    time = state[s, NEXT]
    period = times[s, PERIOD]
    if period > 0:
        until = smaller(b, times[s, LAST])
        count = until - time + 1
        if period > 1:
            count = np.int64(np.uint64(until - time) // np.uint64(period)) + 1
        time += count * period
        state[s, NEXT] = time if time <= times[s, LAST] else NEVER
        return count
    low, high = state[s, INDEX], times[s, END]
    while low < high:
        middle = (low + high) // 2
        if listed[middle] <= b:
            low = middle + 1
        else:
            high = middle
    count = low - state[s, INDEX]
    state[s, INDEX] = low
    state[s, NEXT] = listed[low] if low < times[s, END] else NEVER
    return count


@inlined
def communicate(s: Int, n: Int, messages: Int, schedules: Schedules) -> None:
    """Use communication time n of schedule s, at which so many messages are sent."""
    times, listed, state = schedules.times, schedules.listed, schedules.state
    state[s, SENT] += messages
    state[s, TIMES_USED] += 1
    if times[s, PERIOD] > 0:
        state[s, NEXT] = n + times[s, PERIOD] if n < times[s, LAST] else NEVER
    else:
        state[s, INDEX] += 1
        more = state[s, INDEX] < times[s, END]
        state[s, NEXT] = listed[state[s, INDEX]] if more else NEVER


@inlined
def communicate_through(s: Int, b: Int, messages: Int, schedules: Schedules) -> None:
    """Use all communication times of schedule s up to b; no arm is eliminated before the last."""
    count = advance(s, b, schedules)
    schedules.state[s, SENT] += count * messages
    schedules.state[s, TIMES_USED] += count


@inlined
def decided_at(state: Ints, eliminated_at: Ints, s: Int, k: Int) -> Int:
    """Return the step at which a question no longer needs arm k; NEVER if it always does."""
    end = state[s, ABANDONED] if state[s, ABANDONED] > 0 else NEVER
    return smaller(eliminated_at[s, k], end)


@inner
def conclude(s: Int, n: Int, schedules: Schedules) -> None:
    """End schedule s after an elimination at n, if it is over and the goal is the best arm.

    Algorithm 1, lines 13-15 and 23-25: the last arm is declared, and pulled no more.

    Not in the paper: if all arms that are left tie (`model.instance.TIE`), the best was lost. No
    answer that could still be given would be right, and to separate arms that do not differ may
    take for ever, so the schedule is abandoned here.
    """
    state, eliminated_at, ties = schedules.state, schedules.eliminated_at, schedules.rule.ties
    last: Int = np.int64(-1)
    for k in range(eliminated_at.shape[1]):
        if eliminated_at[s, k] == NEVER:
            if last >= 0 and ties[k] != ties[last]:
                return
            last = k
    if state[s, ALIVE] == 1:
        eliminated_at[s, last] = n
        state[s, WINNER] = last
    else:
        state[s, ABANDONED] = n
    state[s, NEXT] = NEVER
