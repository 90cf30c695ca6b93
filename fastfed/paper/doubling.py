"""Test of a step in the proof of Theorem 4: FedElim's server against FedElim0's.

The proof says that an arm leaves FedElim's server before twice the step at which the arm leaves
FedElim0's. This module counts the arms for which that is false.

Both schedules are followed on the same walks. An arm that could be eliminated at one step need not
be at the next power of two. So the later step may be any multiple of the earlier one. On the good
event the later step lies below 2 n_k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastfed.kernels.memory import NEVER
from fastfed.model.instance import Instance
from fastfed.simulation.job import Job
from fastfed.theory.bounds import bounds

TRIALS = 20_000
DELTA = 0.01
_CHUNK = 5_000  # trials whose departures are held at once


@dataclass(frozen=True)
class Doubling:
    """Counts of the doubling test on the synthetic instance."""

    trials: int
    broken: int
    """Trials in which some arm leaves at twice the step or later."""
    largest: float
    """The largest ratio of the two steps."""
    late: int
    """Trials in which some arm leaves at 2 n_k or later."""

    def __str__(self) -> str:
        return (
            f"In {self.broken:,} of {self.trials:,} trials of the synthetic instance at delta "
            f"{DELTA:g} ({self.broken / self.trials:.1%}) it fails for some arm, with ratios "
            f"of up to {self.largest:.2f}; an arm left at 2 n_k or later in {self.late:,} of "
            "them."
        )


def doubling(trials: int = TRIALS, seed: int = 0) -> Doubling:
    """Follow so many trials."""
    instance = Instance.load("synthetic")
    job = Job.of(instance, ["fedelim0", "fedelim"], delta=DELTA, seed=seed)
    latest = 2 * np.asarray(bounds(instance, DELTA).n_k, dtype=float).reshape(-1)
    broken, largest, late = 0, 0.0, 0
    for first in range(0, trials, _CHUNK):
        block = job.run(first, min(_CHUNK, trials - first), keep_departures=True)
        assert block.departures is not None
        each, doubled = (block.departures.global_eliminated_at[:, place, 0] for place in (0, 1))
        both = (each != NEVER) & (doubled != NEVER)
        ratio = np.where(both, doubled / each, 0.0)
        broken += int((ratio >= 2).any(axis=1).sum())
        largest = max(largest, float(ratio.max()))
        late += int((both & (doubled >= latest)).any(axis=1).sum())
    return Doubling(trials, broken, largest, late)
