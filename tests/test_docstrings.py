"""Docstrings: rules of style that ruff does not check."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("fastfed", "tests", "benchmarks", "docs", "data")
RIDDLE = re.compile(r"(who|whose|what|which|where|when|why|how|whether|as if|of)\b", re.IGNORECASE)


def sources() -> list[str]:
    """List the Python files that are held to the rules, as paths from the root."""
    paths = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return sorted(path.relative_to(ROOT).as_posix() for path in paths)


def test_no_docstring_begins_with_a_question_word() -> None:
    for name in sources():
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                assert not RIDDLE.match(text), f"{name}:{getattr(node, 'lineno', 1)}: {text[:60]}"
