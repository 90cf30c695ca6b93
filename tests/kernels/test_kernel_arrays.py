"""Arrays of kernels: elements and views are those of the NumPy array, whatever its type."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core.errors import TypingError

from fastfed.kernels.compiling import inner, kernel
from fastfed.kernels.kernel_arrays import fill
from fastfed.kernels.tuple_references import by_reference


class Arrays(NamedTuple):
    cube: Any
    out: Any


@inner
def _copy_doubled(arrays: Any) -> None:
    cube, out = arrays.cube, arrays.out
    for i in range(cube.shape[0]):
        plane = cube[i]
        for j in range(plane.shape[0]):
            row = cube[i, np.uint32(j)]
            for k in range(row.shape[0]):
                out[i, j, k] = row[k]
                out[i, j, k] += plane[j, k]


@kernel
def copy_doubled(arrays: Any) -> None:
    _copy_doubled(by_reference(arrays))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint32, np.uint64, np.bool_])
def test_elements_and_views(dtype: Any) -> None:
    cube = (np.arange(2 * 3 * 4) % 7).astype(dtype).reshape(2, 3, 4)
    out = np.zeros((2, 3, 4), dtype)
    copy_doubled(Arrays(cube, out))
    assert out.tolist() == (cube + cube).tolist()


@kernel
def write_beside(arrays: Any, n: int) -> Any:
    """Write integers to memory that is read again afterwards, as elements and by a tuple."""
    held = by_reference(arrays)
    total = 0.0
    for i in range(n):
        held.out[i, 0] = i
        again = by_reference(Arrays(held.cube, held.out[i]))
        again.out[1] = held.out[i, 0] + 1
        total += held.cube[held.out[i, 1]]
    return total


def test_what_was_written_is_read() -> None:
    values, out = np.arange(6.0), np.zeros((5, 2), np.int64)
    assert write_beside(Arrays(values, out), 5) == 15.0
    assert out.tolist() == [[i, i + 1] for i in range(5)]


@kernel
def strided(arrays: Any) -> Any:
    return by_reference(arrays).cube[1, 0]


def test_an_array_with_strides_stays_numbas() -> None:
    assert strided(Arrays(np.arange(12.0).reshape(3, 4).T, 0)) == 1.0


@kernel
def set_first(arrays: Any) -> None:
    by_reference(arrays).out[0] = 1.0


@kernel
def fill_view(arrays: Any) -> None:
    fill(by_reference(arrays).cube[0], 1.0)


@pytest.mark.parametrize("write", [set_first, fill_view])
def test_read_only_arrays_are_not_written(write: Any) -> None:
    kept = np.zeros((2, 2))
    kept.flags.writeable = False
    with pytest.raises(TypingError, match="readonly KernelArray"):
        write(Arrays(kept, kept[0]))
