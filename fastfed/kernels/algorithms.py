"""Trials of algorithms that decide in rounds: the border of a round, and the pulls up to the next.

Many trials advance together, one round at a time. The caller decides for all of them (by a user's
function, compiled or not), and `advance` does the rest: it checks the decisions, counts what they
cost, and looks up the walks at the new counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.compiling import entry_point, inner
from fastfed.kernels.extremes import larger
from fastfed.kernels.memory import Flags, Floats, Int, Ints
from fastfed.kernels.random.dither import dither_of
from fastfed.kernels.rewards import hooks
from fastfed.kernels.trials import (
    BITS,
    BUSIEST,
    CORRECT,
    DOWNLINKS,
    GLOBAL_ARM,
    GLOBAL_STEPS,
    LOCAL_ERRORS,
    LOCAL_STEPS,
    PULLS,
    ROUNDS,
    STEPS,
    TRUNCATED,
    UPLINKS,
)
from fastfed.kernels.tuple_references import by_reference

# the rules of a round, as `Fault.code` names the one that was broken
(
    NO_FAULT,
    TARGET_FALLS,
    TARGET_TOO_LARGE,
    LOCAL_ARM_UNKNOWN,
    GLOBAL_ARM_UNKNOWN,
    LOCAL_ARM_CHANGED,
    GLOBAL_ARM_CHANGED,
    NO_PULLS,
    TOO_MANY_ROUNDS,
    TARGET_ABSENT,
    LOCAL_ARM_ABSENT,
    GLOBAL_ARM_ABSENT,
) = range(12)
CODE, FAULTY, ARM, CLIENT, VALUE, BEFORE = range(6)  # the columns of `Batch.fault`

UNDECIDED = -1
LEAST_ANSWER = -2  # ended without an answer
MOST_ROUNDS = 2**24


class Batch(NamedTuple):
    """The trials of a batch, by their place in it."""

    counts: Ints  # (B, K, M)
    sums: Floats  # (B, K, M)
    received_counts: Ints  # (B, K, M)
    received_sums: Floats  # (B, K, M)
    targets: Ints  # (B, K, M)
    sent: Flags  # (B, K, M)
    local_arms: Ints  # (B, M) as the last decision left them,
    global_arm: Ints  # (B, 1)
    local_before: Ints  # (B, M) and as they were before it
    global_before: Ints  # (B, 1)
    local_steps: Ints  # (B, M) the largest count of a client when it declared
    global_steps: Ints  # (B,) the largest count that the server had received when it declared
    ints: Ints  # (B, COLUMNS)
    draws: Ints  # (B,)
    active: Ints  # (B,) the places of the trials that go on come first
    fault: Ints  # (6,) the first decision that breaks a rule
    kept: Any  # (B, ...) spines of the walks, if the rewards keep them: `rewards.hooks`


class Terms(NamedTuple):
    """The terms of all trials."""

    seed: Any
    limit: Any  # no arm is pulled more often at a client
    cuts: Any  # whether a trial that would pass the limit is cut off there, and not refused
    local_right: Flags  # (K, M) whether an arm is a right answer of a client,
    global_right: Flags  # (K,) and of the server
    available: Flags  # (K, M) whether a client has an arm,
    candidates: Flags  # (K,) and whether a client with a weight has it


@inner
def _broken(batch: Batch, i: Int, code: Int, cell: Any, value: Int, before: Int) -> Int:
    fault = batch.fault
    fault[CODE], fault[FAULTY], fault[ARM], fault[CLIENT] = code, i, cell[0], cell[1]
    fault[VALUE], fault[BEFORE] = value, before
    return code


@inner
def _check(batch: Batch, i: Int, terms: Terms, round_number: Int) -> Int:
    """Return the rule that the decision of trial i breaks, or NO_FAULT."""
    arms, clients = batch.counts.shape[1], batch.counts.shape[2]
    targets, counts = batch.targets[i], batch.counts[i]
    for m in range(clients):
        arm, before = batch.local_arms[i, m], batch.local_before[i, m]
        if arm < LEAST_ANSWER or arm >= arms:
            return _broken(batch, i, LOCAL_ARM_UNKNOWN, (-1, m), arm, before)
        if before != UNDECIDED and arm != before:
            return _broken(batch, i, LOCAL_ARM_CHANGED, (-1, m), arm, before)
        if arm >= 0 and not terms.available[arm, m]:
            return _broken(batch, i, LOCAL_ARM_ABSENT, (-1, m), arm, before)
    arm, before = batch.global_arm[i, 0], batch.global_before[i, 0]
    if arm < LEAST_ANSWER or arm >= arms:
        return _broken(batch, i, GLOBAL_ARM_UNKNOWN, (-1, -1), arm, before)
    if before != UNDECIDED and arm != before:
        return _broken(batch, i, GLOBAL_ARM_CHANGED, (-1, -1), arm, before)
    if arm >= 0 and not terms.candidates[arm]:
        return _broken(batch, i, GLOBAL_ARM_ABSENT, (-1, -1), arm, before)
    if _over(batch, i):
        return NO_FAULT
    pulled = False
    for k in range(arms):
        for m in range(clients):
            target = targets[k, m]
            if target < counts[k, m]:
                return _broken(batch, i, TARGET_FALLS, (k, m), target, counts[k, m])
            if target > 0 and not terms.available[k, m]:
                return _broken(batch, i, TARGET_ABSENT, (k, m), target, counts[k, m])
            if target > terms.limit and not terms.cuts:
                return _broken(batch, i, TARGET_TOO_LARGE, (k, m), target, terms.limit)
            pulled = pulled or target > counts[k, m]
    if not pulled:
        return _broken(batch, i, NO_PULLS, (-1, -1), 0, 0)
    if round_number >= MOST_ROUNDS:
        return _broken(batch, i, TOO_MANY_ROUNDS, (-1, -1), round_number, MOST_ROUNDS)
    return NO_FAULT


@inner
def _over(batch: Batch, i: Int) -> Any:
    """Tell whether the server and every client have declared, or abandoned."""
    over = batch.global_arm[i, 0] != UNDECIDED
    for m in range(batch.local_arms.shape[1]):
        over = over and batch.local_arms[i, m] != UNDECIDED
    return over


@inner
def _note_declarations(batch: Batch, i: Int) -> None:
    """Note the largest count at which each declaration was made."""
    arms, clients = batch.counts.shape[1], batch.counts.shape[2]
    for m in range(clients):
        if batch.local_before[i, m] == UNDECIDED:
            largest = np.int64(0)
            for k in range(arms):
                largest = larger(largest, batch.counts[i, k, m])
            batch.local_steps[i, m] = largest
            batch.local_before[i, m] = batch.local_arms[i, m]
    if batch.global_before[i, 0] == UNDECIDED:
        largest = np.int64(0)
        for k in range(arms):
            for m in range(clients):
                largest = larger(largest, batch.received_counts[i, k, m])
        batch.global_steps[i] = largest
        batch.global_before[i, 0] = batch.global_arm[i, 0]


@inner
def _pull(rewards: Any, memory: Any, batch: Batch, i: Int, trial: Int, terms: Terms) -> Any:
    """Pull up to the targets, and send. Return False if the limit cuts the trial off."""
    arms, clients = batch.counts.shape[1], batch.counts.shape[2]
    cut = False
    for k in range(arms):
        for m in range(clients):
            if batch.targets[i, k, m] > terms.limit:
                batch.targets[i, k, m] = terms.limit
                cut = True
    sent = np.int64(0)
    for k in range(arms):
        for m in range(clients):
            n = batch.targets[i, k, m]
            if n == batch.counts[i, k, m]:
                continue
            batch.ints[i, PULLS] += n - batch.counts[i, k, m]
            batch.ints[i, STEPS] = larger(batch.ints[i, STEPS], n)
            batch.counts[i, k, m] = n
            if cut:
                continue
            address = (terms.seed, trial, m, k, n)
            batch.sums[i, k, m] = hooks.walk_value_later(rewards, memory, address, batch.kept, i)
            # the spine up to the node at or beyond n, and a split at each level below it
            power = np.int64(0)
            while (np.int64(1) << power) < n:
                power += 1
            batch.draws[i] += 2 * power + 1
            if batch.sent[i, k, m]:
                batch.received_counts[i, k, m] = n
                batch.received_sums[i, k, m] = batch.sums[i, k, m]
                sent += 1
    batch.ints[i, UPLINKS] += sent
    if sent > 0:
        batch.ints[i, ROUNDS] += 1
    return not cut


@inner
def _finish(batch: Batch, i: Int, terms: Terms) -> None:
    """Write what is left of the row of trial i."""
    row = batch.ints[i]
    declared = batch.local_before[i]
    undeclared = np.int64(0)
    for m in range(declared.shape[0]):
        row[LOCAL_STEPS] = larger(row[LOCAL_STEPS], batch.local_steps[i, m])
        if declared[m] < 0:
            undeclared += 1
        elif not terms.local_right[declared[m], m]:
            row[LOCAL_ERRORS] += 1
    arm = batch.global_before[i, 0]
    row[GLOBAL_STEPS] = batch.global_steps[i]
    row[GLOBAL_ARM] = larger(arm, UNDECIDED)
    row[TRUNCATED] = 1 if undeclared > 0 or arm < 0 else 0
    right = row[TRUNCATED] == 0 and row[LOCAL_ERRORS] == 0 and terms.global_right[arm]
    row[CORRECT] = 1 if right else 0
    row[BITS] = 64 * row[UPLINKS]
    arms, clients = batch.counts.shape[1], batch.counts.shape[2]
    row[DOWNLINKS] = clients * row[ROUNDS]  # targets, or that the trial is over
    for m in range(clients):
        pulls = np.int64(0)
        for k in range(arms):
            pulls += batch.counts[i, k, m]
        row[BUSIEST] = larger(row[BUSIEST], pulls)


@entry_point
def advance(
    rewards: Any,
    memory: Any,
    terms: Terms,
    batch: Batch,
    trials: Any,
    going: Int,
    round_number: Int,
) -> Int:
    """Advance the first ``going`` active trials by a round; return how many of them go on.

    ``trials`` has the numbers of the batch's trials. A decision that breaks a rule is reported in
    ``batch.fault``, and -1 is returned. Trials that go on come first in ``batch.active``. All of
    ``batch`` may be written but the declarations, ``local_arms`` and ``global_arm``.
    """
    rewards, memory = by_reference(rewards), by_reference(memory)
    terms, batch = by_reference(terms), by_reference(batch)
    left = np.int64(0)
    for j in range(going):
        i = batch.active[j]
        if _check(batch, i, terms, round_number) != NO_FAULT:
            return np.int64(-1)
        _note_declarations(batch, i)
        if not _over(batch, i) and _pull(rewards, memory, batch, i, trials[i], terms):
            for k in range(batch.sent.shape[1]):
                for m in range(batch.sent.shape[2]):
                    batch.sent[i, k, m] = True
            batch.active[left] = i
            left += 1
        else:
            if not _over(batch, i):  # cut off: the counts are those of the limit
                _note_declarations(batch, i)
            _finish(batch, i, terms)
    return left


@entry_point
def draw_uniforms(seed: Any, trials: Any, active: Any, round_number: Int, out: Any) -> None:
    """Set out[i, k, m] to a uniform in [-1/2, 1/2] of this round, for all active trials i."""
    for j in range(active.shape[0]):
        i = active[j]
        for k in range(out.shape[1]):
            for m in range(out.shape[2]):
                out[i, k, m] = dither_of(seed, trials[i], m, k, round_number)
