"""The compiled part: arrays and numbers in, arrays and numbers out.

`philox` makes words from addresses, `normal` normals from words, `walk` reward sums from normals,
`elimination` finds out when arms fall, `trials` turns that into rows. Nothing here knows of
frames, files or names; callers check their input, kernels trust it.
"""
