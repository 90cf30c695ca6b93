"""One trial, event by event.

The kernels say when each arm left; everything else about an event (means, threshold, what was
spent so far) follows from that and from single values of the walks. So a trial of a billion pulls
replays as fast as it ran, and its last line adds up to its row.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fastfed.choices import unusual_text
from fastfed.engine.job import Job
from fastfed.engine.rows import Block
from fastfed.engine.walk import dithers, walk
from fastfed.engine.wire import wire
from fastfed.errors import printable
from fastfed.faces import Faced
from fastfed.goals import Goal
from fastfed.kernels.memory import NEVER
from fastfed.problem.instance import Instance
from fastfed.problem.schedule import Schedule
from fastfed.radius import Radius
from fastfed.uplinks import Uplink
from fastfed.validation import checked_trial

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Event:
    """At ``step``, ``actor`` (a client's name, or "server") eliminates an arm or declares it.

    ``mean`` is the arm's empirical mean there (at the server, of what it has heard), ``leader`` the
    leader's among those that were left, ``threshold`` 2 alpha: an arm is eliminated when leader -
    mean >= threshold (what other goals than the best arm decide by is said in their files; with
    thresholds no arm has a leader). With goals whose answer is a set of arms, an arm is "accepted"
    into it or "rejected". ``pulls`` and ``uplinks`` are spent so far, this step included.
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


@dataclass(frozen=True, repr=False)
class Replay(Faced):
    """The events of a trial, and the row that they add up to; as text, the story.

    Examples
    --------
    >>> import fastfed as ff
    >>> story = ff.replay([[0.9], [0.1]], "fedelim", delta=0.1)
    >>> [(event.actor, event.event, event.arm) for event in story.events][-1]
    ('server', 'declared', '0')
    >>> story.events[-1].pulls == story.row["pulls"]
    True
    """

    title: str
    events: list[Event]
    row: dict[str, object]

    @property
    def frame(self) -> pl.DataFrame:
        """The events, one row each."""
        import polars as pl

        floats = {"mean": pl.Float64, "leader": pl.Float64, "threshold": pl.Float64}
        return pl.DataFrame([vars(event) for event in self.events], schema_overrides=floats)

    def __str__(self) -> str:
        rows = [("step", "who", "event", "arm", "mean", "leader", "2 alpha", "pulls", "uplinks")]
        for e in self.events:
            means = ("" if x is None else f"{x:.4g}" for x in (e.mean, e.leader, e.threshold))
            rows.append(
                (
                    f"{e.step:,}",
                    printable(e.actor),
                    e.event,
                    printable(e.arm),
                    *means,
                    f"{e.pulls:,}",
                    f"{e.uplinks:,}",
                )
            )  # type: ignore[arg-type]
        # every column is as wide as its longest cell: no name is cut
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [printable(self.title)]
        for cells in rows:
            lines.append(
                "  ".join(
                    f"{cell:<{width}}" if 1 <= place <= 3 else f"{cell:>{width}}"
                    for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
                )
            )
        row = self.row
        plain = row["bits"] is None or row["uplink"] == "exact"
        sent = "" if plain else f" of {row['bits']:,} bits"
        lines.append(
            f"in all: {row['pulls']:,} pulls, {row['uplinks']:,} uplinks{sent} in "
            f"{row['rounds']:,} rounds, {row['steps']:,} steps, "
            + (
                "truncated"
                if row["truncated"]
                else "every answer right"
                if row["correct"]
                else "not every answer right"
            )
        )
        return "\n".join(lines)

    __repr__ = __str__


def replay(
    instance: Instance | str | Path | npt.ArrayLike,
    schedule: str | Schedule = "fedelim",
    *,
    delta: float,
    seed: int = 0,
    trial: int = 0,
    engine: str = "auto",
    sigma: float | str | None = None,
    max_steps: int | None = None,
    radius: str | Radius = "paper",
    goal: str | Goal = "best",
    uplink: str | Uplink = "exact",
) -> Replay:
    """One trial of a run, event by event; equal to its row.

    Parameters
    ----------
    instance
        An `Instance`, a built-in's name or a file, or a K x M array of means.
    schedule
        When clients talk to the server.
    delta, seed, engine, sigma, max_steps, radius, goal, uplink
        As of `fastfed.simulate`.
    trial
        The number of the trial.

    Returns
    -------
    Replay
        Print it, or take its ``frame`` of events and its ``row``.

    Examples
    --------
    >>> import fastfed as ff
    >>> story = ff.replay("synthetic", "fedelim", delta=0.01, trial=7312)
    >>> story.events[-1].event
    'declared'
    """
    one = Instance.of(instance)
    job = Job(
        one,
        [schedule],
        delta=delta,
        seed=seed,
        engine=engine,
        sigma=sigma,
        max_steps=max_steps,
        radius=radius,
        goal=goal,
        uplink=uplink,
    )
    number = checked_trial(trial)
    left = departures(job, number)
    title = (
        f"{one.name}, {job.schedules[0]}, delta {job.delta:g}, seed {job.seed}, "
        f"trial {number}{unusual_text(job.choices)}; rewards: {one.rewards!r}"
    )
    return Replay(
        title, _Story(job, number, left).events(), job.frame(left.block).row(0, named=True)
    )


@dataclass(frozen=True)
class OneTrial:
    """One trial of one schedule, arm by arm: the step at which each left, NEVER if it did not."""

    local: npt.NDArray[np.int64]  # (K, M)
    local_arms: npt.NDArray[np.int64]  # (M,) what the clients declare: see `kernels.memory`
    local_called: npt.NDArray[np.bool_]  # (K, M) which arms are in the sets that they declare
    server: npt.NDArray[np.int64]  # (K,)
    global_arm: int
    global_called: npt.NDArray[np.bool_]  # (K,)
    local_gave_up: npt.NDArray[np.int64]  # (M,) when a client gave up; 0: it did not
    global_gave_up: int
    horizon: int  # nothing is followed past this step
    truncated: bool
    block: Block


def departures(job: Job, trial: int) -> OneTrial:
    """When each arm left, at each client and at the server, under the job's first schedule."""
    block = job.run(trial, 1, keep_departures=True)
    left = block.departures
    assert left is not None
    global_arm = int(block.column("global_arm")[0, 0])
    gave_up = int(left.global_gave_up[0, 0])
    server = left.global_out[0, 0]
    called = left.global_called[0, 0]
    ended = bool((server < NEVER).all())
    return OneTrial(
        left.local_out[0],
        left.local_arms[0],
        left.local_called[0],
        server,
        global_arm,
        called,
        left.local_gave_up[0],
        gave_up,
        job.max_steps if ended or gave_up else job.horizon(0),
        bool(block.column("truncated")[0, 0]),
        block,
    )


class _Story:
    """The events of one trial, from when each arm left and from single values of the walks."""

    def __init__(self, job: Job, trial: int, left: OneTrial) -> None:
        self.job, self.left, self.instance = job, left, job.instance
        self.arms, self.clients = job.instance.shape
        self._schedule = job.schedules[0]
        self._times = (
            np.zeros(0)
            if self._schedule.period is not None
            else self._schedule.times(job.max_steps)
        )
        self._sums = walk(job.instance, job.seed, trial)
        self._wire = wire(job.uplink, job.mean_radius, dithers(job.seed, trial))

    def events(self) -> list[Event]:
        """All of them, in order of step; clients before the server, the end of the trial last."""
        told: list[tuple[int, int, list[Event]]] = []
        if not self.job.goal.is_open(self.arms):  # a lone arm is declared without a pull
            told = [
                (
                    1,
                    m,
                    [
                        Event(
                            1,
                            self._name(m),
                            "declared",
                            self.instance.arms[0],
                            None,
                            None,
                            None,
                            0,
                            0,
                        )
                    ],
                )
                for m in range(self.clients + 1)
            ]
        for m in range(self.clients + 1):
            out, _, gave_up = self._of(m)
            for n in sorted({int(n) for n in out if 0 < n <= self.left.horizon}):
                told.append((n, m, self._departed(m, n)))
            if 0 < gave_up <= self.left.horizon:
                told.append((gave_up, m, self._given_up(m, gave_up)))
        if self.left.truncated:
            ended = int(self.left.block.column("steps")[0, 0])
            told.append(
                (
                    ended,
                    self.clients + 1,
                    [Event(ended, "trial", "truncated", "", None, None, None, *self._spent(ended))],
                )
            )
        return [event for _, _, group in sorted(told, key=lambda one: one[:2]) for event in group]

    def _of(self, m: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], int]:
        """When each arm left, which of them are the answer, when it was given up: at client m, or
        at the server, which comes after the clients."""
        left = self.left
        if m < self.clients:
            out, called, winner = left.local[:, m], left.local_called[:, m], left.local_arms[m]
            gave_up = int(left.local_gave_up[m])
        else:
            out, called, winner = left.server, left.global_called, left.global_arm
            gave_up = left.global_gave_up
        if self.job.goal.one_arm:
            called = np.arange(self.arms) == winner
        return out, called, gave_up

    def _name(self, m: int) -> str:
        return f"client {self.instance.clients[m]}" if m < self.clients else "server"

    def _mean(self, k: int, m: int, n: int) -> float:
        if m < self.clients:
            return self._sums(k, m, n) / n
        return (
            sum(
                self._wire.heard(k, client, n, self._sums(k, client, n) / n)
                for client in range(self.clients)
            )
            / self.clients
        )

    def _threshold(self, m: int, n: int) -> float:
        radius = self.job.local_radius if m < self.clients else self.job.global_radius
        return 2 * radius.alpha(n)

    def _departed(self, m: int, n: int) -> list[Event]:
        """Who left at step n: the eliminated arms, then the declared ones."""
        out, called, _ = self._of(m)
        means = {k: self._mean(k, m, n) for k in range(self.arms) if out[k] >= n}
        gone = sorted((k for k in means if out[k] == n), key=lambda k: (bool(called[k]), k))
        leader = max(means.values()) if self.job.goal.compares else None
        threshold = self._threshold(m, n)
        words = ("eliminated", "declared") if self.job.goal.one_arm else ("rejected", "accepted")
        return [
            Event(
                n,
                self._name(m),
                words[int(called[k])],
                self.instance.arms[k],
                means[k],
                leader,
                threshold,
                *self._spent(n),
            )
            for k in gone
        ]

    def _given_up(self, m: int, n: int) -> list[Event]:
        """The arms that tie and are left at step n."""
        out = self._of(m)[0]
        means = {k: self._mean(k, m, n) for k in range(self.arms) if out[k] > n}
        return [
            Event(
                n,
                self._name(m),
                "given up",
                self.instance.arms[k],
                mean,
                max(means.values()),
                self._threshold(m, n),
                *self._spent(n),
            )
            for k, mean in means.items()
        ]

    def _spent(self, n: int) -> tuple[int, int]:
        """Pulls and uplinks up to and including step n."""
        left = self.left
        server = np.minimum(left.server, left.global_gave_up or n)
        client = np.where(
            left.local_gave_up > 0, np.minimum(left.local, left.local_gave_up), left.local
        )
        pulled = np.minimum(np.maximum(client, server[:, None]), n)
        considered = np.minimum(server, n)
        if self._schedule.period is not None:
            talks = considered // self._schedule.period
        else:
            talks = np.searchsorted(self._times, considered, side="right")
        return int(pulled.sum()), int(talks.sum()) * self.clients
