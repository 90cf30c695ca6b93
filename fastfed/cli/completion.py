"""Completion in a shell: names of instances, schedules, radii and reward distributions.

A shell starts the program anew at every press of the key, so nothing heavy is imported here. Names
that live beside NumPy are spelt again, and a test compares them with their owners.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from glob import escape, glob
from pathlib import Path

from fastfed.files import data_folder
from fastfed.model.choices import CHOICES

SCHEDULES = (
    "fedelim",
    "fedelim0",
    "adaptive:",
    "periodic:",
    "exponential:",
    "superexponential",
    "at:",
    "rounds:",
    "phases",
    "halving:",
    "oracle:",
    "dp-se:",
)
FAMILIES = ("random:", "scaled:", "gaussian:")
LAWS = ("gaussian", "bernoulli", "poisson")
SUFFIXES = (".toml", ".csv", ".parquet")


def instances(incomplete: str) -> list[str]:
    """List the built-in names, families, files and folders that begin with ``incomplete``."""
    built_in = sorted(
        [*(path.stem for path in data_folder().glob("*.toml")), "movielens", "movielens-available"]
    )
    return [*_beginning([*built_in, *FAMILIES], incomplete), *_files(incomplete)]


def schedules(incomplete: str) -> list[str]:
    """Complete the last name in a comma list of schedules."""
    return _last_of_a_list(SCHEDULES, incomplete)


def choice(kind: str) -> Callable[[str], list[str]]:
    """Return the function that completes names of a radius, a goal or another choice."""
    beginnings = [re.sub(r"(\[:|(?<=:)).*", "", one) for one in CHOICES[kind].grammars]
    return lambda incomplete: _last_of_a_list(beginnings, incomplete)


def laws(incomplete: str) -> list[str]:
    """Complete the name of a reward distribution."""
    return _beginning(LAWS, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _last_of_a_list(names: Iterable[str], incomplete: str) -> list[str]:
    """Complete the item after the last comma; names in the list are not offered again."""
    before, comma, last = incomplete.rpartition(",")
    held = before.split(",")
    return [
        f"{before}{comma}{name}"
        for name in _beginning(names, last)
        if name.endswith(":") or name not in held
    ]


def _files(incomplete: str) -> list[str]:
    """List instance files and folders whose paths begin with ``incomplete``."""
    found = sorted(glob(f"{escape(incomplete)}*"))  # noqa: PTH207 - keeps the text that was typed
    shown = [f"{name}/" if Path(name).is_dir() else name for name in found]
    return [name for name in shown if name.lower().endswith(("/", *SUFFIXES))]
