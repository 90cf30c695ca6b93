"""The cheapest schedules as text: for each cell the ranges of C, or a table at given costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fastfed.analysis.intervals import LEAST_DIFFERING
from fastfed.display.tables import Column, key_columns, shared_lines, table_text
from fastfed.display.wording import with_error
from fastfed.errors import InputError
from fastfed.model.schedules import Exponential, Schedule
from fastfed.text import printable, tidy

if TYPE_CHECKING:
    from fastfed.analysis.cheapest import Cheapest, Envelope, Piece, Rival

_NO_COST = "no costs known"  # none ended, or bits were not counted
_LONG_SCHEDULE = 24  # characters, in a table with several columns of schedules
BRACKETS = (
    "[low, high]: 95 % interval of the C at which the next schedule becomes the cheapest.",
    "not separable: a paired test at the level 5 %, corrected for the number of schedules, cannot",
    "tell whether this schedule costs more than the cheapest one. More trials separate them.",
)


def cheapest_text(found: Cheapest) -> str:
    """Write the ranges of every cell, and explain their words once."""
    if not found.envelopes:
        return "no rows yet"
    cells = [_lines(one) for one in found.envelopes]
    return "\n".join(["\n\n".join(map("\n".join, cells)), *_legend(found.envelopes)])


def envelope_text(found: Envelope) -> str:
    """Write the ranges of one cell."""
    return "\n".join([*_lines(found), *_legend([found])])


def _legend(found: tuple[Envelope, ...] | list[Envelope]) -> tuple[str, ...]:
    pieces = [piece for one in found for piece in one.pieces]
    brackets = any(piece.high_interval for piece in pieces)
    rivals = any(piece.rivals for piece in pieces)
    return (BRACKETS[:1] if brackets else ()) + (BRACKETS[1:] if rivals else ())


def _lines(found: Envelope) -> list[str]:
    where = ", ".join(
        printable(str(value))
        if name == "instance"
        else f"{name} {_cost(value)}"
        if isinstance(value, float)
        else f"{name} {value}"
        for name, value in found.cell.items()
    )
    least, most = found.trials
    count = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    lines = [f"{where}, {count} trials: the cheapest schedule by the cost C of an uplink"]
    for piece in found.pieces:
        if math.isinf(piece.high):
            span = f"C from {_cost(piece.low)} on" if piece.low else "every C"
        else:
            assert piece.high_interval is not None
            span = (
                f"C from {_cost(piece.low)} to {_cost(piece.high)} "
                f"[{_cost(piece.high_interval[0])}, {_cost(piece.high_interval[1])}]"
            )
        lines.append(f"  {span}: {_named(piece.winner, piece.equal)}")
        lines += [
            f"    not separable: {_named(names[0].schedule, [one.schedule for one in names[1:]])}"
            f"{_where_text(names[0], piece)}"
            for names in _together(piece.rivals)
        ]
    lines += [f"  no cost: {name}, of which no trial ended" for name in found.never_ended]
    lines += [f"  excluded: {name}, {why}" for name, why in found.excluded.items()]
    if found.schedules and found.compared < most:
        lines.append(
            f"  compared over the {found.compared:,} trials that all of {len(found.schedules)} "
            "schedules ended" + _shares_text(found)
        )
    return lines


def _named(name: str, equal: tuple[str, ...] | list[str]) -> str:
    """Write a schedule, and the others that do the same in every trial."""
    return f"{name} (does the same: {', '.join(equal)})" if equal else name


def _together(rivals: tuple[Rival, ...]) -> list[list[Rival]]:
    """Put the rivals together that are two names of the same communication times."""
    found: dict[object, list[Rival]] = {}
    for one in rivals:
        found.setdefault(_times(one.schedule), []).append(one)
    return list(found.values())


def _times(name: str) -> object:
    """Return a key that schedules with the same communication times share."""
    try:
        one = Schedule.parse(name)
    except InputError:  # a schedule that is not built in
        return name
    if one.period is not None:
        return one.period
    return ("base", one.base) if isinstance(one, Exponential) else name


def _shares_text(found: Envelope) -> str:
    """Return the shares of trials that compared schedules did not end."""
    compared = set(found.schedules)
    some = {name: share for name, share in found.unfinished.items() if name in compared}
    return "".join(f"; {name} left {100 * share:.3g} %" for name, share in some.items())


def _where_text(rival: Rival, piece: Piece) -> str:
    if rival.differ < LEAST_DIFFERING:
        return f" ({rival.differ} trials differ; {LEAST_DIFFERING} are needed)"
    if rival.where == ((piece.low, piece.high),):
        return ""
    spans = []
    for low, high in rival.where:
        until = "" if high == piece.high else f" to {_cost(high)}"
        spans.append(f"up to {_cost(high)}" if low == piece.low else f"from {_cost(low)}{until}")
    return f" for C {' and '.join(spans)}"


def _cost(number: float) -> str:
    """Write a cost with three digits, and commas between thousands."""
    if math.isinf(number):
        return "no limit"
    rounded = float(f"{number:.3g}")
    return f"{rounded:,.0f}" if 1000 <= rounded < 1e7 else tidy(f"{rounded:g}")


def best_text(best: Cheapest, costs: Sequence[float], bit_costs: Sequence[float] = ()) -> str:
    """Show the cheapest schedule of every cell at given costs, of an uplink or of a bit.

    Each line has its mean total cost, the paired margin of the next best, and the schedules that
    cannot be separated from it.
    """
    if not best.envelopes:
        return "no rows yet"
    shared, columns, keys = best_columns(best, costs, bit_costs)
    return "\n".join([*shared_lines(shared), *table_text(columns), *keys])


def best_columns(
    best: Cheapest, costs: Sequence[float], bit_costs: Sequence[float] = ()
) -> tuple[str, list[Column], list[str]]:
    """Return what all rows share, the columns, and lines that explain names."""
    rows = best.at(costs, bit_costs).to_dicts()
    shared, columns = key_columns(rows, (*best.envelopes[0].cell, "cost", "bit_cost"))
    brief = _brief_names(
        name
        for row in rows
        for name in (
            row["winner"] or _NO_COST,
            *row["equal"],
            row["runner_up"] or "",
            *row["rivals"],
        )
    )

    def listed(names: Sequence[str]) -> str:
        return ", ".join(brief[name] for name in names)

    columns += [
        Column(
            "cheapest",
            [
                brief[row["winner"] or _NO_COST]
                + (f" (= {listed(row['equal'])})" if row["equal"] else "")
                for row in rows
            ],
            left=True,
            name=True,
        ),
        Column("total ± sem", [with_error(row["total_mean"], row["total_sem"]) for row in rows]),
        Column("next best", [brief[row["runner_up"] or ""] for row in rows], left=True, name=True),
        Column("paired margin", [with_error(row["margin"], row["margin_sem"]) for row in rows]),
        Column(
            "not separable", [listed(row["rivals"]) or "none" for row in rows], left=True, name=True
        ),
    ]
    keys = [f"{short_name}: {name}" for name, short_name in brief.items() if name != short_name]
    return ", ".join(shared), columns, [*keys, *best.excluded_text()]


def _brief_names(names: Iterable[str]) -> dict[str, str]:
    """Write schedules of many times as at#1, at#2, ..., explained below the table.

    In a table with three columns of schedules, shortened long names could not be recognised.
    """
    shown: dict[str, str] = {}
    for name in names:
        if name not in shown:
            long = sum(name != brief for name, brief in shown.items())
            brief = f"{name.partition(':')[0]}#{long + 1}"
            shown[name] = name if len(name) <= _LONG_SCHEDULE else brief
    return shown
