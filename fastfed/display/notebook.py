"""HTML for notebooks: tables, instances, bounds and replays.

Every name is escaped, so that markup in it is shown, not obeyed. Tables take their colours from
the page around them, light or dark, and say in text what they say in bold.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fastfed.display.instance_table import BEST, MOST_ARMS, MOST_CLIENTS, instance_table
from fastfed.display.legends import REPLAY, REPLAY_HEADS
from fastfed.display.table import Column
from fastfed.display.tables import grid_columns
from fastfed.text import printable, short

if TYPE_CHECKING:
    from fastfed.model.instance import Instance
    from fastfed.simulation.replay import Replay
    from fastfed.theory.bounds import Bounds


def instance_html(instance: Instance) -> str:
    """Show the means, with the best arms marked, and the weights of clients in each question."""
    return instance_table(instance).html()


def columns_html(lines: Sequence[str], columns: Sequence[Column], foot: Sequence[str] = ()) -> str:
    """Show columns between lines of text."""
    if not columns:
        return _page(lines, "", foot)
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
        min(*pair) for pair in zip(instance.shape, (MOST_ARMS, MOST_CLIENTS), strict=True)
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
        bold = ";font-weight:bold" if text.endswith(BEST) else ""
        if row is not None and shades and (row, place) in shades:
            bold += f";background:rgba(76,120,168,{0.8 * shades[row, place]:.2f})"
        return f"<{tag} style='text-align:{side}{bold}'>{_escaped(text)}</{tag.split()[0]}>"

    head = "".join(cell("th scope='col'", place, text) for place, text in enumerate(heads))
    body = "".join(
        "<tr>"
        + "".join(cell("td", place, text, number) for place, text in enumerate(row))
        + "</tr>"
        for number, row in enumerate(rows)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _escaped(text: str) -> str:
    """Escape text for HTML."""
    return html.escape(printable(text))
