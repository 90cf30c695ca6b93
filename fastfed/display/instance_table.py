"""The table of an instance: its means, with the best arms marked, and the weights of clients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fastfed.display.table import BEST, Column, Table
from fastfed.display.wording import told_apart
from fastfed.text import printable

if TYPE_CHECKING:
    from fastfed.model.instance import Instance

MOST_ARMS = 20
MOST_CLIENTS = 8
_CLIENT_WIDTH = 10  # characters of a client's name above its column


def instance_table(instance: Instance) -> Table:
    """Make a row for each arm, at most `MOST_ARMS`, and a column for each client and question."""
    arms, clients = instance.shape
    questions, averages = instance.questions, instance.values
    here, overall = instance.local_ties, instance.server_ties
    rows, weights = range(min(arms, MOST_ARMS)), [] if questions.plain else questions.rows.tolist()
    asked = range(min(len(questions), MOST_CLIENTS))
    heads = (
        [f"question {q}" for q in asked]
        if len(questions) > 1
        else ["mean over clients" if questions.plain else "weighted mean"]
    )
    marks = ["weight"] if len(questions) == 1 else [f"weight in question {q}" for q in asked]
    names = [printable(instance.arms[k]) for k in rows]
    short = told_apart(instance.clients[:MOST_CLIENTS], _CLIENT_WIDTH)
    columns = [Column("arm", [*names, *marks[: len(weights)]], left=True, name=True)]
    for m in range(min(clients, MOST_CLIENTS)):
        best = here[:, m].max()
        cells = [
            _mean(instance.means[k, m], bool(questions.local and here[k, m] == best)) for k in rows
        ]
        cells += [f"{row[m]:.4g}" for row in weights[: len(asked)]]
        columns.append(Column(_client(short[instance.clients[m]]), cells))
    for q, head in zip(asked, heads, strict=True):
        cells = [_mean(averages[q, k], bool(overall[q, k] == overall[q].max())) for k in rows]
        columns.append(Column(head, [*cells, *[""] * len(weights[: len(asked)])]))
    above = [
        f"{instance.name}: {arms:,} arms, {clients:,} clients; rewards: {instance.rewards_text}",
        *([instance.description] if instance.description else []),
    ]
    at_client = "of a client, and " if questions.local else ""
    at_server = "the mean over all clients" if questions.plain else "the server"
    below = [f"★ best arm {at_client}of {at_server}"]
    hidden = {
        "questions": len(questions) - len(asked),
        "clients": clients - min(clients, MOST_CLIENTS),
        "arms": arms - len(rows),
    }
    below += [f"{count:,} more {what}" for what, count in hidden.items() if count]
    if hidden["arms"]:
        below[-1] += (
            f"; the best one overall is arm {instance.arms[int(np.nanargmax(averages[0]))]}"
        )
    return Table(columns, above, below)


def _client(name: str) -> str:
    """Head the column of a client; a number alone would not say what it is."""
    return f"client {name}" if name.isdecimal() else name


def _mean(value: float, best: bool) -> str:
    """Show a mean; nothing for an arm that a client does not have."""
    return "" if math.isnan(value) else f"{value:.4g}{BEST if best else ''}"
