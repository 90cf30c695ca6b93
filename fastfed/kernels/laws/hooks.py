"""What a pass asks of the law of the rewards.

A law is a NamedTuple class with what its walks are made of (means, noise, values ...). It offers
four things to Python: ``longest_walk``, the number of steps of the longest interval that it walks
step by step; ``origin``, (M,), what it takes off every reward of a client before it sums them up,
because that is the same for all arms and drops out of comparisons; ``memory(slots, arms,
clients)``, which makes its own scratch memory as another NamedTuple; and ``draw_error(steps)``, a
bound on the total variation distance between a draw, as it is counted in ``walks.work``, and its
law, in walks of up to so many steps. What a pass and a look-up of single values ask of it are the
functions below, each implemented for the class by ``@hooks.NAME.of(Class)`` in the law's own file;
the elimination does not know which law it runs. ``who``, ``walks`` and ``tree`` are those of
`kernels.memory`; the interval at ``depth`` is ``tree.frame[depth]``, its arms are listed in
``tree.drawn``.
"""

from __future__ import annotations

from fastfed.kernels.generic import generic


@generic
def leaf(law):
    """The longest interval that is walked step by step instead of being split."""


@generic
def extend_spine(law, memory, who, walks, tree, level):
    """Draw X(2^level), and what is missing below it, and sum it up to S, for the arms of depth
    0."""


@generic
def split_interval(law, memory, who, walks, tree, depth):
    """Draw X and S in the middle of the interval at ``depth``, for the arms of ``depth + 1``."""


@generic
def walk_interval(law, memory, who, walks, tree, depth):
    """Draw S, the sum over the clients of ``who``, at every step n of the interval at ``depth``,
    into slot STEP + n - a."""


@generic
def judge_by(law, memory, who, walks, tree, depth):
    """(least, slack) for `safe` in the interval at ``depth``; may fill ``tree.variance``."""


@generic
def safe(law, d_a, d_b, least, slack, variance):
    """Whether a pair of arms at the distances d_a and d_b below g at the ends of an interval stays
    below g in between, but for a probability of SKIP_TOLERANCE. ``variance`` is the sum of the two
    arms' entries in ``tree.variance``."""


@generic
def safe_alone(law, d_a, d_b, least, slack, variance):
    """`safe` for the walk of one arm and a concave boundary above it; ``variance`` is the arm's
    entry in ``tree.variance``."""


@generic
def noise_floor(law):
    """How near bounds on g have to be: about the noise of one step. Any value is safe, a poor one
    costs time."""


@generic
def left_out(law, m):
    """What the sums of client m leave out of every reward, the ``origin``: the same for all arms,
    it drops out of comparisons; but a message holds it."""


@generic
def settle_few(law, memory, who, walks, tree, talks, curve, here):
    """Settle an interval in which few pairs are in doubt, for the one schedule of a client, which
    talks at every step; ``here`` is (number of pairs, depth, level). False: it was not done."""


@generic
def walk_value(law, memory, address):
    """X(n) from nothing but its address (seed, trial, client, arm, n), n >= 1."""
