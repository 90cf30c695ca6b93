"""Algorithm 1 as printed, line by line, in plain Python: slow, obvious, and the judge of the rest.

It shares nothing with the kernels but the formulas of `radius` and, with rewards from the
walk, single values X(n). It compares empirical means with 2 alpha, as the paper writes it and as
each goal's `decide` does, where the kernels compare sums with a boundary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fastfed.engine.wire import Dithers, wire
from fastfed.goals import Goal
from fastfed.goals import parse as parse_goal
from fastfed.problem.instance import Instance
from fastfed.problem.limits import Rules, resolve_radii
from fastfed.problem.schedule import Schedule
from fastfed.radius import MAX_STEPS, Radius, parse
from fastfed.uplinks import Uplink
from fastfed.uplinks import parse as parse_uplink

Rewards = Callable[[int, int, int], float]
"""(arm, client, n) -> the reward of that arm's n-th pull. Called once for each, n ascending."""


@dataclass
class Outcome:
    """One trial. `eliminations` lists (n, client or None for the server, arm), in order, of the
    arms that were rejected."""

    pulls: np.ndarray
    uplinks: int = 0
    bits: int = 0
    rounds: int = 0
    steps: int = 0
    local_arms: dict[int, int] = field(default_factory=dict)
    global_arm: int = -1
    local_answers: dict[int, set[int]] = field(default_factory=dict)
    global_answer: set[int] | None = None
    truncated: bool = False
    eliminations: list[tuple[int, int | None, int]] = field(default_factory=list)


def independent_rewards(instance: Instance, rng: np.random.Generator) -> Rewards:
    """Rewards drawn one by one from a NumPy generator."""
    draw = instance.rewards.draw(instance.means, rng)
    return lambda k, m, n: draw(k, m)


def walk_rewards(instance: Instance, seed: int, trial: int) -> Rewards:
    """The rewards that the kernels see in this trial: the increments of their walks."""
    from fastfed.engine.walk import walk

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
    """The dithers that the kernels see in this trial."""
    from fastfed.engine.walk import dithers

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
    """Algorithm 1; `schedule` says when line 16 communicates (the paper: n = 2^t), `uplink` what
    the server hears then; `dither` belongs to uplinks that use it.

    What is decided at a step is the goal's rule (`fastfed.goals`); the paper's is that of `best`.
    Arms that are neither accepted nor rejected yet are pulled on, in S_l[m] and S_g.
    """
    K, M = instance.shape
    wanted = parse_goal(goal)
    scale = instance.default_sigma if sigma is None else sigma
    means = parse_uplink(uplink)
    radii = resolve_radii(instance, delta, scale, Rules(parse(radius), wanted, means))
    alpha_l, alpha_g = radii.client.alpha, radii.server.alpha
    line = wire(means, radii.means, dither)
    times = None if schedule.period is not None else set(schedule.times(MAX_STEPS).tolist())
    n = 0
    sums = np.zeros((K, M))
    S_l = {m: set(range(K)) for m in range(M)}
    S_g = set(range(K))
    A_l: dict[int, set[int]] = {m: set() for m in range(M)}
    A_g: set[int] = set()
    out = Outcome(np.zeros((K, M), dtype=np.int64))
    run = True
    while run:  # line 1
        n += 1  # line 2
        S = {}
        for m in range(M):  # line 3
            S[m] = S_l[m] | S_g  # line 4
            if S[m] and wanted.is_open(K):  # line 5: selection rule; a lone arm is not pulled
                for k in sorted(S[m]):
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
        talks = n % schedule.period == 0 if schedule.period is not None else n in (times or ())
        if S_g and (talks or not wanted.is_open(K)):  # communication rule
            mean = {}
            for k in sorted(S_g):
                heard = [line.send(k, m, n, sums[k, m] / n) for m in range(M)]
                mean[k] = sum(one for one, _ in heard) / M
                out.bits += sum(bits for _, bits in heard) if wanted.is_open(K) else 0
            if wanted.is_open(K):
                out.uplinks += M * len(S_g)
                out.rounds += 1
            accepted, rejected = _decided(wanted, mean, alpha_g(n), A_g)
            out.eliminations += [(n, None, k) for k in sorted(rejected)]
            A_g |= accepted
            S_g = S_g - accepted - rejected
            if not S_g:  # declaration rule
                out.global_answer = A_g
            elif rejected | accepted and wanted.gives_up(
                {int(instance.global_ties[k]) for k in S_g}
            ):  # as for the clients
                S_g = set()
                out.truncated = True
        if all(not (S_l[m] | S_g) for m in range(M)):  # termination rule
            run = False
        elif n == max_steps or (times is not None and S_g and n >= max(times)):
            # not in the paper: a trial that would go on for ever is cut off
            out.truncated = True
            run = False
    if wanted.one_arm:
        out.local_arms = {m: next(iter(answer)) for m, answer in out.local_answers.items()}
        out.global_arm = -1 if out.global_answer is None else next(iter(out.global_answer))
    return out


def _decided(
    goal: Goal, mean: dict[int, float], alpha: float, accepted: set[int]
) -> tuple[set[int], set[int]]:
    """Which arms are accepted and which rejected."""
    if not goal.is_open(len(mean) + len(accepted)):
        return set(mean), set()
    found = goal.decide(mean, alpha, accepted)
    return set(found.accepted), set(found.rejected)
