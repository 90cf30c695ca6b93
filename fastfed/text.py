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
_LARGEST_PLAIN = 1e10  # larger numbers are written with a power of ten
_LONGEST_PLAIN = 20  # characters of a value and its error, before they share a power of ten
_MOST_DIGITS = 6  # after the point
_ROUNDING = 1e-12  # an error as small as that is one of rounding: the value is always the same


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


def short(value: float | None) -> str:
    """Write a number in at most nine characters, with commas or as a power of ten."""
    if value is None:
        return ""
    return f"{value:,.0f}" if 1000 <= value < 9_999_999 else tidy(f"{value:.4g}")


def digits(value: float | None, count: int = 3) -> str:
    """Write a number with so many digits, and commas between thousands; nothing for None or nan."""
    if value is None or math.isnan(value):
        return ""
    if math.isinf(value):
        return "no limit"
    rounded = float(f"{value:.{count}g}")
    return f"{rounded:,.0f}" if 1000 <= abs(rounded) < 1e7 else tidy(f"{rounded:.{count}g}")


def signed(value: float) -> str:
    """Write a number with its sign."""
    sign = "+" if value > 0 else "-" if value < 0 else ""
    return sign + short(abs(value))


def rate(value: float, low: float, high: float) -> str:
    """Write a share of trials with its interval, in percent: ``0.12 [0.033, 0.31]``."""
    share, *ends = (
        f"{100 * x:.0f}" if x >= 0.995 else digits(100 * x, 2) for x in (value, low, high)
    )
    return f"{share} [{', '.join(ends)}]"


def parameters(values: Sequence[float]) -> dict[float, str]:
    """Write parameters, such as costs or deltas, with four digits or more.

    There are as many digits as it takes to write different numbers differently.
    """
    every = list(dict.fromkeys(values))
    for count in range(4, 18):
        shown = {value: _parameter(value, count) for value in every}
        if len(set(shown.values())) == len(every):
            break
    return shown


def plain(number: float) -> str:
    """Write one parameter with all its digits."""
    return next(
        text
        for count in range(1, 18)
        if float((text := _parameter(number, count)).replace(",", "")) == number or count == 17
    )


def _parameter(number: float, count: int) -> str:
    if 1e-4 <= abs(number) < _LARGEST_PLAIN:
        text = f"{number:,.{max(0, count - 1 - math.floor(math.log10(abs(number))))}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return tidy(f"{number:.{count}g}")


def number(value: float | None, error: float | None) -> str:
    """Write a value and its error as ``473,427 ± 1,260``, with the digits that the error allows."""
    if value is None or not math.isfinite(value):
        return ""
    if error is None or not math.isfinite(error):
        return _alone(value)
    if error <= _ROUNDING * abs(value):
        return f"{_alone(value)} ± 0"
    after = max(0, 1 - math.floor(math.log10(error)))
    text = f"{value:,.{after}f} ± {error:,.{after}f}"
    if len(text) <= _LONGEST_PLAIN:
        return text
    power = math.floor(math.log10(max(abs(value), error)))
    unit = 10.0**power
    after = max(0, 1 - math.floor(math.log10(error / unit)))
    if after > _MOST_DIGITS:  # so precise that one notation would be a row of zeros
        return f"{tidy(f'{value:.{_MOST_DIGITS + 1}g}')} ± {tidy(f'{error:.2g}')}"
    return f"({value / unit:.{after}f} ± {error / unit:.{after}f})e{power}"


def _alone(value: float) -> str:
    if 1000 <= abs(value) < _LARGEST_PLAIN:
        return f"{value:,.0f}"
    return tidy(f"{value:.6g}")


def tidy(text: str) -> str:
    """Shorten exponents: 1e+05 becomes 1e5, and 1e-07 becomes 1e-7."""
    mantissa, letter, power = text.partition("e")
    return f"{mantissa}e{int(power)}" if letter else mantissa
