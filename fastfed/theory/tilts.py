"""Tilts: changes of the rewards that make a wrong answer likely, and Chernoff's bounds.

An answer is wrong if its best arm is eliminated: if some other arm leads it by g(n) or more, in
sums, at some look n (every step at a client, a communication time at the server). Take one such
pair, arm j above arm b, over the clients that the answer looks at. With F(theta) the sum over
those clients of psi_j(w theta) + psi_b(-w theta), psi the logarithm of E exp(theta (reward -
mean)), w the weight of the client in sums (1 if clients count alike), and Delta the sum of w times
the gaps between b and j, Chernoff's bound says for every theta >= 0

    P(j leads b by g(n) after n steps) <= exp(-(theta (g(n) + n Delta) - n F(theta))),

least where F'(theta) = g(n) / n + Delta. That theta also makes the crossing at n typical: rewards
of j reweighted by exp(w theta x), rewards of b by exp(-w theta x), lead to a walk whose mean is at
g(n) after n steps. For Gaussian rewards this moves the two means and nothing else.

A `Tilt` is such a change, aimed at one arm and one step. `Rivalry` holds everything about one
pair: exponents on a grid of looks, the bound between the points of the grid (for a fixed theta
the exponent is concave in n, since g is, so its ends bound what lies between them), and the
tilts that are worth trying.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.model.goals.best import Best
from fastfed.model.instance import Instance
from fastfed.model.schedules import Periodic, Schedule

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_BEST = Best()
_EVERY = 48  # the first looks, which are all on the grid
_RATIO = 1.12  # from one point of the grid to the next, after them
_FINER = 12  # points in place of one, where exponents are small
_CLOSE = 1e-10  # a relative error that is as good as none
RARER = 16.0
"""Exponents so far above the least one get no tilt: they have some 1e-7 of the probability."""


@dataclass(frozen=True)
class Tilt:
    """A change of the reward distributions that makes ``arm`` likely to win at ``step``.

    The density of a reward x of arm k at client m is multiplied by exp(theta[k, m] x), and
    normalised.
    """

    theta: Floats  # (K, M)
    arm: int
    client: int | None  # None: at the server
    step: int
    exponent: float  # of Chernoff's bound on winning at that step


class RivalPair:
    """Arm ``up`` above the best arm ``down``, summed over clients with these weights."""

    def __init__(self, instance: Instance, up: int, down: int, weights: Floats) -> None:
        self.shape = instance.shape
        self.clients = np.flatnonzero(weights).tolist()
        self.up, self.down, self._weights = up, down, weights[self.clients]
        self._rewards = instance.rewards.part([up, down], self.clients)
        self._means = instance.means[np.ix_([up, down], self.clients)]
        weighted = self._weights * self._means
        self.gap = math.fsum(weighted[1]) - math.fsum(weighted[0])
        low, high = (
            self._weights * (end - self._means) for end in self._rewards.support(self._means)
        )
        self.reach = float(high[0].sum() - low[1].sum())
        """The largest possible rise of the lead in one step, less its mean; F' stays below it."""

    def cumulants(self, theta: Floats) -> Floats:
        """Return F, F' and F'' at several thetas, as an array (3, thetas)."""
        signs = np.array([[1.0], [-1.0]]) * self._weights
        psi, slope, curvature = self._rewards.cumulants(
            self._means, np.multiply.outer(theta, signs)
        )
        return np.array(
            [
                psi.sum(axis=(1, 2)),
                (signs * slope).sum(axis=(1, 2)),
                (signs**2 * curvature).sum(axis=(1, 2)),
            ]
        )

    def theta(self, goal: Floats) -> Floats:
        """Solve F' = goal for theta by Newton's method, with bisection as a safeguard."""
        if not len(goal):
            return np.zeros(0)
        low = np.zeros(len(goal))
        high = goal / self.cumulants(np.zeros(1))[2]
        while (short := self.cumulants(high)[1] < goal).any():
            low, high = np.where(short, high, low), np.where(short, 2 * high, high)
        theta = 0.5 * (low + high)
        for _ in range(200):
            _, slope, curvature = self.cumulants(theta)
            off = slope - goal
            if (np.abs(off) <= _CLOSE * goal).all():
                break
            low, high = np.where(off < 0, theta, low), np.where(off >= 0, theta, high)
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = theta - off / curvature
            inside = (newton > low) & (newton < high)
            theta = np.where(inside, newton, 0.5 * (low + high))
        return np.asarray(theta)

    def tilt(self, theta: float, step: int, exponent: float, client: int | None) -> Tilt:
        """Make the `Tilt` of the instance that tilts only this pair of arms, by ``theta``."""
        cells = np.zeros(self.shape)
        cells[self.up, self.clients] = theta * self._weights
        cells[self.down, self.clients] = -theta * self._weights
        return Tilt(cells, self.up, client, step, exponent)


