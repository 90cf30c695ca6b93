"""Tables of paired comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastfed.display.table import MOST, Column, Table, fits
from fastfed.display.tables import key_columns, shared_text
from fastfed.text import digits, signed

if TYPE_CHECKING:
    from fastfed.analysis.compare import Comparison

_NOT_GROUP = ("reference", "measure", "mean", "reference_mean", "pairs", "differ", "separated")


def compare_table(found: Comparison, most: int | None = MOST, rest: str = "--all") -> Table:
    """Make one line for each group, value and cost: the ratio of each measure with its interval.

    The intervals of differences are left out if there is no room for them, unless all is asked for.
    """
    shared, columns = compare_columns(found)
    whole = most is None or fits(columns)
    if not whole:
        shared, columns = compare_columns(found, intervals=False)
    trials = "trials of equal numbers" if found.by == "sweep" else "the same trials"
    above = [
        *found.notes,
        f"Ratios of means to those of the reference {found.by}, over {trials}. All intervals of",
        "ratios hold simultaneously with probability 95 %, and so do all intervals of differences.",
        *filter(None, [shared]),
    ]
    below = [] if whole else [f"Intervals of differences: {rest}"]
    return Table(columns, above, below, found.frame).first(most, rest)


def compare_columns(found: Comparison, intervals: bool = True) -> tuple[str, list[Column]]:
    """Return the values that all rows share, in words, and the columns of the others.

    With ``intervals`` the differences have theirs.
    """
    lines = _lines(found)
    keys = [name for name in lines[0] if name not in ("total", "pulls", "uplinks", "bits")]
    shared, columns = key_columns(lines, keys, always=found.by)
    wanted = ("total", "pulls", "uplinks", *(("bits",) if few_bits(found) else ()))
    measures = [name for name in wanted if name in lines[0]]
    columns += [Column(name, [ratio_text(line.get(name)) for line in lines]) for name in measures]
    if "total" in measures:
        columns.append(
            Column("total, difference", [_difference(one["total"], intervals) for one in lines])
        )
    return shared_text(shared), columns


def few_bits(found: Comparison) -> bool:
    """Tell whether some uplink is not exact: if all are, bits are 64 times the uplinks."""
    frame = found.frame
    uplinks = {*frame["uplink"], *(frame["reference"] if found.by == "uplink" else ())}
    return uplinks != {"exact"}


def _lines(found: Comparison) -> list[dict[str, Any]]:
    """Put the measures of a group, value and cost side by side."""
    rows = found.frame.to_dicts()
    names = [
        name
        for name in rows[0]
        if name not in _NOT_GROUP and not name.startswith(("ratio", "difference"))
    ]
    names.insert(names.index(found.by) + 1, "reference")  # behind what is compared with it
    place = [name for name in names if name not in ("cost", "bit_cost")]
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    others: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        where = tuple(row[name] for name in place)
        if row["measure"] == "total":
            line = {name: row[name] for name in names} | {"total": row}
            lines[*where, row["cost"], row["bit_cost"]] = line
        else:
            others.setdefault(where, {})[row["measure"]] = row
    if not lines:  # no cost was asked for
        lines = {where: dict(zip(place, where, strict=True)) for where in others}
    return [line | others.get(tuple(line[name] for name in place), {}) for line in lines.values()]


def ratio_text(row: Mapping[str, Any] | None) -> str:
    """Write a ratio with its interval; nothing where there is none."""
    if row is None or row["ratio"] is None:
        return ""
    if not row["differ"]:
        return "equal"
    low, high = ends = (row["ratio_low"], row["ratio_high"])
    count = 3
    if row["separated"]:  # as many digits as show on which side of 1 the interval lies
        near = min((end for end in ends if end is not None), key=lambda end: abs(end - 1))
        while count < 17 and float(f"{near:.{count}g}") == 1 != near:
            count += 1
    low, high = ("no limit" if end is None else digits(end, count) for end in ends)
    return f"{digits(row['ratio'], count)} [{low}, {high}]"


def _difference(row: Mapping[str, Any], interval: bool) -> str:
    if not row["differ"]:
        return "0"
    text = signed(row["difference"])
    ends = (row["difference_low"], row["difference_high"])
    low, high = ("no limit" if end is None else signed(end) for end in ends)
    return f"{text} [{low} to {high}]" if interval else text
