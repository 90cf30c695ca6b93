"""One trial, event by event.

The kernels say when each arm left; everything else about an event (means, threshold, what was
spent so far) follows from that and from single values of the walks. So a trial of a billion pulls
replays as fast as it ran, and its last line adds up to its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import numpy as np
import numpy.typing as npt

from fastfed.kernels.memory import NEVER
from fastfed.model.choices import choices_text
from fastfed.model.instance import Instance
from fastfed.model.options import takes
from fastfed.model.radii import Betting
from fastfed.model.schedules import Adaptive, Algorithm, Schedule
from fastfed.model.schedules.adaptive import Choice
from fastfed.model.setting import RUN, Options
from fastfed.model.weights import ALIKE, ArmScales
from fastfed.simulation.algorithm_events import round_events
from fastfed.simulation.events import Event
from fastfed.simulation.job import Job
from fastfed.simulation.reference import next_time
from fastfed.simulation.reference_uplink import wire
from fastfed.simulation.reports import Reports
from fastfed.simulation.rows import Block
from fastfed.simulation.walks import dithers, walk
from fastfed.validation import checked_trial

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, repr=False)
class Replay:
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
        from fastfed.display.replay_table import replay_table

        return replay_table(self).text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from fastfed.display.replay_table import replay_table

        return replay_table(self).html()


@takes(Options, RUN)
def replay(
    instance: Instance | str | Path | npt.ArrayLike,
    schedule: str | Schedule = "fedelim",
    *,
    delta: float,
    trial: int = 0,
    **options: Unpack[Options],
) -> Replay:
    """Replay one trial of a run, event by event; the result equals its row.

    Parameters
    ----------
    instance
        An `Instance`, a built-in's name or a file, or a K x M array of means.
    schedule
        The communication schedule.
    delta, seed, engine, sigma, max_steps, radius, goal, uplink, participation
        The same as for `fastfed.simulate`.
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
    job = Job.of(one, [schedule], delta=delta, **options)
    number = checked_trial(trial)
    title = (
        f"{one.name}, {job.schedules[0]}, delta {job.setting.delta:g}, seed {job.setting.seed}, "
        f"trial {number}{choices_text(job.setting.choices)}; rewards: {one.rewards_text}"
    )
    if isinstance(job.schedules[0], Algorithm):
        events, block = round_events(job, number)
    else:
        left = departures(job, number)
        events, block = _Story(job, number, left).events(), left.block
    return Replay(title, events, job.frame(block).row(0, named=True))


@dataclass(frozen=True)
class OneTrial:
    """One trial of one schedule, arm by arm: the step at which each left, NEVER if it did not."""

    local: npt.NDArray[np.int64]  # (K, M)
    local_arms: npt.NDArray[np.int64]  # (M,) what the clients declare: see `kernels.memory`
    local_accepted: npt.NDArray[np.bool_]  # (K, M) which arms are in the sets that they declare
    server: npt.NDArray[np.int64]  # (Q, K) in each question of the server
    server_arms: npt.NDArray[np.int64]  # (Q,)
    server_called: npt.NDArray[np.bool_]  # (Q, K)
    local_abandoned_at: npt.NDArray[np.int64]  # (M,) when a client gave up; 0: it did not
    server_gave_up: npt.NDArray[np.int64]  # (Q,)
    horizon: int  # nothing is followed past this step
    truncated: bool
    block: Block


def departures(job: Job, trial: int) -> OneTrial:
    """Return the step at which each arm left, for all clients and for the server.

    The server follows the job's first schedule.
    """
    block = job.run(trial, 1, keep_departures=True)
    left = block.departures
    assert left is not None
    gave_up = left.global_abandoned_at[0, 0]
    server = left.global_eliminated_at[0, 0]
    over = bool(((server < NEVER).all(axis=1) | (gave_up > 0)).all())
    several = len(block.server_arms) > 0
    return OneTrial(
        left.local_eliminated_at[0],
        left.local_arms[0],
        left.local_accepted[0],
        server,
        block.server_arms[0, 0] if several else block.column("global_arm")[0],
        left.global_accepted[0, 0],
        left.local_abandoned_at[0],
        gave_up,
        job.max_steps if over else job.horizon(0),
        bool(block.column("truncated")[0, 0]),
        # bounds of errors are larger if every client is followed; the row has those of any run
        job.run(trial, 1) if job.engine == "skip" else block,
    )


