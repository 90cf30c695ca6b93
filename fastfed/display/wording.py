"""Names as text: short, and never two different ones alike."""

from __future__ import annotations

from collections.abc import Sequence

from fastfed.text import printable

_ELLIPSIS = "…"


def told_apart(names: Sequence[str], width: int) -> dict[str, str]:
    """Shorten long names in the middle, to at most ``width`` characters.

    Different names stay different: those that would look alike are numbered.
    """
    width = max(width, 8)
    tail = (width - 1) // 2
    shown = {}
    for name in dict.fromkeys(names):
        text = printable(name)
        whole = len(text) <= width
        shown[name] = text if whole else f"{text[: width - 1 - tail]}{_ELLIPSIS}{text[-tail:]}"
    for name, text in list(shown.items()):
        alike = [other for other in shown if shown[other] == text]
        if len(alike) > 1 and shown[name] == text:
            for place, other in enumerate(alike, 1):
                number = f"~{place}"
                shown[other] = f"{text[: width - len(number)]}{number}"
    return shown


def trials_text(least: int, most: int, not_ended: int = 0, of_means: bool = True) -> str:
    """Write ``3,000 trials`` for the caption of a figure, with a note on unended trials.

    Means leave such trials out, quantiles and error rates do not.
    """
    text = " to ".join(f"{n:,}" for n in dict.fromkeys((least, most))) + " trials"
    if not not_ended:
        return text
    means = "means over those that ended; " if of_means else ""
    return f"{text} ({means}up to {not_ended:,} did not{'' if of_means else ' end'})"
