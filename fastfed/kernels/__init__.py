"""The compiled layer: arrays and numbers in, arrays and numbers out.

`random` makes words, normals and discrete variates from addresses, and `rewards` makes walks of
those. `elimination` finds the step at which each arm leaves, with `unresolved_pairs` (pairs of arms
that might cross the boundary in an interval), `radii`, `schedules`, `goals`, `uplinks`, `memory`.
`trials` makes rows of that. No frame, file or name occurs here; callers check their input, kernels
trust it.
"""
