"""What a trial and its passes ask of the goal.

A goal is a NamedTuple class with the right answers of all clients and of the server. It offers one
thing to Python: ``notes(arms, schedules)`` makes its own scratch memory, another NamedTuple, which
passes find in ``tree.notes``. Of a goal a *rule* is made for each pass, of another NamedTuple
class: what one client, or the server, goes by. It travels as ``talks.rule``. The functions below
are implemented for a class by ``@hooks.NAME.of(Class)`` in the goal's own file; trials and passes
do not know which goal they serve, and `best` pays nothing for the others.
"""

from __future__ import annotations

from fastfed.kernels.generic import generic

# ---- of a goal ---------------------------------------------------------------------------------


@generic
def at_client(goal, m):
    """The rule by which client m decides."""


@generic
def at_server(goal):
    """The rule by which the server decides."""


@generic
def client_errs(goal, m, state):
    """Whether the answer of client m is wrong; ``state`` is that of its pass, one row."""


@generic
def server_errs(goal, s, state):
    """Whether the server's answer with schedule s is wrong."""


# ---- of a rule ---------------------------------------------------------------------------------


@generic
def is_open(rule, arms):
    """Whether anything has to be found out. With one arm most questions are settled: Algorithm 1
    never pulls a lone arm (line 5), it only declares it."""


@generic
def decide(rule, talks, tree, curve, total, here):
    """What is decided at a communication time, and whether the pass ends there. ``here`` is
    (schedule s, time n, a lower bound on g(n), and depth and place of the list in ``tree.arms`` of
    the arms that might be concerned); ``total`` are the sums at n."""


@generic
def doubts(rule, test, talks, tree, total, here):
    """Whether (a number above 0) anything might be decided inside an interval. If so, the arms on
    which that hangs are listed; the others need no second look anywhere inside. ``here`` is
    (schedule s, its place among those that look into the interval, depth, and the place at
    depth + 1 for the list)."""


@generic
def settle_few(rule, law, memory, who, spaces, curve, here):
    """`laws.hooks.settle_few`, if the goal is one that duels can settle; ``spaces`` is (walks,
    tree, talks). False: it was not done."""
