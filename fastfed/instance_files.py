"""Instances by name and by file.

TOML holds everything; CSV holds the means, with an optional header of client names and an
optional first column of arm names. Built-ins are TOML files in ``data/``.
"""

from __future__ import annotations

import csv
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from fastfed.errors import InputError, nearest
from fastfed.instance import Instance
from fastfed.rewards import Gaussian

FAMILIES = {
    "random": "random:K,M,SEED (uniform means)",
    "scaled": "scaled:NAME,FACTOR (another instance's means, multiplied)",
}
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
_MAX_CELLS = 10_000_000


def data_folder() -> Path:
    """``data/`` inside an installed package, or beside the package in a checkout."""
    here = Path(__file__).resolve().parent
    return here / "data" if (here / "data").is_dir() else here.parent / "data"


def builtin_names() -> list[str]:
    """What `Instance.load` knows by name."""
    return sorted(path.stem for path in data_folder().glob("*.toml"))


def load(source: str | Path) -> Instance:
    text = str(source)
    family, colon, arguments = text.partition(":")
    if isinstance(source, str) and colon and family in FAMILIES:
        return _random(text, arguments) if family == "random" else _scaled(text, arguments)
    if isinstance(source, str) and text in builtin_names():
        return _load_file(data_folder() / f"{text}.toml", text)
    path = Path(source)
    if path.suffix.lower() in _READERS:
        return _load_file(path, path.stem)
    known = [*builtin_names(), *(f"{name}:" for name in FAMILIES)]
    raise InputError(
        f"unknown instance {text!r}{nearest(text, known)}: a built-in "
        f"({', '.join(builtin_names())}), {', '.join(FAMILIES.values())}, or a file ending in "
        f"{', '.join(_READERS)}"
    )


def save(instance: Instance, path: Path) -> None:
    writer = {".toml": _to_toml, ".csv": _to_csv}.get(path.suffix.lower())
    if writer is None:
        raise InputError(f"{path}: an instance is saved as .toml or .csv, not {path.suffix!r}")
    path.write_text(writer(instance), encoding="utf-8", newline="")


def _random(text: str, arguments: str) -> Instance:
    try:
        arms, clients, seed = (int(part) for part in arguments.split(","))
    except ValueError:
        raise InputError(f"{text!r}: must be random:K,M,SEED, three whole numbers") from None
    if arms < 1 or clients < 1 or arms * clients > _MAX_CELLS:
        raise InputError(f"{text!r}: K and M must be at least 1, K x M at most {_MAX_CELLS:,}")
    if not 0 <= seed < 2**64:
        raise InputError(f"{text!r}: the seed must lie in 0 .. 2^64 - 1")
    # raw Philox words: NumPy promises them for ever, which it does not for Generator.random
    words = np.random.Philox(key=seed).random_raw(arms * clients)
    means = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return Instance(means.reshape(arms, clients), name=text,
                    description=f"means uniform in [0, 1), seed {seed}")


def _scaled(text: str, arguments: str) -> Instance:
    name, comma, factor_text = arguments.rpartition(",")
    if not comma or not _NUMBER.fullmatch(factor_text):
        raise InputError(f"{text!r}: must be scaled:NAME,FACTOR, as in scaled:synthetic,0.1")
    factor = float(factor_text)
    if factor <= 0:
        raise InputError(f"{text!r}: the factor must be above 0")
    base = load(name)
    return Instance(base.means * factor, base.rewards, arms=base.arms, clients=base.clients,
                    name=text, description=f"{base.name}, means x {factor:g}")


def _load_file(path: Path, name: str) -> Instance:
    reader = _READERS[path.suffix.lower()]
    try:
        content = reader(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    try:
        return Instance(name=name, **content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _from_toml(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None
    unknown = sorted(set(content) - {"means", "rewards", "arms", "clients", "description"})
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r}"
                         f"{nearest(unknown[0], ['means', 'rewards', 'arms', 'clients'])}")
    if "means" not in content:
        raise InputError(f"{path}: no 'means'; write means = [[...], ...], one row per arm")
    if not isinstance(content.get("description", ""), str):
        raise InputError(f"{path}: description must be a string")
    content["rewards"] = _rewards(path, content.get("rewards", {}))
    return content


def _rewards(path: Path, table: object) -> Gaussian:
    if not isinstance(table, dict):
        raise InputError(f"{path}: rewards must be a table, as in [rewards] kind = \"gaussian\"")
    options = dict(table)
    kind = options.pop("kind", "gaussian")
    if kind != "gaussian":
        raise InputError(f"{path}: unknown rewards kind {kind!r}; known: gaussian")
    unknown = sorted(set(options) - {"sigma"})
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r} in [rewards]")
    return Gaussian(**options)


def _from_csv(path: Path) -> dict[str, Any]:
    with path.open(encoding="utf-8-sig", newline="") as file:
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

    def is_number(cell: str) -> bool:
        return _NUMBER.fullmatch(cell) is not None

    corner = rows[0][0].strip().lower() in ("", "arm", "arms")
    header = corner or not all(map(is_number, rows[0][1:])) or (
        width == 1 and not is_number(rows[0][0]))
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


_READERS = {".toml": _from_toml, ".csv": _from_csv}


def _to_toml(instance: Instance) -> str:
    def strings(names: tuple[str, ...]) -> str:
        return "[" + ", ".join(map(_toml_string, names)) + "]"

    rows = "".join(f"  [{', '.join(repr(float(x)) for x in row)}],\n" for row in instance.means)
    return (
        f"description = {_toml_string(instance.description)}\n"
        f"arms = {strings(instance.arms)}\n"
        f"clients = {strings(instance.clients)}\n"
        f"means = [\n{rows}]\n\n"
        f'[rewards]\nkind = "gaussian"\nsigma = {instance.rewards.sigma!r}\n'
    )


def _toml_string(text: str) -> str:
    """A TOML basic string: JSON's escapes, plus DEL, which TOML wants escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _to_csv(instance: Instance) -> str:
    if instance.rewards != Gaussian():
        raise InputError(f"a .csv holds means only: save {instance.rewards} as .toml")
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["arm", *instance.clients])
    for name, row in zip(instance.arms, instance.means, strict=True):
        writer.writerow([name, *(repr(float(x)) for x in row)])
    return text.getvalue()
