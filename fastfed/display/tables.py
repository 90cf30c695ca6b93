"""Tables of summaries, checks and bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastfed.display.legends import BOUNDS, CHECK, LEAST_BOUNDS, summary_legend
from fastfed.display.table import MOST, Column, Table, fits, table_text
from fastfed.model.choices import DEFAULTS, choices_text
from fastfed.text import digits, listed, number, parameters, plain, printable, rate, short

if TYPE_CHECKING:
    import polars as pl

    from fastfed.analysis.check import Check
    from fastfed.model.instance import Instance
    from fastfed.theory.bounds import Bounds

_MOST_ARMS = 20  # of an instance, in a table of bounds
_MOST_FAILED = 6  # lines of a check that do not hold, on one screen
_HEADS = {"cost": "C", "bit_cost": "c of a bit"}
_SUMMARY_KEYS = ("instance", *DEFAULTS, "delta", "sigma", *_HEADS)
USUAL: Mapping[str, object] = {**DEFAULTS, "sigma": 1.0}
"""Choices that are not printed where all rows have them."""
_COSTS = {"pulls": "pulls", "uplinks": "uplinks", "comm": "C x uplinks", "total": "total"}
"""Costs of a scheme, and their headings."""


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
    shared, columns = summary_cells(frame, instances)
    above = [*not_ended_text(frame).splitlines(), *law_lines(frame, instances), shared]
    legend = summary_legend([column.head for column in columns])
    return Table(columns, [*filter(None, above)], legend, frame).first(most, rest)


def summary_text(
    frame: pl.DataFrame,
    instances: Mapping[str, Instance] | None = None,
    most: int | None = MOST,
    rest: str = "summary()",
) -> str:
    """Write a summary as text."""
    return summary_table(frame, instances, most, rest).text()


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


def bounds_table(found: Sequence[Bounds], most: int | None = MOST) -> Table:
    """Make the table of the numbers that a user needs, one row for each setting and cost."""
    cells = [
        {
            "delta": float(b.delta),
            "cost": float(b.cost),
            "radius": b.radius,
            "goal": b.goal,
            "sigma": b.sigma,
        }
        for b in found
    ]
    instance = found[0].instance
    usual = usual_values({instance.name: instance})
    shared, columns = key_columns(cells, cells[0], "delta", usual)
    columns += [
        Column("least pulls", [short(b.least_pulls) for b in found]),
        Column("T", [short(float(b.T)) for b in found]),
        Column("sharp T", [short(float(b.T_sharp)) for b in found]),
        Column("H_opt", [digits(float(b.period_opt), 5) for b in found]),
        *(
            Column(_head(index, found), [short(float(b.schemes[index].sharp.total)) for b in found])
            for index in range(len(found[0].schemes))
        ),
    ]
    notes = list(dict.fromkeys(note for b in found for note in b.notes))
    head = _instance_text(instance) + (f"; {', '.join(shared)}" if shared else "")
    star = found[0].T_star
    above = [head, *([f"T* = {short(star)}"] if star is not None else []), *notes]
    return Table(columns, above, LEAST_BOUNDS).first(most, "--all")


def _head(index: int, found: Sequence[Bounds]) -> str:
    """Name a scheme above its bounds on the total cost."""
    schemes = [b.schemes[index] for b in found]
    if all(
        one.name == "periodic" and abs(one.parameter - b.period_opt) <= 1
        for one, b in zip(schemes, found, strict=True)
    ):
        return "periodic:H_opt"
    return _scheme(schemes[0].name, schemes[0].parameter)


def bounds_text(found: Sequence[Bounds], every: bool = False) -> str:
    """Write the bounds in short, or ``every`` number: arms once for each delta, then schemes."""
    if not every:
        return bounds_table(found).text()
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
        text.append(f"... {arms - _MOST_ARMS:,} more arms: --format json has all")
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
