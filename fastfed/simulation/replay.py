"""One trial, event by event.

The kernels say when each arm left; everything else about an event (means, threshold, what was
spent so far) follows from that and from single values of the walks. So a trial of a billion pulls
replays as fast as it ran, and its last line adds up to its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import numpy as np
import numpy.typing as npt

from fastfed.confidence import Confidence
from fastfed.kernels.memory import NEVER, Flags, Ints
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

        return replay_table(self, ".frame").text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from fastfed.display.replay_table import replay_table

        return replay_table(self, ".frame").html()


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

    local: Ints  # (K, M)
    local_arms: Ints  # (M,) what the clients declare: see `kernels.memory`
    local_accepted: Flags  # (K, M) which arms are in the sets that they declare
    server: Ints  # (Q, K) in each question of the server
    server_accepted: Flags  # (Q, K)
    local_abandoned_at: Ints  # (M,) when a client gave up; 0: it did not
    server_abandoned_at: Ints  # (Q,)
    server_arms: Ints  # (Q,)
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
    abandoned_at, server = left.global_abandoned_at[0, 0], left.global_eliminated_at[0, 0]
    over = bool(((server < NEVER).all(axis=1) | (abandoned_at > 0)).all())
    several = len(block.server_arms) > 0
    return OneTrial(
        left.local_eliminated_at[0],
        left.local_arms[0],
        left.local_accepted[0],
        server,
        left.global_accepted[0, 0],
        left.local_abandoned_at[0],
        abandoned_at,
        block.server_arms[0, 0] if several else block.column("global_arm")[0],
        job.max_steps if over else job.horizon(0),
        bool(block.column("truncated")[0, 0]),
        # bounds of errors are larger if every client is followed; the row has those of any run
        job.run(trial, 1) if job.engine == "skip" else block,
    )


@dataclass(frozen=True)
class _Actor:
    """A client, or a question of the server: its arms, when each left, and what it knows."""

    name: str
    asked: Flags  # (K,) its arms
    left_at: Ints  # (K,)
    answer: Flags  # (K,) the arms that it declares
    abandoned_at: int
    radius: Confidence
    scales: ArmScales
    mean: Callable[[int, int], float]  # of an arm at a step
    alpha: Callable[[int], float]  # the radius of that mean


class _Story:
    """The events of one trial, from when each arm left and from single values of the walks."""

    def __init__(self, job: Job, trial: int, left: OneTrial) -> None:
        self.job, self.left, self.instance, self.goal = job, left, job.instance, job.goal
        self._schedule, self._questions = job.schedules[0], job.instance.questions
        self._sums = walk(job.instance, job.setting.seed, trial)
        self._wire = wire(job.setting, dithers(job.setting.seed, trial))
        last = np.where(left.server_abandoned_at > 0, left.server_abandoned_at, NEVER)
        asked = np.minimum(left.server, last[:, None])
        # (K, M): up to which step an arm is pulled for the server, and for the client itself
        self._for_server = self._questions.latest(asked.astype(np.float64)).astype(np.int64)
        last = np.where(left.local_abandoned_at > 0, left.local_abandoned_at, NEVER)
        self._for_client = np.minimum(left.local, last)
        self._server = [self._question(q) for q in range(len(self._questions))]
        local = range(job.instance.shape[1] if self._questions.local else 0)
        self._actors = [*map(self._client, local), *self._server]
        self._choices: dict[int, Choice] = {}
        self._reports: Reports | None = None  # if they may be missing, or noisy
        self._times: Ints | None = None  # none if periodic
        if isinstance(self._schedule, Adaptive):
            self._times = self._chosen_times(self._schedule)
        elif self._schedule.period is None:
            self._times = self._schedule.times(job.max_steps)
        if job.visits_rounds:
            until = int(left.block.column("steps")[0, 0])
            rounds = self._schedule.times(until) if self._times is None else self._times
            self._reports = Reports(job.setting, trial, rounds[rounds <= until], self._wire)

    def _client(self, m: int) -> _Actor:
        left, radius = self.left, self.job.setting.radii.client
        return _Actor(
            f"client {self.instance.clients[m]}",
            self.instance.available[:, m],
            left.local[:, m],
            self._answer(left.local_accepted[:, m], left.local_arms[m]),
            int(left.local_abandoned_at[m]),
            radius,
            ALIKE,
            lambda k, n: self._sums(k, m, n) / n,
            radius.alpha,
        )

    def _question(self, q: int) -> _Actor:
        left, radius = self.left, self.job.setting.radii.of(q)

        def alpha(n: int) -> float:
            return self._reports.alpha(q, n) if self._reports else radius.alpha(n)

        return _Actor(
            "server" if len(self._questions) == 1 else f"server, question {q}",
            self._questions.candidates[q],
            left.server[q],
            self._answer(left.server_accepted[q], left.server_arms[q]),
            int(left.server_abandoned_at[q]),
            radius,
            self.job.setting.scales(q),
            partial(self._received, q),
            alpha,
        )

    def _answer(self, accepted: Flags, arm: int) -> Flags:
        return np.arange(len(accepted)) == arm if self.goal.one_arm else accepted

    def _received(self, q: int, k: int, n: int) -> float:
        """Return the value of an arm in a question, from what the server has received by step n."""
        asked = np.flatnonzero(self._questions.asked[q, k]).tolist()
        if self._reports is None:
            means = {m: self._wire.heard(k, m, n, self._sums(k, m, n) / n) for m in asked}
        else:
            last, noise = self._reports.last(n).tolist(), self._reports.noise
            means = {m: (self._sums(k, m, last[m]) + noise(k, m, n)) / last[m] for m in asked}
        return self._questions.value(q, k, means)

    def events(self) -> list[Event]:
        """List all events by step; clients before the server, the end of the trial last."""
        told = [event for who in self._actors for event in self._departed(who)]
        told += [self._chose(self._server[0], n, choice) for n, choice in self._choices.items()]
        if self.left.truncated:
            ended = int(self.left.block.column("steps")[0, 0])
            pulls, uplinks = self._spent(ended)
            told.append(Event(ended, "trial", "truncated", "", pulls=pulls, uplinks=uplinks))
        return sorted(told, key=lambda event: event.step)

    def _chosen_times(self, schedule: Adaptive) -> Ints:
        """Follow the choices of the server, which are kept with the times of their making."""
        times, who = [], self._server[0]
        n = schedule.first_time(self.job.setting.radii.server, self.job.setting.sigma)
        while n <= self.left.horizon and self.goal.is_open(int(who.asked.sum())):
            times.append(n)
            means, accepted = self._undecided(who, n)
            if not means or n == who.abandoned_at:
                break
            choice = next_time(schedule, n, means, who.radius, self.goal, accepted, who.scales)
            self._choices[n] = choice
            n = choice.step
        return np.array(times, dtype=np.int64)

    def _undecided(self, who: _Actor, n: int) -> tuple[dict[int, float], set[int]]:
        """Return the means of the undecided arms after round n, and the accepted arms."""
        means = {k: who.mean(k, n) for k in np.flatnonzero(who.left_at > n).tolist()}
        accepted = () if self.goal.one_arm else np.flatnonzero((who.left_at <= n) & who.answer)
        return means, set(map(int, accepted))

    def _chose(self, who: _Actor, n: int, choice: Choice) -> Event:
        """Return the server's choice of its next time: the arms due there by the means of n."""
        means, accepted = self._undecided(who, n)
        due = self.goal.decide(means, who.alpha(choice.step), accepted, who.scales)
        arms = sorted(due.rejected if self.goal.one_arm else due.accepted | due.rejected)
        return Event(
            n,
            who.name,
            f"next at {choice.step:,}" + (f" ({choice.reason})" if choice.reason else ""),
            ", ".join(self.instance.arms[k] for k in arms),
            means[arms[0]] if len(arms) == 1 else None,
            max(means.values()) if self.goal.compares else None,
            2 * who.alpha(choice.step),
            *self._spent(n),
        )

    def _departed(self, who: _Actor) -> Iterator[Event]:
        """Yield how arms were decided or given up: the eliminated ones, then the declared ones."""
        words = ("eliminated", "declared") if self.goal.one_arm else ("rejected", "accepted")
        if not self.goal.is_open(int(who.asked.sum())):  # a lone arm is declared without a pull
            for k in np.flatnonzero(who.asked).tolist():
                yield Event(1, who.name, words[1], self.instance.arms[k])
        for n in sorted({*who.left_at.tolist(), who.abandoned_at}):
            if not 0 < n <= self.left.horizon:
                continue
            means = {k: who.mean(k, n) for k in np.flatnonzero(who.left_at >= n).tolist()}
            for k in sorted(means, key=lambda k: (bool(who.answer[k]), k)):
                if who.left_at[k] == n:
                    yield self._event(who, n, words[int(who.answer[k])], k, means)
            if n == who.abandoned_at:
                tied = {k: mean for k, mean in means.items() if who.left_at[k] > n}
                for k in tied:
                    yield self._event(who, n, "given up", k, tied)

    def _event(self, who: _Actor, n: int, word: str, k: int, means: dict[int, float]) -> Event:
        """Make the event of arm k, with the mean that decides about it and the lead at which."""
        leader = max(means.values()) if self.goal.compares else None
        threshold = None
        if not isinstance(self.job.setting.radius, Betting):
            threshold = 2 * who.alpha(n)
            if who.scales.arms is not None and self.goal.compares:
                lead = {j: threshold * who.scales.pair(j, k) * (j != k) for j in means}
                j = max(means, key=lambda one: means[one] - lead[one])
                leader, threshold = means[j], threshold * who.scales.pair(j, k)
            elif who.scales.arms is not None:
                threshold *= who.scales.arm(k)
        name = self.instance.arms[k]
        return Event(n, who.name, word, name, means[k], leader, threshold, *self._spent(n))

    def _spent(self, n: int) -> tuple[int, int]:
        """Return pulls and uplinks up to and including step n."""
        pulls = int(np.minimum(np.maximum(self._for_client, self._for_server), n).sum())
        until = np.minimum(self._for_server, n)
        if self._reports is not None:
            return pulls, self._reports.sent(until)
        if self._times is not None:
            return pulls, int(np.searchsorted(self._times, until, side="right").sum())
        return pulls, int((until // (self._schedule.period or 1)).sum())
