"""Tables of summaries and checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastfed.display.legends import CHECK, summary_legend
from fastfed.display.table import MOST, Column, Table, fits
from fastfed.model.choices import DEFAULTS
from fastfed.text import digits, listed, number, parameters, plain, printable, rate, short

if TYPE_CHECKING:
    import polars as pl

    from fastfed.analysis.check import Check
    from fastfed.model.instance import Instance

_MOST_FAILED = 6  # lines of a check that do not hold, on one screen
_HEADS = {"cost": "C", "bit_cost": "c of a bit"}
_SUMMARY_KEYS = ("instance", *DEFAULTS, "delta", "sigma", *_HEADS)
USUAL: Mapping[str, object] = {**DEFAULTS, "sigma": 1.0}
"""Choices that are not printed where all rows have them."""


def summary_table(
    frame: pl.DataFrame,
    instances: Mapping[str, Instance] | None = None,
    most: int | None = MOST,
    rest: str = "--all",
) -> Table:
    """Make the table of a summary, one line for each row, and at most ``most`` of them.

    Lines above the table name the values that all rows share and, with ``instances`` by name, the
    reward distributions. Error rates are in percent, with their exact 95 % intervals. A legend
    below the table explains "x FE0" and "x T*".
    """
    from fastfed.analysis.summary import not_ended_text  # NumPy, which help need not wait for

    if not len(frame):
        return Table([], ["no rows yet"], frame=frame)
    shared, columns = summary_cells(_telling(frame, most), instances)
    columns = [replace(one, cells=one.cells[:most]) for one in columns]
    above = [*not_ended_text(frame).splitlines(), *laws_text(instances, frame), shared]
    legend = summary_legend([column.head for column in columns])
    table = Table(columns, [*filter(None, above)], legend, frame, total=len(frame))
    return table.first(most, rest)


def _telling(frame: pl.DataFrame, most: int | None) -> pl.DataFrame:
    """Keep the first rows, and for each key the first row that has another value than they."""
    if most is None:
        return frame
    keys = (frame[key] for key in (*_SUMMARY_KEYS, "trials") if key in frame.columns)
    others = (one.ne_missing(one[0]).arg_max() or 0 for one in keys)
    return frame[sorted({*range(min(most, len(frame))), *others})]


def summary_cells(
    frame: pl.DataFrame, instances: Mapping[str, Instance] | None = None
) -> tuple[str, list[Column]]:
    """Return the values that all rows share, in words, and the columns of the others.

    With ``instances``, by name, the last column has mean pulls over the least of any algorithm.
    """
    rows = frame.to_dicts()
    keys = [key for key in _SUMMARY_KEYS if key in frame.columns]
    shared, columns = key_columns(rows, keys, usual=usual_values(instances))
    schedules = [printable(row["schedule"]) for row in rows]
    columns.append(Column("schedule", schedules, left=True, name=True))
    trials = [f"{row['trials']:,}" for row in rows]
    if len(set(trials)) == 1:
        shared.append(f"{trials[0]} trials")
    else:
        columns.append(Column("trials", trials))
    by_bit = any(row["bit_cost"] is not None for row in rows)
    sent = ("pulls", "uplinks", *(["bits"] if by_bit else []))
    columns += [
        Column("total ± sem", [total_cell(row) for row in rows]),
        *(Column(name, [short(row[f"{name}_mean"]) for row in rows]) for name in sent),
        Column("error % [95 %]", [error_cell(row) for row in rows]),
        Column("x FE0", [digits(row["ratio_to_fedelim0"]) for row in rows]),
        Column("x T*", [digits(over_least(row, instances)) for row in rows]),
    ]
    kept = [one for one in columns if any(one.cells) or not one.head.startswith("x ")]
    return shared_text(shared), kept


def usual_values(
    instances: Mapping[str, Instance] | None,
) -> dict[str, object]:
    """Return the choices that nobody made: the defaults, and the scale of the rewards."""
    scales = {one.default_sigma for one in (instances or {}).values()} or {1.0}
    return {**USUAL, "sigma": scales.pop() if len(scales) == 1 else None}


def key_columns(
    rows: Sequence[Mapping[str, Any]],
    keys: Iterable[str],
    always: str = "",
    usual: Mapping[str, object] = USUAL,
) -> tuple[list[str], list[Column]]:
    """Return the values of keys that all rows share, in words, and columns of the other keys.

    Keys are those of a cell, and costs. One that no row has is left out, and so is one whose value
    is ``usual`` in all rows. ``always`` has a column in any case.
    """
    shared: list[str] = []
    columns: list[Column] = []
    for key in keys:
        known = [row[key] for row in rows if row[key] is not None]
        if rows and not known:
            continue
        name, head = not (known and isinstance(known[0], float)), _HEADS.get(key, key)
        shown = {value: printable(str(value)) for value in known} if name else parameters(known)
        cells = ["" if row[key] is None else shown[row[key]] for row in rows]
        if len(set(cells)) > 1 or key == always:
            columns.append(Column(head, cells, left=name, name=name))
        elif not known or known[0] != usual.get(key):
            shared.append(cells[0] if key == "instance" else f"{head} {cells[0]}")
    return shared, columns


def shared_text(shared: Sequence[str]) -> str:
    """Write the values that all rows of a table share."""
    return f"all rows: {', '.join(shared)}" if shared else ""


def span_text(trials: Sequence[int]) -> str:
    """Write the least and the largest number of trials."""
    span = dict.fromkeys((min(trials), max(trials)))
    return f"{' to '.join(f'{count:,}' for count in span)} trials"


NONE = "no schedule"
"""The winner of a cell without one: all are excluded, none ended, or bits were not counted."""


def total_cell(row: Mapping[str, Any]) -> str:
    """Write the mean total cost of a row of a summary, with its standard error."""
    text = number(row["total_mean"], row["total_sem"]) or (
        "bits not counted" if row["ended"] and row["bit_cost"] is not None else "none ended"
    )
    return f"{text}*" if row["truncated"] else text


def error_cell(row: Mapping[str, Any]) -> str:
    """Write the error rate of a row of a summary in percent, with its interval.

    A rate that is significantly above delta says so: the row is excluded from comparisons.
    """
    text = rate(row["error_rate"], row["error_low"], row["error_high"])
    return f"{text} > delta" if row["error_low"] > row["delta"] else text


def over_least(
    row: Mapping[str, Any], instances: Mapping[str, Instance] | None = None
) -> float | None:
    """Return mean pulls over T* kl(delta, 1 - delta), where the run is delta-PAC."""
    from fastfed.theory.lower_bounds import over_least_pulls

    instance, pulls = (instances or {}).get(row["instance"]), row["pulls_mean"]
    return None if instance is None or pulls is None else over_least_pulls(instance, pulls, row)


def laws_text(
    instances: Mapping[str, Instance] | None, frame: pl.DataFrame | None = None
) -> list[str]:
    """Name the reward distributions of instances, or of those in a frame; equal ones together."""
    laws: dict[str, list[str]] = {}
    for name, one in (instances or {}).items():
        if frame is None or name in frame["instance"]:
            laws.setdefault(one.rewards_text, []).append(printable(name))
    if len(laws) == 1:
        return [f"rewards: {next(iter(laws))}"]
    return [f"rewards: {law} ({listed(names)})" for law, names in laws.items()]


def check_table(found: Check, every: bool = False, rest: str = "--all") -> Table:
    """Make the table of a check: one line for each claim, or for ``every`` line of it.

    The line of a claim counts its verdicts and shows the cell that comes nearest to its bound.
    Below the table is what does not hold, with the reasons. Means and bounds are left out where
    there is no room for them.
    """
    rows = found.frame.to_dicts()
    shared, columns = key_columns(rows, ["instance", *DEFAULTS, "delta", "sigma"])
    shared.append(span_text([row["trials"] for row in rows if row["trials"] is not None]))
    above = [*_not_ended(rows), shared_text(shared)]
    if every:
        counts = [f"{verdict}: {count}" for verdict, count in found.counts().items()]
        reasons = _reasons(rows)
        return Table(
            [*columns, *check_columns(rows)],
            above,
            [*CHECK, *counts, *reasons],
            found.frame,
        )
    claims: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        claims.setdefault(row["claim"], []).append(row)
    verdicts = [verdict for verdict, count in found.counts().items() if count]
    worst = [_nearest(some) for some in claims.values()]
    columns = [
        Column("claim", list(claims), left=True),
        *(
            Column(
                verdict,
                [f"{count:,}" if count else "" for count in _counts(claims, verdict)],
            )
            for verdict in verdicts
        ),
        *(Column(name, [short(row[name]) for row in worst]) for name in ("mean", "bound")),
        Column("/bound", [_brief(row["tightness"]) for row in worst]),
        Column("nearest to it at", [_where(row, rows) for row in worst], left=True, name=True),
    ]
    if not fits(columns):
        columns = [one for one in columns if one.head not in ("mean", "bound")]
    failed = [row for row in rows if row["verdict"] == "violated"]
    below = [f"violated: {row['claim']}, {_where(row, rows)}; {row['reason']}" for row in failed]
    if len(below) > _MOST_FAILED:
        below[_MOST_FAILED:] = [f"violated: {len(below) - _MOST_FAILED:,} more lines"]
    others = _reasons([row for row in rows if row["verdict"] != "violated"])
    most = _MOST_FAILED - len(below)
    below += others[: max(0, most)]
    lines = "1 line" if len(rows) == 1 else f"{len(rows):,} lines"
    below.append(f"{lines}, one for each claim, cell, schedule and C, with intervals: {rest}")
    return Table(columns, above, below, found.frame).first(MOST, rest)


def _counts(claims: Mapping[str, Sequence[Mapping[str, Any]]], verdict: str) -> list[int]:
    return [sum(row["verdict"] == verdict for row in rows) for rows in claims.values()]


def _nearest(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the line of a claim whose mean comes nearest to the bound, of those that apply."""
    applying = [row for row in rows if row["applies"]] or rows
    below = ">=" in applying[0]["claim"]

    def nearness(row: Mapping[str, Any]) -> float:
        tightness = row["tightness"]
        return -1e300 if tightness is None else -tightness if below else tightness

    return max(applying, key=nearness)


