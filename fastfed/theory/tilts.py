"""How rewards must change for a wrong answer to become likely, and how unlikely it is without.

An answer is wrong if its best arm is eliminated: if some other arm leads it by g(n) or more, in
sums, at some look n (every step at a client, a communication time at the server). Take one such
pair, arm j above arm b, over the clients that the answer looks at. With F(theta) the sum over
those clients of psi_j(theta) + psi_b(-theta), psi the logarithm of E exp(theta (reward - mean)),
and Delta the sum of the gaps between b and j, Chernoff's bound says for every theta >= 0

    P(j leads b by g(n) after n steps) <= exp(-(theta (g(n) + n Delta) - n F(theta))),

least where F'(theta) = g(n) / n + Delta. That theta also makes the crossing at n typical: rewards
of j reweighted by exp(theta x), rewards of b by exp(-theta x), lead to a walk whose mean is at
g(n) after n steps. For Gaussian rewards this moves the two means and nothing else.

A `Tilt` is such a change, aimed at one arm and one step. `Rivalry` holds everything about one
pair: exponents on a grid of looks, the bound between the points of the grid (for a fixed theta
the exponent is concave in n, since g is, so its ends bound what lies between them), and the
tilts that are worth trying.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.problem.instance import Instance
from fastfed.problem.rewards import Finite, Gaussian
from fastfed.problem.schedule import Schedule
from fastfed.radius import MAX_STEPS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_STEEPEST = 500.0  # theta times the range of a reward: exp of it is still a double
_EVERY = 48  # so many looks are all on the grid,
_RATIO = 1.12  # and after them each is so many times the one before
_FINER = 12  # so many points for one, where it matters
_CLOSE = 1e-10
RARER = 16.0
"""Exponents so far above the least one get no tilt: they have some 1e-7 of the probability."""


@dataclass(frozen=True)
class Tilt:
    """Rewards of cell (k, m) reweighted by exp(theta[k, m] x), to make ``arm`` win at ``step``."""

    theta: Floats  # (K, M)
    arm: int
    client: int | None  # None: at the server
    step: int
    exponent: float  # of Chernoff's bound on winning at that step


class Cumulants:
    """psi(theta) = ln E exp(theta (reward - mean)) of every arm and client, and tilted copies."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._law = instance.law
        if self._law is not None:
            weights = self._law.weights / self._law.weights.sum(axis=2, keepdims=True)
            with np.errstate(divide="ignore"):
                self._logs = np.log(weights)
            self._centred = self._law.values - instance.means[:, :, None]

    def psi(self, theta: Floats) -> Floats:
        """(K, M) of a (K, M) of thetas."""
        if self._law is None:
            return np.asarray(0.5 * (theta * _noise(self.instance)) ** 2)
        return np.asarray(_log_sum(self._logs + theta[:, :, None] * self._centred))

    def tilted(self, theta: Floats) -> Instance:
        """The instance whose rewards are reweighted by exp(theta x)."""
        instance = self.instance
        if self._law is None:
            return Instance(instance.means + theta * _noise(instance) ** 2, instance.rewards)
        logs = self._logs + theta[:, :, None] * self._centred
        weights = np.exp(logs - logs.max(axis=2, keepdims=True))
        return Instance(rewards=Finite(self._law.values, weights))

    def pair(self, up: int, down: int, clients: Sequence[int], theta: Floats
             ) -> tuple[Floats, Floats, Floats]:
        """F, F' and F'' of one pair at several thetas."""
        if self._law is None:
            rate = 2 * len(clients) * _noise(self.instance) ** 2
            return 0.5 * rate * theta**2, rate * theta, np.full(len(theta), rate)
        sums = np.zeros((3, len(theta)))
        for m in clients:
            for k, sign in ((up, 1.0), (down, -1.0)):
                held = np.isfinite(self._logs[k, m])
                values = sign * self._centred[k, m, held]
                logs = self._logs[k, m, held] + theta[:, None] * values
                psi = _log_sum(logs)
                shares = np.exp(logs - psi[:, None])
                mean = shares @ values
                sums += [psi, mean, shares @ values**2 - mean**2]
        return sums[0], sums[1], sums[2]

    def reach(self, up: int, down: int, clients: Sequence[int]) -> float:
        """The largest F' of a pair: by how much more than on average it can rise in a step."""
        if self._law is None:
            return math.inf
        ends = 0.0
        for m in clients:
            ends += float(self._centred[up, m, np.isfinite(self._logs[up, m])].max())
            ends -= float(self._centred[down, m, np.isfinite(self._logs[down, m])].min())
        return ends

    @property
    def steepest(self) -> float:
        """No theta is larger."""
        return math.inf if self._law is None else _STEEPEST / max(self._law.range, 1e-300)


