"""The uplink of the paper: every message is a real number that arrives as it was sent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.laws import hooks as laws
from fastfed.kernels.memory import SENT
from fastfed.kernels.uplinks import hooks

BITS_OF_A_SCALAR = 64
_MOST_SCALARS = 2**56  # more than that many, times 64, are no int64


class Nothing(NamedTuple):
    """An uplink that needs no memory."""

    nothing: Any  # (), which takes no room in a call


class ExactUplink(NamedTuple):
    """A message is a scalar."""

    nothing: Any

    def memory(self, schedules: int, arms: int, clients: int) -> Nothing:
        return Nothing(())


def exact_uplink() -> ExactUplink:
    return ExactUplink(())


@hooks.begin_hearing.of(ExactUplink)
def _begin_hearing(uplink, talks, s):
    pass


@hooks.arrives_as_sent.of(ExactUplink)
def _arrives_as_sent(uplink):
    return True


@hooks.visits_all.of(ExactUplink)
def _visits_all(uplink, talks, s):
    return False


@hooks.walk_steps.of(ExactUplink)
def _walk_steps(uplink, law, memory, who, walks, tree, depth):
    laws.walk_interval(law, memory, who, walks, tree, depth)


@hooks.hear.of(ExactUplink)
def _hear(uplink, law, who, walks, curve, talks, here):
    return here[2]


@hooks.strays.of(ExactUplink)
def _strays(uplink, tree, depth, level):
    return 0.0, 0.0


@hooks.strays_from_above.of(ExactUplink)
def _strays_from_above(uplink, most, s_b):
    return 0.0


@hooks.strays_alone.of(ExactUplink)
def _strays_alone(uplink, tree, depth):
    return 0.0, 0.0


@hooks.verdict_errors.of(ExactUplink)
def _verdict_errors(uplink):
    return 1


@hooks.bits_sent.of(ExactUplink)
def _bits_sent(uplink, talks, s):
    sent = talks.state[s, SENT]
    return BITS_OF_A_SCALAR * sent if sent <= _MOST_SCALARS else np.int64(-1)
