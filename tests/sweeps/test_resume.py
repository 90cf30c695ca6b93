"""A sweep run again: what is kept, what is added, what is refused, and what a kill leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from helpers import BOUNDS, KEYS, OTHER, SMALL, Call, assert_whole, rows, run, snapshot, typed

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.errors import InputError
from fastfed.storage import manifest
from fastfed.storage.folder import Store
from fastfed.storage.summary_cache import stored_summary
from fastfed.version import ROWS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


# Resume


def test_the_same_again_does_nothing(out: Path, calls: list[Call]) -> None:
    first = run(out)
    calls.clear()
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.*") if path.name != ".lock"}
    assert run(out).equals(first)
    assert calls == []
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_more_trials_add_only_theirs(out: Path, calls: list[Call]) -> None:
    run(out)
    before = snapshot(out / "trials")
    calls.clear()
    run(out, trials=50)
    assert calls == [("small", 0.1, ("fedelim", "fedelim0"), 20, 50)]
    assert before.items() <= snapshot(out / "trials").items()
    assert_whole(rows(out), 2, 50)


def test_fewer_trials_take_nothing_away(out: Path, calls: list[Call]) -> None:
    run(out)
    before = snapshot(out / "trials")
    calls.clear()
    run(out, trials=5)
    assert calls == []
    assert snapshot(out / "trials") == before


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"deltas": [0.1, 0.05]}, ("small", 0.05, ("fedelim", "fedelim0"), 0, 20)),
        ({"deltas": [0.05]}, ("small", 0.05, ("fedelim", "fedelim0"), 0, 20)),
        (
            {"schedules": ["fedelim", "periodic:3", "fedelim0"]},
            ("small", 0.1, ("periodic:3",), 0, 20),
        ),
        ({"schedules": ["fedelim"], "periods": [3]}, ("small", 0.1, ("periodic:3",), 0, 20)),
        ({"instances": [OTHER, SMALL]}, ("other", 0.1, ("fedelim", "fedelim0"), 0, 20)),
        ({"sigma": [1.0, 2.0]}, ("small", 0.1, ("fedelim", "fedelim0"), 0, 20)),
    ],
    ids=["delta", "only another delta", "schedule", "period", "instance", "sigma"],
)
def test_more_of_the_grid_adds_only_its_own(
    out: Path, calls: list[Call], more: dict[str, Any], expected: Call
) -> None:
    run(out)
    before = snapshot(out / "trials")
    calls.clear()
    run(out, **more)
    assert calls == [expected]
    assert before.items() <= snapshot(out / "trials").items()
    assert rows(out).select(KEYS).unique().height == rows(out).height
    summary = stored_summary(out)
    assert set(summary["trials"]) == {20}
    assert summary.height == 2 * rows(out).select(KEYS[:-1]).unique().height


def test_schedules_added_later_see_the_same_walks(tmp_path: Path) -> None:
    run(tmp_path / "bit by bit", schedules=["fedelim"])
    run(tmp_path / "bit by bit", schedules=["fedelim0", "periodic:4"], trials=30)
    run(tmp_path / "bit by bit", schedules=["fedelim", "periodic:4"], trials=30)
    run(tmp_path / "at once", schedules=["fedelim", "fedelim0", "periodic:4"], trials=30)
    found, expected = (rows(tmp_path / name).drop(BOUNDS) for name in ("bit by bit", "at once"))
    assert found.equals(expected)
    keys = ["schedule", "cost"]
    assert (
        stored_summary(tmp_path / "bit by bit")
        .sort(keys)
        .equals(stored_summary(tmp_path / "at once").sort(keys))
    )


@pytest.mark.usefixtures("small_parts")
def test_a_part_that_went_is_done_again(out: Path, calls: list[Call]) -> None:
    run(out)
    before = rows(out)
    calls.clear()
    next((out / "trials").glob("*-0000000010-*")).unlink()
    run(out)
    assert calls == [("small", 0.1, ("fedelim", "fedelim0"), 10, 15)]
    assert rows(out).equals(before)


def test_killed_before_the_summary(out: Path) -> None:
    summary = run(out)
    (out / "summary.parquet").unlink()
    assert run(out).equals(summary)
    assert (out / "summary.parquet").exists()
    (out / "summary.parquet").unlink()
    assert stored_summary(out).equals(summary)


# Refused


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"seed": 1}, ["seed 0", "seed 1"]),
        ({"engine": "dense"}, ["engine dense"]),
        ({"max_steps": 1000}, ["max_steps None", "max_steps 1000"]),
        (
            {"instances": [ff.Instance([[0.8, 0.1], [0.1, 0.4]], name="small")]},
            ["'small'", "means"],
        ),
        (
            {"instances": [ff.Instance(SMALL.means, ff.Gaussian(2.0), name="small")]},
            ["'small'", "rewards"],
        ),
    ],
    ids=["seed", "engine", "max_steps", "means", "rewards"],
)
def test_what_does_not_fit_is_refused(
    out: Path, calls: list[Call], changed: dict[str, Any], named: list[str]
) -> None:
    run(out)
    before = snapshot(out)
    calls.clear()
    with pytest.raises(InputError) as told:
        run(out, **changed)
    assert all(part in str(told.value) for part in [str(out), "--out", *named])
    assert calls == []
    assert snapshot(out) == before
    run(out)
    assert snapshot(out) == before


def test_rows_of_another_version_are_refused(out: Path) -> None:
    run(out)
    record = msgspec.structs.replace(Store(out).record(), rows=ROWS - 1)
    manifest.write_record(out / "sweep.json", record)
    before = snapshot(out)
    with pytest.raises(
        InputError, match=f"holds rows with version {ROWS - 1}, this sweep has version {ROWS}"
    ):
        run(out)
    assert snapshot(out) == before


def test_a_record_that_went_is_made_again_by_the_same_sweep(out: Path, calls: list[Call]) -> None:
    run(out)
    before = snapshot(out)
    (out / "sweep.json").unlink()
    with pytest.raises(InputError, match=r"no sweep\.json in it"):
        stored_summary(out)
    calls.clear()
    with pytest.raises(InputError, match=r"rows of another sweep \(small.*seed 0"):
        run(out, seed=1)
    assert not (out / "sweep.json").exists()
    run(out)
    assert calls == []
    assert snapshot(out) == before


def test_two_instances_of_one_name_are_refused(out: Path) -> None:
    with pytest.raises(InputError, match="'small'"):
        run(out, instances=[SMALL, ff.Instance(OTHER.means, name="small")])
    assert not out.exists()


def test_a_second_sweep_is_told(out: Path, calls: list[Call]) -> None:
    run(out)
    before = snapshot(out)
    calls.clear()
    with Store(out).lock(), pytest.raises(InputError, match="another sweep is writing here"):
        run(out, trials=100)
    assert calls == []
    assert snapshot(out) == before


# Left early, or killed


@pytest.mark.usefixtures("small_parts")
def test_leaving_early_keeps_what_is_there(out: Path) -> None:
    options: dict[str, Any] = {
        "instances": SMALL,
        "deltas": [0.1],
        "schedules": ["fedelim"],
        "trials": 40,
        "out": out,
        "threads": 1,
    }
    parts = ff.sweep_parts(**options)
    first = next(part for _, part in parts if part is not None)
    parts.close()
    before = snapshot(out / "trials")
    assert first.path.name in before
    ff.sweep(**options)
    assert before.items() <= snapshot(out / "trials").items()
    assert_whole(rows(out), 1, 40)


DRIVER = """
import os, signal, sys
from fastfed.cli import app as cli
from fastfed.api.sweep import SWEEP
SWEEP["part_size"] = 5
import fastfed.simulation.job, polars, pyarrow.parquet
left = int(sys.argv[1])  # until the kill: file operations, or none

