"""Tables as text. On a terminal names are shortened to its width; elsewhere nothing is cut."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fastfed.display.legends import BOUNDS, CHECK, summary_legend
from fastfed.display.wording import parameters, plain, rate, told_apart, with_error
from fastfed.model.choices import DEFAULTS, choices_text
from fastfed.text import printable, short, tidy

if TYPE_CHECKING:
    import polars as pl

    from fastfed.analysis.check import Check
    from fastfed.model.instance import Instance
    from fastfed.theory.bounds import Bounds

WIDTH = 100
_MOST_ARMS = 20  # of an instance, in a table of bounds
_LEAST_NAME = 12  # columns that a shortened name keeps
_HEADS = {"cost": "C", "bit_cost": "c of a bit"}
_SUMMARY_KEYS = ("instance", *DEFAULTS, "delta", "sigma", *_HEADS)
_COSTS = {"pulls": "pulls", "uplinks": "uplinks", "comm": "C x uplinks", "total": "total"}
"""Costs of a scheme, and their headings."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, its cells, and how it stands in its place."""

    head: str
    cells: list[str]
    left: bool = False
    """Names stand to the left, numbers to the right."""
    name: bool = False
    """Whether cells may be shortened where the table is too wide."""


def table_text(columns: Sequence[Column], width: int | None = None) -> list[str]:
    """Align the heading and the rows.

    On a terminal, or with a ``width``, names are shortened, the longest first, until the table
    fits. Numbers never are, so that a table of very long ones is wider than asked.
    """
    room = _room() if width is None else width
    columns = _fitted(list(columns), room)
    wide = [_width(column) for column in columns]
    gap = "  " if sum(wide) + 2 * (len(wide) - 1) <= min(room, WIDTH) else " "
    lines = []
    for row in zip(*([column.head, *column.cells] for column in columns), strict=True):
        cells = (
            f"{text:<{size}}" if column.left else f"{text:>{size}}"
            for text, size, column in zip(row, wide, columns, strict=True)
        )
        lines.append(gap.join(cells).rstrip())
    return lines


def fits(columns: Sequence[Column]) -> bool:
    """Tell whether a table fits with all its names in full."""
    return sum(map(_width, columns)) + len(columns) - 1 <= _room()