class _Story:
    """The events of one trial, from when each arm left and from single values of the walks."""

    def __init__(self, job: Job, trial: int, left: OneTrial) -> None:
        self.job, self.left, self.instance = job, left, job.instance
        self.arms, self.clients = job.instance.shape
        self._schedule = job.schedules[0]
        self._sums = walk(job.instance, job.setting.seed, trial)
        self._wire = wire(job.setting, dithers(job.setting.seed, trial))
        self._questions = job.instance.questions
        # those who answer: clients, unless only the server does, then the server's questions
        self._server = range(self.clients, self.clients + len(self._questions))
        self._actors = [*(range(self.clients) if self._questions.local else ()), *self._server]
        self._choices: dict[tuple[int, int], Choice] = {}
        self._reports: Reports | None = None  # if they may be missing, or noisy
        self._times: list[npt.NDArray[np.int64]] = []  # of each question; none if periodic
        if isinstance(self._schedule, Adaptive):
            self._times = [self._chosen_times(self._schedule, m) for m in self._server]
        elif self._schedule.period is None:
            self._times = [self._schedule.times(job.max_steps)] * len(self._questions)
        if job.visits_rounds:
            until = int(left.block.column("steps")[0, 0])
            rounds = self._times[0] if self._times else self._schedule.times(until)
            self._reports = Reports(job.setting, trial, rounds[rounds <= until], self._wire)

    def events(self) -> list[Event]:
        """List all events by step; clients before the server, the end of the trial last."""
        told = [(m, event) for m in self._actors for event in self._left_arms(m)]
        told += [(m, self._chose(m, n, choice)) for (m, n), choice in self._choices.items()]
        if self.left.truncated:
            ended = int(self.left.block.column("steps")[0, 0])
            pulls, uplinks = self._spent(ended)
            last = Event(ended, "trial", "truncated", "", pulls=pulls, uplinks=uplinks)
            told.append((self._server.stop, last))
        return [event for _, event in sorted(told, key=lambda one: (one[1].step, one[0]))]

    def _left_arms(self, m: int) -> Iterator[Event]:
        """Yield how the arms of a client, or of a question, were decided or given up."""
        asked = self._candidates(m)
        if not self.job.goal.is_open(len(asked)):  # a lone arm is declared without a pull
            word = "declared" if self.job.goal.one_arm else "accepted"
            yield from (Event(1, self._name(m), word, self.instance.arms[k]) for k in asked)
        out, _, gave_up = self._of(m)
        for n in sorted({int(n) for n in out if 0 < n <= self.left.horizon}):
            yield from self._departed(m, n)
        if 0 < gave_up <= self.left.horizon:
            yield from self._given_up(m, gave_up)

    def _chosen_times(self, schedule: Adaptive, m: int) -> npt.NDArray[np.int64]:
        """Follow the choices of a question, which are kept with the times of their making."""
        times = []
        radii = self.job.setting.radii
        n = schedule.first_time(radii.server, self.job.setting.sigma)
        while n <= self.left.horizon and self.job.goal.is_open(len(self._candidates(m))):
            times.append(n)
            means, accepted = self._undecided(m, n)
            if not means or n == self._of(m)[2]:
                break
            q = m - self.clients
            scales = self.job.setting.scales(q)
            choice = next_time(schedule, n, means, radii.of(q), self.job.goal, accepted, scales)
            self._choices[m, n] = choice
            n = choice.step
        return np.array(times, dtype=np.int64)

    def _undecided(self, m: int, n: int) -> tuple[dict[int, float], set[int]]:
        """Return the means of a question's undecided arms after round n, and the accepted arms."""
        out, called, _ = self._of(m)
        means = {k: self._mean(k, m, n) for k in range(self.arms) if out[k] > n}
        accepted = {k for k in range(self.arms) if out[k] <= n and called[k]}
        return means, set() if self.job.goal.one_arm else accepted

    def _chose(self, m: int, n: int, choice: Choice) -> Event:
        """Return the server's choice of its next time: the arms due there by the means of n."""
        means, accepted = self._undecided(m, n)
        alpha = 0.5 * (self._threshold(m, choice.step) or 0.0)
        due = self.job.goal.decide(means, alpha, accepted, self._scales(m))
        arms = sorted(due.rejected if self.job.goal.one_arm else due.accepted | due.rejected)
        return Event(
            n,
            self._name(m),
            f"next at {choice.step:,}" + (f" ({choice.reason})" if choice.reason else ""),
            ", ".join(self.instance.arms[k] for k in arms),
            means[arms[0]] if len(arms) == 1 else None,
            max(means.values()) if self.job.goal.compares else None,
            self._threshold(m, choice.step),
            *self._spent(n),
        )

    def _of(self, m: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], int]:
        """Return the steps at which arms left, the arms of the answer, and the step of abandoning.

        They are those of client m, or of question m - M of the server.
        """
        left = self.left
        if m < self.clients:
            out, called, winner = left.local[:, m], left.local_accepted[:, m], left.local_arms[m]
            gave_up = int(left.local_abandoned_at[m])
        else:
            q = m - self.clients
            out, called, winner = left.server[q], left.server_called[q], left.server_arms[q]
            gave_up = int(left.server_gave_up[q])
        if self.job.goal.one_arm:
            called = np.arange(self.arms) == winner
        return out, called, gave_up

    def _name(self, m: int) -> str:
        if m < self.clients:
            return f"client {self.instance.clients[m]}"
        return "server" if len(self._server) == 1 else f"server, question {m - self.clients}"

    def _mean(self, k: int, m: int, n: int) -> float:
        if m < self.clients:
            return self._sums(k, m, n) / n
        question = m - self.clients
        asked = np.flatnonzero(self._questions.asked[question, k]).tolist()
        if self._reports is None:
            heard = {one: self._wire.heard(k, one, n, self._sums(k, one, n) / n) for one in asked}
        else:
            last = self._reports.last(n).tolist()
            heard = {
                one: (self._sums(k, one, last[one]) + self._reports.noise(k, one, n)) / last[one]
                for one in asked
            }
        return self._questions.value(question, k, heard)

    def _threshold(self, m: int, n: int) -> float | None:
        if isinstance(self.job.setting.radius, Betting):
            return None
        radii = self.job.setting.radii
        if m >= self.clients and self._reports is not None:
            return 2 * self._reports.alpha(m - self.clients, n)
        radius = radii.client if m < self.clients else radii.of(m - self.clients)
        return 2 * radius.alpha(n)

    def _scales(self, m: int) -> ArmScales:
        return ALIKE if m < self.clients else self.job.setting.scales(m - self.clients)

    def _candidates(self, m: int) -> list[int]:
        """List the arms that a client, or a question, asks about."""
        asked = (
            self.instance.available[:, m]
            if m < self.clients
            else self._questions.candidates[m - self.clients]
        )
        return [int(k) for k in np.flatnonzero(asked)]

    def _compared(
        self, m: int, n: int, means: dict[int, float], k: int
    ) -> tuple[float | None, float | None]:
        """Return the mean that decides about arm k, and the lead at which it does."""
        threshold, scales = self._threshold(m, n), self._scales(m)
        if scales.arms is None or threshold is None:
            return max(means.values()) if self.job.goal.compares else None, threshold
        if not self.job.goal.compares:
            return None, threshold * scales.arm(k)
        behind = {one: threshold * scales.pair(one, k) * (one != k) for one in means}
        j = max(means, key=lambda one: means[one] - behind[one])
        return means[j], threshold * scales.pair(j, k)

    def _departed(self, m: int, n: int) -> list[Event]:
        """List the arms that left at step n: the eliminated ones, then the declared ones."""
        out, called, _ = self._of(m)
        means = {k: self._mean(k, m, n) for k in range(self.arms) if out[k] >= n}
        gone = sorted((k for k in means if out[k] == n), key=lambda k: (bool(called[k]), k))
        name, spent, arms = self._name(m), self._spent(n), self.instance.arms
        words = ("eliminated", "declared") if self.job.goal.one_arm else ("rejected", "accepted")
        return [
            Event(
                n,
                name,
                words[int(called[k])],
                arms[k],
                means[k],
                *self._compared(m, n, means, k),
                *spent,
            )
            for k in gone
        ]

    def _given_up(self, m: int, n: int) -> list[Event]:
        """Return the tied arms that are left at step n."""
        out = self._of(m)[0]
        means = {k: self._mean(k, m, n) for k in range(self.arms) if out[k] > n}
        name, leader, threshold = self._name(m), max(means.values()), self._threshold(m, n)
        seen = leader, threshold, *self._spent(n)
        arms = self.instance.arms
        return [Event(n, name, "given up", arms[k], mean, *seen) for k, mean in means.items()]

    def _spent(self, n: int) -> tuple[int, int]:
        """Return pulls and uplinks up to and including step n."""
        left, questions = self.left, self._questions
        gave_up = np.where(left.server_gave_up > 0, left.server_gave_up, n)
        server = np.minimum(left.server, gave_up[:, None])
        client = np.where(
            left.local_abandoned_at > 0, np.minimum(left.local, left.local_abandoned_at), left.local
        )
        needed = questions.latest(server.astype(np.float64)).astype(np.int64)
        pulled = np.minimum(np.maximum(client, needed), n)
        considered = np.minimum(needed, n)
        if self._reports is not None:
            return int(pulled.sum()), self._reports.sent(considered)
        if self._schedule.period is not None:
            return int(pulled.sum()), int((considered // self._schedule.period).sum())
        if not self._schedule.chosen:
            sent = np.searchsorted(self._times[0], considered, side="right")
            return int(pulled.sum()), int(sent.sum())
        messages = {
            (step, k, m)
            for q, times in enumerate(self._times)
            for step in times[times <= n].tolist()
            for k in np.flatnonzero(server[q] >= step).tolist()
            for m in np.flatnonzero(questions.asked[q, k]).tolist()
        }
        return int(pulled.sum()), len(messages)
