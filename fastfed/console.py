"""Standard output and standard error of the command line.

Lines for people show control characters escaped: a name in a file from elsewhere must not move the
cursor, change the title of a terminal, or look like another line.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from fastfed.text import printable

_SPELT = {"±": "+-", "…": "...", "×": "x", "–": "-", "≤": "<=", "≥": ">="}


def say(message: str) -> None:
    """Print one line on stderr; if stderr is closed, only the exit status remains."""
    with suppress(OSError, ValueError):
        print(f"fastfed: {printable(message)}", file=sys.stderr, flush=True)


def show(text: object) -> None:
    """Print text for a person on stdout."""
    print("\n".join(map(printable, str(text).split("\n"))))


def open_standard_files() -> None:
    """Make stdout and stderr such that writing to them works, or says so.

    One that was closed is opened again, or else the next file that is opened would be in its
    place. Writing to a stdout that was closed fails, as it should: results would be lost. What
    an encoding lacks is spelt in other characters.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest free number, which is this one
    codecs.register_error("fastfed", _spelt)
    sys.stdout = _opened(1, "stdout", sys.stdout)
    sys.stderr = _opened(2, "stderr", sys.stderr)


class _Named(io.FileIO):
    """A file known by its number, whose errors say its name."""

    def __init__(self, number: int, name: str) -> None:
        super().__init__(number, "w", closefd=False)
        self._shown = name

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except OSError as error:
            error.filename = self._shown
            raise


def _opened(number: int, name: str, before: TextIO | None) -> TextIO:
    """Open a standard file anew; ``before`` is Python's own, None if it was closed."""
    at_once = name == "stderr" or (
        isinstance(before, io.TextIOWrapper) and (before.line_buffering or before.write_through)
    )
    return io.TextIOWrapper(
        io.BufferedWriter(_Named(number, name)),
        errors="fastfed",
        encoding=before.encoding if before else "utf-8",
        line_buffering=at_once,
    )


def lost_output() -> bool:
    """Write out what stdout still holds; return True if that fails and the reader is still there.

    Output that cannot be written is discarded. Otherwise Python would try again at its end and exit
    with its own status.
    """
    error = _flushed(sys.stdout)
    return error is not None and not isinstance(error, BrokenPipeError)


def _spelt(error: UnicodeError) -> tuple[str, int]:
    """Escape characters that an encoding lacks, as JSON does, so that JSON stays JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_SPELT.get(c) or json.dumps(c)[1:-1] for c in lacking), error.end


def lost_messages() -> None:
    """Write out what stderr still holds, or discard it.

    The exit status says what matters. Python would try again at its end and exit with its own
    status.
    """
    _flushed(sys.stderr)


def _flushed(file: TextIO) -> Exception | None:
    """Write out what a file still holds, or discard it and return what went wrong."""
    try:
        file.flush()
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())
        return error
    return None
