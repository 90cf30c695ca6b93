"""Intervals that are looked at with the radius `betting`, in longer and longer trials.

    python -m benchmarks.studies.betting

The table of docs/explanation/betting.md is written anew.
"""

from __future__ import annotations

from pathlib import Path

import fastfed as ff
from benchmarks.report import table, write_between
from fastfed.simulation.job import Job

GAPS = (0.1, 0.01, 0.001, 0.0001)
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "betting.md"


def intervals(clients: int, gap: float) -> list[float]:
    """Return mean steps, and the intervals that a client, FedElim0 and FedElim look at."""
    middles = [0.5] if clients == 1 else [0.7, 0.35, 0.5]
    means = [[one + side * gap / 2 for one in middles] for side in (1, -1)]
    instance = ff.Instance(means, ff.Bernoulli())
    blocks = [
        # with one round only the clients look at intervals
        Job.of(instance, schedule, delta=0.01, radius="betting:24", max_steps=2**45).run(0, 40)
        for schedule in ("at:1", "fedelim0", "fedelim")
    ]
    local, *both = [one.work[:, 0].mean() for one in blocks]
    steps = blocks[1].column("global_steps").mean()
    return [steps, local / clients, *(looks - local for looks in both)]


def main() -> None:
    """Write the table into the page."""
    head = ["clients", "gap", "steps of the server", "intervals, a client", "FedElim0", "FedElim"]
    lines = [
        [f"{clients}", f"{gap:g}", *(f"{one:,.0f}" for one in intervals(clients, gap))]
        for clients in (1, 3)
        for gap in GAPS
    ]
    write_between(PAGE, "intervals", table(head, lines))


if __name__ == "__main__":
    main()
