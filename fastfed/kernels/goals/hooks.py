"""The functions of a goal that trials and passes call.

A goal is a NamedTuple class with the right answers of all clients and of the server. It offers one
method to Python: ``notes(arms, schedules)`` makes its scratch memory, another NamedTuple. Each pass
gets a *rule* of the goal, of another NamedTuple class: the goal as one client, or the server,
follows it, with the notes if it needs them. It travels as ``schedules.rule``. The functions below
are implemented for a class by ``@hooks.NAME.of(Class)`` in the goal's own file; trials and passes
do not know the goal that they serve, and `best` pays nothing for the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastfed.kernels.dispatch import generic, generic_with_default
from fastfed.kernels.memory import (
    FAILED,
    Flag,
    Floats,
    Int,
    Interval,
    Ints,
    Lazy,
    Look,
    Looked,
    Octave,
    PassMemory,
    Round,
    Schedules,
    Scope,
    Test,
    Tree,
    Unresolved,
)

# ---- of a goal ---------------------------------------------------------------------------------


@generic
def at_client(goal: Any, notes: Any, m: Int) -> Any:
    """Return the rule by which client m decides; ``notes`` is the memory of the goal."""


@generic
def at_server(goal: Any, notes: Any, q: Int) -> Any:
    """Return the rule by which the server decides question q, one weighted average of clients."""


@generic
def client_errs(goal: Any, m: Int, state: Ints) -> Flag:
    """Tell whether the answer of client m is wrong; ``state`` is that of its pass, one row."""


@generic
def server_errs(goal: Any, q: Int, s: Int, state: Ints) -> Flag:
    """Tell whether the server's answer to question q with schedule s is wrong.

    ``state`` is the state of the schedules after the pass of that question.
    """


@generic_with_default
def most_certificates(goal: Any, arms: Int) -> Int:
    """Return the largest number of certificates that a pass of so many arms has in an interval."""
    return arms * (arms - 1)


@generic
def server_rule(goal: Any, questions: Any, q: Int) -> Any:
    """Return the `decisions.Rule` by which the server decides question q."""


@generic
def client_rule(goal: Any, questions: Any, m: Int) -> Any:
    """Return the `decisions.Rule` by which client m decides."""


# ---- of a rule ---------------------------------------------------------------------------------


@generic_with_default
def is_open(rule: Any, arms: Int) -> Flag:
    """Tell whether there is anything to find out.

    With one arm some questions are settled: Algorithm 1 never pulls a lone arm (line 5), it only
    declares it.
    """
    return True


@generic
def decide(
    rule: Any, schedules: Schedules, tree: Tree, radius: Any, total: Floats, at_n: Round
) -> None:
    """Decide at a communication round, from the sums ``total``, and end the pass if it is over."""


@generic
def decided_count(
    rule: Any, schedules: Schedules, tree: Tree, total: Floats, at_n: Round, bar: float
) -> Int:
    """Count the undecided arms that `decide` would decide, were ``bar`` g(n) and ``total`` exact.

    All undecided arms are listed in ``tree.arms[at_n.depth, at_n.place]``: schedules that choose
    their times, which alone ask this, have nothing certified.
    """


@generic
def unresolved_count(
    rule: Any, test: Test, schedules: Schedules, tree: Tree, total: Floats, look: Look
) -> Int:
    """Return a number above 0 if anything might be decided inside an interval.

    If so, the arms on which that depends are listed in ``tree.arms[look.depth + 1, look.below]``;
    the others need no second look anywhere inside. ``total`` are the sums at all slots.
    """


@generic_with_default
def look_at_octave(
    rule: Any, rewards: Any, radius: Any, held: PassMemory, octave: Octave, lazy: Lazy
) -> Looked:
    """Bracket the arms of a client that may leave in an octave, from values at its ends alone.

    For each arm that may leave, ``lazy.lo`` is set, and ``lazy.hi`` and ``lazy.side`` if it is
    certainly out at the end. Arms that are out are removed from ``tree.drawn[0]``. When all are
    out, ``lazy.by`` and the answer in ``schedules.state`` are set. FAILED: the goal cannot tell.
    """
    return Looked(np.int64(FAILED), np.int64(0), np.int64(0), 0.0, 0.0)


@generic_with_default
def arms_are_apart(rule: Any) -> Flag:
    """Tell whether the step at which an arm leaves never depends on other arms."""
    return False


@generic_with_default
def note_pair(
    rule: Any, radius: Any, value: Floats, cell: Any, level: Int, may_be_out: Flag, lazy: Lazy
) -> None:
    """Note that arm i may lead arm k of client m by g in an octave; ``cell`` is (k, i, m).

    ``may_be_out``: perhaps it does at the end of the octave.
    """


@generic_with_default
def least_lead(rule: Any, x: Floats, lazy: Lazy, m: Int, n: Int, after: Int) -> Any:
    """Return a lead at step n: if it is g(n) or more, client m has declared by then.

    ``x`` are the values at n of the arms that may be in after the step ``after``. The client was
    bracketed, so the side of each arm is known.
    """
    return -np.inf


@generic_with_default
def settle_few(
    rule: Any,
    rewards: Any,
    memory: Any,
    scope: Scope,
    held: PassMemory,
    radius: Any,
    found: Unresolved,
) -> Flag:
    """Call `rewards.settle_few`, if pairwise passes can settle the goal; False: it was not done."""
    return False


@generic_with_default
def follow_pair(
    rule: Any,
    rewards: Any,
    memory: Any,
    scope: Scope,
    held: PassMemory,
    radius: Any,
    interval: Interval,
) -> Flag:
    """Call `pair.follow_pair`, if the goal allows it and one pair is unresolved; else False."""
    return False


@generic_with_default
def settle_next(
    rule: Any, test: Test, scope: Scope, schedules: Schedules, tree: Tree, total: Floats, look: Look
) -> Flag:
    """Settle an interval if all that happens inside is certain, and at the schedule's next time.

    ``look`` has found unresolved pairs. False: it was not done.
    """
    return False
