"""Kernels that a process compiles for itself: what they promise, and how often they are compiled.

A process has no compiled code to begin with, and a tolerance so loose that rows of skipping do
differ from those of every step. It compares both, and then counts what Numba has compiled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from scipy import stats

pytestmark = pytest.mark.slow

PROGRAM = """
import importlib, json, math, pkgutil, sys
import fastfed.kernels.memory as memory
memory.SKIP_TOLERANCE = float(sys.argv[2])
memory.BAR = -math.log(memory.SKIP_TOLERANCE)
import numpy as np
import fastfed as ff
from fastfed import kernels
from numba.core.dispatcher import Dispatcher

six = ff.Instance([[0.2, 0.1], [0.1, 0.15], [0.0, 0.05]])
coins = ff.Instance([[0.55], [0.45]], ff.Bernoulli())
weights = np.random.default_rng(1).integers(1, 6, (3, 2, 4)) + 0.5
ratings = ff.Instance(rewards=ff.Finite([0, 1, 2, 5], weights))
jobs = {  # instance, schedule, trials, confidence scale, steps at most
    "synthetic": [(six, "fedelim0", 3000, 0.4, 2**12), (six, "periodic:3", 3000, 0.4, 2**12)],
    "bernoulli": [(coins, "fedelim0", 1000, 0.2, 2**14), (ratings, "fedelim0", 1000, 0.7, 2**14)],
}
told = []
for instance, schedule, trials, sigma, most in jobs[sys.argv[1]]:
    frames = [ff.simulate(instance, schedule, delta=0.2, trials=trials, sigma=sigma,
                          max_steps=most, engine=engine).frame for engine in ("skip", "dense")]
    skip, dense = (frame.drop("skip_error", "draw_error") for frame in frames)
    same = skip.hash_rows(seed=0) == dense.hash_rows(seed=0)
    bound = float(frames[0]["skip_error"].clip(0, 1).mean())
    told.append((int((~same).sum()), len(same), bound))

instance = ff.Instance.load(sys.argv[1])
for schedules in (["fedelim"], ["fedelim0", "periodic:7", "superexponential"]):
    for delta in (0.1, 0.01):
        ff.simulate(instance, schedules, delta=delta, trials=2, engine="skip")
        ff.simulate(instance, schedules, delta=delta, trials=2, engine="skip", keep_pulls=True)
modules = [importlib.import_module(found.name) for found in
           pkgutil.walk_packages(kernels.__path__, "fastfed.kernels.")]
functions = {function for module in modules for function in vars(module).values()
             if isinstance(function, Dispatcher)}
compiled = {str(function): [str(one) for one in function.signatures]
            for function in functions if function.signatures}
print(json.dumps([told, compiled]))
"""


PROCESSES = [("synthetic", "3e-3"), ("bernoulli", "1e-2")]
"""Instances, whose rewards decide which kernel is compiled, and tolerances."""


@pytest.fixture(scope="module", params=PROCESSES, ids=lambda one: one[0])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what a process found: rows that differ, and the signatures of what was compiled."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *request.param],
        check=True,
        env=environment,
        stdout=subprocess.PIPE,
    )
    return request.param[0], *json.loads(done.stdout)


def test_a_loose_tolerance_is_booked_as_it_is(told: Any) -> None:
    """Use a tolerance of 3e-3 or 1e-2 in place of 1e-15.

    Some rows differ from those of every step, but no larger share than the mean of `skip_error`
    (exact one-sided tests, 5e-7 each). A bound that is counted too small is refuted.
    """
    name, compared, _ = told
    assert len(compared) == 2
    for differing, rows, bound in compared:
        assert differing >= (10 if name == "synthetic" else 0)
        assert bound > 0
        assert stats.binom.sf(differing - 1, rows, min(1.0, bound)) > 5e-7


def test_every_kernel_is_compiled_once(told: Any) -> None:
    """One kernel serves all schedules, deltas and sizes of a kind of rewards.

    A literal 0 in place of an int64 makes Numba compile a function again.
    """
    _, _, compiled = told
    assert len(compiled) > 20
    for function, signatures in compiled.items():
        assert len(signatures) == 1, (function, signatures)
