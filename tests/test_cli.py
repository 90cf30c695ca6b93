"""The command line: called in this process, each command twice; in another only where it must."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer
from helpers import SMALL

import fastfed as ff
from fastfed import cli
from fastfed.sweeps import task as tasks

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONUNBUFFERED": "", "PYTHONPATH": os.pathsep.join(
    filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
COMMANDS = sorted(typer.main.get_command(cli.app).commands)
GRID = ["--delta", "0.1", "--schedule", "fedelim,fedelim0", "--period", "10", "--trials", "20",
        "--threads", "1"]


def fastfed(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "fastfed", *arguments], env=ENVIRONMENT,
                          capture_output=True, text=True, check=False, **options)


def twice(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command prints, both times, with nothing on stderr."""
    capsys.readouterr()
    assert cli.run(list(arguments)) == 0
    first = capsys.readouterr()
    assert cli.run(list(arguments)) == 0
    assert capsys.readouterr() == first
    assert first.err == ""
    return first.out


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands run."""
    monkeypatch.chdir(tmp_path)
    SMALL.save(tmp_path / "small.toml")
    return tmp_path


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep to read from."""
    out = tmp_path_factory.mktemp("swept") / "results"
    ff.sweep(instances=[SMALL, "synthetic"], deltas=[0.1, 0.01], costs=[0, 10], periods=[10],
             schedules=["fedelim", "fedelim0"], trials=25, out=out, threads=1)
    return out


# sweep


def test_sweep(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = twice(capsys, "sweep", "--instance", "small.toml", *GRID)
    assert {path.name for path in (folder / "results").iterdir()} >= {
        "sweep.json", "summary.parquet", "trials"}
    rows = pl.read_parquet("results/trials/*.parquet")
    assert rows.height == 3 * 20
    lines = shown.splitlines()
    assert lines[0] == "rewards: Gaussian(sigma=1.0)"
    assert len(lines) == 3 + 3 * 3 + 1
    assert all(name in lines[-1] for name in
               ("results/trials/*.parquet", "results/summary.parquet", "results/sweep.json"))


def test_sweep_again_touches_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sweep", "--instance", "small.toml", *GRID]
    assert cli.run(command) == 0
    before = {path: path.stat().st_mtime_ns for path in (folder / "results").rglob("*.*")
              if path.name != ".lock"}
    twice(capsys, *command)
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_sweep_shows_what_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """The folder may hold more."""
    twice(capsys, "sweep", "--instance", "small.toml", *GRID)
    shown = twice(capsys, "sweep", "--instance", "small.toml", "--delta", "0.2", "--schedule",
                  "fedelim", "--cost", "7", "--trials", "5", "--threads", "1")
    _, above, _, row = shown.splitlines()[:-1]
    assert above == "all rows: instance small, radius paper, delta 0.2, sigma 1, C 7, 5 trials"
    assert row.split()[0] == "fedelim"


def test_lists_by_comma_or_by_repeating(folder: Path) -> None:
    common = ["--instance", "small.toml", "--trials", "3", "--threads", "1", "--quiet"]
    assert cli.run(["sweep", *common, "--delta", "0.1, 0.2", "--cost", "1,2", "--period", "3,4",
                    "--schedule", "at:1,2,4,8,fedelim,at:1,3", "--out", "a"]) == 0
    assert cli.run(["sweep", *common, "--delta", "0.1", "--delta", "0.2", "--cost", "1", "--cost",
                    "2", "--period", "3", "--period", "4", "--schedule", "at:1,2,4,8",
                    "--schedule", "fedelim", "--schedule", "at:1,3", "--out", "b"]) == 0
    records = [(folder / name / "sweep.json").read_text() for name in "ab"]
    assert records[0] == records[1]
    spec = json.loads(records[0])["spec"]
    assert spec["schedule"] == ["at:1,2,4,8", "fedelim", "at:1,3", "periodic:3", "periodic:4"]


def test_numbers_in_any_usual_way(folder: Path) -> None:
    assert cli.run(["sweep", "--instance", "small.toml", "--trials", "1e1", "--max-steps", "1e6",
                    "--delta", "1e-1", "--period", "1e2", "--quiet"]) == 0
    spec = json.loads((folder / "results" / "sweep.json").read_text())["spec"]
    assert (spec["trials"], spec["max_steps"], spec["delta"]) == (10, 1_000_000, [0.1])
    assert "periodic:100" in spec["schedule"]


def test_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert twice(capsys, "sweep", "--instance", "small.toml", *GRID, "--quiet") == ""


def test_no_bar_where_there_is_no_terminal() -> None:
    done = fastfed("sweep", "--instance", "small.toml", *GRID)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].startswith("all rows: instance small")


