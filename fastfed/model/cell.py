"""Cells: settings by names, as rows and files identify them, and their ids."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from typing import Annotated, Any, Literal

from msgspec import Meta

from fastfed.model.choices import DEFAULTS, ChosenNames, choices_text
from fastfed.text import printable

CELL = ("instance", "delta", "sigma", *DEFAULTS)
"""The columns that tell the cells of a sweep apart, in rows as in summaries."""


@dataclass(frozen=True, slots=True)
class Cell(ChosenNames):
    """A setting by names: one point of a grid, as rows and files identify it."""

    instance: str
    digest: str
    delta: Annotated[float, Meta(gt=0, lt=1)]
    sigma: Annotated[float, Meta(gt=0)]
    seed: Annotated[int, Meta(ge=0)]
    engine: Literal["auto", "skip", "dense", "python"]
    max_steps: Annotated[int, Meta(ge=1)] | None = None

    @property
    def id(self) -> str:
        """A readable name that no other cell shares."""
        return _id(self)

    def __str__(self) -> str:
        return (
            f"{printable(self.instance)}, delta {self.delta:g}, sigma {self.sigma:g}"
            f"{choices_text(self.choices)}"
        )

    @property
    def choices(self) -> dict[str, str]:
        """Names of the choices."""
        return {name: getattr(self, name) for name in DEFAULTS}

    @property
    def names(self) -> dict[str, Any]:
        """Values of the columns `CELL`."""
        return {name: getattr(self, name) for name in CELL}


@lru_cache(maxsize=4096)
def _id(cell: Cell) -> str:
    """Make the id of a cell.

    Fields that have their default are left out of the hash, so that a field which is added later
    does not change the ids of older cells.
    """
    named = {
        one.name: getattr(cell, one.name)
        for one in fields(cell)
        if one.default is MISSING or getattr(cell, one.name) != one.default
    }
    text = json.dumps({"rows": 4, **named}, sort_keys=True)  # as in folders that exist
    slug = re.sub(r"[^A-Za-z0-9.]+", "_", cell.instance)[:40].strip("_")
    strong = hashlib.sha256(text.encode()).hexdigest()
    return f"{slug}-d{cell.delta:g}-s{cell.sigma:g}-{strong[:10]}"