@dataclass(frozen=True)
class Looks:
    """The steps at which an answer is looked at, and a grid over them; ``index`` counts looks."""

    schedule: Schedule
    times: Ints  # all of them, or none if the schedule is periodic
    index: Ints

    @staticmethod
    def of(schedule: Schedule) -> Looks:
        if schedule.period is not None:
            return Looks(schedule, np.zeros(0, np.int64), _grid(MAX_STEPS // schedule.period))
        times = schedule.times(MAX_STEPS)
        return Looks(schedule, times, _grid(len(times)))

    @property
    def steps(self) -> Ints:
        if self.schedule.period is not None:
            return self.index * self.schedule.period
        return self.times[self.index - 1]

    def refined(self, first: int, last: int) -> Looks:
        """With more points from the first to the last of the present ones."""
        near = self.index[first : last + 1]
        more = [np.rint(np.linspace(a, b, _FINER + 1)).astype(np.int64)
                for a, b in pairwise(near)]
        return replace(self, index=np.unique(np.concatenate([self.index, *more])))


@dataclass(frozen=True)
class Rivalry:
    """Arm ``up`` against the best arm ``down``, over some clients, on a grid of looks."""

    up: int
    down: int
    clients: tuple[int, ...]
    steps: Ints
    thetas: Floats
    exponents: Floats  # of Chernoff's bound at each step of the grid; inf where it cannot cross
    log_bounds: Floats  # ln of a bound on crossing anywhere in (step before, step]

    @property
    def least(self) -> float:
        return float(self.exponents.min(initial=math.inf))

    def beyond(self, step: int) -> float:
        """ln of a bound on crossing after ``step``."""
        return float(np.logaddexp.reduce(self.log_bounds[self.steps > step], initial=-math.inf))

    def tilts(self, shape: tuple[int, int], worst: float, until: int, client: int | None
              ) -> list[Tilt]:
        """Tilts toward this arm, for steps up to ``until`` with exponents up to ``worst``.

        Crossing at a step with a theta that is off by a share d costs a spread of about
        (2 d)^2 x exponent in the logarithm of the weights, so neighbours may differ by
        1 / sqrt(exponent): then nothing between them is off by more than half of that.
        """
        found: list[Tilt] = []
        last = math.inf
        for step, theta, exponent in zip(self.steps.tolist(), self.thetas.tolist(),
                                         self.exponents.tolist(), strict=True):
            if step > until or not exponent <= worst or math.isinf(exponent):
                continue
            if abs(math.log(theta) - last) < 1 / math.sqrt(max(exponent, 1.0)):
                continue
            last = math.log(theta)
            cells = np.zeros(shape)
            cells[self.up, list(self.clients)] = theta
            cells[self.down, list(self.clients)] = -theta
            found.append(Tilt(cells, self.up, client, step, exponent))
        return found


def rivalry(cumulants: Cumulants, up: int, down: int, clients: Sequence[int], looks: Looks,
            boundary: Callable[[float], float]) -> Rivalry:
    """Arm ``up`` against ``down``; ``boundary`` is g of the answer in question.

    First on a coarse grid, then on one that is fine where the exponents are small: bounded rewards
    reach the boundary from some step on, and likeliest within a few per cent of it.
    """
    coarse = _measured(cumulants, up, down, clients, looks, boundary)
    near = np.flatnonzero(coarse.exponents <= coarse.least + RARER)
    if math.isinf(coarse.least) or not len(near):
        return coarse
    fine = looks.refined(max(0, int(near[0]) - 1), int(near[-1]) + 1)
    return _measured(cumulants, up, down, clients, fine, boundary)


def _measured(cumulants: Cumulants, up: int, down: int, clients: Sequence[int], looks: Looks,
              boundary: Callable[[float], float]) -> Rivalry:
    steps = looks.steps
    means = cumulants.instance.means
    gap = math.fsum(means[down, m] - means[up, m] for m in clients)
    n = steps.astype(np.float64)
    goal = np.array([boundary(step) for step in n]) + n * gap
    reachable = goal / n <= cumulants.reach(up, down, clients) * (1 - _CLOSE)
    thetas = np.zeros(len(n))
    thetas[reachable] = _solve(
        lambda theta: cumulants.pair(up, down, clients, theta), goal[reachable] / n[reachable],
        cumulants.steepest)
    cost = cumulants.pair(up, down, clients, thetas)[0]
    exponents = np.where(reachable, thetas * goal - n * cost, math.inf)
    # between two points of the grid: for either theta, the smaller of its exponents at the ends
    before_n, before_goal = np.roll(n, 1), np.roll(goal, 1)
    here = np.minimum(exponents, thetas * before_goal - before_n * cost)
    other, other_cost = np.roll(thetas, 1), np.roll(cost, 1)
    there = np.minimum(np.roll(exponents, 1), other * goal - n * other_cost)
    there[~np.roll(reachable, 1)] = 0.0
    between = np.maximum(here, there)
    alone = np.diff(looks.index, prepend=0) == 1
    between[alone] = exponents[alone]
    between[~reachable] = math.inf  # g(n) / n decreases: nothing before could cross either
    counts = np.log(np.diff(looks.index, prepend=0))
    return Rivalry(up, down, tuple(clients), steps, thetas, exponents, counts - between)


def tilted_instance(cumulants: Cumulants, tilt: Tilt) -> tuple[Instance, Floats] | None:
    """The tilted instance and the thetas that it was made with.

    Arms that tie on top of it are told apart by thetas so small that no weight notices; None
    where even that does not help, because rewards that never vary tie.
    """
    for nudge in (0.0, 1e-7, 1e-4):
        arms, clients = tilt.theta.shape
        ranks = np.arange(1, arms + 1)[:, None] * (1 + 0.1 * np.arange(clients))
        theta = tilt.theta + nudge * np.abs(tilt.theta).max() * ranks / arms
        try:
            return cumulants.tilted(theta), theta
        except InputError:
            continue
    return None


def _solve(pair: Callable[[Floats], tuple[Floats, Floats, Floats]], goal: Floats, most: float
           ) -> Floats:
    """theta with F'(theta) = goal: Newton's steps, halved brackets where they leave theirs."""
    if not len(goal):
        return np.zeros(0)
    low, high = np.zeros(len(goal)), np.full(len(goal), most)
    curvature = pair(np.zeros(1))[2][0]
    theta = np.minimum(goal / curvature, 0.5 * min(most, 1e300))
    for _ in range(200):
        _, slope, curvature_here = pair(theta)
        off = slope - goal
        low, high = np.where(off < 0, theta, low), np.where(off >= 0, theta, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = theta - off / curvature_here
        inside = (newton > low) & (newton < high)
        if (np.abs(off) <= _CLOSE * goal).all() or (high - low <= _CLOSE * high).all():
            break
        theta = np.where(inside, newton, 0.5 * (low + high))
    return np.asarray(theta)


def _grid(count: int) -> Ints:
    """1, 2, 3, ... and then ever more thinly, up to ``count``."""
    index = list(range(1, min(count, _EVERY) + 1))
    while index and index[-1] < count:
        index.append(min(count, math.ceil(index[-1] * _RATIO)))
    return np.array(index, dtype=np.int64)


def _noise(instance: Instance) -> float:
    assert isinstance(instance.rewards, Gaussian)
    return instance.rewards.sigma


def _log_sum(logs: Floats) -> Floats:
    """ln of the sum of exponentials along the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    return np.asarray(np.log(np.exp(logs - top).sum(axis=-1)) + top[..., 0])

