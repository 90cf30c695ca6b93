"""The reward distributions, a file each.

`hooks` lists what rewards have to answer; `gaussian` (with `gaussian_walk` and
`gaussian_pairwise`), `gaussian_noises`, `finite` (with `counts`, `permuted` and `finite_pairwise`)
and `poisson` answer it. Rewards register themselves when their file is imported, and a class of
`fastfed.model.rewards` imports that file when a run begins.
"""
