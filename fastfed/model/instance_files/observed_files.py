"""Parquet files of observed rewards, and the histograms that such rewards become.

A row is a reward (columns arm, client, reward) or several equal ones (and count), and may have the
weight of its client (weight). Where a client does not have an arm, there is no reward.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastfed.errors import InputError, UncertainWarning, nearest
from fastfed.files import read_input
from fastfed.model.instance import Instance
from fastfed.model.instance_files.reading import Reading, named
from fastfed.model.rewards import Finite
from fastfed.validation import refuse_many_weights, shown

if TYPE_CHECKING:
    import polars as pl

ROLES = ("arm", "client", "reward", "count", "weight")  # the last two may be left out
_NAMES = ROLES[:2]  # columns of names; the others have numbers
_MISSING = ("na", "n/a", "nan", "null", "none")  # a missing number, as text
_MOST_ROWS = 100_000_000  # of observed rewards


def read_parquet(path: Path, reading: Reading) -> dict[str, Any]:
    """Read the arguments of `Instance` from a file.

    Arrow reads it: it raises an exception for a damaged file, where Polars may panic.
    """
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pa.BufferReader(read_input(path))
    with named(path):
        try:
            with pq.ParquetFile(content) as file:
                if file.metadata.num_rows > _MOST_ROWS:
                    raise InputError(
                        f"{file.metadata.num_rows:,} rows, at most {_MOST_ROWS:,}; add them up, "
                        "with a column count"
                    )
                wanted = columns_of(file.schema_arrow.names, reading)
                table = file.read(list(wanted.values()))
            table.validate(full=True)
            frame = pl.DataFrame(
                {role: pl.from_arrow(table[name]) for role, name in wanted.items()}
            )
        except InputError:
            raise
        except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError) as error:
            reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
            raise InputError(f"not a Parquet file that can be read ({reason})") from None
        return from_rewards(frame, reading.empty, reading.drop_missing)


def roles_of(heads: Sequence[str], reading: Reading) -> list[str]:
    """Return the roles of columns: arm, client, reward or count, as named or as said."""
    known = {name: role for role, name in reading.columns.items()}
    for role, name in reading.columns.items():
        if role not in ROLES:
            raise InputError(
                f"columns {role}={name}{nearest(role, ROLES)}: must be one of {', '.join(ROLES)}"
            )
        if name not in heads:
            raise InputError(
                f"column {name!r}{nearest(name, heads)}: not in the file, which has "
                f"{', '.join(heads)}"
            )
    return [known.get(head, head.lower()) for head in heads]


def columns_of(heads: Sequence[str], reading: Reading) -> dict[str, str]:
    """Return the name of the column of each role; refuse roles without one, or with two."""
    roles = roles_of(heads, reading)
    for role in ROLES:
        if roles.count(role) > 1:
            raise InputError(f"column {role!r} is there twice")
        if role in ROLES[:3] and role not in roles:
            raise InputError(
                f"no column {role!r}: observed rewards need arm, client and reward, and may have "
                f"count and weight (found: {', '.join(heads)})"
            )
    return {role: heads[roles.index(role)] for role in ROLES if role in roles}


def _read_column(column: pl.Series) -> pl.Series:
    """Read a column as names, or as numbers from numbers or text; NaN is a missing number."""
    import polars as pl

    name, kind = column.name, column.dtype
    if name in _NAMES:
        if not (kind.is_integer() or kind in (pl.String, pl.Categorical, pl.Enum)):
            raise InputError(
                f"column {name!r} holds {str(kind).lower()}, must be names or whole numbers"
            )
        return column.cast(pl.String)
    if not (kind.is_numeric() or kind == pl.String):
        raise InputError(f"column {name!r} holds {str(kind).lower()}, must be numbers")
    if kind == pl.String:
        column = column.set(column.str.to_lowercase().is_in(_MISSING), None)
    found = column.cast(pl.Float64, strict=False)
    odd = column.is_not_null() & (found.is_null() | found.is_infinite())
    if odd.any():
        row = odd.arg_max() or 0
        raise InputError(f"row {row + 2}, the header included: {name} {column[row]!r} is no number")
    return found.fill_nan(None)


def from_rewards(
    frame: pl.DataFrame, empty: float | str | None = None, drop_missing: bool = False
) -> dict[str, Any]:
    """Return the arguments of `Instance` for observed rewards, arms and clients in order of name.

    The columns are arm, client, reward; count, if they are counted already; weight, if clients have
    weights. Rows without a value in one of them are refused, or left out with a warning.
    """
    import polars as pl

    each = pl.DataFrame([_read_column(frame[name]) for name in ROLES if name in frame.columns])
    if "count" not in each.columns:
        each = each.with_columns(count=pl.lit(1.0))
    each = _without_missing(each, drop_missing)
    if each.height == 0:
        raise InputError("no rewards in it")
    if not each.select((pl.col("count") >= 0).all() & pl.col("count").is_finite().all()).item():
        raise InputError("a count that is negative or not finite")
    reward = pl.col("reward")  # -0.0 and 0.0 are one reward, the latter
    each = each.with_columns(reward=pl.when(reward == 0.0).then(0.0).otherwise(reward))
    counted = each.group_by("arm", "client", "reward").agg(pl.col("count").sum())
    arms, clients, values = (counted[name].unique().sort() for name in ("arm", "client", "reward"))

    def place(name: str, among: pl.Series) -> Any:
        return among.search_sorted(counted[name]).to_numpy()

    refuse_many_weights(len(arms), len(clients), len(values))
    if empty is None:
        _refuse_empty_cells(counted, arms.to_list(), clients.to_list())
    weights = np.zeros((len(arms), len(clients), len(values)))
    weights[place("arm", arms), place("client", clients), place("reward", values)] = counted[
        "count"
    ].to_numpy()
    return {
        "rewards": Finite(values.to_numpy(), weights, empty),
        "arms": arms.to_list(),
        "clients": clients.to_list(),
        **({"weights": _client_weights(each)} if "weight" in each.columns else {}),
    }


def _without_missing(each: pl.DataFrame, drop: bool) -> pl.DataFrame:
    """Refuse rows in which a value is missing, or leave them out and say how many they are."""
    whole = each.drop_nulls()
    lacking = each.height - whole.height
    if not lacking:
        return each
    counts = each.null_count().row(0, named=True)
    where = ", ".join(f"{number:,} in {name}" for name, number in counts.items() if number)
    found = f"a missing value in {lacking:,} of {each.height:,} rows ({where})"
    if not drop:
        raise InputError(
            f"{found}; fill them in, or leave these rows out: fastfed instance FILE "
            "--drop-missing, or drop_missing=True"
        )
    warnings.warn(f"{found}: these rows are left out", UncertainWarning, stacklevel=2)
    return whole


def _refuse_empty_cells(counted: pl.DataFrame, arms: list[str], clients: list[str]) -> None:
    """Refuse observations without a reward of some arm at some client, by their names."""
    seen = set(counted.filter(counted["count"] > 0).select("arm", "client").rows())
    lacking = [(arm, client) for arm in arms for client in clients if (arm, client) not in seen]
    if lacking:
        arm, client = lacking[0]
        more = f", and of {len(lacking) - 1} more pairs" if len(lacking) > 1 else ""
        raise InputError(
            f"no reward of arm {shown(arm)} at client {shown(client)}{more}: say what they pay, "
            "with `fastfed instance FILE --empty 0` or empty=0, or that the client does not have "
            "the arm, with --empty absent"
        )


def _client_weights(observed: pl.DataFrame) -> list[float]:
    """Return the weight of each client, in order of name; it must be the same in all its rows."""
    import polars as pl

    found = observed.group_by("client").agg(
        least=pl.col("weight").min(), weight=pl.col("weight").max()
    )
    odd = found.filter(pl.col("least") != pl.col("weight")).sort("client")
    if odd.height:
        name, least, most = odd.row(0)
        raise InputError(
            f"client {name!r} has the weights {least:g} and {most:g}: a client has one weight, "
            "the same in all its rows"
        )
    return found.sort("client")["weight"].to_list()


def to_histogram(instance: Instance) -> pl.DataFrame:
    """Count the observed rewards of an instance, a row each; refuse one that has none."""
    import polars as pl

    if not isinstance(instance.rewards, Finite):
        raise InputError(f"a .parquet holds observed rewards: save {instance.rewards!r} as .toml")
    questions = instance.questions
    if len(questions) > 1 or not questions.local:
        raise InputError(f"a .parquet holds one question: save {questions.summary} as .toml")
    k, m, v = np.nonzero(instance.rewards.weights)
    return pl.DataFrame(
        {
            "arm": [instance.arms[i] for i in k],
            "client": [instance.clients[i] for i in m],
            "reward": instance.rewards.values[v],
            "count": instance.rewards.weights[k, m, v],
            **({} if questions.plain else {"weight": questions.given[0, m]}),
        }
    )
