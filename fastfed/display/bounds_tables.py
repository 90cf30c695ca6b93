"""Tables of bounds: the numbers that a user needs, and all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fastfed.display.instance_table import MOST_ARMS
from fastfed.display.legends import BOUNDS, LEAST_BOUNDS
from fastfed.display.table import MOST, Column, Table, of_frame
from fastfed.display.tables import key_columns, usual_values
from fastfed.model.choices import choices_text
from fastfed.text import digits, plain, printable, short

if TYPE_CHECKING:
    from fastfed.model.instance import Instance
    from fastfed.theory.bounds import Bounds

_VARIANTS = ("as_stated", "summed", "sharp")


def bounds_table(found: Sequence[Bounds], most: int | None = MOST, rest: str = "--all") -> Table:
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
    shared, columns = key_columns(cells, cells[0], "delta", usual_values({instance.name: instance}))
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
    star = found[0].T_star
    above = [
        "; ".join(filter(None, [_instance_text(instance), ", ".join(shared)])),
        *([f"T* = {short(star)}"] if star is not None else []),
        *dict.fromkeys(note for b in found for note in b.notes),
    ]
    below = [*LEAST_BOUNDS, f"Bounds as stated and summed, and the arms: {rest}"]
    return Table(columns, above, below).first(most, rest)


def _head(index: int, found: Sequence[Bounds]) -> str:
    """Name a scheme above its bounds on the total cost."""
    schemes = [(b.schemes[index], b) for b in found]
    best = all(s.name == "periodic" and abs(s.parameter - b.period_opt) <= 1 for s, b in schemes)
    return "periodic:H_opt" if best else _scheme(schemes[0][0].name, schemes[0][0].parameter)


def _scheme(name: str, parameter: float | None) -> str:
    if parameter is None or name == "fedelim":
        return name
    return f"{name}:{plain(float(parameter)).replace(',', '')}"


def _instance_text(instance: Instance) -> str:
    arms, clients = instance.shape
    size = f"{arms} arms, {clients} clients"
    return f"{printable(instance.name)}: {size}, rewards {instance.rewards_text}"


def schemes_table(found: Sequence[Bounds], variants: Sequence[str] = ("summed",)) -> Table:
    """Put the schemes side by side, a row for each delta, cost, variant and scheme."""
    import polars as pl

    rows = pl.concat(
        b.table(one).with_columns(bound=pl.lit(one.replace("_", " ")))
        for b in found
        for one in variants
    )
    names = [_scheme(*one) for one in rows.select("scheme", "parameter").iter_rows()]
    heads = {"cost": "C", "comm": "C x uplinks", "total_over_T": "total / T"}
    shown = rows.with_columns(pl.Series("scheme", names)).select(
        *("delta", "cost", "scheme", "bound", "pulls", "uplinks", "comm", "total", "total_over_T")
    )
    instance, sigma = found[0].instance, found[0].sigma
    head = f"{_instance_text(instance)}; confidence scale sigma {sigma:g}"
    return of_frame(shown.rename(heads), [head])


def table_of(b: Bounds) -> Table:
    """Show the bounds for one delta and cost, or the schemes for all of several."""
    if isinstance(b.delta, float) and isinstance(b.cost, float):
        return bounds_table([b], rest=".to_frame()")
    return schemes_table([b]).first(MOST, ".table()")


def bounds_text(found: Sequence[Bounds]) -> str:
    """Write every number: arms for each delta, radius and goal, then schemes at each cost."""
    groups: dict[object, list[Bounds]] = {}
    for b in found:
        groups.setdefault((b.delta, b.radius, b.goal), []).append(b)
    text: list[str] = []
    for some in groups.values():
        conditions = [line for b in some for line in _conditions(b)]
        schemes = replace(schemes_table(some, _VARIANTS), above=conditions)
        text += [_arms_table(some[0]).text(), "", schemes.text(), ""]
    return "\n".join([*text, *BOUNDS])


def _arms_table(b: Bounds) -> Table:
    """Make the table of the numbers that do not depend on the cost."""
    instance, arms = b.instance, b.instance.shape[0]
    shown = range(min(arms, MOST_ARMS))
    hardest = [int(b.local_gaps[k].argmin()) for k in shown]
    columns = [
        Column("arm", [printable(instance.arms[k]) for k in shown], left=True, name=True),
        Column("Delta_k", [f"{b.global_gaps[k]:.4g}" for k in shown]),
        Column("T_k", [short(b.T_k[k]) for k in shown]),
        Column("n_k", [short(b.n_k[k]) for k in shown]),
        Column("hardest client", [printable(instance.clients[m]) for m in hardest], True, True),
        Column(
            "Delta_km", [f"{b.local_gaps[k, m]:.4g}" for k, m in zip(shown, hardest, strict=True)]
        ),
        Column("T_km", [short(b.T_km[k, m]) for k, m in zip(shown, hardest, strict=True)]),
        Column("n_km", [short(b.n_km[k, m]) for k, m in zip(shown, hardest, strict=True)]),
    ]
    if b.T_star and b.allocation is not None and b.least_pulls is not None:
        pulls = b.allocation.sum(axis=1) * (b.least_pulls / b.T_star)
        columns.append(Column("optimum", [short(float(pulls[k])) for k in shown]))
    above = [
        f"{_instance_text(instance)}; delta {plain(b.delta)}, confidence scale sigma {b.sigma:g}"
        + printable(choices_text({"radius": b.radius, "goal": b.goal})),
        f"T = {b.T:,.0f} is the paper's bound on the pulls of FedElim0.",
        f"With n_km and n_k instead of T_km and T_k the bound is {b.T_sharp:,.0f} (sharp).",
    ]
    if b.radius != "paper":
        above.append(
            "(the closed forms of T_km and T_k hold for the paper's radius only: here "
            "they are n_km and n_k)"
        )
    if b.T_star is not None:
        above.append(
            f"Every delta-correct algorithm needs at least {short(b.least_pulls)} pulls on "
            f"average:\nT* kl(delta, 1 - delta) with T* = {short(b.T_star)}."
        )
    if b.lower is not None:
        above.append(
            f"Theorem 3 states mean pulls >= {short(b.lower_as_stated)}; its proof gives "
            f"{short(b.lower)}."
        )
    more = f"... {arms - MOST_ARMS:,} more arms: --format json has all"
    return Table(columns, [*above, *b.notes, ""], [more] if arms > MOST_ARMS else [])


def _conditions(b: Bounds) -> list[str]:
    """Say for one cost which schemes are best, and whether FedElim's total <= 3T is known."""
    breaking = len(b.breaking_arms)
    condition = (
        "every arm meets C ln T_k <= T_k"
        if not breaking
        else f"{breaking:,} of {len(b.condition):,} arms break C ln T_k <= T_k"
    )
    follows = "follows" if b.three_T_follows else "does not follow"
    return [
        f"cost C {plain(b.cost)}: H_opt {b.period_opt:.5g}, lambda_opt {b.base_opt:.5g};",
        f"  {condition}; FedElim's total <= 3T {follows}",
    ]
