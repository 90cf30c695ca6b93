"""Odd surroundings: one line that names what is wrong, never a traceback or a warning."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import refused

import fastfed as ff
from fastfed.cli import app as cli

ROOT = Path(__file__).resolve().parents[1]
ONE_ARM = ff.Instance([[0.5, 0.2]], name="one arm")


@pytest.mark.parametrize(
    "call",
    [
        lambda path: ff.open_sweep(path),
        lambda path: ff.simulate(ONE_ARM, delta=0.1, trials=2, threads=1).save(path),
        lambda path: ff.simulate(ONE_ARM, delta=0.1, trials=2, threads=1).report(path),
        lambda path: ff.sweep(instances=[ONE_ARM], trials=2, out=path, threads=1),
        lambda path: ONE_ARM.save(f"{path}.toml"),
        lambda path: ff.merge([path], "merged"),
        lambda path: ff.merge(["merged"], path),
    ],
    ids=["open_sweep", "save", "report", "sweep", "Instance.save", "merge", "merge into"],
)
def test_nul_in_a_path_is_refused(call: Callable[[str], object], place: Path) -> None:
    refused(lambda: call("a\0b"), "a NUL character cannot be part of a file's name")


def test_the_report_of_one_arm_warns_of_nothing(tmp_path: Path) -> None:
    result = ff.simulate(ONE_ARM, ["fedelim", "fedelim0"], delta=0.1, trials=20, threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert result.report(tmp_path / "report.html").exists()


def test_gaps_of_one_arm_are_not_drawn() -> None:
    result = ff.simulate(ONE_ARM, delta=0.1, trials=2, threads=1)
    refused(lambda: result.plot(x="gap", cost=10), "instance one arm with goal best has no gap")


def in_a_process(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.process
def test_without_the_compiler(out: Path) -> None:
    sweep = [sys.executable, "-m", "fastfed", "sweep", "--trials", "2", "--out", str(out)]
    done = in_a_process(*sweep, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 2
    assert done.stderr.startswith("fastfed: NUMBA_DISABLE_JIT is set: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="has no such limit")
def test_too_little_memory_is_told_before_a_library_crashes(out: Path) -> None:
    sweep = f"{sys.executable} -m fastfed sweep --trials 2 --out {out}"
    done = in_a_process("sh", "-c", f"ulimit -v 1200000; exec {sweep}")
    assert done.returncode == 2
    assert done.stderr == (
        "fastfed: this process may address 1.2 GB of memory (ulimit -v): it needs 2 GB, and more "
        "with many cores; raise the limit\n"
    )
    assert in_a_process("sh", "-c", f"ulimit -v 1200000; exec {sweep} --help").returncode == 0


def test_an_error_without_a_text_has_a_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(cli, "_program", lambda: fail)
    assert cli.run(["sweep"]) == 2
    assert capsys.readouterr().err == "fastfed: TimeoutError\n"


@pytest.mark.parametrize("method", ["__init__", "read_row_groups"])
def test_a_part_is_not_damaged_because_memory_ran_out(
    method: str, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = ff.simulate([[0.9], [0.1]], "fedelim", delta=0.1, trials=2, threads=1)
    result.save(out)
    before = sorted(path.name for path in (out / "trials").iterdir())

    def fail(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr(pq.ParquetFile, method, fail)
    for command in (
        ["summary", str(out), "--cost", "3"],
        ["sweep", "--spec", str(out / "sweep.json"), "--out", str(out), "--cost", "3"],
    ):
        assert cli.run(command) == 2
        assert capsys.readouterr().err.startswith("fastfed: not enough memory")
    assert sorted(path.name for path in (out / "trials").iterdir()) == before
