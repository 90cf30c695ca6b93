"""Algorithm 1 as printed, line by line, in plain Python: the standard for all other code.

It shares nothing with the kernels but the formulas of `radius` and, with rewards from the
walk, single values X(n). It compares empirical means with 2 alpha, as the paper writes it and as
each goal's `decide` does, where the kernels compare sums with a boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from fastfed.confidence import MAX_STEPS, Confidence
from fastfed.errors import InputError
from fastfed.model.goals import Goal
from fastfed.model.goals.base import Decision
from fastfed.model.instance import Instance
from fastfed.model.participations import Participation
from fastfed.model.radii import Betting, Radius
from fastfed.model.schedules import Adaptive, Schedule
from fastfed.model.schedules.adaptive import Choice
from fastfed.model.setting import Setting
from fastfed.model.uplinks import Uplink
from fastfed.model.weights import ALIKE, ArmScales
from fastfed.simulation import reference_betting
from fastfed.simulation.reference_betting import Capitals
from fastfed.simulation.reference_uplink import Dithers, Wire, server_alpha, wire
from fastfed.simulation.walks import walk

Rewards = Callable[[int, int, int], float]
"""(arm, client, n) -> the reward of that arm's n-th pull. Called once for each, n ascending."""
Presence = Callable[[int, int], bool]
"""(client, n) -> whether the client takes part in the round at step n."""


@dataclass
class Outcome:
    """One trial.

    `eliminations` lists (n, client or None for the server, arm), in order, of the arms that were
    rejected; those of the server are of its first question.
    """

    pulls: np.ndarray
    uplinks: int = 0
    bits: int = 0
    rounds: int = 0
    steps: int = 0
    downlinks: int = 0
    local_arms: dict[int, int] = field(default_factory=dict)
    global_arm: int = -1
    server_arms: list[int] = field(default_factory=list)
    local_answers: dict[int, set[int]] = field(default_factory=dict)
    global_answer: set[int] | None = None
    server_answers: dict[int, set[int]] = field(default_factory=dict)
    truncated: bool = False
    eliminations: list[tuple[int, int | None, int]] = field(default_factory=list)

    @property
    def busiest(self) -> int:
        """The most pulls of any one client."""
        return int(self.pulls.sum(axis=0).max())


def independent_rewards(instance: Instance, rng: np.random.Generator) -> Rewards:
    """Return a function that draws rewards one by one from a NumPy generator."""
    draw = instance.rewards.draw(instance.means, rng)
    return lambda k, m, n: draw(k, m)


def walk_rewards(instance: Instance, seed: int, trial: int) -> Rewards:
    """Return the rewards that the kernels see in this trial: the increments of their walks."""
    sums = walk(instance, seed, trial)
    before: dict[tuple[int, int], float] = {}

    def reward(k: int, m: int, n: int) -> float:
        sum_now = sums(k, m, n)
        last = before.get((k, m), 0.0)
        before[k, m] = sum_now
        return float(sum_now - last)

    return reward


def independent_dithers(rng: np.random.Generator) -> Dithers:
    """Return a function of (arm, client, n) that draws dithers, each once: both ends ask for it."""
    return cache(lambda k, m, n: rng.uniform(-0.5, 0.5))


def fedelim(
    instance: Instance,
    schedule: Schedule,
    delta: float,
    reward: Rewards,
    *,
    sigma: float | None = None,
    max_steps: int = MAX_STEPS,
    radius: str | Radius = "paper",
    goal: str | Goal = "best",
    uplink: str | Uplink = "exact",
    participation: str | Participation = "full",
    dither: Dithers | None = None,
    presence: Presence | None = None,
) -> Outcome:
    """Run Algorithm 1 on one trial.

    `schedule` says when line 16 communicates (the paper: n = 2^t), `uplink` what the server
    receives then, `participation` from whom; `dither` belongs to uplinks that use it, `presence` to
    participations that do (`walks` has those of the kernels). What is decided at a step is the
    goal's rule (`fastfed.model.goals`); the paper's is that of `best`. Arms that are neither
    accepted nor rejected yet are pulled on, in S_l[m] and in S_g[q] of each question q of the
    server (`fastfed.model.weights`; the paper has one). A client pulls for the questions in which
    it has a weight, and sends for those that communicate.
    """
    setting = Setting(
        instance,
        delta,
        instance.default_sigma if sigma is None else sigma,
        radius=Radius.parse(radius),
        goal=Goal.parse(goal),
        uplink=Uplink.parse(uplink),
        participation=Participation.parse(participation),
    )
    if setting.participation.at_random and presence is None:
        raise InputError(
            f"participation {participation}: needs presence, a function of (client, n) such as "
            "walks.presence(seed, trial, probability)"
        )
    trial = _Trial(setting, schedule, reward, wire(setting, dither), presence)
    run = True
    while run:  # line 1
        trial.n += 1  # line 2
        for m in range(instance.shape[1]):  # line 3
            trial.pull(m)
            trial.decide_at_client(m)
        trial.communicate()
        if not any(trial.S_l.values()) and not any(trial.S_g.values()):  # termination rule
            run = False
        elif trial.n == max_steps or trial.is_out_of_times():
            # not in the paper: a trial that would go on for ever is cut off
            trial.out.truncated = True
            run = False
    return trial.declared()


