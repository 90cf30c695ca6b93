"""Any split of trials into runs, parts, shards, threads and folders gives the same rows."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
from helpers import BOUNDS, KEYS, SMALL, Call, rows, run, snapshot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import fastfed as ff
from fastfed.storage.merge import merge

NAMES = ["fedelim", "fedelim0", "periodic:4"]
TRIALS = 25


class Run(NamedTuple):
    """One sweep, into one of two folders, which may have lost a part before."""

    folder: str
    schedules: list[str]
    trials: int
    part_size: int
    threads: int
    shard: str | None
    loses_a_part: bool


runs = st.builds(
    Run,
    st.sampled_from("ab"),
    st.lists(st.sampled_from(NAMES), min_size=1, unique=True),
    st.integers(1, TRIALS),
    st.integers(1, TRIALS),
    st.integers(1, 2),
    st.none() | st.sampled_from(["1/1", "1/2", "2/2", "2/3", "7/30"]),
    st.booleans(),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make the rows and the summary of one run."""
    out = tmp_path_factory.mktemp("whole") / "results"
    summary = run(out, schedules=NAMES, trials=TRIALS)
    simulated = ff.simulate(SMALL, NAMES, delta=0.1, trials=TRIALS).frame.sort(KEYS)
    assert rows(out).equals(simulated)
    return rows(out), summary


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(st.lists(runs, min_size=1, max_size=4), st.permutations("aab"), st.sampled_from("abc"))
def test_any_split_gives_the_same_rows(
    calls: list[Call],
    whole: tuple[pl.DataFrame, pl.DataFrame],
    split: list[Run],
    order: list[str],
    into: str,
) -> None:
    """Each run computes what its folder lacks and changes no part; a merge takes each row once."""
    with tempfile.TemporaryDirectory() as folder:
        for one in split:
            held = add(Path(folder, one.folder), one, calls)
            if one.shard is None:
                asked = held.filter(
                    pl.col("trial") < one.trials, pl.col("schedule").is_in(one.schedules)
                )
                assert asked.height == one.trials * len(one.schedules)
        for name in "ab":  # folders of one sweep: both ask for all trials
            run(Path(folder, name), schedules=NAMES, trials=TRIALS, shard="7/30")
        merge([Path(folder, name) for name in order], Path(folder, into))
        summary = run(Path(folder, into), schedules=NAMES, trials=TRIALS)
        found = rows(Path(folder, into))
    keys = ["schedule", "cost"]
    assert found.drop(BOUNDS).equals(whole[0].drop(BOUNDS))
    assert_frame_equal(summary.sort(keys), whole[1].sort(keys), rel_tol=1e-12)


def add(out: Path, one: Run, calls: list[Call]) -> pl.DataFrame:
    """Run a sweep into a folder and return the rows that the folder has then."""
    parts = sorted(out.glob("trials/*.parquet"))
    if one.loses_a_part and len(parts) > 1:
        random.Random(one.trials).choice(parts).unlink()
    before = rows(out).height if parts else 0
    files = snapshot(out / "trials")
    calls.clear()
    options = one._asdict()
    run(out, **{name: options[name] for name in Run._fields[1:-1]})
    assert files.items() <= snapshot(out / "trials").items()
    if not list(out.glob("trials/*.parquet")):  # a shard without trials
        assert calls == []
        return pl.DataFrame(schema=dict.fromkeys(KEYS))
    held = rows(out)
    computed = sum(len(names) * (end - first) for *_, names, first, end in calls)
    assert held.height == before + computed
    assert held.select(KEYS).unique().height == held.height
    return held
