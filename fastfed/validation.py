"""The border where numbers from outside are checked: one line names value, rule and fix."""

from __future__ import annotations

import math
import os

from fastfed.errors import InputError, nearest

ENGINES = ("auto", "skip", "dense")
SCALES = (1e-100, 1e100)  # squares and products of what lies between stay finite and exact


def number(name: str, value: object, rule: str = "must be a number") -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} = {shown(value)}: {rule}") from None


def shown(value: object) -> str:
    """``repr``, not longer than a line bears."""
    try:
        text = repr(value)
    except ValueError:  # an int of thousands of digits
        text = "a huge number"
    return text if len(text) <= 60 else f"{text[:57]}..."


def as_whole(value: object) -> int | None:
    """``value`` as an int if it is a whole number, written in any usual way ('100', 1e5, 2.0)."""
    try:
        exact = int(value) if isinstance(value, str) else value
    except ValueError:
        try:
            exact = float(value)  # type: ignore[arg-type]
        except ValueError:
            return None
    try:
        whole = int(exact)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return None
    return whole if whole == exact and not isinstance(value, bool) else None


def checked_whole(name: str, value: object, least: int, most: int) -> int:
    whole = as_whole(value)
    if whole is None or not least <= whole <= most:
        power = most.bit_length() - 1
        top = f"2^{power}" if most == 2**power and power > 20 else f"{most:,}"
        raise InputError(f"{name} = {shown(value)}: must be a whole number from {least} to {top}")
    return whole


def checked_delta(delta: object) -> float:
    value = number("delta", delta)
    if not 0 < value < 1:
        raise InputError(f"delta = {delta!r}: must lie strictly between 0 and 1")
    return value


def checked_sigma(sigma: object) -> float | str:
    """A confidence scale: a number, or "proxy"."""
    if sigma == "proxy":
        return "proxy"
    value = number("sigma", sigma, "the confidence scale must be a number, or 'proxy'")
    refuse_odd_scale(value, sigma, "the confidence scale must be finite and above 0, or 'proxy'")
    return value


def refuse_odd_scale(value: float, given: object, rule: str) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise InputError(f"sigma = {given!r}: {rule}")
    least, most = SCALES
    if not least <= value <= most:
        raise InputError(f"sigma = {given!r}: must lie from {least:g} to {most:g}; measure rewards "
                         "in another unit")


def checked_threads(threads: object) -> int:
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (
            os.cpu_count() or 1)
    return checked_whole("threads", threads, 1, 1024)


def checked_engine(engine: object) -> str:
    if engine not in ENGINES:
        raise InputError(f"engine {shown(engine)}{nearest(str(engine), ENGINES)}: must be one of "
                         f"{', '.join(ENGINES)}")
    return str(engine)
