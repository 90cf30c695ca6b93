"""The theorems as numbers: what a trial costs at most on the good event, and at least on average.

The good event E (every empirical mean within its radius, always) has probability 1 - delta. On it
arm k is settled at client m by step n_km and at the server by the first communication at or after
step n_k, where n is the step from which on alpha <= Delta / 4; T_km and T_k are the paper's
closed forms above n_km and n_k (Theorem 2). Everything here follows from those four.

    K, M        arms, clients                     C    price of one scalar on one uplink (``cost``)
    Delta_km    local gap, Delta_k global gap     H    period of a periodic scheme
    T           sum over k, m of max(T_km, T_k)   lambda  base of an exponential scheme

What each scheme of communication costs is worked out in `fastfed.theory.schemes`. Where this
departs from the paper, the line says "Departure".

Any radius has its n_km and n_k, found numerically. The closed forms belong to the paper's radius:
with another, T_km and T_k are n_km and n_k themselves, and everything that follows from them holds
as it does for the paper's. Radii per pair bound one side of a pair with probability 1 - delta:
answers are right with that probability, and costs within their bounds with 1 - 2 delta.

Goals beside the best arm have gaps of their own in place of Delta_km and Delta_k, and their files
(`fastfed.model.goals`) show that each arm is settled by n_km and n_k all the same: so the upper
bounds hold as they stand. With weights of clients 1 / sum p^2 is in place of M in T_k and n_k, and
arm k of client m is needed until the last question with a weight on m is settled
(`fastfed.model.weights`). If clients lack arms, the radius is wider by the scale of a pair, and so
each arm has its own effective number, that of the pairs which decide about it: |M_k| where all
arms have as many clients and these count alike. An arm costs nothing at clients that lack it. Of
the lower bounds, Theorem 3 is about the best arm alone, and T* about goals with one right answer
(`fastfed.theory.characteristic`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from fastfed.confidence import PAPER, Confidence
from fastfed.errors import InputError
from fastfed.model.choices import DEFAULTS, Choices, no_theorem, parts_of
from fastfed.model.goals import Goal
from fastfed.model.instance import Instance
from fastfed.model.options import takes
from fastfed.model.schedules import Adaptive, Exponential, Periodic, Schedule, SuperExponential
from fastfed.model.setting import Setting, resolve_sigma
from fastfed.theory.adaptive import Rounds, rounds_on_grid
from fastfed.theory.lower_bounds import error_information, no_theorem_3, theorem_3
from fastfed.theory.schemes import PerCell, Scheme, Schemes, Settled, sum_of_larger
from fastfed.validation import LEAST_DELTA, MOST_COST

if TYPE_CHECKING:
    import polars as pl

    from fastfed.theory.characteristic import Characteristic

_Floats: TypeAlias = npt.NDArray[np.float64]

_MOST_T = 1e150  # T^2, which super-exponential communication needs, must stay a double


@dataclass(frozen=True, eq=False)
class Bounds:
    """The result of `bounds`; as text, its table.

    ``...`` in a shape is the grid of delta and cost, () for numbers.

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
    delta: PerCell
    cost: PerCell
    sigma: float
    """The confidence scale."""
    radius: str
    """The confidence radius. T_km and T_k of any but "paper" are n_km and n_k."""
    goal: str
    """What clients and server want to know: see `fastfed.simulate`."""
    local_gaps: _Floats
    """Delta_km, (K, M); for goals beside "best" see `fastfed.model.goals`."""
    global_gaps: _Floats
    """Delta_k, (K,); of several questions the smallest."""
    T_km: PerCell
    """(..., K, M); 0 for problems without the clients' own questions."""
    T_k: PerCell
    """(..., K); of several questions the largest."""
    n_km: PerCell
    """(..., K, M), whole numbers as floats: a small gap needs more than an int64."""
    n_k: PerCell
    """(..., K), whole numbers as floats; of several questions the largest."""
    T: PerCell
    """Theorem 2: pulls of FedElim0."""
    T_sharp: PerCell
    """sum max(n_km, n_k): the same, and tighter."""
    lower: PerCell
    """Theorem 3 with the factor 2 of its proof: mean pulls of any delta-PAC algorithm. None where
    it does not apply: it is about the best arm and Gaussian rewards of one variance."""
    lower_as_stated: PerCell
    """Theorem 3 as stated, half of ``lower``; None where it does not apply."""
    condition: PerCell
    """(..., K): C ln T_k <= T_k, which Theorem 4 asks of every arm."""
    three_T_follows: PerCell
    """Whether FedElim's total <= 3T is proved here. The condition alone does not prove it: see
    `bounds`."""
    period_opt: PerCell
    """H that minimises the periodic total as stated, a real number; 0 where talking is free."""
    base_opt: PerCell
    """lambda that minimises the exponential total as stated; 1 (every step) where it is free."""
    fedelim: Scheme
    periodic: Scheme
    """At ``period``; without one, at the best whole period of each cell."""
    exponential: Scheme | None
    """At ``base``; None without one."""
    superexponential: Scheme
    adaptive: Scheme | None = None
    """With the given options; None without them."""
    settled: Settled = field(kw_only=True, repr=False)
    """Steps that settle arms, for `scheme`."""
    rounds_of: Callable[[Adaptive], Sequence[Rounds]] | None = field(default=None, repr=False)
    """Bounds on the times of adaptive schedules, for `scheme`."""

    @property
    def T_star(self) -> float | None:
        """Characteristic time T*: any delta-PAC algorithm needs T* kl(delta, 1 - delta) mean pulls.

        The number is a proved lower bound of T*, within a relative 1e-6 of it. None where no T* is
        known for the rewards or the goal; `notes` says why.
        """
        return self._characteristic.lower

    @property
    def T_star_time(self) -> float | None:
        """Least time of clients that pull side by side, per unit of kl(delta, 1 - delta).

        If every client pulls one arm at a step, any delta-PAC algorithm needs T_star_time
        kl(delta, 1 - delta) steps on average. Proved and missing as T_star is.
        """
        from fastfed.theory.characteristic import characteristic_time

        return characteristic_time(self.instance, Goal.parse(self.goal), side_by_side=True).lower

    @property
    def allocation(self) -> _Floats | None:
        """Allocation of pulls that attains T*, (K, M); its sum is T*."""
        return self._characteristic.allocation

    @property
    def least_pulls(self) -> PerCell | None:
        """T* kl(delta, 1 - delta): no delta-PAC algorithm needs fewer pulls on average."""
        return None if self.T_star is None else (self.T_star * error_information(self.delta))[()]

    @property
    def notes(self) -> tuple[str, ...]:
        """One line for each lower bound that has no number here, or is not exact."""
        found = (no_theorem_3(self.instance, Goal.parse(self.goal)), self._characteristic.note)
        return tuple(note for note in found if note)

    @cached_property
    def _characteristic(self) -> Characteristic:
        from fastfed.theory.characteristic import characteristic_time

        return characteristic_time(self.instance, Goal.parse(self.goal))

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        """From much communication to little."""
        every = (
            self.periodic,
            self.fedelim,
            self.exponential,
            self.superexponential,
            self.adaptive,
        )
        return tuple(scheme for scheme in every if scheme is not None)

    def scheme(self, schedule: Schedule) -> Scheme | None:
        """Bound what a schedule costs.

        Parameters
        ----------
        schedule
            The schedule.

        Returns
        -------
        Scheme or None
            None for listed times, of which no theorem speaks.
        """
        C = np.asarray(self.cost)
        asked = bool(np.any(self.T_k))  # at least 1 wherever anything is asked
        make = Schemes(C, self.settled, self.instance.questions, asked)
        if isinstance(schedule, Periodic):
            return make.periodic(np.full(C.shape, float(schedule.period)))
        if isinstance(schedule, Exponential):
            return self.fedelim if schedule.base == 2 else make.exponential(schedule.base)
        if isinstance(schedule, Adaptive) and self.rounds_of is not None:
            return make.adaptive(schedule, self.rounds_of(schedule))
        return self.superexponential if isinstance(schedule, SuperExponential) else None

    @property
    def breaking_arms(self) -> Any:
        """The arms that break Theorem 4's condition: a list, nested as the grid is."""
        flat = self.condition.reshape(-1, self.condition.shape[-1])
        lists = np.empty(len(flat), dtype=object)
        for cell, holds in enumerate(flat):
            lists[cell] = np.flatnonzero(~holds).tolist()
        return lists.reshape(self.condition.shape[:-1]).tolist()

    def table(self, variant: str = "summed") -> pl.DataFrame:
        """Put the schemes side by side: numbers for the O()s of the paper's comparison.

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
        """Return all numbers as a frame with one number per row.

        Returns
        -------
        polars.DataFrame
            By delta and cost.
        """
        from fastfed.theory.bounds_table import to_frame

        return to_frame(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain lists and numbers, for JSON.

        Returns
        -------
        dict
            An infinite gap is None.
        """
        from fastfed.theory.bounds_table import to_dict

        return to_dict(self)

    def __str__(self) -> str:
        from fastfed.display.bounds_tables import table_of

        return table_of(self).text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from fastfed.display.bounds_tables import table_of

        return table_of(self).html()


