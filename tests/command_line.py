"""The command line under test: in this process, in one of its own, in a shell, on a terminal."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import typed

from fastfed.cli import app as cli

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {
    **os.environ,
    "PYTHONUNBUFFERED": "",
    "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
}
GRID = typed("--delta 0.1 --schedule fedelim,fedelim0 --period 10 --trials 20 --threads 1")


def twice(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command twice and return its output, which must be the same, with nothing on stderr."""
    capsys.readouterr()
    assert cli.run(list(arguments)) == 0
    first = capsys.readouterr()
    assert cli.run(list(arguments)) == 0
    assert capsys.readouterr() == first
    assert first.err == ""
    return first.out


def fastfed(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command in its own process."""
    return subprocess.run(
        [sys.executable, "-m", "fastfed", *arguments],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of sh in which $FASTFED is the command."""
    command = shlex.join([sys.executable, "-m", "fastfed"])
    return subprocess.run(
        ["sh", "-c", line.replace("$FASTFED", command)],
        text=True,
        check=False,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
    )


def without_progress(error: str) -> str:
    """Leave out lines that tell how far a sweep is: a busy machine prints some while it compiles.

    In the process of the tests a fixture switches these lines off.
    """
    lines = r"^fastfed: ([\d,]+ of [\d,]+ trials, |no result for \d+ s: ).*\n"
    return re.sub(lines, "", error, flags=re.MULTILINE)


def on_a_terminal(*arguments: str) -> tuple[str, str]:
    """Run a command with a terminal as stderr; return the text on the terminal and stdout."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "fastfed", *arguments],
        env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as process:
        os.close(theirs)
        shown = io.BytesIO()
        with contextlib.suppress(OSError):  # the other end has gone
            while piece := os.read(ours, 4096):
                shown.write(piece)
        printed = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    return shown.getvalue().decode(), printed


def interrupted_on_a_terminal(code: str, *arguments: str, until: str) -> tuple[int, list[str]]:
    """Run Python code on a terminal and send Ctrl-C once its output matches ``until``.

    Returns the exit status and the lines that are left on the screen.
    """
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"{code}"
    )  # it may be ignored where tests run
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        start_new_session=True,
        env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "120"},
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the other end has gone
            while piece := os.read(ours, 4096):
                before = re.search(until, shown.decode(errors="replace"))
                shown += piece
                if not before and re.search(until, shown.decode(errors="replace")):
                    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    os.close(ours)
    return process.returncode, screen(shown.decode())


def screen(text: str) -> list[str]:
    """Return the lines that remain visible after cursor movements and erasures."""
    lines, row, column = [""], 0, 0
    for piece in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", text):
        if piece == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif piece == "\r":
            column = 0
        elif up := re.fullmatch(r"\x1b\[(\d*)A", piece):
            row = max(0, row - int(up[1] or 1))
        elif piece == "\x1b[2K":
            lines[row] = ""
        elif not piece.startswith("\x1b"):
            line = lines[row].ljust(column)
            lines[row] = line[:column] + piece + line[column + len(piece) :]
            column += len(piece)
    return [line.rstrip() for line in lines if line.strip()]
