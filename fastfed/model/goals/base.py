"""Goals: questions that every client answers for itself, and the server for all clients.

Whoever answers sees one list of means: a client its own column of the instance, the server the
means over clients. In these lists an arm that is no candidate has NaN. So a goal is a handful of
functions of such lists, of one (K,) or of many (K, M): which arms tie, so that the question has no
answer (`tied`), how far each arm is from being mistaken (`gaps`), which answers are right
(`right`); and of empirical means, in the words of the paper: what is decided at a step (`decide`).
The reference runs `decide` as it stands. The kernels have the same rule once more, in sums and for
whole intervals of steps (`fastfed.kernels.decisions`), and tests hold the two together.

*Good event.* With probability 1 - delta at least, all empirical means, of all clients and of the
server, lie within alpha of the truth at every step (`fastfed.confidence`). Each goal's file shows
that its rule errs nowhere on that event: that is all that delta-PAC asks for.

*Gaps.* On the same event each arm is decided, at the latest, at the first look from which on
alpha <= gap / 4: n_km at a client, n_k at the server (`fastfed.theory.bounds`). For `best` the gaps
are the paper's Delta_km and Delta_k, and each goal's file says why its own will do.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfed.errors import InputError
from fastfed.model.part import Part
from fastfed.model.weights import ALIKE, ArmScales
from fastfed.text import listed

if TYPE_CHECKING:
    from fastfed.model.instance import Instance
    from fastfed.model.setting import Setting

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Means = Mapping[int, float]
"""Empirical means by the numbers of arms."""

TIE = 1e-12
"""Leads below this, relative to the spread of the means, are ties: see `tolerance`."""
MOST = 1e100
"""No mean, and no number that means are compared with, is larger: squares of gaps stay finite."""


class Decision(NamedTuple):
    """A decision on some of the undecided arms; the others stay undecided."""

    accepted: Set[int]
    rejected: Set[int]


class Right(NamedTuple):
    """The right answers: sets with all required arms, and without forbidden ones."""

    must: Flags
    must_not: Flags

    def allows(self, answer: Set[int]) -> bool:
        """Tell whether a set of arms is a right answer."""
        chosen = np.zeros(len(self.must), bool)
        chosen[list(answer)] = True
        return not ((self.must & ~chosen) | (self.must_not & chosen)).any()


class Numbers(NamedTuple):
    """The numbers of a goal, as kernels know them."""

    rule: str = "best"
    """The rule of the kernels that the goal follows."""
    settled: int = 1
    """Up to so many arms, nothing is pulled: the answer has all of them."""
    tau: float = 0.0
    """The number that arms are compared with."""
    slack: float = 0.0
    """E, how far an answer may be off."""


class Goal(Part):
    """A question that every client answers for itself and the server for all of them.

    Made by its subclasses, or by the names that options take.

    Examples
    --------
    >>> import fastfed as ff
    >>> isinstance(ff.Top(3), ff.Goal), str(ff.Threshold(0.5, 0.05))
    (True, 'threshold:0.5,0.05')
    """

    kind = "goal"
    one_arm: ClassVar[bool] = True
    """Whether an answer is one arm (``global_arm``), and not a set (``global_answer``)."""
    compares: ClassVar[bool] = True
    """Whether arms are compared with each other, and not each by itself with a number."""
    gap_text: ClassVar[str]
    """Between what the smallest gap lies, for messages."""

    # ---- what each goal says of itself, by a list of means -------------------------------------

    def tied(self, values: Floats) -> Flags:
        """Mark the arms that tie such that the question has no answer in their list."""
        return np.zeros(values.shape, bool)

    def tie_text(self, values: Floats, arms: str, where: str) -> str:
        """Say that these arms of a list tie, and which goal would do."""
        return f"goal {self}: {arms} tie at {where}"

    @abstractmethod
    def gaps(self, values: Floats) -> Floats:
        """Return for each arm the gap that decides about it: see the module's text.

        It is infinite where nothing is to be decided.
        """

    @abstractmethod
    def right(self, values: Floats) -> Right:
        """Return the right answers; an arm that is no candidate belongs to none."""

    @abstractmethod
    def decide(
        self, means: Means, alpha: float, accepted: Set[int], scales: ArmScales = ALIKE
    ) -> Decision:
        """Apply the rule at a step.

        The rule depends on the empirical means of the undecided arms, the radius, and the arms that
        were accepted before. Arms that not every client has widen the radius by their scales.
        """

    @property
    def numbers(self) -> Numbers:
        """The goal's own numbers."""
        return Numbers()

    def is_open(self, arms: int) -> bool:
        """Tell whether pulls are needed; a lone arm is the best without any."""
        return arms > self.numbers.settled

    def bound_scales(self, values: Floats, scales: ArmScales) -> Floats:
        """Return for each candidate the factor of alpha with which its gap bounds its steps.

        Candidate k is decided once this factor times alpha is at most gap / 4. The largest scale of
        a pair will do for every goal that compares arms.
        """
        count = len(values)
        pairs = [scales.pair(i, j) for i in range(count) for j in range(i)]
        return np.full(count, max(pairs, default=1.0))

    def gives_up(self, ties: Set[int]) -> bool:
        """Tell whether no right answer is left and the rest could take forever.

        Called after a decision. ``ties`` has a number for each group of undecided arms that tie.
        """
        return False

    def pairs(self, arms: int) -> int:
        """Count the ordered pairs of arms that can cause an error, for radii per pair."""
        return max(arms - 1, 1)

    # ---- of an instance ------------------------------------------------------------------------

    def refuse(self, setting: Setting) -> None:
        """Refuse an instance on which the question has no answer."""
        self.check(setting.instance)

    def check(self, instance: Instance) -> None:
        """Raise an InputError if a client, or a question of the server, has no answer."""
        asked: list[tuple[Floats, Callable[[int], str]]] = [
            (instance.values.T, instance.questions.text)
        ]
        if instance.questions.local:
            asked.insert(0, (instance.means, lambda m: f"client {instance.client_text(m)}"))
        for values, text in asked:
            tied = self.tied(values)
            for m in np.flatnonzero(tied.any(axis=0))[:1].tolist():
                arms = arm_list(np.flatnonzero(tied[:, m]), instance.arms)
                raise InputError(self.tie_text(values[:, m], arms, text(m)))

    def local_gaps(self, instance: Instance) -> Floats:
        """Return the gaps of all clients, (K, M)."""
        return self.gaps(instance.means)

    def server_gaps(self, instance: Instance) -> Floats:
        """Return the gaps of the server's questions, (Q, K)."""
        return self.gaps(instance.values.T).T

    def smallest_gap(self, instance: Instance) -> float:
        """Return the smallest gap of all that is asked."""
        here = [self.local_gaps(instance)] if instance.questions.local else []
        return float(min(gaps.min() for gaps in (*here, self.server_gaps(instance))))

    def kernel(self, setting: Setting) -> Any:
        """Lay the goal out for the kernels: see `fastfed.kernels.goal.Goal`."""
        from fastfed.kernels import goal

        instance = setting.instance
        questions, (rule, settled, line, slack) = instance.questions, self.numbers
        tau = np.zeros(instance.shape[1])
        if not self.compares:
            tau += line - getattr(setting.reward_kernel, "origin", 0.0)
        return goal.Goal(
            np.int64(getattr(goal, rule.upper())),
            np.int64(settled),
            np.array(instance.local_ties.T, order="C"),
            np.array(instance.server_ties),
            np.tile(tau[:, None], (1, instance.shape[0])),
            # client by client, as sums
            np.cumsum(questions.factors * tau, axis=2)[:, :, -1].copy(),
            slack,
            slack * questions.factor_sums,
            *(
                np.array(arms.T, order="C")  # a client, or a question, a row
                for values in (instance.means, instance.values.T)
                for arms in self.right(values)
            ),
        )


