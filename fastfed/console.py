"""The standard files of a process that runs the command line: what a person sees.

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

from fastfed.errors import printable

_SPELT = {"±": "+-", "…": "...", "×": "x", "–": "-", "≤": "<=", "≥": ">="}


def say(message: str) -> None:
    """One line on stderr. If stderr is gone, too, the exit status has to do."""
    with suppress(OSError, ValueError):
        print(f"fastfed: {printable(message)}", file=sys.stderr, flush=True)


def show(text: object) -> None:
    """Text for a person on stdout."""
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
    # Python has None for a file that was closed when it started
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    codecs.register_error("fastfed", _spelt)
    for file in (sys.stdout, sys.stderr):
        if isinstance(file, io.TextIOWrapper):
            file.reconfigure(errors="fastfed")


def lost_output() -> bool:
    """Write out what stdout still holds. If that cannot be done it is given up, because Python
    would try again at its end and exit with a status of its own; True unless the reader left."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return not isinstance(error, BrokenPipeError)
    return False


def _spelt(error: UnicodeError) -> tuple[str, int]:
    """How to write what an encoding lacks: the escapes are JSON's, so that JSON stays JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start:error.end]
    return "".join(_SPELT.get(c) or json.dumps(c)[1:-1] for c in lacking), error.end
