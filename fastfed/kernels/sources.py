"""Digests of the source files that compiled code is made of.

A kernel is made of the file of its entry point, the files of the classes of its arguments, and all
files of the package that these import. Their syntax trees count, without docstrings. So an edited
comment, or the file of another reward distribution, leaves a digest as it was.

A file that was edited after this process began may differ from what the process has imported. Code
that is compiled then must not get the name of the edited file: another process would take it for
the edited code, and a kernel whose arguments have changed would end that process.

To parse all kernels takes 0.2 s. So the cache keeps what a file says, under the hash of its bytes
(`Trees`), and a file is parsed once after every edit.
"""

from __future__ import annotations

import ast
import errno
import hashlib
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import fastfed

_PACKAGE = Path(fastfed.__file__).parent
_OUTSIDE = {"fastfed", "fastfed.errors", "fastfed.kernels.kept_code", "fastfed.kernels.sources"}
"""Modules that kernels import and that leave no trace in compiled code."""

_BEGAN = time.time()

Trees = dict[str, list[str]]
"""By the hash of a file's bytes: the digest of its syntax tree, then the modules it imports."""


def digest(files: Iterable[Path], trees: Trees) -> bytes:
    """Hash the syntax trees of files, and of all files of the package that they import.

    ``trees`` is extended by the files that it lacks. A file that was edited since this process
    began raises an OSError.
    """
    todo, found = list(files), dict[Path, str]()
    while todo:
        path = todo.pop()
        if path not in found:
            if path.stat().st_mtime > _BEGAN:
                raise OSError(errno.ESTALE, f"{path.name} was edited after this process began")
            tree, *modules = _described(path.read_bytes(), trees)
            found[path] = tree
            todo += [one for name in modules if (one := _file(name)) is not None]
    return hashlib.sha256(repr(sorted(found.values())).encode()).digest()


def _described(content: bytes, trees: Trees) -> list[str]:
    key = hashlib.sha256(sys.version.encode() + content).hexdigest()
    if key not in trees:
        tree = ast.parse(content)
        _strip(tree)
        text = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
        trees[key] = [text, *sorted(set(_imported(tree)))]
    return trees[key]


def _strip(tree: ast.AST) -> None:
    """Take the docstrings, and imports for annotations only, out of a syntax tree."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list) or not body:
            continue
        first = body[0].value if isinstance(body[0], ast.Expr) else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            del body[0]
        body[:] = [
            one
            for one in body
            if not (isinstance(one, ast.If) and getattr(one.test, "id", "") == "TYPE_CHECKING")
        ]


def _imported(tree: ast.AST) -> Iterator[str]:
    """List the modules of the package that a file imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if _file(name) else str(node.module) for name in inside]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "fastfed")


def _file(module: str) -> Path | None:
    """Return the file of a module of the package; None: there is none, or it does not count."""
    if module in _OUTSIDE:
        return None
    path = _PACKAGE.joinpath(*module.split(".")[1:])
    return next(
        (one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None
    )
