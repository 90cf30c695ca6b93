"""The functions of a reward distribution that a pass calls.

Rewards are a NamedTuple class with the numbers that their walks are made of (means, noise, values
...). They offer five things to Python:

* ``longest_walk``, the number of steps of the longest interval that is walked step by step;
* ``origin``, (M,), the number that is taken off every reward of a client before summation: it is
  the same for all arms and drops out of comparisons. Laws may lack it, and `left_out`: it is 0;
* ``memory(slots, arms, clients)``, which makes their scratch memory as another NamedTuple;
* ``kept_spine(trials, arms, clients)``, memory in which `walk_value_later` keeps the spines of many
  trials. Laws may lack it, as they may lack that function;
* ``draw_error(steps)``, a bound on the total variation distance between a draw, as it is counted
  in ``walks.work``, and its distribution, in walks of up to so many steps.

The functions below are implemented for the class by ``@hooks.NAME.of(Class)`` in its own file; the
elimination does not know the rewards that it runs on. ``scope``, ``walks`` and ``tree`` are those
of `kernels.memory`. The interval at ``depth`` is ``tree.frame[depth]``; the arms to be drawn are
listed in ``tree.drawn``. Rewards draw the values X of single clients into ``walks.value``, add them
up into ``walks.total`` with `sums.add_client`, client by client in their order, and count their
draws in ``walks.work``.

All of these arrive as references (`tuple_references`): fields are read by name, and tuples are
neither indexed nor unpacked. Their arrays are those of `kernel_arrays`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastfed.kernels.compiling import inlined
from fastfed.kernels.dispatch import generic, generic_with_default
from fastfed.kernels.memory import Flag, Int, Schedules, Scope, Tree, Unresolved, Walks


@generic
def leaf(rewards: Any) -> Int:
    """Return the length of the longest interval that is walked step by step instead of split."""


@generic
def extend_spine(
    rewards: Any, memory: Any, scope: Scope, walks: Walks, tree: Tree, level: Int
) -> None:
    """Draw X(2^level), and the missing nodes below it, for the arms of depth 0."""


@generic_with_default
def spine_is_known(rewards: Any, scope: Scope, walks: Walks, tree: Tree, level: Int) -> Flag:
    """Tell whether `extend_spine` has nothing to do for the one client of a scope.

    False where that is not known.
    """
    return False


@generic
def split_interval(
    rewards: Any, memory: Any, scope: Scope, walks: Walks, tree: Tree, depth: Int
) -> None:
    """Draw X in the middle of the interval at ``depth``, for the arms of ``depth + 1``.

    The values go to slot MIDDLE + depth.
    """


@generic
def walk_interval(
    rewards: Any, memory: Any, scope: Scope, walks: Walks, tree: Tree, depth: Int
) -> None:
    """Draw X at every step a < n < b of the interval at ``depth``, for the arms of ``depth + 1``.

    The values at n go to slot STEP + n - a.
    """


@generic
def certificate_bound(
    rewards: Any, memory: Any, scope: Scope, walks: Walks, tree: Tree, depth: Int
) -> Any:
    """Return (least, slack) for `certified` in the interval at ``depth``.

    May fill ``tree.variance``.
    """


@generic
def certified(rewards: Any, d_a: Any, d_b: Any, least: Any, slack: Any, variance: Any) -> Flag:
    """Tell whether a pair of arms is certified not to cross g inside an interval.

    The pair is d_a and d_b below g at the ends. It may cross with a probability of SKIP_TOLERANCE
    at most. ``variance`` is the sum of the two arms' entries in ``tree.variance``.
    """


@generic_with_default
def certified_alone(
    rewards: Any, d_a: Any, d_b: Any, least: Any, slack: Any, variance: Any
) -> Flag:
    """Certify, as `certified` does, the walk of one arm below a concave boundary."""
    return certified(rewards, d_a, d_b, least, slack, variance)


@generic
def noise_floor(rewards: Any) -> Any:
    """Return the accuracy that bounds on g need: about the noise of one step.

    Any value is right; a poor one costs time.
    """


@generic_with_default
def left_out(rewards: Any, m: Int) -> Any:
    """Return the ``origin`` of client m: the sums leave it out, but a message holds it."""
    return 0.0


@generic_with_default
def settle_few(
    rewards: Any,
    memory: Any,
    scope: Scope,
    walks: Walks,
    tree: Tree,
    schedules: Schedules,
    radius: Any,
    found: Unresolved,
) -> Flag:
    """Settle an interval of a client in which few pairs are unresolved; False: it was not done."""
    return False


@generic_with_default
def value_inside(
    rewards: Any, memory: Any, scope: Scope, walks: Walks, k: Int, n: Int, level: Int
) -> Any:
    """Return X(n) of arm k at the one client of the scope, 2^(level-1) < n < 2^level.

    It is the value that a pass would draw, less the origin. Return NaN if there is no quick way.
    """
    return np.nan


@generic
def walk_value(rewards: Any, memory: Any, address: Any) -> Any:
    """Return X(n), less the origin, from its address (seed, trial, client, arm, n), n >= 1."""


@inlined
def sum_of_rewards(rewards: Any, memory: Any, address: Any) -> Any:
    """Return the sum of the first n rewards, with the origin, from its address."""
    return walk_value(rewards, memory, address) + left_out(rewards, address[2]) * float(address[4])


@generic_with_default
def walk_value_later(rewards: Any, memory: Any, address: Any, kept: Any, place: Int) -> Any:
    """Return `sum_of_rewards` of a walk that is never asked for an earlier step again.

    ``kept[place]`` is memory of one trial: see ``kept_spine``.
    """
    return sum_of_rewards(rewards, memory, address)
