"""Algorithm 1 as printed, line by line, in plain Python: the standard for all other code.

It shares nothing with the kernels but the formulas of `radius` and, with rewards from the
walk, single values X(n). It compares empirical means with 2 alpha, as the paper writes it and as
each goal's `decide` does, where the kernels compare sums with a boundary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fastfed.confidence import MAX_STEPS, Confidence
from fastfed.model.goals import Goal
from fastfed.model.instance import Instance
from fastfed.model.radii import Radius
from fastfed.model.schedules import Adaptive, Schedule
from fastfed.model.schedules.adaptive import Choice
from fastfed.model.setting import Setting
from fastfed.model.uplinks import Uplink
from fastfed.simulation.reference_uplink import Dithers, wire

Rewards = Callable[[int, int, int], float]
"""(arm, client, n) -> the reward of that arm's n-th pull. Called once for each, n ascending."""


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
    local_arms: dict[int, int] = field(default_factory=dict)
    global_arm: int = -1
    server_arms: list[int] = field(default_factory=list)
    local_answers: dict[int, set[int]] = field(default_factory=dict)
    global_answer: set[int] | None = None
    server_answers: dict[int, set[int]] = field(default_factory=dict)
    truncated: bool = False
    eliminations: list[tuple[int, int | None, int]] = field(default_factory=list)


def independent_rewards(instance: Instance, rng: np.random.Generator) -> Rewards:
    """Rewards drawn one by one from a NumPy generator."""
    draw = instance.rewards.draw(instance.means, rng)
    return lambda k, m, n: draw(k, m)


def walk_rewards(instance: Instance, seed: int, trial: int) -> Rewards:
    """Return the rewards that the kernels see in this trial: the increments of their walks."""
    from fastfed.simulation.walks import walk

    sums = walk(instance, seed, trial)
    before: dict[tuple[int, int], float] = {}

    def reward(k: int, m: int, n: int) -> float:
        sum_now = sums(k, m, n)
        last = before.get((k, m), 0.0)
        before[k, m] = sum_now
        return float(sum_now - last)

    return reward


def independent_dithers(rng: np.random.Generator) -> Dithers:
    """Dithers drawn one by one from a NumPy generator; each is asked for by both ends."""
    drawn: dict[tuple[int, int, int], float] = {}

    def dither(k: int, m: int, n: int) -> float:
        if (k, m, n) not in drawn:
            drawn[k, m, n] = rng.uniform(-0.5, 0.5)
        return drawn[k, m, n]

    return dither


