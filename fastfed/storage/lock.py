"""Lock of a folder: one writer at a time, and a writer that notices if its lock is lost.

The file .lock holds the owner (a random token), its process and its host. Where the file system has
flock, flock decides. It ends with its process, however the process ends. The content of the file is
the second guard. It protects from a host that flock does not reach, and from somebody who removes
the file while its owner is alive. Where there is no flock (some network file systems, Windows), the
file itself is the lock. It is created exclusively, and its modification time is a heartbeat. A file
without a heartbeat for two minutes is taken over.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import socket
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from fastfed.errors import InputError

HEARTBEAT_SECONDS = 10.0
STALE_SECONDS = 120.0
_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
_OPEN = (
    os.O_RDWR
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


class Lock:
    """The lock ``folder``/.lock, held during the ``with`` block; `check` raises if it is lost."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / ".lock"
        self._owner = secrets.token_hex(8)
        self._file = -1
        self._ended = threading.Event()
        self._beating: threading.Thread | None = None

    def __enter__(self) -> Lock:
        try:
            self._acquire()
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):
                raise InputError(
                    f"{self.path}: a symbolic link; remove it, a lock must be a file of its own"
                ) from None
            raise InputError(f"{self.folder}: cannot be written ({error.strerror})") from None
        self._beating = threading.Thread(target=self._beat, daemon=True, name="fastfed-lock")
        self._beating.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._beating is not None:
            self._beating.join()
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
            made = self._open()
            if self._flock():
                if self._same_file():  # else it was removed between opening and locking
                    self._reject_living_elsewhere()
                    break
                os.close(self._file)
            elif made:
                break
            else:
                self._take_over_stale()
        else:
            raise InputError(f"{self.path}: others keep taking it; try again")
        content = {"owner": self._owner, "pid": os.getpid(), "host": socket.gethostname()}
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, json.dumps(content).encode())

    def _open(self) -> bool:
        """Open the file, following no link and emptying nothing; return whether it is new."""
        try:
            self._file = os.open(self.path, _OPEN | os.O_CREAT | os.O_EXCL, 0o666)
            return True
        except FileExistsError:
            pass
        try:
            self._file = os.open(self.path, _OPEN)
        except FileNotFoundError:  # gone in between
            return self._open()
        found = os.fstat(self._file)
        if not stat.S_ISREG(found.st_mode):
            os.close(self._file)
            raise InputError(f"{self.path}: not a file; remove it")
        if found.st_nlink > 1:  # writing would overwrite the file under its other name
            os.close(self._file)
            raise InputError(
                f"{self.path}: a hard link; remove it, a lock must be a file of its own"
            )
        return False

    def _flock(self) -> bool:
        """Take the flock, which ends with its process; return False where there is no flock."""
        try:
            import fcntl
        except ImportError:
            return False
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _HELD:
                raise self._held() from None
            return False  # ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL: this file system has no flock
        return True

    def _reject_living_elsewhere(self) -> None:
        """Refuse a lock that another host keeps alive: flock does not always reach other hosts."""
        holder = _content(self._file)
        if holder.get("host") not in (None, socket.gethostname()) and self._age() < STALE_SECONDS:
            raise self._held()

    def _take_over_stale(self) -> None:
        """Remove a lock file that has no heartbeat, without flock; refuse one that has."""
        if self._age() < STALE_SECONDS:
            raise self._held()
        seen = os.fstat(self._file)
        aside = self.path.with_name(f".lock.{self._owner}")
        os.close(self._file)
        self.path.rename(aside)
        taken = aside.stat()
        if (taken.st_ino, taken.st_mtime_ns) != (seen.st_ino, seen.st_mtime_ns):
            with suppress(OSError):  # it came to life, or another was faster: give it back
                os.link(aside, self.path)
        aside.unlink()

    def _age(self) -> float:
        """Return the seconds since the last heartbeat, by the clock of the file system.

        A heartbeat in the future is from before the clock was set back. It counts as equally old,
        because a living owner would have renewed it.
        """
        probe = self.path.with_name(f".lock.{self._owner}.now")
        try:
            probe.touch()
            return abs(probe.stat().st_mtime - os.fstat(self._file).st_mtime)
        finally:
            probe.unlink(missing_ok=True)

    def _held(self) -> InputError:
        holder, age = _content(self._file), self._age()
        os.close(self._file)
        who = (
            f" (process {holder['pid']} on {holder['host']}, last sign of life {age:.0f} s ago)"
            if {"pid", "host"} <= set(holder)
            else ""
        )
        return InputError(
            f"{self.folder}: another sweep is writing here{who}; wait for it, or "
            "give this one its own --out"
        )

    def _same_file(self) -> bool:
        try:
            there = self.path.lstat()
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self._file))

    def _is_ours(self) -> bool:
        return self._same_file() and _content(self._file).get("owner") == self._owner

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT_SECONDS):
            with suppress(OSError):
                os.utime(self._file if os.utime in os.supports_fd else self.path)


def _content(file: int) -> dict[str, Any]:
    """Read a lock file; return an empty dictionary if it cannot be understood."""
    try:
        os.lseek(file, 0, os.SEEK_SET)
        found = json.loads(os.read(file, 4096))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
