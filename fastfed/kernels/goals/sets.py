"""Answers that are sets of arms: when one is wrong."""

from __future__ import annotations

from fastfed.kernels.compiling import inner
from fastfed.kernels.memory import CALLED


@inner
def set_errs(state, must, must_not):
    """Whether the arms that a pass has called lack one that they must have, or have one that they
    must not; ``state`` is a row of `Talks.state`."""
    for k in range(must.shape[0]):
        if state[CALLED + k] == 1:
            if must_not[k]:
                return True
        elif must[k]:
            return True
    return False
