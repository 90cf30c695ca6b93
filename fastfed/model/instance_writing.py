"""Instances written to files: see `fastfed.model.instance_files`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fastfed.errors import InputError
from fastfed.files import replacing
from fastfed.model.instance import Instance
from fastfed.model.rewards import Finite, Gaussian

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".toml", ".csv", ".parquet")


def save(instance: Instance, path: Path) -> None:
    """Write an instance to a file: see `Instance.save`."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"{path}: an instance is saved as .toml, .csv or .parquet, not {path.suffix!r}"
        )
    with replacing(path) as file:
        if suffix == ".parquet":
            _to_histogram(instance).write_parquet(file)
        else:
            text = to_toml(instance) if suffix == ".toml" else _to_csv(instance)
            file.write(text.encode("utf-8", "backslashreplace"))


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
    rewards = instance.rewards
    means = "" if rewards.own_means is not None else f"means = [\n{rows}]\n\n"
    return f'{means}[rewards]\nkind = "{rewards.family}"\n{rewards.toml()}'


def _to_histogram(instance: Instance) -> pl.DataFrame:
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


def _toml_string(text: str) -> str:
    """Write a TOML basic string: with JSON's escapes, and DEL escaped as well."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _to_csv(instance: Instance) -> str:
    if instance.rewards != Gaussian():
        raise InputError(f"a .csv holds means only: save {instance.rewards!r} as .toml")
    if not instance.questions.local:
        raise InputError(f"a .csv holds no option: save {instance.questions.summary} as .toml")
    if "weights" in map(str.lower, instance.arms):
        raise InputError(
            "an arm is named 'weights', which in a .csv names the weights of clients; save the "
            "instance as .toml"
        )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["arm", *instance.clients])
    for name, row in zip(instance.arms, instance.means, strict=True):
        writer.writerow([name, *("" if np.isnan(x) else repr(float(x)) for x in row)])
    for weights in [] if instance.questions.plain else instance.questions.given.tolist():
        writer.writerow(["weights", *map(repr, weights)])
    return text.getvalue()