@takes(Choices, DEFAULTS)
def bounds(
    instance: Instance | str | Path | npt.ArrayLike,
    delta: npt.ArrayLike = 0.01,
    cost: npt.ArrayLike = 10.0,
    sigma: float | str | None = None,
    period: int | None = None,
    base: float | None = None,
    adaptive: str | Adaptive | None = None,
    **choices: Unpack[Choices],
) -> Bounds:
    """Compute Theorems 2 to 4 and their analogues for other schemes, for one instance.

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
    adaptive
        A schedule that chooses its times, as in "adaptive:8"; None: none.
    radius
        The confidence radius: see `fastfed.simulate`.
    goal
        What clients and server want to know: see `fastfed.simulate`.
    uplink
        How means reach the server, which widens its radius.
    participation
        Which clients report at a round: "full". No theorem covers others.

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
    if reason := no_theorem(choices):
        raise InputError(f"bounds: {reason}; trials can be simulated, and their means compared")
    deltas, prices = _checked_delta(delta), _checked_cost(cost)
    shape = _common_shape(deltas, prices)
    setting = _setting(Instance.of(instance), float(deltas.flat[0]), sigma, choices)
    schedules = _Schedules(
        None if period is None else Periodic(period).period,
        None if base is None else Exponential(base).base,
        None if adaptive is None else Adaptive.given(adaptive),
    )
    d, C = np.broadcast_to(deltas, shape), np.broadcast_to(prices, shape)
    return _bounds(setting, _settled_on_grid(setting, deltas, shape), d, C, schedules)


def _setting(
    instance: Instance, delta: float, sigma: float | str | None, choices: Choices
) -> Setting:
    """Make the setting; other deltas take the place of this one."""
    made = Setting(instance, delta, resolve_sigma(instance, sigma), **parts_of(choices))
    made.refuse_unfit()
    return made


class _Schedules(NamedTuple):
    """The period, base and adaptive schedule whose bounds were asked for."""

    period: int | None
    base: float | None
    adaptive: Adaptive | None


class _Steps(NamedTuple):
    """Steps that settle arms: T_km and n_km at clients, the others in questions of the server."""

    T_km: _Floats  # (..., K, M)
    T_k: _Floats  # (..., Q, K)
    n_km: _Floats  # (..., K, M)
    n_k: _Floats  # (..., Q, K)


def _bounds(setting: Setting, steps: _Steps, d: _Floats, C: _Floats, wanted: _Schedules) -> Bounds:
    """Work everything out for a grid of delta (``d``) and cost (``C``)."""
    instance, goal = setting.instance, setting.goal
    questions = instance.questions
    settled = Settled(
        steps.T_km, questions.latest(steps.T_k), steps.n_km, questions.latest(steps.n_k)
    )
    T, T_k = settled.T, steps.T_k.max(axis=-2)
    lower = None if no_theorem_3(instance, goal) else theorem_3(instance, d)
    log_T_k = np.log(np.maximum(T_k, 1.0))  # T_k is 0 for a lone arm, else at least 1
    senders = questions.asked.any(axis=0).sum(axis=1)  # of each arm
    sent = int(senders.sum())
    # eq. (periodic-3), differentiated: -C T / H^2 + M K = 0
    period_opt = np.sqrt(C * T / sent)
    make = Schemes(C, settled, questions, goal.is_open(instance.shape[0]))
    fedelim = make.fedelim()
    rounds_of = partial(rounds_on_grid, setting, d, steps.n_k)
    return Bounds(
        instance=instance,
        delta=d[()],
        cost=C[()],
        sigma=setting.sigma,
        radius=str(setting.radius),
        goal=str(goal),
        local_gaps=goal.local_gaps(instance),
        global_gaps=goal.server_gaps(instance).min(axis=0),
        T_km=steps.T_km,
        T_k=T_k,
        n_km=steps.n_km,
        n_k=steps.n_k.max(axis=-2),
        T=T[()],
        T_sharp=sum_of_larger(settled.n_km, settled.n_server)[()],
        lower=None if lower is None else lower[()],
        lower_as_stated=None if lower is None else lower[()] / 2.0,
        condition=C[..., None] * log_T_k <= T_k,
        three_T_follows=(fedelim.summed.total <= 3.0 * T)[()],
        period_opt=period_opt[()],
        # eq. (lambda-analogue-3), differentiated
        base_opt=_best_base(C * (senders * log_T_k).sum(-1) / np.maximum(T, 1.0))[()],
        fedelim=fedelim,
        periodic=make.periodic(
            _best_whole(period_opt, C * T, sent)
            if wanted.period is None
            else np.full(C.shape, float(wanted.period))
        ),
        exponential=None if wanted.base is None else make.exponential(wanted.base),
        superexponential=make.superexponential(),
        adaptive=(
            None
            if wanted.adaptive is None
            else make.adaptive(wanted.adaptive, rounds_of(wanted.adaptive))
        ),
        rounds_of=rounds_of,
        settled=settled,
    )


def _settled_on_grid(setting: Setting, delta: _Floats, shape: tuple[int, ...]) -> _Steps:
    """Compute steps on the grid of delta and cost, which has this shape.

    Radii depend on delta alone: all is worked out once for each delta, and then spread over the
    costs.
    """
    aligned = delta.reshape((1,) * (len(shape) - delta.ndim) + delta.shape)
    return _Steps(
        *(
            np.broadcast_to(values, shape + values.shape[len(shape) :])
            for values in _settled_by(setting, aligned)
        )
    )


def _settled_by(setting: Setting, delta: _Floats) -> _Steps:
    """Compute the steps of each delta."""
    instance, sigma, goal = setting.instance, setting.sigma, setting.goal
    questions = instance.questions
    # a gap of 1e100 sigma is as good as infinite (one pull settles it), and its square a double
    local_gaps = np.minimum(goal.local_gaps(instance), 1e100 * sigma)
    global_gaps = np.minimum(goal.server_gaps(instance), 1e100 * sigma)
    radii = [replace(setting, delta=d).radii for d in delta.ravel().tolist()]
    local = [one.client for one in radii]
    asked_locally = float(questions.local)
    local_gaps = local_gaps if questions.local else np.full(local_gaps.shape, 1e100 * sigma)
    n_km = _steps(local, local_gaps, delta.shape)
    # the radius of what decides about an arm is ``wide`` alpha: as if its gap were smaller
    wide = np.stack([setting.bound_scales(q) for q in range(len(questions))])
    n_k = np.stack(
        [
            _steps([one.of(q) for one in radii], gaps, delta.shape)
            for q, gaps in enumerate(global_gaps / wide)
        ],
        axis=-2,
    )
    T_km, T_k = n_km, n_k
    if setting.radius.formula == PAPER:
        local_log = np.reshape([one.constant for one in local], (*delta.shape, 1, 1))
        global_log = np.reshape(
            [[each.constant for each in one.questions] for one in radii],
            (*delta.shape, len(questions), 1),
        )
        T_km = _closed_form(local_gaps, 1.0, local_log, sigma)
        effective = questions.effective[:, None] / wide**2
        T_k = _closed_form(global_gaps, effective, global_log, radii[0].server.sigma)
    if not sum_of_larger(asked_locally * T_km, questions.latest(T_k)).max() < _MOST_T:
        gap = min(float(local_gaps.min()), float(global_gaps.min()))
        raise InputError(
            f"smallest gap {gap:.3g} with sigma = {sigma:g} and delta = "
            f"{delta.min():g}: too small, its bounds leave the range of doubles"
        )
    # Algorithm 1, selection and communication rules: a lone arm is never pulled and never sent
    available, candidates = instance.available, questions.candidates
    open_clients = np.array([goal.is_open(int(count)) for count in available.sum(axis=0)])
    at_clients = asked_locally * (available & open_clients)
    asked = candidates & np.array([[goal.is_open(int(count))] for count in candidates.sum(axis=1)])
    return _Steps(at_clients * T_km, asked * T_k, at_clients * n_km, asked * n_k)


def _steps(radii: list[Confidence], gaps: _Floats, shape: tuple[int, ...]) -> _Floats:
    """Return the first step at which the radius is at most a quarter of each gap."""
    found = [[one.resolved_by(gap) for gap in gaps.ravel().tolist()] for one in radii]
    return np.reshape(np.array(found, np.float64), (*shape, *gaps.shape))


def _closed_form(gaps: _Floats, walks: float | _Floats, log_c: _Floats, sigma: float) -> _Floats:
    """Compute T_km (eq. T_km; walks 1) or T_k (eq. T_k; walks M), with Delta / sigma for Delta.

    With weights the effective number of clients is in place of M. 102 rounds 64 e / (e - 1) =
    101.2... up; the proof writes "=".
    """
    with np.errstate(divide="ignore", over="ignore"):  # infinite T: refused by the caller
        squared = walks * (gaps / sigma) ** 2
        T = 102.0 * (math.log(64.0) + log_c / 2.0 - np.log(squared)) / squared + 1.0
    # Departure: at least 1. For gaps so wide that the logarithm is negative, the printed formula
    # falls below the one pull that is always made (Lambert's W_-1, hence the proof, ends there).
    return np.maximum(T, 1.0)


def _best_whole(period: _Floats, CT: _Floats, cells: int) -> _Floats:
    """Find the whole H >= 1 that minimises H M K + C T / H: beside the real one, by convexity."""
    below = np.maximum(np.floor(period), 1.0)
    worse = cells + CT / (below + 1.0) < CT / below
    return np.asarray(below + worse)


def _best_base(r: _Floats) -> _Floats:
    """Solve lambda (ln lambda)^2 = r for lambda > 1; 1 for r = 0.

    With u = ln(lambda) / 2 it says u e^u = sqrt(r) / 2, which Lambert's W solves.
    """
    from scipy.special import lambertw

    half_root: Any = np.sqrt(r) / 2.0
    return np.asarray(np.exp(2.0 * lambertw(half_root).real))


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
