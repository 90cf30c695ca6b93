"""Names and numbers as text. Imports nothing heavy: the command line's help needs it.

Names come from files of other people. Everything that shows one goes through `printable`, or for
the cells of a table that a spreadsheet may open through `spreadsheet_cell`.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence

_FORMULA = tuple("=+-@＝＋－＠")


def printable(text: str) -> str:
    """Escape the characters that a terminal would obey instead of showing.

    These are control characters, line breaks, marks that reorder text, and bytes that are no UTF-8.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_json(text: str) -> str:
    """Escape the characters of `printable` as JSON escapes; the content stays the same."""
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def spreadsheet_cell(text: str) -> str:
    """Make a text printable, and begin it with ' if a spreadsheet would take it for a formula."""
    return f"'{printable(text)}" if text.lstrip().startswith(_FORMULA) else printable(text)


def listed(names: Sequence[str], most: int = 12) -> str:
    """Write a list of names, the first of very many."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def command(*words: object, **options: object) -> str:
    """Write a command line of fastfed for a shell; options that are None are left out."""
    line = ["fastfed", *map(str, words)]
    for name, value in options.items():
        if value is not None:
            line += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(line)


def number(value: float, sem: float | None) -> str:
    """Write a number with as many digits as its error allows."""
    if sem is None or not math.isfinite(sem) or sem == 0:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    digits = max(0, 1 - math.floor(math.log10(sem)))
    return f"{value:,.{digits}f} ± {sem:,.{digits}f}"


def short(value: float | None) -> str:
    """Write a number in at most nine characters, with commas or as a power of ten."""
    if value is None:
        return ""
    return f"{value:,.0f}" if 1000 <= value < 9_999_999 else tidy(f"{value:.4g}")


def tidy(text: str) -> str:
    """Shorten exponents: 1e+05 becomes 1e5, and 1e-07 becomes 1e-7."""
    mantissa, letter, power = text.partition("e")
    return f"{mantissa}e{int(power)}" if letter else mantissa
