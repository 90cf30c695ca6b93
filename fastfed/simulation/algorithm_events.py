"""Events of one trial of an algorithm that decides in rounds."""

from __future__ import annotations

from functools import partial

from fastfed.kernels.algorithms import Batch
from fastfed.kernels.trials import PULLS, UPLINKS
from fastfed.model.schedules.algorithm import ABANDONED, UNDECIDED, server_weights
from fastfed.simulation.events import Event
from fastfed.simulation.job import Job, new_control
from fastfed.simulation.rows import Block


def round_events(job: Job, trial: int) -> tuple[list[Event], Block]:
    """Run a trial of the job's first schedule; return its rounds and declarations, and its row."""
    watcher = _Watcher(job)
    job.runners[0].run(trial, 1, new_control(), watcher.see)
    block = job.run(trial, 1)
    if block.column("truncated")[0, 0]:
        spent = {name: int(block.column(name)[0, 0]) for name in ("pulls", "uplinks")}
        steps = int(block.column("steps")[0, 0])
        watcher.events.append(Event(steps, "trial", "truncated", "", **spent))
    return watcher.events, block


class _Watcher:
    """The events so far."""

    def __init__(self, job: Job) -> None:
        self.events: list[Event] = []
        self._instance = job.instance
        self._weights = server_weights(job.instance)

    def see(self, number: int, batch: Batch) -> None:
        """Note a round: the arms that are pulled next, and who declares."""
        arms, clients = self._instance.shape
        counts, targets = batch.counts[0], batch.targets[0]
        step = int(counts.max())
        pulls, uplinks = (int(batch.ints[0, column]) for column in (PULLS, UPLINKS))
        told = partial(Event, step, pulls=pulls, uplinks=uplinks)
        declared = [int(one) for one in (*batch.local_arms[0], batch.global_arm[0, 0])]
        before = [*batch.local_before[0], batch.global_before[0, 0]]
        over = UNDECIDED not in declared
        pulled = [k for k in range(arms) if (targets[k] > counts[k]).any() and not over]
        names = ", ".join(self._instance.arms[k] for k in pulled)
        self.events.append(told("server", f"round {number}", names))
        for m, arm in enumerate(declared):
            if before[m] != UNDECIDED or arm == UNDECIDED or not -2 <= arm < arms:
                continue
            actor = "server" if m == clients else f"client {self._instance.clients[m]}"
            if arm == ABANDONED:
                self.events.append(told(actor, "abandoned", ""))
            else:
                name, mean = self._instance.arms[arm], self._mean(batch, arm, m)
                self.events.append(told(actor, "declared", name, mean))

    def _mean(self, batch: Batch, arm: int, m: int) -> float | None:
        """Return the mean of an arm at a client, or at the server, which comes last."""
        if m < self._instance.shape[1]:
            counts, sums = batch.counts[0, arm, m], batch.sums[0, arm, m]
            return float(sums / counts) if counts else None
        there = self._instance.available[arm]
        counts, sums = (one[0, arm, there] for one in (batch.received_counts, batch.received_sums))
        return float(self._weights[arm, there] @ (sums / counts)) if counts.all() else None
