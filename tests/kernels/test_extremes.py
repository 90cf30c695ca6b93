"""The smaller and the larger of two numbers, compiled and in Python."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from fastfed.kernels.compiling import kernel
from fastfed.kernels.extremes import larger, smaller


@kernel
def extremes(first: Any, second: Any) -> Any:
    return smaller(first, second), larger(first, second), larger(first, 1), smaller(1.5, second)


@pytest.mark.parametrize(
    "numbers",
    [
        (-3, 0, 2**62),
        (-0.5, 0.0, -0.0, 2.5, np.inf, np.nan),
        (np.uint64(0), np.uint64(2**63), np.uint64(2**64 - 1)),
    ],
)
def test_they_are_min_and_max(numbers: tuple[Any, ...]) -> None:
    for first, second in product(numbers, numbers):
        wanted = min(first, second), max(first, second), max(first, 1), min(1.5, second)
        assert smaller(first, second) is wanted[0]
        assert larger(first, second) is wanted[1]
        for found, one in zip(extremes(first, second), wanted, strict=True):
            np.testing.assert_equal(float(found), float(one))


def test_types_are_unified() -> None:
    assert extremes(1, 2.5)[:2] == (1.0, 2.5)
