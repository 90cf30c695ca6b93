"""Numbers as text. Imports nothing heavy: the command line's help needs it."""

from __future__ import annotations

import math


def number(value: float, sem: float | None) -> str:
    """With as many digits as the error allows."""
    if sem is None or not math.isfinite(sem) or sem == 0:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    digits = max(0, 1 - math.floor(math.log10(sem)))
    return f"{value:,.{digits}f} ± {sem:,.{digits}f}"


def short(value: float | None) -> str:
    """In at most nine characters: thousands apart, or in powers of ten."""
    if value is None:
        return ""
    return f"{value:,.0f}" if 1000 <= value < 9_999_999 else tidy(f"{value:.4g}")


def tidy(text: str) -> str:
    """1e+05 as 1e5, 1e-07 as 1e-7."""
    mantissa, letter, power = text.partition("e")
    return f"{mantissa}e{int(power)}" if letter else mantissa
