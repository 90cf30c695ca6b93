"""The compiled layer: arrays and numbers in, arrays and numbers out.

`random` makes words, normals and discrete variates from addresses, and `rewards` makes walks of
those. `elimination` finds the step at which each arm leaves, with `unresolved` (the pairs that
might cross the boundary in an interval), `radii`, `schedules`, `goals`, `uplinks` and `memory`.
`trials` makes rows of that. No frame, file or name occurs here; callers check their input, kernels
trust it.
"""
