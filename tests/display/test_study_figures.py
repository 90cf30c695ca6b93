"""The figures of the documentation's studies: drawn by the package, a style for each schedule."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastfed.display.styles import style_of
from fastfed.model.spec import read_spec
from fastfed.sweeps.grid import Grid

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]
STUDIES = sorted(path.stem for path in (ROOT / "benchmarks" / "studies").glob("*.py"))
SPECS = sorted((ROOT / "benchmarks" / "studies").glob("*.toml"))


@pytest.mark.parametrize("name", STUDIES)
def test_study_can_be_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies run on demand only: nothing else notices a name that has moved."""
    monkeypatch.syspath_prepend(ROOT)
    assert study(name).main


def study(name: str) -> Any:
    return importlib.import_module(f"benchmarks.studies.{name}")


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_study_is_a_sweep(path: Path) -> None:
    """Nothing in it is refused, and a page of the documentation or the README has its results."""
    assert Grid.of(read_spec(path)).settings
    page = "README.md" if path.stem == "front" else path.read_text().split("docs/")[1].split(".")[0]
    assert page == "README.md" or f"studies/{path.name}" in (ROOT / f"docs/{page}.md").read_text()


def test_uplinks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(ROOT)
    uplinks = study("uplinks")
    steps, bases = len(uplinks.GRID) + 1, len(uplinks.BASES)
    rising = np.linspace(1, 3, steps)[:, None] * np.linspace(1, 2, bases)
    found = {"pulls": 1e5 * rising, "bits": 1e4 / rising, "uplinks": 100 * np.ones((steps, bases))}
    chart = uplinks.pulls_against_bits(found, 100)
    names = ["exponential:1.2", "exponential:1.5", "fedelim", "exponential:4"]
    assert [line.style for line in chart.lines if not line.plain] == [
        style_of(name) for name in names
    ]
    for j, line in enumerate(line for line in chart.lines if not line.plain):
        assert (line.x[-1], line.y[-1]) == (found["bits"][-1, j], found["pulls"][-1, j])
    assert [line.style for line in uplinks.best_step(found, 100).lines if not line.plain] == [
        style_of("exponential:1.2"),
        style_of("fedelim"),
    ]
    uplinks.draw(found, tmp_path / "both.png", 100)
    assert (tmp_path / "both.png").exists()
