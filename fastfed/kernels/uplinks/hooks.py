"""What the server's pass asks of an uplink: what the server hears, and what a pass may conclude
from the true sums about that.

An uplink is a NamedTuple class. It offers one thing to Python, ``memory(schedules, arms,
clients)``, which makes its scratch memory as another NamedTuple; both travel in `memory.Talks`.
What a pass asks are the functions below, each implemented for the class by
``@hooks.NAME.of(Class)``. For `exact` they all compile to nothing.
"""

from __future__ import annotations

from fastfed.kernels.generic import generic


@generic
def begin_hearing(uplink, talks, s):
    """Nothing has been sent yet under schedule s."""


@generic
def arrives_as_sent(uplink):
    """Whether the server compares the sums themselves, so that a pass may settle pairs of arms
    without asking what was heard."""


@generic
def visits_all(uplink, talks, s):
    """Whether every communication time of schedule s has to be visited, because its bits are
    counted."""


@generic
def walk_steps(uplink, law, memory, who, walks, tree, depth):
    """`laws.hooks.walk_interval`, and what `hear` needs to know of single clients there."""


@generic
def hear(uplink, law, who, walks, curve, talks, here):
    """The slot of ``walks.total`` that has the sums of the arms as the server hears them. ``here``
    is (s, n, slot, arms): at communication time n of schedule s, whose values stand in ``slot``,
    for ``arms`` (their number comes last). Called once for each communication time that is visited,
    before anything else is done about it."""


@generic
def strays(uplink, tree, depth, level):
    """How far the heard lead of a pair may lie from its true lead at the communication times of
    the interval at ``depth``: (s_a, s_b) so that g - s is concave in it, with s_a and s_b at its
    ends. Infinite, if there is no such bound; exceeded with a probability of at most
    (verdict_errors - 1) x SKIP_TOLERANCE for each pair and interval."""


@generic
def strays_from_above(uplink, most, s_b):
    """A bound on how far a heard lead may lie from the true one anywhere in an interval, from an
    upper bound on g there and from what `strays` says of its end."""


@generic
def strays_alone(uplink, tree, depth):
    """The same for the sum of one arm, against g / 2."""


@generic
def verdict_errors(uplink):
    """In units of SKIP_TOLERANCE, the error probability of one verdict that a pair is safe."""


@generic
def bits_sent(uplink, talks, s):
    """The bits of all messages of schedule s; -1 if they were not counted."""
