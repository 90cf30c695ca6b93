"""Tables of replays: the events of a trial, and the trials of a sweep that erred."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastfed.display.table import MOST, Column, Table
from fastfed.display.tables import key_columns, shared_text
from fastfed.model.choices import DEFAULTS
from fastfed.text import printable

if TYPE_CHECKING:
    import polars as pl

    from fastfed.simulation.replay import Replay

_RULE = (
    "An arm is eliminated when its mean is 2 alpha (twice the radius) or more below the leader's."
)


def replay_table(replay: Replay, rest: str = "--format csv") -> Table:
    """Make a row for each event, and a line with the totals below them."""
    events, row = replay.events, replay.row

    def mean(value: float | None) -> str:
        return "" if value is None else f"{value:.4g}"

    columns = [
        Column("step", [f"{one.step:,}" for one in events]),
        Column("who", [printable(one.actor) for one in events], left=True),
        Column("event", [one.event for one in events], left=True),
        Column("arm", [printable(one.arm) for one in events], left=True),
        Column("mean", [mean(one.mean) for one in events]),
        Column("leader's mean", [mean(one.leader) for one in events]),
        Column("2 alpha", [mean(one.threshold) for one in events]),
        Column("pulls", [f"{one.pulls:,}" for one in events]),
        Column("uplinks", [f"{one.uplinks:,}" for one in events]),
    ]
    plain = row["bits"] is None or row["uplink"] == "exact"
    answers = "every answer right" if row["correct"] else "not every answer right"
    sent = "" if plain else f" of {row['bits']:,} bits"
    totals = (
        f"in all: {row['pulls']:,} pulls (busiest client: {row['busiest']:,}), {row['uplinks']:,} "
        f"uplinks{sent}, {row['downlinks']:,} downlinks, "
        f"{row['rounds']:,} rounds, {row['steps']:,} steps, "
        f"{'truncated' if row['truncated'] else answers}"
    )
    below = [*([_RULE] if row["goal"] == "best" else []), totals]
    return Table(columns, [printable(replay.title)], below, replay.frame).first(MOST, rest)


def wrong_table(rows: pl.DataFrame) -> Table:
    """Make a row for each trial that erred."""
    told = rows.to_dicts()
    if not told:
        return Table([], ["no trial erred"], frame=rows)
    shared, columns = key_columns(told, ("instance", "schedule", "delta", "sigma", *DEFAULTS))
    columns += [
        *(Column(one, [f"{row[one]:,}" for row in told]) for one in ("trial", "pulls")),
        Column("global answer", [_global_answer(row) for row in told]),
        Column("local errors", [str(row["local_errors"]) for row in told]),
        Column("ended", ["no" if row["truncated"] else "yes" for row in told]),
    ]
    return Table(columns, [*filter(None, [shared_text(shared)])], frame=rows).first(
        MOST, "--format csv"
    )


def _global_answer(row: dict[str, Any]) -> str:
    if row["global_answer"] is None:
        return str(row["global_arm"])
    return " ".join(map(str, row["global_answer"])) or "none"
