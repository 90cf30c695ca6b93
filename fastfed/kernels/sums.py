"""The sums over clients that a pass compares."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastfed.kernels.compiling import inlined
from fastfed.kernels.memory import Floats, Int


@inlined
def add_client(weights: Floats, total: Any, m: Int, x: Any) -> Any:
    """Return a sum over clients with the value x of client m added to it, times its weight.

    Values of single clients become sums here and nowhere else; clients come in their order. The
    weights of clients that count alike are 1, and 1 x is x bit for bit. The
    sum stays in a register of its caller: in memory, or in a loop of its own over the values of a
    node, it made trials 4 to 12 % slower.
    """
    return total + weights[np.uint64(m)] * x
