"""The rows of trials: the list of their columns, and their making from a kernel's arrays.

All code that reads or writes rows (sweeps, summaries, checks) takes names and types from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.model.choices import DEFAULTS
from fastfed.model.counts import COUNTS

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

Ints = npt.NDArray[np.int64]

# What is the same in all rows of a job, what names a row within it, what the kernel counts (in the
# order of its columns: `kernels.trials`), and the rest.
OF_JOB = {
    "instance": "String",
    "delta": "Float64",
    "seed": "UInt64",
    "sigma": "Float64",
    **dict.fromkeys(DEFAULTS, "String"),
}
COUNTED = {
    **dict.fromkeys(COUNTS, "Int64"),
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
    **{name: OF_JOB[name] for name in DEFAULTS},
    "global_answer": "List(Int32)",
}
"""Every column with the name of its Polars type, in the order of the files. ``global_answer`` is
null for goals that ask for one arm, and where the server has not declared."""
OF_SEVERAL = {"server_errors": "Int32", "server_answers": "List(Int32)"}
"""Columns that follow where the server has several questions: the number of its answers that are
wrong, and the arm of each question, or -1. For goals whose answer is a set of arms
``server_answers`` lists these sets, with q K added to the arms of question q."""
NULLABLE = ("bits", "global_answer")
"""The columns that may lack values."""


_BY_SCHEDULE = ("ints", "skip_error", "pulls", "called", "server_arms", "draw_error")
"""The arrays of a `Block` that begin with (S, trials); S is 0 in those that a run does not need."""


def schema(several: bool = False) -> dict[str, Any]:
    """Return the columns as Polars wants them; ``several``: with those of several questions."""
    import polars as pl
    import pyarrow as pa

    return dict(pl.DataFrame(pa.schema(arrow_types(several)).empty_table()).schema)


class Departures(NamedTuple):
    """The steps at which arms left, trial by trial; NEVER (of `kernels.memory`) if one did not."""

    local_eliminated_at: Ints  # (trials, K, M) at each client
    local_arms: Ints  # (trials, M) what the clients declared: see `kernels.memory`
    local_accepted: npt.NDArray[np.bool_]  # (trials, K, M) which arms are in the sets they declared
    global_eliminated_at: Ints  # (trials, S, Q, K) at the server, in each question
    global_accepted: npt.NDArray[np.bool_]  # (trials, S, Q, K) and in those of the server
    local_abandoned_at: Ints  # (trials, M) when a client abandoned; 0: it did not
    global_abandoned_at: Ints  # (trials, S, Q) when the server did

    def of_schedules(self, places: Sequence[int] | Ints) -> Departures:
        """Keep some schedules, by their places."""
        kept = {
            name: array[:, places]
            for name, array in self._asdict().items()
            if name.startswith("global")
        }
        return self._replace(**kept)


@dataclass(frozen=True)
class Block:
    """The rows of consecutive trials ``first, first + 1, ...`` as arrays, schedule by schedule."""

    first: int
    ints: Ints  # (S, trials, columns): see COUNTED
    skip_error: npt.NDArray[np.float64]  # (S, trials)
    pulls: Ints  # (S, trials, K, M), or (0, 0, 0, 0)
    called: npt.NDArray[np.int8]  # (S, trials, Q, K) is an arm in the server's set? -1: none was
    # declared; S = 0: the goal asks for one arm
    server_arms: Ints  # (S, trials, Q) of several questions, else S = 0
    work: Ints  # (trials, 2): intervals looked at, variates drawn
    draw_error: npt.NDArray[np.float64]  # (S, trials)
    departures: Departures | None = None

    @property
    def trials(self) -> int:
        """The number of trials."""
        return int(self.ints.shape[1])

    def column(self, name: str) -> Ints:
        """Return one of the columns COUNTED, (S, trials)."""
        return self.ints[:, :, list(COUNTED).index(name)]

    def of_schedules(self, places: Sequence[int] | Ints) -> Block:
        """Keep the rows of some schedules, by their places."""
        arrays = {name: getattr(self, name) for name in _BY_SCHEDULE}
        kept = {name: array[places] for name, array in arrays.items() if len(array)}
        left = self.departures and self.departures.of_schedules(places)
        return replace(self, departures=left, **kept)

    @property
    def server_errors(self) -> Ints:
        """Number of wrong answers of the server, (S, trials)."""
        return self.ints[:, :, len(COUNTED)]

    @staticmethod
    def side_by_side(blocks: Sequence[Block], places: Sequence[int]) -> Block:
        """Join blocks of the same trials that have different schedules.

        ``places`` says where each schedule comes in the result. Departures are those of the last
        block.
        """
        joined = replace(blocks[-1], departures=None, **_concatenated(blocks, 0))
        ordered = joined.of_schedules(np.argsort(places))
        return replace(ordered, departures=blocks[-1].departures)

    @staticmethod
    def join(blocks: Sequence[Block]) -> Block:
        """Join blocks of consecutive trials, with departures if all blocks have them."""
        if len(blocks) == 1:
            return blocks[0]
        departures = [block.departures for block in blocks if block.departures is not None]
        every = len(departures) == len(blocks)
        return replace(
            blocks[0],
            work=np.concatenate([block.work for block in blocks]),
            departures=Departures(*map(np.concatenate, zip(*departures, strict=True)))
            if every
            else None,
            **_concatenated(blocks, 1),
        )


def _concatenated(blocks: Sequence[Block], axis: int) -> dict[str, Any]:
    return {
        name: np.concatenate([getattr(block, name) for block in blocks], axis)
        for name in _BY_SCHEDULE
    }


class Rows(NamedTuple):
    """A block with the names of its schedules and the OF_JOB columns."""

    block: Block
    schedules: Sequence[str]
    of_job: Mapping[str, str | float]


def table(some: Sequence[Rows]) -> pa.Table:
    """Make the rows of blocks as one Arrow table, in order of block, schedule, then trial.

    The blocks have the same columns. Types are plain ones, which every reader knows. Columns are
    made once for all blocks, because each takes longer than a few trials.
    """
    import pyarrow as pa

    several = len(some[0].block.server_arms) > 0
    types = arrow_types(several)
    shapes = [one.block.skip_error.shape for one in some]
    places = np.repeat(np.arange(len(some), dtype=np.int32), [s * t for s, t in shapes])
    columns: dict[str, Any] = {
        name: pa.array([one.of_job[name] for one in some], types[name]).take(pa.array(places))
        for name in OF_JOB
    }
    names = {name: at for at, name in enumerate(dict.fromkeys(n for one in some for n in one[1]))}
    of_rows = [
        np.repeat(np.array([names[name] for name in one.schedules], np.int32), trials)
        for one, (_, trials) in zip(some, shapes, strict=True)
    ]
    columns["schedule"] = pa.array([*names], pa.string()).take(pa.array(np.concatenate(of_rows)))
    columns["trial"] = np.concatenate(
        [
            np.tile(np.arange(one.block.first, one.block.first + trials), count)
            for one, (count, trials) in zip(some, shapes, strict=True)
        ]
    )
    for name in ("skip_error", "draw_error"):
        columns[name] = np.concatenate([getattr(one.block, name).ravel() for one in some])
    ints = np.concatenate([one.block.ints.reshape(-1, one.block.ints.shape[2]) for one in some])
    for place, name in enumerate(COUNTED):
        columns[name] = ints[:, place].astype(str(types[name]))
    bits = columns["bits"]
    columns["bits"] = pa.array(bits, mask=bits < 0)  # which were not counted
    columns["global_answer"] = pa.concat_arrays([_first_answers(one.block) for one in some])
    if several:
        columns["server_errors"] = ints[:, len(COUNTED)].astype(np.int32)
        columns["server_answers"] = pa.concat_arrays([_all_answers(one.block) for one in some])
    return pa.table(
        [pa.array(columns[name], kind) for name, kind in types.items()], schema=pa.schema(types)
    )


@cache
def arrow_types(several: bool = False) -> dict[str, Any]:
    """Return the Arrow type of every column; ``several``: with those of several questions."""
    import pyarrow as pa

    kinds = {
        "String": pa.string(),
        "Boolean": pa.bool_(),
        "Float64": pa.float64(),
        "Int32": pa.int32(),
        "Int64": pa.int64(),
        "UInt64": pa.uint64(),
        "List(Int32)": pa.list_(pa.int32()),
    }
    names = {**COLUMNS, **(OF_SEVERAL if several else {})}
    return {name: kinds[kind] for name, kind in names.items()}


def frame(rows: Rows) -> pl.DataFrame:
    """Make the rows of a block, in order of schedule, then trial, as a data frame."""
    import polars as pl

    return pl.DataFrame(table([rows]))


def _first_answers(block: Block) -> Any:
    """Return the server's sets in the first question as lists, null where none was declared."""
    import pyarrow as pa

    rows = block.skip_error.size
    if not len(block.called):
        return pa.nulls(rows, pa.list_(pa.int32()))
    first = block.called[:, :, 0].reshape(rows, -1)
    arms = np.nonzero(first == 1)[1]
    return _lists(arms, (first == 1).sum(axis=1), mask=pa.array(first[:, 0] < 0))


def _all_answers(block: Block) -> Any:
    """Return the server's answers to several questions as lists."""
    rows = block.skip_error.size
    if not len(block.called):
        return _lists(block.server_arms.ravel(), np.full(rows, block.server_arms.shape[2]))
    called = block.called.reshape(rows, -1) == 1
    return _lists(np.nonzero(called)[1], called.sum(axis=1))


def _lists(values: Ints, lengths: Ints, mask: Any = None) -> Any:
    """Make lists of so many values each."""
    import pyarrow as pa

    ends = np.cumsum([0, *lengths], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values.astype(np.int32)), mask=mask)
