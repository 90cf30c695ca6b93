"""The rows of trials: what columns there are, said once, and how a kernel's arrays become them.

Whoever reads or writes rows (sweeps, summaries, checks) takes names and types from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastfed.choices import USUAL

if TYPE_CHECKING:
    import polars as pl

VERSION = 3
"""Changes when the same job and seed would give other rows than before."""

# What is the same in all rows of a job, what names a row within it, what the kernel counts (in the
# order of its columns: `kernels.trials`), and the rest.
OF_JOB = {"instance": "String", "delta": "Float64", "seed": "UInt64", "sigma": "Float64",
          **dict.fromkeys(USUAL, "String")}
COUNTED = {
    "pulls": "Int64", "uplinks": "Int64", "rounds": "Int64", "steps": "Int64",
    "local_steps": "Int64", "global_steps": "Int64", "global_arm": "Int32",
    "local_errors": "Int32", "correct": "Boolean", "truncated": "Boolean",
}
COLUMNS: dict[str, str] = {
    "instance": OF_JOB["instance"], "schedule": "String", "delta": OF_JOB["delta"],
    "seed": OF_JOB["seed"], "trial": "Int64", **COUNTED, "skip_error": "Float64",
    "sigma": OF_JOB["sigma"], **{name: OF_JOB[name] for name in USUAL},
}
"""Every column with the name of its Polars type, in the order of the files."""


def schema() -> dict[str, Any]:
    """`COLUMNS` as Polars wants it."""
    import polars as pl

    return {name: getattr(pl, kind) for name, kind in COLUMNS.items()}


@dataclass(frozen=True)
class Departures:
    """When arms left, trial by trial; NEVER (of `kernels.memory`) where one did not."""

    local_out: npt.NDArray[np.int64]  # (trials, K, M) at each client
    local_arms: npt.NDArray[np.int64]  # (trials, M) what the clients declared; -1: nothing
    global_out: npt.NDArray[np.int64]  # (trials, S, K) at the server
    local_gave_up: npt.NDArray[np.int64]  # (trials, M) when a client gave up; 0: it did not
    global_gave_up: npt.NDArray[np.int64]  # (trials, S) when the server did


@dataclass(frozen=True)
class Block:
    """The rows of consecutive trials ``first, first + 1, ...`` as arrays, schedule by schedule."""

    first: int
    ints: npt.NDArray[np.int64]  # (S, trials, columns): see COUNTED
    skip_error: npt.NDArray[np.float64]  # (S, trials)
    pulls: npt.NDArray[np.int64]  # (S, trials, K, M), or (0, 0, 0, 0)
    work: npt.NDArray[np.int64]  # (trials, 2): intervals looked at, variates drawn
    departures: Departures | None = None

    @property
    def trials(self) -> int:
        return int(self.ints.shape[1])

    def column(self, name: str) -> npt.NDArray[np.int64]:
        """(S, trials): one of COUNTED."""
        return self.ints[:, :, list(COUNTED).index(name)]

    @staticmethod
    def join(blocks: Sequence[Block]) -> Block:
        """Blocks of consecutive trials as one; departures are not kept."""
        if len(blocks) == 1:
            return blocks[0]
        return Block(
            blocks[0].first,
            np.concatenate([block.ints for block in blocks], axis=1),
            np.concatenate([block.skip_error for block in blocks], axis=1),
            np.concatenate([block.pulls for block in blocks], axis=1),
            np.concatenate([block.work for block in blocks]),
        )


def frame(
    block: Block, schedules: Sequence[str], of_job: Mapping[str, str | float]
) -> pl.DataFrame:
    """The block as rows, in order of schedule, then trial; ``of_job`` has the OF_JOB columns."""
    import polars as pl

    types = schema()
    count, trials = block.skip_error.shape
    order = np.repeat(np.arange(count, dtype=np.uint32), trials)
    columns: dict[str, Any] = {
        name: pl.repeat(value, count * trials, dtype=types[name], eager=True)
        for name, value in of_job.items()
    }
    columns["schedule"] = pl.Series(list(schedules), dtype=pl.String).gather(order)
    columns["trial"] = np.tile(np.arange(block.first, block.first + trials), count)
    columns["skip_error"] = block.skip_error.reshape(count * trials)
    for name in COUNTED:
        values = np.ascontiguousarray(block.column(name)).reshape(count * trials)
        columns[name] = pl.Series(values).cast(types[name])
    return pl.DataFrame({name: columns[name] for name in COLUMNS})
