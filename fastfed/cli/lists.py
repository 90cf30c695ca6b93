"""Values of options: comma lists, and ranges.

A range stands for its values: ``1:5`` for the whole numbers from 1 to 5, ``0:100:25`` for steps of
25, ``1:1e5:log`` for 1, 10, ..., 100000 (both ends and about one value in each power of ten), and
``1:1e5:log11`` for eleven values, evenly spread over the powers of ten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from glob import glob
from os.path import exists

from fastfed.errors import InputError
from fastfed.model.choices import CHOICES
from fastfed.model.counts import checked_prices
from fastfed.validation import checked_costs, read_number

LISTS = (
    "LIST: one value, or several with commas between them. Numbers may be ranges: 1:5 (whole "
    "numbers), 0:100:25 (steps of 25), 1:1e5:log (powers of ten), 1:1e5:log11 (11 values)."
)
_MOST = 100_000  # values of one range


def split(name: str, values: list[str]) -> list[str]:
    """Split the comma lists of an option that may be repeated into items."""
    items = [item.strip() for value in values for item in value.split(",")]
    if not all(items):
        raise InputError(
            f"--{name} {','.join(values)!r}: an empty item; write values with one "
            "comma between them, as in 0.1,0.2"
        )
    return items


def names(values: list[str]) -> list[str]:
    """Split comma lists of instances; a name with a colon may have commas, as random:5,3,1."""
    some = ([one] if ":" in one or exists(one) else split("instance", [one]) for one in values)  # noqa: PTH110
    return [name for few in some for name in few]


def instances(values: list[str]) -> list[str]:
    """Replace patterns, as ``inst*.toml``, by the files that match, shorter names first."""
    found: list[str] = []
    for value in names(values):
        files = glob(value) if set("*?") & set(value) else [value]  # noqa: PTH207
        if not files:
            raise InputError(f"--instance {value!r}: no file matches this pattern")
        found += sorted(files, key=lambda name: (len(name), name))
    return found


def weights(values: list[str]) -> list[list[float]]:
    """Read rows of weights: each use of the option gives the weights of one average."""
    return [[_weight(value, item) for item in split("weights", [value])] for value in values]


def _weight(row: str, item: str) -> float:
    try:
        return read_number(item)
    except ValueError:
        raise InputError(
            f"--weights {row!r}: {item!r} is not a number; write a weight for each client, as in "
            "5,3,2"
        ) from None


def pairs(name: str, values: list[str], example: str) -> dict[str, str]:
    """Read names with their values, as in rounds=50,downlinks=1."""
    found: dict[str, str] = {}
    for item in split(name, values):
        key, _, value = (part.strip() for part in item.partition("="))
        if not (key and value):
            raise InputError(f"--{name} {item!r}: must be a name and a value, as in {example}")
        if key in found:
            raise InputError(f"--{name} {item!r}: {key} has a value already; give it once")
        found[key] = value
    return found


def prices(values: list[str]) -> dict[str, float]:
    """Read prices by the names of counts."""
    return checked_prices(pairs("price", values, "rounds=50,downlinks=1"))


def numbers(name: str, values: list[str], whole: bool = False) -> list[str]:
    """Read numbers from comma lists, with ranges written out; ``whole``: whole numbers."""
    found: dict[str, None] = {}
    for item in split(name, values):
        found |= dict.fromkeys(_range(name, item, whole) if ":" in item else [item])
    return list(found)


def choices(kind: str) -> Callable[[list[str]], list[str]]:
    """Return the function that splits a comma list of goals, or of another choice.

    Where options have commas, as ``threshold:0.5,0.05``, a number belongs to the item before it.
    """
    commas = "," in "".join(CHOICES[kind].grammars)
    return lambda values: _joined(kind, values, lambda _, item: commas and _is_number(item))


def schedules(values: list[str]) -> list[str]:
    """Split a comma list in which ``at:1,5,25`` is one item, and ``adaptive:8,1.2`` another."""
    return _joined("schedule", values, _is_option)


def _is_option(before: str, item: str) -> bool:
    """Tell whether an item is an option of the schedule before it."""
    if before.startswith("adaptive:"):
        return _is_number(item)
    return before.startswith("at:") and item.isdigit()


def _joined(name: str, values: list[str], belongs: Callable[[str, str], bool]) -> list[str]:
    """Split comma lists whose items may contain commas.

    An item that continues the item before it, in the same list, is joined to it.
    """
    items: list[str] = []
    for value in values:
        first = len(items)
        for item in split(name, [value]):
            if len(items) > first and belongs(items[-1], item):
                items[-1] += f",{item}"
            else:
                items.append(item)
    return items


def _is_number(text: str) -> bool:
    try:
        read_number(text)
    except ValueError:
        return False
    return True


def costs(values: list[str], name: str = "cost") -> list[float]:
    """Read and check the costs of an uplink, or of a bit."""
    return checked_costs(numbers(name, values), "a bit" if name == "bit-cost" else "an uplink")


def _range(name: str, text: str, whole: bool) -> Iterator[str]:
    pieces = text.split(":")
    try:
        low, high = read_number(pieces[0]), read_number(pieces[1])
        how = pieces[2].strip() if len(pieces) == 3 else "1"
        if len(pieces) > 3 or not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError
        found = (
            _log(low, high, how) if how.startswith("log") else _linear(low, high, read_number(how))
        )
    except (ValueError, OverflowError):
        raise InputError(
            f"--{name} {text!r}: not a range; write FROM:TO, FROM:TO:STEP, "
            "FROM:TO:log or FROM:TO:logCOUNT, as in 1:1e5:log"
        ) from None
    if len(found) > _MOST:
        raise InputError(f"--{name} {text!r}: {len(found):,} values, at most {_MOST:,}")
    return (
        str(round(value)) if whole or (value == round(value) and abs(value) < 1e15) else repr(value)
        for value in found
    )


def _linear(low: float, high: float, step: float) -> list[float]:
    if not step > 0 or high < low:
        raise ValueError
    count = min((high - low) / step * (1 + 1e-12), float(_MOST))
    return [float(f"{low + place * step:.12g}") for place in range(math.floor(count) + 1)]


def _log(low: float, high: float, how: str) -> list[float]:
    if not (low > 0 and high > 0):
        raise ValueError
    decades = math.log10(high / low)
    if how[3:] and not (how[3:].isascii() and how[3:].isdecimal()):
        raise ValueError(how)
    count = int(how[3:]) if how[3:] else math.ceil(abs(decades) - 1e-9) + 1
    if count < 1:
        raise ValueError
    if count == 1:
        return [low]
    inner = [
        float(f"{low * 10 ** (decades * place / (count - 1)):.4g}")
        for place in range(1, min(count, _MOST + 1) - 1)
    ]
    return [low, *inner, high]
