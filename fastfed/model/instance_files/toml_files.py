"""TOML files of instances: they hold everything.

Where a client does not have an arm, the cell is nan or "".
"""

from __future__ import annotations

import json
import math
import tomllib
from typing import Any

import numpy as np

from fastfed.errors import InputError, nearest
from fastfed.model.instance import Instance
from fastfed.model.instance_files.reading import named
from fastfed.model.rewards import Rewards

_KEYS = ("name", "means", "rewards", "weights", "local", "own", "arms", "clients", "description")


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

    def strings(names: tuple[str, ...]) -> str:
        return "[" + ", ".join(map(_toml_string, names)) + "]"

    rows = "".join(f"  [{', '.join(repr(float(x)) for x in row)}],\n" for row in instance.means)
    # a name that nobody chose is not written: the file's own will do
    name = "" if instance.name == "custom" else f"name = {_toml_string(instance.name)}\n"
    return (
        f"{name}description = {_toml_string(instance.description)}\n"
        f"arms = {strings(instance.arms)}\n"
        f"clients = {strings(instance.clients)}\n"
        f"{_toml_questions(instance)}{_toml_rewards(instance, rows)}"
    )


def _toml_questions(instance: Instance) -> str:
    questions = instance.questions
    if questions.plain:
        return ""
    given = questions.given.tolist()
    text = f"weights = {given[0] if len(given) == 1 else given!r}\n"
    if questions.own:
        return f"{text}own = true\n"
    return text if questions.local else f"{text}local = false\n"


def _toml_rewards(instance: Instance, rows: str) -> str:
    means = "" if instance.rewards.own_means is not None else f"means = [\n{rows}]\n\n"
    text = f'{means}[rewards]\nkind = "{instance.rewards.family}"\n'
    for name, value in instance.rewards.table.items():
        plain = value.tolist() if isinstance(value, np.ndarray) else value
        text += f"{name} = {_toml_string(plain) if isinstance(plain, str) else plain}\n"
    return text


def _toml_string(text: str) -> str:
    """Write a TOML basic string: with JSON's escapes, and DEL escaped as well."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
