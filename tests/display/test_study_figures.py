"""The figures of the documentation's studies: drawn by the package, a style for each schedule."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastfed.display import figures
from fastfed.display.series import Chart
from fastfed.display.styles import style_of

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]
STUDIES = sorted(path.stem for path in (ROOT / "benchmarks" / "studies").glob("*.py"))


@pytest.mark.parametrize("name", STUDIES)
def test_study_can_be_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies run on demand only: nothing else notices a name that has moved."""
    monkeypatch.syspath_prepend(ROOT)
    assert study(name).main


def study(name: str) -> Any:
    return importlib.import_module(f"benchmarks.studies.{name}")


def test_goals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(ROOT)
    goals = study("goals")
    drawn: list[Chart] = []
    monkeypatch.setattr(goals, "write_chart", lambda one, stem, kinds: drawn.append(one))
    points = [[0.01, 40.0, 1.0, 60.0, 2.0], [0.1, 4.0, 0.1, 6.0, 0.2]]
    best = [[0.0, 50.0, 1.0, 70.0, 2.0]]
    goals.draw(tmp_path / "one", {"": points, "best": best}, "here", goals.axis("E"))
    goals.draw(
        tmp_path / "two",
        {"E = 1": points, "E = 2": points, "best": best},
        "here",
        goals.axis("threshold", linear_x=True),
    )
    one, two = drawn
    assert [line.style for line in one.lines if not line.plain] == [
        style_of("fedelim0"),
        style_of("fedelim"),
    ]
    assert [list(line.y) for line in one.lines] == [[40, 4], [60, 6], [50, 50], [70, 70]]
    looks = [line.style for line in two.lines if not line.plain]
    assert len(set(looks)) == 4
    assert [look.colour for look in looks] == 2 * [
        style_of(name).colour for name in ("fedelim0", "fedelim")
    ]
    for chart, scale in ((one, "log"), (two, "linear")):
        assert figures.chart_figure(chart).axes[0].get_xscale() == scale


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
