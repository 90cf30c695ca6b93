"""The rows of trials: what columns there are, said once, and how a kernel's arrays become them.

Whoever reads or writes rows (sweeps, summaries, checks) takes names and types from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastfed.choices import USUAL

if TYPE_CHECKING:
    import polars as pl

VERSION = 4
"""Changes when the same job and seed would give other rows than before."""

# What is the same in all rows of a job, what names a row within it, what the kernel counts (in the
# order of its columns: `kernels.trials`), and the rest.
OF_JOB = {
    "instance": "String",
    "delta": "Float64",
    "seed": "UInt64",
    "sigma": "Float64",
    **dict.fromkeys(USUAL, "String"),
}
COUNTED = {
    "pulls": "Int64",
    "uplinks": "Int64",
    "bits": "Int64",
    "rounds": "Int64",
    "steps": "Int64",
    "local_steps": "Int64",
    "global_steps": "Int64",
    "global_arm": "Int32",
    "local_errors": "Int32",
    "correct": "Boolean",
    "truncated": "Boolean",
}
COLUMNS: dict[str, str] = {
    "instance": OF_JOB["instance"],
    "schedule": "String",
    "delta": OF_JOB["delta"],
    "seed": OF_JOB["seed"],
    "trial": "Int64",
    **COUNTED,
    "skip_error": "Float64",
    "draw_error": "Float64",
    "sigma": OF_JOB["sigma"],
    **{name: OF_JOB[name] for name in USUAL},
    "global_answer": "List(Int32)",
}
"""Every column with the name of its Polars type, in the order of the files. ``global_answer`` is
null for goals that ask for one arm, and where the server has not declared."""
CELL = ("instance", "delta", "sigma", *USUAL)
"""The columns that tell the cells of a sweep apart, in rows as in summaries."""


def schema() -> dict[str, Any]:
    """`COLUMNS` as Polars wants it."""
    import polars as pl

    return {
        name: pl.List(pl.Int32) if kind == "List(Int32)" else getattr(pl, kind)
        for name, kind in COLUMNS.items()
    }


@dataclass(frozen=True)
class Departures:
    """When arms left, trial by trial; NEVER (of `kernels.memory`) where one did not."""

    local_out: npt.NDArray[np.int64]  # (trials, K, M) at each client
    local_arms: npt.NDArray[np.int64]  # (trials, M) what the clients declared: see `kernels.memory`
    local_called: npt.NDArray[np.bool_]  # (trials, K, M) which arms are in the sets they declared
    global_out: npt.NDArray[np.int64]  # (trials, S, K) at the server
    global_called: npt.NDArray[np.bool_]  # (trials, S, K) which arms are in the sets it declared
    local_gave_up: npt.NDArray[np.int64]  # (trials, M) when a client gave up; 0: it did not
    global_gave_up: npt.NDArray[np.int64]  # (trials, S) when the server did

    @staticmethod
    def join(parts: Sequence[Departures]) -> Departures:
        """Those of consecutive trials as one."""
        return Departures(
            *(
                np.concatenate([getattr(part, field.name) for part in parts])
                for field in fields(Departures)
            )
        )


@dataclass(frozen=True)
class Block:
    """The rows of consecutive trials ``first, first + 1, ...`` as arrays, schedule by schedule."""

    first: int
    ints: npt.NDArray[np.int64]  # (S, trials, columns): see COUNTED
    skip_error: npt.NDArray[np.float64]  # (S, trials)
    pulls: npt.NDArray[np.int64]  # (S, trials, K, M), or (0, 0, 0, 0)
    called: npt.NDArray[np.int8]  # (S, trials, K) is an arm in the server's set? -1: none was
    # declared; S = 0: the goal asks for one arm
    work: npt.NDArray[np.int64]  # (trials, 2): intervals looked at, variates drawn
    draw_error: npt.NDArray[np.float64]  # (S, trials)
    departures: Departures | None = None

    @property
    def trials(self) -> int:
        """How many trials."""
        return int(self.ints.shape[1])

    def column(self, name: str) -> npt.NDArray[np.int64]:
        """(S, trials): one of COUNTED."""
        return self.ints[:, :, list(COUNTED).index(name)]

    @staticmethod
    def join(blocks: Sequence[Block]) -> Block:
        """Blocks of consecutive trials as one, departures included if all blocks have them."""
        if len(blocks) == 1:
            return blocks[0]
        departures = [block.departures for block in blocks if block.departures is not None]
        return Block(
            blocks[0].first,
            np.concatenate([block.ints for block in blocks], axis=1),
            np.concatenate([block.skip_error for block in blocks], axis=1),
            np.concatenate([block.pulls for block in blocks], axis=1),
            np.concatenate([block.called for block in blocks], axis=1),
            np.concatenate([block.work for block in blocks]),
            np.concatenate([block.draw_error for block in blocks], axis=1),
            Departures.join(departures) if len(departures) == len(blocks) else None,
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
    columns["draw_error"] = block.draw_error.reshape(count * trials)
    for name in COUNTED:
        values = np.ascontiguousarray(block.column(name)).reshape(count * trials)
        columns[name] = pl.Series(values).cast(types[name])
    if (block.column("bits") < 0).any():  # they were not counted
        bits = columns["bits"]
        columns["bits"] = pl.select(pl.when(bits >= 0).then(bits)).to_series()
    columns["global_answer"] = _answers(block.called, count * trials)
    return pl.DataFrame({name: columns[name] for name in COLUMNS})


def _answers(called: npt.NDArray[np.int8], rows: int) -> pl.Series:
    """The server's sets as lists of arms."""
    import polars as pl
    import pyarrow as pa

    if not called.shape[0]:
        return pl.repeat(None, rows, dtype=pl.List(pl.Int32), eager=True)
    flat = called.reshape(rows, called.shape[2])
    chosen = flat == 1
    ends = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))])
    lists = pa.LargeListArray.from_arrays(
        pa.array(ends, pa.int64()), pa.array(np.nonzero(chosen)[1], pa.int32())
    )
    answers = pl.DataFrame({"answer": pl.Series(lists), "declared": flat[:, 0] >= 0})
    return answers.select(pl.when("declared").then("answer").alias("answer")).to_series()
