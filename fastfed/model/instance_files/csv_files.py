"""CSV files of instances: means, or observed rewards.

A table of means has a row for each arm and a column for each client, with an optional header of
client names and an optional first column of arm names. Rows named "weights" hold the weights of
clients. An empty cell is an arm that the client does not have.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from fastfed.errors import InputError
from fastfed.files import read_text
from fastfed.model.instance import Instance
from fastfed.model.instance_files.observed_files import ROLES, from_rewards, roles_of
from fastfed.model.instance_files.reading import Reading, named
from fastfed.model.rewards import Gaussian

NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)


def read_csv(path: Path, reading: Reading) -> dict[str, Any]:
    """Read the arguments of `Instance` from a file."""
    with io.StringIO(read_text(path), newline="") as file:
        try:
            rows = [row for row in csv.reader(file, strict=True) if any(map(str.strip, row))]
        except csv.Error as error:
            raise InputError(f"{path}: not valid CSV: {error}") from None
    if not rows:
        raise InputError(f"{path}: empty; write one row of means per arm")
    width = len(rows[0])
    for place, row in enumerate(rows, 1):
        if len(row) != width:
            raise InputError(
                f"{path}: row {place} has {len(row)} cells, row 1 has {width}; "
                "separate cells by commas"
            )

    heads = roles_of([cell.strip() for cell in rows[0]], reading)
    needed = set(ROLES[:3])
    exact = needed <= set(heads) <= set(ROLES) and len(set(heads)) == width
    if not exact and not (reading.columns and needed <= set(heads)):
        return _means_table(path, rows)

    import polars as pl

    columns = {
        head: [row[place].strip() or None for row in rows[1:]]
        for place, head in enumerate(heads)
        if head in ROLES
    }
    table = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    with named(path):
        return from_rewards(table, reading.empty, reading.drop_missing)


def _means_table(path: Path, rows: list[list[str]]) -> dict[str, Any]:
    """Return the arguments of `Instance` for a table of means, with or without names.

    An empty cell is an arm that the client does not have.
    """

    def is_number(cell: str) -> bool:
        return NUMBER.fullmatch(cell) is not None

    def names(cells: Sequence[str]) -> bool:
        return any(cell.strip() and not is_number(cell) for cell in cells)

    corner = rows[0][0].strip().lower() in ("", "arm", "arms")
    if not rows[0][0].strip() and any(is_number(one) and not one.isdecimal() for one in rows[0]):
        raise InputError(
            f"{path}: the first cell is empty: a missing mean, or the corner of a header? Write a "
            "first line with the names of clients, beginning with arm"
        )
    width = len(rows[0])
    header = corner or names(rows[0][1:]) or (width == 1 and names(rows[0]))
    body = rows[1:] if header else rows
    rewards = ""
    if header and width > 2:
        rewards = (
            f"; or if each row is a reward, say which of {', '.join(map(str.strip, rows[0]))} is "
            "what, as in fastfed instance FILE --columns arm=...,client=...,reward=... --out "
            "inst.toml"
        )
    if not body:
        raise InputError(f"{path}: a header and no means")
    named = corner or names([row[0] for row in body])
    weighs = [named and row[0].strip().lower() == "weights" for row in body]
    cells = [row[1:] if named else row for row in body]
    for place, (row, weight) in enumerate(zip(cells, weighs, strict=True), 2 if header else 1):
        odd = [cell for cell in row if not is_number(cell) and (weight or cell.strip())]
        if odd:
            rule = "leave a cell empty if the client does not have the arm"
            raise InputError(f"{path}: row {place}: {odd[0]!r} is not a number; {rule}{rewards}")
    clients = [cell.strip() for cell in (rows[0][1:] if named else rows[0])] if header else None
    values = [[float(cell) if cell.strip() else math.nan for cell in row] for row in cells]
    pays = [not weight for weight in weighs]
    if not any(pays):
        raise InputError(f"{path}: weights and no means; write one row of means per arm")
    arms = [row[0].strip() for row in compress(body, pays)] if named else []
    if len(set(arms)) < len(arms) and rewards:
        raise InputError(
            f"{path}: means have one row for each arm, with a name of its own{rewards}"
        )
    return {
        "means": list(compress(values, pays)),
        "clients": clients,
        "arms": arms or None,
        **({"weights": list(compress(values, weighs))} if any(weighs) else {}),
    }


def to_csv(instance: Instance) -> str:
    """Write the means of an instance; refuse one that has more to say."""
    if instance.rewards != Gaussian():
        raise InputError(f"a .csv holds means only: save {instance.rewards!r} as .toml")
    if not instance.questions.local:
        raise InputError(f"a .csv holds no option: save {instance.questions.summary} as .toml")
    if "weights" in map(str.lower, instance.arms):
        raise InputError(
            "an arm is named 'weights', which in a .csv names the weights of clients; save the "
            "instance as .toml"
        )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["arm", *instance.clients])
    for name, row in zip(instance.arms, instance.means, strict=True):
        writer.writerow([name, *("" if np.isnan(x) else repr(float(x)) for x in row)])
    for weights in [] if instance.questions.plain else instance.questions.given.tolist():
        writer.writerow(["weights", *map(repr, weights)])
    return text.getvalue()
