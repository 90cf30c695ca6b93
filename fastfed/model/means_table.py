"""A table of means, as a CSV file holds one: rows are arms and columns are clients."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any

from fastfed.errors import InputError

NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)


def means_table(path: Path, rows: list[list[str]]) -> dict[str, Any]:
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
    if not body:
        raise InputError(f"{path}: a header and no means")
    named = corner or any(row[0].strip() and not is_number(row[0]) for row in body)
    weighs = [named and row[0].strip().lower() == "weights" for row in body]
    cells = [row[1:] if named else row for row in body]
    for place, (row, weight) in enumerate(zip(cells, weighs, strict=True), 2 if header else 1):
        for cell in row:
            if not is_number(cell) and (weight or cell.strip()):
                raise InputError(
                    f"{path}: row {place}: {cell!r} is not a number; leave a cell empty if the "
                    "client does not have the arm"
                )
    clients = [cell.strip() for cell in (rows[0][1:] if named else rows[0])] if header else None
    values = [[float(cell) if cell.strip() else math.nan for cell in row] for row in cells]
    pays = [not weight for weight in weighs]
    if not any(pays):
        raise InputError(f"{path}: weights and no means; write one row of means per arm")
    return {
        "means": list(compress(values, pays)),
        "clients": clients,
        "arms": [row[0].strip() for row in compress(body, pays)] if named else None,
        **({"weights": list(compress(values, weighs))} if any(weighs) else {}),
    }
