"""The grid of a sweep: its settings, laid out from a spec, and the share that a shard runs."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastfed.errors import InputError
from fastfed.model.schedules import Schedule
from fastfed.model.setting import Cell, Setting
from fastfed.model.spec import Spec, as_list, loaded


@dataclass(frozen=True)
class Grid:
    """A spec with its settings and schedules as objects."""

    spec: Spec
    settings: list[Setting]
    schedules: list[Schedule]

    @staticmethod
    def of(options: Mapping[str, Any]) -> Grid:
        """Make a grid from the keys of a spec file or the options of a sweep.

        Settings that cannot be run are refused before anything runs. Instances that are given as
        objects are used as they are.
        """
        given = options.get("instance")
        instances = as_list("synthetic" if given is None else given)
        spec = Spec.of({**options, "instance": instances})
        settings = spec.settings(map(loaded, instances))
        return Grid(spec, settings, Schedule.parse_all(spec.schedule))


@dataclass(frozen=True)
class Shard:
    """The index-th of count equal shares of every cell: a sweep split without a scheduler."""

    index: int  # from 1
    count: int

    @staticmethod
    def parse(text: str) -> Shard:
        """Read a shard from its text, as in "3/16" for the third of sixteen."""
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
        """Return the trials [first, end) of a cell that belong to this shard.

        The shares of all shards are disjoint and cover the cell. The shard that gets the first
        trials differs between cells, so that few trials are spread fairly.
        """
        turn = (self.index + zlib.crc32(cell.id.encode())) % self.count
        return trials * turn // self.count, trials * (turn + 1) // self.count
