"""How kernels are compiled.

`_nrt=False` turns Numba's reference counting off: kernels allocate nothing and keep nothing, so
there is nothing to count, and counting costs. Counting every array at every call, atomically, made
a trial of the paper's instance take 90 us and the first compile 13 s; without it 28 us and 6 s.
"""

from __future__ import annotations

from numba import njit

kernel = njit(error_model="numpy", _nrt=False)
inlined = njit(error_model="numpy", _nrt=False, forceinline=True)
entry_point = njit(error_model="numpy", _nrt=False, nogil=True, cache=True)
