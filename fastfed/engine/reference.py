"""Algorithm 1 as printed, line by line, in plain Python: slow, obvious, and the judge of the rest.

It shares nothing with the kernels but the formulas of `radius` and, with rewards from the
walk, single values X(n). It compares empirical means with 2 alpha, as the paper writes it, where
the kernels compare sums with a boundary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fastfed.engine.wire import Dithers, wire
from fastfed.problem.instance import Instance
from fastfed.problem.schedule import Schedule
from fastfed.radius import MAX_STEPS, Radius, parse
from fastfed.uplinks import Uplink
from fastfed.uplinks import parse as parse_uplink

Rewards = Callable[[int, int, int], float]
"""(arm, client, n) -> the reward of that arm's n-th pull. Called once for each, n ascending."""


@dataclass
class Outcome:
    """One trial. `eliminations` lists (n, client or None for the server, arm), in order."""

    pulls: np.ndarray
    uplinks: int = 0
    bits: int = 0
    rounds: int = 0
    steps: int = 0
    local_arms: dict[int, int] = field(default_factory=dict)
    global_arm: int = -1
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
    uplink: str | Uplink = "exact",
    dither: Dithers | None = None,
) -> Outcome:
    """Algorithm 1; `schedule` says when line 16 communicates (the paper: n = 2^t), `uplink` what
    the server hears then; `dither` belongs to uplinks that use it."""
    K, M = instance.shape
    scale = instance.default_sigma if sigma is None else sigma
    alpha_l = parse(radius).at_client(K, M, delta, scale).alpha
    of_means = parse(radius).at_server(K, M, delta, scale)
    alpha_g = parse_uplink(uplink).widened(of_means).alpha
    line = wire(parse_uplink(uplink), of_means, dither)
    times = None if schedule.period is not None else set(schedule.times(MAX_STEPS).tolist())
    n = 0
    sums = np.zeros((K, M))
    S_l = {m: set(range(K)) for m in range(M)}
    S_g = set(range(K))
    out = Outcome(np.zeros((K, M), dtype=np.int64))
    run = True
    while run:  # line 1
        n += 1  # line 2
        S = {}
        for m in range(M):  # line 3
            S[m] = S_l[m] | S_g  # line 4
            if len(S[m]) > 1:  # line 5: selection rule
                for k in sorted(S[m]):
                    sums[k, m] += reward(k, m, n)
                    out.pulls[k, m] += 1
                    out.steps = n
            if len(S_l[m]) > 1:
                best = max(sums[k, m] / n for k in S_l[m])
                threshold = 2 * alpha_l(n)
                for k in sorted(S_l[m]):
                    if best - sums[k, m] / n >= threshold:
                        S_l[m] = S_l[m] - {k}
                        out.eliminations.append((n, m, k))
            if len(S_l[m]) == 1:  # declaration rule
                (out.local_arms[m],) = S_l[m]
                S_l[m] = set()
            elif S_l[m] and len({instance.local_ties[k, m] for k in S_l[m]}) == 1:
                # not in the paper: the arms that are left do not differ, and the best is lost
                S_l[m] = set()
                out.truncated = True
        talks = n % schedule.period == 0 if schedule.period is not None else n in (times or ())
        if len(S_g) > 1 and talks:  # communication rule
            out.uplinks += M * len(S_g)
            out.rounds += 1
            mean = {}
            for k in sorted(S_g):
                heard = [line.send(k, m, n, sums[k, m] / n) for m in range(M)]
                mean[k] = sum(one for one, _ in heard) / M
                out.bits += sum(bits for _, bits in heard)
            best = max(mean.values())
            threshold = 2 * alpha_g(n)
            for k in sorted(S_g):
                if best - mean[k] >= threshold:
                    S_g = S_g - {k}
                    out.eliminations.append((n, None, k))
        if len(S_g) == 1:  # declaration rule
            (out.global_arm,) = S_g
            S_g = set()
        elif S_g and len({instance.global_ties[k] for k in S_g}) == 1:  # as for the clients
            S_g = set()
            out.truncated = True
        if all(not (S_l[m] | S_g) for m in range(M)):  # termination rule
            run = False
        elif n == max_steps or (times is not None and S_g and n >= max(times)):
            # not in the paper: a trial that would go on for ever is cut off
            out.truncated = True
            run = False
    return out
