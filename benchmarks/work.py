"""Work that a time was for: trials, the pulls they stand for, nodes, draws."""

from __future__ import annotations

import os
from dataclasses import dataclass

from fastfed.kernels.trials import PULLS
from fastfed.simulation.rows import Block

EIGHT = ["fedelim", *(f"periodic:{10**p}" for p in range(6)), "superexponential"]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class Work:
    """Totals over trials. A node is an interval of a walk that was looked at, a draw one variate.

    Pulls are the algorithm's, added up over its schedules; a second of simulation is worth so many
    of them, and hardly any is simulated by itself: hence `effective`.
    """

    trials: int = 0
    pulls: float = 0.0
    nodes: int = 0
    draws: int = 0

    def add(self, block: Block) -> None:
        self.trials += block.trials
        self.pulls += float(block.ints[:, :, PULLS].sum(dtype=float))
        nodes, draws = block.work.sum(axis=0)
        self.nodes += int(nodes)
        self.draws += int(draws)

    def told(self, seconds: float) -> dict[str, float]:
        """As `extra_info`, if it took so many seconds."""
        return {
            "trials": self.trials,
            "microseconds_a_trial": seconds / self.trials * 1e6,
            "trials_a_second": self.trials / seconds,
            "pulls_a_trial": self.pulls / self.trials,
            "effective_pulls_a_second": self.pulls / seconds,
            "nodes_a_trial": self.nodes / self.trials,
            "draws_a_trial": self.draws / self.trials,
            "draws_a_second": self.draws / seconds,
        }
