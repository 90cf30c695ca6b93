"""One trial, event by event.

The kernels say when each arm left; everything else about an event (means, threshold, what was
spent so far) follows from that and from single values of the walks. So a trial of a billion pulls
replays as fast as it ran, and its last line adds up to its row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fastfed.engine.job import Job
from fastfed.engine.rows import Block
from fastfed.engine.walk import walk
from fastfed.problem.instance import Instance
from fastfed.problem.schedule import Schedule
from fastfed.radius import alpha_global, alpha_local
from fastfed.validation import checked_whole

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Event:
    """At ``step``, ``actor`` (a client's name, or "server") lets go of an arm or declares it.

    ``mean`` is the arm's empirical mean there, ``leader`` the leader's, ``threshold`` 2 alpha:
    an arm falls when leader - mean >= threshold. ``pulls`` and ``uplinks`` are spent so far, this
    step included.
    """

    step: int
    actor: str
    event: str
    arm: str
    mean: float | None
    leader: float | None
    threshold: float | None
    pulls: int
    uplinks: int


@dataclass(frozen=True)
class Replay:
    """The events of a trial, and the row that they add up to."""

    title: str
    events: list[Event]
    row: dict[str, object]

    @property
    def frame(self) -> pl.DataFrame:
        import polars as pl

        floats = {"mean": pl.Float64, "leader": pl.Float64, "threshold": pl.Float64}
        return pl.DataFrame([vars(event) for event in self.events], schema_overrides=floats)

    def __str__(self) -> str:
        lines = [self.title, f"{'step':>16} {'who':<16} {'event':<10} {'arm':<12} {'mean':>9} "
                 f"{'leader':>9} {'2 alpha':>9} {'pulls':>18} {'uplinks':>12}"]
        for e in self.events:
            cells = [f"{x:9.4g}" if x is not None else " " * 9
                     for x in (e.mean, e.leader, e.threshold)]
            lines.append(f"{e.step:>16,} {e.actor:<16.16} {e.event:<10} {e.arm:<12.12} "
                         f"{' '.join(cells)} {e.pulls:>18,} {e.uplinks:>12,}")
        row = self.row
        lines.append(f"in all: {row['pulls']:,} pulls, {row['uplinks']:,} uplinks in "
                     f"{row['rounds']:,} rounds, {row['steps']:,} steps, "
                     + ("truncated" if row["truncated"] else
                        "every answer right" if row["correct"] else "not every answer right"))
        return "\n".join(lines)


def replay(
    instance: Instance,
    schedule: str | Schedule = "fedelim",
    *,
    delta: float,
    seed: int = 0,
    trial: int = 0,
    engine: str = "auto",
    sigma: float | str | None = None,
    max_steps: int | None = None,
) -> Replay:
    """Trial number ``trial`` of a run with this seed, event by event; equal to its row."""
    job = Job(instance, [schedule], delta=delta, seed=seed, engine=engine, sigma=sigma,
              max_steps=max_steps)
    number = checked_whole("trial", trial, 0, 2**62)
    left = departures(job, number)
    title = (f"{instance.name}, {job.schedules[0]}, delta {job.delta:g}, seed {job.seed}, "
             f"trial {number}")
    return Replay(title, _events(job, number, left),
                  job.frame(left.block).row(0, named=True))


@dataclass(frozen=True)
class Departures:
    """One trial of one schedule, arm by arm: the step at which each left, NEVER if it did not."""

    local: npt.NDArray[np.int64]  # (K, M)
    local_arms: npt.NDArray[np.int64]  # (M,) what the clients declare; -1: nothing
    server: npt.NDArray[np.int64]  # (K,)
    global_arm: int
    horizon: int  # nothing is followed past this step
    truncated: bool
    block: Block


def departures(job: Job, trial: int) -> Departures:
    """When each arm left, at each client and at the server, under the job's first schedule."""
    block = job.run(trial, 1, keep_departures=True)
    left = block.departures
    assert left is not None
    global_arm = int(block.column("global_arm")[0, 0])
    return Departures(
        left.local_out[0], left.local_arms[0], left.global_out[0, 0], global_arm,
        job.max_steps if global_arm >= 0 else job.horizon(0),
        bool(block.column("truncated")[0, 0]), block,
    )


def _events(job: Job, trial: int, left: Departures) -> list[Event]:
    instance, schedule = job.instance, job.schedules[0]
    arms, clients = instance.shape
    sigma, delta = job.sigma, job.delta
    times = np.zeros(0) if schedule.period is not None else schedule.times(job.max_steps)

    sums = walk(instance, job.seed, trial)

    def mean(k: int, m: int, n: int) -> float:
        return sums(k, m, n) / n

    def server_mean(k: int, n: int) -> float:
        return sum(mean(k, m, n) for m in range(clients)) / clients

    def spent(n: int) -> tuple[int, int]:
        pulled = np.minimum(np.maximum(left.local, left.server[:, None]), n)
        considered = np.minimum(left.server, n)
        if schedule.period is not None:
            talks = considered // schedule.period
        else:
            talks = np.searchsorted(times, considered, side="right")
        return int(pulled.sum()), int(talks.sum()) * clients

    def fall(actor: str, n: int, gone: list[int], means: dict[int, float], threshold: float,
             winner: int) -> list[Event]:
        leader = max(means.values())
        pulls, uplinks = spent(n)
        return [
            Event(n, actor, "declared" if k == winner else "eliminated", instance.arms[k],
                  means[k], leader, threshold, pulls, uplinks)
            for k in sorted(gone, key=lambda k: (k == winner, k))
        ]

    events: list[tuple[int, int, list[Event]]] = []
    for m in range(clients):
        for n in sorted({int(n) for n in left.local[:, m] if 0 < n <= left.horizon}):
            means = {k: mean(k, m, n) for k in range(arms) if left.local[k, m] >= n}
            gone = [k for k in range(arms) if left.local[k, m] == n]
            events.append((n, m, fall(f"client {instance.clients[m]}", n, gone, means,
                                      2 * alpha_local(n, arms, clients, delta, sigma),
                                      int(left.local_arms[m]))))
    for n in sorted({int(n) for n in left.server if 0 < n <= left.horizon}):
        means = {k: server_mean(k, n) for k in range(arms) if left.server[k] >= n}
        gone = [k for k in range(arms) if left.server[k] == n]
        events.append((n, clients, fall("server", n, gone, means,
                                        2 * alpha_global(n, arms, clients, delta, sigma),
                                        left.global_arm)))
    if arms == 1:  # declared at the first step, without a pull
        for m, actor in enumerate([*(f"client {name}" for name in instance.clients), "server"]):
            events.append((1, m, [Event(1, actor, "declared", instance.arms[0], None, None, None,
                                        0, 0)]))
    if left.truncated:
        pulls, uplinks = spent(left.horizon)
        events.append((left.horizon, clients + 1,
                       [Event(left.horizon, "trial", "truncated", "", None, None, None, pulls,
                              uplinks)]))
    return [event for _, _, group in sorted(events, key=lambda e: e[:2]) for event in group]
