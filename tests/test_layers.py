"""Layers of the package: imports point one way, wherever in a file they stand."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import fastfed

PACKAGE = Path(fastfed.__file__).parent
BASE = (
    "version",
    "errors",
    "text",
    "validation",
    "files",
    "confidence",
    "capital",
    "console",
    "timegrid",
)
LAYERS = (
    "kernels",
    "model",
    "simulation",
    "theory",
    "analysis",
    "storage",
    "sweeps",
    "display",
    "paper",
    "api",
    "cli",
)
"""From the bottom up: a layer may import itself and the layers before it."""
SHOWN = ("__str__", "_repr_html_")
"""Methods that may import `fastfed.display`: it is loaded when an object is shown."""


def layer_of(module: str) -> int:
    """Its place in the order; -1 for the modules on which all layers stand."""
    name = [*module.split("."), ""][1]
    return -1 if name in BASE else LAYERS.index(name)


@cache
def at_run_time(path: Path) -> list[ast.AST]:
    """Everything in a file but what is there for type annotations only, or to show an object."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    } | {
        id(node)
        for method in ast.walk(tree)
        if isinstance(method, ast.FunctionDef) and method.name in SHOWN
        for node in ast.walk(method)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("fastfed.display.")
    }
    return [node for node in ast.walk(tree) if id(node) not in left_out]


def imports(path: Path) -> set[str]:
    """List every module of the package that a file imports, also inside functions.

    Imports for type annotations only do not count.
    """
    found = set()
    for node in at_run_time(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("fastfed.")}


FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def test_imports_point_to_the_ground() -> None:
    for name in FILES:
        if name in ("__init__.py", "__main__.py"):
            continue
        here = layer_of("fastfed." + name.removesuffix(".py").replace("/", "."))
        for module in imports(PACKAGE / name):
            assert layer_of(module) <= here, f"{name} imports {module}"
            if here == -1:
                assert layer_of(module) == -1


def test_every_file_has_its_layer() -> None:
    for name in FILES:
        top = name.split("/")[0].removesuffix(".py")
        assert top in (*BASE, *LAYERS, "__init__", "__main__"), name


def test_the_order_would_notice() -> None:
    """Each layer but the first imports a layer below it."""
    for index, layer in enumerate(LAYERS[1:], start=1):
        files = (PACKAGE / layer).rglob("*.py")
        below = {layer_of(module) for path in files for module in imports(path)}
        assert any(0 <= place < index for place in below), layer


@pytest.mark.parametrize(
    ("library", "layers"),
    [
        ("matplotlib", {"display", "paper"}),
        ("distributed", {"sweeps"}),
        ("numba", {"kernels", "sweeps"}),  # in a sweep, a worker says which version it has
        ("msgspec", {"model", "storage"}),
        ("typer", {"cli"}),
    ],
)
def test_heavy_libraries_have_one_home(library: str, layers: set[str]) -> None:
    for name in FILES:
        nodes = at_run_time(PACKAGE / name)
        named = {
            alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
        }
        named |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        if any(one.split(".")[0] == library for one in named):
            assert name.split("/")[0].removesuffix(".py") in layers, name


def test_no_kernel_takes_many_arguments() -> None:
    for name in [name for name in FILES if name.startswith("kernels/")]:
        tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                assert len(node.args.args) <= 8, f"{name}: {node.name}"
                assert node.end_lineno - node.lineno < 100, f"{name}: {node.name}"  # type: ignore[operator]


def test_nothing_is_imported_that_only_one_system_has() -> None:
    """Modules of POSIX are imported where they are used, and only if they are there."""
    for name in FILES:
        tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
        for node in tree.body:
            named = {alias.name for alias in getattr(node, "names", ())}
            assert not named & {"fcntl", "resource", "pwd", "grp", "termios", "winreg"}, name
