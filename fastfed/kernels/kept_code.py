"""Compiled code on disk: files that only this user can have written, each with its checksum.

The folder is ``NUMBA_CACHE_DIR/fastfed`` if that variable is set. Otherwise it is a folder in
``__pycache__`` beside the kernels, or else in the cache folder of the user. To load compiled code
is to run it. So the path must be absolute, and folder and files must belong to this user and be
writable for nobody else. Each file begins with the hash of its key, which says what it was made of,
and the hash of its content: one flipped bit in machine code would give wrong rows.

Versions of the same kernel lie side by side, so that an undone edit compiles nothing again. Of
each kernel the versions used last are kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from numba.core import config

from fastfed.kernels.sources import Trees

KEPT = 4
"""Versions of a kernel that stay on disk."""

_SHARED = stat.S_IWGRP | stat.S_IWOTH
_TREES = b"trees"
_DIGEST = 32  # bytes of a SHA-256


class NotKept(Exception):
    """Refusal of a folder or of a file, with the reason in few words."""


def folder() -> Path:
    """Return the folder of compiled code, which it makes; raise `NotKept` if there is none."""
    given = config.CACHE_DIR  # type: ignore[attr-defined]
    return _folder(
        (Path(given) / "fastfed",)
        if given
        else (Path(__file__).parent / "__pycache__" / "compiled", _user_cache() / "fastfed")
    )


@cache
def _folder(candidates: tuple[Path, ...]) -> Path:
    reason = ""
    for one in candidates:
        if not one.is_absolute():
            reason = f"folder {one} has no absolute path"
            continue
        try:
            one.parent.mkdir(parents=True, exist_ok=True)
            one.mkdir(mode=0o700, exist_ok=True)
            _refuse_foreign(one.stat(), f"folder {one}")
            if os.access(one, os.W_OK):
                return one
        except OSError:
            pass
        except NotKept as refusal:
            reason = str(refusal)
    raise NotKept(reason or "no folder for it can be written")


def _user_cache() -> Path:
    """Return the folder of a user's caches; it is not absolute where there is no home."""
    given = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    default = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return Path(given or os.path.expanduser(default))  # noqa: PTH111 (that raises without a home)


def _refuse_foreign(found: os.stat_result, name: str) -> None:
    """Refuse what another user has made, or can change."""
    if not hasattr(os, "getuid"):
        return
    if found.st_uid != os.getuid():
        raise NotKept(f"{name} belongs to another user")
    if found.st_mode & _SHARED:
        raise NotKept(f"{name} can be written by other users")


def read(path: Path, key: bytes) -> bytes | None:
    """Return the content that was saved under a key; None if there is none."""
    try:
        with path.open("rb") as file:
            _refuse_foreign(os.fstat(file.fileno()), path.name)
            whole = file.read()
    except FileNotFoundError:
        return None
    content = whole[2 * _DIGEST :]
    if whole[: 2 * _DIGEST] != _hash(key) + _hash(content):
        raise NotKept(f"{path.name} is damaged")
    with suppress(OSError):
        os.utime(path)  # it was used
    return content


def write(path: Path, key: bytes, content: bytes) -> None:
    """Save content under a key, whole or not at all, and remove versions of it used long ago."""
    group = path.name.partition(".")[0]
    partial = path.with_name(f"{group}.{secrets.token_hex(8)}{path.suffix}")
    try:
        number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(_hash(key) + _hash(content) + content)
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # another process may remove the same files
        versions = sorted(path.parent.glob(f"{group}.*"), key=lambda one: -one.stat().st_mtime_ns)
        for one in versions[KEPT:]:
            one.unlink(missing_ok=True)


_BINARY = getattr(os, "O_BINARY", 0)


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


@cache
def trees(place: Path) -> Trees:
    """Return the syntax trees that a folder knows; a damaged file knows none."""
    with suppress(Exception):
        return dict(json.loads(read(place / "trees.json", _TREES) or "{}"))
    return {}


def keep_trees(place: Path, known: Trees) -> None:
    """Save syntax trees, those of the last few hundred files."""
    last = dict(list(known.items())[-400:])
    with suppress(OSError):  # they are parsed again
        write(place / "trees.json", _TREES, json.dumps(last).encode())
