"""Memory of a pass: slots, columns, and the arrays themselves in named groups.

Kernels hand the groups on by reference (`tuple_references`), and small tuples such as `Round` by
value.

Shapes: K arms, M clients, S schedules.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Int: TypeAlias = Any
"""An int64: kernels mix Python's integers and NumPy's."""
Flag: TypeAlias = Any
"""A bool: kernels mix Python's and NumPy's."""
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Indices: TypeAlias = npt.NDArray[np.uint32]
"""Unsigned: Numba then leaves out the code for negative indices."""
Flags: TypeAlias = npt.NDArray[np.bool_]

SKIP_TOLERANCE = 1e-15
BAR = -math.log(SKIP_TOLERANCE)
MOST_PAIRS = 3  # unresolved pairs that get a pairwise pass; 1 is 7 % slower, 6 no faster
NEVER = np.int64(2**62)
SPINE = 53
# Slots hold the values at a node: 0 .. 52 the spine nodes 2^0 .. 2^52, ORIGIN the start n = 0,
# MIDDLE + i the middle that made depth i + 1, STEP + i the i-th step of an interval that is walked
ORIGIN = SPINE
MIDDLE = SPINE + 1
DEPTHS = 54
RECEIVED = MIDDLE + DEPTHS  # of the sums only: received by the server, if that differs from them
STEP = RECEIVED + 1

# columns of `frame`, one row a depth: the interval, the slots of its ends, whether it is the right
# half of the one above, the number of its unsettled schedules, the number of arms its middle needs,
# the number of unresolved functionals (`verdicts`)
A, B, LEFT, RIGHT, IS_RIGHT, UNSETTLED, DRAWN, LISTED = range(8)
# columns of `times`, one row a schedule: every PERIOD steps up to LAST, or, if PERIOD is 0, at
# listed[BEGIN:END]
PERIOD, LAST, BEGIN, END = range(4)
# columns of `state`, one row a schedule: its next time (NEVER if there is none) and the place of
# that in `listed`, the number of arms alive, the declared arm, scalars sent, communication times
# used, certificates, the step at which it was abandoned (0: it was not), bits sent, if they are
# counted, draws of walks that the schedule would have needed had it run alone, the last step up to
# which values at spine nodes decided everything (NEVER: they decided all), messages of a round;
# then a column for each arm, which goals with several answers set to 1 if the arm is accepted
NEXT, INDEX, ALIVE, WINNER, SENT, TIMES_USED, CERTIFICATES, ABANDONED, BITS, DRAWS = range(10)
SPINE_DECIDES, SENDING = 10, 11
ACCEPTED = 12
# columns of `Lazy.notes`: spine nodes that clients used in this trial, drawn by them or by the
# server; of the last bracket: log2 of the last spine node at which each arm is certainly in or out,
# -1 for step 0, and the certificates up to there, or of the whole bracket if it did not fail; the
# number of arms that the client has
SPINE_USED, ISSUED, QUIET, OWN = range(4)
# bits of `Lazy.side`: the arm may be among those that the client declares, or among the others
ACCEPT, REJECT = 1, 2
# in place of the number of arms in play: a bracket fails
FAILED = -1
# in place of a declared arm: nothing has been declared; a set of arms has
NOBODY, A_SET = -1, -2


class Scope(NamedTuple):
    """The walks that a pass follows: one trial, the clients lo .. hi - 1, and their weights."""

    seed: Int
    trial: Int
    lo: Int
    hi: Int
    # (K, M) by which the walk of each arm and client enters sums: see `model.weights`. What has the
    # weight 0 is never drawn
    weights: Floats
    senders: Int  # the number of clients that send: those with a weight above 0


class Walks(NamedTuple):
    """The values of the walks that have been drawn."""

    value: Floats  # (slots, K, M) X
    total: Floats  # (slots, K) S, the sum over the clients of the pass
    known: Ints  # (K, M) spine nodes drawn so far in this trial
    work: Ints  # (2,) intervals looked at, variates drawn


class Tree(NamedTuple):
    """The interval under examination, and those above it."""

    frame: Ints  # (depths, 8)
    g: Floats  # (depths, 2) lower bounds on g(a), g(b), near enough to decide by
    unsettled: Indices  # (depths, S) the schedules that must look into the interval
    drawn: Indices  # (depths, K) union of those arms
    unresolved: Flags  # (K,)
    scratch: Floats  # (K,) of `client_brackets`
    variance: Floats  # (K,) filled by `rewards.certificate_bound`
    bound: Floats  # (3,) its result for the octave, and whether that is known
    pairs: Ints  # (MOST_PAIRS, 3) two unresolved arms, then: leader, eliminated arm, step
    # (depths, most, 3) unresolved functionals of each interval: two arms, and flags of `verdicts`
    verdicts: Indices
    marks: Ints  # (K,) scratch of `verdicts` and `decisions`
    leaders: Ints  # (K,)
    led: Ints  # (K,)


class Schedules(NamedTuple):
    """The S schedules of a pass: their times, and the state of each."""

    times: Ints  # (S, 4)
    listed: Ints  # all listed times, one schedule after the other
    state: Ints  # (S, ACCEPTED + K)
    eliminated_at: Ints  # (S, K) the step at which each arm left; NEVER if it did not
    rule: Any  # of the goal, at this client or at the server: see `kernels.goal`
    chosen: Any  # one of `kernels.adaptive`


class Link(NamedTuple):
    """The uplink of a pass, apart from its schedules: most functions are the same for all."""

    uplink: Any  # one of `kernels.uplinks`
    received: Any  # and its memory


class PassMemory(NamedTuple):
    """All memory of a pass, as one argument."""

    walks: Walks
    tree: Tree
    schedules: Schedules


class Round(NamedTuple):
    """A communication round of one schedule."""

    s: Int
    n: Int
    slot: Int  # of the values at n
    g_below: Any  # a lower bound on g(n)
    depth: Int  # the arms that might be concerned are drawn there


class Unresolved(NamedTuple):
    """The number of unresolved pairs in a client's interval, for `rewards.settle_few`."""

    pairs: Int
    depth: Int
    level: Int


