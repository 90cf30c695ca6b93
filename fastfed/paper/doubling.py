"""Test of a step in the proof of Theorem 4: FedElim's server against FedElim0's.

The proof says that an arm leaves FedElim's server before twice the step at which the arm leaves
FedElim0's. This module counts the trials in which that is false for some arm.

Both schedules are followed on the same walks. An arm that could be eliminated at one step need not
be at the next power of two. So the later step may be any multiple of the earlier one. On the good
event the later step lies below 2 n_k.
"""

from __future__ import annotations

from fastfed.analysis.verdicts import Cell, share
from fastfed.kernels.memory import NEVER
from fastfed.model.instance import Instance
from fastfed.simulation.job import Job

TRIALS = 20_000
DELTA = 0.01
_CHUNK = 5_000  # trials whose departures are held at once


def doubling(trials: int, seed: int = 0) -> list[Cell]:
    """Count the trials in which the step is false: one cell, on the synthetic instance."""
    job = Job.of(Instance.load("synthetic"), ["fedelim0", "fedelim"], delta=DELTA, seed=seed)
    broken = 0
    for first in range(0, trials, _CHUNK):
        block = job.run(first, min(_CHUNK, trials - first), keep_departures=True)
        assert block.departures is not None
        each, doubled = (block.departures.global_eliminated_at[:, place, 0] for place in (0, 1))
        both = (each != NEVER) & (doubled != NEVER)
        broken += int((both & (doubled >= 2 * each)).any(axis=1).sum())
    return [{"instance": "synthetic", "delta": DELTA, **share(broken, 0, trials, DELTA)}]
