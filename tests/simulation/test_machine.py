"""Threads and memory of a machine: the tasks that run at a time, and the share of each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fastfed.simulation import machine as machines
from fastfed.simulation.machine import Machine, Share


@pytest.fixture(autouse=True)
def _hundred_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "physical_memory", lambda: 100.0)


def start(machine: Machine[int], needs: Sequence[Share]) -> list[tuple[int, int]]:
    """Start tasks 0, 1, ... with these needs; return those that started, with their threads."""
    left = iter(enumerate(needs))
    return [(task, share.threads) for task, share in machine.start(lambda: next(left, None))]


@pytest.mark.parametrize(
    ("tasks", "threads"),
    [(1, [6]), (2, [3, 3]), (3, [2, 2, 2]), (4, [1, 1, 2, 2]), (6, 6 * [1]), (9, 6 * [1])],
)
def test_few_tasks_have_several_threads(tasks: int, threads: list[int]) -> None:
    found = start(Machine(6), tasks * [Share(1, 8)])
    assert found == list(enumerate(threads))


def test_threads_that_a_task_cannot_use_are_left_for_others() -> None:
    machine: Machine[int] = Machine(6)
    assert start(machine, [Share(1, 1), Share(1, 8)]) == [(0, 1), (1, 5)]
    assert start(machine, [Share(1, 1)]) == []
    machine.end(Share(1, 5))
    assert start(machine, [Share(1, 2), Share(1, 1), Share(1, 9)]) == [(0, 1), (1, 1), (2, 3)]


def test_a_task_that_does_not_fit_waits_for_its_turn() -> None:
    machine: Machine[int] = Machine(4)
    assert start(machine, [Share(60, 2), Share(70, 9), Share(1, 1)]) == [(0, 2)]
    assert start(machine, [Share(1, 1)]) == []  # or a large task might wait for ever
    machine.end(Share(60, 2))
    assert start(machine, []) == [(1, 4)]


def test_a_task_that_never_fits_runs_alone() -> None:
    machine: Machine[int] = Machine(2)
    assert machine.at_once(Share(200, 1)) == 1
    assert start(machine, [Share(200, 1), Share(1, 1)]) == [(0, 1)]
    machine.end(Share(200, 1))
    assert start(machine, []) == [(1, 1)]


def test_tasks_at_once_are_limited_by_threads_and_memory() -> None:
    assert [Machine(3).at_once(Share(need, 1)) for need in (0, 30, 40, 60)] == [3, 3, 2, 1]
