"""Instances by name and by file.

TOML holds everything; CSV holds the means, with an optional header of client names and an
optional first column of arm names, in which rows named "weights" hold the weights of clients;
Parquet holds observed rewards, one row each (columns arm, client, reward) or counted (and count),
and optionally the weight of each client (weight), and so may CSV. Where a client does not have an
arm, the cell is empty (CSV), nan or "" (TOML), or has no rewards. Built-ins are in ``data/``.
"""

from __future__ import annotations

import csv
import io
import math
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError, UncertainWarning, nearest
from fastfed.files import data_folder, read_regular, valid_unicode
from fastfed.model.instance import Instance, changed
from fastfed.model.means_table import NUMBER, means_table
from fastfed.model.observed import doubtful_gaps
from fastfed.model.rewards import Finite, Gaussian, Rewards
from fastfed.model.rewards.finite import ABSENT
from fastfed.validation import (
    MOST_FILE,
    MOST_SEED,
    number,
    refuse_many_cells,
    refuse_many_weights,
    shown,
)

if TYPE_CHECKING:
    import polars as pl

FAMILIES = {
    "random": "random:K,M,SEED (uniform means)",
    "scaled": "scaled:NAME,FACTOR (another instance's means, multiplied)",
    "gaussian": "gaussian:NAME (another instance's means, with Gaussian rewards)",
}
_KEYS = ("name", "means", "rewards", "weights", "local", "own", "arms", "clients", "description")
_ROLES = ("arm", "client", "reward", "count", "weight")  # the last two may be left out
_MISSING = ("", "na", "n/a", "nan", "null", "none")  # a missing number in a CSV file
_MOST_ROWS = 100_000_000  # of observed rewards
_MOVIELENS: dict[str, tuple[float | str, str]] = {  # what a genre without ratings is in a country
    "movielens": (0.0, "a genre without ratings pays 0"),
    "movielens-available": (ABSENT, "countries have only the genres that were rated there"),
}


def builtin_names() -> list[str]:
    """List the names that `Instance.load` knows."""
    return sorted([*(path.stem for path in data_folder().glob("*.toml")), *_MOVIELENS])


def known_by_name(name: str) -> bool:
    """Tell whether `load` finds the instance by this name in every process."""
    return name in builtin_names() or name.partition(":")[0] in FAMILIES


class Reading(NamedTuple):
    """Options of files with observed rewards."""

    empty: float | str | None = None
    columns: Mapping[str, str] = {}
    drop_missing: bool = False

    @classmethod
    def of(
        cls, empty: Any, columns: Mapping[str, str] | None, drop_missing: bool = False
    ) -> Reading:
        """Make the options from what a user gives: ``empty`` is a number, "absent" or None."""
        rule = "must be a number, or 'absent' for arms that a client does not have"
        pays = empty if empty in (None, ABSENT) else number("empty", empty, rule)
        return cls(pays, columns or {}, drop_missing)

    @property
    def given(self) -> bool:
        """Tell whether any option is given."""
        return self.empty is not None or bool(self.columns) or self.drop_missing


def load(
    source: str | Path,
    rewards: Rewards | str | None = None,
    reading: Reading = Reading(),  # noqa: B008
    weights: npt.ArrayLike | None = None,
) -> Instance:
    """Load an instance: see `Instance.load`."""
    loaded = _load(source, rewards, reading)
    if weights is None:
        return loaded
    with _named(loaded.name):
        return loaded.weighted(weights)


