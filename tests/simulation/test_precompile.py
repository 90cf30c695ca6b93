"""Kernels compiled ahead of time: one for every combination of classes that a run can have."""

from __future__ import annotations

import math
from itertools import product

import pytest
from helpers import built_in
from numba import typeof

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.kernels import radii
from fastfed.model.choices import DEFAULTS
from fastfed.model.goals import Goal
from fastfed.model.radii import Radius
from fastfed.model.uplinks import Uplink
from fastfed.simulation import precompile
from fastfed.simulation.job import Job
from fastfed.simulation.precompile import Combination, combinations

OPTIONS = {"top": "1", "eps": "0.3", "threshold": "0.5", "dither": "0.5", "round": "0.2"}


def classes(job: Job) -> tuple[type, ...]:
    """Return the classes that a kernel is compiled for."""
    problem, times = job._problem, job._times
    return tuple(type(one) for one in (*problem, times.chosen) if isinstance(one, tuple))


def names(kind: type) -> list[str]:
    return [f"{name}:{OPTIONS[name]}" if name in OPTIONS else name for name in built_in(kind)]


RADII = [one for one in names(Radius) if one != "betting"]  # which has a kernel of its own


def test_every_combination_of_classes_is_compiled() -> None:
    """16 kernels, and no two combinations with the same one."""
    compiled = {classes(one.job()) for one in combinations(every=True)}
    assert len(compiled) == len(combinations(every=True)) == 16
    some = set(precompile.REWARDS) - {"poisson"}
    # servers that visit every round are compiled at their first use
    uplinks = [one for one in names(Uplink) if not Uplink.families[one.split(":")[0]].visits_rounds]
    for rewards, radius, uplink in product(some, RADII, uplinks):
        chosen = {"radius": radius, "uplink": uplink}
        assert classes(Combination(rewards, DEFAULTS | chosen).job()) in compiled
    for goal in names(Goal):
        assert classes(Combination("poisson", DEFAULTS | {"goal": goal}).job()) in compiled


def test_tables_of_all_radii_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's table needs no compiled code, that of any other radius does."""
    filled = []
    monkeypatch.setattr(radii, "tabulate", lambda radius: filled.append(radius.kind))
    monkeypatch.setattr(Job, "run", lambda *given: None)
    for one in combinations(every=False):
        filled.clear()
        radii.make_radius.cache_clear()
        precompile.compile_one(one)
        assert filled
    radii.make_radius.cache_clear()  # its tables are empty


def test_all_radii_share_their_kernels() -> None:
    kinds = set()
    for radius in (*RADII, Radius(lambda n, a: math.log(4.0 / a) + 2.0 * math.log(n), name="own")):
        job = Job.of(ff.Instance([[1.0], [0.0]]), "fedelim", delta=0.1, radius=radius)
        kinds.add(typeof(job._problem))
    assert len(kinds) == 1


def test_the_command_compiles(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = [Combination("gaussian"), Combination("finite")]
    monkeypatch.setattr(precompile, "combinations", lambda every: few)
    assert cli.run(["compile", "--threads", "1"]) == 0
    streams = capsys.readouterr()
    assert streams.out == "2 kernels are compiled\n"
    assert streams.err.splitlines() == [
        "fastfed: compiled 1 of 2: gaussian; paper; best; exact; full; fedelim",
        "fastfed: compiled 2 of 2: finite; paper; best; exact; full; fedelim",
    ]
    assert cli.run(["compile", "--threads", "0"]) == 2
