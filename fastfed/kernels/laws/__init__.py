"""The laws that rewards can follow, a file each.

`hooks` says what a law has to answer; `gaussian` (with `duel`), `gaussian_cells`, `finite` (with
`counts`, `permuted` and `finite_duel`) and `poisson` answer it. A law registers itself when its
file is imported, and a reward class of `fastfed.problem.rewards` imports the file of its law when a
run begins.
"""
