"""How a pass keeps its memory: slots, columns, and the arrays themselves, in named groups.

Groups are small on purpose. A function that Numba does not inline receives a tuple as one LLVM
argument for each pointer, shape and stride in it: all of a pass's memory as one argument is some
245 of them at every call, and 7 to 10 % of the time of a trial. So functions that are called
receive the groups they use, and only inlined ones receive more.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

SKIP_TOLERANCE = 1e-15
BAR = -math.log(SKIP_TOLERANCE)
MOST_DUELS = 3  # pairs in doubt that are followed one by one; 1 is 7 % slower, 6 no faster
NEVER = np.int64(2**62)
SPINE = 53
ORIGIN = SPINE
MIDDLE = SPINE + 1
DEPTHS = 54
HEARD = MIDDLE + DEPTHS  # of the sums only: what the server hears, if that differs from them
STEP = HEARD + 1

# columns of `frame`, one row a depth: the interval, the slots of its ends, whether it is the
# right half of the one above, how many schedules look into it, how many arms its middle needs
A, B, LEFT, RIGHT, IS_RIGHT, TALKERS, DRAWN = range(7)
# columns of `plan`, one row a schedule: every PERIOD steps up to LAST, or, if PERIOD is 0, at
# listed[BEGIN:END]
PERIOD, LAST, BEGIN, END = range(4)
# columns of `state`, one row a schedule: its next time (NEVER if there is none) and where that
# stands in `listed`, how many arms are alive, the declared one, scalars sent, communication times
# used, safe verdicts, the step at which it was given up (0: it was not), bits sent, if they are
# counted, draws of walks that the schedule would have needed had it run alone; then a column for
# each arm, which goals with several answers set to 1 if the arm is one of them
NEXT, INDEX, ALIVE, WINNER, SENT, TALKS, SAFE_PAIRS, GAVE_UP, BITS, DRAWS = range(10)
CALLED = 10
# in place of a declared arm: nothing has been declared; a set of arms has
NOBODY, A_SET = -1, -2


class Who(NamedTuple):
    """Whose walks a pass follows: one trial, the clients lo .. hi - 1."""

    seed: Any
    trial: Any
    lo: Any
    hi: Any


class Walks(NamedTuple):
    """What has been drawn of the walks."""

    value: Any  # (slots, K, M) X
    total: Any  # (slots, K) S
    known: Any  # (K, M) spine nodes drawn so far in this trial
    work: Any  # (2,) intervals looked at, variates drawn


class Tree(NamedTuple):
    """The interval that is looked at, and those above it."""

    frame: Any  # (depths, 7)
    g: Any  # (depths, 2) lower bounds on g(a), g(b), near enough to decide by
    # indices are unsigned: Numba then leaves out the code for negative ones
    talkers: Any  # (depths, S) the schedules that must look into the interval
    arms: Any  # (depths, S, K + 1) the arms in doubt of each talker; their number comes last
    drawn: Any  # (depths, K) union of those arms
    doubt: Any  # (K,) flags
    variance: Any  # (K,) what `laws.judge_by` has to say of each arm
    pairs: Any  # (MOST_DUELS, 3) two arms in doubt, then: who leads, who is eliminated, when
    notes: Any  # what the goal asks for: see `goals`


class Talks(NamedTuple):
    """When each of S schedules talks, and where a pass stands with each of them."""

    plan: Any  # (S, 4)
    listed: Any  # all listed times, one schedule after the other
    state: Any  # (S, CALLED + K)
    out_at: Any  # (S, K) the step at which each arm left; NEVER if it did not
    rule: Any  # of the goal, at this client or at the server: see `goals`
    uplink: Any  # what the server hears, one of `kernels.uplinks`
    heard: Any  # and its memory


class Test(NamedTuple):
    """When a pair is safe in an interval: see `laws.safe`. Without ``skip`` none ever is."""

    skip: Any
    law: Any
    least: Any
    slack: Any
    curve: Any  # for goals that need g from above, too
    strays: Any  # how far what is heard may lie from the walks, at both ends: see `uplinks.hooks`


class Space(NamedTuple):
    """Scratch memory of one thread, made once and reused for all its trials."""

    walks: Any
    tree: Any
    law: Any  # what the law asks for: see `laws`
    local_state: Any  # (1, CALLED + K) the result of a client's pass,
    local_out_at: Any  # (1, K)
    local_out: Any  # (K, M) of all clients' passes,
    winners: Any  # (M,)
    wrong: Any  # (M,) whether a client's answer is wrong
    local_gave_up: Any  # (M,)
    state: Any  # (S, CALLED + K) and of the server's
    out_at: Any  # (S, K)
    heard: Any  # what the uplink asks for: see `kernels.uplinks`


def ints(*shape: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.zeros(shape, np.int64)


def make_space(problem: Any, arms: int, clients: int, schedules: int) -> Space:
    """Memory for trials of ``schedules`` schedules of a `trials.Problem`: its law, its goal and its
    uplink each make their own."""
    law, goal, uplink = problem.law, problem.goal, problem.uplink
    slots = STEP + law.longest_walk + 1
    return Space(
        walks=Walks(
            value=np.zeros((slots, arms, clients)),
            total=np.zeros((slots, arms)),
            known=ints(arms, clients),
            work=ints(2),
        ),
        tree=Tree(
            frame=ints(DEPTHS, 7),
            g=np.zeros((DEPTHS, 2)),
            talkers=np.zeros((DEPTHS, schedules), np.uint32),
            arms=np.zeros((DEPTHS, schedules, arms + 1), np.uint32),
            drawn=np.zeros((DEPTHS, arms), np.uint32),
            doubt=np.zeros(arms, np.bool_),
            variance=np.zeros(arms),
            pairs=ints(MOST_DUELS, 3),
            notes=goal.notes(arms, schedules),
        ),
        law=law.memory(slots, arms, clients),
        local_state=ints(1, CALLED + arms),
        local_out_at=ints(1, arms),
        local_out=ints(arms, clients),
        winners=ints(clients),
        wrong=ints(clients),
        local_gave_up=ints(clients),
        state=ints(schedules, CALLED + arms),
        out_at=ints(schedules, arms),
        heard=uplink.memory(schedules, arms, clients),
    )