def _where(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """Name the cell of a line: what is the same in all lines is left out."""
    several = {
        key
        for key in ("instance", "delta", "sigma", *DEFAULTS)
        if any(one[key] != row[key] for one in rows)
    }
    words = [printable(str(row["schedule"]))]
    words += [printable(str(row["instance"]))] if "instance" in several else []
    words += [f"{key} {plain(row[key])}" for key in ("delta", "sigma") if key in several]
    words += [printable(str(row[key])) for key in DEFAULTS if key in several]
    words += [] if row["cost"] is None else [f"C {plain(row['cost'])}"]
    return ", ".join(words)


def _not_ended(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    cut = max((row["trials"] - row["ended"] for row in rows if row["trials"]), default=0)
    if not cut:
        return []
    return [
        f"note: some trials did not end, up to {cut:,} of a line. Means are over the trials that "
        "ended. The",
        "others neither confirm nor refute a claim about trials: its interval allows for both.",
    ]


def _reasons(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Count the lines of each verdict and reason."""
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        if row["reason"]:
            key = (row["verdict"], row["reason"])
            found[key] = found.get(key, 0) + 1
    return [f"{verdict} ({count}): {reason}" for (verdict, reason), count in found.items()]


def check_columns(rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Make the columns of a check, one row for each of its lines."""
    costs = parameters([row["cost"] for row in rows if row["cost"] is not None] or [0.0])
    return [
        Column("schedule", [row["schedule"] for row in rows], left=True, name=True),
        Column(
            "claim",
            [
                row["claim"] + ("" if row["cost"] is None else f", C {costs[row['cost']]}")
                for row in rows
            ],
            left=True,
        ),
        Column("mean", [short(row["mean"]) for row in rows]),
        Column("bound", [short(row["bound"]) for row in rows]),
        Column("/bound", [_brief(row["tightness"]) for row in rows]),
        Column("interval", [_interval(row) for row in rows]),
        Column("verdict (power)", [_verdict(row) for row in rows], left=True),
    ]


def _verdict(row: Mapping[str, Any]) -> str:
    if row["verdict"] != "not refuted":
        return str(row["verdict"])
    return f"not refuted ({'<1' if row['power'] < 0.01 else round(100 * row['power'])}%)"


def _interval(row: Mapping[str, Any]) -> str:
    """Write the interval of a mean with ±, and of a share with its deciding limit, or both."""
    low, high = row["low"], row["high"]
    if low is None or high is None:
        return ""
    if row["outside"] is None:
        return f"±{_brief((high - low) / 2)}"
    if row["verdict"] in ("not enough trials", "not refuted"):
        return f"{digits(low, 2)}-{digits(high, 2)}"
    return f">= {digits(low, 2)}" if row["verdict"] == "violated" else f"<= {digits(high, 2)}"


def _brief(value: float | None) -> str:
    """Write a number in at most six characters."""
    if value is None:
        return ""
    return digits(value, 3 if 1e-3 <= value < 1e3 else 5 if 1e3 <= value < 1e5 else 1)
