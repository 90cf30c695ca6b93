"""Passes on verdicts give the same rows, lazily and as a whole, and step by step.

Nothing is statistical. Seeds are fixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastfed as ff
from fastfed.model.setting import Setting
from fastfed.simulation.job import Job

SCHEDULES = ["fedelim", "fedelim0", "periodic:7", "periodic:1000", "exponential:1.5"]
WEIGHTS = [[0.5, 0.2, 0.3], [0.0, 0.7, 0.3], [1.0, 1.0, 1.0]]
MEANS = np.random.default_rng(1).uniform(0.0, 1.0, (6, 3))
CASES: dict[str, tuple[ff.Instance, list[str], dict[str, Any]]] = {
    "best": (ff.Instance(3.0 * MEANS, weights=WEIGHTS), SCHEDULES, {}),
    "one client": (ff.Instance(3.0 * MEANS[:, :1]), ["fedelim0"], {}),
    "top": (ff.Instance(MEANS, ff.Bernoulli()), SCHEDULES, {"goal": "top:2", "sigma": 0.2}),
    "eps": (
        ff.Instance(2.0 * MEANS, ff.Poisson(sigma=0.8), weights=WEIGHTS[0]),
        SCHEDULES,
        {"goal": "eps:0.2", "radius": "mixture"},
    ),
    "threshold": (
        ff.Instance(MEANS, ff.Gaussian(np.full((6, 3), 0.4) + 0.1 * MEANS)),
        [*SCHEDULES, "adaptive"],
        {"goal": "threshold:0.5,0.05", "uplink": "dither:0.3"},
    ),
}


def _block(name: str, trials: int, lazily: bool = False, **run: Any) -> Any:
    instance, schedules, options = CASES[name]
    setting = Setting.of(instance, delta=0.05, seed=5, **run, **options)
    return Job(setting, schedules, keep_pulls=True).run(0, trials, keep_departures=not lazily)


def _assert_same(one: Any, other: Any) -> None:
    for name in ("ints", "pulls", "called", "server_arms"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for name in ("local_eliminated_at", "local_arms", "global_eliminated_at"):
        if one.departures is not None and other.departures is not None:
            found = (getattr(block.departures, name) for block in (one, other))
            assert np.array_equal(*found), name


@pytest.mark.fuzz
@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_of_whole_passes_and_of_every_step(name: str) -> None:
    whole = _block(name, 40)
    assert (whole.skip_error > 0.0).any()
    _assert_same(whole, _block(name, 40, lazily=True))
    dense, skip = (_block(name, 4, engine=one, max_steps=2**12) for one in ("dense", "skip"))
    _assert_same(dense, skip)
    assert (dense.skip_error == 0.0).all()
