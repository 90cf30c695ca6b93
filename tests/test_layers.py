"""Rooms and layers: imports point one way, wherever in a file they stand."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fastfed

PACKAGE = Path(fastfed.__file__).parent
BASE = ("version", "errors", "validation", "files", "radius", "choices", "console", "faces")
ROOMS = (
    "kernels",
    "goals",
    "uplinks",
    "problem",
    "engine",
    "statistics",
    "sweeps",
    "theory",
    "results",
    "paper",
    "api",
    "commands",
    "cli",
)
"""From the ground up: a room may import what stands before it."""


def room_of(module: str) -> int:
    """Its place in the order; -1 for the modules on which all rooms stand."""
    name = [*module.split("."), ""][1]
    return -1 if name in BASE else ROOMS.index(name)


def at_run_time(path: Path) -> list[ast.AST]:
    """Everything in a file but what is there for type annotations only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    annotations = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    return [node for node in ast.walk(tree) if id(node) not in annotations]


def imports(path: Path) -> set[str]:
    """Every module of the package that a file imports, also inside functions; what is imported
    for type annotations only does not count."""
    found = set()
    for node in at_run_time(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("fastfed.")}


FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize(
    "name", [name for name in FILES if name not in ("__init__.py", "__main__.py")]
)
def test_imports_point_to_the_ground(name: str) -> None:
    here = room_of("fastfed." + name.removesuffix(".py").replace("/", "."))
    for module in imports(PACKAGE / name):
        assert room_of(module) <= here, f"{name} imports {module}"
        if here == -1:
            assert room_of(module) == -1


def test_every_file_has_its_room() -> None:
    for name in FILES:
        top = name.split("/")[0].removesuffix(".py")
        assert top in (*BASE, *ROOMS, "__init__", "__main__"), name


def test_the_order_would_notice() -> None:
    """The rooms are really used in this order: each but the first imports the one below it, or
    one further down. (What a goal or an uplink is called needs no kernel.)"""
    for index, room in enumerate(ROOMS[1:], start=1):
        files = [PACKAGE / f"{room}.py"] if room == "cli" else (PACKAGE / room).rglob("*.py")
        below = {room_of(module) for path in files for module in imports(path)}
        lowest = -1 if room in ("goals", "uplinks") else 0
        assert any(lowest <= place < index for place in below), room


@pytest.mark.parametrize(
    ("library", "rooms"),
    [
        ("matplotlib", {"results", "paper"}),
        ("distributed", {"sweeps"}),
        ("numba", {"kernels", "sweeps"}),  # in a sweep, a worker says which version it has
        ("msgspec", {"sweeps"}),
        ("typer", {"commands", "cli"}),
    ],
)
def test_heavy_libraries_have_one_home(library: str, rooms: set[str]) -> None:
    for name in FILES:
        nodes = at_run_time(PACKAGE / name)
        named = {
            alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
        }
        named |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        if any(one.split(".")[0] == library for one in named):
            assert name.split("/")[0].removesuffix(".py") in rooms, name


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("kernels/")])
def test_no_kernel_takes_many_arguments(name: str) -> None:
    tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert len(node.args.args) <= 8, f"{name}: {node.name}"
            assert node.end_lineno - node.lineno < 100, f"{name}: {node.name}"  # type: ignore[operator]
