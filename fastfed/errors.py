"""Bad input: one clear line that names the value, the rule and, where there is one, the fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Input that cannot be used. The message is one line that names the value, the rule and, where
    there is one, the fix.

    Examples
    --------
    >>> import fastfed as ff
    >>> try:
    ...     ff.Periodic(0)
    ... except ff.InputError as error:
    ...     print(error)
    period H = 0: must be a whole number from 1 to 2^52, as in periodic:100
    """


def nearest(word: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` for the known word nearest to ``word``, or nothing."""
    match = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.5)
    return f" (did you mean {match[0]!r}?)" if match else ""


def printable(text: str) -> str:
    """``text`` with everything escaped that a terminal would obey instead of showing: control
    characters, line breaks, marks that reorder text, bytes that are no UTF-8."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