def _room() -> int:
    """Return the width of the terminal; a file or a pipe has no limit."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    return shutil.get_terminal_size((WIDTH, 0)).columns if terminal else sys.maxsize


def _fitted(columns: list[Column], width: int) -> list[Column]:
    whole = [column.cells for column in columns]
    while True:
        wide = [_width(column) for column in columns]
        over = sum(wide) + len(wide) - 1 - width
        names = [i for i, column in enumerate(columns) if column.name and wide[i] > _LEAST_NAME]
        if over <= 0 or not names:
            return columns
        widest = max(names, key=lambda i: wide[i])
        room = max(_LEAST_NAME, len(columns[widest].head), wide[widest] - over)
        if room >= wide[widest]:
            return columns
        # as equals: a name gives way only as far as it is longer than the others
        others = [wide[i] for i in names if i != widest]
        room = max([room, *(size - 1 for size in others if room < size < wide[widest])])
        column = columns[widest]
        shown = told_apart(whole[widest], room)  # of what is cut already little can be told
        columns[widest] = replace(column, cells=[shown[cell] for cell in whole[widest]])


def _width(column: Column) -> int:
    return max(map(len, [column.head, *column.cells]))


def summary_text(frame: pl.DataFrame, instances: Mapping[str, Instance] | None = None) -> str:
    """Write a summary, one line for each row.

    Lines above the table name the values that all rows share and, with ``instances`` by name, the
    reward distributions. Error rates are in percent, with their exact 95 % intervals. A legend
    below the table explains "x FE0" and "x T*".
    """
    from fastfed.analysis.summary import not_ended_text  # NumPy, which help need not wait for

    if not len(frame):
        return "no rows yet"
    shared, columns = summary_cells(frame, instances)
    lines = [not_ended_text(frame), *law_lines(frame, instances), *shared_lines(shared)]
    legend = summary_legend([column.head for column in columns if any(column.cells)])
    return "\n".join([*filter(None, lines), *table_text(columns), *legend])


def shared_lines(shared: str, width: int = WIDTH) -> list[str]:
    """Write the shared values above a table, with lines broken after commas."""
    if not shared:
        return []
    lines = ["all rows:"]
    for item in shared.replace(", ", ",\n").split("\n"):
        if len(lines[-1]) + 1 + len(item) > width:
            lines.append(" " * 9)
        lines[-1] += f" {item}"
    return lines


def summary_cells(
    frame: pl.DataFrame, instances: Mapping[str, Instance] | None = None
) -> tuple[str, list[Column]]:
    """Return the values that all rows share, in words, and the columns of the others.

    With ``instances``, by name, the last column has mean pulls over the least of any algorithm.
    """
    rows = frame.to_dicts()
    shared, columns = key_columns(rows, [key for key in _SUMMARY_KEYS if key in frame.columns])
    schedules = [printable(row["schedule"]) for row in rows]
    columns.append(Column("schedule", schedules, left=True, name=True))
    trials = [f"{row['trials']:,}" for row in rows]
    if len(set(trials)) == 1:
        shared.append(f"{trials[0]} trials")
    else:
        columns.append(Column("trials", trials))
    by_bit = any(row["bit_cost"] is not None for row in rows)
    sent = ("pulls", "uplinks", *(["bits"] if by_bit else []))
    errors = [rate(row["error_rate"], row["error_low"], row["error_high"]) for row in rows]
    columns += [
        Column("total ± sem", [_total(row) for row in rows]),
        *(Column(name, [short(row[f"{name}_mean"]) for row in rows]) for name in sent),
        Column("error % [95 %]", errors),
        Column("x FE0", [_ratio(row["ratio_to_fedelim0"]) for row in rows]),
    ]
    least = [_ratio(_over_least(row, instances or {})) for row in rows]
    if any(least):
        columns.append(Column("x T*", least))
    return ", ".join(shared), columns


def key_columns(
    rows: Sequence[Mapping[str, Any]], keys: Iterable[str], always: str = ""
) -> tuple[list[str], list[Column]]:
    """Return the values of keys that all rows share, in words, and columns of the other keys.

    Keys are those of a cell, and costs. One that no row has is left out, and ``always`` has a
    column in any case.
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
        if len(set(cells)) == 1 and key != always:
            shared.append(f"{head} {cells[0]}")
        else:
            columns.append(Column(head, cells, left=name, name=name))
    return shared, columns


def _total(row: Mapping[str, Any]) -> str:
    text = with_error(row["total_mean"], row["total_sem"]) or (
        "bits not counted" if row["ended"] and row["bit_cost"] is not None else "none ended"
    )
    return f"{text}*" if row["truncated"] else text


def _over_least(row: Mapping[str, Any], instances: Mapping[str, Instance]) -> float | None:
    """Return mean pulls over T* kl(delta, 1 - delta), where the run is delta-PAC."""
    from fastfed.theory.lower_bounds import over_least_pulls

    instance, pulls = instances.get(row["instance"]), row["pulls_mean"]
    return None if instance is None or pulls is None else over_least_pulls(instance, pulls, row)


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None or ratio != ratio else short(float(f"{ratio:.3g}"))


def law_lines(frame: pl.DataFrame, instances: Mapping[str, Instance] | None) -> list[str]:
    """Name the reward distribution of each instance in the frame; equal ones together."""
    if instances is None:
        return []
    names = frame["instance"].unique(maintain_order=True).to_list()
    return laws_text({name: instances[name] for name in names if name in instances})


def laws_text(instances: Mapping[str, Instance]) -> list[str]:
    """Name the reward distribution of each instance; equal ones together."""
    laws: dict[str, list[str]] = {}
    for name, one in instances.items():
        laws.setdefault(one.rewards_text, []).append(printable(name))
    if len(laws) == 1:
        return [f"rewards: {next(iter(laws))}"]
    return [f"rewards: {law} ({', '.join(names)})" for law, names in laws.items()]


