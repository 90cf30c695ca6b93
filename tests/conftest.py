"""Fixtures for several files of tests."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fastfed.sweeps import executors

if TYPE_CHECKING:
    from helpers import Call

pytest.register_assert_rewrite("helpers")
engine = importlib.import_module("fastfed.sweeps.run")  # `fastfed.sweep` itself is the function


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """What is computed from here on."""
    seen: list[Call] = []
    real = executors.compute

    def spy(task: executors.Task, control: Any = None) -> tuple[bytes, int]:
        seen.append((task.cell.instance, task.cell.delta, task.schedules, task.first,
                     task.first + task.count))
        return real(task, control)

    monkeypatch.setattr(executors, "compute", spy)
    return seen


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of five trials, whatever the speed."""
    assert callable(engine._Planner._size)
    monkeypatch.setattr(engine._Planner, "_size", lambda self, instance, workers: 5)