def leads(
    means: Means, j: int, k: int, alpha: float, scales: ArmScales, slack: float = 0.0
) -> bool:
    """Tell whether arm j is 2 alpha, by the scale of the pair, less ``slack`` ahead of arm k."""
    return j != k and means[j] - means[k] >= 2 * alpha * scales.pair(j, k) - slack


def behind(means: Means, alpha: float, scales: ArmScales) -> set[int]:
    """Return the arms that another arm leads by 2 alpha."""
    return {k for k in means if any(leads(means, j, k, alpha, scales) for j in means)}


def behind_best(values: Floats) -> Floats:
    """Return how far each arm is behind the best of its list, and the best before the next.

    It is infinite for a lone arm, and for arms that are no candidates.
    """
    gaps: Floats = np.fmax.reduce(values, axis=0) - values
    gaps[np.isnan(gaps)] = math.inf
    best = np.argmin(gaps, axis=0, keepdims=True)
    np.put_along_axis(gaps, best, math.inf, axis=0)
    np.put_along_axis(gaps, best, gaps.min(axis=0, keepdims=True), axis=0)
    return gaps


def tolerance(values: Floats) -> Any:
    """Return the largest difference that is a tie, for each column of (K,) or (K, M) values.

    It is 1e-12 of the spread of the values, or four units in the last place of the largest one, if
    that is more: decimal means that agree, as 0.1 + 0.2 and 0.3, differ by as much once they are
    rounded. What the values share makes no difference beyond this rounding: with 1e9 added to all
    of them, arms that are 1e-3 apart do not tie. Values that are NaN do not count.
    """
    spread = np.fmax.reduce(values, axis=0) - np.fmin.reduce(values, axis=0)
    largest = np.fmax.reduce(np.abs(values), axis=0)
    return np.maximum(TIE * spread, 4.0 * np.spacing(largest))


def ties(values: Floats) -> npt.NDArray[np.int64]:
    """Rank the arms in each column of (K,) or (K, M) values; arms that tie have equal ranks.

    The larger the value, the larger the rank. Values that are NaN have -1.
    """
    order = np.argsort(values, axis=0, kind="stable")
    apart = np.diff(np.take_along_axis(values, order, axis=0), axis=0) > tolerance(values)
    numbers = np.zeros(values.shape, np.int64)
    np.cumsum(apart, axis=0, out=numbers[1:])
    found = np.empty_like(numbers)
    np.put_along_axis(found, order, numbers, axis=0)
    found[np.isnan(values)] = -1
    return found


def arm_list(chosen: npt.ArrayLike, arms: Sequence[str]) -> str:
    """List arms by number and name, for messages, in at most one line."""
    every = np.atleast_1d(np.asarray(chosen)).tolist()
    shown = [f"{k}" if arms[k] == str(k) else f"{k} ({arms[k]})" for k in every]
    return f"arm{'s' * (len(every) > 1)} {listed(shown, 8)}"
