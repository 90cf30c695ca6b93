"""Bad input: one clear line that names the value, the rule and, where there is one, the fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from fastfed.text import printable


class InputError(ValueError):
    """Input that cannot be used.

    The message is one printable line that names the value, the rule and, where there is one, the
    fix.

    Examples
    --------
    >>> import fastfed as ff
    >>> try:
    ...     ff.Periodic(0)
    ... except ff.InputError as error:
    ...     print(error)
    schedule periodic: period H = 0: must be a whole number from 1 to 2^52, as in periodic:100
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class UnknownNameError(InputError):
    """A name of no part that this process knows."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the known word nearest to ``word``, or nothing."""
    match = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.5)
    return f" (did you mean {match[0]!r}?)" if match else ""


class UncertainWarning(UserWarning):
    """A warning that answers are less certain than they seem.

    Observed rewards may not say for certain which arm is best, or the confidence scale may be too
    small for the rewards.
    """
