"""Options of parts: the numbers after the colon of a name, each declared once.

A family with options is a frozen dataclass, and its fields are the options:

    kappa: float = field(metadata=option("KAPPA", 1e-9, 1e6))

`Part` reads the values from names and objects, checks them and writes them into names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass
from typing import Any

from fastfed.errors import InputError
from fastfed.validation import as_whole, number, shown


@dataclass(frozen=True)
class Option:
    """A number, as names and messages show it, and its limits."""

    label: str
    least: float
    most: float
    whole: bool = False
    above: bool = False
    """Whether the value must be larger than ``least``."""
    default: Any = None
    """None: the number must be given."""

    @property
    def rule(self) -> str:
        """Say in words which values are allowed."""
        kind = "a whole number" if self.whole else "a number"
        power = int(self.most).bit_length() - 1
        top = f"2^{power}" if power > 20 and self.most == 2**power else f"{self.most:,g}"
        if self.above:
            return f"must be {kind} above {self.least:g}, at most {top}"
        return f"must be {kind} from {self.least:g} to {top}"

    def read(self, name: str, value: object, example: str) -> float:
        """Read the number from a number or its text; the refusal names it and shows an example."""
        rule = f"{self.rule}, as in {example}"
        named = f"{name}: {self.label}"
        found = as_whole(value) if self.whole else number(named, value, rule) + 0.0  # no -0.0
        if (
            found is None
            or not self.least <= found <= self.most
            or (self.above and found == self.least)
        ):
            raise InputError(f"{named} = {shown(value)}: {rule}")
        return found


def option(
    label: str, least: float, most: float, *, whole: bool = False, above: bool = False
) -> dict[str, Option]:
    """Describe an option, as the metadata of its field."""
    return {"option": Option(label, least, most, whole, above)}


def declared(body: Mapping[str, Any]) -> dict[str, Option]:
    """Return the options that the body of a class declares, by the names of its fields."""
    return {
        name: Option(**{**vars(one.metadata["option"]), "default": _default(one)})
        for name, one in body.items()
        if isinstance(one, Field) and "option" in one.metadata
    }


def _default(field: Field[Any]) -> Any:
    return None if field.default is MISSING else field.default


def grammar_of(family: str, options: Mapping[str, Option]) -> str:
    """Write the form of a name, as in threshold:TAU[,E]."""
    needed = ",".join(one.label for one in options.values() if one.default is None)
    free = ",".join(one.label for one in options.values() if one.default is not None)
    if needed:
        return f"{family}:{needed}{f'[,{free}]' if free else ''}"
    return f"{family}[:{free}]" if free else family
