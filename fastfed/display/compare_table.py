"""Tables of paired comparisons, as text and as HTML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastfed.display.tables import Column, fits, key_columns, shared_lines, table_text
from fastfed.text import short, tidy

if TYPE_CHECKING:
    from fastfed.analysis.compare import Comparison

_NOT_GROUP = ("reference", "measure", "mean", "reference_mean", "pairs", "differ", "separated")


def compare_text(found: Comparison) -> str:
    """Show one line for each group, value and cost: the ratio of each measure with its interval.

    On a terminal the intervals of differences are left out if there is no room for them.
    """
    shared, columns = compare_columns(found)
    whole = fits(columns)
    if not whole:
        shared, columns = compare_columns(found, intervals=False)
    return "\n".join([*compare_lines(found, whole), *shared_lines(shared), *table_text(columns)])


def compare_html(found: Comparison) -> str:
    """Show the same in a notebook."""
    from fastfed.display.notebook import columns_html

    shared, columns = compare_columns(found)
    return columns_html([*compare_lines(found), f"all rows: {shared}" if shared else ""], columns)


def compare_lines(found: Comparison, whole: bool = True) -> list[str]:
    """Write the lines above the table: excluded values, and the meaning of the numbers."""
    trials = "trials of equal numbers" if found.by == "sweep" else "the same trials"
    lines = [
        *found.notes,
        f"Ratios of means to those of the reference {found.by}, over {trials}. All intervals of",
        "ratios hold simultaneously with probability 95 %, and so do all intervals of differences.",
        f"By Bonferroni's rule, each of the {found.frame.height:,} has the level "
        f"{100 * found.level:.6g} %.",
    ]
    if not whole:
        lines.append("A wider terminal, a pipe or --json also has the intervals of differences.")
    return lines


def compare_columns(found: Comparison, intervals: bool = True) -> tuple[str, list[Column]]:
    """Return the values that all rows share, in words, and the columns of the others.

    With ``intervals`` the differences have theirs.
    """
    lines = _lines(found)
    keys = [name for name in lines[0] if name not in ("total", "pulls", "uplinks", "bits")]
    shared, columns = key_columns(lines, keys, always=found.by)
    wanted = ("total", "pulls", "uplinks", *(("bits",) if few_bits(found) else ()))
    measures = [name for name in wanted if name in lines[0]]
    columns += [Column(name, [_ratio(line.get(name)) for line in lines]) for name in measures]
    if "total" in measures:
        columns.append(
            Column("total, difference", [_difference(one["total"], intervals) for one in lines])
        )
    return ", ".join(shared), columns


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


def _ratio(row: Mapping[str, Any] | None) -> str:
    if row is None or row["ratio"] is None:
        return ""
    if not row["differ"]:
        return "equal"
    ends = (row["ratio_low"], row["ratio_high"])
    low, high = ("no limit" if end is None else _three(end) for end in ends)
    return f"{_three(row['ratio'])} [{low}, {high}]"


def _three(number: float) -> str:
    return tidy(f"{number:.3g}")


def _difference(row: Mapping[str, Any], interval: bool) -> str:
    if not row["differ"]:
        return "0"
    text = _signed(row["difference"])
    ends = (row["difference_low"], row["difference_high"])
    low, high = ("no limit" if end is None else _signed(end) for end in ends)
    return f"{text} [{low} to {high}]" if interval else text


def _signed(number: float) -> str:
    sign = "+" if number > 0 else "-" if number < 0 else ""
    return sign + short(abs(number))
