"""The uplink of the paper: every message is a real number that arrives as it was sent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastfed.kernels.memory import SENT
from fastfed.kernels.uplinks import hooks

BITS_OF_A_SCALAR = 64
_MOST_SCALARS = 2**56  # more than that many, times 64, are no int64


class Nothing(NamedTuple):
    """The empty memory of an uplink that needs none."""

    nothing: Any  # (), which takes no room in a call


class ExactUplink(NamedTuple):
    """An uplink whose messages are exact numbers of 64 bits."""

    nothing: Any

    def memory(self, schedules: int, arms: int, clients: int) -> Nothing:
        return Nothing(())


def exact_uplink() -> ExactUplink:
    """Make the uplink that sends numbers as they are."""
    return ExactUplink(())


@hooks.bits_sent.of(ExactUplink)
def _bits_sent(uplink, schedules, s):
    sent = schedules.state[s, SENT]
    return BITS_OF_A_SCALAR * sent if sent <= _MOST_SCALARS else np.int64(-1)
