"""The theorems as numbers: what a trial costs at most on the good event, and at least on average.

The good event E (every empirical mean within its radius, always) has probability 1 - delta. On it
arm k is settled at client m by step n_km and at the server by the first communication at or after
step n_k, where n is the step from which on alpha <= Delta / 4; T_km and T_k are the paper's
closed forms above n_km and n_k (Theorem 2). Everything here follows from those four.

    K, M        arms, clients                     C    price of one scalar on one uplink (``cost``)
    Delta_km    local gap, Delta_k global gap     H    period of a periodic scheme
    T           sum over k, m of max(T_km, T_k)   lambda  base of an exponential scheme

Each scheme of communication is bounded three times (`Scheme`): as the paper states it, by sums
over arms with the paper's slips corrected, and sharply, from n_km, n_k and the scheme's own times.
Where this departs from the paper, the line says "Departure".

Any radius has its n_km and n_k, found numerically. The closed forms belong to the paper's radius:
with another, T_km and T_k are n_km and n_k themselves, and everything that follows from them holds
as it does for the paper's. Radii per pair bound one side of a pair with probability 1 - delta:
answers are right with that probability, and costs within their bounds with 1 - 2 delta.

Goals beside the best arm have gaps of their own in place of Delta_km and Delta_k, and their files
(`fastfed.goals`) show that each arm is settled by n_km and n_k all the same: so the upper bounds
hold as they stand. The lower bound, Theorem 3, is about the best arm alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.faces import TEXT, Faced
from fastfed.goals import Best, Goal
from fastfed.goals import parse as parse_goal
from fastfed.problem.instance import Instance
from fastfed.problem.limits import Rules, refuse_unfit, resolve_radii, resolve_sigma
from fastfed.problem.schedule import Exponential, Periodic
from fastfed.radius import PAPER, Confidence, Radius
from fastfed.radius import parse as parse_radius
from fastfed.uplinks import Uplink
from fastfed.uplinks import parse as parse_uplink
from fastfed.validation import LEAST_DELTA, MOST_COST

if TYPE_CHECKING:
    import polars as pl

Grid: TypeAlias = Any
"""A number where delta and cost are numbers, else an array whose first axes are their grid."""

_Floats: TypeAlias = npt.NDArray[np.float64]

_MOST_T = 1e150  # T^2, which super-exponential communication needs, must stay a double


@dataclass(frozen=True, eq=False)
class Costs:
    """Upper bounds on one trial. ``total`` is pulls + comm unless the paper says less."""

    pulls: Grid
    uplinks: Grid
    """Scalars sent, all clients."""
    comm: Grid
    """C times uplinks."""
    total: Grid


@dataclass(frozen=True, eq=False)
class Scheme:
    """One communication scheme, bounded on E in three ways."""

    name: str
    """periodic, fedelim, exponential or superexponential."""
    parameter: Grid | None
    """H, or lambda; None for super-exponential communication."""
    as_stated: Costs
    """The paper's closed form in T (2T, 3T, T + HMK, ...), slips and all. What it writes as O()
    is derived here."""
    summed: Costs
    """Sums over arms and clients of T_km and T_k; the uplinks are counted correctly."""
    sharp: Costs
    """The same sums of n_km and n_k, at the scheme's own times."""


