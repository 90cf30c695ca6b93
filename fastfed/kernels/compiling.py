"""How kernels are compiled.

`_nrt=False` turns Numba's reference counting off: kernels allocate nothing and keep nothing, so
there is nothing to count, and counting costs. Counting every array at every call, atomically, made
a trial of the paper's instance take 90 us and the first compile 13 s; without it 28 us and 6 s.
"""

from __future__ import annotations

from typing import Any

from numba import njit

_OPTIONS: Any = {"error_model": "numpy", "_nrt": False}

kernel = njit(**_OPTIONS)
inlined = njit(**_OPTIONS, forceinline=True)
entry_point = njit(**_OPTIONS, nogil=True, cache=True)
