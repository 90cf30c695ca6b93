"""The border where numbers from outside are checked: one line names value, rule and fix."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fastfed.errors import InputError, nearest

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_STEPS = 2**52
"""No trial is followed past this step: beyond it, doubles no longer count every step."""
ENGINES = ("auto", "skip", "dense", "python")
SCALES = (1e-100, 1e100)  # squares and products of what lies between stay finite and exact
LEAST_DELTA = 1e-300  # what is divided by it stays finite
MOST_COST = 1e100
MOST_BASE = 1e100
MOST_TRIALS = 2**32
MOST_SEED = 2**64 - 1
MOST_TRIAL = 2**62  # the number of a trial that is told on its own
MOST_THREADS = 1024
MOST_CELLS = 10_000_000
"""Arms x clients of an instance. The memory of a trial may allow fewer: see `Job.space`."""
MOST_WEIGHTS = 2_000_000
"""Arms x clients x values of rewards with finite support, each of which takes 1.2 KB."""
MOST_FILE = 2**28
"""Bytes of a file that describes an instance or a sweep."""


def read_number(text: str) -> float:
    """Read a number from its text, as everybody writes it.

    Text that only Python reads, such as 1_0, raises a ValueError: it is more likely a slip than a
    ten.
    """
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


def number(name: str, value: object, rule: str = "must be a number") -> float:
    """Read a number from a number or its text.

    The refusal of anything else shows ``name`` and ``rule``.
    """
    if isinstance(value, bool):
        raise InputError(f"{name} = {shown(value)}: {rule}")
    try:
        return read_number(value) if isinstance(value, str) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} = {shown(value)}: {rule}") from None


def numbers(rule: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Make an array of numbers from lists or arrays of numbers.

    The refusal of anything else shows ``rule``. Text and truth values are refused, though NumPy
    would turn them into numbers.
    """
    import numpy as np  # which help and completion come here without

    try:
        given = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
        if given.dtype.kind not in "iuf" and any(
            isinstance(one, str | bytes | bool | np.bool_) for one in given.flat
        ):
            raise InputError(rule)
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(rule) from None


def shown(value: object) -> str:
    """Return the ``repr`` of a value, shortened to fit into a line."""
    try:
        text = repr(value)
    except ValueError:  # an int of thousands of digits
        text = "a huge number"
    return text if len(text) <= 60 else f"{text[:57]}..."


def as_whole(value: object) -> int | None:
    """Return a whole number as an int, in whatever common way it is written ('100', 1e5, 2.0)."""
    exact = value
    if isinstance(value, str):
        try:
            about = read_number(value)
            exact = int(value) if value.strip().lstrip("+-").isdecimal() else about
        except ValueError:
            return None
    try:
        whole = int(exact)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return None
    return whole if whole == exact and not isinstance(value, bool) else None


def checked_whole(name: str, value: object, least: int, most: int) -> int:
    """Check a whole number from ``least`` to ``most``, written in any common way."""
    whole = as_whole(value)
    if whole is None or not least <= whole <= most:
        power = most.bit_length() - 1
        top = f"2^{power}" if most == 2**power and power > 20 else f"{most:,}"
        raise InputError(f"{name} = {shown(value)}: must be a whole number from {least} to {top}")
    return whole


def checked_delta(delta: object) -> float:
    """Check an allowed error probability."""
    value = number("delta", delta)
    if not 0 < value < 1:
        raise InputError(f"delta = {shown(delta)}: must lie strictly between 0 and 1")
    if value < LEAST_DELTA:
        raise InputError(f"delta = {shown(delta)}: too small, at least {LEAST_DELTA:g}")
    return value


def checked_costs(costs: Iterable[float | str] | float, of: str = "an uplink") -> list[float]:
    """Check the costs of an uplink or of a bit; return each once, in the order given."""
    several = costs if isinstance(costs, Iterable) and not isinstance(costs, str) else [costs]
    checked: list[float] = []
    for cost in several:
        value = number("cost", cost, f"the cost of {of} must be a number, as in 0, 10, 100")
        if not 0 <= value <= MOST_COST:
            raise InputError(
                f"cost {shown(cost)}: the cost of {of} must lie from 0 to {MOST_COST:g}"
            )
        if value not in checked:
            checked.append(value)
    if not checked:
        raise InputError("no costs: give at least one, as in 10")
    return checked


def checked_trials(trials: object) -> int:
    """Check a number of trials."""
    return checked_whole("trials", trials, 1, MOST_TRIALS)


def checked_trial(trial: object) -> int:
    """Check the number of one trial."""
    return checked_whole("trial", trial, 0, MOST_TRIAL)


def checked_seed(seed: object) -> int:
    """Check the seed of a run."""
    return checked_whole("seed", seed, 0, MOST_SEED)


def checked_max_steps(steps: object, most: int = MAX_STEPS) -> int:
    """Check the step at which trials are cut off."""
    return checked_whole("max_steps", steps, 1, most)


def refuse_many_weights(arms: int, clients: int, values: int) -> None:
    """Refuse more weights than fit into memory, before anything is allocated for them."""
    refuse_many_cells("weights", arms, clients)
    if arms * clients * values > MOST_WEIGHTS:
        raise InputError(
            f"weights: {arms:,} arms x {clients:,} clients x {values:,} values, at "
            f"most {MOST_WEIGHTS:,} weights fit into memory"
        )


def refuse_many_cells(what: str, arms: int, clients: int) -> None:
    """Refuse more arms and clients than fit into memory, before anything is allocated for them."""
    if arms * clients > MOST_CELLS:
        raise InputError(
            f"{what}: {arms:,} arms x {clients:,} clients, at most "
            f"{MOST_CELLS:,} cells fit into memory"
        )


def checked_sigma(sigma: object) -> float | str:
    """Check a confidence scale: a number, or "proxy"."""
    if sigma == "proxy":
        return "proxy"
    value = number("sigma", sigma, "the confidence scale must be a number, or 'proxy'")
    refuse_odd_scale(value, sigma, "the confidence scale must be finite and above 0, or 'proxy'")
    return value


def refuse_odd_scale(value: float, given: object, rule: str) -> None:
    """Refuse a standard deviation or confidence scale whose square or product is no double.

    ``rule`` is the message for a scale that is not positive and finite.
    """
    if not (value > 0 and math.isfinite(value)):
        raise InputError(f"sigma = {shown(given)}: {rule}")
    least, most = SCALES
    if not least <= value <= most:
        raise InputError(
            f"sigma = {shown(given)}: must lie from {least:g} to {most:g}; measure "
            "rewards in another unit"
        )


def checked_threads(threads: object) -> int:
    """Check a number of threads; None means as many as this process has cores."""
    if threads is not None:
        return checked_whole("threads", threads, 1, MOST_THREADS)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked_engine(engine: object) -> str:
    """Check the name of an engine."""
    if engine not in ENGINES:
        raise InputError(
            f"engine {shown(engine)}{nearest(str(engine), ENGINES)}: must be one of "
            f"{', '.join(ENGINES)}"
        )
    return str(engine)