@contextmanager
def _named(source: object) -> Iterator[None]:
    """Name the source of whatever is refused inside."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _load(source: str | Path, rewards: Rewards | str | None, reading: Reading) -> Instance:
    if reading.given and (
        (isinstance(source, str) and known_by_name(source))
        or Path(source).suffix.lower() not in (".csv", ".parquet")
    ):
        raise InputError(
            f"{source}: no file of observed rewards, for which empty, columns, drop_missing are"
        )
    if isinstance(rewards, str):
        rewards = Rewards.parse(rewards)
    if rewards is not None and not lacks_law(source):
        raise InputError(
            f"rewards {rewards!r}: {source} says itself what its rewards are; leave it out"
        )
    text = str(source)
    family, colon, arguments = text.partition(":")
    if isinstance(source, str) and colon and family in FAMILIES:
        return {"random": _random, "scaled": _scaled, "gaussian": _gaussian}[family](
            text, arguments
        )
    if isinstance(source, str) and text in _MOVIELENS:
        return _movielens(text)
    if isinstance(source, str) and text in builtin_names():
        return _load_file(data_folder() / f"{text}.toml", text)
    path = Path(source)
    if path.suffix.lower() in _READERS:
        return _load_file(path, valid_unicode(path.stem), rewards, reading)
    known = [*builtin_names(), *(f"{name}:" for name in FAMILIES)]
    raise InputError(
        f"unknown instance {text!r}{nearest(text, known)}: a built-in "
        f"({', '.join(builtin_names())}), {', '.join(FAMILIES.values())}, or a file ending in "
        f"{', '.join(_READERS)}" + ("; --instance is repeated for several" if "," in text else "")
    )


def lacks_law(source: str | Path) -> bool:
    """Tell whether a file has means, and names no reward distribution."""
    path = Path(source)
    named = isinstance(source, str) and known_by_name(source)
    if named or path.suffix.lower() not in (".toml", ".csv"):
        return False
    return "rewards" not in _content(path)


def _random(text: str, arguments: str) -> Instance:
    try:
        arms, clients, seed = (int(part) for part in arguments.split(","))
        if "_" in arguments or not arguments.isascii():
            raise ValueError(arguments)  # what only Python reads as a number
    except ValueError:
        raise InputError(f"{text!r}: must be random:K,M,SEED, three whole numbers") from None
    if arms < 1 or clients < 1:
        raise InputError(f"{text!r}: K and M must be at least 1")
    refuse_many_cells(repr(text), arms, clients)
    if not 0 <= seed <= MOST_SEED:
        raise InputError(f"{text!r}: the seed must lie in 0 .. 2^64 - 1")
    # raw Philox words: NumPy promises them for ever, which it does not for Generator.random
    words = np.random.Philox(key=seed).random_raw(arms * clients)
    means = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return Instance(
        means.reshape(arms, clients), name=text, description=f"means uniform in [0, 1), seed {seed}"
    )


def _scaled(text: str, arguments: str) -> Instance:
    name, comma, factor_text = arguments.rpartition(",")
    if not comma or not NUMBER.fullmatch(factor_text):
        raise InputError(f"{text!r}: must be scaled:NAME,FACTOR, as in scaled:synthetic,0.1")
    factor = float(factor_text)
    if not 0 < factor < math.inf:
        raise InputError(f"{text!r}: the factor must be above 0 and finite")
    base = load(name)
    rewards = base.rewards.scaled(factor)
    means = None if rewards.own_means is not None else base.means * factor
    description = f"{base.name}, means x {factor:g}"
    return changed(base, means=means, rewards=rewards, name=text, description=description)


def _gaussian(text: str, arguments: str) -> Instance:
    base = load(arguments)
    description = f"{base.name}'s means, with Gaussian rewards"
    return changed(base, means=base.means, rewards=Gaussian(), name=text, description=description)


def _load_file(
    path: Path,
    name: str,
    rewards: Rewards | None = None,
    reading: Reading = Reading(),  # noqa: B008
) -> Instance:
    content = {"name": name, **_content(path, reading)}
    observed = path.suffix.lower() != ".toml" and "rewards" in content
    if reading.given and not observed:
        raise InputError(
            f"{path}: has means and no observed rewards; leave empty, columns and drop_missing out"
        )
    if rewards is not None:
        content["rewards"] = rewards
    with _named(path):
        made = Instance(**content)
    filled = reading.empty not in (None, ABSENT)
    if observed and (doubt := doubtful_gaps(made, filled)):
        warnings.warn(doubt, UncertainWarning, stacklevel=5)
    return made


def _content(path: Path, reading: Reading = Reading()) -> dict[str, Any]:  # noqa: B008
    """Read a file; refuse one that cannot be read, in one line."""
    try:
        return _READERS[path.suffix.lower()](path, reading)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise InputError(f"{str(path)!r}: cannot be read ({reason})") from None


def from_toml(text: str, name: str) -> Instance:
    """Read an instance from the text of a TOML file, under this name."""
    return Instance(**{**_parse_toml(text, name), "name": name})


def _from_toml(path: Path, reading: Reading) -> dict[str, Any]:
    return _parse_toml(_text(path), str(path))


def _text(path: Path) -> str:
    """Decode UTF-8, with or without the byte order mark of some editors."""
    return read_regular(path, MOST_FILE).decode("utf-8-sig")


def _parse_toml(text: str, path: str) -> dict[str, Any]:
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError also for a number that is too long
        raise InputError(f"{path}: not valid TOML: {error}") from None
    unknown = sorted(set(content) - set(_KEYS))
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r}{nearest(unknown[0], _KEYS)}")
    for key in ("name", "description"):
        if not isinstance(content.get(key, ""), str):
            raise InputError(f"{path}: {key} must be a string")
    if isinstance(content.get("means"), list):  # an empty cell is nan or ""
        content["means"] = [
            [math.nan if cell == "" else cell for cell in row] if isinstance(row, list) else row
            for row in content["means"]
        ]
    if "rewards" in content:
        content["rewards"] = _rewards(path, content["rewards"])
    if "means" not in content and (
        "rewards" not in content or content["rewards"].own_means is None
    ):
        raise InputError(f"{path}: no 'means'; write means = [[...], ...], one row per arm")
    return content


def _rewards(path: str, table: object) -> Rewards:
    if not isinstance(table, dict):
        raise InputError(f'{path}: rewards must be a table, as in [rewards] kind = "gaussian"')
    options = dict(table)
    kind = options.pop("kind", "gaussian")
    known = Rewards.families
    if not isinstance(kind, str) or kind not in known:
        raise InputError(
            f"{path}: unknown rewards kind {kind!r}{nearest(str(kind), known)}; "
            f"known: {', '.join(known)}"
        )
    make: type[Rewards] = known[kind]
    unknown = sorted(set(options) - make.table_keys)
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r} in [rewards] of kind {kind}")
    if kind == "finite" and not {"values", "weights"} <= set(options):
        raise InputError(f"{path}: finite rewards need values and weights")
    with _named(path):
        return make(**options)


def _from_csv(path: Path, reading: Reading) -> dict[str, Any]:
    with io.StringIO(_text(path), newline="") as file:
        try:
            rows = [row for row in csv.reader(file, strict=True) if any(map(str.strip, row))]
        except csv.Error as error:
            raise InputError(f"{path}: not valid CSV: {error}") from None
    if not rows:
        raise InputError(f"{path}: empty; write one row of means per arm")
    width = len(rows[0])
    for place, row in enumerate(rows, 1):
        if len(row) != width:
            raise InputError(f"{path}: row {place} has {len(row)} cells, row 1 has {width}")

    heads = _roles([cell.strip() for cell in rows[0]], reading)
    needed = {"arm", "client", "reward"}
    exact = needed <= set(heads) <= set(_ROLES) and len(set(heads)) == width
    if exact or (reading.columns and needed <= set(heads)):
        return _observed_text(path, heads, rows[1:], reading)
    _refuse_other_names(path, rows)

    return means_table(path, rows)


def _roles(heads: Sequence[str], reading: Reading) -> list[str]:
    """Return the roles of columns: arm, client, reward or count, as named or as said."""
    known = {name: role for role, name in reading.columns.items()}
    for role, name in reading.columns.items():
        if role not in _ROLES:
            raise InputError(
                f"columns {role}={name}{nearest(role, _ROLES)}: must be one of {', '.join(_ROLES)}"
            )
        if name not in heads:
            raise InputError(
                f"column {name!r}{nearest(name, heads)}: not in the file, which has "
                f"{', '.join(heads)}"
            )
    return [known.get(head, head.lower()) for head in heads]


def _refuse_other_names(path: Path, rows: list[list[str]]) -> None:
    """Refuse a table with a row for each reward whose columns have other names."""
    width, body = len(rows[0]), rows[1:]
    if width < 3 or len(body) < 2 or any(map(NUMBER.fullmatch, rows[0])):
        return
    texts = [
        place for place in range(width) if not any(NUMBER.fullmatch(row[place]) for row in body)
    ]
    if len(texts) > 1 and len(texts) < width:
        heads = ", ".join(cell.strip() for cell in rows[0])
        raise InputError(
            f"{path}: columns {heads}: a row for each reward needs columns arm, client and "
            "reward, and may have count; say which is which, as in fastfed instance FILE "
            "--columns arm=...,client=...,reward=... --out inst.toml"
        )


def _observed_text(
    path: Path, heads: list[str], rows: list[list[str]], reading: Reading
) -> dict[str, Any]:
    """Read the observed rewards of a CSV file, which has one row for each reward."""
    import polars as pl

    columns: dict[str, list[Any]] = {}
    for place, head in enumerate(heads):
        if head not in _ROLES:
            continue
        cells = [row[place].strip() for row in rows]
        if head in ("reward", "count", "weight"):
            columns[head] = numbers = []
            for number, cell in enumerate(cells, 2):
                missing = cell.lower() in _MISSING
                if not missing and NUMBER.fullmatch(cell) is None:
                    raise InputError(f"{path}: row {number}: {head} {cell!r} is not a number")
                numbers.append(None if missing else float(cell))
        else:
            columns[head] = [cell or None for cell in cells]
    with _named(path):
        return from_rewards(pl.DataFrame(columns), reading.empty, reading.drop_missing)


def _from_parquet(path: Path, reading: Reading) -> dict[str, Any]:
    with _named(path):
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
            roles = _roles(schema.names, reading)
            _refuse_odd_columns(
                pa.schema([one.with_name(role) for one, role in zip(schema, roles, strict=True)])
            )
            wanted = {
                role: name for role, name in zip(roles, schema.names, strict=True) if role in _ROLES
            }
            table = file.read(list(wanted.values()))
        table.validate(full=True)
        return pl.DataFrame({role: pl.from_arrow(table[name]) for role, name in wanted.items()})
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise InputError(f"not a Parquet file that can be read ({reason})") from None


def _refuse_odd_columns(schema: Any) -> None:
    """Refuse names that are not text or whole numbers, and other columns without numbers."""
    from pyarrow import types

    for name in _ROLES:
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


def _movielens(name: str) -> Instance:
    from fastfed.model.movielens import builtin_histogram

    description = (
        "MovieLens (HetRec 2011): genres rated in countries; counts and means exact, reward shapes "
        f"reconstructed; {_MOVIELENS[name][1]}"
    )
    content = from_rewards(builtin_histogram(), empty=_MOVIELENS[name][0])
    return Instance(name=name, description=description, **content)


_READERS = {".toml": _from_toml, ".csv": _from_csv, ".parquet": _from_parquet}
