"""Names as text: short, and never two different ones alike."""

from __future__ import annotations

from collections.abc import Sequence

from fastfed.text import printable

_ELLIPSIS = "…"


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


def trials_text(least: int, most: int, not_ended: int = 0, of_means: bool = True) -> str:
    """Write ``3,000 trials`` for the caption of a figure, with a note on unended trials.

    Means leave such trials out, quantiles and error rates do not.
    """
    text = " to ".join(f"{n:,}" for n in dict.fromkeys((least, most))) + " trials"
    if not not_ended:
        return text
    means = "means over those that ended; " if of_means else ""
    return f"{text} ({means}up to {not_ended:,} did not{'' if of_means else ' end'})"
