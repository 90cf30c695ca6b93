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
from fastfed.files import read_regular
from fastfed.model.instance import Instance
from fastfed.model.instance_files.reading import Reading, named
from fastfed.model.rewards import Finite
from fastfed.validation import MOST_FILE, refuse_many_weights, shown

if TYPE_CHECKING:
    import polars as pl

ROLES = ("arm", "client", "reward", "count", "weight")  # the last two may be left out
_MOST_ROWS = 100_000_000  # of observed rewards


def read_parquet(path: Path, reading: Reading) -> dict[str, Any]:
    """Read the arguments of `Instance` from a file."""
    with named(path):
        return from_rewards(_observed(path, reading), reading.empty, reading.drop_missing)


def _observed(path: Path, reading: Reading) -> pl.DataFrame:
    """Read the columns of observed rewards.

    Arrow reads them: it raises an exception for a damaged file, where Polars may panic.
    """
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pa.BufferReader(read_regular(path, MOST_FILE))
    try:
        with pq.ParquetFile(content) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
            if rows > _MOST_ROWS:
                raise InputError(
                    f"{rows:,} rows, at most {_MOST_ROWS:,}; add them up, with a column count"
                )
            roles = roles_of(schema.names, reading)
            _refuse_odd_columns(
                pa.schema([one.with_name(role) for one, role in zip(schema, roles, strict=True)])
            )
            wanted = {
                role: name for role, name in zip(roles, schema.names, strict=True) if role in ROLES
            }
            table = file.read(list(wanted.values()))
        table.validate(full=True)
        return pl.DataFrame({role: pl.from_arrow(table[name]) for role, name in wanted.items()})
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise InputError(f"not a Parquet file that can be read ({reason})") from None


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


def _refuse_odd_columns(schema: Any) -> None:
    """Refuse names that are not text or whole numbers, and other columns without numbers."""
    from pyarrow import types

    for name in ROLES:
        fields = [field for field in schema if field.name == name]
        if len(fields) > 1:
            raise InputError(f"column {name!r} is there twice")
        if not fields and name not in ("count", "weight"):
            raise InputError(
                f"no column {name!r}: observed rewards need arm, client and reward, "
                f"and may have count and weight (found: {', '.join(schema.names)})"
            )
        for field in fields:
            kind = field.type.value_type if types.is_dictionary(field.type) else field.type
            text = (
                types.is_string(kind) or types.is_large_string(kind) or (types.is_string_view(kind))
            )
            if name in ("arm", "client") and not (text or types.is_integer(kind)):
                raise InputError(
                    f"column {name!r} holds {field.type}, must be names or whole numbers"
                )
            if name in ("reward", "count", "weight") and not (
                types.is_integer(field.type)
                or types.is_floating(field.type)
                or types.is_decimal128(field.type)
            ):
                raise InputError(f"column {name!r} holds {field.type}, must be numbers")


def from_rewards(
    frame: pl.DataFrame, empty: float | str | None = None, drop_missing: bool = False
) -> dict[str, Any]:
    """Return the arguments of `Instance` for observed rewards, arms and clients in order of name.

    The columns are arm, client, reward; count, if they are counted already; weight, if clients have
    weights. Rows without a value in one of them are refused, or left out with a warning.
    """
    import polars as pl

    count = pl.col("count") if "count" in frame.columns else pl.lit(1)
    try:
        each = frame.select(
            pl.col("arm").cast(pl.String),
            pl.col("client").cast(pl.String),
            pl.col("reward").cast(pl.Float64),
            count=count.cast(pl.Float64),
            **({"weight": pl.col("weight").cast(pl.Float64)} if "weight" in frame.columns else {}),
        )
    except pl.exceptions.PolarsError as error:
        raise InputError(str(error).splitlines()[0]) from None
    each = _without_missing(each.with_columns(pl.col(pl.Float64).fill_nan(None)), drop_missing)
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