class Octave(NamedTuple):
    """An octave of a client's spine, and the terms on which pairs are certified in it."""

    m: Int  # the client
    level: Int  # the octave ends at 2^level
    left: Int  # the slot of its left end
    g_a: Any
    g_b: Any
    least: Any
    slack: Any
    arms: Int  # the number of arms in play, which are listed in ``tree.drawn[0]``
    high: Any  # their largest value at the left end
    low: Any  # and their smallest


class Looked(NamedTuple):
    """The result of a look at an `Octave`, for the next one."""

    arms: Int  # the number of arms still in play; 0: all are decided; or FAILED
    found: Int  # 0 if no arm may have been decided in the octave
    certificates: Int
    high: Any
    low: Any


class Lazy(NamedTuple):
    """Memory of lazy clients: see `kernels.client_brackets`."""

    lo: Ints  # (K, M) log2 of the last spine node up to which the arm is certainly in; -1: step 0
    # (K, M) a step by which the arm is certainly out, a power of two unless it is exact; 0: none is
    # known; NEVER: the arm has to be located
    hi: Ints
    side: Any  # (K, M) int8, what the arm may be when it is out: ACCEPT, REJECT, or both
    by: Flags  # (M, K, K) by[m, k, i]: the step at which arm k leaves may depend on arm i
    victim: Flags  # (K,) the arm may have been eliminated so far
    taken: Flags  # (K,) the arms of a restricted pass
    # (M,) the answer (an arm, or A_SET) of a client that was bracketed and may be the last to
    # declare, or NOBODY
    winner: Ints
    low: Ints  # (M,) the client declares at this step or later,
    high: Ints  # (M,) and at this step or before
    due: Ints  # (K,) a number of pulls that every schedule asks of every client
    notes: Ints  # (4,) see the columns above


class Space(NamedTuple):
    """Scratch memory of one thread, made once and reused for all its trials."""

    walks: Walks
    tree: Tree
    rewards: Any  # memory of the rewards: see `kernels.rewards`
    client_state: Ints  # (1, ACCEPTED + K) the result of a client's pass,
    client_eliminated_at: Ints  # (1, K)
    local_eliminated_at: Ints  # (K, M) of all clients' passes,
    winners: Ints  # (M,)
    wrong: Ints  # (M,) whether a client's answer is wrong
    local_abandoned_at: Ints  # (M,)
    state: Ints  # (Q, S, ACCEPTED + K) and of the server's
    eliminated_at: Ints  # (Q, S, K)
    told: Ints  # (M,) of `server_questions.count_downlinks`
    received: Any  # memory of the uplink: see `kernels.uplinks`
    lazy: Lazy  # memory of lazy clients


def ints(*shape: int) -> Ints:
    """Make an array of zeros."""
    return np.zeros(shape, np.int64)


def make_lazy(arms: int, clients: int) -> Lazy:
    """Make the memory of lazy clients."""
    return Lazy(
        ints(arms, clients),
        ints(arms, clients),
        np.zeros((arms, clients), np.int8),
        np.zeros((clients, arms, arms), np.bool_),
        np.zeros(arms, np.bool_),
        np.zeros(arms, np.bool_),
        ints(clients),
        ints(clients),
        ints(clients),
        ints(arms),
        ints(4),
    )


def make_space(problem: Any, arms: int, clients: int, schedules: int) -> Space:
    """Make the memory for trials of a `trials.Problem`."""
    rewards = problem.rewards
    questions = len(problem.questions.weights)
    slots = STEP + rewards.longest_walk + 1
    return Space(
        walks=Walks(
            value=np.zeros((slots, arms, clients)),
            total=np.zeros((slots, arms)),
            known=ints(arms, clients),
            work=ints(2),
        ),
        tree=Tree(
            frame=ints(DEPTHS, 8),
            g=np.zeros((DEPTHS, 2)),
            unsettled=np.zeros((DEPTHS, schedules), np.uint32),
            drawn=np.zeros((DEPTHS, arms), np.uint32),
            unresolved=np.zeros(arms, np.bool_),
            scratch=np.zeros(arms),
            variance=np.zeros(arms),
            bound=np.zeros(3),
            pairs=ints(MOST_PAIRS, 3),
            verdicts=np.zeros((DEPTHS, min(arms * (arms + 1) // 2, 16 * arms), 3), np.uint32),
            marks=ints(arms),
            leaders=ints(arms),
            led=ints(arms),
        ),
        rewards=rewards.memory(slots, arms, clients),
        client_state=ints(1, ACCEPTED + arms),
        client_eliminated_at=ints(1, arms),
        local_eliminated_at=ints(arms, clients),
        winners=ints(clients),
        wrong=ints(clients),
        local_abandoned_at=ints(clients),
        state=ints(questions, schedules, ACCEPTED + arms),
        eliminated_at=ints(questions, schedules, arms),
        told=ints(clients),
        received=problem.participation.received(problem.uplink, schedules, arms, clients),
        lazy=make_lazy(arms, clients),
    )
