"""Threads and memory of a machine: the tasks that run at a time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fastfed.simulation import machine as machines
from fastfed.simulation.machine import Machine


@pytest.fixture(autouse=True)
def _hundred_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "physical_memory", lambda: 100.0)


def start(machine: Machine[int], needs: Sequence[int]) -> list[int]:
    """Start tasks 0, 1, ... that need so many bytes; return those that started."""
    left = iter(enumerate(needs))
    return [task for task, _ in machine.start(lambda: next(left, None))]


def test_a_task_has_one_thread() -> None:
    machine: Machine[int] = Machine(3)
    assert start(machine, 2 * [1]) == [0, 1]
    assert start(machine, 2 * [1]) == [0]
    machine.end(1)
    assert start(machine, 2 * [1]) == [0]


def test_a_task_that_does_not_fit_waits_for_its_turn() -> None:
    machine: Machine[int] = Machine(4)
    assert start(machine, [60, 70, 1]) == [0]
    assert start(machine, [1]) == []  # or a large task might wait for ever
    machine.end(60)
    assert start(machine, []) == [1]


def test_a_task_that_never_fits_runs_alone() -> None:
    machine: Machine[int] = Machine(2)
    assert machine.at_once(200) == 1
    assert start(machine, [200, 1]) == [0]
    machine.end(200)
    assert start(machine, []) == [1]


def test_tasks_at_once_are_limited_by_threads_and_memory() -> None:
    assert [Machine(3).at_once(need) for need in (0, 30, 40, 60)] == [3, 3, 2, 1]
