"""Arrays that users give: what is wrong with one, and its protection once it is checked."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError

_T = TypeVar("_T", bound=np.generic)


def refuse_cells(
    name: str, array: npt.NDArray[np.float64], bad: npt.NDArray[np.bool_], rule: str
) -> None:
    """Refuse a matrix with bad cells; the refusal shows the first one and the rule."""
    if bad.any():
        k, m = np.argwhere(bad)[0]
        raise InputError(f"{name}[{k}, {m}] = {array[k, m]:g}: {rule}")


def frozen(array: npt.NDArray[_T]) -> npt.NDArray[_T]:
    """Make an array one that cannot be written to, and return it."""
    array.setflags(write=False)
    return array
