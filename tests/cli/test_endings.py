"""Ends of commands: exit status, lines on stderr, lost outputs, Ctrl-C."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command_line import (
    ENVIRONMENT,
    GRID,
    fastfed,
    interrupted_on_a_terminal,
    shell,
    twice,
    without_progress,
)
from dask_sweeps import cluster_elsewhere
from helpers import SMALL, typed

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.sweeps import task as tasks


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter the folder in which commands run."""
    monkeypatch.chdir(tmp_path)
    SMALL.save(tmp_path / "small.toml")
    return tmp_path


@pytest.mark.process
def test_python_m_fastfed() -> None:
    done = fastfed("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"fastfed {ff.__version__}\n", "")


@pytest.mark.process
def test_bad_input_is_exit_2_and_one_line() -> None:
    done = fastfed("sweep", "--delta", "2")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fastfed: delta = '2'")
    assert len(done.stderr.splitlines()) == 1
    assert not Path("results").exists()


@pytest.fixture
def every_task_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(tasks, "compute", never)


@pytest.mark.usefixtures("every_task_fails")
def test_failed_task_is_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["sweep", "--instance", "small.toml", *GRID, "--quiet"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "MemoryError: no room" in told.err


@pytest.mark.usefixtures("every_task_fails")
def test_failed_tasks_are_shown_with_the_table_of_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Even if every task failed and the table is empty."""
    assert cli.run(["sweep", "--instance", "small.toml", *GRID]) == 1
    assert "MemoryError: no room" in capsys.readouterr().err


@pytest.mark.process
@pytest.mark.parametrize("command", [["summary", "GOOD"], []], ids=" ".join)
def test_reader_that_goes_away(command: list[str], good: Path) -> None:
    """As in `fastfed summary DIR | head -0` and `fastfed | head -0`."""
    ready = [str(good) if word == "GOOD" else word for word in command]
    read, write = os.pipe()
    os.close(read)
    with subprocess.Popen(
        [sys.executable, "-m", "fastfed", *ready],
        env=ENVIRONMENT,
        stdout=write,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(write)
        assert process.stderr.read() == b""
    assert process.returncode in (0, -signal.SIGPIPE)


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "command",
    [
        ["summary", "GOOD"],
        ["summary", "GOOD", "--format", "json"],
        ["instances"],
        ["--help"],
        ["replay", "synthetic"],
    ],
    ids=" ".join,
)
def test_full_disk_under_stdout(good: Path, command: list[str]) -> None:
    ready = [str(good) if word == "GOOD" else word for word in command]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fastfed", *ready],
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "fastfed: stdout: No space left on device\n")


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_full_disk_under_stdout_and_then_bad_input() -> None:
    """Output before the error is lost, and yet the status is 2, not Python's 120."""
    code = """
import sys
from fastfed.cli import app as cli
from fastfed.__main__ import main
from fastfed.errors import InputError
def fails():
    print("something")
    raise InputError("and then no more")
cli.app.command("fails")(fails)
sys.argv = ["fastfed", "fails"]
main()
"""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "fastfed: and then no more\n")


@pytest.mark.process
def test_closed_stdout() -> None:
    """Results would be lost without a word; and no file may be opened in its place."""
    sweep = "$FASTFED sweep --instance small.toml --trials 3 --delta 0.1 --schedule fedelim"
    done = shell(f"{sweep} >&-")
    assert (done.returncode, done.stdout) == (2, "")
    assert without_progress(done.stderr) == "fastfed: stdout: Bad file descriptor\n"
    assert pl.read_parquet("results/trials/*.parquet")["trial"].n_unique() == 3
    assert shell(f"{sweep} --quiet >&-").returncode == 0


@pytest.mark.process
@pytest.mark.parametrize("closed", ["2>&-", "<&-", "<&- 2>&-"])
def test_other_closed_files(closed: str) -> None:
    done = shell(f"$FASTFED instances {closed}")
    assert done.returncode == 0
    assert "\nname " in done.stdout
    assert shell(f"$FASTFED sweep --delta 2 {closed}").returncode == 2


@pytest.mark.process
def test_stdout_that_knows_only_ascii(good: Path) -> None:
    done = shell(f"$FASTFED summary {shlex.quote(str(good))}", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "+-" in done.stdout
    assert done.stdout.isascii()


@pytest.mark.process
def test_json_on_a_stdout_that_knows_only_ascii() -> None:
    ff.Instance(SMALL.means).save("kleine Ärme 🎰.toml")  # without a name of its own
    done = shell(
        "$FASTFED sweep --instance 'kleine Ärme 🎰.toml' --trials 3 --quiet --delta 0.1 "
        "--schedule fedelim && "
        "$FASTFED summary results --format json",
        PYTHONIOENCODING="ascii",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert {row["instance"] for row in json.loads(done.stdout)} == {"kleine Ärme 🎰"}


INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where tests run
from fastfed.__main__ import main
sys.argv = ["fastfed", *sys.argv[1:]]
main()
"""


@pytest.fixture(params=["threads", pytest.param("dask", marks=pytest.mark.slow)])
def workers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[str]]:
    """Give the options of a sweep on threads, or on the workers of a cluster."""
    if request.param == "threads":
        yield ["--threads", "2"]
        return
    with cluster_elsewhere(tmp_path_factory.mktemp("cluster")) as (address, _):
        yield ["--dask", address]


@pytest.mark.process
def test_ctrl_c_keeps_what_is_finished(
    workers: list[str],
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    command = [
        *typed(
            "sweep --instance small.toml --delta 0.1,0.01 --schedule fedelim,fedelim0 "
            "--trials 100000000 --out"
        ),
        "my results",
        *workers,
    ]
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *command],
        env={**ENVIRONMENT, "TMPDIR": str(temporary)},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        patience = time.monotonic() + 600
        while (
            process.poll() is None
            and time.monotonic() < patience
            and len(list(folder.glob("my results/trials/*.parquet"))) < 4
        ):
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        shown, told = process.communicate()
    assert process.returncode == 130, told
    assert shown == ""
    assert list(temporary.iterdir()) == []
    lines = [line for line in without_progress(told).splitlines() if line]
    assert all(line.startswith("fastfed: ") for line in lines), told
    assert len(lines) == 1 + ("--dask" in workers)  # which names its address
    line = lines[-1]
    assert shlex.split(line.split("go on with: ")[1]) == ["fastfed", *command]
    # finished parts are whole and are not done again
    parts = {
        path.name: path.read_bytes()
        for path in (folder / "my results" / "trials").glob("*.parquet")
    }
    assert parts
    command[command.index("--trials") + 1] = "250"
    twice(capsys, *command[:-2])
    assert (
        parts.items()
        <= {
            path.name: path.read_bytes() for path in (folder / "my results" / "trials").iterdir()
        }.items()
    )
    assert list(folder.rglob(".*.partial")) == []
    rows = pl.read_parquet("my results/trials/*.parquet").filter(pl.col("trial") < 250)
    assert rows.height == 2 * 2 * 250
    expected = ff.simulate(SMALL, ["fedelim", "fedelim0"], delta=0.1, trials=250, threads=1).frame
    keys = ["schedule", "trial"]
    assert rows.filter(pl.col("delta") == 0.1).sort(keys).equals(expected.sort(keys))


BAR = "━"  # what bars are drawn with


@pytest.mark.process
def test_ctrl_c_leaves_no_bar_behind() -> None:
    status, lines = interrupted_on_a_terminal(
        "import sys; from fastfed.__main__ import main; sys.argv[0] = 'fastfed'; main()",
        "sweep",
        "--instance",
        "small.toml",
        "--delta",
        "0.1",
        "--schedule",
        "fedelim",
        "--trials",
        "100000000",
        until=f"{BAR}.*[1-9] trials/s",
    )
    assert status == 130
    assert len(lines) == 1, lines
    assert lines[0].startswith("fastfed: stopped; finished parts are kept, go on with: fastfed")


@pytest.mark.process
def test_simulate_comes_back_after_ctrl_c_without_a_bar() -> None:
    """It has work for hours: only that it stops lets this test end."""
    status, lines = interrupted_on_a_terminal(
        "import fastfed as ff\n"
        "try: ff.simulate('synthetic', delta=1e-9, trials=10**9, progress=True)\n"
        "except KeyboardInterrupt: print('back')",
        until=BAR,
    )
    assert (status, lines) == (0, ["back"])


EARLY = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.process
@pytest.mark.parametrize("module", ["typer", "numpy", "polars", "numba"])
def test_ctrl_c_while_something_is_imported(module: str, folder: Path) -> None:
    (folder / "early").mkdir()
    (folder / "early" / f"{module}.py").write_text(EARLY)
    path = os.pathsep.join([str(folder / "early"), ENVIRONMENT["PYTHONPATH"]])
    done = shell("$FASTFED sweep --instance small.toml --trials 3", PYTHONPATH=path)
    assert done.returncode == 130
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert done.stderr.startswith("fastfed: stopped")


@pytest.mark.process
def test_next_to_nothing_is_imported_before_ctrl_c_is_caught() -> None:
    code = """
import sys
before = set(sys.modules)
import fastfed.__main__
print(sorted(set(sys.modules) - before - {"__future__"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "['fastfed', 'fastfed.__main__']\n"


def test_ctrl_c_stops_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their threads would go on for as long as a part takes."""
    started, stopped = threading.Event(), threading.Event()

    def compute(task: tasks.Task, control: Any) -> tuple[Any, int]:
        started.set()
        until = time.monotonic() + 300
        while not control.stop[0] and time.monotonic() < until:
            time.sleep(0.01)
        if control.stop[0]:
            stopped.set()
        return None, 0

    monkeypatch.setattr(tasks, "compute", compute)
    run = ff.sweep_parts(instances=[SMALL], deltas=[0.1], trials=5, threads=1)
    while not started.is_set():
        next(run)
    with pytest.raises(KeyboardInterrupt):
        run.throw(KeyboardInterrupt)
    assert stopped.wait(300)


def test_ctrl_c_in_this_process(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fastfed.cli.sweep.sweep_text", interrupt)
    assert cli.run(["sweep", "--instance", "small.toml", *GRID]) == 130
    assert "go on with: fastfed sweep --instance small.toml" in capsys.readouterr().err