@dataclass(frozen=True)
class Looks:
    """The steps at which an arm can be eliminated (looks), and a grid over their indices."""

    schedule: Schedule
    times: Ints  # all of them, or none if the schedule is periodic
    index: Ints

    @staticmethod
    def of(schedule: Schedule, until: int) -> Looks:
        """List the looks of a schedule up to a step.

        An adaptive schedule may choose any steps. So every step counts as a look, and bounds hold.
        """
        if schedule.chosen:
            schedule = Periodic(1)
        if schedule.period is not None:
            return Looks(schedule, np.zeros(0, np.int64), _grid(until // schedule.period))
        times = schedule.times(until)
        return Looks(schedule, times, _grid(len(times)))

    @property
    def steps(self) -> Ints:
        if self.schedule.period is not None:
            return self.index * self.schedule.period
        return self.times[self.index - 1]

    def refined(self, first: int, last: int) -> Looks:
        """Return the same looks with a finer grid between two of its points."""
        near = self.index[first : last + 1]
        more = [np.rint(np.linspace(a, b, _FINER + 1)).astype(np.int64) for a, b in pairwise(near)]
        return replace(self, index=np.unique(np.concatenate([self.index, *more])))


@dataclass(frozen=True)
class Rivalry:
    """Chernoff's bounds for one pair of arms, at each look of a grid."""

    pair: RivalPair
    steps: Ints
    thetas: Floats
    exponents: Floats  # of Chernoff's bound at each step of the grid; inf where it cannot cross
    log_bounds: Floats  # ln of a bound on crossing anywhere in (step before, step]

    @property
    def least(self) -> float:
        """The smallest exponent, which belongs to the likeliest step of the error."""
        return float(self.exponents.min(initial=math.inf))

    def beyond(self, step: int) -> float:
        """Return ln of a bound on crossing after ``step``."""
        return float(np.logaddexp.reduce(self.log_bounds[self.steps > step], initial=-math.inf))

    def tilts(self, worst: float, until: int, client: int | None) -> list[Tilt]:
        """Make tilts toward this arm, for steps up to ``until`` with exponents up to ``worst``.

        If the theta of a tilt is off by a share d, the logarithms of the weights spread by about
        (2 d)^2 x exponent. So the thetas of two neighbours may differ by 1 / sqrt(exponent). Then a
        theta between them is off by at most half of that.
        """
        found: list[Tilt] = []
        last = math.inf
        for step, theta, exponent in zip(
            self.steps.tolist(), self.thetas.tolist(), self.exponents.tolist(), strict=True
        ):
            if step > until or not exponent <= worst or math.isinf(exponent):
                continue
            if abs(math.log(theta) - last) < 1 / math.sqrt(max(exponent, 1.0)):
                continue
            last = math.log(theta)
            found.append(self.pair.tilt(theta, step, exponent, client))
        return found


def rivalry(pair: RivalPair, looks: Looks, boundary: Callable[[float], float]) -> Rivalry:
    """Compute Chernoff's bounds for a pair of arms and the boundary g.

    A coarse grid of looks comes first, and then a grid that is fine where the exponents are small.
    Bounded rewards can reach the boundary only from some step on. They are likeliest to reach it
    within a few per cent of that step.
    """
    coarse = _measured(pair, looks, boundary)
    near = np.flatnonzero(coarse.exponents <= coarse.least + RARER)
    if math.isinf(coarse.least):
        return coarse
    return _measured(pair, looks.refined(max(0, int(near[0]) - 1), int(near[-1]) + 1), boundary)


def _measured(pair: RivalPair, looks: Looks, boundary: Callable[[float], float]) -> Rivalry:
    steps = looks.steps
    n = steps.astype(np.float64)
    goal = np.array([boundary(step) for step in n]) + n * pair.gap
    reachable = goal / n <= pair.reach * (1 - _CLOSE)
    thetas = np.zeros(len(n))
    thetas[reachable] = pair.theta(goal[reachable] / n[reachable])
    cost = pair.cumulants(thetas)[0]
    exponents = np.where(reachable, thetas * goal - n * cost, math.inf)
    # between two points of the grid: for either theta, the smaller of its exponents at the ends
    before_n, before_goal = np.roll(n, 1), np.roll(goal, 1)
    here = np.minimum(exponents, thetas * before_goal - before_n * cost)
    other, other_cost = np.roll(thetas, 1), np.roll(cost, 1)
    there = np.minimum(np.roll(exponents, 1), other * goal - n * other_cost)
    there[~np.roll(reachable, 1)] = 0.0
    between = np.maximum(here, there)
    counts = np.diff(looks.index, prepend=0)
    between[counts == 1] = exponents[counts == 1]
    between[~reachable] = math.inf  # g(n) / n decreases: nothing before could cross either
    return Rivalry(pair, steps, thetas, exponents, np.log(counts) - between)


def tilted_instance(instance: Instance, tilt: Tilt) -> tuple[Instance, Floats] | None:
    """Make the tilted instance; return it with the thetas that it was made with.

    If the best arms of the tilted instance tie, thetas are changed a little, so little that the
    weights stay the same. Return None if that does not help: rewards without variance tie, or a
    tilted mean is out of range.
    """
    arms, clients = tilt.theta.shape
    ranks = np.arange(1, arms + 1)[:, None] * (1 + 0.1 * np.arange(clients)) / arms
    for nudge in (0.0, 1e-7, 1e-4):
        theta = tilt.theta + nudge * np.abs(tilt.theta).max() * ranks
        try:
            means, rewards = instance.rewards.tilted(instance.means, theta)
            made = Instance(means, rewards, weights=instance.questions.given)
            _BEST.check(made)  # which rejects ties for the best arm
            return made, theta
        except InputError:
            continue
    return None


def _grid(count: int) -> Ints:
    """Return a grid over 1, ..., count: every number at first, then a geometric sequence."""
    index = list(range(1, min(count, _EVERY) + 1))
    while index and index[-1] < count:
        index.append(min(count, math.ceil(index[-1] * _RATIO)))
    return np.array(index, dtype=np.int64)
