"""Sweeps that stop when the cheapest schedule is separated: false separations, and real stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from helpers import SMALL, refused, rows

import fastfed as ff
from fastfed.analysis import separation
from fastfed.analysis.prices import UPLINK
from fastfed.analysis.separation import LEVEL, first_look, level_of_look, separated

LOOKS = 4


def batch_of(
    pulls: dict[str, Any], end: int, right: npt.NDArray[np.bool_] | None = None
) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """Make a batch of the first trials; schedule x answers wrongly where ``right`` is false."""
    none = np.zeros(end, np.int64)
    return {
        name: {
            "trial": np.arange(end),
            "pulls": values[:end],
            "uplinks": none,
            "bits": none,
            "correct": none == 0 if right is None or name != "x" else right[:end],
            "truncated": none > 0,
        }
        for name, values in pulls.items()
    }


def log_normal(rng: np.random.Generator, count: int) -> tuple[float, npt.NDArray[np.float64]]:
    """Return the mean and the costs of trials, log-normal with sigma = 2."""
    return 1e6, 1e6 * np.exp(2 * rng.standard_normal(count) - 2)


def rare_and_dear(rng: np.random.Generator, count: int) -> tuple[float, npt.NDArray[np.float64]]:
    """Return the mean and the costs of trials, of which 0.3 % cost 200 times as much."""
    dear = rng.random(count) < 0.003
    return 1e6 * (1 + 199 * 0.003), 1e6 * (1 + 199 * dear) + rng.integers(-99, 100, count)


def false_winner(rng: np.random.Generator, kind: str) -> bool:
    """Simulate one sweep of four looks; tell whether it stops with a winner that is none.

    "alike": the costs of two schedules are log-normal and alike, and a third does the same as the
    first. Otherwise the first schedule is 0.01 % dearer in truth than one of constant cost.
    """
    count = first_look(0.1) * 2 ** (LOOKS - 1)
    if kind == "alike":
        x, y = np.rint(1000 * np.exp(0.8 * rng.standard_normal((2, count)))).astype(np.int64)
        pulls = {"x": x, "y": y, "same": x}
    else:
        mean, costs = {"log-normal": log_normal, "rare and dear": rare_and_dear}[kind](rng, count)
        x = costs.astype(np.int64)
        pulls = {"x": x, "y": np.full(count, round(mean * 0.9999))}
    for look in range(1, LOOKS + 1):
        batch = batch_of(pulls, first_look(0.1) * 2 ** (look - 1))
        if separated(lambda batch=batch: [batch], list(pulls), 0.1, [(0.0, UPLINK)], look):  # type: ignore[misc]
            return kind == "alike" or batch["x"]["pulls"].mean() < batch["y"]["pulls"].mean()
    return False


@pytest.mark.parametrize("kind", ["alike", "log-normal", "rare and dear"])
@pytest.mark.parametrize("sweeps", [60, pytest.param(2000, marks=pytest.mark.statistical)], ids=str)
def test_false_winners_are_rare(kind: str, sweeps: int) -> None:
    """The limits are exceeded with a probability below 1e-6 if 5 % of sweeps have one.

    With one further trial in place of three, and a first look at 1,000 trials, 7.7 % of those with
    log-normal costs have one, and 6.1 % of those with rare and dear trials.
    """
    rng = np.random.default_rng(3)
    wrong = sum(false_winner(rng, kind) for _ in range(sweeps))
    assert wrong <= {60: 14, 2000: 150}[sweeps]


def test_levels_add_up() -> None:
    assert sum(map(level_of_look, range(1, 10_000))) <= LEVEL


def test_costs_schedules_and_further_trials_all_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A p-value just below 1.25 % is enough at look 1 with one cost and two schedules alone.

    Two costs need 0.63 %, as three schedules do. One further trial in place of three needs less.
    """
    rng, free = np.random.default_rng(4), (0.0, UPLINK)
    x = rng.normal(10_000, 100, 4000)
    d = rng.normal(0, 100, 4000)
    with_one_further = False
    for shift in np.linspace(0, 20, 400):
        y = (x + d + shift).astype(np.int64)
        batch = batch_of({"x": x.astype(np.int64), "y": y, "z": y}, 4000)
        alone, two_costs, three_schedules = (
            separated(lambda: [batch], names, 0.1, costs, 1)  # noqa: B023
            for names, costs in (
                (["x", "y"], [free]),
                (["x", "y"], [free, (1.0, UPLINK)]),
                (["x", "y", "z"], [free]),
            )
        )
        if alone:
            assert with_one_further
            assert not two_costs
            assert not three_schedules
            return
        with monkeypatch.context() as patch:
            patch.setattr(separation, "FURTHER", 1)
            with_one_further |= separated(lambda: [batch], ["x", "y"], 0.1, [free], 1)  # noqa: B023
    raise AssertionError("no shift was separated")


def test_trials_with_wrong_answers_separate_nothing() -> None:
    """The cost of a trial that loses the best arm does not count; its share must keep delta."""
    x = np.full(4000, 1000) + np.arange(4000) % 7
    pulls = {"x": x, "y": x + 100}
    pulls["x"][:100] = 10**9
    right = np.arange(4000) >= 100
    batch = batch_of(pulls, 4000, right)
    assert separated(lambda: [batch], ["x", "y"], 0.1, [(0.0, UPLINK)], 1)
    few = batch_of({"x": x[100:], "y": x[100:] + 100}, 2900)
    assert not separated(lambda: [few], ["x", "y"], 0.001, [(0.0, UPLINK)], 1)
    assert [first_look(delta) for delta in (0.1, 0.001)] == [2000, 3000]


GRID: dict[str, Any] = {
    "instances": SMALL,
    "deltas": [0.1],
    "schedules": ["fedelim", "fedelim0"],
    "trials": 4_000,
    "until_separated": True,
    "threads": 1,
    "progress": False,
}


def test_a_sweep_stops_when_its_cheapest_schedule_is_separated(tmp_path: Path) -> None:
    out = tmp_path / "far"
    done = ff.sweep(**GRID, costs=[1000], out=out)
    assert rows(out)["trial"].n_unique() == 2000
    assert done.best(costs=[1000])["rivals"].to_list() == [[]]
    before = rows(out)
    ff.sweep(**GRID, costs=[1000], out=out)  # nothing is left to do
    assert rows(out).equals(before)
    refused(lambda: ff.sweep(**GRID, shard="1/2", out=tmp_path / "no"), "until_separated", "1/2")


def test_a_sweep_of_equal_schedules_runs_to_the_end(tmp_path: Path) -> None:
    """A cost at which two schedules cost nearly the same separates nothing."""
    found = ff.open_sweep(ff.sweep(**{**GRID, "trials": 1000}, out=tmp_path / "a").folder).best()
    crossing = found.frame["cost_to"][0]
    done = ff.sweep(**GRID, costs=[crossing], out=tmp_path / "near")
    assert done.frame["trial"].n_unique() == 4000
