"""Prices: what a trial costs, as a sum over its counted columns.

The total cost of a trial is the sum of price times count over the columns `COUNTS` of its row. A
pull has the price 1 unless another is given. One price stays free, and summaries take several
values of it: that of an uplink, C, or that of a bit, c.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.model.counts import COUNTS

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Prices:
    """Prices by the names of columns, in the order of `COUNTS`; all others are 0."""

    items: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, prices: Mapping[str, float]) -> Prices:
        """Make prices from a mapping; a price of 0 is left out."""
        return cls(tuple((name, float(prices[name])) for name in COUNTS if prices.get(name)))

    @classmethod
    def total(cls, cost: float) -> Prices:
        """Return the prices of pulls + C x uplinks."""
        return UPLINK.total(cost)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that have a price."""
        return tuple(name for name, _ in self.items)

    def along(self, columns: Iterable[str]) -> _Floats:
        """Return the price of each of some columns."""
        prices = dict(self.items)
        return np.array([prices.get(name, 0.0) for name in columns])

    def spent(self, counts: Mapping[str, npt.NDArray[Any]]) -> _Floats:
        """Return the cost of each trial from its counts, rounded to doubles."""
        total = np.zeros(next(iter(counts.values())).shape)
        for name, price in self.items:
            total += price * counts[name]
        return total

    def __str__(self) -> str:
        return ",".join(f"{name}={price:g}" for name, price in self.items)


PULLS, UPLINKS, BITS = (Prices.of({name: 1.0}) for name in ("pulls", "uplinks", "bits"))


@dataclass(frozen=True)
class Unit:
    """Unit of communication whose price is free, an uplink or a bit, beside fixed prices."""

    sent: str
    """Its column in rows."""
    column: str
    """Of its price in frames."""
    base: Prices = PULLS
    """The fixed prices of all other columns."""

    @property
    def alone(self) -> Prices:
        """The price 1 of the unit, and no other."""
        return Prices.of({self.sent: 1.0})

    def communication(self, cost: float) -> Prices:
        """Return the prices of communication alone: ``cost`` for each unit."""
        return Prices.of({self.sent: cost})

    def total(self, cost: float) -> Prices:
        """Return the prices of a total: the fixed ones, and ``cost`` for the unit."""
        return Prices.of({**dict(self.base.items), self.sent: cost})


UPLINK, BIT = Unit("uplinks", "cost"), Unit("bits", "bit_cost")

Cost = tuple[float, Unit]
"""A cost of an uplink or of a bit."""

Given = Mapping[str, float] | None
"""Prices as users give them; None: the default ones."""


def units(prices: Given = None) -> tuple[Unit, Unit]:
    """Return the units beside given prices: an uplink, and a bit."""
    base = Prices.of({"pulls": 1.0, **(prices or {})})
    return Unit(UPLINK.sent, UPLINK.column, base), Unit(BIT.sent, BIT.column, base)


def costs_of(uplinks: Iterable[float], bits: Iterable[float], prices: Given = None) -> list[Cost]:
    """List the costs of an uplink and of a bit, each with its unit; refuse a price given twice."""
    of_uplink, of_bit = units(prices)
    found = [*((float(one), of_uplink) for one in uplinks), *((float(one), of_bit) for one in bits)]
    for unit in dict.fromkeys(unit for _, unit in found):
        if unit.sent in unit.base.names:
            option = {"uplinks": "costs (--cost)", "bits": "bit_costs (--bit-cost)"}[unit.sent]
            raise InputError(
                f"price of {unit.sent} {dict(unit.base.items)[unit.sent]:g}: the cost is the "
                f"price of {unit.sent} already; give it once, as {option} or as a price"
            )
    return found


def columns_of(costs: Iterable[Cost]) -> tuple[str, ...]:
    """List the columns that have a price at any of the costs, those of the units with them."""
    wanted = {name for _, unit in costs for name in (*unit.base.names, unit.sent)}
    return tuple(name for name in COUNTS if name in wanted)
