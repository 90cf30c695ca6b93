"""Whether radii keep their promise: centred Gaussian walks by the hundred thousand.

`benchmarks/validity.py` does the same with millions and prints the table of
docs/explanation/radii.md. Here the budget is a = 0.001, at which every built-in radius, shrunk by
20 %, leaves its budget clearly (0.0023 of the walks for the paper's radius, more for the others),
so that the same threshold both clears the radii and convicts the shrunk ones. At a = 0.1 or 0.01
that is not so for all of them: the paper's radius and the stitched ones are looser than 20 % there.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from scipy import stats

from fastfed.radius import NAMES

_FILE = Path(__file__).parents[1] / "benchmarks" / "validity.py"
_SPEC = importlib.util.spec_from_file_location("validity", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
validity = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(validity)

WALKS, STEPS, BUDGET = 100_000, 2**20, 0.001
MOST = int(stats.binom.isf(1e-7, WALKS, BUDGET))
"""More walks than this leave a radius that uses up its whole budget with probability 1e-7: over
the five radii, the false-alarm probability is at most 5e-7. The paper's radius, shrunk, leaves
with probability 0.0023 and would escape conviction with probability 1e-5."""


@pytest.mark.parametrize("radius", NAMES)
def test_a_radius_is_left_no_more_often_than_its_budget(radius: str) -> None:
    assert validity.frequency(radius, BUDGET, WALKS, STEPS) <= MOST


@pytest.mark.parametrize("radius", NAMES)
def test_a_radius_that_is_too_small_is_found_out(radius: str) -> None:
    assert validity.frequency(radius, BUDGET, WALKS, STEPS, shrunk=0.8) > MOST
