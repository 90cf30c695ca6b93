"""Single values of the kernels' walks (partial sums of rewards), for step-by-step code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfed.kernels import trials as kernel
from fastfed.kernels.random.dither import dither_of
from fastfed.kernels.random.presence import presence_of, share_of
from fastfed.model.instance import Instance
from fastfed.model.setting import Setting


def dithers(seed: int, trial: int) -> Callable[[int, int, int], float]:
    """Return a function of (arm, client, n): the dither of that message in this trial."""
    key = np.uint64(seed)
    return lambda k, m, n: float(dither_of(key, trial, m, k, n))


def presence(seed: int, trial: int, probability: float) -> Callable[[int, int], bool]:
    """Return a function of (client, n): whether the client takes part in the round at step n."""
    key, share = np.uint64(seed), share_of(probability)
    return lambda m, n: bool(presence_of(key, trial, m, n, share))


def _kernel(instance: Instance) -> Any:
    """Make the kernel of the rewards, which depends on no other choice of a setting."""
    return Setting(instance, delta=0.5, sigma=1.0).reward_kernel


def walk(instance: Instance, seed: int, trial: int) -> Callable[[int, int, int], float]:
    """Return a function of (arm, client, n): the sum of the first n rewards in this trial."""
    law = _kernel(instance)
    memory = law.memory(0, *instance.shape)
    key = np.uint64(seed)
    return lambda k, m, n: float(kernel.value_at(law, memory, (key, trial, m, k, n)))


def values_at(
    instance: Instance,
    seed: int,
    trials: npt.NDArray[np.int64],
    steps: npt.NDArray[np.int64],
    law: Any = None,
) -> npt.NDArray[np.float64]:
    """Return the sums of the first ``steps[i, k, m]`` rewards, of trial ``trials[i]``.

    ``law`` is the kernel of the rewards, if the caller has made it already.
    """
    law = _kernel(instance) if law is None else law
    sums = np.zeros(steps.shape)
    kernel.values_at(
        law,
        law.memory(0, *instance.shape),
        np.uint64(seed),
        np.ascontiguousarray(trials, np.int64),
        np.ascontiguousarray(steps, np.int64),
        sums,
    )
    return sums
