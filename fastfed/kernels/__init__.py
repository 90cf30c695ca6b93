"""The compiled layer: arrays and numbers in, arrays and numbers out.

`random` makes words, normals and discrete variates from addresses, and `rewards` makes walks of
those. `verdicts` judges pairs of arms in an interval, `decisions` has the goals that read verdicts,
and `passes` is the pass that finds the step at which each arm leaves, for the server and for
clients. `clients` and `client_brackets` follow a client only as far as a row needs it. `trials`
makes rows of that. No frame, file or name occurs here; callers check their input, kernels trust it.
"""
