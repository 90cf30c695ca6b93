"""Instances by name and by file.

TOML holds everything; CSV holds the means, with an optional header of client names and an
optional first column of arm names; Parquet holds observed rewards, one row each (columns arm,
client, reward) or counted (and count), and so may CSV. Built-ins are in ``data/``.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastfed.errors import InputError, nearest
from fastfed.files import data_folder, read_regular, replacing, valid_unicode
from fastfed.problem.instance import Instance
from fastfed.problem.rewards import KINDS, Finite, Gaussian, Rewards
from fastfed.validation import MOST_FILE, MOST_SEED, refuse_many_cells, refuse_many_weights

if TYPE_CHECKING:
    import polars as pl

FAMILIES = {
    "random": "random:K,M,SEED (uniform means)",
    "scaled": "scaled:NAME,FACTOR (another instance's means, multiplied)",
}
_KEYS = ("name", "means", "rewards", "arms", "clients", "description")
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)
_MOST_ROWS = 100_000_000  # of observed rewards


def builtin_names() -> list[str]:
    """What `Instance.load` knows by name."""
    return sorted([*(path.stem for path in data_folder().glob("*.toml")), "movielens"])


def known_by_name(name: str) -> bool:
    """Whether `load` brings the instance back wherever it is called."""
    return name in builtin_names() or name.partition(":")[0] in FAMILIES


def load(source: str | Path, rewards: Rewards | str | None = None) -> Instance:
    """See `Instance.load`."""
    if isinstance(rewards, str):
        rewards = parse_law(rewards)
    if rewards is not None and not lacks_law(source):
        raise InputError(
            f"rewards {rewards!r}: {source} says itself what its rewards are; leave it out"
        )
    text = str(source)
    family, colon, arguments = text.partition(":")
    if isinstance(source, str) and colon and family in FAMILIES:
        return _random(text, arguments) if family == "random" else _scaled(text, arguments)
    if isinstance(source, str) and text == "movielens":
        return _movielens()
    if isinstance(source, str) and text in builtin_names():
        return _load_file(data_folder() / f"{text}.toml", text)
    path = Path(source)
    if path.suffix.lower() in _READERS:
        return _load_file(path, valid_unicode(path.stem), rewards)
    known = [*builtin_names(), *(f"{name}:" for name in FAMILIES)]
    raise InputError(
        f"unknown instance {text!r}{nearest(text, known)}: a built-in "
        f"({', '.join(builtin_names())}), {', '.join(FAMILIES.values())}, or a file ending in "
        f"{', '.join(_READERS)}"
    )


def lacks_law(source: str | Path) -> bool:
    """Whether a file has means and does not say how rewards scatter around them."""
    path = Path(source)
    named = isinstance(source, str) and known_by_name(source)
    if named or path.suffix.lower() not in (".toml", ".csv"):
        return False
    return "rewards" not in _content(path)


def with_rewards(sources: Sequence[Any], law: str) -> list[Any]:
    """The sources, with a law for those among them that are files without one."""
    rewards = parse_law(law)
    found = [
        load(one, rewards) if isinstance(one, str | Path) and lacks_law(one) else one
        for one in sources
    ]
    if all(one is other for one, other in zip(found, sources, strict=True)):
        named = ", ".join(str(one) for one in sources)
        raise InputError(f"--rewards {law}: {named} says itself what its rewards are; leave it out")
    return found


def parse_law(text: str) -> Rewards:
    """A law from an option: ``bernoulli``, ``gaussian``, ``gaussian:0.5``, ``poisson:2``."""
    name, colon, value = text.strip().partition(":")
    known = [kind for kind in KINDS if kind != "finite"]
    if name not in known:
        raise InputError(
            f"rewards {text!r}{nearest(name, known)}: must be one of "
            f"{', '.join(known)}; gaussian:0.5 has the standard deviation 0.5"
        )
    if not colon:
        return KINDS[name]()
    if "sigma" not in KINDS[name].options:
        raise InputError(f"rewards {text!r}: {name} takes no value")
    return KINDS[name](sigma=value)  # type: ignore[call-arg]


def save(instance: Instance, path: Path) -> None:
    """See `Instance.save`."""
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise InputError(
            f"{path}: an instance is saved as .toml, .csv or .parquet, not {path.suffix!r}"
        )
    with replacing(path) as file:
        if suffix == ".parquet":
            _to_histogram(instance).write_parquet(file)
        else:
            text = to_toml(instance) if suffix == ".toml" else _to_csv(instance)
            file.write(text.encode("utf-8", "backslashreplace"))


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
    if not comma or not _NUMBER.fullmatch(factor_text):
        raise InputError(f"{text!r}: must be scaled:NAME,FACTOR, as in scaled:synthetic,0.1")
    factor = float(factor_text)
    if not 0 < factor < math.inf:
        raise InputError(f"{text!r}: the factor must be above 0 and finite")
    base = load(name)
    description = f"{base.name}, means x {factor:g}"
    rewards = base.rewards.scaled(factor)
    means = None if rewards.own_means is not None else base.means * factor
    return Instance(
        means, rewards, arms=base.arms, clients=base.clients, name=text, description=description
    )


def _load_file(path: Path, name: str, rewards: Rewards | None = None) -> Instance:
    content = {"name": name, **_content(path)}
    if rewards is not None:
        content["rewards"] = rewards
    try:
        return Instance(**content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _content(path: Path) -> dict[str, Any]:
    """What a file says, or in one line why it cannot be read."""
    try:
        return _READERS[path.suffix.lower()](path)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise InputError(f"{str(path)!r}: cannot be read ({reason})") from None


def from_toml(text: str, name: str) -> Instance:
    """An instance from the text of a TOML file, under this name."""
    return Instance(**{**_parse_toml(text, name), "name": name})


def _from_toml(path: Path) -> dict[str, Any]:
    return _parse_toml(_text(path), str(path))


def _text(path: Path) -> str:
    """UTF-8, with or without the mark that some editors put first."""
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
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(
            f"{path}: unknown rewards kind {kind!r}{nearest(str(kind), KINDS)}; "
            f"known: {', '.join(KINDS)}"
        )
    make = KINDS[kind]
    unknown = sorted(set(options) - make.options)
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r} in [rewards] of kind {kind}")
    if kind == "finite" and not {"values", "weights"} <= set(options):
        raise InputError(f"{path}: finite rewards need values and weights")
    try:
        return make(**options)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _from_csv(path: Path) -> dict[str, Any]:
    with io.StringIO(_text(path), newline="") as file:
        try:
            rows = [row for row in csv.reader(file, strict=True) if any(map(str.strip, row))]
        except csv.Error as error:
            raise InputError(f"{path}: not valid CSV: {error}") from None
    if not rows:
        raise InputError(f"{path}: empty; write one row of means per arm")
    width = len(rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            raise InputError(f"{path}: row {number} has {len(row)} cells, row 1 has {width}")

    heads = [cell.strip().lower() for cell in rows[0]]
    if sorted(heads) in (["arm", "client", "reward"], ["arm", "client", "count", "reward"]):
        return _observed_text(path, heads, rows[1:])

    def is_number(cell: str) -> bool:
        return _NUMBER.fullmatch(cell) is not None

    corner = rows[0][0].strip().lower() in ("", "arm", "arms")
    header = (
        corner or not all(map(is_number, rows[0][1:])) or (width == 1 and not is_number(rows[0][0]))
    )
    body = rows[1:] if header else rows
    if not body:
        raise InputError(f"{path}: a header and no means")
    named = corner or any(not is_number(row[0]) for row in body)
    cells = [row[1:] if named else row for row in body]
    for number, row in enumerate(cells, 2 if header else 1):
        for cell in row:
            if not is_number(cell):
                raise InputError(f"{path}: row {number}: {cell!r} is not a number")
    clients = [cell.strip() for cell in (rows[0][1:] if named else rows[0])] if header else None
    return {
        "means": [[float(cell) for cell in row] for row in cells],
        "clients": clients,
        "arms": [row[0].strip() for row in body] if named else None,
    }


def _observed_text(path: Path, heads: list[str], rows: list[list[str]]) -> dict[str, Any]:
    """Observed rewards, a row each, as a Parquet file has them."""
    import polars as pl

    columns: dict[str, list[Any]] = {}
    for place, head in enumerate(heads):
        cells = [row[place].strip() for row in rows]
        if head in ("reward", "count"):
            for number, cell in enumerate(cells, 2):
                if _NUMBER.fullmatch(cell) is None:
                    raise InputError(f"{path}: row {number}: {head} {cell!r} is not a number")
            columns[head] = [float(cell) for cell in cells]
        else:
            columns[head] = cells
    try:
        return from_rewards(pl.DataFrame(columns))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _from_parquet(path: Path) -> dict[str, Any]:
    try:
        return from_rewards(_observed(path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _observed(path: Path) -> pl.DataFrame:
    """The columns of observed rewards. Arrow reads them, because it turns damage into an
    exception where Polars may panic."""
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
            _refuse_odd_columns(schema)
            wanted = [name for name in ("arm", "client", "reward", "count") if name in schema.names]
            table = file.read(wanted)
        table.validate(full=True)
        return pl.DataFrame({name: pl.from_arrow(table[name]) for name in wanted})
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise InputError(f"not a Parquet file that can be read ({reason})") from None


def _refuse_odd_columns(schema: Any) -> None:
    """Names are text or whole numbers, rewards and counts numbers."""
    from pyarrow import types

    for name in ("arm", "client", "reward", "count"):
        fields = [field for field in schema if field.name == name]
        if len(fields) > 1:
            raise InputError(f"column {name!r} is there twice")
        if not fields and name != "count":
            raise InputError(
                f"no column {name!r}: observed rewards need arm, client and reward, "
                f"and may have count (found: {', '.join(schema.names)})"
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
            if name in ("reward", "count") and not (
                types.is_integer(field.type)
                or types.is_floating(field.type)
                or types.is_decimal128(field.type)
            ):
                raise InputError(f"column {name!r} holds {field.type}, must be numbers")


def from_rewards(frame: pl.DataFrame, empty: float | None = None) -> dict[str, Any]:
    """What `Instance` takes, from observed rewards: columns arm, client, reward and, if they are
    counted already, count. Arms and clients in order of name."""
    import polars as pl

    count = pl.col("count") if "count" in frame.columns else pl.lit(1)
    try:
        each = frame.select(
            pl.col("arm").cast(pl.String),
            pl.col("client").cast(pl.String),
            pl.col("reward").cast(pl.Float64),
            count=count.cast(pl.Float64),
        )
    except pl.exceptions.PolarsError as error:
        raise InputError(str(error).splitlines()[0]) from None
    if each.height == 0:
        raise InputError("no rewards in it")
    if any(each[name].null_count() for name in each.columns):
        raise InputError("a row with a missing arm, client, reward or count")
    if not each.select((pl.col("count") >= 0).all() & pl.col("count").is_finite().all()).item():
        raise InputError("a count that is negative or not finite")
    counted = each.group_by("arm", "client", "reward").agg(pl.col("count").sum())
    arms, clients, values = (counted[name].unique().sort() for name in ("arm", "client", "reward"))

    def place(name: str, among: pl.Series) -> Any:
        return among.search_sorted(counted[name]).to_numpy()

    refuse_many_weights(len(arms), len(clients), len(values))
    weights = np.zeros((len(arms), len(clients), len(values)))
    weights[place("arm", arms), place("client", clients), place("reward", values)] = counted[
        "count"
    ].to_numpy()
    return {
        "rewards": Finite(values.to_numpy(), weights, empty),
        "arms": arms.to_list(),
        "clients": clients.to_list(),
    }


def _movielens() -> Instance:
    from fastfed.problem.movielens import builtin_histogram

    content = from_rewards(builtin_histogram(), empty=0.0)
    return Instance(
        name="movielens",
        description="MovieLens (HetRec 2011): genres rated in "
        "countries; counts and means exact, reward shapes reconstructed",
        **content,
    )


_READERS = {".toml": _from_toml, ".csv": _from_csv, ".parquet": _from_parquet}


def to_toml(instance: Instance) -> str:
    """The text of a TOML file that holds everything."""

    def strings(names: tuple[str, ...]) -> str:
        return "[" + ", ".join(map(_toml_string, names)) + "]"

    rows = "".join(f"  [{', '.join(repr(float(x)) for x in row)}],\n" for row in instance.means)
    # a name that nobody chose is not written: the file's own will do
    name = "" if instance.name == "custom" else f"name = {_toml_string(instance.name)}\n"
    return (
        f"{name}description = {_toml_string(instance.description)}\n"
        f"arms = {strings(instance.arms)}\n"
        f"clients = {strings(instance.clients)}\n" + _toml_rewards(instance, rows)
    )


def _toml_rewards(instance: Instance, rows: str) -> str:
    rewards = instance.rewards
    means = "" if rewards.own_means is not None else f"means = [\n{rows}]\n\n"
    return f'{means}[rewards]\nkind = "{rewards.kind}"\n{rewards.toml()}'


def _to_histogram(instance: Instance) -> pl.DataFrame:
    import polars as pl

    if not isinstance(instance.rewards, Finite):
        raise InputError(f"a .parquet holds observed rewards: save {instance.rewards} as .toml")
    k, m, v = np.nonzero(instance.rewards.weights)
    return pl.DataFrame(
        {
            "arm": [instance.arms[i] for i in k],
            "client": [instance.clients[i] for i in m],
            "reward": instance.rewards.values[v],
            "count": instance.rewards.weights[k, m, v],
        }
    )


def _toml_string(text: str) -> str:
    """A TOML basic string: JSON's escapes, plus DEL, which TOML wants escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _to_csv(instance: Instance) -> str:
    if instance.rewards != Gaussian():
        raise InputError(f"a .csv holds means only: save {instance.rewards} as .toml")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["arm", *instance.clients])
    for name, row in zip(instance.arms, instance.means, strict=True):
        writer.writerow([name, *(repr(float(x)) for x in row)])
    return text.getvalue()
