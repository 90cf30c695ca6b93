"""The compiled part: arrays and numbers in, arrays and numbers out.

`philox` makes words from addresses, `normal` normals and `variates` binomials and hypergeometrics
from words, `walk` and `counts` reward sums from those; `elimination` finds out when arms fall
(`layout` has its memory, `finite` its draws on counts), `trials` turns that into rows. Nothing
here knows of frames, files or names; callers check their input, kernels trust it.
"""