@dataclass(frozen=True, eq=False)
class Bounds(Faced):
    """What `bounds` returns; as text, its table. ``...`` in a shape is the grid of delta and
    cost, () for numbers.

    Examples
    --------
    >>> import fastfed as ff
    >>> found = ff.bounds("synthetic", delta=[0.1, 0.01], cost=10)
    >>> found.T.shape, found.T_km.shape
    ((2,), (2, 4, 3))
    >>> found.table().filter(scheme="fedelim")["delta"].to_list()
    [0.1, 0.01]
    """

    instance: Instance
    delta: Grid
    cost: Grid
    sigma: float
    """The confidence scale."""
    radius: str
    """The confidence radius. T_km and T_k of any but "paper" are n_km and n_k."""
    goal: str
    """What clients and server want to know: see `fastfed.simulate`."""
    local_gaps: _Floats
    """Delta_km, (K, M); for goals beside "best" see `fastfed.goals`."""
    global_gaps: _Floats
    """Delta_k, (K,)."""
    T_km: Grid
    """(..., K, M)."""
    T_k: Grid
    """(..., K)."""
    n_km: Grid
    """(..., K, M), whole numbers as floats: a small gap needs more than an int64."""
    n_k: Grid
    """(..., K), whole numbers as floats."""
    T: Grid
    """Theorem 2: pulls of FedElim0."""
    T_sharp: Grid
    """sum max(n_km, n_k): the same, and tighter."""
    lower: Grid
    """Theorem 3 with the factor 2 of its proof: mean pulls of any delta-PAC algorithm, for
    Gaussian rewards. 0 for goals beside "best", of which it does not speak."""
    lower_as_stated: Grid
    """Theorem 3 as stated, half of ``lower``."""
    condition: Grid
    """(..., K): C ln T_k <= T_k, which Theorem 4 asks of every arm."""
    three_T_follows: Grid
    """Whether FedElim's total <= 3T is proved here. The condition alone does not prove it: see
    `bounds`."""
    period_opt: Grid
    """H that minimises the periodic total as stated, a real number; 0 where talking is free."""
    base_opt: Grid
    """lambda that minimises the exponential total as stated; 1 (every step) where it is free."""
    fedelim: Scheme
    periodic: Scheme
    """At ``period``; without one, at the best whole period of each cell."""
    exponential: Scheme | None
    """At ``base``; None without one."""
    superexponential: Scheme

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        """From much communication to little."""
        every = (self.periodic, self.fedelim, self.exponential, self.superexponential)
        return tuple(scheme for scheme in every if scheme is not None)

    @property
    def breaking_arms(self) -> Any:
        """The arms that break Theorem 4's condition: a list, nested as the grid is."""
        flat = self.condition.reshape(-1, self.condition.shape[-1])
        lists = np.empty(len(flat), dtype=object)
        for cell, holds in enumerate(flat):
            lists[cell] = np.flatnonzero(~holds).tolist()
        return lists.reshape(self.condition.shape[:-1]).tolist()

    def table(self, variant: str = "summed") -> pl.DataFrame:
        """The schemes side by side: numbers for the O()s of the paper's comparison.

        Parameters
        ----------
        variant
            "as_stated", "summed" or "sharp".

        Returns
        -------
        polars.DataFrame
            One row for each delta, cost and scheme.
        """
        from fastfed.theory.bounds_table import table

        return table(self, variant)

    def to_frame(self) -> pl.DataFrame:
        """Everything, one number per row.

        Returns
        -------
        polars.DataFrame
            By delta and cost.
        """
        from fastfed.theory.bounds_table import to_frame

        return to_frame(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists and numbers, for JSON.

        Returns
        -------
        dict
            An infinite gap is None.
        """
        from fastfed.theory.bounds_table import to_dict

        return to_dict(self)

    def __str__(self) -> str:
        face = TEXT.get("Bounds")
        return f"<Bounds {self.instance.name}: T {self.T}>" if face is None else face(self)

    __repr__ = __str__


def bounds(
    instance: Instance | str | Path | npt.ArrayLike,
    delta: npt.ArrayLike = 0.01,
    cost: npt.ArrayLike = 10.0,
    sigma: float | str | None = None,
    period: int | None = None,
    base: float | None = None,
    radius: str | Radius = "paper",
    goal: str | Goal = "best",
    uplink: str | Uplink = "exact",
) -> Bounds:
    """Theorems 2 to 4 and their analogues for other schemes, for one instance.

    ``delta`` and ``cost`` are numbers or arrays, and broadcast against each other as NumPy does:
    for every pair write ``bounds(instance, deltas[:, None], costs)``. Every field that depends on
    them has their common shape first, then the arms (and clients): T is (...), T_k (..., K), T_km
    (..., K, M). Numbers give numbers, and arrays of (K,) and (K, M).

    Parameters
    ----------
    instance
        An `Instance`, a built-in's name or a file, or a K x M array of means.
    delta, cost
        Error probabilities, and costs C of an uplink.
    sigma
        The confidence scale. None: the instance's own; "proxy": half the range of bounded rewards.
    period
        The H of the periodic scheme; None: the whole one whose total as stated is least.
    base
        The lambda of an exponential scheme; None: only FedElim's 2.
    radius
        The confidence radius: see `fastfed.simulate`.
    goal
        What clients and server want to know: see `fastfed.simulate`.
    uplink
        How means reach the server, which widens its radius.

    Returns
    -------
    Bounds
        Print it, or take its fields.

    Examples
    --------
    >>> import fastfed as ff
    >>> found = ff.bounds("synthetic", delta=0.01, cost=10)
    >>> round(found.T)
    255343
    >>> found.schemes[1].name, round(found.schemes[1].sharp.total)
    ('fedelim', 395136)

    Notes
    -----
    Departure: Theorem 4 concludes total <= 3T from C ln T_k <= T_k. Its proof adds C ceil(log2
    T_k) for each arm and client, which that condition bounds only by C + T_k / ln 2, and it
    forgets the uplink at n = 1. ``condition`` is as stated; ``three_T_follows`` compares the
    corrected sum with 3T.
    """
    instance = Instance.of(instance)
    deltas, prices = _checked_delta(delta), _checked_cost(cost)
    scale = resolve_sigma(instance, sigma)
    whole_period = None if period is None else Periodic(period).period
    checked_base = None if base is None else Exponential(base).base
    shape = _common_shape(deltas, prices)
    rules = Rules(parse_radius(radius), parse_goal(goal), parse_uplink(uplink))
    refuse_unfit(instance, rules)
    arms, clients = instance.shape
    wanted = rules.goal
    T_km, T_k, n_km, n_k = _settled_on_grid(instance, deltas, shape, scale, rules)
    d, C = np.broadcast_to(deltas, shape), np.broadcast_to(prices, shape)
    T = _sum_of_larger(T_km, T_k)
    lower = _lower(instance, d) if isinstance(wanted, Best) else np.zeros(shape)
    log_T_k = np.log(np.maximum(T_k, 1.0))  # T_k is 0 for a lone arm, else at least 1
    # eq. (periodic-3), differentiated: -C T / H^2 + M K = 0
    period_opt = np.sqrt(C * T / (clients * arms))
    # eq. (lambda-analogue-3), differentiated
    base_opt = _each(_best_base)(C * clients * log_T_k.sum(-1) / np.maximum(T, 1.0))

    make = _Schemes(C, T_km, T_k, n_km, n_k, T, wanted.is_open(arms))
    fedelim = make.fedelim()
    return Bounds(
        instance=instance,
        delta=d[()],
        cost=C[()],
        sigma=scale,
        radius=str(rules.radius),
        goal=str(wanted),
        local_gaps=wanted.local_gaps(instance),
        global_gaps=wanted.global_gaps(instance),
        T_km=T_km,
        T_k=T_k,
        n_km=n_km,
        n_k=n_k,
        T=T[()],
        T_sharp=_sum_of_larger(n_km, n_k)[()],
        lower=lower[()],
        lower_as_stated=lower[()] / 2.0,
        condition=C[..., None] * log_T_k <= T_k,
        three_T_follows=(fedelim.summed.total <= 3.0 * T)[()],
        period_opt=period_opt[()],
        base_opt=base_opt[()],
        fedelim=fedelim,
        periodic=make.periodic(
            _best_whole(period_opt, C * T, clients * arms)
            if whole_period is None
            else np.full(shape, float(whole_period))
        ),
        exponential=None if checked_base is None else make.exponential(checked_base),
        superexponential=make.superexponential(),
    )


def _settled_on_grid(
    instance: Instance, delta: _Floats, shape: tuple[int, ...], sigma: float, rules: Rules
) -> Iterator[_Floats]:
    """T_km, T_k, n_km and n_k on the grid of delta and cost, which has this shape. Radii depend on
    delta alone: all is worked out once for each delta, and then spread over the costs."""
    aligned = delta.reshape((1,) * (len(shape) - delta.ndim) + delta.shape)
    for values in _settled_by(instance, aligned, sigma, rules):
        yield np.broadcast_to(values, shape + values.shape[len(shape) :])


def _settled_by(
    instance: Instance, delta: _Floats, sigma: float, rules: Rules
) -> tuple[_Floats, _Floats, _Floats, _Floats]:
    """T_km, T_k, n_km, n_k for each delta."""
    arms, clients = instance.shape
    # a gap of 1e100 sigma is as good as infinite (one pull settles it), and its square a double
    local_gaps = np.minimum(rules.goal.local_gaps(instance), 1e100 * sigma)
    global_gaps = np.minimum(rules.goal.global_gaps(instance), 1e100 * sigma)
    radii = [resolve_radii(instance, d, sigma, rules) for d in delta.ravel().tolist()]
    local, server = [one.client for one in radii], [one.server for one in radii]
    n_km, n_k = _steps(local, local_gaps, delta.shape), _steps(server, global_gaps, delta.shape)
    T_km, T_k = n_km, n_k
    if rules.radius.kind == PAPER:
        local_log = np.reshape([one.constant for one in local], (*delta.shape, 1, 1))
        global_log = np.reshape([one.constant for one in server], (*delta.shape, 1))
        T_km = _closed_form(local_gaps, 1.0, local_log, sigma)
        T_k = _closed_form(global_gaps, clients, global_log, server[0].sigma)
    if not _sum_of_larger(T_km, T_k).max() < _MOST_T:
        gap = min(float(local_gaps.min()), float(global_gaps.min()))
        raise InputError(
            f"smallest gap {gap:.3g} with sigma = {sigma:g} and delta = "
            f"{delta.min():g}: too small, its bounds leave the range of doubles"
        )
    # Algorithm 1, selection and communication rules: a lone arm is never pulled and never sent
    asked = float(rules.goal.is_open(arms))
    return asked * T_km, asked * T_k, asked * n_km, asked * n_k


def _steps(radii: list[Confidence], gaps: _Floats, shape: tuple[int, ...]) -> _Floats:
    """From which step on each radius is at most a quarter of each gap: (*shape, *gaps.shape)."""
    found = [_each(one.resolved_by)(gaps) for one in radii]
    return np.reshape(np.array(found), (*shape, *gaps.shape))


def _closed_form(gaps: _Floats, walks: float, log_c: _Floats, sigma: float) -> _Floats:
    """T_km (eq. T_km; walks 1) or T_k (eq. T_k; walks M), with Delta / sigma for Delta.

    102 rounds 64 e / (e - 1) = 101.2... up; the proof writes "=".
    """
    with np.errstate(divide="ignore", over="ignore"):  # infinite T: refused by the caller
        squared = walks * (gaps / sigma) ** 2
        T = 102.0 * (math.log(64.0) + log_c / 2.0 - np.log(squared)) / squared + 1.0
    # Departure: at least 1. For gaps so wide that the logarithm is negative, the printed formula
    # falls below the one pull that is always made (Lambert's W_-1, hence the proof, ends there).
    return np.maximum(T, 1.0)


def _lower(instance: Instance, delta: _Floats) -> _Floats:
    """Theorem 3, with the factor 2 that its proof ends with and its statement drops.

    Departures: Delta / sigma for Delta, with the noise of the rewards, not the confidence scale
    that one run chose: the theorem is about every algorithm. And at least 0, where 2.4 delta > 1.
    """
    clients = instance.shape[1]
    noise = instance.default_sigma
    narrowest = np.minimum(instance.local_gaps, clients * instance.global_gaps[:, None]) / noise
    return np.maximum(2.0 * np.log(1.0 / (2.4 * delta)), 0.0) * np.sum((1.0 / narrowest) ** 2)


class _Schemes:
    """The four ingredients, and how each scheme turns them into costs."""

    def __init__(
        self,
        C: _Floats,
        T_km: _Floats,
        T_k: _Floats,
        n_km: _Floats,
        n_k: _Floats,
        T: _Floats,
        asked: bool,
    ) -> None:
        self.C, self.T_km, self.T_k, self.n_km, self.n_k, self.T = C, T_km, T_k, n_km, n_k, T
        self.arms, self.clients = T_km.shape[-2:]
        self.cells = float(self.arms * self.clients)
        self.asked = float(asked)

    def fedelim(self) -> Scheme:
        """Theorem 4."""
        general = self.exponential(2.0)
        # Departure, for `summed`: n = 1, 2, ..., 2^t* are t* + 1 uplinks for each arm and client;
        # the proof counts t*, and so does eq. (comm-cost-under-FedElim), here as stated.
        uplinks = self.clients * np.ceil(np.log2(np.maximum(self.T_k, 1.0))).sum(-1)
        stated = self._costs(2.0 * self.T, uplinks, 3.0 * self.T)
        return Scheme("fedelim", general.parameter, stated, general.summed, general.sharp)

    def exponential(self, base: float) -> Scheme:
        """Eqs. (lambda-analogue-1) to (-3): times ceil(base^t)."""
        turns = np.log2(np.maximum(self.T_k, 1.0)) / math.log2(base)
        return self._scheme(
            "exponential",
            np.full(self.C.shape, base),
            self._costs(base * self.T, self.clients * turns.sum(-1) + self.cells),
            # base T_k holds with the ceil(), too: the time before was whole and below T_k.
            # Departure: + 1 for the uplink at t = 0, as for FedElim.
            self._summed(self.T_km, base * self.T_k, np.ceil(turns) + 1.0),
            _exponential_times(base, float(self.n_k.max())),
        )

    def periodic(self, period: _Floats) -> Scheme:
        """Eqs. (periodic-1) to (-3): times H, 2H, 3H, ..."""
        H = period[..., None]

        def summed(locally: _Floats, globally: _Floats) -> Costs:
            turns = np.ceil(globally / H)
            return self._summed(locally, turns * H, turns)

        stated = self._costs(self.T + period * self.cells, self.T / period + self.cells)
        return Scheme(
            "periodic", period[()], stated, summed(self.T_km, self.T_k), summed(self.n_km, self.n_k)
        )

    def superexponential(self) -> Scheme:
        """Times 2^(2^t). Departure: the paper has only O(T^2) and O(C ln ln T); this is why.

        The first time at or after T_k > 2 is 2^(2^t) with 2^(2^(t-1)) < T_k, so below T_k^2, and
        it is turn t + 1 with t = ceil(log2 log2 T_k). For T_k <= 2 it is 2, the first turn. In
        closed form, sum max(2, x^2) <= (sum x)^2 = T^2 over two or more x >= 1.
        """

        def turns(T: _Floats) -> _Floats:
            return np.asarray(np.log2(np.log2(np.maximum(T, 2.0))))

        return self._scheme(
            "superexponential",
            None,
            self._costs(self.T**2, self.cells * (turns(self.T) + 2.0)),  # ceil(x) + 1 < x + 2
            self._summed(self.T_km, np.maximum(2.0, self.T_k**2), np.ceil(turns(self.T_k)) + 1.0),
            np.array([2.0**2**t for t in range(10)]),  # the last is above 1e150
        )

    def _scheme(
        self, name: str, parameter: _Floats | None, stated: Costs, summed: Costs, times: _Floats
    ) -> Scheme:
        """With `sharp` from the list of the times, of which the last is at or after every n_k."""
        turn = np.searchsorted(times, self.n_k)
        sharp = self._summed(self.n_km, times[turn], (turn + 1).astype(np.float64))
        return Scheme(name, None if parameter is None else parameter[()], stated, summed, sharp)

    def _summed(self, locally: _Floats, globally: _Floats, turns: _Floats) -> Costs:
        """Arm k pulled until the later of both steps at client m, and sent ``turns`` times."""
        return self._costs(_sum_of_larger(locally, globally), self.clients * turns.sum(-1))

    def _costs(self, pulls: _Floats, uplinks: _Floats, total: _Floats | None = None) -> Costs:
        # a lone arm costs nothing if nothing is asked of it, whatever the formulas add to T
        comm = self.C * uplinks
        total = pulls + comm if total is None else total
        return Costs(*((self.asked * value)[()] for value in (pulls, uplinks, comm, total)))


def _sum_of_larger(locally: _Floats, globally: _Floats) -> _Floats:
    return np.asarray(np.maximum(locally, globally[..., None]).sum(axis=(-2, -1)))


def _exponential_times(base: float, until: float) -> _Floats:
    """The times of `schedule.Exponential`, as floats, to the first at or after ``until``."""
    times = [1.0]
    while times[-1] < until:
        times.append(float(math.ceil(base ** len(times))))
    return np.unique(times)


def _best_whole(period: _Floats, CT: _Floats, cells: int) -> _Floats:
    """The whole H >= 1 that minimises H M K + C T / H: beside the real one, as it is convex."""
    below = np.maximum(np.floor(period), 1.0)
    worse = cells + CT / (below + 1.0) < CT / below
    return np.asarray(below + worse)


def _best_base(r: float) -> float:
    """The lambda > 1 with lambda (ln lambda)^2 = r; 1 for r = 0.

    Solved in v = ln ln lambda, where e^v + 2v = ln r: rising, and well scaled for every r.
    """
    from scipy.optimize import brentq

    if r == 0.0:
        return 1.0
    log_r = math.log(r)
    v = brentq(
        lambda v: math.exp(v) + 2.0 * v - log_r, min(log_r, 0.0) / 2.0 - 1.0, log_r / 2.0 + 1.0
    )
    return math.exp(math.exp(v))


def _each(function: Callable[..., float]) -> Callable[..., _Floats]:
    """A function of floats for arrays of them."""
    vectorised = np.vectorize(function, otypes=[np.float64])

    def apply(*arrays: npt.ArrayLike) -> _Floats:
        with np.errstate(all="ignore"):  # else NumPy reports flags of the function's own arithmetic
            return np.asarray(vectorised(*arrays), dtype=np.float64)

    return apply


def _common_shape(delta: _Floats, cost: _Floats) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(delta.shape, cost.shape)
    except ValueError:
        raise InputError(
            f"delta of shape {delta.shape} and cost of shape {cost.shape}: must "
            "broadcast; for every pair of two lists, pass delta[:, None]"
        ) from None


def _checked_delta(delta: npt.ArrayLike) -> _Floats:
    values = _numbers("delta", delta)
    bad = values[~((values > 0.0) & (values < 1.0))]
    if bad.size:
        raise InputError(f"delta = {bad[0]:g}: must lie strictly between 0 and 1")
    if values.min() < LEAST_DELTA:
        raise InputError(f"delta = {values.min():g}: too small, at least {LEAST_DELTA:g}")
    return values


def _checked_cost(cost: npt.ArrayLike) -> _Floats:
    values = _numbers("cost", cost)
    bad = values[~((values >= 0.0) & (values <= MOST_COST))]
    if bad.size:
        raise InputError(f"cost = {bad[0]:g}: must be finite, from 0 to {MOST_COST:g}")
    return values


def _numbers(name: str, value: npt.ArrayLike) -> _Floats:
    try:
        values = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} = {value!r}: must be a number or an array of numbers") from None
    if values.size == 0:
        raise InputError(f"{name}: empty, give at least one number")
    return values
