"""What a notebook shows: instances, summaries, bounds, replays, checks and envelopes as HTML.

Every name is escaped, so that markup in it is shown, not obeyed. Tables take their colours from
the page around them, light or dark, and say in text what they say in bold.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastfed.choices import USUAL
from fastfed.errors import printable
from fastfed.faces import HTML, TEXT
from fastfed.results.tables import (
    Column,
    bounds_text,
    check_text,
    grid_columns,
    grid_text,
    law_lines,
    summary_cells,
)
from fastfed.results.wording import parameters, plain, with_error
from fastfed.statistics.numbers import short
from fastfed.statistics.summary import not_ended_text

if TYPE_CHECKING:
    import polars as pl

    from fastfed.engine.replay import Replay
    from fastfed.problem.instance import Instance
    from fastfed.statistics.best import Best
    from fastfed.theory.bounds import Bounds
    from fastfed.theory.check import Check

_MOST_ROWS = 100
_MOST_ARMS = 30
_MOST_CLIENTS = 12
_BEST = " ★"


def instance_html(instance: Instance) -> str:
    """The means, best arms marked: at each client, and of the mean over the clients."""
    arms, clients = instance.shape
    rows, columns = min(arms, _MOST_ARMS), min(clients, _MOST_CLIENTS)
    heads = ["arm", *(f"client {instance.clients[m]}" for m in range(columns))]
    if columns < clients:
        heads.append(f"… {clients - columns:,} more")
    heads.append("mean over clients")
    averages, here, overall = instance.averages, instance.local_ties, instance.global_ties
    cells: list[list[str]] = []
    for k in range(rows):
        row = [instance.arms[k]]
        row += [
            f"{instance.means[k, m]:.4g}" + _BEST * int(here[k, m] == here[:, m].max())
            for m in range(columns)
        ]
        if columns < clients:
            row.append("")
        row.append(f"{averages[k]:.4g}" + _BEST * int(overall[k] == overall.max()))
        cells.append(row)
    lines = [
        f"{instance.name}: {arms:,} arms, {clients:,} clients; rewards: {instance.rewards!r}",
        *([instance.description] if instance.description else []),
    ]
    foot = ["★ best arm of a client, and of the mean over all clients"]
    if rows < arms:
        best = int(averages.argmax())
        foot.append(f"{arms - rows:,} more arms; the best one overall is arm {instance.arms[best]}")
    return _page(lines, _table(heads, cells, left=1), foot)


def summary_html(
    frame: pl.DataFrame, instances: Mapping[str, Instance] | None = None, title: str = ""
) -> str:
    """A summary, as `fastfed.results.tables.summary_text` has it."""
    if not len(frame):
        return _page([title or "no rows yet"], "")
    shared, columns = summary_cells(frame)
    lines = [
        title,
        *not_ended_text(frame).splitlines(),
        *law_lines(frame, instances),
        f"all rows: {shared}" if shared else "",
    ]
    return _page([line for line in lines if line], _columns(columns))


def bounds_html(bounds: Bounds) -> str:
    """The schemes' bounds for every delta and cost."""
    columns = grid_columns(bounds)
    arms, clients = bounds.instance.shape
    lines = [
        f"Bounds for {bounds.instance.name}: {arms:,} arms, {clients:,} clients; rewards: "
        f"{bounds.instance.rewards!r}; confidence scale sigma {bounds.sigma:g}"
    ]
    return _page(
        lines,
        _columns(columns),
        [
            "upper bounds that hold together with probability 1 − delta, summed over arms "
            "and clients"
        ],
    )


def replay_html(replay: Replay) -> str:
    """The events of a trial, and what they add up to."""
    title, *_, total = str(replay).splitlines()
    rows = [
        [
            f"{event.step:,}",
            event.actor,
            event.event,
            event.arm,
            *(
                "" if value is None else f"{value:.4g}"
                for value in (event.mean, event.leader, event.threshold)
            ),
            f"{event.pulls:,}",
            f"{event.uplinks:,}",
        ]
        for event in replay.events
    ]
    heads = ["step", "who", "event", "arm", "mean", "leader", "2 alpha", "pulls", "uplinks"]
    return _page([title], _table(heads, rows, left=0, texts=(1, 2, 3)), [total])


