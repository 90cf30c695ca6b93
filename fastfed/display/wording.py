"""Names and numbers as text: short, in one notation, and never two different ones alike."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fastfed.text import printable, tidy

_ELLIPSIS = "…"
_LARGEST_PLAIN = 1e10  # larger numbers are written with a power of ten
_LONGEST_PLAIN = 20  # characters of a value and its error, before they share a power of ten
_MOST_DIGITS = 6  # after the point
_ROUNDING = 1e-12  # an error as small as that is one of rounding: the value is always the same


def told_apart(names: Sequence[str], width: int) -> dict[str, str]:
    """Shorten long names in the middle, to at most ``width`` characters.

    Different names stay different. If beginnings and ends agree, the place of the first difference
    is shown. If that does not fit, the names are numbered.
    """
    width = max(width, 8)
    every = list(dict.fromkeys(names))
    shown = {name: _shortened(printable(name), width) for name in every}
    for name in every:
        alike = [other for other in every if shown[other] == shown[name]]
        if len(alike) > 1:
            texts = [printable(other) for other in alike]
            start = _first_difference(texts)
            for other, text in zip(alike, texts, strict=True):
                shown[other] = _window(text, start, width)
    for name in every:
        alike = [other for other in every if shown[other] == shown[name]]
        if len(alike) > 1:
            for place, other in enumerate(alike, 1):
                number = f"~{place}"
                shown[other] = f"{shown[other][: width - len(number)]}{number}"
    return shown


def _shortened(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}{_ELLIPSIS}{text[-tail:]}"


def _first_difference(texts: Sequence[str]) -> int:
    """Return the first place at which the texts are not all equal."""
    columns = enumerate(zip(*texts, strict=False))
    return next((place for place, signs in columns if len(set(signs)) > 1), min(map(len, texts)))


def _window(text: str, start: int, width: int) -> str:
    """Return the beginning of a text, and what follows from ``start`` on."""
    if len(text) <= width:
        return text
    head = (width - 2) // 3
    room = width - 1 - head
    begin = min(max(start - 1, head), max(len(text) - room, head))
    rest = text[begin : begin + room]
    if begin + room < len(text):
        rest = f"{rest[:-1]}{_ELLIPSIS}"
    return f"{text[:head]}{_ELLIPSIS}{rest}"


def parameters(values: Sequence[float]) -> dict[float, str]:
    """Write parameters, such as costs or deltas, with four digits or more.

    There are as many digits as it takes to write different numbers differently.
    """
    every = list(dict.fromkeys(values))
    for digits in range(4, 18):
        shown = {value: _parameter(value, digits) for value in every}
        if len(set(shown.values())) == len(every):
            break
    return shown


def plain(number: float) -> str:
    """Write one parameter with all its digits."""
    return next(
        text
        for digits in range(1, 18)
        if float((text := _parameter(number, digits)).replace(",", "")) == number or digits == 17
    )


def _parameter(number: float, digits: int) -> str:
    if 1e-4 <= abs(number) < _LARGEST_PLAIN:
        text = f"{number:,.{max(0, digits - 1 - math.floor(math.log10(abs(number))))}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return tidy(f"{number:.{digits}g}")


def with_error(value: float | None, error: float | None) -> str:
    """Write a value and its error as ``473,427 ± 1,260``, with the digits that the error allows."""
    if value is None or not math.isfinite(value):
        return ""
    if error is None or not math.isfinite(error):
        return _alone(value)
    if error <= _ROUNDING * abs(value):
        return f"{_alone(value)} ± 0"
    digits = max(0, 1 - math.floor(math.log10(error)))
    text = f"{value:,.{digits}f} ± {error:,.{digits}f}"
    if len(text) <= _LONGEST_PLAIN:
        return text
    power = math.floor(math.log10(max(abs(value), error)))
    unit = 10.0**power
    digits = max(0, 1 - math.floor(math.log10(error / unit)))
    if digits > _MOST_DIGITS:  # so precise that one notation would be a row of zeros
        return f"{tidy(f'{value:.{_MOST_DIGITS + 1}g}')} ± {tidy(f'{error:.2g}')}"
    return f"({value / unit:.{digits}f} ± {error / unit:.{digits}f})e{power}"


def _alone(value: float) -> str:
    if 1000 <= abs(value) < _LARGEST_PLAIN:
        return f"{value:,.0f}"
    return tidy(f"{value:.6g}")


def trials_text(least: int, most: int, not_ended: int = 0, of_means: bool = True) -> str:
    """Write ``3,000 trials`` for the caption of a figure, with a note on unended trials.

    Means leave such trials out, quantiles and error rates do not.
    """
    text = " to ".join(f"{n:,}" for n in dict.fromkeys((least, most))) + " trials"
    if not not_ended:
        return text
    means = "means over those that ended; " if of_means else ""
    return f"{text} ({means}up to {not_ended:,} did not{'' if of_means else ' end'})"


def rate(value: float, low: float, high: float) -> str:
    """Write a share of trials with its interval, in percent: ``0.12 [0.033, 0.31]``."""
    return f"{_two(100 * value)} [{_two(100 * low)}, {_two(100 * high)}]"


def _two(number: float) -> str:
    """Write two significant digits, or a whole number from 99.5 on."""
    return f"{number:.0f}" if number >= 99.5 else tidy(f"{number:.2g}")
