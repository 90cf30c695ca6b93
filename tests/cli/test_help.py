"""Help, version, and what is imported on the way: nothing that a command does not use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from command_line import ENVIRONMENT, twice

from fastfed.cli import app as cli

COMMANDS = sorted(typer.main.get_command(cli.app).commands)


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