def check_html(check: Check) -> str:
    """The verdicts: how many of each, then every line, violated ones first."""
    frame = check.frame
    counts = ", ".join(f"{verdict}: {count}" for verdict, count in check.counts().items())
    order = list(check.counts())
    lines = sorted(
        frame.to_dicts(),
        key=lambda row: (row["verdict"] != "violated", order.index(row["verdict"])),
    )
    deltas = parameters(frame["delta"].to_list())
    choices = [name for name in USUAL if frame[name].n_unique() > 1]
    rows = [
        [
            row["instance"],
            *(row[name] for name in choices),
            deltas[row["delta"]],
            f"{row['sigma']:g}",
            row["schedule"],
            row["claim"],
            "" if row["cost"] is None else plain(row["cost"]),
            short(row["mean"]),
            short(row["bound"]),
            _interval(row),
            row["verdict"],
            row["reason"] or "",
        ]
        for row in lines
    ]
    heads = [
        "instance",
        *choices,
        "delta",
        "sigma",
        "schedule",
        "claim",
        "C",
        "mean",
        "bound",
        "95 % interval",
        "verdict",
        "reason",
    ]
    texts = tuple(map(heads.index, ("schedule", "claim", "verdict", "reason")))
    return _page([counts], _table(heads, rows, left=1 + len(choices), texts=texts))


def _interval(row: Mapping[str, Any]) -> str:
    """Of what, and from where to where."""
    if row["low"] is None or row["high"] is None:
        return ""
    of = "share outside" if row["outside"] is not None else "mean"
    return f"{of}: {row['low']:.3g} to {row['high']:.3g}"


def best_html(best: Best, costs: Sequence[float] | None = None) -> str:
    """The envelope of each cell; with ``costs``, the winner at each."""
    if costs is None:
        return _page(
            [],
            "".join(f"<pre>{_escaped(str(one), lines=True)}</pre>" for one in best.envelopes)
            or "no rows yet",
        )
    rows = []
    for row in best.at(costs).to_dicts():
        cell = [
            str(value) if isinstance(value, str) else plain(value)
            for value in (row[name] for name in best.envelopes[0].cell)
        ]
        rows.append(
            [
                *cell,
                plain(row["cost"]),
                row["winner"],
                with_error(row["total_mean"], row["total_sem"]),
                row["runner_up"] or "",
                with_error(row["margin"], row["margin_sem"]),
                ", ".join(row["rivals"]) or "none",
            ]
        )
    heads = [
        *(best.envelopes[0].cell if best.envelopes else ()),
        "C",
        "cheapest",
        "total ± sem",
        "next best",
        "paired margin ± sem",
        "not separable",
    ]
    return _page([], _table(heads, rows, left=1))


def _page(lines: Sequence[str], table: str, foot: Sequence[str] = ()) -> str:
    above = "".join(f"<div>{_escaped(line)}</div>" for line in lines)
    below = "".join(f"<div><small>{_escaped(line)}</small></div>" for line in foot)
    return f"<div class='fastfed'>{above}{table}{below}</div>"


def _columns(columns: Sequence[Column]) -> str:
    rows = [list(cells) for cells in zip(*(column.cells for column in columns), strict=True)]
    texts = tuple(place for place, column in enumerate(columns) if column.left)
    return _table([column.head for column in columns], rows, left=0, texts=texts)


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], left: int, texts: Sequence[int] = ()
) -> str:
    """``left`` columns from the first on, and those in ``texts``, stand to the left."""

    def cell(tag: str, place: int, text: str) -> str:
        side = "left" if place < left or place in texts else "right"
        bold = ";font-weight:bold" if text.endswith(_BEST) else ""
        return f"<{tag} style='text-align:{side}{bold}'>{_escaped(text)}</{tag.split()[0]}>"

    head = "".join(cell("th scope='col'", place, text) for place, text in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(cell("td", place, text) for place, text in enumerate(row)) + "</tr>"
        for row in rows[:_MOST_ROWS]
    )
    more = len(rows) - _MOST_ROWS
    rest = (
        f"<tr><td colspan='{len(heads)}' style='text-align:left'>… {more:,} more rows: the "
        "frame has them all</td></tr>"
        if more > 0
        else ""
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}{rest}</tbody></table>"


def _escaped(text: str, lines: bool = False) -> str:
    """As text; with ``lines``, line breaks stay."""
    parts = text.split("\n") if lines else [text]
    return "\n".join(html.escape(printable(part)) for part in parts)


def _held_html(held: Any) -> str:
    """A result or a sweep: what it is, and its summary."""
    return summary_html(held.summary(), held.instances, title=repr(held))


HTML.update(
    Instance=instance_html,
    Bounds=bounds_html,
    Replay=replay_html,
    Check=check_html,
    Best=best_html,
    Result=_held_html,
    Sweep=_held_html,
)
TEXT.update(
    Bounds=lambda one: (
        bounds_text([one])
        if isinstance(one.delta, float) and isinstance(one.cost, float)
        else grid_text(one)
    ),
    Check=check_text,
)
