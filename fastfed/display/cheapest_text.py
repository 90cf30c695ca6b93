"""The cheapest schedules: a table with a row for each cell, at all costs or at given ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastfed.analysis.intervals import LEAST_DIFFERING
from fastfed.display.styles import times_of
from fastfed.display.table import MOST, Column, Table, fits
from fastfed.display.tables import NONE, key_columns, shared_text, span_text
from fastfed.errors import InputError
from fastfed.model.schedules import Schedule
from fastfed.text import digits, listed, number, printable

if TYPE_CHECKING:
    from fastfed.analysis.cheapest import Cheapest, Envelope, Piece, Rival

_MOST_WINNERS = 7  # columns of schedules; with more, columns are costs
_MOST_NOTES = 4  # lines below a table
_COSTS = (0.0, 1.0, 10.0, 100.0, 1e3, 1e4)
_FEW_COSTS = (0.0, 10.0, 1e3)  # where the names of schedules are long
_LEAST_SHARE = 0.1  # of a piece: a rival that is not separable on less is left out
_PIECES = (
    "95 %: interval of the C at which the schedule becomes the cheapest.",
    "not separable: a paired test at the level 5 %, corrected for the number of schedules, cannot",
    "tell whether this schedule costs more than the cheapest one. More trials separate them.",
)


def cheapest_table(
    found: Cheapest, every: bool = False, rest: str = "--all", framed: bool = True
) -> Table:
    """Make a table with one row for each cell: the C from which each schedule is the cheapest.

    With many winners, or long names, the columns are costs, and the cells have the cheapest
    schedules. With ``every`` it has a row for each piece, with its intervals and rivals.
    """
    envelopes = found.envelopes
    if not envelopes:
        return Table([], ["no rows yet"], frame=found.frame)
    frame = found.frame if framed else None
    title = "The cheapest schedule by the cost C of an uplink."
    if every:
        shared, columns = _pieces(envelopes)
        return Table(columns, [title, shared_text(shared)], [*_PIECES, *_notes(found, None)], frame)
    shared, columns = key_columns([one.cell for one in envelopes], envelopes[0].cell)
    shared.append(span_text([count for one in envelopes for count in one.trials]))
    winners = _winners(envelopes)
    changes = [Column(head, [_from(one, w) for one in envelopes]) for w, head in winners.items()]
    if len(winners) <= _MOST_WINNERS and fits([*columns, *changes]):
        columns += changes
        if not all(one.pieces for one in envelopes):
            columns.append(Column("", ["" if one.pieces else NONE for one in envelopes], left=True))
        meaning = "A number is the C from which the schedule above it is the cheapest."
    else:
        at = {
            cost: Column(f"C = {digits(cost)}", [_at(one, cost) for one in envelopes], True, True)
            for cost in _COSTS
        }
        shown = _COSTS if fits([*columns, *at.values()]) else _FEW_COSTS
        columns += [at[cost] for cost in shown]
        meaning = "A name is the cheapest schedule at the C above it."
    below = [
        f"{meaning} Intervals, and who is not separable where: {rest}",
        *_ties(envelopes),
    ]
    whole = Table(columns, [title, shared_text(shared)], [*below, *_notes(found)], frame)
    return whole.first(MOST, rest)


def _pieces(envelopes: Sequence[Envelope]) -> tuple[list[str], list[Column]]:
    """Return what all cells share, in words, and columns with a row for each piece."""
    rows = [
        (one, piece, before)
        for one in envelopes
        for before, piece in zip((None, *one.pieces), one.pieces or (None,), strict=False)
    ]
    shared, columns = key_columns([one.cell for one, _, _ in rows], envelopes[0].cell)
    trials = [" to ".join(f"{n:,}" for n in dict.fromkeys(one.trials)) for one, _, _ in rows]
    if len(set(trials)) == 1:
        shared.append(f"{trials[0]} trials")
    else:
        columns.append(Column("trials", trials))
    ends = [None if before is None else before.high_interval for _, _, before in rows]
    return shared, [
        *columns,
        Column("C from", ["" if piece is None else digits(piece.low) for _, piece, _ in rows]),
        Column(
            "95 %", ["" if one is None else f"[{digits(one[0])}, {digits(one[1])}]" for one in ends]
        ),
        Column(
            "cheapest",
            [
                NONE if piece is None else printable(" = ".join([piece.winner, *piece.equal]))
                for _, piece, _ in rows
            ],
            left=True,
        ),
        Column(
            "not separable",
            ["" if piece is None else printable(_rivals_text(piece)) for _, piece, _ in rows],
            left=True,
        ),
    ]


def _rivals_text(piece: Piece) -> str:
    """Name the rivals of a piece, two names of the same times together, and where they are."""
    found: dict[object, list[Rival]] = {}
    for one in piece.rivals:
        found.setdefault(_times(one.schedule), []).append(one)
    return "; ".join(
        " = ".join(one.schedule for one in some) + _where_text(some[0], piece)
        for some in found.values()
    )


def _winners(envelopes: Sequence[Envelope]) -> dict[str, str]:
    """Return the headings of all winners, in the order in which they take over."""
    pieces = [(place, piece) for one in envelopes for place, piece in enumerate(one.pieces)]
    found: dict[str, str] = {}
    for _, piece in sorted(pieces, key=lambda item: (item[1].low, item[0])):
        found.setdefault(piece.winner, printable(" = ".join([piece.winner, *piece.equal[:1]])))
    return found


def _from(one: Envelope, winner: str) -> str:
    """Write the C from which a schedule is the cheapest, if it ever is."""
    return next((digits(piece.low) for piece in one.pieces if piece.winner == winner), "")


def _at(one: Envelope, cost: float) -> str:
    """Name the cheapest schedule at a cost."""
    found = (piece.winner for piece in one.pieces if piece.low <= cost < piece.high)
    return printable(next(found, NONE))


def _ties(envelopes: Sequence[Envelope]) -> list[str]:
    """List pairs of a winner and a rival that cannot be told apart on a good part of a piece."""
    pairs: dict[frozenset[object], set[int]] = {}
    words: dict[frozenset[object], str] = {}
    for place, one in enumerate(envelopes):
        for piece in one.pieces:
            for rival in piece.rivals:
                if _share(rival, piece) > _LEAST_SHARE:
                    pair = frozenset(map(_times, (piece.winner, rival.schedule)))
                    pairs.setdefault(pair, set()).add(place)
                    words.setdefault(pair, f"{piece.winner} and {rival.schedule}")
    named = [
        printable(words[pair])
        + (f" ({len(some)} {'row' if len(some) == 1 else 'rows'})" if len(envelopes) > 1 else "")
        for pair, some in sorted(pairs.items(), key=lambda item: -len(item[1]))
    ]
    return [f"Not separable for some C: {listed(named, 2)}."] if named else []


def _share(rival: Rival, piece: Piece) -> float:
    """Return the part of a piece on which a rival is not separable; a piece without end is cut."""
    high = piece.high if math.isfinite(piece.high) else 10 * piece.low or 1.0
    return sum(max(0.0, min(b, high) - a) for a, b in rival.where) / (high - piece.low)


def _notes(found: Cheapest, most: int | None = _MOST_NOTES) -> list[str]:
    """List the schedules that were not compared, and why."""
    never = dict.fromkeys(name for one in found.envelopes for name in one.never_right)
    notes = [f"no cost: {printable(listed(list(never)))}, without right answers"] if never else []
    some = [one for one in found.envelopes if one.schedules]
    if some:
        cut = [one.compared for one in some if one.compared < one.trials[1]]
        count = f", {min(cut):,} or more a cell" if cut else ""
        notes.append(f"compared over trials that all answered rightly{count}")
    notes += found.notes()
    more = 0 if most is None else len(notes) - most
    return notes if more <= 0 else [*notes[:most], f"and {more:,} more notes"]


def _times(name: str) -> object:
    """Return a key that schedules with the same communication times share."""
    try:
        return times_of(Schedule.parse(name))
    except InputError:  # a schedule that is not built in
        return name


def _where_text(rival: Rival, piece: Piece) -> str:
    """Say for which C of a piece a rival is not separable; nothing for all of them."""
    if rival.differ < LEAST_DIFFERING:
        return f" ({rival.differ} trials differ; {LEAST_DIFFERING} are needed)"
    if rival.where == ((piece.low, piece.high),):
        return ""
    spans = []
    for low, high in rival.where:
        start = "" if low == piece.low else f" from {digits(low)}"
        spans.append(start + ("" if high == piece.high else f" to {digits(high)}"))
    return " and".join(spans)


def best_table(
    best: Cheapest,
    costs: Sequence[float],
    bit_costs: Sequence[float] = (),
    most: int | None = MOST,
    rest: str = "--all",
) -> Table:
    """Make the table of the cheapest schedule of every cell at given costs, of uplinks or bits.

    Each line has its mean total cost, the paired margin of the next best, and the schedules that
    cannot be separated from it: the first of them, or all in a table of all rows. Of a winner over
    several choices each choice has a column, and the others are named by what differs from it.
    """
    frame = best.at(costs, bit_costs)
    if not best.envelopes:
        return Table([], ["no rows yet"], frame=frame)
    rows = frame.to_dicts()
    first = best.envelopes[0]
    over = [key for key in next(iter(first.over.values()), {}) if key != "schedule"]
    shared, columns = key_columns(rows, (*first.cell, "cost", "bit_cost"))

    def few(row: Mapping[str, Any], names: Sequence[str]) -> str:
        shown = [_beside(name, [row[key] for key in over]) for name in names]
        return listed(shown, len(shown) if most is None else 1)

    def winner(row: Mapping[str, Any]) -> str:
        equal = row["equal"]
        if len(equal) > 1 and most is not None:
            return f"{row['winner']} (= {len(equal)} others)"
        return f"{row['winner'] or NONE}{f' (= {few(row, equal)})' if equal else ''}"

    def names(head: str, cells: list[str]) -> Column:
        return Column(head, list(map(printable, cells)), left=True, name=True)

    columns += [
        names("cheapest", [winner(row) for row in rows]),
        *(names(key, [str(row[key] or "") for row in rows]) for key in over),
        Column("total ± sem", [number(row["total_mean"], row["total_sem"]) for row in rows]),
        names(
            "next best", [few(row, [row["runner_up"]] if row["runner_up"] else []) for row in rows]
        ),
        Column("paired margin", [number(row["margin"], row["margin_sem"]) for row in rows]),
        names("not separable", [few(row, row["rivals"]) or "none" for row in rows]),
    ]
    above = [*filter(None, [shared_text(shared)])]
    return Table(columns, above, _notes(best), frame).first(most, rest)


def _beside(name: str, values: Sequence[Any]) -> str:
    """Name a schedule with those of its choices that are not the winner's ``values``."""
    schedule, *own = name.rsplit(", ", len(values)) if values else [name]
    return ", ".join([schedule, *(a for a, b in zip(own, values, strict=True) if a != str(b))])