class _Trial:
    """The state of Algorithm 1, by the paper's names; A_l and A_g are the accepted arms."""

    def __init__(
        self,
        setting: Setting,
        schedule: Schedule,
        reward: Rewards,
        line: Wire,
        presence: Presence | None = None,
    ) -> None:
        self.presence = presence or (lambda m, n: True)
        self.setting, self.schedule, self.reward, self.line = setting, schedule, reward, line
        self.goal, self.instance = setting.goal, setting.instance
        K, M = self.instance.shape
        questions = self.instance.questions
        self.Q = range(len(questions))
        self.asks = [
            {k: np.flatnonzero(asked).tolist() for k, asked in enumerate(questions.asked[q])}
            for q in self.Q
        ]
        self.times: set[int] | None = None  # of communication; None: they are periodic
        if isinstance(schedule, Adaptive):
            self.times = {schedule.first_time(setting.radii.server, setting.sigma)}
        elif schedule.period is None:
            self.times = set(schedule.times(MAX_STEPS).tolist())
        self.n = 0
        self.sums = np.zeros((K, M))
        available, candidates = self.instance.available, questions.candidates
        self.S_l: dict[int, set[int]] = {
            m: set(np.flatnonzero(available[:, m]).tolist() if questions.local else ())
            for m in range(M)
        }
        self.S_g = {q: set(np.flatnonzero(candidates[q]).tolist()) for q in self.Q}
        self.A_l: dict[int, set[int]] = {m: set() for m in range(M)}
        self.A_g: dict[int, set[int]] = {q: set() for q in self.Q}
        # a lone arm is declared at once; it is not pulled
        self.open_l = {m: self.goal.is_open(len(S)) for m, S in self.S_l.items()}
        self.open_g = {q: self.goal.is_open(len(S)) for q, S in self.S_g.items()}
        self.heard: dict[tuple[int, int], float] = {}  # the last report of each arm and client,
        self.last = np.zeros(M, dtype=np.int64)  # the step of the last report of each client,
        self.reports = np.zeros(M, dtype=np.int64)  # and the number of its reports
        self.capitals: dict[int, Capitals] = {}  # of clients, and from M on of questions
        if isinstance(setting.radius, Betting):
            self.capitals = reference_betting.all_capitals(setting, setting.radius.bets)
        self.out = Outcome(np.zeros((K, M), dtype=np.int64))

    def pull(self, m: int) -> None:
        """Let client m pull the arms that it, or a question that asks it, still considers."""
        S_m = set(self.S_l[m]) if self.open_l[m] else set()  # line 4
        for q in self.Q:
            if self.open_g[q]:
                S_m |= {k for k in self.S_g[q] if m in self.asks[q][k]}
        for k in sorted(S_m):  # line 5: selection rule
            reward = self.reward(k, m, self.n)
            self.sums[k, m] += reward
            if self.capitals and k in self.S_l[m]:
                self.capitals[m].see(k, 0, reward)
            self.out.pulls[k, m] += 1
            self.out.steps = self.n

    def decide_at_client(self, m: int) -> None:
        """Let client m eliminate, and declare."""
        if not self.S_l[m]:
            return
        n, A = self.n, self.A_l[m]
        mean = {k: self.sums[k, m] / n for k in sorted(self.S_l[m])}

        def decide() -> Decision:
            if self.capitals:
                return self.capitals[m].decide(self.goal, mean, A)
            return self.goal.decide(mean, self.setting.radii.client.alpha(n), A)

        ties = self.instance.local_ties[:, m]
        rejected, declared = self.settle(self.S_l[m], A, mean, ties, decide)
        if self.capitals:
            bets = self.capitals[m]
            bets.recentre(n, bets.scaled(self.sums[:, [m]] / n), self.S_l[m])
        self.out.eliminations += [(n, m, k) for k in rejected]
        if declared:
            self.out.local_answers[m] = self.A_l[m]

    def settle(
        self,
        S: set[int],
        A: set[int],
        mean: Mapping[int, float],
        ties: npt.NDArray[np.int64],
        decide: Callable[[], Decision],
    ) -> tuple[list[int], bool]:
        """Eliminate from S, and accept into A; return the rejected arms, and whether S is empty.

        S is emptied by giving up, too, and that is no declaration. ``ties`` has equal numbers for
        arms that tie.
        """
        accepted, rejected = set(mean), set[int]()
        if self.goal.is_open(len(mean) + len(A)):
            accepted, rejected = map(set, decide())
        A |= accepted
        S -= accepted | rejected
        declared = not S  # declaration rule
        if S and accepted | rejected and self.goal.gives_up({int(ties[k]) for k in S}):
            # not in the paper: no right answer is left, and the rest may take for ever
            S.clear()
            self.out.truncated = True
        return sorted(rejected), declared

    def communicates(self, q: int) -> bool:
        """Tell whether the clients send for question q at this step: the communication rule."""
        if not self.S_g[q] or not self.open_g[q]:
            return bool(self.S_g[q])
        if self.times is None:
            return self.n % (self.schedule.period or 1) == 0
        return self.n in self.times

    def communicate(self) -> None:
        """Let the clients send, and the server decide, in each question that communicates."""
        asking = list(filter(self.communicates, self.Q))
        sent = {  # a number is sent once, for all questions
            (k, m)
            for q in asking
            for k in (self.S_g[q] if self.open_g[q] else ())
            for m in self.asks[q][k]
            if self.presence(m, self.n)
        }
        for k, m in sorted(sent):
            self.heard[k, m], bits = self.line.send(k, m, self.n, self.sums[k, m] / self.n)
            self.out.bits += bits
        for m in sorted({m for _, m in sent}):
            self.last[m] = self.n
            self.reports[m] += 1
        told: set[int] = set()
        for q in asking:
            decided: set[int] = set()
            senders = sorted({m for k in self.S_g[q] for m in self.asks[q][k]})
            needed = self.n if self.setting.participation.waits else 1
            if not self.open_g[q] or (self.last[senders] >= needed).all():
                decided = self.decide_at_server(q)
            if self.open_g[q]:  # clients hear that their arms changed, or of the next time
                hears = self.asks[q] if isinstance(self.schedule, Adaptive) else decided
                told |= {m for k in hears for m in self.asks[q][k]}
        self.out.downlinks += len(told)
        self.out.uplinks += len(sent)
        self.out.rounds += bool(sent)

    def decide_at_server(self, q: int) -> set[int]:
        """Let the server eliminate, and declare, in question q; return the arms that it decides."""
        n, questions, A = self.n, self.instance.questions, self.A_g[q]
        mean = {
            k: questions.value(q, k, {m: self.heard[k, m] for m in self.asks[q][k]})
            if self.open_g[q]
            else 0.0
            for k in sorted(self.S_g[q])
        }
        bets = self.capitals.get(self.instance.shape[1] + q)
        scales = self.setting.scales(q)

        def decide() -> Decision:
            if bets is not None:
                bets.receive(n, self.heard, self.S_g[q])
                return bets.decide(self.goal, mean, A)
            alpha = server_alpha(self.setting, q, n, self.last, self.reports)
            return self.goal.decide(mean, alpha, A, scales)

        ties = self.instance.server_ties[q]
        rejected, declared = self.settle(self.S_g[q], A, mean, ties, decide)
        if bets is not None:
            bets.recentre(n, bets.means, self.S_g[q])
        if q == 0:
            self.out.eliminations += [(n, None, k) for k in rejected]
        if declared:
            self.out.server_answers[q] = self.A_g[q]
        if self.S_g[q] and isinstance(self.schedule, Adaptive):
            left, radius = {k: mean[k] for k in self.S_g[q]}, self.setting.radii.of(q)
            self.times = {next_time(self.schedule, n, left, radius, self.goal, A, scales).step}
        return set(rejected) | (A & mean.keys())

    def is_out_of_times(self) -> bool:
        """Tell whether an undecided question has no communication time left."""
        return self.times is not None and self.n >= max(self.times) and any(self.S_g.values())

    def declared(self) -> Outcome:
        """Return the outcome, with the arms that were declared where an answer is one arm."""
        out = self.out
        out.global_answer = out.server_answers.get(0)
        if self.goal.one_arm:
            out.local_arms = {m: next(iter(answer)) for m, answer in out.local_answers.items()}
            out.server_arms = [next(iter(out.server_answers.get(q, {-1}))) for q in self.Q]
            out.global_arm = out.server_arms[0]
        return out


def next_time(
    schedule: Adaptive,
    n: int,
    means: dict[int, float],
    radius: Confidence,
    goal: Goal,
    accepted: set[int],
    scales: ArmScales = ALIKE,
) -> Choice:
    """Choose the time after n from the means of the undecided arms, by the goal's own rule."""

    def decided_at(later: int) -> int:
        return sum(map(len, goal.decide(means, radius.alpha(later), accepted, scales)))

    return schedule.next_time(n, len(means), decided_at)
