"""What a run may choose beside its rewards and its schedule: radius, goal and uplink, by name.

They travel through the rooms together, as names: in the spec of a sweep, in the identity of a
cell, as columns of rows and summaries. What a name stands for is said by `fastfed.radius`,
`fastfed.goals` and `fastfed.uplinks`, and nobody in between needs to know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar, Self, TypeVar

from fastfed.errors import InputError, nearest
from fastfed.validation import shown

USUAL = {"radius": "paper", "goal": "best", "uplink": "exact"}
"""Each choice with what the paper does, which is what a run does if nothing else is said."""

PLURAL = {"radius": "radii", "goal": "goals", "uplink": "uplinks"}


def unusual(choices: Mapping[str, object]) -> dict[str, str]:
    """Those that differ from what the paper does. A choice that is not there is the usual one."""
    return {
        name: str(choices[name])
        for name, usual in USUAL.items()
        if name in choices and str(choices[name]) != usual
    }


def unusual_text(choices: Mapping[str, object]) -> str:
    """ ", radius mixture, goal top:3" for what differs from the paper; empty if nothing does."""
    return "".join(f", {name} {value}" for name, value in unusual(choices).items())


class Named(ABC):
    """A choice that has a name, as in "top:3": its family, and options after a colon."""

    family: ClassVar[str]
    """Its name up to the colon."""
    grammar: ClassVar[str]
    """How it is written, for messages and help, as in "top:N"."""

    @classmethod
    @abstractmethod
    def from_text(cls, text: str, options: str | None) -> Self:
        """What ``text`` stands for; ``options`` is what follows its colon, None if it has none."""

    @abstractmethod
    def __str__(self) -> str:
        """The name that `from_text` reads back."""


_T = TypeVar("_T", bound=Named)


def parse_named(kind: str, families: Mapping[str, type[_T]], value: object) -> _T:
    """The choice that a name stands for, or the object that is one already."""
    for one in families.values():
        if isinstance(value, one):
            return value
    known = ", ".join(one.grammar for one in families.values())
    if not isinstance(value, str):
        raise InputError(f"{kind} {shown(value)}: must be one of {known}")
    family, colon, options = value.strip().partition(":")
    if family not in families:
        raise InputError(
            f"{kind} {shown(value)}{nearest(family, families)}: must be one of {known}"
        )
    return families[family].from_text(value, options if colon else None)


def parse_several(kind: str, families: Mapping[str, type[_T]], values: object) -> list[_T]:
    """One choice or several, each once, in the order given."""
    if isinstance(values, str | Named) or not isinstance(values, Iterable):
        values = [values]
    found = list(dict.fromkeys(parse_named(kind, families, one) for one in values))
    if not found:
        raise InputError(f"no {PLURAL[kind]}: give at least one, as in {USUAL[kind]}")
    return found
