"""HTML for notebooks: instances, summaries, bounds, replays, checks and envelopes.

Every name is escaped, so that markup in it is shown, not obeyed. Tables take their colours from
the page around them, light or dark, and say in text what they say in bold.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastfed.analysis.summary import not_ended_text
from fastfed.display.legends import REPLAY, REPLAY_HEADS, summary_legend
from fastfed.display.tables import Column, grid_columns, law_lines, summary_cells
from fastfed.display.wording import parameters, plain
from fastfed.model.choices import DEFAULTS
from fastfed.text import printable, short

if TYPE_CHECKING:
    import polars as pl

    from fastfed.analysis.cheapest import Cheapest
    from fastfed.analysis.check import Check
    from fastfed.model.instance import Instance
    from fastfed.simulation.replay import Replay
    from fastfed.theory.bounds import Bounds

_MOST_ROWS = 100
_MOST_ARMS = 30
_MOST_CLIENTS = 12
_BEST = " ★"


def instance_html(instance: Instance) -> str:
    """Show the means, with the best arms marked, and the weights of clients in each question."""
    arms, clients = instance.shape
    questions = instance.questions
    rows, columns = min(arms, _MOST_ARMS), min(clients, _MOST_CLIENTS)
    shown = range(min(len(questions), _MOST_CLIENTS))
    heads = ["arm", *(f"client {instance.clients[m]}" for m in range(columns))]
    if columns < clients:
        heads.append(f"… {clients - columns:,} more")
    if len(questions) > 1:
        heads += [f"question {q}" for q in shown]
    else:
        heads.append("mean over clients" if questions.plain else "weighted mean")
    averages, here = instance.values, instance.local_ties
    overall = instance.server_ties
    cells: list[list[str]] = []
    for k in range(rows):
        row = [instance.arms[k]]
        row += [
            f"{instance.means[k, m]:.4g}"
            + _BEST * int(questions.local and here[k, m] == here[:, m].max())
            for m in range(columns)
        ]
        if columns < clients:
            row.append("")
        row += [
            f"{averages[q, k]:.4g}" + _BEST * int(overall[q, k] == overall[q].max()) for q in shown
        ]
        cells.append(row)
    for q in () if questions.plain else shown:
        name = "weight" if len(questions) == 1 else f"weight in question {q}"
        weights = [f"{weight:.4g}" for weight in questions.rows[q, :columns]]
        cells.append([name, *weights, *[""] * (len(heads) - 1 - columns)])
    lines = [
        f"{instance.name}: {arms:,} arms, {clients:,} clients; rewards: {instance.rewards_text}",
        *([instance.description] if instance.description else []),
    ]
    at_client = "of a client, and " if questions.local else ""
    at_server = "the mean over all clients" if questions.plain else "the server"
    foot = [f"★ best arm {at_client}of {at_server}"]
    if len(shown) < len(questions):
        foot.append(f"{len(questions) - len(shown):,} more questions")
    if rows < arms:
        best = int(averages[0].argmax())
        foot.append(f"{arms - rows:,} more arms; the best one overall is arm {instance.arms[best]}")
    return _page(lines, _table(heads, cells), foot)


def summary_html(
    frame: pl.DataFrame, instances: Mapping[str, Instance] | None = None, title: str = ""
) -> str:
    """Show a summary, as `fastfed.display.tables.summary_text` does."""
    if not len(frame):
        return _page([title or "no rows yet"], "")
    shared, columns = summary_cells(frame, instances)
    lines = [
        title,
        *not_ended_text(frame).splitlines(),
        *law_lines(frame, instances),
        f"all rows: {shared}" if shared else "",
    ]
    legend = summary_legend([column.head for column in columns if any(column.cells)])
    return columns_html(lines, columns, legend)


def columns_html(lines: Sequence[str], columns: Sequence[Column], foot: Sequence[str] = ()) -> str:
    """Show columns between lines of text."""
    rows = list(zip(*(column.cells for column in columns), strict=True))
    texts = [place for place, column in enumerate(columns) if column.left]
    table = _table([column.head for column in columns], rows, texts)
    return _page([line for line in lines if line], table, foot)


def bounds_html(bounds: Bounds) -> str:
    """Show the schemes' bounds for every delta and cost, and the optimal allocation."""
    arms, clients = bounds.instance.shape
    head = (
        f"Bounds for {bounds.instance.name}: {arms:,} arms, {clients:,} clients; rewards: "
        f"{bounds.instance.rewards_text}; confidence scale sigma {bounds.sigma:g}"
    )
    foot = (
        "upper bounds that hold together with probability 1 − delta, summed over arms and clients"
    )
    upper = columns_html([head], grid_columns(bounds), [foot])
    return f"<div>{upper}{_allocation_html(bounds)}</div>"


