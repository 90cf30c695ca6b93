"""Errors of answers that are sets of arms."""

from __future__ import annotations

from fastfed.kernels.compiling import inner
from fastfed.kernels.memory import ACCEPTED


@inner
def set_errs(state, must, must_not):
    """Tell whether the accepted arms lack one that they must have, or have one that they must not.

    ``state`` is a row of `Schedules.state`.
    """
    for k in range(must.shape[0]):
        if state[ACCEPTED + k] == 1:
            if must_not[k]:
                return True
        elif must[k]:
            return True
    return False