def walk_dithers(seed: int, trial: int) -> Dithers:
    """Return the dithers of this trial in the kernels."""
    from fastfed.simulation.walks import dithers

    return dithers(seed, trial)


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
    dither: Dithers | None = None,
) -> Outcome:
    """Run Algorithm 1 on one trial.

    `schedule` says when line 16 communicates (the paper: n = 2^t), `uplink` what the server
    receives then; `dither` belongs to uplinks that use it. What is decided at a step is the goal's
    rule (`fastfed.model.goals`); the paper's is that of `best`. Arms that are neither accepted nor
    rejected yet are pulled on, in S_l[m] and in S_g[q] of each question q of the server
    (`fastfed.model.weights`; the paper has one). A client pulls for the questions in which it has a
    weight, and sends for those that communicate.
    """
    K, M = instance.shape
    questions = instance.questions
    wanted = Goal.parse(goal)
    scale = instance.default_sigma if sigma is None else sigma
    means = Uplink.parse(uplink)
    setting = Setting(
        instance, delta, scale, radius=Radius.parse(radius), goal=wanted, uplink=means
    )
    radii = setting.radii
    alpha_l = radii.client.alpha
    line = wire(means, radii.means, dither)
    Q = range(len(questions))
    asks = [[m for m in range(M) if questions.asked[q, m]] for q in Q]
    times: dict[int, set[int]] | None = None
    if isinstance(schedule, Adaptive):
        times = {q: {schedule.first_time(radii.server, scale)} for q in Q}
    elif schedule.period is None:
        times = {q: set(schedule.times(MAX_STEPS).tolist()) for q in Q}
    n = 0
    sums = np.zeros((K, M))
    S_l: dict[int, set[int]] = {m: set(range(K) if questions.local else ()) for m in range(M)}
    S_g = {q: set(range(K)) for q in Q}
    A_l: dict[int, set[int]] = {m: set() for m in range(M)}
    A_g: dict[int, set[int]] = {q: set() for q in Q}
    out = Outcome(np.zeros((K, M), dtype=np.int64))
    run = True
    while run:  # line 1
        n += 1  # line 2
        for m in range(M):  # line 3
            S_m = S_l[m].union(*(S_g[q] for q in Q if m in asks[q]))  # line 4
            if S_m and wanted.is_open(K):  # line 5: selection rule; a lone arm is not pulled
                for k in sorted(S_m):
                    sums[k, m] += reward(k, m, n)
                    out.pulls[k, m] += 1
                    out.steps = n
            if S_l[m]:
                mean = {k: sums[k, m] / n for k in sorted(S_l[m])}
                accepted, rejected = _decided(wanted, mean, alpha_l(n), A_l[m])
                out.eliminations += [(n, m, k) for k in sorted(rejected)]
                A_l[m] |= accepted
                S_l[m] -= accepted | rejected
                if not S_l[m]:  # declaration rule
                    out.local_answers[m] = A_l[m]
                elif rejected | accepted and wanted.gives_up(
                    {int(instance.local_ties[k, m]) for k in S_l[m]}
                ):
                    # not in the paper: no right answer is left, and the rest may take for ever
                    S_l[m] = set()
                    out.truncated = True
        received: dict[tuple[int, int], float] = {}
        for q in Q:
            communicates = n in times[q] if times is not None else n % (schedule.period or 1) == 0
            if not S_g[q] or not (communicates or not wanted.is_open(K)):  # communication rule
                continue
            for k, m in ((k, m) for k in sorted(S_g[q]) for m in asks[q]):
                if (k, m) not in received:  # a number is sent once, for all questions
                    received[k, m], bits = line.send(k, m, n, sums[k, m] / n)
                    out.bits += bits if wanted.is_open(K) else 0
            mean = {
                k: questions.value(q, {m: received[k, m] for m in asks[q]}) for k in sorted(S_g[q])
            }
            alpha_g = radii.of(q).alpha
            accepted, rejected = _decided(wanted, mean, alpha_g(n), A_g[q])
            if q == 0:
                out.eliminations += [(n, None, k) for k in sorted(rejected)]
            A_g[q] |= accepted
            S_g[q] = S_g[q] - accepted - rejected
            if not S_g[q]:  # declaration rule
                out.server_answers[q] = A_g[q]
            elif rejected | accepted and wanted.gives_up(
                {int(instance.server_ties[q, k]) for k in S_g[q]}
            ):  # as for the clients
                S_g[q] = set()
                out.truncated = True
            if S_g[q] and isinstance(schedule, Adaptive) and times is not None:
                left = {k: mean[k] for k in S_g[q]}
                times[q] = {next_time(schedule, n, left, radii.of(q), wanted, A_g[q]).step}
        if wanted.is_open(K):
            out.uplinks += len(received)
            out.rounds += bool(received)
        if not any(S_l.values()) and not any(S_g.values()):  # termination rule
            run = False
        elif n == max_steps or (
            times is not None and any(S_g[q] and n >= max(times[q]) for q in Q)
        ):
            # not in the paper: a trial that would go on for ever is cut off
            out.truncated = True
            run = False
    out.global_answer = out.server_answers.get(0)
    if wanted.one_arm:
        out.local_arms = {m: next(iter(answer)) for m, answer in out.local_answers.items()}
        out.server_arms = [next(iter(out.server_answers.get(q, {-1}))) for q in Q]
        out.global_arm = out.server_arms[0]
    return out


def next_time(
    schedule: Adaptive,
    n: int,
    means: dict[int, float],
    radius: Confidence,
    goal: Goal,
    accepted: set[int],
) -> Choice:
    """Choose the time after n from the means of the undecided arms, by the goal's own rule."""

    def decided_at(later: int) -> int:
        return sum(map(len, goal.decide(means, radius.alpha(later), accepted)))

    return schedule.next_time(n, len(means), decided_at)


def _decided(
    goal: Goal, mean: dict[int, float], alpha: float, accepted: set[int]
) -> tuple[set[int], set[int]]:
    """Return the arms that are accepted, and those that are rejected."""
    if not goal.is_open(len(mean) + len(accepted)):
        return set(mean), set()
    found = goal.decide(mean, alpha, accepted)
    return set(found.accepted), set(found.rejected)
