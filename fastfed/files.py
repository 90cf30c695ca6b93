"""Files that appear whole or not at all, and reading that never blocks.

Everything that fastfed writes goes through `replacing`. The content is complete in memory first.
Then it is written to a file with a random temporary name and synced to the disk, and only then the
file gets its name. So a full disk, a kill or a power cut leaves the old file or the new one. A
kill may also leave a temporary file, which the next writer of that name removes.
"""

from __future__ import annotations

import glob
import io
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from fastfed.errors import InputError
from fastfed.validation import MOST_FILE

PARTIAL = ".partial"
"""How names of files end that are still being written; they begin with a dot."""

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def data_folder() -> Path:
    """Return ``data/`` inside an installed package, or beside the package in a checkout."""
    here = Path(__file__).resolve().parent
    return here / "data" if (here / "data").is_dir() else here.parent / "data"


@contextmanager
def replacing(path: Path, before: Callable[[], object] | None = None) -> Iterator[io.BytesIO]:
    """Yield a buffer whose content becomes the file ``path``, whole, or not at all.

    The libraries that fill the buffer never meet the disk, so a full disk always gives the same
    message. ``before`` is called when the content is on the disk and only the name is missing. It
    may raise to stop the renaming.
    """
    refuse_nul(path)
    buffer = io.BytesIO()
    yield buffer
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        with _writing(path):
            with os.fdopen(os.open(partial, _WRITE, 0o666), "wb") as file:
                file.write(buffer.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            if before is not None:
                before()
            partial.replace(path)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
        raise


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Remove what killed processes left half written of a file; make a new name survive a crash.

    Who writes holds a shared lock of the folder. Who gets the exclusive one writes there alone, and
    all that is left is of processes that ended.
    """
    if os.name == "nt":  # folders cannot be opened there
        yield
        return
    import fcntl

    number = os.open(path.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # others are writing, or the file system has no flock
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in leftovers(path.parent, glob.escape(path.name)):
                left.unlink()
        with suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
        os.fsync(number)
    finally:
        os.close(number)


def leftovers(folder: Path, name: str) -> Iterator[Path]:
    """Yield the temporary files of all files whose names match a pattern."""
    return folder.glob(f".{name}.{'[0-9a-f]' * 8}{PARTIAL}")


@contextmanager
def open_regular(path: Path, most: int = 2**31) -> Iterator[IO[bytes]]:
    """Open a regular file of at most ``most`` bytes to read; raise an OSError for anything else.

    A pipe or a device is neither waited for nor read.
    """
    number = os.open(path, _READ)
    try:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode):
            kind = "a folder" if stat.S_ISDIR(about.st_mode) else "a pipe or device"
            raise OSError(None, f"{kind}, not a file")
        if about.st_size > most:
            raise OSError(None, f"{about.st_size:,} bytes, more than {most:,}")
        with os.fdopen(number, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(number)


def read_regular(path: Path, most: int = 2**31) -> bytes:
    """Read a regular file of at most ``most`` bytes; raise an OSError for anything else."""
    with open_regular(path, most) as file:
        return file.read()


def read_input(path: Path, most: int = MOST_FILE) -> bytes:
    """Read a file that a user names; refuse one that cannot be read."""
    try:
        return read_regular(path, most)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise InputError(f"{path}: cannot be read ({reason})") from None


def read_text(path: Path) -> str:
    """Read UTF-8 text that a user names, with or without the byte order mark of some editors."""
    try:
        return read_input(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None


def valid_unicode(name: str) -> str:
    """Return a name from the file system as valid Unicode, with other bytes as escapes."""
    return name.encode("utf-8", "backslashreplace").decode()


def refuse_nul(path: Path) -> None:
    """Refuse a path that no file can have; Python itself would raise a bare ValueError."""
    if "\0" in str(path):
        raise InputError(f"path {str(path)!r}: a NUL character cannot be part of a file's name")


def within(folder: Path, name: str) -> Path:
    """Return a folder within another one; refuse a link, through which others would send files."""
    path = folder / name
    if path.is_symlink():
        raise InputError(
            f"{path}: a symbolic link, so files elsewhere would be written and moved; make it a "
            "folder, or name the folder that the link leads to"
        )
    return path


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, or say in one line what stands in the way."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"{folder}: there is a file of that name; choose another folder") from None
    except NotADirectoryError:
        raise InputError(f"{folder}: a file stands where a folder should be") from None
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror})") from None


def checked_folder(given: str | os.PathLike[str]) -> Path:
    """Check the folder that a user names for results; an empty text is refused."""
    text = os.fspath(given)
    if not text.strip():
        raise InputError(
            f"folder {text!r}: must have a name, as in results, or . for the current one"
        )
    return Path(text)
