"""The grid of a sweep: its cells, laid out from a spec, and the share of them that a shard runs."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache
from itertools import product
from typing import Annotated, Any, Literal

from msgspec import Meta

from fastfed.choices import USUAL, unusual_text
from fastfed.engine import rows
from fastfed.errors import InputError
from fastfed.files import valid_unicode
from fastfed.goals import parse as parse_goal
from fastfed.problem.instance import Instance
from fastfed.problem.limits import Rules, most_steps, refuse_endless, refuse_unfit, resolve_sigma
from fastfed.radius import parse
from fastfed.sweeps.spec import Spec
from fastfed.uplinks import parse as parse_uplink
from fastfed.validation import checked_max_steps

ROWS = rows.VERSION
"""The version of the rows: see `fastfed.engine.rows`."""


@dataclass(frozen=True)
class Cell:
    """One point of the grid: all that the rows of its trials depend on."""

    instance: str
    digest: str
    delta: Annotated[float, Meta(gt=0, lt=1)]
    sigma: Annotated[float, Meta(gt=0)]
    seed: Annotated[int, Meta(ge=0)]
    engine: Literal["auto", "skip", "dense"]
    max_steps: Annotated[int, Meta(ge=1)] | None = None
    radius: str = "paper"
    goal: str = "best"
    uplink: str = "exact"

    @property
    def id(self) -> str:
        """A readable name that no other cell shares."""
        return _id(self)

    def __str__(self) -> str:
        return (
            f"{self.instance}, delta {self.delta:g}, sigma {self.sigma:g}"
            f"{unusual_text(self.choices)}"
        )

    @property
    def choices(self) -> dict[str, str]:
        """The names of radius, goal and uplink."""
        return {name: getattr(self, name) for name in USUAL}

    @property
    def names(self) -> dict[str, Any]:
        """What tells the cells of a folder apart: columns of its rows and of its summary."""
        return {name: getattr(self, name) for name in rows.CELL}


@lru_cache(maxsize=4096)
def _id(cell: Cell) -> str:
    """Fields that have their default are left out of the hash, so that a field which is added
    later does not change the ids of older cells."""
    named = {
        one.name: getattr(cell, one.name)
        for one in fields(cell)
        if one.default is MISSING or getattr(cell, one.name) != one.default
    }
    text = json.dumps({"rows": ROWS, **named}, sort_keys=True)
    slug = re.sub(r"[^A-Za-z0-9.]+", "_", cell.instance)[:40].strip("_")
    strong = hashlib.sha256(text.encode()).hexdigest()
    return f"{slug}-d{cell.delta:g}-s{cell.sigma:g}-{strong[:10]}"


@dataclass
class Grid:
    """The spec with its instances loaded and its cells laid out."""

    spec: Spec
    cells: list[tuple[Cell, Instance]] = field(default_factory=list)

    @staticmethod
    def lay_out(spec: Spec) -> Grid:
        """Load the instances of a spec, and refuse what cannot be run before anything is."""
        grid = Grid(spec)
        names: dict[str, str] = {}
        seen: set[Cell] = set()
        for source in spec.instances:
            instance = source if isinstance(source, Instance) else Instance.load(source)
            digest = instance.digest
            if valid_unicode(instance.name) != instance.name:
                raise InputError(
                    f"instance name {instance.name!r}: not valid Unicode; give it another name"
                )
            if names.setdefault(instance.name, digest) != digest:
                raise InputError(f"two instances are called {instance.name!r}: names must differ")
            for delta, sigma, *choices in product(
                spec.deltas, spec.sigmas, spec.radii, spec.goals, spec.uplinks
            ):
                cell = Cell(
                    instance.name,
                    digest,
                    delta,
                    resolve_sigma(instance, sigma),
                    spec.seed,
                    spec.engine,
                    spec.max_steps,
                    *choices,
                )  # type: ignore[arg-type]
                _reject_unfit(instance, cell)
                if cell not in seen:
                    seen.add(cell)
                    grid.cells.append((cell, instance))
        return grid


def _reject_unfit(instance: Instance, cell: Cell) -> None:
    rules = Rules(parse(cell.radius), parse_goal(cell.goal), parse_uplink(cell.uplink))
    refuse_unfit(instance, rules)
    if cell.max_steps is None:
        refuse_endless(instance, cell.delta, cell.sigma, rules)
    else:
        checked_max_steps(cell.max_steps, most_steps(instance))


@dataclass(frozen=True)
class Shard:
    """The index-th of count equal shares of every cell: a sweep split without a scheduler."""

    index: int  # from 1
    count: int

    @staticmethod
    def parse(text: str) -> Shard:
        """A shard from its text, as in "3/16" for the third of sixteen."""
        match = re.fullmatch(r"\s*([0-9]{1,9})\s*/\s*([0-9]{1,9})\s*", str(text))
        if match is None:
            raise InputError(f"shard {text!r}: must be I/N, as in 3/16 for the third of sixteen")
        shard = Shard(int(match[1]), int(match[2]))
        if not 1 <= shard.index <= shard.count:
            raise InputError(
                f"shard {text!r}: shards of {shard.count} count from 1 to {shard.count}"
                if shard.count
                else f"shard {text!r}: there must be at least one shard, as in 1/1"
            )
        return shard

    def share(self, cell: Cell, trials: int) -> tuple[int, int]:
        """This shard's trials [first, end) of a cell; the shares of all shards are disjoint and
        cover it. Who gets the first differs between cells, to be fair if trials are few."""
        turn = (self.index + zlib.crc32(cell.id.encode())) % self.count
        return trials * turn // self.count, trials * (turn + 1) // self.count