def check_text(found: Check) -> str:
    """Write the verdicts of a check by cell, then their counts and reasons."""
    frame = found.frame
    text: list[str] = []
    cut = frame.filter(frame["ended"] < frame["trials"])
    if len(cut):
        most = int((cut["trials"] - cut["ended"]).max())  # type: ignore[arg-type]
        text.append(
            f"note: some trials did not end, up to {most:,} of a line. Means are over the trials "
            "that ended. The\nothers neither confirm nor refute a claim about trials: its interval "
            "allows for both.\n",
        )
    head, *rows = table_text(check_columns(frame.to_dicts()))
    for (instance, delta, sigma, *choices), lines in frame.with_row_index("row").group_by(
        ["instance", "delta", "sigma", *DEFAULTS], maintain_order=True
    ):
        counts = sorted({count for count in lines["trials"] if count is not None})
        span = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
        text += [
            f"{printable(str(instance))}, delta {plain(delta)}, sigma {plain(sigma)}"
            + printable(choices_text(dict(zip(DEFAULTS, choices, strict=True))))
            + f", {span} trials",
            head,
            *(rows[row] for row in lines["row"]),
            "",
        ]
    text += [*CHECK, ""]
    text += [f"{verdict}: {count}" for verdict, count in found.counts().items()]
    reasons = frame.filter(frame["reason"] != "")
    for (verdict, reason), lines in reasons.group_by(["verdict", "reason"], maintain_order=True):
        text.append(f"  {verdict} ({len(lines)}): {reason}")
    return "\n".join(text)


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
        Column(
            "/bound", ["" if row["tightness"] is None else _brief(row["tightness"]) for row in rows]
        ),
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
        return f"{_two(low)}-{_two(high)}"
    return f">= {_two(low)}" if row["verdict"] == "violated" else f"<= {_two(high)}"


def _two(share: float) -> str:
    return tidy(f"{share:.2g}")


def _brief(number: float) -> str:
    """Write a number in at most six characters."""
    if 1e-3 <= number < 1e3:
        return tidy(f"{number:.3g}")
    return f"{number:,.0f}" if 1e3 <= number < 1e5 else tidy(f"{number:.1g}")


def bounds_text(found: Sequence[Bounds]) -> str:
    """Write the bounds: the arms once for each delta, the schemes for each cost."""
    text: list[str] = []
    for position, b in enumerate(found):
        before = found[position - 1]
        keys = ((one.delta, one.radius, one.goal) for one in (b, before))
        if position == 0 or len(set(keys)) > 1:
            text += [*_arms_text(b), ""]
        text += [*_schemes_text(b), ""]
    return "\n".join([*text, *BOUNDS])


def grid_text(b: Bounds) -> str:
    """Write the schemes' bounds, summed over arms and clients, for a grid of deltas and costs."""
    head = f"{_instance_text(b.instance)}; confidence scale sigma {b.sigma:g}"
    return "\n".join([head, *table_text(grid_columns(b))])


def _instance_text(instance: Instance) -> str:
    arms, clients = instance.shape
    size = f"{arms} arms, {clients} clients"
    return f"{printable(instance.name)}: {size}, rewards {instance.rewards_text}"


def grid_columns(b: Bounds) -> list[Column]:
    """Make the columns of a table with one row for each delta, cost and scheme."""
    rows = b.table().to_dicts()
    deltas, costs = (parameters([row[name] for row in rows]) for name in ("delta", "cost"))
    return [
        Column("delta", [deltas[row["delta"]] for row in rows]),
        Column("C", [costs[row["cost"]] for row in rows]),
        Column("scheme", [_scheme(row["scheme"], row["parameter"]) for row in rows], left=True),
        *(
            Column(head, [short(row[name]) for row in rows])
            for name, head in {**_COSTS, "total_over_T": "total / T"}.items()
        ),
    ]


def _scheme(name: str, parameter: float | None) -> str:
    if parameter is None or name == "fedelim":
        return name
    return f"{name}:{plain(float(parameter)).replace(',', '')}"


