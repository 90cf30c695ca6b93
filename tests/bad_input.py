"""Bad input: exit status 2, one line that names what is wrong, nothing half-written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastfed.cli import app as cli

HUGE = "1" + "0" * 400  # a whole number that no float holds


def refused_by_command(
    arguments: list[str], named: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Assert that a command names what is wrong in one line and writes nothing.

    An exception that leaves `run` is a traceback for the user: it fails the test.
    """
    before = listing(place)
    capsys.readouterr()
    status = cli.run(arguments)
    assert_one_line(status, capsys.readouterr(), named)
    assert listing(place) == before, "something was written"


def listing(place: Path) -> dict[str, bytes | None]:
    """Every file with its content; the lock, which holds nothing, aside."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 2**28
        else None
        for path in place.rglob("*")
        if path.name != ".lock"
    }


def assert_one_line(status: int, told: Any, named: str) -> None:
    assert told.out == ""
    assert told.err.startswith("fastfed: ")
    assert told.err.endswith("\n")
    assert len(told.err.splitlines()) == 1
    assert "Traceback" not in told.err
    assert named in told.err
    assert status == 2
