"""Help, version, and what is imported on the way: nothing that a command does not use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from command_line import ENVIRONMENT, fastfed, twice

import fastfed as ff
from fastfed.cli import app as cli

COMMANDS = sorted(typer.main.get_command(cli.app).commands)


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


def test_no_command_is_cut_short(capsys: pytest.CaptureFixture[str]) -> None:
    """The list of commands has the whole first line of each, at 80 columns."""
    listed = twice(capsys, "--help").partition("Commands:")[2]
    assert listed.count("\n") > 10
    assert "..." not in listed


def test_help_of_sweep_names_every_option_and_default(capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(twice(capsys, "sweep", "--help").replace("│", " ").split())
    for option in (
        "instance",
        "delta",
        "cost",
        "period",
        "schedule",
        "trials",
        "seed",
        "out",
        "threads",
        "engine",
        "sigma",
        "max-steps",
        "target-rse",
        "spec",
        "quiet",
    ):
        assert f"--{option}" in shown
    for default in ("[10000]", "[0]", "[all cores]", "[auto]"):
        assert default in shown


@pytest.mark.process
def test_no_command_shows_the_commands() -> None:
    told = fastfed()
    assert told.returncode in (0, 2)
    assert "Traceback" not in told.stderr
    assert "sweep" in told.stdout + told.stderr


@pytest.mark.process
def test_help_imports_nothing_heavy() -> None:
    """One process, every command's help, what is loaded after each."""
    code = """
import contextlib, io, json, sys
from fastfed.cli import app as cli
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
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(commands)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    seen = json.loads(done.stdout)
    assert len(seen) == len(commands)
    assert not any(seen.values()), seen


@pytest.mark.process
def test_commands_import_only_what_they_use(good: Path) -> None:
    code = """
import sys
from fastfed.cli import app as cli
assert cli.run(sys.argv[2:]) == 0
loaded = [name for name in sys.argv[1].split(",") if name in sys.modules]
assert not loaded, loaded
"""
    for never, command in (
        ("numba,matplotlib", ["instances"]),
        ("numba,matplotlib", ["summary", str(good)]),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, never, *command],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_every_command_has_one_line_that_is_not_cut_at_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    listed = twice(capsys, "--help").partition("Commands:\n")[2].strip().splitlines()
    assert sorted(line.split()[0] for line in listed) == COMMANDS
    assert not [line for line in listed if "..." in line or len(line) > 80]
