"""The paper's goal: the best arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from fastfed.errors import InputError
from fastfed.goals.base import Goal
from fastfed.validation import shown


@dataclass(frozen=True)
class Best(Goal):
    """The arm with the largest mean, which must be unique.

    Examples
    --------
    >>> import fastfed as ff
    >>> str(ff.Best())
    'best'
    """

    family = "best"
    grammar = "best"

    @classmethod
    def from_text(cls, text: str, options: str | None) -> Self:
        if options is not None:
            raise InputError(f"goal {shown(text)}: best takes no option; write best")
        return cls()

    def __str__(self) -> str:
        return self.family
