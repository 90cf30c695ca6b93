"""Helpers for several test files: small sweeps, their rows, and refused input."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastfed as ff
from fastfed.model.part import Part

SMALL = ff.Instance([[0.9, 0.1], [0.1, 0.4]], name="small")
OTHER = ff.Instance([[0.1, 0.2], [0.6, 0.9], [0.3, 0.1]], name="other")
KEYS = ["instance", "delta", "sigma", "schedule", "trial"]
Call = tuple[str, float, tuple[str, ...], int, int]  # instance, delta, schedules, first, end

KINDS = [
    "fedelim",
    "fedelim0",
    "periodic:7",
    "periodic:100",
    "exponential:1.5",
    "superexponential",
    "at:1,5,25,125,625,3125,15625,78125",
]
EIGHT = [*KINDS, "exponential:1.1"]
"""A schedule of each kind, and one more."""

BOUNDS = ["skip_error", "draw_error"]
"""Columns in which rows of two engines, or of other schedules beside them, may differ."""


def refused(make: Callable[[], Any], *words: str) -> None:
    """``make`` raises an InputError of one line that holds all the words."""
    with pytest.raises(ff.InputError) as caught:
        make()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


def run(out: Path, **options: Any) -> pl.DataFrame:
    """Run a small sweep and return its summary."""
    grid = {
        "instances": [SMALL],
        "deltas": [0.1],
        "costs": [0, 10],
        "trials": 20,
        "threads": 1,
        "schedules": ["fedelim", "fedelim0"],
    }
    wanted = {**grid, **options}
    return ff.sweep(out=out, **wanted).summary(wanted["costs"])


def rows(out: Path) -> pl.DataFrame:
    """As they are in the files: a row that is there twice is seen twice."""
    return pl.read_parquet(out / "trials" / "*.parquet").sort(KEYS)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).digest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def assert_whole(frame: pl.DataFrame, cells: int, trials: int) -> None:
    """None missing, none twice."""
    assert frame.height == cells * trials
    assert frame.select(KEYS).unique().height == frame.height
    assert sorted(set(frame["trial"])) == list(range(trials))


def built_in(kind: type[Part]) -> list[str]:
    """Names of the families that fastfed brings; tests define others."""
    return [name for name, one in kind.families.items() if one.built_in()]


def typed(line: str) -> list[str]:
    """Split a command into its arguments, as a shell does."""
    return shlex.split(line)
