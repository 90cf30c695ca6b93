"""Verdicts of many cells in one word and in one plain sentence that can be quoted.

    Holds on all four instances, except on synthetic at C = 1,000.

A sentence says where cells of each verdict lie. It tries the shortest exact description: whole
instances, one coordinate for all of them (delta <= 0.001), one coordinate within an instance. Where
no description is short, it counts cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastfed.model.schedules import Schedule

HOLDS, VIOLATED, NOT_REFUTED = "holds", "violated", "not refuted"
NOT_ENOUGH_TRIALS, DOES_NOT_APPLY = "not enough trials", "does not apply"
VERDICTS = (HOLDS, VIOLATED, NOT_REFUTED, NOT_ENOUGH_TRIALS, DOES_NOT_APPLY)

IN_PART, AS_FAR = "holds in part", "holds where decided"
FAILS, UNDECIDED = "does not hold", "undecided"
STATUSES = (HOLDS, AS_FAR, IN_PART, FAILS, NOT_REFUTED, UNDECIDED, DOES_NOT_APPLY)
"""Verdicts on whole claims."""

Cell = Mapping[str, Any]
_LONGEST = 110  # characters of a description; a longer one gives way to a count
_LONGEST_LIST = 70  # characters of the values of one coordinate
_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine")


def status(cells: Sequence[Cell]) -> str:
    """Return the verdict on a claim in one word or two: one of `STATUSES`."""
    found = {cell["verdict"] for cell in cells}
    if HOLDS in found:
        if VIOLATED in found:
            return IN_PART
        return AS_FAR if found & {NOT_REFUTED, NOT_ENOUGH_TRIALS} else HOLDS
    if VIOLATED in found:
        return FAILS
    if NOT_REFUTED in found:
        return NOT_REFUTED
    return UNDECIDED if NOT_ENOUGH_TRIALS in found else DOES_NOT_APPLY


def sentence(cells: Sequence[Cell]) -> str:
    """Write the verdict on a claim as plain sentences."""
    by = {verdict: [cell for cell in cells if cell["verdict"] == verdict] for verdict in VERDICTS}
    good, bad = by[HOLDS], by[VIOLATED]
    parts = []
    if good and bad:
        head, rest = ("Holds", bad) if len(bad) <= len(good) else ("Fails", good)
        decided = [cell for cell in cells if cell["verdict"] in (HOLDS, VIOLATED)]
        parts.append(f"{head} {_instances(decided, cells)}, except {describe(rest, decided)}.")
    elif good or bad:
        parts.append(f"{'Holds' if good else 'Does not hold'} {describe(good or bad, cells)}.")
    for verdict, words in (
        (NOT_REFUTED, "Not refuted, but too few trials to confirm it,"),
        (NOT_ENOUGH_TRIALS, "Undecided"),
        (DOES_NOT_APPLY, "Does not apply"),
    ):
        if by[verdict]:
            parts.append(f"{words} {describe(by[verdict], cells)}.")
    return " ".join(parts)


def describe(chosen: Sequence[Cell], among: Sequence[Cell]) -> str:
    """Say where the chosen cells lie: "on synthetic at C = 1,000", "at delta <= 0.001"."""
    names = list(dict.fromkeys(cell["instance"] for cell in among))
    whole = [name for name in names if len(_of(chosen, name)) == len(_of(among, name))]
    of_chosen = {cell["instance"] for cell in chosen}
    if len(whole) == len(of_chosen):
        return _instances(chosen, among)
    # of one instance alone the name is said, even if no other has cells there
    everywhere = _coordinate(chosen, among) if len(of_chosen) > 1 else None
    if everywhere is not None:
        return everywhere
    inside: dict[str, list[str]] = {}
    for name in names:
        mine, every = _of(chosen, name), _of(among, name)
        if mine:
            text = "" if len(mine) == len(every) else _coordinate(mine, every)
            if text is None:
                text = f"in {len(mine):,} of {len(every):,} cells"
            inside.setdefault(text, []).append(name)
    text = " and ".join(f"on {_listed(some)} {text}".rstrip() for text, some in inside.items())
    if len(text) <= _LONGEST:
        return text
    return f"in {len(chosen):,} of {len(among):,} cells"


def _of(cells: Sequence[Cell], instance: str) -> list[Cell]:
    return [cell for cell in cells if cell["instance"] == instance]


def _instances(chosen: Sequence[Cell], among: Sequence[Cell]) -> str:
    """Name the instances of cells: "on synthetic and bernoulli", "on all four instances"."""
    names = list(dict.fromkeys(cell["instance"] for cell in chosen))
    if len(names) > 1 and len(names) == len({cell["instance"] for cell in among}):
        count = len(names)
        number = _NUMBERS[count - 2] if count - 2 < len(_NUMBERS) else f"{count}"
        return f"on {_listed(names)}" if count == 2 else f"on all {number} instances"
    return f"on {_listed(names)}"


def _coordinate(chosen: Sequence[Cell], among: Sequence[Cell]) -> str | None:
    """Describe cells by one coordinate that none of the others shares; None if there is none."""
    own = {id(cell) for cell in chosen}
    for key, words in _WORDS.items():
        if all(key in cell for cell in among):
            inside = {cell[key] for cell in chosen}
            rest = {cell[key] for cell in among if id(cell) not in own}
            if not inside & rest and len(text := words(inside, rest)) <= _LONGEST_LIST:
                return text
    return None


def _number(symbol: str) -> Callable[[set[Any], set[Any]], str]:
    def words(inside: set[Any], rest: set[Any]) -> str:
        if len(inside) > 1 and rest and max(inside) < min(rest):
            return f"at {symbol} <= {max(inside):,g}"
        if len(inside) > 1 and rest and min(inside) > max(rest):
            return f"at {symbol} >= {min(inside):,g}"
        return f"at {symbol} = {_listed([f'{one:,g}' for one in sorted(inside)])}"

    return words


def _names(head: str) -> Callable[[set[Any], set[Any]], str]:
    return lambda inside, rest: f"{head} {_listed(sorted(inside))}"


def _schedules(inside: set[str], rest: set[str]) -> str:
    parsed = sorted((Schedule.parse(name) for name in inside), key=lambda one: one.sort_key)
    periods = [str(one.period) for one in parsed if one.family == "periodic"]
    names = [str(one) for one in parsed if one.family != "periodic"]
    return f"for {_listed([*names, *([f'H = {_listed(periods)}'] if periods else [])])}"


_WORDS: dict[str, Callable[[set[Any], set[Any]], str]] = {
    "delta": _number("delta"),
    "cost": _number("C"),
    "sigma": _number("scale"),
    "schedule": _schedules,
    "radius": _names("with the radius"),
    "what": _names("for"),
}
"""Coordinates of a cell, and their values in words: those chosen, and the others."""


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
