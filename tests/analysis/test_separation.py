"""Sweeps that stop when the cheapest schedule is separated: false separations, and real stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import SMALL, refused, rows

import fastfed as ff
from fastfed.analysis.moments import UPLINK
from fastfed.analysis.separation import LEVEL, level_of_look, separated

LOOKS = 4
NAMES = ["x", "y", "same"]


def looks_until_separated(rng: np.random.Generator, factor: float = 1.0) -> int:
    """Simulate one sweep with looks at 1,000 to 8,000 trials; return the look that stops it.

    The costs of two schedules are log-normal, those of one times ``factor``. A third schedule does
    the same as the first. It is 0 if no look separates them.
    """
    count = 1000 * 2 ** (LOOKS - 1)
    x, y = np.rint(1000 * np.exp(0.8 * rng.standard_normal((2, count)))).astype(np.int64)
    pulls = {"x": x, "y": np.rint(y * factor).astype(np.int64), "same": x}
    trial, none = np.arange(count), np.zeros(count, np.int64)
    for look in range(1, LOOKS + 1):
        end = 1000 * 2 ** (look - 1)
        batch = {
            name: {
                "trial": trial[:end],
                "pulls": values[:end],
                "uplinks": none[:end],
                "bits": none[:end],
                "correct": none[:end] == 0,
                "truncated": none[:end] > 0,
            }
            for name, values in pulls.items()
        }
        if separated(lambda batch=batch: [batch], NAMES, 0.1, [(0.0, UPLINK)], look):  # type: ignore[misc]
            return look
    return 0


def test_levels_add_up() -> None:
    assert sum(map(level_of_look, range(1, 10_000))) <= LEVEL


@pytest.mark.parametrize(
    "sweeps", [150, pytest.param(2000, marks=pytest.mark.statistical)], ids=str
)
def test_false_separations(sweeps: int) -> None:
    """Schedules of equal distribution are separated in at most 5 % of sweeps.

    The limits are exceeded with a probability below 1e-6 if 5 % are.
    """
    rng = np.random.default_rng(1)
    wrong = sum(looks_until_separated(rng) > 0 for _ in range(sweeps))
    assert wrong <= {150: 22, 2000: 150}[sweeps]


def test_a_real_difference_is_found() -> None:
    rng = np.random.default_rng(2)
    assert {looks_until_separated(rng, 1.5) for _ in range(5)} == {1}


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
    assert rows(out)["trial"].n_unique() == 1000
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
