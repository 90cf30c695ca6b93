"""Validity of radii on hundreds of thousands of centred Gaussian walks.

`benchmarks/studies/validity.py` does the same with millions of walks and prints the table of
docs/explanation/radii.md.

The budget is a = 0.001. There, every built-in radius that is shrunk by 20 % clearly exceeds its
budget: by 0.0023 of the walks for the paper's radius, by more for the others. So one threshold both
clears the radii and convicts the shrunk ones. At a = 0.1 or 0.01 that is not so for all radii: the
paper's and the stitched ones are looser than 20 % there.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from helpers import built_in
from scipy import stats

from fastfed.model.radii import Radius

pytestmark = pytest.mark.statistical

_FILE = Path(__file__).parents[2] / "benchmarks" / "studies" / "validity.py"
_SPEC = importlib.util.spec_from_file_location("validity", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
validity = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(validity)

RADII = [name for name in built_in(Radius) if name != "betting"]  # which compares capitals
WALKS, STEPS, BUDGET = 100_000, 2**20, 0.001
MOST = int(stats.binom.isf(1e-7, WALKS, BUDGET))
"""More walks than this leave a radius that uses up its whole budget with probability 1e-7: over
the five radii, the false-alarm probability is at most 5e-7. The paper's radius, shrunk, leaves
with probability 0.0023 and would escape conviction with probability 1e-5."""


@pytest.mark.parametrize("radius", RADII)
def test_a_radius_is_left_no_more_often_than_its_budget(radius: str) -> None:
    assert validity.frequency(radius, BUDGET, WALKS, STEPS) <= MOST


@pytest.mark.parametrize("radius", RADII)
def test_a_radius_that_is_too_small_is_found_out(radius: str) -> None:
    assert validity.frequency(radius, BUDGET, WALKS, STEPS, shrunk=0.8) > MOST