def _arms_text(b: Bounds) -> list[str]:
    """Write the numbers that do not depend on the cost."""
    instance = b.instance
    arms = instance.shape[0]
    shown = range(min(arms, _MOST_ARMS))
    hardest = [int(b.local_gaps[k].argmin()) for k in shown]
    clients = [printable(instance.clients[m]) for m in hardest]
    columns = [
        Column("arm", [printable(instance.arms[k]) for k in shown], left=True, name=True),
        Column("Delta_k", [f"{b.global_gaps[k]:.4g}" for k in shown]),
        Column("T_k", [short(b.T_k[k]) for k in shown]),
        Column("n_k", [short(b.n_k[k]) for k in shown]),
        Column("hardest client", clients, left=True, name=True),
        Column("Delta_km", [f"{b.local_gaps[k, hardest[k]]:.4g}" for k in shown]),
        Column("T_km", [short(b.T_km[k, hardest[k]]) for k in shown]),
        Column("n_km", [short(b.n_km[k, hardest[k]]) for k in shown]),
    ]
    if b.T_star and b.allocation is not None and b.least_pulls is not None:
        pulls = b.allocation.sum(axis=1) * (b.least_pulls / b.T_star)
        columns.append(Column("optimum", [short(float(pulls[k])) for k in shown]))
    text = [
        f"{_instance_text(instance)}; delta {plain(b.delta)}, confidence scale sigma {b.sigma:g}"
        + printable(choices_text({"radius": b.radius, "goal": b.goal})),
        f"T = {b.T:,.0f} is the paper's bound on the pulls of FedElim0.",
        f"With n_km and n_k instead of T_km and T_k the bound is {b.T_sharp:,.0f} (sharp).",
        *_least_text(b),
        "",
        *table_text(columns),
    ]
    if b.radius != "paper":
        text.insert(
            3,
            "(the closed forms of T_km and T_k hold for the paper's radius only: here "
            "they are n_km and n_k)",
        )
    if arms > _MOST_ARMS:
        text.append(f"... {arms - _MOST_ARMS:,} more arms: --json has all")
    return text


def _least_text(b: Bounds) -> list[str]:
    """List the lower bounds on mean pulls, or why there is none."""
    lines = []
    if b.T_star is not None:
        lines.append(
            f"Every delta-correct algorithm needs at least {short(b.least_pulls)} pulls on "
            f"average:\nT* kl(delta, 1 - delta) with T* = {short(b.T_star)}."
        )
    if b.lower is not None:
        lines.append(
            f"Theorem 3 states mean pulls >= {short(b.lower_as_stated)}; its proof gives "
            f"{short(b.lower)}."
        )
    return [*lines, *b.notes]


def _schemes_text(b: Bounds) -> list[str]:
    """Write the schemes side by side at one cost."""
    breaking = len(b.breaking_arms)
    condition = (
        "every arm meets C ln T_k <= T_k"
        if not breaking
        else f"{breaking:,} of {len(b.condition):,} arms break C ln T_k <= T_k"
    )
    variants = ("as_stated", "summed", "sharp")
    names = [cell for one in b.schemes for cell in (_scheme(one.name, one.parameter), "", "")]
    costs = [getattr(scheme, variant) for scheme in b.schemes for variant in variants]
    columns = [
        Column("scheme", names, left=True),
        Column("bound", [one.replace("_", " ") for _ in b.schemes for one in variants], left=True),
        *(Column(head, [short(getattr(c, one)) for c in costs]) for one, head in _COSTS.items()),
        Column("total/T", [short(c.total / b.T if b.T else None) for c in costs]),
    ]
    return [
        f"delta {plain(b.delta)}, cost C {plain(b.cost)}: H_opt {b.period_opt:.5g}, lambda_opt "
        f"{b.base_opt:.5g}",
        f"{condition}; FedElim's total <= 3T "
        + ("follows" if b.three_T_follows else "does not follow"),
        *table_text(columns),
    ]
