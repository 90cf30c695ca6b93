"""TOML files of instances: they hold everything.

Where a client does not have an arm, the cell is nan or "".
"""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from fastfed.errors import InputError, nearest
from fastfed.files import read_text
from fastfed.model.instance import Instance
from fastfed.model.instance_files.reading import Reading, named
from fastfed.model.rewards import Rewards

_KEYS = ("name", "means", "rewards", "weights", "local", "own", "arms", "clients", "description")


def read_toml(path: Path, reading: Reading) -> dict[str, Any]:
    """Read the arguments of `Instance` from a file."""
    return parse_toml(read_text(path), str(path))


def from_toml(text: str, name: str) -> Instance:
    """Read an instance from the text of a TOML file, under this name."""
    return Instance(**{**parse_toml(text, name), "name": name})


def parse_toml(text: str, path: str) -> dict[str, Any]:
    """Read the arguments of `Instance` from the text of a file."""
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
    unknown = sorted(set(options) - set(make.table_keys()))
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r} in [rewards] of kind {kind}")
    if kind == "finite" and not {"values", "weights"} <= set(options):
        raise InputError(f"{path}: finite rewards need values and weights")
    with named(path):
        return make(**options)


def to_toml(instance: Instance) -> str:
    """Write an instance as the text of a TOML file."""
    questions, rewards = instance.questions, instance.rewards
    # a name that nobody chose is not written: the file's own will do
    keys: dict[str, Any] = {} if instance.name == "custom" else {"name": instance.name}
    keys |= {name: getattr(instance, name) for name in ("description", "arms", "clients")}
    if not questions.plain:
        given = questions.given.tolist()
        keys["weights"] = given[0] if len(given) == 1 else given
        if questions.own:
            keys["own"] = True
        elif not questions.local:
            keys["local"] = False
    means = ""
    if rewards.own_means is None:
        rows = (f"  {_toml(row)},\n".replace("NaN", "nan") for row in instance.means.tolist())
        means = f"means = [\n{''.join(rows)}]\n\n"
    return f"{_lines(keys)}{means}[rewards]\n{_lines({'kind': rewards.family, **rewards.table})}"


def _lines(keys: dict[str, Any]) -> str:
    return "".join(f"{name} = {_toml(value)}\n" for name, value in keys.items())


def _toml(value: Any) -> str:
    """Write a value in TOML: as JSON, in which DEL is escaped as well."""
    plain = value.tolist() if isinstance(value, np.ndarray) else value
    return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007f")
