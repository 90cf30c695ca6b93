"""The paper's claims, and some of our own.

Each claim is a set of cells: measured values that should lie below a limit. One cell stands for
each data set, delta, cost or whatever else the claim is about. `fastfed.paper.evidence` has the
measurements. `fastfed.analysis.verdicts` turns cells into verdicts. The limits are in `criteria`.
"""
