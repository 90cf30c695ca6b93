"""The functions of an uplink that the server's pass calls.

They say which sums the server receives, and what a pass may conclude about those from the true
sums. An uplink is a NamedTuple class. It offers one method to Python, ``memory(schedules, arms,
clients)``, which makes its scratch memory as another NamedTuple, ``received``; both travel in
`memory.Link`. The functions below are implemented for the class by ``@hooks.NAME.of(Class)``.
Their defaults are those of an uplink on which every message arrives as it was sent, and compile to
nothing.
"""

from __future__ import annotations

from typing import Any

from fastfed.kernels.dispatch import generic, generic_with_default
from fastfed.kernels.memory import Flag, Floats, Int, PassMemory, Round, Schedules, Scope, Tree
from fastfed.kernels.radii import exact


@generic_with_default
def begin_receiving(uplink: Any, received: Any, s: Int) -> None:
    """Forget all that was received under schedule s."""


@generic_with_default
def arrives_as_sent(uplink: Any) -> Flag:
    """Tell whether the server compares the sums themselves.

    A pass may then settle pairs of arms without asking which messages were received.
    """
    return True


@generic_with_default
def visits_all(uplink: Any, schedules: Schedules, s: Int) -> Flag:
    """Tell whether every communication time of schedule s must be visited, to count its bits."""
    return False


@generic_with_default
def receive(
    uplink: Any,
    received: Any,
    rewards: Any,
    scope: Scope,
    radius: Any,
    held: PassMemory,
    at_n: Round,
) -> Int:
    """Return the slot of ``walks.total`` that has the sums of the arms as the server receives them.

    Called once for each communication round that is visited, before anything else is done about
    it. The arms are those drawn at ``at_n.depth``.
    """
    return at_n.slot


@generic_with_default
def message_errors(uplink: Any, tree: Tree, depth: Int, level: Int) -> Any:
    """Bound the distance of a pair's received lead from its true lead in the interval at ``depth``.

    Return (e_a, e_b) so that g - e is concave in the interval, with e_a and e_b at its ends.
    Both are infinite if there is no such bound. The bound is exceeded with a probability of at most
    (errors_per_certificate - 1) x SKIP_TOLERANCE for each pair and interval.
    """
    return 0.0, 0.0


@generic_with_default
def largest_message_error(uplink: Any, e_b: Any) -> Any:
    """Bound the distance of a received lead from the true one anywhere in an interval.

    ``e_b`` is the `message_errors` at its end. Return (constant, factor): the bound is the constant
    and the factor times an upper bound on g.
    """
    return 0.0, 0.0


@generic_with_default
def message_errors_alone(uplink: Any, tree: Tree, depth: Int) -> Any:
    """Bound, as `message_errors` does, the error of the sum of one arm, against g / 2."""
    return 0.0, 0.0


@generic_with_default
def errors_per_certificate(uplink: Any) -> Int:
    """Return the error probability of one certificate, in units of SKIP_TOLERANCE."""
    return 1


@generic_with_default
def end_question(uplink: Any, received: Any, schedules: Schedules, weights: Floats) -> None:
    """Take note of the messages of a question, whose pass is over; clients have these weights."""


@generic_with_default
def begin_trial(uplink: Any, received: Any) -> None:
    """Forget the messages of the trial before."""


# ---- of a server that visits every round: see `rounds_server` ----------------------------------


@generic_with_default
def begin_reports(uplink: Any, received: Any, scope: Scope, s: Int) -> None:
    """Prepare ``received.uplink`` for the reports of schedule s: counts and noise are 0 already."""


@generic_with_default
def add_noise(uplink: Any, received: Any, scope: Scope, held: PassMemory, m: Int, n: Int) -> None:
    """Add to ``received.noise`` what the report of client m at step n adds to its sums.

    The arms that it reports are those drawn at depth 0.
    """


@generic_with_default
def bar_at(uplink: Any, received: Any, radius: Any, n: Int, steps: Int) -> Any:
    """Return the boundary of leads at step n; the reports tell as much as all do after ``steps``.

    Leads are n times those of means, and the radius of means is that of ``steps``.
    """
    return exact(radius, float(steps)) * (float(n) / float(steps))


@generic
def bits_sent(uplink: Any, schedules: Schedules, s: Int) -> Int:
    """Return the bits of all messages of schedule s; -1 if they were not counted."""
