"""Lock of a folder: one writer at a time, and a writer that notices if its lock is lost.

The file .lock is locked with flock, which ends with its process, however the process ends. The file
names the process and its host, for whoever comes second, and a random token. The token is a second
guard, where hosts do not see each other's flock: a writer whose file was removed or overwritten
stops before its next file.
"""

from __future__ import annotations

import errno
import os
import secrets
import socket
import stat
from contextlib import suppress
from pathlib import Path

from fastfed.errors import InputError

_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
_OPEN = (
    os.O_RDWR
    | os.O_CREAT
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


class Lock:
    """The lock ``folder``/.lock, held during the ``with`` block; `check` raises if it is lost."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / ".lock"
        here = f"process {os.getpid()} on {socket.gethostname()}"
        self._owner = f"{here}\n{secrets.token_hex(8)}\n".encode()
        self._file = -1

    def __enter__(self) -> Lock:
        try:
            self._acquire()
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):
                raise InputError(
                    f"{self.path}: a symbolic link; remove it, a lock must be a file of its own"
                ) from None
            raise InputError(f"{self.folder}: cannot be written ({error.strerror})") from None
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            ours = self._is_ours()
            if os.name == "nt":  # no open file can be removed there
                os.close(self._file)
            if ours:
                self.path.unlink()
        if os.name != "nt":
            os.close(self._file)

    def check(self) -> None:
        """Raise InputError if the lock is lost; called before a file gets its final name."""
        try:
            ours = self._is_ours()
        except OSError:
            ours = False
        if not ours:
            raise InputError(
                f"{self.path}: was removed or taken by another process while this "
                "one was writing; it stops, so that no trial is kept twice; finished "
                "parts are kept"
            )

    def _acquire(self) -> None:
        for _ in range(10):
            self._file = os.open(self.path, _OPEN, 0o666)
            try:
                self._refuse_others()
                if self._same_file():  # else it was removed between opening and locking
                    break
            except BaseException:
                os.close(self._file)
                raise
            os.close(self._file)
        else:
            raise InputError(f"{self.path}: others keep taking it; try again")
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, self._owner)

    def _refuse_others(self) -> None:
        """Take the flock; refuse a file that is none, and one that another process holds."""
        found = os.fstat(self._file)
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{self.path}: not a file; remove it")
        if hasattr(os, "getuid") and found.st_uid != os.getuid():
            raise InputError(f"{self.path}: belongs to another user; sweep into a folder of yours")
        if found.st_nlink > 1:  # writing would overwrite the file under its other name
            raise InputError(
                f"{self.path}: a hard link; remove it, a lock must be a file of its own"
            )
        try:
            _flock(self._file)
        except OSError as error:
            if error.errno not in _HELD:  # ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL
                raise InputError(
                    f"{self.folder}: its file system has no flock ({error.strerror}), so nothing "
                    "would keep two sweeps apart; sweep into a folder on another disk, and copy "
                    "the folder when the sweep has ended"
                ) from None
            holder = _content(self._file).decode(errors="replace").partition("\n")[0]
            who = f" ({holder[:100]})" if holder.startswith("process ") else ""
            raise InputError(
                f"{self.folder}: another sweep is writing here{who}; wait for it, or "
                "give this one its own --out"
            ) from None

    def _same_file(self) -> bool:
        try:
            there = self.path.lstat()
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self._file))

    def _is_ours(self) -> bool:
        return self._same_file() and _content(self._file) == self._owner


def _flock(file: int) -> None:
    """Lock a file without waiting; raise an OSError if another process holds it."""
    try:
        import fcntl
    except ImportError:  # Windows, where others cannot read what is locked: a byte beyond the end
        import msvcrt

        os.lseek(file, 2**30, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _content(file: int) -> bytes:
    os.lseek(file, 0, os.SEEK_SET)
    return os.read(file, 1000)
