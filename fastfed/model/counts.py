"""Counted columns: what a trial counts, and what may have a price.

An entry of `COUNTS` is a column of rows (`fastfed.simulation.rows`) and of summaries, and a name
that prices take. The kernel that counts it has a column in the same place (`kernels.trials`).
"""

from __future__ import annotations

from collections.abc import Mapping

from fastfed.errors import InputError, nearest
from fastfed.validation import MOST_COST, number, shown

COUNTS = {
    "pulls": "pulls of all clients",
    "uplinks": "numbers that clients send",
    "bits": "bits of these numbers",
    "rounds": "communication rounds",
    "steps": "steps until the last pull",
    "busiest": "pulls of the busiest client",
    "downlinks": "messages of the server",
}
ADDED = ("busiest", "downlinks")
"""Columns that older folders lack."""


def checked_prices(prices: object) -> dict[str, float]:
    """Check prices by the names of counted columns; None: no prices."""
    if prices is None:
        return {}
    if not isinstance(prices, Mapping):
        raise InputError(
            f"prices {shown(prices)}: must map columns to numbers, as in {{'rounds': 50}}"
        )
    found = {}
    for name, price in prices.items():
        if name not in COUNTS:
            raise InputError(
                f"price of {shown(name)}{nearest(str(name), COUNTS)}: must be a counted column, "
                f"one of {', '.join(COUNTS)}"
            )
        value = number(f"price of {name}", price, "must be a number, as in 50")
        if not 0 <= value <= MOST_COST:
            raise InputError(f"price of {name} = {shown(price)}: must lie from 0 to {MOST_COST:g}")
        found[str(name)] = value
    return found