def counted(real):
    def operation(*arguments):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)
    return operation

if left:
    os.fsync, os.replace = counted(os.fsync), counted(os.replace)
print("ready", flush=True)
sys.exit(cli.run(sys.argv[2:]))
"""


def kills() -> Iterator[tuple[int, float]]:
    """After so many file operations, or so many seconds: seeded, in any order."""
    rng = np.random.default_rng(2023)
    moments = [(int(n), 0.0) for n in rng.integers(1, 16, 4)]
    moments += [(0, float(s)) for s in rng.uniform(0, 0.2, 3)]
    yield from (moments[i] for i in rng.permutation(len(moments)))


def test_killed_again_and_again(tmp_path: Path, out: Path) -> None:
    SMALL.save(tmp_path / "small.toml")
    command = [
        "sweep",
        "--instance",
        str(tmp_path / "small.toml"),
        *typed("--delta 0.1,0.01 --schedule fedelim,fedelim0 --trials 100 --threads 2 --quiet"),
    ]
    assert cli.run([*command, "--out", str(tmp_path / "undisturbed")]) == 0
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    killed = 0
    before: dict[str, bytes] = {}
    for operations, seconds in kills():
        with subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(operations), *command, "--out", str(out)],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout.readline() == b"ready\n", process.stderr.read()
            if not operations:
                time.sleep(seconds)
                process.kill()
            errors = process.communicate()[1]
        assert process.returncode in (-signal.SIGKILL, 0), errors.decode()
        assert errors == b""
        killed += process.returncode != 0
        after = snapshot(out / "trials") if out.exists() else {}
        complete = {name: digest for name, digest in after.items() if not name.startswith(".")}
        assert before.items() <= complete.items(), "finished parts stay as they are"
        Store(out).verify()
        before = complete
    assert killed >= 4
    assert cli.run([*command, "--out", str(out)]) == 0
    assert before.items() <= snapshot(out / "trials").items()
    assert list(out.rglob(".*.partial")) == []
    assert_whole(rows(out), 4, 100)
    assert rows(out).equals(rows(tmp_path / "undisturbed"))
    assert pl.read_parquet(out / "summary.parquet").equals(
        pl.read_parquet(tmp_path / "undisturbed" / "summary.parquet")
    )


def test_a_smaller_sweep_takes_nothing_from_the_record(out: Path) -> None:
    """The record asks for all that was asked for; what the last call asked for is kept as such."""
    run(out, costs=[0, 50], deltas=[0.1, 0.01], trials=20)
    run(out, costs=[7], deltas=[0.1], schedules=["periodic:5"], trials=10)
    record = Store(out).record()
    assert record.spec.cost == [0.0, 50.0, 7.0]
    assert record.spec.delta == [0.1, 0.01]
    assert record.spec.schedule == ["fedelim", "fedelim0", "periodic:5"]
    assert record.spec.trials == 20
    assert record.asked_last.cost == [7.0]
    assert (record.asked_last.schedule, record.asked_last.trials) == (["periodic:5"], 10)
    assert set(ff.open_sweep(out).summary()["cost"]) == {0.0, 50.0, 7.0}
    run(out, costs=[0, 50, 7], deltas=[0.1, 0.01], trials=20, schedules=record.spec.schedule)
    assert Store(out).record().last_spec is None


def test_the_record_keeps_the_stricter_target(out: Path) -> None:
    """The smaller of two targets asks for more, and all trials ask for more than any target."""
    for target, kept in ((0.5, 0.5), (0.4, 0.4), (0.5, 0.4), (None, None), (0.5, None)):
        run(out, target_rse=target)
        record = Store(out).record()
        assert (record.spec.target_rse, record.asked_last.target_rse) == (kept, target)