def on_a_terminal(*arguments: str) -> tuple[str, str]:
    """What a command that ends well shows on a terminal as stderr, and what on stdout."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-m", "fastfed", *arguments],
                          env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "120"},
                          stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        shown = io.BytesIO()
        with contextlib.suppress(OSError):  # the other end has gone
            while piece := os.read(ours, 4096):
                shown.write(piece)
        printed = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    return shown.getvalue().decode(), printed


def test_bar_on_a_terminal_and_results_on_stdout() -> None:
    bar, table = on_a_terminal("sweep", "--instance", "small.toml", *GRID)
    for part in ("small, delta 0.1", "100%", "trials/s", "pulls/s"):
        assert part in bar
    assert table.splitlines()[1].startswith("all rows: instance small")
    assert "\x1b" not in table


def test_table_fits_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the numbers: small gaps, dear uplinks, long names, truncated trials."""
    ff.Instance(SMALL.means * 0.001, name="x").save("a rather long name of an instance.toml")
    shown = twice(
        capsys, "sweep", "--instance", "small.toml", "--instance",
        "a rather long name of an instance.toml", "--delta", "0.1,0.00012345678", "--cost",
        "0,0.012345678,123456.789,1e15", "--schedule",
        "fedelim,fedelim0,exponential:1.0123456789,superexponential,at:1,2,3,4,5,6,7,8,9,10",
        "--period", "1,1e9", "--trials", "4", "--threads", "1")
    table = shown.splitlines()[:-1]
    assert [line for line in table if len(line) > 100] == []
    assert any(line.startswith("note: some trials did not end") for line in table)


# summary


