"""How a pass keeps its memory: columns, slots, and the arrays themselves."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.boundary import PARTS
from fastfed.kernels.laws.counts import STRETCH

SKIP_TOLERANCE = 1e-15
BAR = -math.log(SKIP_TOLERANCE)
DUELS = 3  # so many pairs in doubt at most are followed one by one; 1 is 7 % slower, 6 no faster
NEVER = np.int64(2**62)
SPINE = 53
ORIGIN = SPINE
MIDDLE = SPINE + 1
DEPTHS = 54
STEP = MIDDLE + DEPTHS

# columns of `frame`, one row a depth: the interval, the slots of its ends, whether it is the
# right half of the one above, how many schedules look into it, how many arms its middle needs
A, B, LEFT, RIGHT, IS_RIGHT, TALKERS, DRAWN = range(7)
# columns of `plan`, one row a schedule: every PERIOD steps up to LAST, or, if PERIOD is 0, at
# listed[BEGIN:END]
PERIOD, LAST, BEGIN, END = range(4)
# columns of `state`, one row a schedule: its next time (NEVER if there is none) and where that
# stands in `listed`, how many arms are alive, the last one, scalars sent, communication times
# used, safe verdicts
NEXT, INDEX, ALIVE, WINNER, UPLINKS, ROUNDS, SAFE_PAIRS = range(7)


class Problem(NamedTuple):
    """What is simulated. ``scale`` is the confidence scale.

    Gaussian rewards have ``noise``; others have ``shares`` (K, M, V), see `variates.shares`, and
    their noise is 1 and serves only as a unit. The V values themselves travel apart: they are
    None for Gaussian rewards, and Numba leaves out what a None rules out.
    """

    seed: Any
    means: Any  # (K, M)
    noise: Any
    shares: Any
    scale: Any
    local_log: Any
    global_log: Any
    skip: Any


class Space(NamedTuple):
    """Scratch memory of one thread, made once and reused for all its trials."""

    value: Any  # (slots, K, M) X
    words: Any  # (depths, K, M, 2) of the two quarter points beside a middle: see `normal`
    total: Any  # (slots, K) S
    known: Any  # (K, M) spine nodes drawn so far in this trial
    frame: Any  # (depths, 7)
    g: Any  # (depths, 2) lower bounds on g(a), g(b), near enough to decide by
    # indices are unsigned: Numba then leaves out the code for negative ones
    talkers: Any  # (depths, S) the schedules that must look into the interval
    arms: Any  # (depths, S, K + 1) the arms in doubt of each talker; their number comes last
    drawn: Any  # (depths, K) union of those arms
    doubt: Any  # (K,) flags
    work: Any  # (2,) intervals looked at, variates drawn
    counts: Any  # (slots, K, M, V) how often each value came, and what follows: finite support
    squares: Any  # (slots, K, M) sum of the squared rewards
    variance: Any  # (K,) of an arm's rewards in the interval looked at, summed over clients
    steps: Any  # (STRETCH,) scratch of a shuffle
    rest: Any  # (V,)
    local_logs: Any  # (54, PARTS) see `boundary`
    global_logs: Any
    local_state: Any  # (1, 7), and what follows: the result of a client's pass,
    local_out_at: Any  # (1, K)
    local_out: Any  # (K, M) of all clients' passes,
    winners: Any  # (M,)
    state: Any  # (S, 7) and of the server's
    out_at: Any  # (S, K)
    pairs: Any  # (DUELS, 3) two arms in doubt, then: who leads, who falls, when
    # and what follows: the intervals that a duel has before it
    span: Any  # (2 depths, 2) a, b
    edge: Any  # (2 depths, 6) X of the two arms and g, at a and at b


def make_space(arms: int, clients: int, schedules: int, support: int) -> Space:
    """``support``: the number of values that a reward can have, 0 for Gaussian rewards."""
    slots = STEP + STRETCH + 1

    def ints(*shape: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.zeros(shape, np.int64)

    return Space(
        value=np.zeros((slots, arms, clients)),
        words=np.zeros((0 if support else DEPTHS, arms, clients, 2), np.uint64),
        total=np.zeros((slots, arms)),
        known=ints(arms, clients),
        frame=ints(DEPTHS, 7),
        g=np.zeros((DEPTHS, 2)),
        talkers=np.zeros((DEPTHS, schedules), np.uint32),
        arms=np.zeros((DEPTHS, schedules, arms + 1), np.uint32),
        drawn=np.zeros((DEPTHS, arms), np.uint32),
        doubt=np.zeros(arms, np.bool_),
        work=ints(2),
        counts=ints(slots if support else 0, arms, clients, support),
        squares=np.zeros((slots if support else 0, arms, clients)),
        variance=np.zeros(arms),
        steps=np.zeros(STRETCH),
        rest=ints(support),
        local_logs=np.zeros((SPINE + 1, PARTS)),
        global_logs=np.zeros((SPINE + 1, PARTS)),
        local_state=ints(1, 7),
        local_out_at=ints(1, arms),
        local_out=ints(arms, clients),
        winners=ints(clients),
        state=ints(schedules, 7),
        out_at=ints(schedules, arms),
        pairs=ints(DUELS, 3),
        span=ints(2 * DEPTHS, 2),
        edge=np.zeros((2 * DEPTHS, 6)),
    )
