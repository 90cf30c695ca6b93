"""How kernels are compiled.

`_nrt=False` turns Numba's reference counting off: kernels allocate nothing and keep nothing, so
there is nothing to count, and counting costs. Counting every array at every call, atomically, made
a trial of the paper's instance take 90 us and the first compile 13 s, with an early version of the
kernels; without it they were 28 us and 6 s.

Numba gives every function a second entrance from Python and a third from C. Functions that only
kernels call have none of them (`inner`, `inlined`): it saves a tenth of the first compile, and a
call from Python would crash. What tests call by itself is a `kernel`.

`forceinline=False` is said on purpose. A function that says nothing inherits the setting of the
one that it is first compiled for, so that all that an inlined function calls would be inlined as
well: three times the code, and a first compile of 20 s in place of 12.
"""

from __future__ import annotations

from typing import Any

from numba import njit

_OPTIONS: Any = {"error_model": "numpy", "_nrt": False}
_FROM_PYTHON: Any = {"no_cfunc_wrapper": True}
_NO_ENTRANCE: Any = {**_FROM_PYTHON, "no_cpython_wrapper": True}

INLINED: Any = {**_OPTIONS, **_NO_ENTRANCE, "forceinline": True}

_APART: Any = {"forceinline": False}

kernel = njit(**_OPTIONS, **_APART)
inner = njit(**_OPTIONS, **_NO_ENTRANCE, **_APART)
inlined = njit(**INLINED)
entry_point = njit(**_OPTIONS, **_FROM_PYTHON, **_APART, nogil=True, cache=True)