def _allocation_html(bounds: Bounds) -> str:
    """Show T* as a heat map of its allocation, or the reasons why there is none."""
    instance, allocation = bounds.instance, bounds.allocation
    if allocation is None or not bounds.T_star:
        return _page(bounds.notes, "")
    arms, clients = (
        min(*pair) for pair in zip(instance.shape, (_MOST_ARMS, _MOST_CLIENTS), strict=True)
    )
    heads = ["arm", *(f"client {instance.clients[m]}" for m in range(clients)), "all clients"]
    rows = [
        [instance.arms[k], *(short(x) for x in allocation[k, :clients]), short(allocation[k].sum())]
        for k in range(arms)
    ]
    shades = {
        (k, m + 1): float(allocation[k, m] / allocation.max())
        for k in range(arms)
        for m in range(clients)
    }
    left_out = instance.shape[0] - arms, instance.shape[1] - clients
    more = f"{left_out[0]:,} more arms, {left_out[1]:,} more clients: allocation has all"
    return _page(
        [
            "Every delta-correct algorithm needs at least T* kl(delta, 1 − delta) pulls on "
            f"average, with T* = {short(bounds.T_star)}. The optimal allocation of T*:"
        ],
        _table(heads, rows, shades=shades),
        [more, *bounds.notes] if any(left_out) else bounds.notes,
    )


def replay_html(replay: Replay) -> str:
    """Show the events of a trial, and their totals."""
    title, *_, legend, total = str(replay).splitlines()
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
    table = _table(REPLAY_HEADS, rows, (1, 2, 3))
    return _page([title], table, [*(REPLAY if legend in REPLAY else ()), total])


def check_html(check: Check) -> str:
    """Show the verdicts: their counts, then every line, violated ones first."""
    frame = check.frame
    counts = ", ".join(f"{verdict}: {count}" for verdict, count in check.counts().items())
    order = list(check.counts())
    lines = sorted(
        frame.to_dicts(),
        key=lambda row: (row["verdict"] != "violated", order.index(row["verdict"])),
    )
    deltas = parameters(frame["delta"].to_list())
    choices = [name for name in DEFAULTS if frame[name].n_unique() > 1]

    def texts(*names: str) -> list[Column]:
        return [Column(name, [row[name] or "" for row in lines], left=True) for name in names]

    columns = [
        *texts("instance", *choices),
        Column("delta", [deltas[row["delta"]] for row in lines]),
        Column("sigma", [f"{row['sigma']:g}" for row in lines]),
        *texts("schedule", "claim"),
        Column("C", ["" if row["cost"] is None else plain(row["cost"]) for row in lines]),
        *(Column(name, [short(row[name]) for row in lines]) for name in ("mean", "bound")),
        Column("95 % interval", [_interval(row) for row in lines]),
        *texts("verdict", "reason"),
    ]
    return columns_html([counts], columns)


def _interval(row: Mapping[str, Any]) -> str:
    """Write an interval and the quantity that it belongs to."""
    if row["low"] is None or row["high"] is None:
        return ""
    of = "share outside" if row["outside"] is not None else "mean"
    return f"{of}: {row['low']:.3g} to {row['high']:.3g}"


def best_html(best: Cheapest) -> str:
    """Show the envelope of each cell."""
    cells = [f"<pre>{_escaped(str(one), lines=True)}</pre>" for one in best.envelopes]
    return _page([], "".join(cells) or "no rows yet")


def _page(lines: Sequence[str], table: str, foot: Sequence[str] = ()) -> str:
    above = "".join(f"<div>{_escaped(line)}</div>" for line in lines)
    below = "".join(f"<div><small>{_escaped(line)}</small></div>" for line in foot)
    return f"<div class='fastfed'>{above}{table}{below}</div>"


def _table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    texts: Sequence[int] = (0,),
    shades: Mapping[tuple[int, int], float] | None = None,
) -> str:
    """Make a table; the columns in ``texts`` stand to the left.

    ``shades`` has values from 0 to 1 by row and column: the larger, the darker the cell.
    """

    def cell(tag: str, place: int, text: str, row: int | None = None) -> str:
        side = "left" if place in texts else "right"
        bold = ";font-weight:bold" if text.endswith(_BEST) else ""
        if row is not None and shades and (row, place) in shades:
            bold += f";background:rgba(76,120,168,{0.8 * shades[row, place]:.2f})"
        return f"<{tag} style='text-align:{side}{bold}'>{_escaped(text)}</{tag.split()[0]}>"

    head = "".join(cell("th scope='col'", place, text) for place, text in enumerate(heads))
    body = "".join(
        "<tr>"
        + "".join(cell("td", place, text, number) for place, text in enumerate(row))
        + "</tr>"
        for number, row in enumerate(rows[:_MOST_ROWS])
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
    """Escape text for HTML; with ``lines``, line breaks stay."""
    parts = text.split("\n") if lines else [text]
    return "\n".join(html.escape(printable(part)) for part in parts)
