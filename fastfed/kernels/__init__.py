"""The compiled part: arrays and numbers in, arrays and numbers out.

`random` makes words, normals and discrete variates from addresses, `laws` the walks of rewards
from those; `elimination` finds out when arms leave (with `doubt`, which says what pairs of arms
might cross the boundary in an interval, `boundary`, `communication`, and `memory`, where it keeps
things), `trials` turns that into rows. Nothing here knows of frames, files or names; callers check
their input, kernels trust it.
"""