def test_summary(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = twice(capsys, "summary", str(swept)).splitlines()
    assert len(shown) == 3 + 2 * 2 * 3 * 2
    assert max(map(len, shown)) <= 100
    assert sum(line.startswith("synthetic") for line in shown) == 12


def test_summary_as_json_and_csv(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = pl.read_parquet(swept / "summary.parquet")
    told = json.loads(twice(capsys, "summary", str(swept), "--json"))
    assert told == stored.to_dicts()
    comma = pl.read_csv(twice(capsys, "summary", str(swept), "--csv").encode(),
                        schema=stored.schema)
    assert comma.equals(stored)


def test_summary_of_a_lone_arm_is_valid_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is pulled: the ratio is 0 / 0."""
    Path("lone.csv").write_text("0.5,0.7\n")
    twice(capsys, "sweep", "--instance", "lone.csv", *GRID)
    shown = twice(capsys, "summary", "results", "--json")

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    told = json.loads(shown, parse_constant=refuse)
    assert {row["pulls_mean"] for row in told} == {0.0}


def test_summary_for_other_costs_reads_only(
    swept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("nothing is simulated again")

    monkeypatch.setattr(tasks, "compute", never)
    before = {path: path.read_bytes() for path in swept.rglob("*") if path.is_file()}
    told = json.loads(twice(capsys, "summary", str(swept), "--cost", "1,3", "--cost", "7",
                            "--json"))
    assert before == {path: path.read_bytes() for path in swept.rglob("*") if path.is_file()}
    assert {row["cost"] for row in told} == {1.0, 3.0, 7.0}
    rows = pl.read_parquet(swept / "trials" / "*.parquet")
    for row in told:
        one = rows.filter(pl.col("instance") == row["instance"], pl.col("delta") == row["delta"],
                          pl.col("schedule") == row["schedule"])
        total = one["pulls"] + row["cost"] * one["uplinks"]
        assert row["total_mean"] == pytest.approx(total.mean())


def test_summary_while_a_sweep_holds_the_folder(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fastfed.sweeps.store import Store

    with Store(swept).lock():
        twice(capsys, "summary", str(swept))


def test_summary_of_a_sweep_without_rows_yet(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed before its first part: nothing to show is no reason to fall over."""
    twice(capsys, "sweep", "--instance", "small.toml", *GRID)
    for path in (folder / "results" / "trials").iterdir():
        path.unlink()
    for options in ([], ["--json"], ["--csv"]):
        status = cli.run(["summary", "results", *options])
        told = capsys.readouterr().err
        assert (status, told) == (0, "") or (status == 2 and told.startswith("fastfed: "))


# replay, instances, version, help


def test_replay(capsys: pytest.CaptureFixture[str]) -> None:
    shown = twice(capsys, "replay", "synthetic", "--schedule", "periodic:100", "--delta", "0.05",
                  "--seed", "3", "--trial", "17").splitlines()
    row = ff.simulate(ff.Instance.load("synthetic"), "periodic:100", delta=0.05, trials=18,
                      seed=3, threads=1).frame.row(17, named=True)
    assert shown[0] == ("synthetic, periodic:100, delta 0.05, seed 3, trial 17; "
                        "rewards: Gaussian(sigma=1.0)")
    assert f"{row['pulls']:,} pulls, {row['uplinks']:,} uplinks" in shown[-1]


def test_replay_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(twice(capsys, "replay", "small.toml", "--json", "--sigma", "2",
                            "--max-steps", "1e6"))
    story = ff.replay(SMALL, "fedelim", delta=0.01, sigma=2.0, max_steps=10**6)
    assert told == story.frame.to_dicts()
    assert {event["event"] for event in told} == {"eliminated", "declared"}


def test_instances(capsys: pytest.CaptureFixture[str]) -> None:
    shown = twice(capsys, "instances")
    (line,) = [line for line in shown.splitlines() if line.startswith("synthetic ")]
    assert {"4", "3", "0.4", "0.1333"} <= set(line.split())
    assert "random:K,M,SEED" in shown


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert twice(capsys, "--version") == f"fastfed {ff.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help(command: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{command} " in twice(capsys, command, option)


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    shown = twice(capsys, "--help")
    assert {"sweep", "summary", "plot", "replay", "instances"} <= set(COMMANDS)
    assert all(command in shown for command in COMMANDS)


def test_help_of_sweep_names_every_option_and_default(capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(twice(capsys, "sweep", "--help").replace("│", " ").split())
    for option in ("instance", "delta", "cost", "period", "schedule", "trials", "seed", "out",
                   "threads", "engine", "sigma", "max-steps", "target-rse", "spec", "quiet"):
        assert f"--{option}" in shown
    for default in ("[10000]", "[0]", "[all cores]", "[auto]"):
        assert default in shown


def test_no_command_shows_the_commands() -> None:
    told = fastfed()
    assert told.returncode in (0, 2)
    assert "Traceback" not in told.stderr
    assert "sweep" in told.stdout + told.stderr


def test_help_imports_nothing_heavy() -> None:
    """One process, every command's help, what is loaded after each."""
    code = """
import contextlib, io, json, sys
from fastfed import cli
seen = {}
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()):
        assert cli.run([*command, "--help"]) == 0
    seen[" ".join(command)] = [name for name in
        ("numba", "polars", "matplotlib", "pyarrow", "scipy", "numpy", "dask")
        if name in sys.modules]
print(json.dumps(seen))
"""
    commands = [[], *([command] for command in COMMANDS)]
    done = subprocess.run([sys.executable, "-c", code, json.dumps(commands)], env=ENVIRONMENT,
                          capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout)
    assert len(seen) == len(commands)
    assert not any(seen.values()), seen


def test_commands_import_only_what_they_use(swept: Path) -> None:
    code = """
import sys
from fastfed import cli
assert cli.run(sys.argv[2:]) == 0
loaded = [name for name in sys.argv[1].split(",") if name in sys.modules]
assert not loaded, loaded
"""
    for never, command in (("numba,matplotlib", ["instances"]),
                           ("numba,matplotlib", ["summary", str(swept)])):
        done = subprocess.run([sys.executable, "-c", code, never, *command], env=ENVIRONMENT,
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


NASTY = "a\x1b]0;owned\x07\x1b[31m\u202e $\\frac{$ \r\x9b \u2028"


def test_names_that_a_terminal_would_obey(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters are shown escaped, whatever prints a name."""
    inst = ff.Instance([[0.9, 0.1], [0.1, 0.4]], arms=[NASTY, "b\nc"], clients=["x\x1b[2J", "y\n"])
    path = f"{NASTY}.toml"
    inst.save(path)
    for command in (["sweep", "--instance", path, *GRID], ["summary", "results"],
                    ["check", "results"], ["replay", path], ["bounds", path], ["plot", "results"],
                    ["sweep", "--instance", f"{NASTY}.csv"], ["replay", NASTY],
                    ["sweep", "--schedule", NASTY], ["sweep", "--engine", NASTY],
                    ["sweep", "--dask", NASTY], ["sweep", NASTY], ["sweep", f"--{NASTY}"]):
        status = cli.run(command)
        told = capsys.readouterr()
        assert status in (0, 2), told
        text = (told.out + told.err).replace("\n", "")
        assert text.isprintable(), command
        if status == 2:
            assert told.err.count("\n") == 1


def test_a_name_with_a_line_break_is_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    plain = ff.Instance([[0.9, 0.1], [0.1, 0.4]], arms=["b", "cc"])
    odd = ff.Instance([[0.9, 0.1], [0.1, 0.4]], arms=["b", "c\nc"])
    plain.save("plain.toml")
    odd.save("odd.toml")
    for command in ("replay", "bounds"):
        lines = [len(twice(capsys, command, name).splitlines())
                 for name in ("plain.toml", "odd.toml")]
        assert lines[0] == lines[1]


def test_bar_of_a_name_with_markup(folder: Path) -> None:
    """Rich reads [/x] as the end of a style."""
    (folder / "spec.toml").write_text(
        'instance = [{name = "a [/x]", toml = "means = [[0.9, 0.1], [0.1, 0.4]]"}]\n')
    bar, _ = on_a_terminal("sweep", "--spec", "spec.toml", *GRID)
    assert "a [/x], delta 0.1" in bar


# How it ends


def test_python_m_fastfed() -> None:
    done = fastfed("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"fastfed {ff.__version__}\n", "")


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
    capsys: pytest.CaptureFixture[str]
) -> None:
    """Even if every task failed and the table is empty."""
    assert cli.run(["sweep", "--instance", "small.toml", *GRID]) == 1
    assert "MemoryError: no room" in capsys.readouterr().err


def test_reader_that_goes_away(swept: Path) -> None:
    """As in `fastfed summary DIR | head -0`."""
    read, write = os.pipe()
    os.close(read)
    with subprocess.Popen([sys.executable, "-m", "fastfed", "summary", str(swept)],
                          env=ENVIRONMENT, stdout=write, stderr=subprocess.PIPE) as process:
        os.close(write)
        assert process.stderr.read() == b""
    assert process.returncode in (0, -signal.SIGPIPE)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", [
    ["summary", "SWEPT"], ["summary", "SWEPT", "--json"], ["instances"], ["--help"],
    ["replay", "synthetic"],
], ids=" ".join)
def test_full_disk_under_stdout(swept: Path, command: list[str]) -> None:
    ready = [str(swept) if word == "SWEPT" else word for word in command]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "fastfed", *ready], env=ENVIRONMENT,
                              stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "fastfed: stdout: No space left on device\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_full_disk_under_stdout_and_then_bad_input() -> None:
    """What was printed before the error is lost: status 2 all the same, not Python's 120."""
    code = """
import sys
from fastfed import cli
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
        done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "fastfed: and then no more\n")


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A line for sh, in which $FASTFED is the command."""
    command = shlex.join([sys.executable, "-m", "fastfed"])
    return subprocess.run(["sh", "-c", line.replace("$FASTFED", command)], text=True, check=False,
                          env={**ENVIRONMENT, **environment}, capture_output=True)


def test_closed_stdout() -> None:
    """Results would be lost without a word; and no file may be opened in its place."""
    done = shell("$FASTFED sweep --instance small.toml --trials 3 --delta 0.1 >&-")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fastfed: stdout: Bad file descriptor\n"
    assert pl.read_parquet("results/trials/*.parquet")["trial"].n_unique() == 3
    assert shell("$FASTFED sweep --instance small.toml --quiet --trials 3 >&-").returncode == 0


@pytest.mark.parametrize("closed", ["2>&-", "<&-", "<&- 2>&-"])
def test_other_closed_files(closed: str) -> None:
    done = shell(f"$FASTFED instances {closed}")
    assert done.returncode == 0
    assert done.stdout.startswith("name ")
    assert shell(f"$FASTFED sweep --delta 2 {closed}").returncode == 2


def test_stdout_that_knows_only_ascii(swept: Path) -> None:
    done = shell(f"$FASTFED summary {shlex.quote(str(swept))}", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "+-" in done.stdout
    assert done.stdout.isascii()


def test_json_on_a_stdout_that_knows_only_ascii() -> None:
    ff.Instance(SMALL.means).save("kleine Ärme 🎰.toml")  # without a name of its own
    done = shell("$FASTFED sweep --instance 'kleine Ärme 🎰.toml' --trials 3 --quiet && "
                 "$FASTFED summary results --json", PYTHONIOENCODING="ascii")
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


@pytest.mark.parametrize("workers", [["--threads", "2"], ["--dask", "local:2"]])
def test_ctrl_c_keeps_what_is_finished(
    workers: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["sweep", "--instance", "small.toml", "--delta", "0.1,0.01", "--schedule",
               "fedelim,fedelim0", "--trials", "100000000", "--out", "my results", *workers]
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED, *command], env=ENVIRONMENT,
                          start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        patience = time.monotonic() + 120
        while (process.poll() is None and time.monotonic() < patience
               and len(list(folder.glob("my results/trials/*.parquet"))) < 4):
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: workers hear it, too
        shown, told = process.communicate()
    assert process.returncode == 130, told
    assert shown == ""
    lines = [line for line in told.splitlines() if line]
    assert all(line.startswith("fastfed: ") for line in lines), told
    assert len(lines) == 1 + ("--dask" in workers)  # which names its address and dashboard
    line = lines[-1]
    assert shlex.split(line.split("go on with: ")[1]) == ["fastfed", *command]
    # finished parts are whole and are not done again
    parts = {path.name: path.read_bytes()
             for path in (folder / "my results" / "trials").glob("*.parquet")}
    assert parts
    command[command.index("--trials") + 1] = "250"
    twice(capsys, *command[:-2])
    assert parts.items() <= {path.name: path.read_bytes() for path in
                             (folder / "my results" / "trials").iterdir()}.items()
    assert list(folder.rglob(".*.partial")) == []
    rows = pl.read_parquet("my results/trials/*.parquet").filter(pl.col("trial") < 250)
    assert rows.height == 2 * 2 * 250
    expected = ff.simulate(SMALL, ["fedelim", "fedelim0"], delta=0.1, trials=250, threads=1).frame
    keys = ["schedule", "trial"]
    assert rows.filter(pl.col("delta") == 0.1).sort(keys).equals(expected.sort(keys))


EARLY = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("module", ["typer", "numpy", "polars", "numba"])
def test_ctrl_c_while_something_is_imported(module: str, folder: Path) -> None:
    (folder / "early").mkdir()
    (folder / "early" / f"{module}.py").write_text(EARLY)
    path = os.pathsep.join([str(folder / "early"), ENVIRONMENT["PYTHONPATH"]])
    done = shell("$FASTFED sweep --instance small.toml --trials 3", PYTHONPATH=path)
    assert done.returncode == 130
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert done.stderr.startswith("fastfed: stopped")


def test_next_to_nothing_is_imported_before_ctrl_c_is_caught() -> None:
    code = """
import sys
before = set(sys.modules)
import fastfed.__main__
print(sorted(set(sys.modules) - before - {"__future__"}))
"""
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True,
                          text=True, check=True)
    assert done.stdout == "['fastfed', 'fastfed.__main__', 'fastfed.version']\n"


def test_ctrl_c_stops_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their threads would go on for as long as a part takes."""
    stopped = threading.Event()

    def compute(task: tasks.Task, control: Any) -> tuple[Any, int]:
        until = time.monotonic() + 60
        while not control.stop[0] and time.monotonic() < until:
            time.sleep(0.01)
        if control.stop[0]:
            stopped.set()
        return None, 0

    monkeypatch.setattr(tasks, "compute", compute)
    run = ff.sweep_parts(instances=[SMALL], deltas=[0.1], trials=5, threads=1)
    for _ in range(3):
        next(run)
    with pytest.raises(KeyboardInterrupt):
        run.throw(KeyboardInterrupt)
    assert stopped.wait(30)


def test_ctrl_c_in_this_process(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "summary_text", interrupt)
    assert cli.run(["sweep", "--instance", "small.toml", *GRID]) == 130
    assert "go on with: fastfed sweep --instance small.toml" in capsys.readouterr().err
